"""Requests with more work than one turn should do: the next piece of each comes in a turn of its own."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.node.turn import WakeUp
from moldau.records.clocks import AT_ONCE_MS, NEVER_MS

Piece = Callable[[], None]


class LaterTurns:
    """A piece a turn, in the order in which they came: who has many is served between the others."""

    def __init__(self) -> None:
        self.on_deadline: WakeUp | None = None
        self._waiting: deque[Piece] = deque()

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, piece: Piece) -> None:
        self._waiting.append(piece)
        if self.on_deadline is not None:
            self.on_deadline(AT_ONCE_MS)

    def poll(self, now_ms: int) -> int:
        if self._waiting:
            self._waiting.popleft()()
        return now_ms if self._waiting else NEVER_MS
