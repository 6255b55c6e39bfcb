"""The wall clock in milliseconds, kept from running backwards and from standing still.

Deadlines and record timestamps share one clock below the line. When the system's clock is set back, this one goes on at
half speed until the system's has caught up: a request then waits at most twice as long as it asked for. Jumps forward
are followed at once, as Kafka does.
"""

from __future__ import annotations

import logging
import time

log = logging.getLogger("moldau.server")

SET_BACK_TOLD_MS = 1000


class Clock:
    """Callable: `clock()` is now in milliseconds since 1970."""

    def __init__(self) -> None:
        self._last_ns = 0
        self._monotonic_ns = time.monotonic_ns()
        self._told = False

    def __call__(self) -> int:
        now_ns = time.time_ns()
        monotonic_ns = time.monotonic_ns()
        if now_ns < self._last_ns:
            ahead_ms = (self._last_ns - now_ns) // 1_000_000
            if ahead_ms > SET_BACK_TOLD_MS and not self._told:
                self._told = True
                log.warning(
                    "the system's clock was set back by %d ms; timestamps run ahead until it has caught up, or until a "
                    "restart",
                    ahead_ms,
                )
            now_ns = self._last_ns + (monotonic_ns - self._monotonic_ns) // 2
        else:
            self._told = False
        self._last_ns = now_ns
        self._monotonic_ns = monotonic_ns
        return now_ns // 1_000_000
