"""The clocks of the machine, read together for every turn; what they mean is in `moldau.records.clocks`."""

from __future__ import annotations

import time

from moldau.records.clocks import SteadyClock, WallClock

SLEPT_MS_MIN = 1000
"""The two clocks that tell of a suspension are not read at the same moment."""
BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Clock:
    """Callable: `clock()` is now on the steady clock. `wall` is kept up to date with every call."""

    def __init__(self) -> None:
        monotonic_ms = time.monotonic_ns() // 1_000_000
        wall_ms = time.time_ns() // 1_000_000
        self.steady = SteadyClock(monotonic_ms, wall_ms)
        self.wall = WallClock()
        self._noted_ms = wall_ms - monotonic_ms
        self._paused_ms = 0
        self._asleep_ms = asleep_ms()
        self._monotonic_ms = monotonic_ms
        self._now_ms = self.steady.read(monotonic_ms)
        self.wall.note(self._now_ms, monotonic_ms, wall_ms)

    def __call__(self) -> int:
        monotonic_ms = time.monotonic_ns() // 1_000_000
        if monotonic_ms != self._monotonic_ms:
            # Under load many readings fall into one millisecond: for those one clock is enough.
            self._monotonic_ms = monotonic_ms
            self._read(monotonic_ms)
        return self._now_ms

    def _read(self, monotonic_ms: int) -> None:
        wall_ms = time.time_ns() // 1_000_000
        steady = self.steady
        self._now_ms = steady.read(monotonic_ms)
        moved_ms = wall_ms - monotonic_ms - self._noted_ms
        # Most readings tell nothing new, but for a millisecond that one of them was rounded by.
        if moved_ms > 1 or moved_ms < -1 or steady.paused_ms != self._paused_ms or not self.wall.is_settled():
            self._note(self._now_ms, monotonic_ms, wall_ms)

    def _note(self, now_ms: int, monotonic_ms: int, wall_ms: int) -> None:
        self._noted_ms = wall_ms - monotonic_ms
        self._paused_ms = self.steady.paused_ms
        asleep = asleep_ms()
        if asleep - self._asleep_ms >= SLEPT_MS_MIN:
            self.wall.note_suspension(asleep - self._asleep_ms)
            self._asleep_ms = asleep
        self.wall.note(now_ms, monotonic_ms, wall_ms)


def asleep_ms() -> int:
    """How long the machine has been suspended since it was started; 0 where the system does not tell."""
    if BOOT_CLOCK is None:
        return 0
    return (time.clock_gettime_ns(BOOT_CLOCK) - time.monotonic_ns()) // 1_000_000
