"""The order in which Java's HashMap walks its keys: several of Kafka's tools print in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from moldau.client.results import TopicPartition

K = TypeVar("K")

LOAD = 0.75
DEFAULT_CAPACITY = 16


def string_hash(text: str) -> int:
    """Java's String.hashCode as an unsigned number: over UTF-16 units."""
    units = text.encode("utf-16-be")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return found


def combined_hash(first: int, *parts: int) -> int:
    """What Java's classes make of the hashes of their fields."""
    found = first
    for part in parts:
        found = (31 * found + part) & 0xFFFFFFFF
    return found


def partition_hash(partition: TopicPartition) -> int:
    return combined_hash(1, partition.partition, string_hash(partition.topic))


def hash_map_order(keys: Iterable[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """The strings as a HashMap made for `capacity` entries walks them after they were put in this order."""
    return hash_order(keys, string_hash, capacity)


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int], capacity: int = DEFAULT_CAPACITY) -> list[K]:
    """The same for keys of any kind."""
    distinct = list(dict.fromkeys(keys))
    size = 1
    while size < capacity:
        size *= 2
    while len(distinct) > size * LOAD:
        size *= 2

    def bucket(key: K) -> int:
        found = hash_of(key) & 0xFFFFFFFF
        return (found ^ found >> 16) & (size - 1)

    # Keys of one bucket stay in the order in which they came, and sorting is stable.
    return sorted(distinct, key=bucket)
