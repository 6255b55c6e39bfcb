"""A result that is kept for a moment: asked for once, however many pages want it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

T = TypeVar("T")

PAUSES_PER_LOAD = 15


class CachedResult(Generic[T]):
    """One result. Younger than fresh_s it is given as it is; younger than stale_s too, while it is asked for anew.

    A page is so never older than the moment between two looks at it, and never waits for what is known already.
    Who asks once and not again (waits) is given a fresh result, however long that takes.
    """

    def __init__(self, load: Callable[[], Awaitable[T]], fresh_s: float, stale_s: float, waits: bool = False) -> None:
        self._load = load
        self._waits = waits
        self._fresh_s = fresh_s
        self._stale_s = stale_s
        self._value: T | None = None
        self._at = float("-inf")
        self._took_s = 0.0
        self._loading: asyncio.Task[T] | None = None

    async def get(self) -> T:
        """The result; raises what asking for it raised, where nothing young enough is there."""
        age = time.monotonic() - self._at
        # What takes long to find out is asked for more rarely: neither the broker nor the console does little else.
        fresh_s = max(self._fresh_s, self._took_s * PAUSES_PER_LOAD)
        if self._value is not None and age < fresh_s:
            return self._value
        loading = self._start()
        if self._value is not None and not self._waits and age < max(self._stale_s, 2 * fresh_s):
            return self._value
        return await asyncio.shield(loading)

    async def get_new(self) -> T:
        """A result that was asked for after this call, for those who have just changed something."""
        if self._loading is not None:
            try:
                await asyncio.shield(self._loading)
            except Exception:
                pass  # told to those who waited for it
        return await asyncio.shield(self._start())

    def forget(self) -> None:
        """What is known is known to be old."""
        self._at = float("-inf")

    def _start(self) -> asyncio.Task[T]:
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._run())
            self._loading.add_done_callback(_look_at_error)
        return self._loading

    async def _run(self) -> T:
        began = time.monotonic()
        try:
            self._value = await self._load()
            self._at = time.monotonic()
            self._took_s = self._at - began
            return self._value
        finally:
            self._loading = None


def _look_at_error(task: asyncio.Task[T]) -> None:
    """Nobody may be waiting any more; the next who asks is told."""
    if not task.cancelled():
        task.exception()
