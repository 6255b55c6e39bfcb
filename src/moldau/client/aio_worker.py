"""The thread beside the event loop that carries out calls of the asyncio faces, and its way back to the loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from moldau.client.errors import ClosedError

T = TypeVar("T")

# How often a thread that waits for the event loop looks whether it still runs.
LOOP_CHECK_SECONDS = 1.0


class Worker:
    """One thread that carries out calls one after the other."""

    def __init__(self, name: str) -> None:
        self._executor = ThreadPoolExecutor(1, thread_name_prefix=name)
        self.closed = False

    def start(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self.closed:
            raise ClosedError("The client is closed.")
        return asyncio.wrap_future(self._executor.submit(work))

    async def run(self, work: Callable[[], T]) -> T:
        return await self.start(work)

    def close(self) -> None:
        self.closed = True
        self._executor.shutdown(wait=False)


def wait_for_loop(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], whose: str) -> T:
    """Runs the user's coroutine on the loop, while the thread that calls this waits."""
    future = asyncio.run_coroutine_threadsafe(work, loop)
    while True:
        try:
            return future.result(LOOP_CHECK_SECONDS)
        except TimeoutError:
            if future.done():
                raise
            if not loop.is_running():
                # Nobody would ever carry it out, and this thread would wait for ever.
                future.cancel()
                raise ClosedError(f"The event loop of {whose} has stopped.") from None
