"""How long something rare took lately, on average and at most: elections, commits of metadata, loads of a shard.

Two windows of half a minute are kept, as Kafka's sensors do: what is told is that of both.
"""

from __future__ import annotations

from typing import Final

WINDOW_MS: Final = 30_000


class RecentTimes:
    """Of one kind, in milliseconds."""

    def __init__(self) -> None:
        self.count = 0
        """Since the start."""
        self._began_ms = 0
        self._now = (0, 0, 0)
        self._before = (0, 0, 0)
        # Each: how many, their sum, the longest.

    def record(self, took_ms: int, now_ms: int) -> None:
        self._turn_over(now_ms)
        self.count += 1
        count, total, longest = self._now
        self._now = (count + 1, total + took_ms, max(longest, took_ms))

    def _turn_over(self, now_ms: int) -> None:
        age_ms = now_ms - self._began_ms
        if age_ms >= WINDOW_MS:
            self._before = self._now if age_ms < 2 * WINDOW_MS else (0, 0, 0)
            self._now = (0, 0, 0)
            self._began_ms = now_ms

    def average_and_max(self, now_ms: int) -> tuple[float, int] | None:
        """None where there was nothing lately."""
        self._turn_over(now_ms)
        count = self._now[0] + self._before[0]
        if count == 0:
            return None
        return (self._now[1] + self._before[1]) / count, max(self._now[2], self._before[2])
