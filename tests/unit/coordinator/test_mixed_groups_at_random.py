"""Members of both protocols in one group, at random: it becomes a consumer group and a classic one again, and back.

Classic members are eager (they give everything up before they join) or cooperative (they go on with what they have).
Checked after every step: nobody reads a partition that somebody else reads. In the end, left alone, every partition has
a reader.
"""

from __future__ import annotations

import os
import random
from typing import Any

import pytest

from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.consumer_group import ConsumerGroup
from moldau.coordinator.group.consumer_migration import read_assignment, read_subscription, write_assignment
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription, SubscriptionTopicPartition
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Writer
from tests.unit.coordinator.consumer_world import GROUP, ClassicAnswer, Consumer, ConsumerWorld

PARTITIONS = 6
STEPS = 150
SEEDS = int(os.environ.get("MOLDAU_GROUP_SEEDS", "8"))
ACTIONS = [
    *("join", "join classic", "beat", "beat", "beat", "classic", "classic", "classic", "classic"),
    *("leave", "pause", "lose", "failover"),
]


def subscription(owned: dict[bytes, list[int]]) -> bytes:
    writer = Writer()
    writer.int16(1)
    rows = [SubscriptionTopicPartition("t", indexes) for indexes in owned.values()]
    ConsumerProtocolSubscription(["t"], None, rows).encode(writer, 1)
    return writer.to_bytes()


def claimed(metadata: bytes) -> set[int]:
    """The partitions that a member says it has."""
    return {index for row in read_subscription(metadata).owned_partitions for index in row.partitions}


class ClassicConsumer:
    """A consumer of the classic protocol: one request at a time, and what it has to do next."""

    def __init__(self, world: ConsumerWorld, name: str, is_cooperative: bool) -> None:
        self.world = world
        self.name = name
        self.is_cooperative = is_cooperative
        self.member_id = ""
        self.generation = -1
        self.owned: dict[bytes, list[int]] = {}
        self.pending: ClassicAnswer | None = None
        self.asked = ""
        self.next = "join"
        # Of a leader: what each member said it has.
        self.members: dict[str, set[int]] = {}

    def step(self) -> None:
        """Takes the answer it waits for, or sends the next request."""
        if self.pending is None:
            getattr(self, self.next)()
        answer: Any = None if self.pending is None else self.pending.take()
        if answer is not None:
            self.pending = None
            getattr(self, "on_" + self.asked)(answer)

    def _ask(self, what: str, request: Any, version: int) -> None:
        self.asked = what
        self.pending = self.world.ask_classic(request, version, self.name)
        self.world.settle()

    def join(self) -> None:
        if not self.is_cooperative:
            self.owned = {}
        rows = [JoinGroupRequestProtocol("range", subscription(self.owned))]
        self._ask("join", JoinGroupRequest(GROUP, 45_000, 300_000, self.member_id, None, "consumer", rows), 9)

    def on_join(self, answer: Any) -> None:
        code = answer.error_code
        if code == errors.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
        elif code == errors.UNKNOWN_MEMBER_ID:
            self.on_error(code)
        elif code == 0:
            self.member_id, self.generation = answer.member_id, answer.generation_id
            self.members = {row.member_id: claimed(row.metadata) for row in answer.members}
            self.next = "sync"
        else:
            assert code in (errors.REBALANCE_IN_PROGRESS, errors.NOT_COORDINATOR), code

    def sync(self) -> None:
        image = self.world.image
        topic = image.topic("t")
        assert topic is not None
        rows = [
            SyncGroupRequestAssignment(member_id, write_assignment({topic.topic_id: indexes}, 1, image))
            for member_id, indexes in self.assign().items()
        ]
        self._ask("sync", SyncGroupRequest(GROUP, self.generation, self.member_id, None, "consumer", "range", rows), 5)

    def assign(self) -> dict[str, list[int]]:
        """What the leader decides: partitions in turn, but none that another member still has."""
        ids = sorted(self.members)
        result: dict[str, list[int]] = {member_id: [] for member_id in ids}
        for index in range(PARTITIONS if ids else 0):
            member_id = ids[index % len(ids)]
            if not any(index in owned for other, owned in self.members.items() if other != member_id):
                result[member_id].append(index)
        return result

    def on_sync(self, answer: Any) -> None:
        if answer.error_code:
            self.on_error(answer.error_code)
            return
        partitions, _ = read_assignment(answer.assignment, self.world.image)
        before = self.owned
        self.owned = {topic_id: sorted(indexes) for topic_id, indexes in partitions.items()}
        # A cooperative member that gave something up joins again, so that somebody gets it.
        gave_up = any(set(indexes) - set(self.owned.get(topic_id, ())) for topic_id, indexes in before.items())
        self.next = "join" if gave_up else "heartbeat"

    def heartbeat(self) -> None:
        self._ask("heartbeat", HeartbeatRequest(GROUP, self.generation, self.member_id), 4)

    def on_heartbeat(self, answer: Any) -> None:
        if answer.error_code:
            self.on_error(answer.error_code)

    def on_error(self, code: int) -> None:
        known = (errors.REBALANCE_IN_PROGRESS, errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION)
        assert code in (*known, errors.NOT_COORDINATOR), code
        if code in known:
            self.next = "join"
        if code in (errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION):
            self.owned = {}
        if code == errors.UNKNOWN_MEMBER_ID:
            self.member_id = ""

    def leave(self) -> None:
        self.owned = {}
        self.world.ask_classic(LeaveGroupRequest(GROUP, members=[MemberIdentity(self.member_id)]), 5, self.name)


