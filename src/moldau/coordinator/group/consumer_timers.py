"""The timers of members of consumer and streams groups: sessions, revocations, and what classic members owe."""

from __future__ import annotations

from typing import Final

from moldau.coordinator.timers import TimerAction, Timers

SESSION: Final = "session"
REVOCATION: Final = "revocation"
"""Partitions or tasks must be given up before this."""
CLASSIC_JOIN: Final = "join"
CLASSIC_SYNC: Final = "sync"
KINDS: Final = (SESSION, REVOCATION, CLASSIC_JOIN, CLASSIC_SYNC)


class MemberTimers:
    """At most one of each kind for each member."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def schedule(self, kind: str, group_id: str, member_id: str, due_ms: int, action: TimerAction) -> None:
        self._timers.schedule(timer_key(kind, group_id, member_id), due_ms, action)

    def schedule_if_absent(self, kind: str, group_id: str, member_id: str, due_ms: int, action: TimerAction) -> None:
        key = timer_key(kind, group_id, member_id)
        if not self._timers.is_scheduled(key):
            self._timers.schedule(key, due_ms, action)

    def cancel(self, kind: str, group_id: str, member_id: str) -> None:
        self._timers.cancel(timer_key(kind, group_id, member_id))

    def cancel_all(self, group_id: str, member_id: str) -> None:
        """The member is gone."""
        for kind in KINDS:
            self.cancel(kind, group_id, member_id)


def timer_key(kind: str, group_id: str, member_id: str) -> str:
    # With the length in it no two pairs have the same key.
    return f"consumer {kind} {len(group_id)} {group_id} {member_id}"
