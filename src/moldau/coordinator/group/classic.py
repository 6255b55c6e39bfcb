"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat, LeaveGroup, and the records of its groups.

Members gather in memory; what is written is the result: the members with their assignments when the leader has sent
them (and that a group is new, or empty again). After a failover the members of the last written generation are there,
stable, and whoever was in the middle of something joins again.
"""

from __future__ import annotations

import logging
from functools import partial

from moldau.coordinator.group.classic_group import (
    COMPLETING_REBALANCE,
    DEAD,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from moldau.coordinator.group.classic_join import REASON_LENGTH_MAX, ClassicJoin, Joining
from moldau.coordinator.group.classic_member import SyncCallback
from moldau.coordinator.group.classic_rebalance import ClassicRebalance
from moldau.coordinator.group.classic_records import group_id_of, group_record, load_group
from moldau.coordinator.group.classic_responses import join_error, sync_error, synced, write_error
from moldau.coordinator.group.group import CLASSIC, CONSUMER, SHARE, Group
from moldau.coordinator.group.part import GroupPart
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.heartbeat_response import HeartbeatResponse
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.leave_group_response import LeaveGroupResponse, MemberResponse
from moldau.protocol.messages.sync_group_request import SyncGroupRequest

logger = logging.getLogger("moldau.coordinator")


class ClassicMembersOfOtherGroups:
    """Classic members of groups of another kind (KIP-848 lets them into consumer groups). By default there are none."""

    def join(self, group: Group, joining: Joining, now_ms: int) -> Outcome:
        raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)

    def sync(self, group: Group, request: SyncGroupRequest, respond: SyncCallback, now_ms: int) -> Outcome:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID)

    def heartbeat(self, group: Group, request: HeartbeatRequest, now_ms: int) -> Outcome:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID)

    def leave(self, group: Group, request: LeaveGroupRequest, now_ms: int) -> Outcome:
        raise KafkaError(errors.UNKNOWN_MEMBER_ID)


class ClassicProtocol(GroupPart):
    """See the module. Verbs raise KafkaError, having changed nothing, or return what is to be written and answered."""

    def __init__(self, state: GroupShardState) -> None:
        self.state = state
        self.elsewhere = ClassicMembersOfOtherGroups()
        self.rebalance = ClassicRebalance(state)
        self._join = ClassicJoin(state, self.rebalance)

    # Verbs

    def join(self, joining: Joining, now_ms: int) -> Outcome:
        """The member's response comes with the outcome, or later through `joining`, when its generation begins."""
        request = joining.request
        settings = self.state.settings
        if not settings.classic_session_min_ms <= request.session_timeout_ms <= settings.classic_session_max_ms:
            return Outcome(response=join_error(errors.INVALID_SESSION_TIMEOUT, request.member_id))
        group = self.state.groups.get(request.group_id)
        if group is not None and not isinstance(group, ClassicGroup):
            # An empty consumer or streams group becomes a classic one; a share group stays what it is, also when it is
            # empty.
            if group.kind == CONSUMER and not group.is_empty():
                return self.elsewhere.join(group, joining, now_ms)
            if group.kind == SHARE or not group.is_empty():
                return Outcome(response=join_error(errors.INCONSISTENT_GROUP_PROTOCOL, ""))
        return self._join.join(joining, now_ms)

    def sync(self, request: SyncGroupRequest, respond: SyncCallback, now_ms: int) -> Outcome:
        """Followers wait here for the assignment that the leader brings."""
        group = self._find(request.group_id)
        if not isinstance(group, ClassicGroup):
            return self.elsewhere.sync(group, request, respond, now_ms)
        if group.state == DEAD:
            raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(errors.ILLEGAL_GENERATION)
        if _differs(request.protocol_type, group.member_protocol_type) or _differs(
            request.protocol_name, group.protocol_name
        ):
            raise KafkaError(errors.INCONSISTENT_GROUP_PROTOCOL)
        if group.state == PREPARING_REBALANCE:
            raise KafkaError(errors.REBALANCE_IN_PROGRESS)
        self.rebalance.on_sync_received(group, member)
        if group.state == STABLE:
            member.session_due_ms = now_ms + member.session_timeout_ms
            return Outcome(response=synced(group, member))
        superseded, member.awaiting_sync = member.awaiting_sync, respond
        if superseded is not None:
            superseded(sync_error(errors.REBALANCE_IN_PROGRESS))
        if member.member_id != group.leader:
            return Outcome()
        return self._write_assignments(group, request)

    def _write_assignments(self, group: ClassicGroup, request: SyncGroupRequest) -> Outcome:
        """Members that the leader left out get nothing; what it gave to others is dropped."""
        brought = {row.member_id: row.assignment for row in request.assignments}
        assignments = {member_id: brought.get(member_id, b"") for member_id in group.members}
        on_written = partial(self._on_assignments_written, group, group.generation, assignments)
        return Outcome([group_record(group, assignments)], replay=False, on_written=on_written)

    def _on_assignments_written(
        self,
        group: ClassicGroup,
        generation: int,
        assignments: dict[str, bytes],
        error: KafkaError | None,
        now_ms: int,
    ) -> None:
        if group.state != COMPLETING_REBALANCE or group.generation != generation:
            # Someone joined or left in the meantime, and everybody was told.
            return
        if error is None:
            self.rebalance.assign(group, assignments, now_ms)
        else:
            self.rebalance.assignment_failed(group, write_error(error.code), now_ms)

    def heartbeat(self, request: HeartbeatRequest, now_ms: int) -> Outcome:
        group = self._find(request.group_id)
        if not isinstance(group, ClassicGroup):
            return self.elsewhere.heartbeat(group, request, now_ms)
        if group.state == DEAD:
            raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
        member = group.check_member(request.member_id, request.group_instance_id)
        if request.generation_id != group.generation:
            raise KafkaError(errors.ILLEGAL_GENERATION)
        member.session_due_ms = now_ms + member.session_timeout_ms
        if group.state == PREPARING_REBALANCE:
            return Outcome(response=HeartbeatResponse(error_code=errors.REBALANCE_IN_PROGRESS))
        return Outcome(response=HeartbeatResponse())

    def leave(self, request: LeaveGroupRequest, now_ms: int) -> Outcome:
        """Any number of members, each with an error of its own; one rebalance for all who left."""
        group = self._find(request.group_id)
        if not isinstance(group, ClassicGroup):
            return self.elsewhere.leave(group, request, now_ms)
        if group.state == DEAD:
            raise KafkaError(errors.COORDINATOR_NOT_AVAILABLE)
        rows = [self._leave_one(group, identity) for identity in request.members]
        left = sum(1 for row in rows if row.error_code == errors.NONE)
        outcome = None
        if left:
            outcome = self.rebalance.after_removal(group, f"{left} members leave", now_ms)
        if outcome is None:
            outcome = Outcome()
        outcome.response = LeaveGroupResponse(members=rows)
        return outcome

    def _leave_one(self, group: ClassicGroup, identity: MemberIdentity) -> MemberResponse:
        row = MemberResponse(identity.member_id, identity.group_instance_id)
        member_id = identity.member_id
        try:
            if member_id == "":
                # An administrator removes a static member, whoever it is now.
                instance_id = identity.group_instance_id
                known = None if instance_id is None else group.static_members.get(instance_id)
                if known is None:
                    raise KafkaError(errors.UNKNOWN_MEMBER_ID)
                self.rebalance.remove_member(group, group.members[known])
            elif member_id in group.pending_members:
                group.remove(member_id)
                self.rebalance.end_session(group, member_id)
            else:
                self.rebalance.remove_member(group, group.check_member(member_id, identity.group_instance_id))
        except KafkaError as error:
            row.error_code = error.code
            return row
        reason = (identity.reason or "not provided")[:REASON_LENGTH_MAX]
        name = member_id or identity.group_instance_id
        logger.info("member %s leaves group %s; client reason: %r", name, group.group_id, reason)
        return row

    def _find(self, group_id: str) -> Group:
        """The group, if it has members or could have; all others do not know whoever asks."""
        group = self.state.groups.get(group_id)
        if group is None or group.kind not in (CLASSIC, CONSUMER):
            raise KafkaError(errors.UNKNOWN_MEMBER_ID)
        return group

    # Records

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        group_id = group_id_of(key)
        before = self.state.groups.get(group_id)
        if isinstance(before, ClassicGroup):
            self.rebalance.dissolve(before, errors.UNKNOWN_MEMBER_ID)
        if value is not None:
            self.state.groups[group_id] = load_group(group_id, value)
        elif isinstance(before, ClassicGroup):
            del self.state.groups[group_id]

    # Begin and end of the shard

    def on_loaded(self, now_ms: int) -> Outcome | None:
        """Members have the time of a session from now on to be heard of."""
        size_max = self.state.settings.classic_size_max
        for group in list(self.state.groups.values()):
            if not isinstance(group, ClassicGroup):
                continue
            for member in group.members.values():
                self.rebalance.start_session(group, member, member.session_timeout_ms, now_ms)
            if len(group.members) > size_max:
                self.rebalance.prepare(group, f"{len(group.members)} members, {size_max} are allowed now", now_ms)
        return None

    def on_unloaded(self, now_ms: int) -> None:
        for group in self.state.groups.values():
            if isinstance(group, ClassicGroup):
                group.transition_to(DEAD, self.state.wall.at(now_ms))
                self.rebalance.dissolve(group, errors.NOT_COORDINATOR)


def _differs(asked: str | None, known: str | None) -> bool:
    """KIP-559: clients say what they think was agreed; older ones say nothing."""
    return asked is not None and known is not None and asked != known
