"""How many records a live tail shows: a steady rate with a little room for bursts."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")

BURST_S = 1.0


class TailLimit:
    """A bucket of tokens, one for each record that may be shown."""

    def __init__(self, per_second: int, now_s: float) -> None:
        self._per_second = per_second
        self._tokens = per_second * BURST_S
        self._at = now_s

    @property
    def fetch_max(self) -> int:
        """How many records are worth fetching at once: what is not shown is decoded for nothing."""
        return self._per_second * 2

    @property
    def behind_max(self) -> int:
        """Farther behind than this the tail would show the past, not what arrives."""
        return self._per_second * 5

    def take(self, records: list[T], now_s: float) -> list[T]:
        """Those that may be shown now: the newest."""
        self._tokens = min(self._per_second * BURST_S, self._tokens + (now_s - self._at) * self._per_second)
        self._at = now_s
        count = min(len(records), int(self._tokens))
        self._tokens -= count
        return records[len(records) - count :]
