"""The order in which Java's HashMap walks its keys: clients see it in lists, and people in what Kafka's tools print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeVar

K = TypeVar("K")

LOAD: Final = 0.75
DEFAULT_CAPACITY: Final = 16


def string_hash(text: str) -> int:
    """Java's String.hashCode as an unsigned number: over UTF-16 units."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + (units[index] << 8 | units[index + 1])) & 0xFFFFFFFF
    return found


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
    buckets = {key: _bucket(hash_of(key), size) for key in distinct}
    # Keys of one bucket stay in the order in which they came, and sorting is stable.
    return sorted(distinct, key=buckets.__getitem__)


def _bucket(hash_code: int, size: int) -> int:
    found = hash_code & 0xFFFFFFFF
    return (found ^ found >> 16) & (size - 1)
