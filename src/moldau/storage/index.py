"""Offset index and time index of one segment: sparse, sorted, append-only.

What is appended stays in memory until the segment is closed, and reaches the file at roll, flush and close. What only
the file has is never read as a whole: its last entry tells how far it goes, a lookup reads a few stretches of it. So
an entry somewhere in the file may be wrong without anybody having seen it, and whoever uses one found there compares
it with the batch it points at. A file that does not make sense raises DamagedIndex and is built anew from the log.
Kafka: OffsetIndex, TimeIndex (there memory mapped; the files have the same bytes).
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from librt.strings import read_i32_be, read_i64_be

from moldau.storage.disk import Disk

OFFSET_ENTRY_SIZE: Final = 8
TIME_ENTRY_SIZE: Final = 12
NO_TIMESTAMP: Final = -1
NO_LIMIT: Final = 1 << 62
LITTLE_ENDIAN: Final = sys.byteorder == "little"

STRETCH_ENTRIES: Final = 128  # of a file, read at once: a lookup needs few, and each is not much to copy
GUESSES: Final = 3  # entries lie nearly evenly in most files; where they do not, halving goes on

# The columns of the two files: where a value is in an entry.
RELATIVE_OFFSET: Final = 0
POSITION: Final = 4
TIMESTAMP: Final = 0
TIME_OFFSET: Final = 8


class DamagedIndex(Exception):
    """The file is no index of its segment; it can be built again from the log."""


def big_endian_bytes(values: array[int]) -> bytes:
    if LITTLE_ENDIAN:
        swapped = array(values.typecode, values)
        swapped.byteswap()
        return swapped.tobytes()
    return values.tobytes()


class Place:
    """Where a batch lies according to an offset index, and what is true of that batch if the index is right.

    It begins above `after_offset` and ends at or below `last_offset`. Whoever walks on from there for an offset comes
    to it before `limit`. Entries that were appended by this process are `certain`, and so is the segment's start.
    The next indexed batch lies at `next_position`, -1 where none is known.
    """

    def __init__(
        self, position: int, last_offset: int, after_offset: int, limit: int, certain: bool, next_position: int = -1
    ) -> None:
        self.position = position
        self.last_offset = last_offset
        self.after_offset = after_offset
        self.limit = limit
        self.certain = certain
        self.next_position = next_position


class TimePlace:
    """An entry of a time index: `offset` is in the batch with this timestamp, and no batch before has a later one."""

    def __init__(self, timestamp: int, offset: int, certain: bool) -> None:
        self.timestamp = timestamp
        self.offset = offset
        self.certain = certain


class Stretch:
    """Some entries of an index file that follow each other, the first of them with its number in the file."""

    def __init__(self, data: bytes, first: int, count: int, entry_size: int) -> None:
        self.data = data
        self.first = first
        self.count = count
        self.entry_size = entry_size

    def value(self, number: int, column: int) -> int:
        """Of the entry with this number in the file."""
        at = (number - self.first) * self.entry_size + column
        if self.entry_size == TIME_ENTRY_SIZE and column == TIMESTAMP:
            return read_i64_be(self.data, at)
        return read_i32_be(self.data, at)

    def count_not_above(self, column: int, key: int) -> int:
        """How many of these entries, from the first on, have a value that is not above the key."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.value(self.first + middle, column) <= key:
                low = middle + 1
            else:
                high = middle
        return low


