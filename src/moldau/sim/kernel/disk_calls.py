"""What is under way on a simulated disk: errors that wait for an operation, and what threads of the process do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from moldau.storage.disk import Done, Job


class Fault:
    """An error that the next matching operations meet."""

    __slots__ = ("code", "fragment", "operation", "remaining", "skip")

    def __init__(self, operation: str, fragment: str, code: int, times: int, skip: int) -> None:
        self.operation = operation
        self.fragment = fragment
        self.code = code
        self.remaining = times
        self.skip = skip


class PendingJob:
    """What a thread of the process does; `has_run` until whoever asked for it is told."""

    __slots__ = ("done", "has_run", "job")

    def __init__(self, job: Job, done: Done) -> None:
        self.job = job
        self.done = done
        self.has_run = False


class Threads(Protocol):
    """Those of the process that uses the disk."""

    generation: int

    def take_call(self, call: LaterCall) -> bool: ...

    def run_on_thread(self, work: Callable[[], None]) -> OSError | None: ...


class LaterCall:
    """What a thread of the process does, once, unless the process has ended before."""

    def __init__(self, threads: Threads, work: Callable[[], None], done: Done) -> None:
        self._threads = threads
        self._work = work
        self._done = done
        self._generation = threads.generation

    def run(self) -> None:
        if self._generation == self._threads.generation and self._threads.take_call(self):
            self._done(self._threads.run_on_thread(self._work))


def nothing() -> None:
    """A moment that passes."""