class Walker:
    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.is_cooperative = seed % 2 == 1
        self.world = ConsumerWorld()
        self.world.topic("t", PARTITIONS)
        self.modern: list[Consumer] = []
        self.classic: list[ClassicConsumer] = []
        self.made = 0

    def step(self) -> None:
        action = self.dice.choice(ACTIONS)
        if action == "join" and len(self.modern) < 3:
            self.made += 1
            consumer = self.world.consumer(f"m{self.made}")
            consumer.join("t")
            self.modern.append(consumer)
        elif action == "join classic" and len(self.classic) < 3:
            self.made += 1
            self.classic.append(ClassicConsumer(self.world, f"c{self.made}", self.is_cooperative))
        elif action == "beat" and self.modern:
            self.beat(self.dice.choice(self.modern))
        elif action == "classic" and self.classic:
            self.dice.choice(self.classic).step()
        elif action == "leave":
            self.leave()
        elif action == "lose" and self.dice.random() < 0.3:
            self.lose()
        elif action == "pause":
            self.world.sleep(self.dice.choice([1, 500, 1000, 3000]))
        elif action == "failover" and self.dice.random() < 0.3:
            self.world.lead()
        self.check()

    def beat(self, consumer: Consumer) -> None:
        try:
            consumer.acknowledge()
        except KafkaError as error:
            known = (errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH, errors.GROUP_ID_NOT_FOUND)
            assert error.code in known, error
            consumer.owned = {}
            self.modern.remove(consumer)

    def leave(self) -> None:
        if self.modern and self.dice.random() < 0.5:
            consumer = self.dice.choice(self.modern)
            self.modern.remove(consumer)
            consumer.leave()
        elif self.classic:
            classic = self.dice.choice(self.classic)
            self.classic.remove(classic)
            classic.leave()

    def lose(self) -> None:
        """Somebody is not heard of any more; it knows when its session is over."""
        if self.modern and self.dice.random() < 0.5:
            self.modern.remove(self.dice.choice(self.modern))
        elif self.classic:
            self.classic.remove(self.dice.choice(self.classic))
        for _ in range(12):
            self.world.sleep(4000)
            self.everybody()

    def everybody(self) -> None:
        for consumer in list(self.modern):
            self.beat(consumer)
        for classic in self.classic:
            classic.step()

    def check(self) -> None:
        group = self.world.machine.state.groups.get(GROUP)
        if isinstance(group, ConsumerGroup):
            self.world.check_owners()
        held: dict[tuple[bytes, int], object] = {}
        for consumer in self.everyone():
            for topic_id, indexes in consumer.owned.items():
                for index in indexes:
                    other = held.setdefault((topic_id, index), consumer)
                    assert other is consumer, f"two read partition {index}"

    def everyone(self) -> list[Consumer | ClassicConsumer]:
        return [*self.modern, *self.classic]

    def calm_down(self) -> None:
        for _ in range(80):
            self.world.sleep(1100)
            self.everybody()
            self.check()

    def check_end(self) -> None:
        group = self.world.machine.state.groups.get(GROUP)
        if not self.modern and not self.classic:
            assert group is None or group.is_empty()
            return
        assert isinstance(group, ConsumerGroup if self.modern else ClassicGroup | ConsumerGroup)
        held = {index for one in self.everyone() for indexes in one.owned.values() for index in indexes}
        assert held == set(range(PARTITIONS)), group.state_name()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_group_of_both_protocols_has_one_reader_for_each_partition(seed: int) -> None:
    walker = Walker(seed)
    for _ in range(STEPS):
        walker.step()
    walker.calm_down()
    walker.check_end()
