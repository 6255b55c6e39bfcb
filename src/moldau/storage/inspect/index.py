"""Reads index files as they lie on disk, preallocated zeros and damage included."""

from __future__ import annotations

from struct import Struct

from moldau.storage.disk import Disk
from moldau.storage.index import OFFSET_ENTRY_SIZE, TIME_ENTRY_SIZE
from moldau.storage.inspect.batches import Unreadable

OFFSET_ENTRY = Struct(">ii")
TIME_ENTRY = Struct(">qi")
CORRUPT_INDEX = "org.apache.kafka.storage.internals.log.CorruptIndexException"

Entry = tuple[int, int]


def base_offset_of(name: str) -> int:
    """The offset that a file name begins with; raises Unreadable when it does not."""
    text = name.split(".")[0]
    try:
        return parse_java_long(text)
    except ValueError:
        said = f'For input string: "{text}"'
        raise Unreadable("java.lang.NumberFormatException", said) from None


def parse_java_long(text: str) -> int:
    if not text.lstrip("+-").isascii() or not text.lstrip("+-").isdigit() or len(text) > 20:
        raise ValueError(text)
    if not -(2**63) <= int(text) < 2**63:
        raise ValueError(text)
    return int(text)


class OffsetEntries:
    """The entries of an offset index, with absolute offsets."""

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        data = disk.read_file(path)
        self.path = path
        self.base_offset = base_offset
        self.size = len(data)
        count = len(data) // OFFSET_ENTRY_SIZE
        self.entries: list[Entry] = [
            (base_offset + relative, position)
            for relative, position in OFFSET_ENTRY.iter_unpack(data[: count * OFFSET_ENTRY_SIZE])
        ]

    def lookup(self, offset: int) -> int:
        """Position of the last entry that is not above the offset, by bisection over all entries as Kafka does."""
        entries = self.entries
        if not entries or entries[0][0] > offset:
            return 0
        low, high = 0, len(entries) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if entries[middle][0] > offset:
                high = middle - 1
            elif entries[middle][0] < offset:
                low = middle
            else:
                return entries[middle][1]
        return entries[low][1]

    def check_sanity(self) -> None:
        """What Kafka checks when it starts; raises Unreadable."""
        last = self.entries[-1][0] if self.entries else self.base_offset
        if self.entries and last < self.base_offset:
            raise Unreadable(
                CORRUPT_INDEX,
                f"Corrupt index found, index file {self.path} has non-zero size but the last offset is {last}"
                f" which is less than the base offset {self.base_offset}",
            )
        if self.size % OFFSET_ENTRY_SIZE != 0:
            raise _odd_length(self.path, self.size, OFFSET_ENTRY_SIZE)


class TimeEntries:
    """The entries of a time index: timestamp and absolute offset."""

    def __init__(self, disk: Disk, path: str, base_offset: int) -> None:
        data = disk.read_file(path)
        self.path = path
        self.base_offset = base_offset
        self.size = len(data)
        count = len(data) // TIME_ENTRY_SIZE
        self.entries: list[Entry] = [
            (timestamp, base_offset + relative)
            for timestamp, relative in TIME_ENTRY.iter_unpack(data[: count * TIME_ENTRY_SIZE])
        ]

    def check_sanity(self) -> None:
        if self.entries:
            (first_timestamp, _), (last_timestamp, last_offset) = self.entries[0], self.entries[-1]
            if last_timestamp < first_timestamp:
                raise Unreadable(
                    CORRUPT_INDEX,
                    f"Corrupt time index found, time index file ({self.path}) has non-zero size but the last timestamp"
                    f" is {last_timestamp} which is less than the first timestamp {first_timestamp}",
                )
            if last_offset < self.base_offset:
                raise Unreadable(
                    CORRUPT_INDEX,
                    f"Corrupt time index found, time index file ({self.path}) has non-zero size but the last offset is"
                    f" {last_offset} which is less than the first offset {self.base_offset}",
                )
        if self.size % TIME_ENTRY_SIZE != 0:
            raise _odd_length(self.path, self.size, TIME_ENTRY_SIZE)


def _odd_length(path: str, size: int, entry_size: int) -> Unreadable:
    kind, dot = ("Time index", "") if entry_size == TIME_ENTRY_SIZE else ("Index", ".")
    return Unreadable(
        CORRUPT_INDEX,
        f"{kind} file {path} is corrupt, found {size} bytes which is neither positive nor a multiple of"
        f" {entry_size}{dot}",
    )
