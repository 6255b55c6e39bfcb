"""What a share partition reads from its log: whole batches, where they lie, and which of them were aborted."""

from __future__ import annotations

from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.batch import BatchHeader, split_batches
from moldau.replication.partition import Partition
from moldau.storage.control_markers import read_marker
from moldau.storage.disk import File

READ_BYTES_MIN = 16 << 10


class ShareRead:
    """One read from `offset` on. `keep` cuts it down to the batches that a member gets."""

    def __init__(self, offset: int, source: FileRecords, aborted: list[tuple[int, int]]) -> None:
        self.offset = offset
        self.source = source
        self.size = source.size
        self.aborted = aborted
        self.data = b""
        self.headers: list[BatchHeader] = []
        self.ranges: list[tuple[int, int]] = []
        self.aborted_ranges: list[tuple[int, int]] = []
        self.records = MemoryRecords(b"", 0, 0)

    def keep(self, first: int, last: int) -> None:
        """Only batches with something between the two offsets are sent."""
        start, end = -1, -1
        for header in self.headers:
            if header.last_offset < first or header.base_offset > last:
                continue
            if start < 0:
                start = int(header.position)
            end = int(header.end)
        # What a member holds may be what compaction has left out: then there is nothing to send.
        self.records = MemoryRecords(self.data, start, end) if start >= 0 else MemoryRecords(b"", 0, 0)


def read_batches(read: ShareRead, partition: Partition, records: int, size: int) -> None:
    """Fetches whole batches with so many offsets from the beginning on, if there are as many: what the member cannot
    have is not read. `size` is what that will take, most likely. Raises KafkaError when the disk fails."""
    file = read.source.file
    assert isinstance(file, File)
    size = min(read.source.size, max(size, READ_BYTES_MIN))
    while True:
        try:
            read.data = file.read(read.source.position, size)
        except OSError as error:
            log = partition.log
            raise (KafkaError(-1) if log is None else log.storage_failure(error)) from error
        headers = split_batches(read.data, 0, len(read.data))
        if size == read.source.size or (headers and headers[-1].last_offset >= read.offset + records - 1):
            break
        size = min(read.source.size, 4 * size)
    read.headers = [header for header in headers if header.last_offset >= read.offset]
    read.ranges = [(int(header.base_offset), int(header.last_offset)) for header in read.headers]
    if read.aborted:
        read.aborted_ranges = find_aborted(read)


def find_aborted(read: ShareRead) -> list[tuple[int, int]]:
    """The offsets of batches whose transaction was aborted: from its first one to its marker."""
    waiting = sorted((first, producer_id) for producer_id, first in read.aborted)
    active: set[int] = set()
    found: list[tuple[int, int]] = []
    for header in read.headers:
        while waiting and waiting[0][0] <= header.last_offset:
            active.add(waiting.pop(0)[1])
        producer_id = int(header.producer_id)
        if header.is_control:
            if read_marker(read.data, header) is not None:
                active.discard(producer_id)
        elif header.is_transactional and producer_id in active:
            found.append((int(header.base_offset), int(header.last_offset)))
    return found
