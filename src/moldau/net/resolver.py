"""Finds the addresses of host names without holding up the event loop: one lookup for a name at a time, few threads.

A name server that does not answer holds a thread for as long as the system lets it. Whoever asks again meanwhile, for
the next attempt to connect, waits for the lookup that is under way; and when all threads hang, others wait for the
first that comes back. Threads are daemons that nobody waits for, so that they do not hold up the exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections import deque
from collections.abc import Callable
from typing import Final

THREADS_MAX: Final = 8

# Family, address in digits.
Found = tuple[int, str]
Done = Callable[[int, list[Found]], None]

log = logging.getLogger("moldau.net")


class Resolver:
    """Lookups of one event loop; all of it runs in the loop's thread but `_look_up`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # By host: who waits, for which attempt, and what is to be called.
        self._waiting: dict[str, dict[object, tuple[int, Done]]] = {}
        self._queue: deque[str] = deque()
        self._threads = 0

    def resolve(self, host: str, asker: object, attempt: int, done: Done) -> None:
        """`done` gets the number of the attempt and the addresses, none when there are none, in a later turn. Who asks
        again for the same host takes the place of the question before."""
        waiting = self._waiting.get(host)
        if waiting is not None:
            waiting[asker] = (attempt, done)
            return
        self._waiting[host] = {asker: (attempt, done)}
        self._queue.append(host)
        self._start_next()

    def forget(self, host: str, asker: object) -> None:
        """The asker does not want to know any more; a lookup that nobody waits for is not begun."""
        waiting = self._waiting.get(host)
        if waiting is None:
            return
        waiting.pop(asker, None)
        if not waiting and host in self._queue:
            self._queue.remove(host)
            del self._waiting[host]

    def _start_next(self) -> None:
        while self._queue and self._threads < THREADS_MAX:
            host = self._queue.popleft()
            self._threads += 1
            threading.Thread(target=self._look_up, args=(host,), name=f"resolve {host}", daemon=True).start()

    def _look_up(self, host: str) -> None:
        found: list[Found] = []
        try:
            for family, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                if family in (socket.AF_INET, socket.AF_INET6):
                    found.append((int(family), str(address[0])))
        except (OSError, UnicodeError) as error:
            log.warning("cannot resolve host %s: %s", host, error)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants to know any more
            self._loop.call_soon_threadsafe(self._on_found, host, found)

    def _on_found(self, host: str, found: list[Found]) -> None:
        self._threads -= 1
        waiting = self._waiting.pop(host)
        self._start_next()
        for attempt, done in waiting.values():
            done(attempt, found)
