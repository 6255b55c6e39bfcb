"""Rebalances of classic groups: when one begins, who takes part, when it is over; and the timers behind all that.

Every member has one timer, its session. It is not moved by each heartbeat: it looks at `session_due_ms` when it fires
and sets itself again. A group has one timer for the time to join and one for the time to ask for the assignment.

Responses go through functions that members were parked with; those do not come back here in the same turn.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from moldau.coordinator.group.classic_group import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    ClassicGroup,
)
from moldau.coordinator.group.classic_member import ClassicMember, SyncCallback
from moldau.coordinator.group.classic_records import group_record
from moldau.coordinator.group.classic_responses import join_error, joined, sync_error, synced
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.outcome import Outcome
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError

logger = logging.getLogger("moldau.coordinator")

# How long a JoinGroup of a new member may wait. Its client may be gone: nobody notices while the request is parked.
NEW_MEMBER_JOIN_TIMEOUT_MS: Final = 300_000


def session_key(group_id: str, member_id: str) -> str:
    # With the length in it no two pairs have the same key.
    return f"classic session {len(group_id)} {group_id} {member_id}"


def join_key(group_id: str) -> str:
    return f"classic join {group_id}"


def sync_key(group_id: str) -> str:
    return f"classic sync {group_id}"


class ClassicRebalance:
    """See the module. What these functions return is written; None if there is nothing to write."""

    def __init__(self, state: GroupShardState) -> None:
        self.state = state

    # Sessions

    def start_session(self, group: ClassicGroup, member: ClassicMember, timeout_ms: int, now_ms: int) -> None:
        """From now on the member has this long to be heard of."""
        member.session_due_ms = now_ms + timeout_ms
        self._set_session_timer(group.group_id, member.member_id, member.session_due_ms)

    def _set_session_timer(self, group_id: str, member_id: str, due_ms: int) -> None:
        action = partial(self._on_session_due, group_id, member_id)
        self.state.timers.schedule(session_key(group_id, member_id), due_ms, action)

    def end_session(self, group: ClassicGroup, member_id: str) -> None:
        self.state.timers.cancel(session_key(group.group_id, member_id))

    def start_pending(self, group: ClassicGroup, member_id: str, timeout_ms: int, now_ms: int) -> None:
        """The member was given its id and has this long to come back with it."""
        group.pending_members[member_id] = None
        self._set_session_timer(group.group_id, member_id, now_ms + timeout_ms)

    def _on_session_due(self, group_id: str, member_id: str, now_ms: int) -> Outcome | None:
        group = self.state.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            return None
        if member_id in group.pending_members:
            group.remove(member_id)
            logger.info("removing pending member %s from group %s: it did not join in time", member_id, group_id)
            return self.after_removal(group, f"pending member {member_id} did not join in time", now_ms)
        member = group.members.get(member_id)
        if member is None:
            return None
        if member.keeps_session:
            member.session_due_ms = now_ms + member.session_timeout_ms
        if member.session_due_ms > now_ms:
            self._set_session_timer(group_id, member_id, member.session_due_ms)
            return None
        logger.info("removing member %s from group %s: session timed out", member_id, group_id)
        self.remove_member(group, member)
        return self.after_removal(group, f"session of member {member_id} timed out", now_ms)

    # Members that go

    def remove_member(self, group: ClassicGroup, member: ClassicMember) -> None:
        """Takes a member out; whatever it waits for, it is not a member any more."""
        group.remove(member.member_id)
        self.end_session(group, member.member_id)
        join_callback, sync_callback = member.awaiting_join, member.awaiting_sync
        member.awaiting_join = None
        member.awaiting_sync = None
        if join_callback is not None:
            join_callback(join_error(errors.UNKNOWN_MEMBER_ID, ""))
        if sync_callback is not None:
            sync_callback(sync_error(errors.UNKNOWN_MEMBER_ID))

    def after_removal(self, group: ClassicGroup, reason: str, now_ms: int) -> Outcome | None:
        """Members have gone: those who stay share what they had, or had been waiting for them only."""
        if group.state in (STABLE, COMPLETING_REBALANCE):
            return self.prepare_or_complete(group, reason, now_ms)
        if group.state == PREPARING_REBALANCE:
            return self.maybe_complete_join(group, now_ms)
        return None

    def dissolve(self, group: ClassicGroup, code: int) -> None:
        """The group is no more, here: everybody who waits gets this error, and no timer is left."""
        timers = self.state.timers
        timers.cancel(join_key(group.group_id))
        timers.cancel(sync_key(group.group_id))
        for member_id in [*group.members, *group.pending_members]:
            self.end_session(group, member_id)
        self.respond_to_everybody(group, code)

    def respond_to_everybody(self, group: ClassicGroup, code: int) -> None:
        """Nobody waits any longer: not for the others, and not for an assignment."""
        for member in group.members.values():
            join_callback, sync_callback = member.awaiting_join, member.awaiting_sync
            group.set_awaiting_join(member, None)
            member.awaiting_sync = None
            if join_callback is not None:
                join_callback(join_error(code, member.member_id))
            if sync_callback is not None:
                sync_callback(sync_error(code))

    # Joining

    def prepare_or_complete(self, group: ClassicGroup, reason: str, now_ms: int) -> Outcome | None:
        if group.can_rebalance:
            return self.prepare(group, reason, now_ms)
        return self.maybe_complete_join(group, now_ms)

    def prepare(self, group: ClassicGroup, reason: str, now_ms: int) -> Outcome | None:
        """Begins a rebalance: everybody must join again."""
        logger.info(
            "preparing to rebalance group %s with generation %d in state %s: %s",
            group.group_id,
            group.generation,
            group.state,
            reason,
        )
        is_initial = group.state == EMPTY
        if group.state == COMPLETING_REBALANCE:
            self._cancel_syncs(group, errors.REBALANCE_IN_PROGRESS, now_ms)
        self.state.timers.cancel(sync_key(group.group_id))
        group.transition_to(PREPARING_REBALANCE, self.state.wall.at(now_ms))
        if is_initial:
            self._delay_initial(group, now_ms)
            return None
        return self._complete_or_schedule(group, now_ms)

    def _delay_initial(self, group: ClassicGroup, now_ms: int) -> None:
        """A group that begins waits for more members, so that it does not rebalance for each of them."""
        delay_ms = self.state.settings.classic_initial_delay_ms
        remaining_ms = max(group.rebalance_timeout_ms - delay_ms, 0)
        group.new_member_added = False
        action = partial(self._on_initial_delay_over, group.group_id, delay_ms, remaining_ms)
        self.state.timers.schedule(join_key(group.group_id), now_ms + delay_ms, action)

    def _on_initial_delay_over(self, group_id: str, delay_ms: int, remaining_ms: int, now_ms: int) -> Outcome | None:
        group = self.state.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or group.state != PREPARING_REBALANCE:
            return None
        if not group.new_member_added or remaining_ms == 0:
            return self.complete_join(group, now_ms)
        group.new_member_added = False
        next_delay_ms = min(self.state.settings.classic_initial_delay_ms, remaining_ms)
        next_remaining_ms = max(remaining_ms - delay_ms, 0)
        action = partial(self._on_initial_delay_over, group_id, next_delay_ms, next_remaining_ms)
        self.state.timers.schedule(join_key(group_id), now_ms + next_delay_ms, action)
        return None

    def maybe_complete_join(self, group: ClassicGroup, now_ms: int) -> Outcome | None:
        """Somebody joined or went: perhaps they are complete. An initial rebalance waits for its delay."""
        if group.state != PREPARING_REBALANCE or group.previous_state == EMPTY:
            return None
        return self._complete_or_schedule(group, now_ms)

    def _complete_or_schedule(self, group: ClassicGroup, now_ms: int) -> Outcome | None:
        if group.all_members_joined:
            return self.complete_join(group, now_ms)
        if not self.state.timers.is_scheduled(join_key(group.group_id)):
            self._schedule_join_end(group, now_ms)
        return None

    def _schedule_join_end(self, group: ClassicGroup, now_ms: int) -> None:
        action = partial(self._on_join_time_over, group.group_id)
        self.state.timers.schedule(join_key(group.group_id), now_ms + group.rebalance_timeout_ms, action)

    def _on_join_time_over(self, group_id: str, now_ms: int) -> Outcome | None:
        group = self.state.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or group.state != PREPARING_REBALANCE:
            return None
        return self.complete_join(group, now_ms)

    def complete_join(self, group: ClassicGroup, now_ms: int) -> Outcome | None:
        """The next generation begins with those who joined. Static members may be late: their session decides."""
        self.state.timers.cancel(join_key(group.group_id))
        for member in list(group.members.values()):
            if member.awaiting_join is None and not member.is_static:
                logger.info(
                    "removing member %s from group %s: it did not rejoin within the rebalance timeout",
                    member.member_id,
                    group.group_id,
                )
                self.remove_member(group, member)
        if group.members and not group.elect_joined_leader():
            # Static members alone, none of them back yet: their sessions end it, or one of them comes.
            self._schedule_join_end(group, now_ms)
            return None
        group.begin_generation(self.state.wall.at(now_ms))
        self.state.settings.counts.classic_rebalances += 1
        if group.state == EMPTY:
            logger.info("group %s with generation %d is now empty", group.group_id, group.generation)
            return Outcome([group_record(group, {})], replay=False, on_written=partial(self._on_empty_written, group))
        self._begin_sync(group, now_ms)
        return None

    def _on_empty_written(self, group: ClassicGroup, error: KafkaError | None, now_ms: int) -> None:
        if error is not None:
            # After a failover the members of the generation before would be back, and go when their sessions end.
            logger.warning("cannot write that group %s is empty: %s", group.group_id, error)

    def _begin_sync(self, group: ClassicGroup, now_ms: int) -> None:
        logger.info(
            "stabilized group %s, generation %d, with %d members", group.group_id, group.generation, len(group.members)
        )
        action = partial(self._on_sync_time_over, group.group_id, group.generation)
        self.state.timers.schedule(sync_key(group.group_id), now_ms + group.rebalance_timeout_ms, action)
        for member in group.members.values():
            member.is_new = False
            group.pending_sync_members[member.member_id] = None
            self.start_session(group, member, member.session_timeout_ms, now_ms)
            respond = member.awaiting_join
            if respond is not None:
                group.set_awaiting_join(member, None)
                members = group.join_members() if member.member_id == group.leader else None
                respond(joined(group, member, group.leader, members))

    # Assignments

    def on_sync_received(self, group: ClassicGroup, member: ClassicMember) -> None:
        group.pending_sync_members.pop(member.member_id, None)
        if not group.pending_sync_members:
            self.state.timers.cancel(sync_key(group.group_id))

    def _on_sync_time_over(self, group_id: str, generation: int, now_ms: int) -> Outcome | None:
        """Members that took part in the rebalance and do not ask for their assignment hold up the others."""
        group = self.state.groups.get(group_id)
        if not isinstance(group, ClassicGroup) or group.generation != generation:
            return None
        if group.state not in (COMPLETING_REBALANCE, STABLE) or not group.pending_sync_members:
            return None
        late = list(group.pending_sync_members)
        for member_id in late:
            member = group.members.get(member_id)
            if member is not None:
                self.remove_member(group, member)
        group.pending_sync_members.clear()
        return self.prepare(group, f"{len(late)} members did not ask for their assignment in time", now_ms)

    def assign(self, group: ClassicGroup, assignments: dict[str, bytes], now_ms: int) -> None:
        """The leader's assignment is written: everybody who waits for it gets it."""
        group.transition_to(STABLE, self.state.wall.at(now_ms))
        for member in group.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            respond = self._take_sync_callback(member, now_ms)
            if respond is not None:
                respond(synced(group, member))

    def assignment_failed(self, group: ClassicGroup, code: int, now_ms: int) -> None:
        """The assignment could not be written: everybody who waits hears of it, and the group tries again."""
        self._cancel_syncs(group, code, now_ms)
        self.prepare(group, f"the assignment could not be written, error {code}", now_ms)

    def _cancel_syncs(self, group: ClassicGroup, code: int, now_ms: int) -> None:
        for member in group.members.values():
            member.assignment = b""
            respond = self._take_sync_callback(member, now_ms)
            if respond is not None:
                respond(sync_error(code))

    def _take_sync_callback(self, member: ClassicMember, now_ms: int) -> SyncCallback | None:
        respond = member.awaiting_sync
        if respond is not None:
            member.awaiting_sync = None
            # It could not send heartbeats while it waited.
            member.session_due_ms = now_ms + member.session_timeout_ms
        return respond
