"""JoinGroup of classic groups: who is let in, under which member id, and whether that means a rebalance.

KIP-394: a dynamic member first gets an id and joins with it. KIP-345: a static member that comes back under its
instance id takes the place of its old self; in a stable group it keeps the assignment, and the old self is fenced.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from moldau.coordinator.group.classic_group import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from moldau.coordinator.group.classic_member import ClassicMember, JoinCallback, Protocols
from moldau.coordinator.group.classic_rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, ClassicRebalance
from moldau.coordinator.group.classic_records import current_assignments, group_record, new_group_record
from moldau.coordinator.group.classic_responses import join_error, joined, sync_error, write_error
from moldau.coordinator.group.group import Group
from moldau.coordinator.group.member_ids import new_member_id
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome, StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.join_group_request import JoinGroupRequest
from moldau.protocol.messages.join_group_response import JoinGroupResponse

logger = logging.getLogger("moldau.coordinator")

FIRST_VERSION_WITH_KNOWN_MEMBER_ID: Final = 4
FIRST_VERSION_WITH_SKIP_ASSIGNMENT: Final = 9
REASON_LENGTH_MAX: Final = 255


class Joining:
    """A JoinGroup on its way: the request, who sent it, and how to respond when the others have joined too."""

    def __init__(
        self, request: JoinGroupRequest, version: int, client_id: str, client_host: str, respond: JoinCallback
    ) -> None:
        self.request = request
        self.version = version
        self.client_id = client_id
        self.client_host = client_host
        self.respond = respond
        self.protocols = _protocols(request)
        self.rebalance_timeout_ms = request.session_timeout_ms if version == 0 else request.rebalance_timeout_ms

    @property
    def needs_known_id(self) -> bool:
        return self.version >= FIRST_VERSION_WITH_KNOWN_MEMBER_ID

    @property
    def knows_skip_assignment(self) -> bool:
        return self.version >= FIRST_VERSION_WITH_SKIP_ASSIGNMENT

    def reason(self, what: str) -> str:
        """For the log, with what the client said (KIP-800)."""
        return f"{what}; client reason: {(self.request.reason or 'not provided')[:REASON_LENGTH_MAX]!r}"


def _protocols(request: JoinGroupRequest) -> Protocols:
    """In the member's order; a name that comes twice counts once."""
    found: dict[str, bytes] = {}
    for protocol in request.protocols:
        found.setdefault(protocol.name, protocol.metadata)
    return list(found.items())


def _respond_with(response: JoinGroupResponse) -> Outcome:
    return Outcome(response=response)


