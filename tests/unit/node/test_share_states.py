"""Questions to share coordinators: here or on another broker, gathered, asked again, and every one answered once."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.node.outbox import CLOSED, NoResponse
from moldau.node.share.state_messages import READ, WRITE, response_for
from moldau.node.share.states import ATTEMPTS_MAX, ShareStates, StateQuestion
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import read_share_group_state_request as read_request
from moldau.protocol.messages import read_share_group_state_response as read_response
from moldau.protocol.messages import write_share_group_state_request as write_request
from moldau.protocol.messages import write_share_group_state_response as write_response
from moldau.protocol.primitives import Message
from moldau.protocol.stored.metadata_records import PartitionRecord, TopicRecord
from moldau.protocol.topic_names import SHARE_TOPIC

TOPIC = b"t" * 16
HERE, THERE, ELSEWHERE = 1, 2, 3


class Coordinator:
    """The one on this broker."""

    def __init__(self) -> None:
        self.results: list[Message | KafkaError] = []
        self.asked = 0

    def partition_for(self, key: Any) -> int:
        return 0

    def run(self, key: Any, verb: Any, done: Any, now_ms: int) -> None:
        self.asked += 1
        done(self.results.pop(0))


class Channel:
    def __init__(self) -> None:
        self.sent: list[tuple[int, Any, Any]] = []

    def send(self, kind: int, version: int, request: Any, timeout_ms: int, answered: Any) -> None:
        self.sent.append((kind, request, answered))


class Channels:
    def __init__(self) -> None:
        self.open = {THERE: Channel(), ELSEWHERE: Channel()}
        self.lost: list[int] = []

    def find(self, broker_id: int, image: MetadataImage) -> Channel | None:
        return self.open.get(broker_id)

    def drop_lost(self, image: MetadataImage) -> list[int]:
        lost, self.lost = self.lost, []
        for broker_id in lost:
            self.open.pop(broker_id, None)
        return lost

    def close(self) -> None:
        pass


class World:
    def __init__(self, leader: int) -> None:
        self.coordinator, self.channels = Coordinator(), Channels()
        self.states = ShareStates(HERE, self.coordinator, self.channels, 1000)  # type: ignore[arg-type]
        self.now_ms = 0
        self.answers: list[tuple[int, Message | KafkaError]] = []
        self.lead(leader)

    def lead(self, leader: int) -> None:
        image = MetadataImage()
        delta = MetadataDelta(image)
        delta.replay(TopicRecord(SHARE_TOPIC, b"s" * 16))
        delta.replay(PartitionRecord(partition_id=0, topic_id=b"s" * 16, replicas=[1, 2, 3], isr=[1], leader=leader))
        self.states.on_metadata(delta.apply(1, 1, self.now_ms), self.now_ms)

    def write(self, partition: int) -> None:
        self.ask(WRITE, partition, write_request.PartitionData(partition, 1, 1, 0))

    def read(self, partition: int) -> None:
        self.ask(READ, partition, read_request.PartitionData(partition, 1))

    def ask(self, kind: int, partition: int, row: Message) -> None:
        def done(result: Message | KafkaError, now_ms: int) -> None:
            self.answers.append((partition, result))

        before = len(self.answers)
        self.states.ask(StateQuestion(kind, ("g", TOPIC, partition), row, done), self.now_ms)
        assert len(self.answers) == before, "nobody is called back inside of the call that asks"

    def run(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while self.now_ms < end_ms:
            self.now_ms = min(end_ms, max(self.states.poll(self.now_ms), self.now_ms + 1))
        self.states.poll(self.now_ms)

    def sent(self, broker_id: int = THERE) -> list[tuple[int, Any, Any]]:
        return self.channels.open[broker_id].sent

    def reply(self, number: int, broker_id: int = THERE, code: int = 0) -> None:
        kind, request, answered = self.sent(broker_id)[number]
        row_of: Any = write_response.PartitionResult if kind == WRITE else read_response.PartitionResult
        rows: list[Any] = [
            (("g", topic.topic_id, row.partition), KafkaError(code) if code else row_of(row.partition))
            for topic in request.topics
            for row in topic.partitions
        ]
        answered(response_for(kind, rows), self.now_ms)

    def reply_to_all(self, number: int, broker_id: int = THERE) -> None:
        """From that one on, also to what is sent because of it."""
        while number < len(self.sent(broker_id)):
            self.reply(number, broker_id)
            number += 1
        self.run(1)


def partitions(request: Any) -> list[int]:
    return [row.partition for topic in request.topics for row in topic.partitions]


def test_the_coordinator_here_is_asked_directly() -> None:
    world = World(HERE)
    world.coordinator.results = [write_response.PartitionResult(0)]
    world.write(0)
    world.run(1)
    assert [partition for partition, _ in world.answers] == [0]


def test_what_comes_while_a_request_is_under_way_goes_together() -> None:
    world = World(THERE)
    for partition in range(4):
        world.write(partition)
    world.read(9)
    assert [(kind, partitions(request)) for kind, request, _ in world.sent()] == [(WRITE, [0]), (READ, [9])]
    world.reply(0)
    assert partitions(world.sent()[2][1]) == [1, 2, 3]
    world.reply(2)
    world.reply(1)
    world.run(1)
    assert sorted(partition for partition, _ in world.answers) == [0, 1, 2, 3, 9]


def test_a_partition_is_named_once_in_a_request() -> None:
    """Writes to it keep their order."""
    world = World(THERE)
    for _ in range(3):
        world.write(0)
    world.write(1)
    world.reply(0)
    world.reply(1)
    world.reply(2)
    assert [partitions(request) for _, request, _ in world.sent()] == [[0], [0, 1], [0]]
    world.run(1)
    assert len(world.answers) == 4


@pytest.mark.parametrize(
    "code",
    [
        errors.NOT_COORDINATOR,
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.COORDINATOR_LOAD_IN_PROGRESS,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_a_coordinator_that_has_moved_is_looked_for(code: int) -> None:
    """KAFKA-17463."""
    world = World(THERE)
    world.write(0)
    world.lead(ELSEWHERE)
    world.reply(0, code=code)
    world.run(1000)
    assert world.answers == []
    world.reply(0, ELSEWHERE)
    world.run(1)
    assert [isinstance(result, KafkaError) for _, result in world.answers] == [False]


@pytest.mark.parametrize("code", [errors.FENCED_LEADER_EPOCH, errors.FENCED_STATE_EPOCH, errors.INVALID_REQUEST])
def test_other_errors_are_final(code: int) -> None:
    world = World(THERE)
    world.write(0)
    world.reply(0, code=code)
    world.run(60_000)
    ((_, result),) = world.answers
    assert isinstance(result, KafkaError) and result.code == code and len(world.sent()) == 1


def test_a_lost_channel_is_no_answer() -> None:
    world = World(THERE)
    world.write(0)
    world.write(1)
    world.sent()[0][2](NoResponse(CLOSED), world.now_ms)
    world.run(1000)
    world.reply_to_all(1)
    assert sorted(partition for partition, _ in world.answers) == [0, 1]


def test_a_broker_that_is_gone_answers_nothing_any_more() -> None:
    """Also what waited behind its request goes elsewhere; a late answer of it means nothing."""
    world = World(THERE)
    world.write(0)
    world.write(1)
    late = world.sent()[0][2]
    world.channels.lost = [THERE]
    world.lead(ELSEWHERE)
    world.run(1000)
    late(response_for(WRITE, [(("g", TOPIC, 0), KafkaError(errors.FENCED_LEADER_EPOCH))]), world.now_ms)
    world.reply_to_all(0, ELSEWHERE)
    assert sorted(partition for partition, _ in world.answers) == [0, 1]
    assert not any(isinstance(result, KafkaError) for _, result in world.answers)


def test_it_is_not_asked_for_ever() -> None:
    """KAFKA-17853."""
    world = World(-1)
    world.write(0)
    world.run(120_000)
    ((_, result),) = world.answers
    assert isinstance(result, KafkaError) and result.code == errors.COORDINATOR_NOT_AVAILABLE
    assert world.coordinator.asked == 0


def test_the_coordinator_here_may_load_for_a_while() -> None:
    world = World(HERE)
    loading = KafkaError(errors.COORDINATOR_LOAD_IN_PROGRESS)
    world.coordinator.results = [loading] * (ATTEMPTS_MAX - 1) + [write_response.PartitionResult(0)]
    world.write(0)
    world.run(60_000)
    ((_, result),) = world.answers
    assert not isinstance(result, KafkaError)
