"""Proposals to change in-sync replicas: how they reach the controller, and what each of its answers does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.node.isr_changes import RETRY_MS, IsrChanges
from moldau.protocol import api_table, errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import alter_partition_request as request_messages
from moldau.protocol.messages import alter_partition_response as response_messages
from moldau.protocol.primitives import Message
from moldau.replication.leader import LeaderState
from moldau.replication.partition import Partition, ReplicationContext
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append, new_log

OWN = 1
OWN_EPOCH = 11


class Controller:
    """Keeps the requests and their callbacks until a test answers them."""

    def __init__(self) -> None:
        self.requests: list[request_messages.AlterPartitionRequest] = []
        self.done: list[Callable[[Any, int], None]] = []

    def ask(self, api_key: int, request: Message, done: Callable[[Any, int], None], now_ms: int) -> None:
        assert api_key == api_table.ALTER_PARTITION and isinstance(request, request_messages.AlterPartitionRequest)
        self.requests.append(request)
        self.done.append(done)

    def answer(self, code: int = 0, isr: list[int] | None = None, partition_epoch: int = 1) -> None:
        row = response_messages.PartitionData(0, code, OWN, 0, isr or [], 0, partition_epoch)
        response = response_messages.AlterPartitionResponse(topics=[response_messages.TopicData(TOPIC_ID, [row])])
        self.done.pop(0)(response, NOW_MS)

    def fail(self, code: int) -> None:
        self.done.pop(0)(KafkaError(code), NOW_MS)


class World:
    """One partition with followers 2 and 3; 3 is not in sync, and about to join."""

    def __init__(self, path: Path) -> None:
        self.controller = Controller()
        self.context = ReplicationContext()
        self.context.brokers.active_epochs = {1: 11, 2: 12, 3: 13}
        self.changes = IsrChanges(OWN, lambda: OWN_EPOCH, self.controller, self.context)
        self.partition = Partition("t", TOPIC_ID, 0, OWN, new_log(path), self.context)
        self.partition.update(OWN, 0, 0, [1, 2, 3], [1, 2], NOW_MS)

    def fetch(self, replica: int, offset: int) -> None:
        self.partition.on_follower_fetch(replica, 10 + replica, offset, 0, 0, -1, NOW_MS)

    @property
    def state(self) -> LeaderState:
        assert self.partition.leader_state is not None
        return self.partition.leader_state

    def sent(self) -> list[tuple[list[tuple[int, int]], int]]:
        """([(replica, broker epoch)], partition epoch) of every request so far."""
        found = []
        for request in self.controller.requests:
            for topic in request.topics:
                for row in topic.partitions:
                    found.append(
                        ([(s.broker_id, s.broker_epoch) for s in row.new_isr_with_epochs], row.partition_epoch)
                    )
        return found


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.fetch(2, 0)
    world.fetch(3, 0)
    world.changes.poll(NOW_MS)
    return world


def test_a_proposal_names_the_brokers_with_their_epochs(world: World) -> None:
    assert world.sent() == [([(1, 11), (2, 12), (3, 13)], 0)]
    assert world.controller.requests[0].broker_epoch == OWN_EPOCH
    world.changes.poll(NOW_MS)
    assert len(world.controller.requests) == 1, "one request at a time"


def test_the_answer_makes_it_so(world: World) -> None:
    world.controller.answer(isr=[1, 2, 3])
    assert world.partition.in_sync_replicas == [1, 2, 3] and world.partition.partition_epoch == 1
    assert not world.state.in_sync.is_changing


def test_metadata_that_comes_first_counts_and_the_answer_changes_nothing_more(world: World) -> None:
    world.partition.update(OWN, 0, 2, [1, 2, 3], [1, 3], NOW_MS)
    world.controller.answer(isr=[1, 2, 3], partition_epoch=1)
    assert world.partition.in_sync_replicas == [1, 3] and world.partition.partition_epoch == 2


def test_metadata_that_tells_the_same_later_does_not_end_the_next_proposal(world: World) -> None:
    world.controller.answer(isr=[1, 2, 3])
    assert world.partition.log is not None
    append(world.partition.log)
    world.partition.maybe_shrink_in_sync_replicas(NOW_MS + 40_000)
    assert world.state.in_sync.is_changing
    world.partition.update(OWN, 0, 1, [1, 2, 3], [1, 2, 3], NOW_MS)
    assert world.state.in_sync.is_changing and world.state.in_sync.maximal == [1, 2, 3]


@pytest.mark.parametrize("code", [errors.INELIGIBLE_REPLICA, errors.OPERATION_NOT_ATTEMPTED])
def test_what_was_refused_is_over(world: World, code: int) -> None:
    world.controller.answer(code)
    assert not world.state.in_sync.is_changing and world.state.in_sync.maximal == [1, 2]
    world.fetch(3, 0)
    assert world.changes.poll(NOW_MS) > NOW_MS, "the same follower is not proposed again at once"
    world.changes.poll(NOW_MS + RETRY_MS)
    assert len(world.controller.requests) == 2


@pytest.mark.parametrize(
    "code",
    [
        errors.FENCED_LEADER_EPOCH,
        errors.INVALID_REQUEST,
        errors.INVALID_UPDATE_VERSION,
        errors.NEW_LEADER_ELECTED,
        errors.UNKNOWN_TOPIC_ID,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ],
)
def test_who_knows_less_than_the_controller_waits_for_the_metadata(world: World, code: int) -> None:
    world.controller.answer(code)
    world.changes.poll(NOW_MS + 10_000)
    assert len(world.controller.requests) == 1
    assert world.state.in_sync.maximal == [1, 2, 3], "it may have been done all the same"
    world.partition.update(OWN, 0, 5, [1, 2, 3], [1, 2], NOW_MS)
    world.fetch(3, 0)
    world.changes.poll(NOW_MS)
    assert world.sent()[-1] == ([(1, 11), (2, 12), (3, 13)], 5)


@pytest.mark.parametrize(
    "code", [errors.NOT_CONTROLLER, errors.REQUEST_TIMED_OUT, errors.STALE_BROKER_EPOCH, errors.UNKNOWN_SERVER_ERROR]
)
def test_what_nobody_answered_is_asked_again(world: World, code: int) -> None:
    world.controller.fail(code)
    assert world.changes.poll(NOW_MS) == NOW_MS + RETRY_MS
    assert world.state.in_sync.maximal == [1, 2, 3]
    world.changes.poll(NOW_MS + RETRY_MS)
    assert world.sent() == [([(1, 11), (2, 12), (3, 13)], 0)] * 2


def test_what_the_controller_did_not_say_a_word_about_is_asked_again(world: World) -> None:
    world.controller.done.pop(0)(response_messages.AlterPartitionResponse(), NOW_MS)
    world.changes.poll(NOW_MS + RETRY_MS)
    assert len(world.controller.requests) == 2


def test_a_proposal_of_an_older_epoch_is_not_sent_again(world: World) -> None:
    world.controller.fail(errors.REQUEST_TIMED_OUT)
    world.partition.update(OWN, 1, 1, [1, 2, 3], [1, 2], NOW_MS)
    world.changes.poll(NOW_MS + RETRY_MS)
    assert len(world.controller.requests) == 1 and not world.state.in_sync.is_changing


def test_an_answer_to_an_older_leader_epoch_is_ignored(world: World) -> None:
    world.partition.update(OWN, 1, 1, [1, 2, 3], [1, 2], NOW_MS)
    world.controller.answer(isr=[1, 2, 3], partition_epoch=2)
    assert world.partition.in_sync_replicas == [1, 2] and world.partition.partition_epoch == 1


def test_the_next_follower_is_proposed_when_the_one_before_has_joined(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.partition.update(OWN, 0, 1, [1, 2, 3], [1], NOW_MS)
    world.fetch(2, 0)
    world.fetch(3, 0)
    world.changes.poll(NOW_MS)
    world.controller.answer(isr=[1, 2], partition_epoch=2)
    world.changes.poll(NOW_MS)
    assert world.sent()[-1] == ([(1, 11), (2, 12), (3, 13)], 2)


def test_a_broker_that_comes_back_with_less_is_not_named_with_its_new_epoch(world: World) -> None:
    """The proposal was made for its life before; that one is not asked for again under another name."""
    before = world.sent()[-1]
    assert (3, 13) in before[0]
    world.controller.fail(errors.REQUEST_TIMED_OUT)
    world.context.brokers.active_epochs[3] = 23
    world.partition.on_follower_fetch(3, 23, 0, 0, 0, -1, NOW_MS)
    world.changes.poll(NOW_MS + RETRY_MS)
    assert len(world.sent()) == 2
    assert world.sent()[-1] == before
