"""The last offset of every key in the dirty part of a log: 24 bytes an entry, whatever the size of the keys.

An open-addressed table of (hash, hash, offset). The hash has 128 bits and a seed of its own, so that nobody can make
two keys meet on purpose; by chance two of a billion keys meet once in 10^20 logs. The keys of a batch are staged before
they are looked up: what they need of the table is then fetched into the cache all at once, which takes a third of the
time of one after the other. Kafka: SkimpyOffsetMap.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from librt.strings import read_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64
from xxhash import xxh3_128_digest

ENTRY_BYTES: Final = 24
LOAD_FACTOR: Final = 0.9
NOT_FOUND: Final = -1
FIRST_SLOTS: Final = 1 << 10
FIRST_STAGED: Final = 1 << 8
# A slot is chosen by a multiplication of these many bits, which is cheaper than a division.
HASH_BITS_COUNT: Final = 31
HASH_BITS: Final = 0x7FFFFFFF


def zeros(count: i64) -> vec[i64]:
    numbers = vec[i64](capacity=count)
    for _ in range(count):
        numbers = append(numbers, i64(0))
    return numbers


class OffsetMap:
    """Holds the last offset of each key. `latest_offset` is how far the log was read into it.

    The table begins small and doubles: the fewer cells it has, the more of them are in the processor's cache. It never
    takes more than `buffer_bytes`, and then it may be filled up to `load_factor`.

    `clear_staged`, then `stage` for each key; then `put_staged`, or `load_staged` and `get_staged` for each.
    """

    def __init__(self, buffer_bytes: int, load_factor: float = LOAD_FACTOR, seed: int = 0) -> None:
        self.slots_max: i64 = min(max(buffer_bytes // ENTRY_BYTES, 2), HASH_BITS)
        # One slot stays free whatever the setting says: it is where a search for an unknown key ends.
        self.capacity: i64 = max(min(int(int(self.slots_max) * load_factor), int(self.slots_max) - 1), 1)
        self.size: i64 = 0
        self.latest_offset: i64 = -1
        self._seed = seed
        # Looked up once: compiled code would search the name for every key.
        self._hash: Callable[[bytes, int], bytes] = xxh3_128_digest
        self._slots: i64 = min(FIRST_SLOTS, int(self.slots_max))
        # Three numbers a slot: both halves of the hash, and the offset plus one (zero: the slot is free).
        self._table: vec[i64] = zeros(self._slots * 3)
        self._grow_at: i64 = 0
        self._set_grow_at()
        # Three numbers a key: both halves of the hash, and its offset.
        self._staged: vec[i64] = zeros(FIRST_STAGED * 3)
        self.staged_count: i64 = 0
        self._loaded: i64 = 0

    def _set_grow_at(self) -> None:
        """Two thirds full is when to double, while that is allowed."""
        self._grow_at = self.capacity if self._slots == self.slots_max else self._slots - self._slots // 3

    def _grow(self) -> None:
        old = self._table
        old_slots = self._slots
        slots = min(old_slots * 2, self.slots_max)
        table = zeros(slots * 3)
        self._table = table
        self._slots = slots
        for number in range(old_slots):
            place = number * 3
            if old[place + 2] != 0:
                free = self._find(old[place], old[place + 1])
                table[free] = old[place]
                table[free + 1] = old[place + 1]
                table[free + 2] = old[place + 2]
        self._set_grow_at()

    @property
    def is_full(self) -> bool:
        return self.size >= self.capacity

    @property
    def utilization(self) -> float:
        return int(self.size) / int(self.slots_max)

    def _find(self, first: i64, second: i64) -> i64:
        """Where this hash stands in the table, or where it would stand."""
        table = self._table
        slots = self._slots
        slot = ((first & HASH_BITS) * slots) >> HASH_BITS_COUNT
        while True:
            place = slot * 3
            if table[place + 2] == 0 or (table[place] == first and table[place + 1] == second):
                return place
            slot += 1
            if slot == slots:
                slot = 0

    def clear_staged(self) -> None:
        self.staged_count = 0

    def stage(self, key: bytes, offset: i64) -> None:
        digest = self._hash(key, self._seed)
        place = self.staged_count * 3
        staged = self._staged
        if place == len(staged):
            staged = self._enlarge_staged()
        staged[place] = read_i64_le(digest, 0)
        staged[place + 1] = read_i64_le(digest, 8)
        staged[place + 2] = offset
        self.staged_count += 1

    def _enlarge_staged(self) -> vec[i64]:
        old = self._staged
        size: i64 = len(old)
        staged = zeros(size * 2)
        for place in range(size):
            staged[place] = old[place]
        self._staged = staged
        return staged

    def load_staged(self) -> None:
        """Reads the slots of all staged keys: none of these reads waits for another one, and those to come find the
        table in the cache."""
        table = self._table
        staged = self._staged
        slots = self._slots
        loaded: i64 = 0
        for number in range(self.staged_count):
            loaded ^= table[(((staged[number * 3] & HASH_BITS) * slots) >> HASH_BITS_COUNT) * 3 + 2]
        self._loaded = loaded  # else a compiler may find that nobody needs the reads

    def put_staged(self) -> bool:
        """Notes the offsets of all staged keys; False when the map is full and one of them is not in it."""
        while self.size + self.staged_count > self._grow_at and self._slots < self.slots_max:
            self._grow()
        self.load_staged()
        table = self._table
        staged = self._staged
        for number in range(self.staged_count):
            first = staged[number * 3]
            second = staged[number * 3 + 1]
            place = self._find(first, second)
            if table[place + 2] == 0:
                if self.size >= self.capacity:
                    return False
                self.size += 1
                table[place] = first
                table[place + 1] = second
            table[place + 2] = staged[number * 3 + 2] + 1
        return True

    def get_staged(self, number: i64) -> i64:
        """The offset that was noted last for the staged key of that number, NOT_FOUND when there was none."""
        staged = self._staged
        place = self._find(staged[number * 3], staged[number * 3 + 1])
        # A free slot has 0 here, and NOT_FOUND is one less.
        return self._table[place + 2] - 1

    def put(self, key: bytes, offset: i64) -> bool:
        """One key alone."""
        self.clear_staged()
        self.stage(key, offset)
        return self.put_staged()

    def get(self, key: bytes) -> i64:
        """One key alone."""
        self.clear_staged()
        self.stage(key, 0)
        return self.get_staged(0)
