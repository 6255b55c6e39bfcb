"""What logins compute on threads, and what becomes of it when the node stops."""

from __future__ import annotations

import asyncio
import threading
from types import SimpleNamespace
from typing import Any, cast

from moldau.server.logins import THREADS_MAX, Logins
from tests.pace import patience

NOW_MS = 77


def logins_on(loop: asyncio.AbstractEventLoop) -> Logins:
    nobody = cast("Any", None)
    node = cast("Any", SimpleNamespace(metadata=None))
    return Logins(node, nobody, cast("Any", lambda: NOW_MS), loop, nobody)


def test_what_was_computed_comes_back_to_the_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        logins = logins_on(loop)
        done: asyncio.Future[tuple[bytes, int]] = loop.create_future()
        logins._compute(lambda: b"key", lambda key, now_ms: done.set_result((key, now_ms)))
        assert await asyncio.wait_for(done, patience(10)) == (b"key", NOW_MS)
        logins.close()

    asyncio.run(main())


def test_what_nobody_has_begun_to_compute_is_forgotten_when_the_node_stops() -> None:
    failures: list[dict[str, Any]] = []
    finished: list[bytes] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, failure: failures.append(failure))
        logins = logins_on(loop)
        go_on, begun = threading.Event(), threading.Semaphore(0)

        def busy() -> bytes:
            begun.release()
            go_on.wait()
            return b"late"

        for _ in range(THREADS_MAX):
            logins._compute(busy, lambda key, _: finished.append(key))
        for _ in range(THREADS_MAX):
            await loop.run_in_executor(None, begun.acquire)
        logins._compute(lambda: b"never", lambda key, _: finished.append(key))
        logins.close()
        go_on.set()
        while len(finished) < THREADS_MAX and not failures:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(main(), patience(20)))
    assert failures == [] and finished == [b"late"] * THREADS_MAX
