"""The aborted transactions of one segment, for readers that want committed records only.

An entry belongs to the segment that holds its abort marker. The file exists only when there is an entry, and each entry
is written when the marker is appended (aborts are rare). Kafka: TransactionIndex.
"""

from __future__ import annotations

from struct import Struct

from moldau.storage.disk import Disk

ENTRY = Struct(">hqqqq")
CURRENT_VERSION = 0


class DamagedTransactionIndex(Exception):
    """The file does not make sense for its segment; it can be built again from the log."""


class AbortedTransaction:
    """What a fetch answer says about one aborted transaction, and up to where everything was decided by then."""

    __slots__ = ("first_offset", "last_offset", "last_stable_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.last_stable_offset = last_stable_offset

    def encode(self) -> bytes:
        return ENTRY.pack(
            CURRENT_VERSION, self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedTransaction) and self.encode() == other.encode()

    def __hash__(self) -> int:
        return hash(self.encode())

    def __repr__(self) -> str:
        return (
            f"AbortedTransaction(producer_id={self.producer_id}, first_offset={self.first_offset}, "
            f"last_offset={self.last_offset}, last_stable_offset={self.last_stable_offset})"
        )


class TransactionIndex:
    """`exists` says whether there is a file; without one nothing is ever opened."""

    __slots__ = ("base_offset", "disk", "entries", "exists", "path")

    def __init__(self, disk: Disk, path: str, base_offset: int, exists: bool) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.exists = exists
        self.entries: list[AbortedTransaction] | None = None if exists else []

    def load(self) -> list[AbortedTransaction]:
        """All entries; raises DamagedTransactionIndex."""
        if self.entries is None:
            data = self.disk.read_file(self.path)
            if len(data) % ENTRY.size != 0:
                raise DamagedTransactionIndex(f"{self.path} has {len(data)} bytes, not a multiple of {ENTRY.size}")
            entries = []
            last = self.base_offset - 1
            for version, producer_id, first_offset, last_offset, last_stable_offset in ENTRY.iter_unpack(data):
                if version > CURRENT_VERSION or version < 0:
                    raise DamagedTransactionIndex(f"{self.path} has an entry of version {version}")
                if last_offset <= last:
                    before = "its segment" if last < self.base_offset else "the one before it"
                    raise DamagedTransactionIndex(f"{self.path} has an entry that ends before {before}")
                last = last_offset
                entries.append(AbortedTransaction(producer_id, first_offset, last_offset, last_stable_offset))
            self.entries = entries
        return self.entries

    def append(self, aborted: AbortedTransaction) -> None:
        entries = self.load()
        file = self.disk.open(self.path, create=True)
        try:
            size = len(entries) * ENTRY.size
            if file.size() != size:
                file.truncate(size)  # a torn entry of an append that failed
            file.append([aborted.encode()])
        finally:
            file.close()
        self.exists = True
        entries.append(aborted)

    def truncate(self, offset: int) -> None:
        """Drops the entries whose marker is at `offset` or later."""
        if not self.exists:
            return
        entries = self.load()
        keep = [entry for entry in entries if entry.last_offset < offset]
        if len(keep) < len(entries):
            file = self.disk.open(self.path)
            try:
                file.truncate(len(keep) * ENTRY.size)
            finally:
                file.close()
            self.entries = keep

    def reset(self) -> None:
        if self.exists:
            self.disk.remove(self.path)
        self.exists = False
        self.entries = []

    def collect(self, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        """Adds those that overlap [start_offset, end_offset); True when later segments cannot add any."""
        entries = self.load()
        for number in range(first_ending_from(entries, start_offset), len(entries)):
            entry = entries[number]
            if entry.first_offset < end_offset:
                found.append(entry)
            if entry.last_stable_offset >= end_offset:
                return True
        return False

    def sync(self) -> None:
        if self.exists:
            file = self.disk.open(self.path)
            try:
                file.sync()
            finally:
                file.close()


def first_ending_from(entries: list[AbortedTransaction], offset: int) -> int:
    """The number of the first entry whose marker is at `offset` or later; entries are in the order of their markers."""
    low, high = 0, len(entries)
    while low < high:
        middle = (low + high) // 2
        if entries[middle].last_offset < offset:
            low = middle + 1
        else:
            high = middle
    return low
