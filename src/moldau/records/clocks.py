"""Two clocks: a steady one for everything that waits, the wall clock for everything that is written down.

`now_ms`, which all code below the line gets as an argument, is `SteadyClock`: it begins at the wall clock's time and
advances with the machine's monotonic clock only. Deadlines, sessions, elections and intervals count on it. While the
process does not run, or does not get to its timers, it stands still: others are not silent because nobody listened.

`WallClock.at(now_ms)` is the calendar's time of that moment, for what is stored and for what is compared with it: times
of records, retention, expiry. It may step, also back. A value of one clock is never compared with one of the other.

Whoever runs a node reads both clocks for every turn. None of this asks the system: readings are arguments.
"""

from __future__ import annotations

import logging
from typing import Final

NEVER_MS: Final = 1 << 62
AT_ONCE_MS: Final = 0
"""A deadline that has come already: for who wants a turn and has not been told the time."""
LATE_MS: Final = 200
"""A turn may come that much later than it was asked for; what goes beyond counts as a pause."""
PART_MS_MAX: Final = 60_000
"""The two clocks may part by that much in an hour; beyond it one of them is wrong."""
REFERENCE_MS: Final = 3_600_000
STEP_HOLDS_MS: Final = 1000
"""A large step of the wall clock counts once it has lasted that long: one wrong reading is written nowhere."""
TRUSTED_AGAIN_MS: Final = 600_000
"""After they parted, the two clocks must have agreed for that long before anything is deleted for its age."""

logger = logging.getLogger("moldau.clock")


class SteadyClock:
    """`due_ms` is when the next reading was asked for at the latest, set by whoever runs the node."""

    def __init__(self, monotonic_ms: int, wall_ms: int) -> None:
        self.due_ms = NEVER_MS
        self.paused_ms = 0
        """How long it stood still, all pauses together."""
        self._start_ms = wall_ms - monotonic_ms
        self._last_ms = wall_ms

    def read(self, monotonic_ms: int) -> int:
        now_ms = monotonic_ms + self._start_ms - self.paused_ms
        latest_ms = LATE_MS + (self.due_ms if self.due_ms > self._last_ms else self._last_ms)
        if now_ms > latest_ms:
            self.paused_ms += now_ms - latest_ms
            now_ms = latest_ms
        self._last_ms = now_ms
        return now_ms


class WallClock:
    """The calendar's time of a moment of the steady clock, and whether it may be trusted to tell ages."""

    def __init__(self, offset_ms: int = 0) -> None:
        self.offset_ms = offset_ms
        self.may_delete_by_age = True
        """False while the wall clock and the monotonic clock disagree, and for some minutes after that."""
        self.disagreements_total = 0
        self._is_read = False
        # Wall clock minus monotonic clock: as it counts now, as it was an hour ago, as the last large step made it.
        self._followed_ms = 0
        self._reference_ms = 0
        self._reference_at_ms = 0
        self._step_ms = 0
        self._step_at_ms = NEVER_MS
        self._trusted_at_ms = 0

    def at(self, now_ms: int) -> int:
        return now_ms + self.offset_ms

    def is_settled(self) -> bool:
        """Whether readings that tell nothing new need not be noted: no step waits to count, nothing is in doubt."""
        return self.may_delete_by_age and self._step_at_ms == NEVER_MS

    def note(self, now_ms: int, monotonic_ms: int, wall_ms: int) -> None:
        """One reading of all clocks; `now_ms` is what the steady one made of it."""
        between_ms = wall_ms - monotonic_ms
        if not self._is_read:
            self._is_read = True
            self._followed_ms = self._reference_ms = between_ms
            self._reference_at_ms = monotonic_ms
        self._judge(between_ms, monotonic_ms)
        self._follow(between_ms, monotonic_ms)
        self.offset_ms = self._followed_ms + monotonic_ms - now_ms

    def note_suspension(self, suspended_ms: int) -> None:
        """The machine slept: its monotonic clock stood still and the wall clock rightly did not."""
        self._followed_ms += suspended_ms
        self._reference_ms += suspended_ms

    def _follow(self, between_ms: int, monotonic_ms: int) -> None:
        if abs(between_ms - self._followed_ms) <= PART_MS_MAX:
            self._step_at_ms = NEVER_MS
        elif self._step_at_ms == NEVER_MS or abs(between_ms - self._step_ms) > PART_MS_MAX:
            self._step_ms = between_ms
            self._step_at_ms = monotonic_ms
            return
        elif monotonic_ms - self._step_at_ms < STEP_HOLDS_MS:
            return
        self._followed_ms = between_ms

    def _judge(self, between_ms: int, monotonic_ms: int) -> None:
        parted_ms = between_ms - self._reference_ms
        if abs(parted_ms) > PART_MS_MAX:
            self._reference_ms = between_ms
            self._reference_at_ms = monotonic_ms
            self._trusted_at_ms = monotonic_ms + TRUSTED_AGAIN_MS
            if self.may_delete_by_age:
                self.may_delete_by_age = False
                self.disagreements_total += 1
                logger.warning(
                    "the system clock is %d s %s of where it should be: time-based retention is suspended "
                    "until it has kept pace with the monotonic clock for %d minutes",
                    abs(parted_ms) // 1000,
                    "ahead" if parted_ms > 0 else "short",
                    TRUSTED_AGAIN_MS // 60_000,
                )
        elif not self.may_delete_by_age:
            if monotonic_ms >= self._trusted_at_ms:
                self.may_delete_by_age = True
                logger.warning("the system clock is steady again: time-based retention resumes")
        elif monotonic_ms - self._reference_at_ms >= REFERENCE_MS:
            self._reference_ms = between_ms
            self._reference_at_ms = monotonic_ms
