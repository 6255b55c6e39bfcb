"""The wall clock in milliseconds, kept from running backwards.

Deadlines and record timestamps share one clock below the line. When the system's clock is set back, time stands still
here until it has caught up; long jumps forward are followed at once, as Kafka does.
"""

from __future__ import annotations

import time


class Clock:
    """Callable: `clock()` is now in milliseconds since 1970."""

    def __init__(self) -> None:
        self._last_ms = 0

    def __call__(self) -> int:
        now_ms = time.time_ns() // 1_000_000
        if now_ms < self._last_ms:
            if self._last_ms - now_ms > 60_000:
                self._last_ms = now_ms
            return self._last_ms
        self._last_ms = now_ms
        return now_ms
