"""Offset index and time index of one segment: sparse, sorted, append-only.

Entries of the active segment live in memory and reach the file at roll, flush and close; those of older segments are
loaded when somebody looks something up and may be dropped again. A file that does not make sense raises DamagedIndex
and is built anew from the log. Kafka: OffsetIndex, TimeIndex (there memory mapped; the files have the same bytes).
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left, bisect_right
from typing import Final

from moldau.storage.disk import Disk

OFFSET_ENTRY_SIZE: Final = 8
TIME_ENTRY_SIZE: Final = 12
NO_TIMESTAMP: Final = -1
LITTLE_ENDIAN: Final = sys.byteorder == "little"


class DamagedIndex(Exception):
    """The file is no index of its segment; it can be built again from the log."""


def big_endian_bytes(values: array[int]) -> bytes:
    if LITTLE_ENDIAN:
        swapped = array(values.typecode, values)
        swapped.byteswap()
        return swapped.tobytes()
    return values.tobytes()


class OffsetIndex:
    """Last offset of a batch (relative to the segment) -> position of that batch."""

    def __init__(self, disk: Disk, path: str, base_offset: int, size_max: int, loaded: bool) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.entries_max = size_max // OFFSET_ENTRY_SIZE
        self.offsets: array[int] = array("i")
        self.positions: array[int] = array("i")
        self.loaded = loaded  # an index that is not loaded is a file nobody looked at yet
        self.written = 0  # entries that the file has already
        self.on_disk = False
        self.used = False

    def load(self, log_size: int) -> None:
        """Reads the file; raises DamagedIndex or FileNotFoundError."""
        data = self.disk.read_file(self.path)
        if len(data) % OFFSET_ENTRY_SIZE != 0:
            raise DamagedIndex(f"{self.path} has {len(data)} bytes, not a multiple of {OFFSET_ENTRY_SIZE}")
        values: array[int] = array("i")
        values.frombytes(data)
        if LITTLE_ENDIAN:
            values.byteswap()
        offsets = values[0::2]
        positions = values[1::2]
        previous_offset = -1
        previous_position = 0  # the first batch never gets an entry: position 0 in a file means unused space
        for index in range(len(offsets)):
            if offsets[index] <= previous_offset or positions[index] <= previous_position:
                raise DamagedIndex(f"{self.path} is out of order at entry {index}")
            previous_offset = offsets[index]
            previous_position = positions[index]
        if previous_position >= log_size and len(offsets) > 0:
            raise DamagedIndex(f"{self.path} points beyond the end of its segment")
        self.offsets = offsets
        self.positions = positions
        self.written = len(offsets)
        self.on_disk = True
        self.loaded = True

    def unload(self) -> None:
        """Forgets the entries; they are read again when needed. Only for an index that is wholly in its file."""
        if self.loaded and self.on_disk and self.written == len(self.offsets):
            self.offsets = array("i")
            self.positions = array("i")
            self.loaded = False

    def reset(self) -> None:
        """Empty, to be filled again; the file is replaced at the next write."""
        self.offsets = array("i")
        self.positions = array("i")
        self.loaded = True
        self.written = 0
        self.on_disk = False

    def append(self, offset: int, position: int) -> None:
        self.offsets.append(offset - self.base_offset)
        self.positions.append(position)

    @property
    def is_full(self) -> bool:
        return len(self.offsets) >= self.entries_max

    def lookup(self, offset: int) -> int:
        """Position of the last indexed batch whose last offset is not above `offset`; 0 when there is none."""
        relative = offset - self.base_offset
        index = bisect_right(self.offsets, relative) if relative < 0x7FFFFFFF else len(self.offsets)
        return self.positions[index - 1] if index > 0 else 0

    def entry_at_or_before(self, position: int) -> int:
        """Number of the last entry whose batch starts at or before `position`, -1 when there is none."""
        return bisect_right(self.positions, position) - 1

    def truncate(self, offset: int) -> None:
        """Drops the entries of batches that hold `offset` or come after it."""
        relative = offset - self.base_offset
        keep = bisect_left(self.offsets, relative) if relative < 0x7FFFFFFF else len(self.offsets)
        if keep < len(self.offsets):
            del self.offsets[keep:]
            del self.positions[keep:]
        if self.on_disk and self.written > keep:
            cut_file(self.disk, self.path, keep * OFFSET_ENTRY_SIZE)
            self.written = keep

    def encode(self, first: int) -> bytes:
        values: array[int] = array("i", bytes((len(self.offsets) - first) * OFFSET_ENTRY_SIZE))
        values[0::2] = self.offsets[first:]
        values[1::2] = self.positions[first:]
        return big_endian_bytes(values)

    def write(self) -> None:
        """Brings the file up to date (and creates it, also when there are no entries)."""
        if not self.loaded or (self.on_disk and self.written == len(self.offsets)):
            return
        write_entries(self.disk, self.path, self.encode(self.written), not self.on_disk)
        self.written = len(self.offsets)
        self.on_disk = True


class TimeIndex:
    """Largest timestamp so far -> last offset of its batch (relative). Timestamps rise strictly."""

    def __init__(self, disk: Disk, path: str, base_offset: int, size_max: int, loaded: bool) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.entries_max = size_max // TIME_ENTRY_SIZE
        self.timestamps: array[int] = array("q")
        self.offsets: array[int] = array("i")
        self.loaded = loaded
        self.written = 0
        self.on_disk = False
        self.used = False

    def load(self, log_size: int) -> None:
        """Reads the file; raises DamagedIndex or FileNotFoundError."""
        data = self.disk.read_file(self.path)
        if len(data) % TIME_ENTRY_SIZE != 0:
            raise DamagedIndex(f"{self.path} has {len(data)} bytes, not a multiple of {TIME_ENTRY_SIZE}")
        words: array[int] = array("i")
        words.frombytes(data)
        timestamps: array[int] = array("q", bytes(len(data) // TIME_ENTRY_SIZE * 8))
        halves: array[int] = array("i", bytes(len(data) // TIME_ENTRY_SIZE * 8))
        halves[0::2] = words[0::3]
        halves[1::2] = words[1::3]
        offsets = words[2::3]
        timestamps = array("q")
        timestamps.frombytes(halves.tobytes())
        if LITTLE_ENDIAN:
            timestamps.byteswap()
            offsets.byteswap()
        previous_timestamp = 0  # no batch is of 1970: a file that lost its content to zeros has such entries
        previous_offset = -1
        for index in range(len(offsets)):
            if timestamps[index] <= previous_timestamp or offsets[index] < previous_offset:
                raise DamagedIndex(f"{self.path} is out of order at entry {index}")
            previous_timestamp = timestamps[index]
            previous_offset = offsets[index]
        if log_size == 0 and len(offsets) > 0:
            raise DamagedIndex(f"{self.path} has entries, its segment has no records")
        self.timestamps = timestamps
        self.offsets = offsets
        self.written = len(offsets)
        self.on_disk = True
        self.loaded = True

    def unload(self) -> None:
        if self.loaded and self.on_disk and self.written == len(self.offsets):
            self.timestamps = array("q")
            self.offsets = array("i")
            self.loaded = False

    def reset(self) -> None:
        self.timestamps = array("q")
        self.offsets = array("i")
        self.loaded = True
        self.written = 0
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
        return len(self.offsets) >= self.entries_max - 1

    def last_timestamp(self) -> int:
        return self.timestamps[-1] if len(self.timestamps) > 0 else NO_TIMESTAMP

    def last_offset(self) -> int:
        return self.base_offset + self.offsets[-1] if len(self.offsets) > 0 else self.base_offset

    def lookup(self, timestamp: int) -> int:
        """Offset of the last entry whose timestamp is not above `timestamp`; the segment's base offset without one."""
        index = bisect_right(self.timestamps, timestamp)
        return self.base_offset + self.offsets[index - 1] if index > 0 else self.base_offset

    def truncate(self, offset: int) -> None:
        relative = offset - self.base_offset
        keep = bisect_left(self.offsets, relative) if relative < 0x7FFFFFFF else len(self.offsets)
        if keep < len(self.offsets):
            del self.offsets[keep:]
            del self.timestamps[keep:]
        if self.on_disk and self.written > keep:
            cut_file(self.disk, self.path, keep * TIME_ENTRY_SIZE)
            self.written = keep

    def encode(self, first: int) -> bytes:
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
        if not self.loaded or (self.on_disk and self.written == len(self.offsets)):
            return
        write_entries(self.disk, self.path, self.encode(self.written), not self.on_disk)
        self.written = len(self.offsets)
        self.on_disk = True


def write_entries(disk: Disk, path: str, data: bytes, replace: bool) -> None:
    """Appends to an index file; with `replace` whatever the file had before goes first."""
    file = disk.open(path, create=True)
    try:
        if replace and file.size() > 0:
            file.truncate(0)
        if data:
            file.append([data])
    finally:
        file.close()


def cut_file(disk: Disk, path: str, size: int) -> None:
    file = disk.open(path, create=True)
    try:
        file.truncate(size)
    finally:
        file.close()
