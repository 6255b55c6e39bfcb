"""The aborted transactions of one segment, for readers that want committed records only.

An entry belongs to the segment that holds its abort marker. The file exists only when there is an entry, and each entry
is written when the marker is appended (aborts are rare). Those that were appended since the segment was opened are in
memory until it is closed; of the others a reader gets those it asks for from the file. Kafka: TransactionIndex.
"""

from __future__ import annotations

from struct import Struct

from moldau.storage.disk import Disk

ENTRY = Struct(">hqqqq")
ENTRY_SIZE = ENTRY.size
CURRENT_VERSION = 0
STRETCH_ENTRIES = 64  # of a file, read at once


class DamagedTransactionIndex(Exception):
    """The file does not make sense for its segment; it can be built again from the log."""


class AbortedTransaction:
    """What a fetch response says about one aborted transaction, and up to where everything was decided by then."""

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
    """`exists` says whether there is a file or an entry; without one nothing is ever opened."""

    __slots__ = ("base_offset", "disk", "entries", "exists", "on_disk", "path", "stored")

    def __init__(self, disk: Disk, path: str, base_offset: int, exists: bool) -> None:
        self.disk = disk
        self.path = path
        self.base_offset = base_offset
        self.exists = exists
        self.stored = -1 if exists else 0  # entries that only the file has; -1 when nobody has looked yet
        self.entries: list[AbortedTransaction] = []  # those behind them
        self.on_disk = True  # else the entries in memory are all there are, and the file is not to be believed

    def load(self) -> list[AbortedTransaction]:
        """All entries, for those who need all; raises DamagedTransactionIndex."""
        return self.read(0, self.count_stored()) + self.entries

    def count_stored(self) -> int:
        """Raises DamagedTransactionIndex when the file cannot be right."""
        if self.stored < 0:
            try:
                size = self.disk.size(self.path)
            except FileNotFoundError:
                raise DamagedTransactionIndex(f"{self.path} is gone") from None
            if size % ENTRY_SIZE != 0:
                raise DamagedTransactionIndex(f"{self.path} has {size} bytes, not a multiple of {ENTRY_SIZE}")
            self.stored = size // ENTRY_SIZE
        return self.stored

    def read(self, first: int, end: int) -> list[AbortedTransaction]:
        """Entries of the file, each compared with the one before it; raises DamagedTransactionIndex."""
        if end <= first:
            return []
        try:
            data = self.disk.read_at(self.path, first * ENTRY_SIZE, (end - first) * ENTRY_SIZE)
        except FileNotFoundError:
            raise DamagedTransactionIndex(f"{self.path} is gone") from None
        if len(data) != (end - first) * ENTRY_SIZE:
            raise DamagedTransactionIndex(f"{self.path} is shorter than it was")
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
        return entries

    def append(self, aborted: AbortedTransaction) -> None:
        count = self.count_stored() + len(self.entries)
        file = self.disk.open(self.path, create=True)
        try:
            size = count * ENTRY_SIZE if self.on_disk else 0
            if file.size() != size:
                file.truncate(size)  # a torn entry of an append that failed, or what was built anew
            missing = [] if self.on_disk else [entry.encode() for entry in self.entries]
            file.append([*missing, aborted.encode()])
        finally:
            file.close()
        self.exists = True
        self.on_disk = True
        self.entries.append(aborted)

    def truncate(self, offset: int) -> None:
        """Drops the entries whose marker is at `offset` or later; raises DamagedTransactionIndex."""
        if not self.exists:
            return
        stored = self.count_stored()
        keep = first_ending_from(self.entries, offset)
        keep_stored = self._first_stored_ending_from(offset) if keep == 0 else stored
        if keep_stored < stored or keep < len(self.entries):
            if self.on_disk:
                file = self.disk.open(self.path)
                try:
                    file.truncate((keep_stored + keep) * ENTRY_SIZE)
                finally:
                    file.close()
            self.stored = keep_stored
            del self.entries[keep:]

    def reset(self) -> None:
        if self.exists:
            self.disk.blocking().remove(self.path)
        self.exists = False
        self.on_disk = True
        self.stored = 0
        self.entries = []

    def replace(self, entries: list[AbortedTransaction]) -> None:
        """What the batches say; the file gets it when something is appended, or with `save`."""
        self.on_disk = False
        self.stored = 0
        self.entries = entries

    def save(self) -> None:
        """Puts what was built anew in place of the file, on the medium when this returns."""
        if not self.on_disk:
            self.disk.blocking().write_file(self.path, b"".join([entry.encode() for entry in self.entries]))
            self.on_disk = True

    def release(self) -> None:
        """Nothing is appended for now: what is in the file needs no memory."""
        if self.on_disk and self.stored >= 0:
            self.stored += len(self.entries)
            self.entries = []

    def collect(self, start_offset: int, end_offset: int, found: list[AbortedTransaction]) -> bool:
        """Adds those that overlap [start_offset, end_offset); True when later segments cannot add any. Raises
        DamagedTransactionIndex, having added nothing."""
        stored = self.count_stored()
        collected: list[AbortedTransaction] = []
        number = self._first_stored_ending_from(start_offset)
        is_last = False
        while number < stored and not is_last:
            end = min(stored, number + STRETCH_ENTRIES)
            is_last = collect_overlapping(self.read(number, end), start_offset, end_offset, collected)
            number = end
        found.extend(collected)
        return is_last or collect_overlapping(self.entries, start_offset, end_offset, found)

    def _first_stored_ending_from(self, offset: int) -> int:
        """The number of the first entry in the file whose marker is at `offset` or later."""
        low, high = 0, self.count_stored()
        while low < high:
            first = max(low, (low + high - STRETCH_ENTRIES) // 2)
            entries = self.read(first, min(high, first + STRETCH_ENTRIES))
            count = first_ending_from(entries, offset)
            if count == 0:
                high = first
            elif count == len(entries):
                low = first + count
            else:
                return first + count
        return low


def collect_overlapping(
    entries: list[AbortedTransaction], start_offset: int, end_offset: int, found: list[AbortedTransaction]
) -> bool:
    """True at an entry by whose time everything below the end was decided."""
    for number in range(first_ending_from(entries, start_offset), len(entries)):
        entry = entries[number]
        if entry.first_offset < end_offset:
            found.append(entry)
        if entry.last_stable_offset >= end_offset:
            return True
    return False


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
