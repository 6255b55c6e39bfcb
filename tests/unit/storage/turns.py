"""A real disk under a node that takes turns: what is done on its threads, and what blocks in the node's own turn."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.server.posix_disk import PosixDisk
from tests.pace import patience

BLOCKING = ("fsync", "fdatasync", "remove", "unlink", "rmdir")


class Turns:
    """The turns of a node: `disk` posts what its threads have done, `run` takes it. `blocked` has every call of the
    system that may wait and was made in the node's own turn, `elsewhere` those on other threads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._posted: queue.Queue[Callable[[], object]] = queue.Queue()
        self.disk = PosixDisk(post=self._posted.put)
        self.blocked: list[str] = []
        self.elsewhere: list[str] = []
        own = threading.get_ident()

        def watched(name: str, call: Callable[..., object], really: bool) -> Callable[..., object]:
            def run(path: object, *more: object, **options: object) -> object:
                list_of = self.blocked if threading.get_ident() == own else self.elsewhere
                list_of.append(f"{name} {os.readlink(f'/proc/self/fd/{path}') if isinstance(path, int) else path}")
                return call(path, *more, **options) if really else None

            return run

        for name in BLOCKING:
            call = getattr(os, name)
            monkeypatch.setattr(os, name, watched(name, call, "sync" not in name))

    def post(self, turn: Callable[[], object]) -> None:
        self._posted.put(turn)

    def run(self, until: Callable[[], bool], attempts: int = 100_000) -> None:
        """Turns until something holds."""
        while not until():
            assert attempts > 0
            attempts -= 1
            self._posted.get(timeout=patience(10))()

    def settle(self) -> None:
        """Turns until nothing is under way any more."""
        lanes = self.disk._lanes
        assert lanes is not None
        self.run(lambda: lanes.pending == 0)

    def forget(self) -> None:
        self.blocked.clear()
        self.elsewhere.clear()


def files_in(folder: str, pattern: str) -> list[str]:
    return sorted(path.name for path in Path(folder).glob(pattern))
