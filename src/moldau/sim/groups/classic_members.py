"""Simulated members of classic groups: they join, share partitions, commit, freeze, die and come back.

What they hold the coordinator to: nobody owns a partition that somebody else still owns, and no committed offset goes
back, whoever froze with a commit in hand. A member owns what it was assigned until it joins again, hears that it is
out, or has not been heard of for a session. Power loss may take a generation that was not synced, with its owners.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Message
from moldau.sim.groups.committer import NOTHING, TRANSIENT_ERRORS, OffsetModel, Place, text_of
from moldau.sim.kernel.world import Violation
from moldau.sim.node.audit import Auditor, NotReady
from moldau.sim.node.client import SimClient

if TYPE_CHECKING:
    from moldau.sim.groups.classic_world import ClassicGroupWorld

SESSION_MS = 1500
REBALANCE_MS = 4000
LONGEST_DELAY_MS = 400
OUT = (errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION)
EXPECTED = {
    *TRANSIENT_ERRORS,
    *OUT,
    errors.NONE,
    errors.REBALANCE_IN_PROGRESS,
    errors.MEMBER_ID_REQUIRED,
    errors.FENCED_INSTANCE_ID,
}


class SimClassicGroup:
    """The members of one group and what is known about its offsets."""

    def __init__(self, setting: ClassicGroupWorld, name: str) -> None:
        self.setting = setting
        self.group_id = f"group-{name}"
        rng = setting.world.derived_rng(f"classic group {name}")
        self.offsets: dict[Place, OffsetModel] = {}
        self.owners: dict[Place, SimClassicMember] = {}
        self.given: dict[tuple[int, int, Place], str] = {}
        self.members = [
            SimClassicMember(self, f"{name}-{number}", rng.random() < 0.4) for number in range(rng.randint(2, 4))
        ]

    def places(self) -> list[Place]:
        topics = [topic for topic in self.setting.model.present() if not topic.transient]
        return [(topic.name, index) for topic in topics for index in range(len(topic.partitions))]

    def model(self, place: Place) -> OffsetModel:
        if place not in self.offsets:
            self.offsets[place] = OffsetModel(f"{self.group_id} {place[0]}-{place[1]}")
        return self.offsets[place]

    def take(self, member: SimClassicMember, places: list[Place]) -> None:
        """The member was told that these are its own now."""
        if self._begins_anew(member):
            # A group that is empty and has no offsets is removed in the end; its name begins with generation 1 again.
            self.given.clear()
        for place in places:
            owner = self.owners.get(place)
            if owner is not None and owner is not member and owner.owns(place):
                raise Violation(
                    f"a partition has one owner: {place} of {self.group_id} went to {member.name} in generation"
                    f" {member.generation} while {owner.name} has it in generation {owner.generation}"
                )
            key = (self.setting.data_losses, member.generation, place)
            if self.given.setdefault(key, member.name) != member.name:
                raise Violation(f"a generation gives a partition once: {place} of {self.group_id} {member.generation}")
            self.owners[place] = member
        self.setting.assignments += 1

    def _begins_anew(self, member: SimClassicMember) -> bool:
        others = [other for other in self.members if other is not member]
        return member.generation == 1 and not any(other.owns(place) for other in others for place in other.owned)

    def fetch_request(self, places: list[Place]) -> OffsetFetchRequest:
        topics: dict[str, list[int]] = {}
        for topic, index in sorted(places):
            topics.setdefault(topic, []).append(index)
        rows = [OffsetFetchRequestTopics(name, partition_indexes=indexes) for name, indexes in topics.items()]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.group_id, topics=rows)])

    def told(self) -> dict[Place, int]:
        """What has been told of each offset by now."""
        return {place: model.told for place, model in self.offsets.items()}

    def check_fetched(self, response: Any, told_before: dict[Place, int] | None = None) -> None:
        """`told_before` is what was told when somebody asked: another member may commit while the response travels."""
        for topic in response.groups[0].topics:
            for row in topic.partitions:
                if row.error_code != errors.NONE:
                    raise Violation(f"an offset can be read: {self.group_id} got {errors.error_name(row.error_code)}")
                place = (topic.name, row.partition_index)
                told = None if told_before is None else told_before.get(place, NOTHING)
                self.model(place).check(row.committed_offset, row.metadata, told)
                self.setting.checked_offsets += 1

    def audit(self, auditor: Auditor, *, power_lost: bool) -> None:
        """Asks for all offsets after a restart."""
        if power_lost:
            for model in self.offsets.values():
                model.on_power_loss()
        if not self.offsets:
            return
        auditor.ask(FindCoordinatorRequest(coordinator_keys=[self.group_id]), 4)
        response: Any = auditor.ask(self.fetch_request(list(self.offsets)), 8)
        code = response.groups[0].error_code
        if code in TRANSIENT_ERRORS:
            raise NotReady(f"offsets of {self.group_id}: {errors.error_name(code)}")
        if code != errors.NONE:
            raise Violation(f"a fetch of offsets is answered: {self.group_id} got {errors.error_name(code)}")
        self.check_fetched(response)


class SimClassicMember:
    """One process with one connection; `life` tells answers to an earlier process apart."""

    def __init__(self, group: SimClassicGroup, name: str, is_static: bool) -> None:
        self.group = group
        self.setting = group.setting
        self.world = group.setting.world
        self.name = name
        self.instance = name if is_static else None
        self.rng = self.world.derived_rng(f"classic member {name}")
        self.client = SimClient(self.world, group.setting.host, name)
        self.life = 0
        self.frozen_until_ms = 0
        self.quiet_until_ms = 0
        self._forget()
        self.world.schedule(self.rng.randint(0, 300), self.tick)

    def _forget(self) -> None:
        self.life += 1
        self.member_id = ""
        self.asking = False
        self.told_before: dict[Place, int] = {}
        self.must_look = True
        self._lose_all()

    def _lose_all(self) -> None:
        """Out of the generation: what it had belongs to others."""
        self.generation = -1
        self.owned: set[Place] = set()
        self.is_synced = False
        self.must_fetch = False
        self.assignments: list[SyncGroupRequestAssignment] = []
        self.prepared: dict[Place, int] = {}
        self.session_end_ms = 0
        self.losses = -1

    def owns(self, place: Place) -> bool:
        is_in_session = self.world.now_ms < self.session_end_ms
        return place in self.owned and is_in_session and self.losses == self.setting.data_losses

    # What it does

    def tick(self) -> None:
        self.world.schedule(self.rng.randint(20, 150), self.tick)
        if self.setting.paused or self.world.now_ms < max(self.frozen_until_ms, self.quiet_until_ms):
            return
        chance = self.rng.random()
        if chance < 0.003:
            self._die()
        elif chance < 0.01:
            self.frozen_until_ms = self.world.now_ms + self.rng.choice((300, 1000, 3000))
        elif not self.asking:
            self._next(chance)

    def _die(self) -> None:
        """The process ends without a word; a static one has the same name when it is back."""
        self.client.disconnect("its process died")
        self._forget()
        self.frozen_until_ms = self.world.now_ms + self.rng.choice((100, 1000, 4000))

    def _next(self, chance: float) -> None:
        if self.must_look:
            self._ask(FindCoordinatorRequest(coordinator_keys=[self.group.group_id]), 4)
        elif self.generation < 0:
            self._join()
        elif not self.is_synced:
            self._sync()
        elif self.must_fetch:
            self._ask(self.group.fetch_request(sorted(self.owned)), 8)
        elif chance < 0.03:
            self._leave()
        elif self.prepared and chance < 0.6:
            self._commit()
        else:
            self._prepare()
            self._ask(HeartbeatRequest(self.group.group_id, self.generation, self.member_id, self.instance), 4)

    def _join(self) -> None:
        metadata = JoinGroupRequestProtocol("range", b"any")
        request = JoinGroupRequest(
            self.group.group_id, SESSION_MS, REBALANCE_MS, self.member_id, self.instance, "sim", [metadata]
        )
        self._ask(request, self.rng.choice((5, 7, 9)))

    def _sync(self) -> None:
        request = SyncGroupRequest(
            self.group.group_id, self.generation, self.member_id, self.instance, assignments=self.assignments
        )
        self._ask(request, 4)

    def _leave(self) -> None:
        row = MemberIdentity(self.member_id, self.instance)
        self._ask(LeaveGroupRequest(self.group.group_id, members=[row]), 4)
        self._lose_all()

    def _prepare(self) -> None:
        """Works on some records; it commits them later, and may freeze before that."""
        for place in sorted(self.owned):
            if self.rng.random() < 0.5:
                self.prepared[place] = self.group.model(place).next_offset()

    def _commit(self) -> None:
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, index), offset in sorted(self.prepared.items()):
            row = OffsetCommitRequestPartition(index, offset, -1, text_of(offset))
            topics.setdefault(topic, []).append(row)
        rows = [OffsetCommitRequestTopic(name, partitions=partitions) for name, partitions in topics.items()]
        request = OffsetCommitRequest(self.group.group_id, self.generation, self.member_id, self.instance, topics=rows)
        self._ask(request, 8)

    # What it hears

    def _ask(self, request: Message, version: int) -> None:
        self.asking = True
        self.told_before = self.group.told()
        life, sent_ms, losses = self.life, self.world.now_ms, self.setting.data_losses
        self.client.call(request, version, lambda response: self._hear(request, response, life, sent_ms, losses))

    def _hear(self, request: Message, response: Any, life: int, sent_ms: int, losses: int) -> None:
        """Responds to the dead are lost; the frozen read theirs when they wake up."""
        if life != self.life:
            return
        if self.world.now_ms < self.frozen_until_ms:
            wait_ms = self.frozen_until_ms - self.world.now_ms
            self.world.schedule(wait_ms, lambda: self._hear(request, response, life, sent_ms, losses))
            return
        self.asking = False
        if response is None or losses != self.setting.data_losses:
            self.must_look = True
            # What was sent may be on its way still: a commit that overtook it would go back when it arrives.
            self.quiet_until_ms = self.world.now_ms + LONGEST_DELAY_MS
            return
        if isinstance(request, FindCoordinatorRequest):
            self.must_look = response.coordinators[0].error_code != errors.NONE
        elif isinstance(request, OffsetCommitRequest):
            self._on_committed(request, response)
        elif isinstance(request, OffsetFetchRequest):
            self._on_fetched(response)
        elif isinstance(request, LeaveGroupRequest):
            self.member_id = ""
        elif self._is_fine(response.error_code, request):
            self._on_success(request, response, sent_ms)

    def _is_fine(self, code: int, request: Message) -> bool:
        if code not in EXPECTED:
            raise Violation(f"{type(request).__name__} is answered: {self.name} got {errors.error_name(code)}")
        if code in TRANSIENT_ERRORS:
            self.must_look = True
        elif code == errors.FENCED_INSTANCE_ID:
            # An earlier JoinGroup of its own, which it had given up, has arrived after all; clients end then.
            self._die()
        elif code in OUT:
            self._lose_all()
            if code == errors.UNKNOWN_MEMBER_ID:
                self.member_id = ""
        elif code == errors.REBALANCE_IN_PROGRESS and not isinstance(request, OffsetCommitRequest):
            self._lose_all()
        return code in (errors.NONE, errors.MEMBER_ID_REQUIRED)

    def _on_success(self, request: Message, response: Any, sent_ms: int) -> None:
        if isinstance(request, JoinGroupRequest):
            self._on_joined(response)
        elif isinstance(request, SyncGroupRequest):
            self._on_synced(response, sent_ms)
        else:
            self.session_end_ms = sent_ms + SESSION_MS

    def _on_joined(self, response: Any) -> None:
        self.member_id = response.member_id
        if response.error_code == errors.MEMBER_ID_REQUIRED:
            return
        self._lose_all()
        self.generation = response.generation_id
        ids = [row.member_id for row in response.members]
        shares: dict[str, list[Place]] = {one: [] for one in ids}
        if ids and not response.skip_assignment:
            for number, place in enumerate(self.group.places()):
                shares[ids[number % len(ids)]].append(place)
            self.assignments = [SyncGroupRequestAssignment(one, write_places(mine)) for one, mine in shares.items()]

    def _on_synced(self, response: Any, sent_ms: int) -> None:
        places = read_places(response.assignment)
        self.losses = self.setting.data_losses
        self.session_end_ms = sent_ms + SESSION_MS
        if self.world.now_ms < self.session_end_ms:
            self.group.take(self, places)
        # Otherwise it was frozen for so long that others have them by now; it does not know, and is refused.
        self.owned = set(places)
        self.is_synced = True
        self.must_fetch = bool(places)

    def _on_fetched(self, response: Any) -> None:
        code = response.groups[0].error_code
        if self._is_fine(code, response):
            self.group.check_fetched(response, self.told_before)
            self.must_fetch = False

    def _on_committed(self, request: OffsetCommitRequest, response: Any) -> None:
        sent = {
            (topic.name, row.partition_index): row.committed_offset
            for topic in request.topics
            for row in topic.partitions
        }
        self.prepared = {}
        for topic in response.topics:
            for row in topic.partitions:
                if self._is_fine(row.error_code, request):
                    place = (topic.name, row.partition_index)
                    self.group.model(place).on_told(sent[place])
                    self.setting.committed_offsets += 1


def write_places(places: list[Place]) -> bytes:
    return ",".join(f"{topic}:{index}" for topic, index in places).encode()


def read_places(data: bytes) -> list[Place]:
    found = []
    for part in data.decode().split(","):
        if part:
            topic, _, index = part.rpartition(":")
            found.append((topic, int(index)))
    return found
