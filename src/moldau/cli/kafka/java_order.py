"""The order in which Java's HashMap walks its keys: several of Kafka's tools print in it."""

from __future__ import annotations

from collections.abc import Iterable

LOAD = 0.75
DEFAULT_CAPACITY = 16


def string_hash(text: str) -> int:
    """Java's String.hashCode as an unsigned number: over UTF-16 units."""
    units = text.encode("utf-16-be")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return found


def hash_map_order(keys: Iterable[str], capacity: int = DEFAULT_CAPACITY) -> list[str]:
    """The keys as a HashMap made for `capacity` entries walks them after they were put in this order."""
    distinct = list(dict.fromkeys(keys))
    size = 1
    while size < capacity:
        size *= 2
    while len(distinct) > size * LOAD:
        size *= 2
    # Keys of one bucket stay in the order in which they came, and sorting is stable.
    return sorted(distinct, key=lambda key: _bucket(key, size))


def _bucket(key: str, size: int) -> int:
    found = string_hash(key)
    return (found ^ found >> 16) & (size - 1)
