"""Chooses partitions as Kafka's Java producer does: murmur2 of the key, or the partition of the moment without a key.

Without a key, records go to one partition until about a batch is full and then to another (KIP-480, KIP-794): batches
fill sooner and the load evens out over time.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.records.murmur2 import partition_for_key

__all__ = ["StickyPartitions", "partition_for_key"]


class StickyPartitions:
    """The partition of the moment of each topic."""

    def __init__(self, batch_bytes: int, choose: Callable[[int], int]) -> None:
        """choose(n) gives a number from 0 to n-1 by chance."""
        self._batch_bytes = max(1, batch_bytes)
        self._choose = choose
        self._current: dict[str, tuple[int, int]] = {}

    def partition(self, topic: str, available: list[int], size: int) -> int:
        """Where a record of this size goes; available are the partitions that have a leader."""
        current, held = self._current.get(topic, (-1, 0))
        if current not in available or held >= self._batch_bytes:
            others = [partition for partition in available if partition != current] or available
            current, held = others[self._choose(len(others))], 0
        self._current[topic] = (current, held + size)
        return current
