"""Members of share groups against one shard of the coordinator; share coordinators answer when they are told to."""

from __future__ import annotations

from typing import Any

from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.share import ShareStateListener
from moldau.coordinator.group.share_group import ShareGroup
from moldau.coordinator.group.share_member import TopicPartitions
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.protocol.messages.share_group_describe_response import ShareGroupDescribeResponse
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.unit.coordinator.consumer_world import ConsumerWorld

GROUP = "g"

Asked = tuple[str, TopicPartitions, int]
"""Group, partitions, state epoch."""


class Coordinators(ShareStateListener):
    """Remembers what it was asked for; nothing is answered by itself."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.offsets: dict[tuple[bytes, int], int] = {}

    def initialize(
        self,
        group_id: str,
        topics: TopicPartitions,
        offsets: dict[tuple[bytes, int], int],
        state_epoch: int,
        now_ms: int,
    ) -> None:
        self.offsets = offsets
        self.asked.append((group_id, topics, state_epoch))


class Member:
    """What a member remembers: its epoch, and the partitions it was told last, by topic."""

    def __init__(self, world: ShareWorld, member_id: str) -> None:
        self.world = world
        self.member_id = member_id
        self.epoch = 0
        self.owned: dict[str, list[int]] = {}

    def join(self, *topics: str, **fields: Any) -> Any:
        self.epoch = 0
        return self.beat(subscribed_topic_names=list(topics), **fields)

    def beat(self, **fields: Any) -> Any:
        values = {"group_id": GROUP, "member_id": self.member_id, "member_epoch": self.epoch, **fields}
        answer = self.world.heartbeat(ShareGroupHeartbeatRequest(**values))
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            rows = answer.assignment.topic_partitions
            self.owned = {self.world.name_of(row.topic_id): row.partitions for row in rows}
        return answer

    def leave(self) -> Any:
        return self.world.heartbeat(ShareGroupHeartbeatRequest(GROUP, self.member_id, -1))


class ShareWorld(ConsumerWorld):
    def __init__(self, **settings: str) -> None:
        self.coordinators = Coordinators()
        super().__init__(**settings)

    def _make(self, index: int, timers: Timers) -> GroupMachine:
        machine = GroupMachine(index, timers, self.settings, self.dice, self.wall)
        machine.share.listener = self.coordinators
        return machine

    def heartbeat(self, request: Any, version: int = 1, client: str = "client") -> Any:
        return self.run(lambda machine: machine.share.heartbeat(request, client, "/127.0.0.1", self.now_ms))

    def member(self, member_id: str) -> Member:
        return Member(self, member_id)

    @property
    def share_group(self) -> ShareGroup:
        group = self.machine.state.groups[GROUP]
        assert isinstance(group, ShareGroup)
        return group

    def initialize(self, failed: bool = False) -> None:
        """The share coordinators answer all that they were asked."""
        asked, self.coordinators.asked = self.coordinators.asked, []
        for group_id, topics, _ in asked:
            done: TopicPartitions = {} if failed else topics
            bad: TopicPartitions = topics if failed else {}
            self.run_quietly(group_id, done, bad)

    def run_quietly(self, group_id: str, done: TopicPartitions, failed: TopicPartitions) -> None:
        self.runtime.run(
            0, lambda machine: machine.share.on_initialized(group_id, done, failed), lambda result: None, self.now_ms
        )

    def settle(self, *members: Member) -> None:
        """Everybody beats until nothing changes any more."""
        quiet = 0
        for _ in range(20):
            before = [(member.epoch, member.owned) for member in members]
            self.initialize()
            for member in members:
                member.beat()
            self.sleep(1000)
            changed = before != [(member.epoch, member.owned) for member in members] or self.coordinators.asked
            quiet = 0 if changed else quiet + 1
            if quiet == 2:
                return
        raise AssertionError("it does not come to rest")

    def described(self, group_id: str = GROUP) -> Any:
        answer = self.run(
            lambda machine: Outcome(response=ShareGroupDescribeResponse(groups=machine.share.describe([group_id])))
        )
        return answer.groups[0]


def state_of(machine: GroupMachine) -> dict[str, Any]:
    """Everything that records say about share groups, for comparing."""
    found: dict[str, Any] = {}
    for group_id, group in machine.state.groups.items():
        assert isinstance(group, ShareGroup)
        states = group.partitions
        found[group_id] = {
            "epochs": (group.group_epoch, group.assignment_epoch, group.metadata_hash, group.assignment_timestamp_ms),
            "members": {member_id: vars(member) for member_id, member in group.members.items()},
            "targets": group.targets,
            "partitions": (states.initializing, states.initialized, states.deleting),
        }
    return found
