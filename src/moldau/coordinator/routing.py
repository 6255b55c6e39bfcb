"""Which partition of a coordinator's topic a key belongs to: by the hash that Java gives to a string."""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

LOWEST_INT: Final = -0x80000000


def java_hash(text: str) -> int:
    """The 32-bit hash of a Java string: over its UTF-16 code units."""
    data = text.encode("utf-16-be", "surrogatepass")
    value: i64 = 0
    position: i64 = 0
    size: i64 = len(data)
    while position < size:
        unit = (i64(data[position]) << 8) | i64(data[position + 1])
        value = (value * 31 + unit) & 0xFFFFFFFF
        position += 2
    return int(value - 0x100000000) if value >= 0x80000000 else int(value)


def partition_for(key: str, partitions: int) -> int:
    """The partition that the coordinator of `key` leads."""
    found = java_hash(key)
    if found == LOWEST_INT:
        return 0
    return abs(found) % partitions
