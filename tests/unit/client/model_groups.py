"""A small model of a group coordinator, for both protocols: enough to make and break groups of simulated consumers.

It keeps to what clients rely on: generations and epochs, the barrier of a rebalance, sessions, fencing, and that a
partition of the newer protocol is assigned again only after its owner said that it gave it up.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.client.assignors import MemberSubscription, PartitionReplicas
from moldau.client.assignors.balance import Claim, spread
from moldau.client.results import TopicPartition
from moldau.protocol import errors as codes
from moldau.protocol.messages import consumer_group_heartbeat_response as heartbeat_answer
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from moldau.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.join_group_response import JoinGroupResponse, JoinGroupResponseMember
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from moldau.protocol.messages.sync_group_request import SyncGroupRequest
from moldau.protocol.messages.sync_group_response import SyncGroupResponse
from moldau.protocol.primitives import Message

Reply = Callable[[Message], None]


class ClassicMember:
    def __init__(self, now_ms: int) -> None:
        self.protocols: dict[str, bytes] = {}
        self.session_ms = 10_000
        self.seen_ms = now_ms
        self.joining: Reply | None = None
        self.syncing: Reply | None = None
        self.assignment = b""


class ClassicGroup:
    """empty or stable -> (someone joins or goes) preparing -> (all have joined) completing -> (leader synced) stable"""

    def __init__(self) -> None:
        self.state = "stable"
        self.generation = 0
        self.leader = ""
        self.members: dict[str, ClassicMember] = {}
        self._promised: set[str] = set()
        self._ids = 0

    def tick(self, now_ms: int) -> None:
        """Those who wait for an answer to JoinGroup are alive; the others have to be heard of."""
        for name, row in list(self.members.items()):
            if row.joining is None and now_ms - row.seen_ms > row.session_ms:
                del self.members[name]
                self.prepare()
        self._maybe_complete(now_ms)

    def prepare(self) -> None:
        self.state = "preparing"
        for row in self.members.values():
            if row.syncing is not None:
                row.syncing(SyncGroupResponse(error_code=codes.REBALANCE_IN_PROGRESS))
                row.syncing = None

    def join(self, request: JoinGroupRequest, reply: Reply, now_ms: int) -> None:
        name = request.member_id
        if not name:
            self._ids += 1
            name = f"member-{self._ids}"
            self._promised.add(name)
            reply(JoinGroupResponse(error_code=codes.MEMBER_ID_REQUIRED, member_id=name))
            return
        if name not in self.members and name not in self._promised:
            reply(JoinGroupResponse(error_code=codes.UNKNOWN_MEMBER_ID))
            return
        self._promised.discard(name)
        row = self.members.setdefault(name, ClassicMember(now_ms))
        row.protocols = {item.name: item.metadata for item in request.protocols}
        row.session_ms = request.session_timeout_ms
        row.joining = reply
        self.prepare()
        self._maybe_complete(now_ms)

    def _maybe_complete(self, now_ms: int) -> None:
        if self.state != "preparing" or any(row.joining is None for row in self.members.values()):
            return
        if not self.members:
            self.state = "stable"
            return
        self.generation += 1
        self.state = "completing"
        self.leader = self.leader if self.leader in self.members else min(self.members)
        protocol = next(iter(self.members[self.leader].protocols))
        for name, row in self.members.items():
            members = [
                JoinGroupResponseMember(member_id=other, metadata=item.protocols[protocol])
                for other, item in self.members.items()
            ]
            assert row.joining is not None
            reply, row.joining = row.joining, None
            row.seen_ms = now_ms
            reply(
                JoinGroupResponse(
                    generation_id=self.generation,
                    protocol_type="consumer",
                    protocol_name=protocol,
                    leader=self.leader,
                    member_id=name,
                    members=members if name == self.leader else [],
                )
            )

    def check(self, member_id: str, generation: int, now_ms: int) -> int:
        row = self.members.get(member_id)
        if row is None:
            return codes.UNKNOWN_MEMBER_ID
        if generation != self.generation:
            return codes.ILLEGAL_GENERATION
        row.seen_ms = now_ms
        return codes.NONE

    def sync(self, request: SyncGroupRequest, reply: Reply, now_ms: int) -> None:
        code = self.check(request.member_id, request.generation_id, now_ms)
        if code == codes.NONE and self.state == "preparing":
            code = codes.REBALANCE_IN_PROGRESS
        if code != codes.NONE:
            reply(SyncGroupResponse(error_code=code))
            return
        row = self.members[request.member_id]
        if self.state == "stable":
            reply(self._synced(row))
            return
        row.syncing = reply
        if request.member_id == self.leader:
            for item in request.assignments:
                self.members[item.member_id].assignment = item.assignment
            self.state = "stable"
            for other in self.members.values():
                if other.syncing is not None:
                    other.syncing(self._synced(other))
                    other.syncing = None

    def _synced(self, row: ClassicMember) -> SyncGroupResponse:
        return SyncGroupResponse(assignment=row.assignment)

    def heartbeat(self, request: HeartbeatRequest, reply: Reply, now_ms: int) -> None:
        code = self.check(request.member_id, request.generation_id, now_ms)
        if code == codes.NONE and self.state == "preparing":
            code = codes.REBALANCE_IN_PROGRESS
        reply(HeartbeatResponse(error_code=code))

    def leave(self, request: LeaveGroupRequest, reply: Reply, now_ms: int) -> None:
        rows = []
        for item in request.members:
            known = self.members.pop(item.member_id, None) is not None
            rows.append(MemberResponse(member_id=item.member_id, error_code=0 if known else codes.UNKNOWN_MEMBER_ID))
            if known:
                self.prepare()
        self._maybe_complete(now_ms)
        reply(LeaveGroupResponse(members=rows))

    def commit_code(self, member_id: str, generation: int, now_ms: int) -> int:
        code = self.check(member_id, generation, now_ms)
        return codes.REBALANCE_IN_PROGRESS if code == codes.NONE and self.state == "completing" else code

    def is_current(self, member_id: str, generation: int) -> bool:
        return member_id in self.members and generation == self.generation


class ConsumerMember:
    def __init__(self, now_ms: int) -> None:
        self.epoch = 0
        self.seen_ms = now_ms
        self.assigned: set[int] = set()
        self.revoking: set[int] = set()
        self.owned: set[int] = set()


class ConsumerGroupModel:
    """One topic, and everyone wants it."""

    def __init__(self, topic_id: bytes, partitions: int, session_ms: int = 10_000, interval_ms: int = 500) -> None:
        self._topic_id = topic_id
        self._count = partitions
        self._session_ms = session_ms
        self._interval_ms = interval_ms
        self.epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.target: dict[str, set[int]] = {}

    def tick(self, now_ms: int) -> None:
        for name, row in list(self.members.items()):
            if now_ms - row.seen_ms > self._session_ms:
                self._remove(name)

    def _remove(self, name: str) -> None:
        if self.members.pop(name, None) is not None:
            self._assign_anew()

    def _assign_anew(self) -> None:
        self.epoch += 1
        metadata = {"t": [PartitionReplicas(TopicPartition("t", n), frozenset()) for n in range(self._count)]}
        claims = {
            name: Claim([TopicPartition("t", n) for n in items], 0)
            for name, items in self.target.items()
            if name in self.members
        }
        found = spread(metadata, {name: MemberSubscription(["t"]) for name in self.members}, claims)
        self.target = {name: {item.partition for item in items} for name, items in found.items()}

    def heartbeat(self, request: ConsumerGroupHeartbeatRequest, reply: Reply, now_ms: int) -> None:
        name = request.member_id
        if request.member_epoch < 0:
            self._remove(name)
            reply(ConsumerGroupHeartbeatResponse(member_id=name, member_epoch=request.member_epoch))
            return
        row = self.members.get(name)
        if request.member_epoch == 0:
            if row is None:
                row = self.members[name] = ConsumerMember(now_ms)
                self._assign_anew()
            row.epoch, row.assigned, row.revoking, row.owned = 0, set(), set(), set()
        elif row is None or request.member_epoch != row.epoch:
            code = codes.UNKNOWN_MEMBER_ID if row is None else codes.FENCED_MEMBER_EPOCH
            reply(ConsumerGroupHeartbeatResponse(error_code=code))
            return
        row.seen_ms = now_ms
        if request.topic_partitions is not None:
            row.owned = {number for item in request.topic_partitions for number in item.partitions}
        changed = self._reconcile(name, row)
        everything = request.subscribed_topic_names is not None
        assignment = heartbeat_answer.Assignment(
            topic_partitions=[
                heartbeat_answer.TopicPartitions(topic_id=self._topic_id, partitions=sorted(row.assigned))
            ]
        )
        reply(
            ConsumerGroupHeartbeatResponse(
                member_id=name,
                member_epoch=row.epoch,
                heartbeat_interval_ms=self._interval_ms,
                assignment=assignment if changed or everything else None,
            )
        )

    def _reconcile(self, name: str, row: ConsumerMember) -> bool:
        if row.revoking:
            if row.revoking & row.owned:
                return False
            row.revoking = set()
        going = row.assigned - self.target[name]
        if going:
            row.assigned -= going
            row.revoking = going
            row.epoch = row.epoch or self.epoch
            return True
        row.epoch = self.epoch
        taken = {n for other, item in self.members.items() if other != name for n in item.assigned | item.revoking}
        coming = self.target[name] - row.assigned - taken
        row.assigned |= coming
        return bool(coming)

    def commit_code(self, member_id: str, epoch: int, now_ms: int) -> int:
        row = self.members.get(member_id)
        if row is None:
            return codes.UNKNOWN_MEMBER_ID
        return codes.NONE if epoch == row.epoch else codes.STALE_MEMBER_EPOCH

    def is_current(self, member_id: str, epoch: int) -> bool:
        row = self.members.get(member_id)
        return row is not None and row.epoch == epoch
