"""The parts of a node in the order in which its turns call them; each stretch has a name, for whoever watches the time.

A part says when to call it again, and may ask for a turn before that through `on_deadline`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from moldau.records.clocks import NEVER_MS

WakeUp = Callable[[int], None]


class Pollable(Protocol):
    """`on_deadline` is told when `poll` must be called earlier than it said."""

    on_deadline: WakeUp | None

    def poll(self, now_ms: int) -> int:
        """Does what is due; returns when to call it again at the latest."""
        ...


class Call:
    """A function as a part of the turn: one that asks for no turn of its own. It may leave the next time to others."""

    def __init__(self, function: Callable[[int], int | None]) -> None:
        self.on_deadline: WakeUp | None = None
        self._function = function

    def poll(self, now_ms: int) -> int:
        next_ms = self._function(now_ms)
        return NEVER_MS if next_ms is None else next_ms


class Stretch:
    """Parts that are called one after the other, and whose time is counted together."""

    def __init__(self, name: str, *parts: Pollable) -> None:
        self.name = name
        self.parts = parts

    def poll(self, now_ms: int) -> int:
        next_ms = NEVER_MS
        for part in self.parts:
            next_ms = min(next_ms, part.poll(now_ms))
        return next_ms

    def set_wake_up(self, wake_at: WakeUp) -> None:
        for part in self.parts:
            part.on_deadline = wake_at
