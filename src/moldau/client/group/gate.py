"""Lets the user's thread and the heartbeat thread use one consumer in turn; the user's goes first.

One thread is inside at a time. The heartbeat thread waits inside for responses and leaves as soon as the user wants in;
the user's thread leaves while the user's own code runs, so that heartbeats go on during a slow listener.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Gate:
    """A lock that can be asked whether someone waits for it, and that can be left for a while."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """wake: makes whoever is inside look up."""
        self._lock = threading.RLock()
        self.wake = wake
        self._depth = 0
        self._counting = threading.Lock()
        self._waiting = 0

    @property
    def wanted(self) -> bool:
        return self._waiting > 0

    def __enter__(self) -> Gate:
        self._acquire()
        self._depth += 1
        return self

    def _acquire(self) -> None:
        if self._lock.acquire(blocking=False):
            return
        with self._counting:
            self._waiting += 1
        try:
            self.wake()
            self._lock.acquire()
        finally:
            with self._counting:
                self._waiting -= 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        self._lock.release()

    def try_enter(self) -> bool:
        """For the heartbeat thread: only if nobody is inside or waits."""
        if self._waiting or not self._lock.acquire(blocking=False):
            return False
        self._depth += 1
        return True

    @contextmanager
    def left(self) -> Iterator[None]:
        """Outside for a while, however often this thread entered."""
        depth, self._depth = self._depth, 0
        for _ in range(depth):
            self._lock.release()
        try:
            yield
        finally:
            for _ in range(depth):
                self._acquire()
            self._depth = depth
