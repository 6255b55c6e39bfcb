"""The last offset of every key in the dirty part of a log: 24 bytes an entry, whatever the size of the keys.

An open-addressed table of (hash, hash, offset). The hash has 128 bits and a seed of its own, so that nobody can make
two keys meet on purpose; by chance two of a billion keys meet once in 10^20 logs. Kafka: SkimpyOffsetMap.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64
from xxhash import xxh3_128_digest

ENTRY_BYTES: Final = 24
LOAD_FACTOR: Final = 0.9
NOT_FOUND: Final = -1


def zeros(count: i64) -> vec[i64]:
    numbers = vec[i64](capacity=count)
    for _ in range(count):
        numbers = append(numbers, i64(0))
    return numbers


class OffsetMap:
    """Holds up to `capacity` keys. `latest_offset` is how far the log was read into it."""

    def __init__(self, buffer_bytes: int, keys_max: int, load_factor: float = LOAD_FACTOR, seed: int = 0) -> None:
        """Takes `buffer_bytes` of memory, or less when there cannot be more than `keys_max` keys."""
        slots_allowed = max(buffer_bytes // ENTRY_BYTES, 2)
        # With room to spare the table is kept two thirds full at most: searches are shorter then.
        slots = min(slots_allowed, keys_max + keys_max // 2 + 2)
        self.capacity: i64 = max(int(slots * load_factor), 1)
        self.slots: i64 = slots
        self.size: i64 = 0
        self.latest_offset: i64 = -1
        self._seed = seed
        # Three numbers a slot: both halves of the hash, and the offset plus one (zero: the slot is free).
        self._table: vec[i64] = zeros(slots * 3)

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    @property
    def utilization(self) -> float:
        return int(self.size) / int(self.slots)

    def put(self, key: bytes, offset: i64) -> bool:
        """Notes the offset of a key; False when the map is full and the key is not in it."""
        digest = xxh3_128_digest(key, self._seed)
        first = read_i64_le(digest, 0)
        second = read_i64_le(digest, 8)
        table = self._table
        slots = self.slots
        slot = (first & 0x7FFFFFFFFFFFFFFF) % slots
        while True:
            place = slot * 3
            if table[place + 2] == 0:
                if self.size >= self.capacity:
                    return False
                self.size += 1
                break
            if table[place] == first and table[place + 1] == second:
                break
            slot += 1
            if slot == slots:
                slot = 0
        table[place] = first
        table[place + 1] = second
        table[place + 2] = offset + 1
        return True

    def get(self, key: bytes) -> i64:
        """The offset that was noted last for this key, NOT_FOUND when there was none."""
        digest = xxh3_128_digest(key, self._seed)
        first = read_i64_le(digest, 0)
        second = read_i64_le(digest, 8)
        table = self._table
        slots = self.slots
        slot = (first & 0x7FFFFFFFFFFFFFFF) % slots
        while True:
            place = slot * 3
            if table[place + 2] == 0:
                return NOT_FOUND
            if table[place] == first and table[place + 1] == second:
                return table[place + 2] - 1
            slot += 1
            if slot == slots:
                slot = 0
