"""Waits until something holds, without sleeping longer than needed and without hiding why it never did."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from moldau.testing.errors import WaitTimedOut

T = TypeVar("T")

DEFAULT_TIMEOUT_MS = 10_000
PAUSE_FIRST_S = 0.001
PAUSE_MAX_S = 0.05


def wait_for(condition: Callable[[], T], timeout_ms: int = DEFAULT_TIMEOUT_MS, message: str = "") -> T:
    """Calls `condition` until what it returns is true, and returns that.

    An AssertionError of the condition means "not yet". WaitTimedOut, an AssertionError, when it takes too long: it
    tells what the condition returned or said last.
    """
    deadline = time.monotonic() + timeout_ms / 1000
    pause_s = PAUSE_FIRST_S
    while True:
        found, error = _try(condition)
        if error is None and found:
            return found
        if time.monotonic() >= deadline:
            raise _too_late(condition, timeout_ms, message, found, error)
        time.sleep(pause_s)
        pause_s = min(PAUSE_MAX_S, 1.5 * pause_s)


async def wait_for_async(
    condition: Callable[[], T | Awaitable[T]], timeout_ms: int = DEFAULT_TIMEOUT_MS, message: str = ""
) -> T:
    """The same in an event loop, which goes on meanwhile; the condition may be a coroutine function."""
    import asyncio
    import inspect

    deadline = time.monotonic() + timeout_ms / 1000
    pause_s = PAUSE_FIRST_S
    while True:
        found: T | None = None
        error: AssertionError | None = None
        try:
            called = condition()
            found = await called if inspect.isawaitable(called) else called
        except AssertionError as caught:
            error = caught
        if error is None and found:
            return found
        if time.monotonic() >= deadline:
            raise _too_late(condition, timeout_ms, message, found, error)
        await asyncio.sleep(pause_s)
        pause_s = min(PAUSE_MAX_S, 1.5 * pause_s)


def _try(condition: Callable[[], T]) -> tuple[T | None, AssertionError | None]:
    try:
        return condition(), None
    except AssertionError as error:
        return None, error


def _too_late(
    condition: object, timeout_ms: int, message: str, found: object, error: AssertionError | None
) -> WaitTimedOut:
    what = message or _source(condition)
    last = f"it failed: {error}" if error is not None else f"it was {found!r}"
    return WaitTimedOut(f"{what}: not within {timeout_ms} ms; at the last look {last}")


def _source(condition: object) -> str:
    """The line in which the condition is written, where that can be found."""
    import inspect

    code = getattr(condition, "__code__", None)
    if code is None:
        return repr(condition)
    try:
        lines, _ = inspect.getsourcelines(code)
    except (OSError, TypeError):
        return f"{code.co_name} ({code.co_filename}:{code.co_firstlineno})"
    return f"{lines[0].strip()} ({code.co_filename}:{code.co_firstlineno})"