class ClassicJoin:
    """See the module. An outcome without a response is one of a member that waits."""

    def __init__(self, state: GroupShardState, rebalance: ClassicRebalance) -> None:
        self.state = state
        self.rebalance = rebalance

    def join(self, joining: Joining, now_ms: int) -> Outcome:
        """Joins a classic group, or makes one where there is none, or an empty one of another kind."""
        request = joining.request
        known = self.state.groups.get(request.group_id)
        if not isinstance(known, ClassicGroup):
            return self._join_first(joining, known, now_ms)
        if not self._has_room_for(known, request.member_id):
            return self._turn_away(known, request.member_id, now_ms)
        return self._join(known, joining, now_ms)

    def _join_first(self, joining: Joining, before: Group | None, now_ms: int) -> Outcome:
        """The group becomes known to the log with its first member, so that it is described and cleaned up."""
        request = joining.request
        if request.member_id:
            return _respond_with(join_error(errors.UNKNOWN_MEMBER_ID, request.member_id))
        group = ClassicGroup(request.group_id, self.state.wall.at(now_ms))
        if not group.supports(request.protocol_type, joining.protocols):
            return _respond_with(join_error(errors.INCONSISTENT_GROUP_PROTOCOL, ""))
        records: list[StoredRecord] = [] if before is None else before.tombstones()
        records.append(new_group_record(group))
        self.state.groups[request.group_id] = group
        outcome = self._join(group, joining, now_ms)
        outcome.records = records
        outcome.replay = False
        outcome.on_written = partial(self._on_group_written, group, before)
        return outcome

    def _on_group_written(
        self, group: ClassicGroup, before: Group | None, error: KafkaError | None, now_ms: int
    ) -> None:
        if error is None or self.state.groups.get(group.group_id) is not group:
            return
        logger.warning("cannot write the new group %s: %s", group.group_id, error)
        if before is None:
            del self.state.groups[group.group_id]
        else:
            self.state.groups[group.group_id] = before
        self.rebalance.dissolve(group, write_error(error.code))

    def _join(self, group: ClassicGroup, joining: Joining, now_ms: int) -> Outcome:
        request = joining.request
        member_id = request.member_id
        if group.state == DEAD:
            return _respond_with(join_error(errors.COORDINATOR_NOT_AVAILABLE, member_id))
        if not group.supports(request.protocol_type, joining.protocols):
            return _respond_with(join_error(errors.INCONSISTENT_GROUP_PROTOCOL, member_id))
        if member_id == "":
            return self._join_new(group, joining, now_ms)
        if member_id in group.pending_members and request.group_instance_id is None:
            return self._add(group, joining, member_id, now_ms)
        try:
            member = group.check_member(member_id, request.group_instance_id)
        except KafkaError as error:
            return _respond_with(join_error(error.code, member_id))
        return self._join_again(group, joining, member, now_ms)

    def _has_room_for(self, group: ClassicGroup, member_id: str) -> bool:
        """Before a generation those count who wait for it: the last of too many do not get in."""
        size_max = self.state.settings.classic_size_max
        member = group.members.get(member_id)
        if group.state == PREPARING_REBALANCE:
            if member is not None and member.awaiting_join is not None:
                return True
            return group.awaiting_join_count < size_max
        if group.state in (COMPLETING_REBALANCE, STABLE):
            return member is not None or len(group.members) < size_max
        return True

    def _turn_away(self, group: ClassicGroup, member_id: str, now_ms: int) -> Outcome:
        """What it was before, a pending member or one of the last generation, it is not any more."""
        group.remove(member_id)
        self.rebalance.end_session(group, member_id)
        outcome = self.rebalance.maybe_complete_join(group, now_ms) or Outcome()
        outcome.response = join_error(errors.GROUP_MAX_SIZE_REACHED, "")
        return outcome

    # New members

    def _join_new(self, group: ClassicGroup, joining: Joining, now_ms: int) -> Outcome:
        request = joining.request
        instance_id = request.group_instance_id
        if instance_id is not None:
            member_id = new_member_id(instance_id, self.state.rng)
            known = group.static_members.get(instance_id)
            if known is not None:
                return self._replace(group, joining, group.members[known], member_id, now_ms)
            return self._add(group, joining, member_id, now_ms)
        member_id = new_member_id(joining.client_id, self.state.rng)
        if joining.needs_known_id:
            self.rebalance.start_pending(group, member_id, request.session_timeout_ms, now_ms)
            return _respond_with(join_error(errors.MEMBER_ID_REQUIRED, member_id))
        return self._add(group, joining, member_id, now_ms)

    def _add(self, group: ClassicGroup, joining: Joining, member_id: str, now_ms: int) -> Outcome:
        request = joining.request
        member = ClassicMember(
            member_id,
            request.group_instance_id,
            client_id=joining.client_id,
            client_host=joining.client_host,
            rebalance_timeout_ms=joining.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=joining.protocols,
        )
        member.is_new = True
        if group.state == PREPARING_REBALANCE and group.previous_state == EMPTY:
            group.new_member_added = True
        if not group.members:
            group.member_protocol_type = request.protocol_type
        group.add(member, joining.respond)
        self.rebalance.start_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS, now_ms)
        reason = joining.reason(f"member {member_id} joins")
        return self.rebalance.prepare_or_complete(group, reason, now_ms) or Outcome()

    # Members that are known

    def _join_again(self, group: ClassicGroup, joining: Joining, member: ClassicMember, now_ms: int) -> Outcome:
        member.session_due_ms = now_ms + member.session_timeout_ms
        unchanged = member.protocols == joining.protocols
        is_leader = group.leader == member.member_id
        if group.state == COMPLETING_REBALANCE and unchanged:
            # It may not have got the response: the generation is the one it joined.
            members = group.join_members() if is_leader else None
            return _respond_with(joined(group, member, group.leader, members))
        if group.state == STABLE and unchanged and not is_leader:
            return _respond_with(joined(group, member, group.leader))
        if group.state == EMPTY:
            return _respond_with(join_error(errors.UNKNOWN_MEMBER_ID, member.member_id))
        # The leader joins on purpose: it saw something that its members did not, such as new partitions.
        self._update(group, joining, member)
        reason = joining.reason(f"member {member.member_id} joins again")
        return self.rebalance.prepare_or_complete(group, reason, now_ms) or Outcome()

    def _update(self, group: ClassicGroup, joining: Joining, member: ClassicMember) -> None:
        group.update(member, joining.protocols, joining.rebalance_timeout_ms, joining.request.session_timeout_ms)
        superseded = member.awaiting_join
        group.set_awaiting_join(member, joining.respond)
        if superseded is not None:
            # The client gave that request up, most likely; if it did not, it joins again.
            superseded(join_error(errors.REBALANCE_IN_PROGRESS, member.member_id))

    # Static members that come back

    def _replace(
        self, group: ClassicGroup, joining: Joining, old: ClassicMember, member_id: str, now_ms: int
    ) -> Outcome:
        leader_before = group.leader
        member = group.replace_static(old, member_id)
        self.rebalance.end_session(group, old.member_id)
        fenced_join, fenced_sync = old.awaiting_join, old.awaiting_sync
        before = (member.protocols, member.rebalance_timeout_ms, member.session_timeout_ms)
        self._update(group, joining, member)
        self.rebalance.start_session(group, member, member.session_timeout_ms, now_ms)
        outcome = self._after_replacement(group, joining, old, member, leader_before, before, now_ms)
        if fenced_join is not None:
            fenced_join(join_error(errors.FENCED_INSTANCE_ID, old.member_id))
        if fenced_sync is not None:
            fenced_sync(sync_error(errors.FENCED_INSTANCE_ID))
        return outcome

    def _after_replacement(
        self,
        group: ClassicGroup,
        joining: Joining,
        old: ClassicMember,
        member: ClassicMember,
        leader_before: str | None,
        before: tuple[Protocols, int, int],
        now_ms: int,
    ) -> Outcome:
        if group.state == STABLE and group.select_protocol() == group.protocol_name:
            # Nothing changes for the others: only the new id is written down.
            group.refresh_subscribed_topics()
            on_written = partial(
                self._on_replaced, group, joining, old, member, leader_before=leader_before, before=before
            )
            return Outcome([group_record(group, current_assignments(group))], replay=False, on_written=on_written)
        # Otherwise the leader may be assigning partitions to the old id right now, or the protocol changes.
        reason = joining.reason(f"static member {member.instance_id} is {member.member_id} now")
        return self.rebalance.prepare_or_complete(group, reason, now_ms) or Outcome()

    def _on_replaced(
        self,
        group: ClassicGroup,
        joining: Joining,
        old: ClassicMember,
        member: ClassicMember,
        error: KafkaError | None,
        now_ms: int,
        *,
        leader_before: str | None,
        before: tuple[Protocols, int, int],
    ) -> None:
        if member.awaiting_join is not joining.respond or group.members.get(member.member_id) is not member:
            # A rebalance has responded in the meantime, or someone else is this instance now.
            return
        group.set_awaiting_join(member, None)
        if error is not None:
            group.update(member, before[0], before[1], before[2])
            restored = group.replace_static(member, old.member_id)
            if group.state == STABLE:
                group.refresh_subscribed_topics()
            self.rebalance.end_session(group, member.member_id)
            self.rebalance.start_session(group, restored, restored.session_timeout_ms, now_ms)
            joining.respond(join_error(write_error(error.code), ""))
        elif not joining.knows_skip_assignment:
            # The name of its old self: were it told that it leads, it would assign partitions (KIP-814).
            joining.respond(joined(group, member, leader_before))
        else:
            is_leader = group.leader == member.member_id
            members = group.join_members() if is_leader else None
            joining.respond(joined(group, member, group.leader, members, skip_assignment=is_leader))
