"""Simulated members of consumer groups (KIP-848): they join, are told what to read, commit, freeze, die and come back.

What they hold the coordinator to is what classic members do (`classic_members`): nobody owns a partition that somebody
else still owns, and no committed offset goes back. A member owns what it was told to have until it is told otherwise,
hears that it is out, or has not been heard of for a session.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.protocol import errors
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest, TopicPartitions
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.primitives import Message
from moldau.sim.groups.classic_members import SESSION_MS, SimClassicGroup, SimClassicMember
from moldau.sim.groups.committer import TRANSIENT_ERRORS, OffsetModel, Place, text_of
from moldau.sim.kernel.world import Violation

if TYPE_CHECKING:
    from moldau.sim.groups.consumer_world import ConsumerGroupWorld

# Longer than anybody is frozen: whoever sleeps through it does not know that it must not read any more.
REBALANCE_MS = 60_000
LEFT, LEFT_FOR_A_WHILE = -1, -2
OUT = (
    errors.UNKNOWN_MEMBER_ID,
    errors.FENCED_MEMBER_EPOCH,
    errors.FENCED_INSTANCE_ID,
    errors.GROUP_ID_NOT_FOUND,
    errors.STALE_MEMBER_EPOCH,
)
EXPECTED = {*TRANSIENT_ERRORS, *OUT, errors.NONE, errors.UNRELEASED_INSTANCE_ID}


class SimConsumerGroup(SimClassicGroup):
    """The members of one group; some of them are static, some name topics by a regular expression."""

    def __init__(self, setting: ConsumerGroupWorld, name: str) -> None:
        self.setting = setting
        self.group_id = f"group-{name}"
        rng = setting.world.derived_rng(f"consumer group {name}")
        self.offsets: dict[Place, OffsetModel] = {}
        self.owners: dict[Place, SimClassicMember] = {}
        self.given: dict[tuple[int, int, Place], str] = {}
        uses_regex = rng.random() < 0.3
        self.members = [
            SimConsumerMember(self, f"{name}-{number}", rng.random() < 0.4, uses_regex)
            for number in range(rng.randint(2, 4))
        ]

    def topic_names(self) -> list[str]:
        return sorted({topic for topic, _ in self.places()})


class SimConsumerMember(SimClassicMember):
    """One process with one connection; its generation is its epoch."""

    def __init__(self, group: SimConsumerGroup, name: str, is_static: bool, uses_regex: bool) -> None:
        self.uses_regex = uses_regex
        self.consumer_group = group
        super().__init__(group, name, is_static)

    def _forget(self) -> None:
        super()._forget()
        self.member_id = f"{self.name}-{self.life}"

    def _lose_all(self) -> None:
        super()._lose_all()
        self.must_tell_everything = True
        self.must_acknowledge = False
        self.topics: list[str] = []

    # What it does

    def _next(self, chance: float) -> None:
        if self.must_look:
            self._ask(FindCoordinatorRequest(coordinator_keys=[self.group.group_id]), 4)
        elif self.generation <= 0:
            self._join()
        elif self.must_fetch:
            self._ask(self.group.fetch_request(sorted(self.owned)), 8)
        elif chance < 0.03:
            self._leave()
        elif self.prepared and chance < 0.5:
            self._commit()
        else:
            self._prepare()
            self._beat(chance)

    def _subscription(self) -> dict[str, Any]:
        names = [] if self.uses_regex else self.topics
        return {
            "rebalance_timeout_ms": REBALANCE_MS,
            "subscribed_topic_names": names,
            "subscribed_topic_regex": "[a-z]+-?[0-9]*" if self.uses_regex else None,
        }

    def _join(self) -> None:
        self.topics = self.consumer_group.topic_names()
        self._send(0, topic_partitions=[], **self._subscription())

    def _beat(self, chance: float) -> None:
        fields: dict[str, Any] = {}
        if self.must_tell_everything:
            fields = self._subscription()
        elif chance > 0.97 and not self.uses_regex:
            self.topics = self.consumer_group.topic_names()
            fields["subscribed_topic_names"] = self.topics
        if self.must_tell_everything or self.must_acknowledge or chance > 0.9:
            fields["topic_partitions"] = self._owned_rows()
        self._send(self.generation, **fields)

    def _leave(self) -> None:
        epoch = LEFT_FOR_A_WHILE if self.instance is not None and self.rng.random() < 0.7 else LEFT
        self._send(epoch)
        self._lose_all()

    def _send(self, epoch: int, **fields: Any) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=self.group.group_id,
            member_id=self.member_id,
            member_epoch=epoch,
            instance_id=self.instance,
            **fields,
        )
        # Until the response is there, it is one that may have got lost.
        self.must_tell_everything = True
        self._ask(request, 1)

    def _owned_rows(self) -> list[TopicPartitions]:
        rows: dict[str, list[int]] = {}
        for name, index in sorted(self.owned):
            rows.setdefault(name, []).append(index)
        ids = {topic.name: topic.topic_id for topic in self.setting.model.topics}
        return [TopicPartitions(ids[name], indexes) for name, indexes in rows.items()]

    def _commit(self) -> None:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in sorted(self.prepared.items()):
            topics.setdefault(topic, []).append(OffsetCommitRequestPartition(index, offset, -1, text_of(offset)))
        rows = [OffsetCommitRequestTopic(name, partitions=partitions) for name, partitions in topics.items()]
        request = OffsetCommitRequest(self.group.group_id, self.generation, self.member_id, self.instance, topics=rows)
        self._ask(request, 9)

    # What it hears

    def _is_fine(self, code: int, request: Message) -> bool:
        if code not in EXPECTED:
            raise Violation(f"{type(request).__name__} is answered: {self.name} got {errors.error_name(code)}")
        if code in TRANSIENT_ERRORS:
            self.must_look = True
        elif code == errors.STALE_MEMBER_EPOCH:
            # It was behind: the next heartbeat tells it where it is.
            self.prepared = {}
        elif code in OUT:
            self._lose_all()
        return code == errors.NONE

    def _on_success(self, request: Message, response: Any, sent_ms: int) -> None:
        assert isinstance(request, ConsumerGroupHeartbeatRequest)
        if request.member_epoch < 0:
            # A new life under a new name, or the old one back.
            self._forget_name()
            return
        self.generation = response.member_epoch
        self.losses = self.setting.data_losses
        self.session_end_ms = sent_ms + SESSION_MS
        self.must_tell_everything = False
        self.must_acknowledge = False
        if response.assignment is not None:
            self._on_assigned(response.assignment)

    def _forget_name(self) -> None:
        self.life += 1
        self.member_id = f"{self.name}-{self.life}"
        self._lose_all()

    def _on_assigned(self, assignment: Any) -> None:
        names = {topic.topic_id: topic.name for topic in self.setting.model.topics}
        places = [
            (names[row.topic_id], index)
            for row in assignment.topic_partitions
            if row.topic_id in names
            for index in row.partitions
        ]
        if self.world.now_ms < self.session_end_ms:
            self.group.take(self, [place for place in places if place not in self.owned])
        # Otherwise it was frozen for so long that others have them by now; it does not know, and is refused.
        new = set(places) - self.owned
        self.owned = set(places)
        self.prepared = {place: offset for place, offset in self.prepared.items() if place in self.owned}
        self.must_acknowledge = True
        self.must_fetch = bool(new)