class StoredEntries:
    """The part of an index that is in its file only: entries 0 to `stored` - 1."""

    def __init__(self, disk: Disk, path: str, base_offset: int, entry_size: int, loaded: bool) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.entry_size = entry_size
        self.loaded = loaded  # else there is a file that nobody looked at yet
        self.stored = 0
        self.written = 0  # entries that the file has, those that are in memory as well included
        self.on_disk = False
        self.offsets: array[int] = array("i")  # both kinds have a column of relative offsets: of those in memory

    def count_all(self) -> int:
        """With those in memory."""
        return self.stored + len(self.offsets)

    def read_last(self) -> Stretch:
        """The last entry alone (none in an empty file) and with it how many there are; raises DamagedIndex or
        FileNotFoundError."""
        size = self.disk.size(self.path)
        if size % self.entry_size != 0:
            raise DamagedIndex(f"{self.path} has {size} bytes, not a multiple of {self.entry_size}")
        count = size // self.entry_size
        return self.read(max(0, count - 1), count)

    def read(self, first: int, end: int) -> Stretch:
        wanted = (end - first) * self.entry_size
        data = self.disk.read_at(self.path, first * self.entry_size, wanted) if wanted > 0 else b""
        if len(data) != wanted:
            raise DamagedIndex(f"{self.path} is shorter than it was")
        return Stretch(data, first, end - first, self.entry_size)

    def search(self, column: int, key: int, first_value: int, last_value: int) -> tuple[int, Stretch]:
        """How many stored entries have a value that is not above the key, and a stretch that holds the last of them
        and the one behind it. Values rise from about `first_value` to `last_value`; DamagedIndex where they do not."""
        low, high = 0, self.stored
        low_value, high_value = first_value, last_value
        guesses = GUESSES
        while low <= high:
            middle = (low + high) // 2
            if guesses > 0 and high_value > low_value:
                guesses -= 1
                share = min(max(key, low_value), high_value) - low_value
                middle = low + share * (high - low) // (high_value - low_value)
            first = max(0, middle - STRETCH_ENTRIES // 2)
            end = min(self.stored, middle + STRETCH_ENTRIES // 2)
            stretch = self.read(first, end)
            count = stretch.count_not_above(column, key)
            if count == 0 and first > 0:
                high = first
                high_value = stretch.value(first, column)
            elif count == stretch.count and end < self.stored:
                low = end
                low_value = stretch.value(end - 1, column)
            else:
                return first + count, stretch
        raise DamagedIndex(f"{self.path} is out of order near entry {low}")

    def truncate_stored(self, keep: int) -> None:
        truncate_file(self.disk, self.path, keep * self.entry_size)
        self.written = keep

    def mark_written(self) -> None:
        """All entries in memory are in the file now, and no others."""
        self.written = self.count_all()
        self.on_disk = True

    def write_behind(self, data: bytes) -> None:
        """Puts the entries that the file does not have behind those that it has, unless it is to be replaced."""
        write_entries(self.disk, self.path, data, self.written * self.entry_size if self.on_disk else 0)
        self.mark_written()


class OffsetIndex(StoredEntries):
    """Last offset of a batch (relative to the segment) -> position of that batch."""

    def __init__(self, disk: Disk, path: str, base_offset: int, size_max: int, is_new: bool) -> None:
        super().__init__(disk, path, base_offset, OFFSET_ENTRY_SIZE, is_new)
        self.entries_max = size_max // OFFSET_ENTRY_SIZE
        self.positions: array[int] = array("i")
        self.stored_last_offset = -1
        self.stored_last_position = 0

    def load(self, log_size: int) -> None:
        """Learns from the file how many entries there are and the last of them; raises DamagedIndex or
        FileNotFoundError."""
        last = self.read_last()
        count = last.first + last.count
        offset, position = -1, 0
        if count > 0:
            offset, position = last.value(count - 1, RELATIVE_OFFSET), last.value(count - 1, POSITION)
            # The first batch never gets an entry: position 0 in a file means unused space, or content that is lost.
            if offset < count - 1 or position < count:
                raise DamagedIndex(f"{self.path} is out of order at its end")
            if position >= log_size:
                raise DamagedIndex(f"{self.path} points beyond the end of its segment")
        self.offsets = array("i")
        self.positions = array("i")
        self.stored_last_offset = offset
        self.stored_last_position = position
        self.stored = self.written = count
        self.on_disk = True
        self.loaded = True

    def take_off_disk(self) -> None:
        """All entries in memory and none in the file, which is going; raises DamagedIndex."""
        values: array[int] = array("i")
        values.frombytes(self.read(0, self.stored).data)
        if LITTLE_ENDIAN:
            values.byteswap()
        offsets, positions = values[0::2], values[1::2]
        check_rising(offsets, self.path)
        check_rising(positions, self.path)
        offsets.extend(self.offsets)
        positions.extend(self.positions)
        self.reset()
        self.offsets = offsets
        self.positions = positions

    def release(self) -> None:
        """Nothing is appended for now: what is in the file needs no memory."""
        if self.on_disk and self.written == self.count_all() and len(self.offsets) > 0:
            self.stored_last_offset = self.offsets[-1]
            self.stored_last_position = self.positions[-1]
            self.stored = self.written
            self.offsets = array("i")
            self.positions = array("i")

    def reset(self) -> None:
        """Empty, to be filled again; the file is replaced at the next write."""
        self.offsets = array("i")
        self.positions = array("i")
        self.stored_last_offset = -1
        self.stored_last_position = 0
        self.loaded = True
        self.stored = self.written = 0
        self.on_disk = False

    def append(self, offset: int, position: int) -> None:
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)

    @property
    def is_full(self) -> bool:
        return self.stored + len(self.offsets) >= self.entries_max

    def lookup(self, offset: int) -> Place:
        """The last indexed batch whose last offset is not above `offset`; the segment's start when there is none."""
        relative = offset - self.base_offset
        if self.stored == 0 or (len(self.offsets) > 0 and self.offsets[0] <= relative):
            return self._in_memory(bisect_right(self.offsets, relative) - 1)
        number, stretch = self.search(RELATIVE_OFFSET, relative, 0, self.stored_last_offset)
        if number == 0:
            limit = stretch.value(1, POSITION) if stretch.count > 1 else NO_LIMIT
            return Place(0, NO_LIMIT, -1, limit, True)
        return self._in_file(number - 1, stretch)

    def last(self) -> Place:
        """The last indexed batch; the segment's start when there is none."""
        if len(self.positions) > 0:
            return self._in_memory(len(self.positions) - 1)
        if self.stored == 0:
            return self._in_memory(-1)
        return self._in_file(self.stored - 1, self.read(max(0, self.stored - 2), self.stored))

    def last_before(self, position: int) -> Place:
        """The last indexed batch that starts at or before `position`; the segment's start when there is none."""
        if self.stored == 0 or (len(self.positions) > 0 and self.positions[0] <= position):
            return self._in_memory(bisect_right(self.positions, position) - 1)
        number, stretch = self.search(POSITION, position, 0, self.stored_last_position)
        return self._in_file(number - 1, stretch) if number > 0 else self._in_memory(-1)

    def first_behind(self, position: int) -> Place | None:
        """The first indexed batch that starts at or behind `position`."""
        if position > self.stored_last_position or self.stored == 0:
            entry = bisect_left(self.positions, position)
            return self._in_memory(entry) if entry < len(self.positions) else None
        number, stretch = self.search(POSITION, position - 1, 0, self.stored_last_position)
        return self._in_file(number, stretch)

    def _in_memory(self, entry: int) -> Place:
        if entry < 0:
            return Place(0, NO_LIMIT, -1, NO_LIMIT, True)
        following = self.positions[entry + 1] if entry + 1 < len(self.positions) else -1
        return Place(self.positions[entry], self.base_offset + self.offsets[entry], -1, NO_LIMIT, True, following)

    def _in_file(self, number: int, stretch: Stretch) -> Place:
        """Raises DamagedIndex when the entries around it are not in order."""
        if number >= self.stored:
            raise DamagedIndex(f"{self.path} ends before entry {number}")
        offset, position = stretch.value(number, RELATIVE_OFFSET), stretch.value(number, POSITION)
        end = stretch.first + stretch.count
        after = -1
        limit = NO_LIMIT
        next_position = -1
        ordered = 0 < position <= self.stored_last_position and 0 <= offset <= self.stored_last_offset
        if number > stretch.first:
            after = stretch.value(number - 1, RELATIVE_OFFSET)
            ordered = ordered and after < offset and stretch.value(number - 1, POSITION) < position
        if number + 1 < end:
            next_position = stretch.value(number + 1, POSITION)
            ordered = ordered and offset < stretch.value(number + 1, RELATIVE_OFFSET) and position < next_position
            if number + 2 < end:
                # Kafka has one entry for what was appended together, under the last offset of all that.
                limit = stretch.value(number + 2, POSITION)
                ordered = ordered and next_position < limit
        if not ordered:
            raise DamagedIndex(f"{self.path} is out of order at entry {number}")
        return Place(position, self.base_offset + offset, self.base_offset + after, limit, False, next_position)

    def truncate(self, offset: int, log_size: int) -> None:
        """Drops the entries of batches that hold `offset` or come after it; the segment ends at `log_size` then.
        Raises DamagedIndex when what is left cannot be right."""
        relative = offset - self.base_offset
        keep = bisect_left(self.offsets, relative)
        del self.offsets[keep:]
        del self.positions[keep:]
        keep += self.stored
        if self.stored > 0 and relative <= self.stored_last_offset:
            keep, _ = self.search(RELATIVE_OFFSET, relative - 1, 0, self.stored_last_offset)
        if self.on_disk and self.written > keep:
            self.truncate_stored(keep)
        if keep < self.stored:
            self.load(log_size)
        if self.stored_last_position >= max(log_size, 1):
            raise DamagedIndex(f"{self.path} points beyond the end of its segment")

    def encode(self, first: int) -> bytes:
        """The entries from this one on, all of them in memory."""
        first -= self.stored
        values: array[int] = array("i", bytes((len(self.offsets) - first) * OFFSET_ENTRY_SIZE))
        values[0::2] = self.offsets[first:]
        values[1::2] = self.positions[first:]
        return big_endian_bytes(values)

    def write(self) -> None:
        """Brings the file up to date (and creates it, also when there are no entries)."""
        if self.loaded and not (self.on_disk and self.written == self.count_all()):
            self.write_behind(self.encode(self.written))

    def entries(self) -> list[tuple[int, int]]:
        """All of them, relative offset and position: for checks, which may read the whole file."""
        stretch = self.read(0, self.stored)
        found = [(stretch.value(n, RELATIVE_OFFSET), stretch.value(n, POSITION)) for n in range(self.stored)]
        found.extend(zip(self.offsets, self.positions, strict=True))
        return found


class TimeIndex(StoredEntries):
    """Largest timestamp so far -> last offset of its batch (relative). Timestamps rise strictly, from 0 on: as long as
    no record has one there is no entry."""

    def __init__(self, disk: Disk, path: str, base_offset: int, size_max: int, is_new: bool) -> None:
        super().__init__(disk, path, base_offset, TIME_ENTRY_SIZE, is_new)
        self.entries_max = size_max // TIME_ENTRY_SIZE
        self.timestamps: array[int] = array("q")
        self.stored_last_timestamp = NO_TIMESTAMP
        self.stored_last_offset = 0

    def load(self, log_size: int) -> None:
        """Learns from the file how many entries there are and the last of them; raises DamagedIndex or
        FileNotFoundError."""
        last = self.read_last()
        count = last.first + last.count
        timestamp, offset = NO_TIMESTAMP, 0
        if count > 0:
            timestamp, offset = last.value(count - 1, TIMESTAMP), last.value(count - 1, TIME_OFFSET)
            # Only the first entry may be of 1970; others like that are zeros in place of what is lost.
            if timestamp < count - 1 or offset < 0:
                raise DamagedIndex(f"{self.path} is out of order at its end")
            if log_size == 0:
                raise DamagedIndex(f"{self.path} has entries, its segment has no records")
        self.timestamps = array("q")
        self.offsets = array("i")
        self.stored_last_timestamp = timestamp
        self.stored_last_offset = offset
        self.stored = self.written = count
        self.on_disk = True
        self.loaded = True

    def take_off_disk(self) -> None:
        words: array[int] = array("i")
        words.frombytes(self.read(0, self.stored).data)
        halves: array[int] = array("i", bytes(self.stored * 8))
        halves[0::2] = words[0::3]
        halves[1::2] = words[1::3]
        timestamps: array[int] = array("q")
        timestamps.frombytes(halves.tobytes())
        offsets = words[2::3]
        if LITTLE_ENDIAN:
            timestamps.byteswap()
            offsets.byteswap()
        check_rising(timestamps, self.path)
        check_rising(offsets, self.path)
        timestamps.extend(self.timestamps)
        offsets.extend(self.offsets)
        self.reset()
        self.timestamps = timestamps
        self.offsets = offsets

    def release(self) -> None:
        if self.on_disk and self.written == self.count_all() and len(self.offsets) > 0:
            self.stored_last_timestamp = self.timestamps[-1]
            self.stored_last_offset = self.offsets[-1]
            self.stored = self.written
            self.timestamps = array("q")
            self.offsets = array("i")

    def reset(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("i")
        self.stored_last_timestamp = NO_TIMESTAMP
        self.stored_last_offset = 0
        self.loaded = True
        self.stored = self.written = 0
        self.on_disk = False

    def maybe_append(self, timestamp: int, offset: int) -> bool:
        """Adds an entry when the largest timestamp has grown since the last one."""
        if timestamp <= self.last_timestamp():
            return False
        self.timestamps.append(timestamp)
        self.offsets.append(offset - self.base_offset)
        return True

    @property
    def is_full(self) -> bool:
        # One place is kept for the entry that the segment gets when it is rolled.
        return self.stored + len(self.offsets) >= self.entries_max - 1

    def last_timestamp(self) -> int:
        return self.timestamps[-1] if len(self.timestamps) > 0 else self.stored_last_timestamp

    def last_offset(self) -> int:
        return self.base_offset + (self.offsets[-1] if len(self.offsets) > 0 else self.stored_last_offset)

    def lookup(self, timestamp: int) -> TimePlace:
        """The last entry whose timestamp is not above `timestamp`; the segment's start without one."""
        if self.stored == 0 or (len(self.timestamps) > 0 and self.timestamps[0] <= timestamp):
            entry = bisect_right(self.timestamps, timestamp) - 1
            if entry < 0:
                return TimePlace(NO_TIMESTAMP, self.base_offset, True)
            return TimePlace(self.timestamps[entry], self.base_offset + self.offsets[entry], True)
        first_timestamp = self.read(0, 1).value(0, TIMESTAMP)
        number, stretch = self.search(TIMESTAMP, timestamp, first_timestamp, self.stored_last_timestamp)
        if number == 0:
            return TimePlace(NO_TIMESTAMP, self.base_offset, True)
        offset = stretch.value(number - 1, TIME_OFFSET)
        if not 0 <= offset <= self.stored_last_offset:
            raise DamagedIndex(f"{self.path} is out of order at entry {number - 1}")
        return TimePlace(stretch.value(number - 1, TIMESTAMP), self.base_offset + offset, False)

    def truncate(self, offset: int, log_size: int) -> None:
        relative = offset - self.base_offset
        keep = bisect_left(self.offsets, relative)
        del self.offsets[keep:]
        del self.timestamps[keep:]
        keep += self.stored
        if self.stored > 0 and relative <= self.stored_last_offset:
            keep, _ = self.search(TIME_OFFSET, relative - 1, 0, self.stored_last_offset)
        if self.on_disk and self.written > keep:
            self.truncate_stored(keep)
        if keep < self.stored:
            self.load(log_size)

    def encode(self, first: int) -> bytes:
        first -= self.stored
        count = len(self.offsets) - first
        halves: array[int] = array("i")
        halves.frombytes(big_endian_bytes(self.timestamps[first:]))
        offsets: array[int] = array("i")
        offsets.frombytes(big_endian_bytes(self.offsets[first:]))
        words: array[int] = array("i", bytes(count * TIME_ENTRY_SIZE))
        words[0::3] = halves[0::2]
        words[1::3] = halves[1::2]
        words[2::3] = offsets
        return words.tobytes()

    def write(self) -> None:
        if self.loaded and not (self.on_disk and self.written == self.count_all()):
            self.write_behind(self.encode(self.written))

    def entries(self) -> list[tuple[int, int]]:
        """All of them, timestamp and relative offset: for checks, which may read the whole file."""
        stretch = self.read(0, self.stored)
        found = [(stretch.value(n, TIMESTAMP), stretch.value(n, TIME_OFFSET)) for n in range(self.stored)]
        found.extend(zip(self.timestamps, self.offsets, strict=True))
        return found


def check_rising(values: array[int], path: str) -> None:
    if values != array(values.typecode, sorted(values)):
        raise DamagedIndex(f"{path} is out of order")


def write_entries(disk: Disk, path: str, data: bytes, size: int) -> None:
    """Appends to an index file that has `size` bytes; whatever it has beyond them goes first: all of an index that is
    built anew, or what an append left that failed halfway."""
    file = disk.open(path, create=True)
    try:
        if file.size() > size:
            file.truncate(size)
        if data:
            file.append([data])
    finally:
        file.close()


def truncate_file(disk: Disk, path: str, size: int) -> None:
    file = disk.open(path, create=True)
    try:
        file.truncate(size)
    finally:
        file.close()
