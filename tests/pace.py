"""How patient the tests are: every limit on how long something good may take, and how costs are compared.

A limit says "this never comes", not "this is slow": it costs nothing where the test passes, so it is far above what a
quiet machine needs, and farther on a machine that was slow when the process began. A timeout that a test is about, or
the least time that something must take, is no matter of patience and stays as it is.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LEAST = 6
"""Machines that run tests may be starved to a quarter of their speed at any moment, and some are slow to begin with."""
SLOWNESS_MAX = 10.0
WORK_ROUNDS, WORK_QUIET_S = 200_000, 0.06
"""What a quiet machine needs for this much work."""
MEASURED_AGAIN_S = 10.0
_measured: tuple[float, float] | None = None


def slowness() -> float:
    """How many times longer than on a quiet machine some work takes now; at least 1."""
    global _measured
    began = time.monotonic()
    if _measured is None or began - _measured[0] > MEASURED_AGAIN_S:
        total = 0
        for number in range(WORK_ROUNDS):
            total += number * number % 7
        _measured = began, (time.monotonic() - began) / WORK_QUIET_S
    return min(max(_measured[1], 1.0), SLOWNESS_MAX)


def patience(seconds: float) -> float:
    """How long to wait for what takes a quiet machine less than these seconds."""
    return seconds * LEAST * slowness()


def patience_ms(milliseconds: float) -> int:
    """The same in whole milliseconds, for settings of clients and tools."""
    return round(milliseconds * LEAST * slowness())


def moment(seconds: float) -> float:
    """How long to wait where nothing tells that it was long enough: always waited, so no longer than is needed now."""
    return seconds * slowness()


def moment_ms(milliseconds: float) -> int:
    """The same in whole milliseconds."""
    return round(milliseconds * slowness())


def deadline(seconds: float) -> float:
    """The moment on the monotonic clock at which patience(seconds) is over."""
    return time.monotonic() + patience(seconds)


def wait_until(
    condition: Callable[[], T],
    seconds: float = 20.0,
    what: str | Callable[[], object] = "it did not come about",
    pause_s: float = 0.01,
) -> T:
    """The first true answer of the condition; after patience(seconds) without one the test fails and says what."""
    limit = deadline(seconds)
    while not (found := condition()):
        assert time.monotonic() < limit, f"after {patience(seconds):.0f} s: {what() if callable(what) else what}"
        time.sleep(pause_s)
    return found


async def wait_until_async(
    condition: Callable[[], T], seconds: float = 20.0, what: str = "it did not come about", pause_s: float = 0.001
) -> T:
    """The same in an event loop, which goes on meanwhile."""
    limit = deadline(seconds)
    while not (found := condition()):
        assert time.monotonic() < limit, f"after {patience(seconds):.0f} s: {what}"
        await asyncio.sleep(pause_s)
    return found


def costs(*runs: Callable[[], object], times: int = 10) -> list[float]:
    """Processor seconds of the quickest of several runs of each, taken in turns: a slow minute is slow for all of them.

    Only their ratios say something about the code; a figure alone says how fast the machine is.
    """
    best = [float("inf")] * len(runs)
    for _ in range(times):
        for place, run in enumerate(runs):
            began = time.process_time()
            run()
            best[place] = min(best[place], time.process_time() - began)
    return best
