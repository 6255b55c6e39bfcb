"""Timers of a coordinator shard: one per key, moved often and fired rarely."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from moldau.coordinator.outcome import Outcome
from moldau.records.clocks import NEVER_MS

SWEEP_FROM: Final = 64

TimerAction = Callable[[int], Outcome | None]
"""Called with the time; what it returns is written like the outcome of a request."""


class Timer:
    """One deadline. Heartbeats move it on all the time, so the heap is told only when the old deadline has come."""

    def __init__(self, key: str, due_ms: int, action: TimerAction) -> None:
        self.key = key
        self.due_ms = due_ms
        self.action = action
        self.heap_ms = NEVER_MS
        self.cancelled = False


class Timers:
    """All timers of one shard."""

    def __init__(self) -> None:
        self._by_key: dict[str, Timer] = {}
        self._heap: list[tuple[int, int, Timer]] = []
        self._sequence = 0
        self._cancelled = 0
        # Told when something is due earlier than anything before.
        self.on_earlier: Callable[[int], None] | None = None

    def schedule(self, key: str, due_ms: int, action: TimerAction) -> None:
        """Sets the timer of this key, in place of the one that was set before."""
        timer = self._by_key.get(key)
        if timer is not None and due_ms >= timer.heap_ms:
            timer.due_ms = due_ms
            timer.action = action
            return
        if timer is not None:
            self._leave_in_heap(timer)
        timer = Timer(key, due_ms, action)
        self._by_key[key] = timer
        self._push(timer)

    def _push(self, timer: Timer) -> None:
        is_earliest = not self._heap or timer.due_ms < self._heap[0][0]
        timer.heap_ms = timer.due_ms
        self._sequence += 1
        heapq.heappush(self._heap, (timer.due_ms, self._sequence, timer))
        if is_earliest and self.on_earlier is not None:
            self.on_earlier(timer.due_ms)

    def cancel(self, key: str) -> None:
        timer = self._by_key.pop(key, None)
        if timer is not None:
            self._leave_in_heap(timer)

    def _leave_in_heap(self, timer: Timer) -> None:
        """A cancelled timer goes when its time comes, or with all others once they are the majority."""
        timer.cancelled = True
        self._cancelled += 1
        if self._cancelled > SWEEP_FROM and self._cancelled * 2 > len(self._heap):
            self._heap = [entry for entry in self._heap if not entry[2].cancelled]
            heapq.heapify(self._heap)
            self._cancelled = 0

    def is_scheduled(self, key: str) -> bool:
        return key in self._by_key

    def due_at(self, key: str) -> int:
        """When this timer is due, for descriptions and tests; NEVER_MS if it is not set."""
        timer = self._by_key.get(key)
        return NEVER_MS if timer is None else timer.due_ms

    def clear(self) -> None:
        self._by_key.clear()
        self._heap.clear()
        self._cancelled = 0

    def next_ms(self) -> int:
        """When to look again: no timer is due before."""
        heap = self._heap
        while heap and heap[0][2].cancelled:
            heapq.heappop(heap)
            self._cancelled -= 1
        return heap[0][0] if heap else NEVER_MS

    def take_due(self, now_ms: int) -> Timer | None:
        """The next timer that is due, taken out; its owner runs it."""
        while self.next_ms() <= now_ms:
            timer = heapq.heappop(self._heap)[2]
            if timer.due_ms > now_ms:
                self._push(timer)
                continue
            del self._by_key[timer.key]
            return timer
        return None

    def __len__(self) -> int:
        return len(self._by_key)
