"""SIGTERM ends a tool as Ctrl-C does: what it has done so far is told."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

TERMINATED = 143


class Terminated(BaseException):
    """Somebody ended the tool with SIGTERM."""


@contextlib.contextmanager
def termination() -> Iterator[None]:
    """SIGTERM raises Terminated inside."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _on_terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _on_terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated
