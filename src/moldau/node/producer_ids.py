"""Hands out producer ids from blocks that the controller gives to this broker, a thousand at a time."""

from __future__ import annotations

from collections.abc import Callable

Done = Callable[[int, int], None]
Allocate = Callable[[int, Callable[[int, int, int], None]], None]


class ProducerIds:
    """`next` answers at once while the block lasts; requests that come meanwhile wait for the new block."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._waiting: list[Done] = []
        self._asking = False

    def next(self, now_ms: int, done: Done) -> None:
        """Calls `done(producer_id, 0)`, or `done(-1, error)`."""
        if self._next < self._end:
            self._next += 1
            done(self._next - 1, 0)
            return
        self._waiting.append(done)
        if not self._asking:
            self._asking = True
            self._allocate(now_ms, self._on_block)

    def _on_block(self, error: int, first: int, count: int) -> None:
        self._asking = False
        waiting, self._waiting = self._waiting, []
        if error == 0:
            self._next, self._end = first, first + count
        for done in waiting:
            if error != 0:
                done(-1, error)
            else:
                # A block is far larger than the number of requests that can wait for one.
                self.next(0, done)
