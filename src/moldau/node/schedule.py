"""Things a node does again and again: each has an interval and a next time."""

from __future__ import annotations

from collections.abc import Callable

from moldau.records.clocks import NEVER_MS


class PeriodicTask:
    """Runs `action(now_ms)` every `interval_ms`; the interval may change between two runs."""

    def __init__(self, name: str, interval_ms: Callable[[], int], action: Callable[[int], None]) -> None:
        self.name = name
        self.interval_ms = interval_ms
        self.action = action
        self.next_ms = 0


class Schedule:
    """All periodic tasks of a node."""

    def __init__(self) -> None:
        self._tasks: list[PeriodicTask] = []

    def add(self, name: str, interval_ms: Callable[[], int], action: Callable[[int], None], now_ms: int) -> None:
        task = PeriodicTask(name, interval_ms, action)
        task.next_ms = now_ms + max(1, interval_ms())
        self._tasks.append(task)

    def run(self, now_ms: int, step: Callable[[str], None]) -> int:
        """Runs what is due, tells `step` the name of each; returns when the next one is."""
        next_ms = NEVER_MS
        for task in self._tasks:
            if task.next_ms <= now_ms:
                task.next_ms = now_ms + max(1, task.interval_ms())
                task.action(now_ms)
                step(task.name)
            next_ms = min(next_ms, task.next_ms)
        return next_ms
