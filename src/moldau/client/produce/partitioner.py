"""Chooses partitions as Kafka's Java producer does: murmur2 of the key, or the partition of the moment without a key.

Without a key, records go to one partition until about a batch is full and then to another (KIP-480, KIP-794): batches
fill sooner and the load evens out over time. The next partition is drawn by chance, and a partition whose batches pile
up, because its broker is slow, is drawn more rarely (adaptive).
"""

from __future__ import annotations

from collections.abc import Callable

from mypy_extensions import i64

from moldau.client.produce.accumulator import PartitionQueue
from moldau.records.murmur2 import partition_for_key

__all__ = ["TopicState", "partition_for_key"]


class TopicState:
    """What the producer keeps of one topic: its partitions' queues and the partition of the moment."""

    def __init__(
        self, name: str, queues: list[PartitionQueue], batch_bytes: int, adaptive: bool, choose: Callable[[int], int]
    ) -> None:
        """choose(n) gives a number from 0 to n-1 by chance."""
        self.name: str = name
        self.queues: list[PartitionQueue] = queues
        # The partitions that have a leader.
        self.available: list[int] = []
        self._batch_bytes: i64 = max(1, batch_bytes)
        self._adaptive: bool = adaptive
        self._choose: Callable[[int], int] = choose
        self._current: PartitionQueue | None = None
        self._held: i64 = 0

    def set_available(self, available: list[int]) -> None:
        self.available = available
        if self._current is not None and self._current.index not in available:
            self._current = None

    def sticky(self, size: i64) -> PartitionQueue:
        """Where a record of this size without a key goes."""
        current = self._current
        if current is None or self._held >= self._batch_bytes:
            current = self._next(current)
            self._current = current
            self._held = 0
        self._held += size
        return current

    def keyed(self, key: bytes) -> PartitionQueue:
        return self.queues[partition_for_key(key, len(self.queues))]

    def _next(self, current: PartitionQueue | None) -> PartitionQueue:
        candidates = self.available or list(range(len(self.queues)))
        if len(candidates) == 1:
            return self.queues[candidates[0]]
        if not self._adaptive:
            others = [index for index in candidates if current is None or index != current.index]
            return self.queues[others[self._choose(len(others))]]
        lengths = [self.queues[index].batches for index in candidates]
        most = max(lengths) + 1
        total = 0
        for length in lengths:
            total += most - length
        drawn = self._choose(total)
        for place in range(len(candidates)):
            drawn -= most - lengths[place]
            if drawn < 0:
                return self.queues[candidates[place]]
        return self.queues[candidates[-1]]
