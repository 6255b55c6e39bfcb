"""One segment of a log: the .log file and its indexes; appends, lookups, truncation, when to roll.

Invariants: `size` counts whole batches only and equals the file's size between calls; `recent_*` describe the last
batches of the segment without a gap, so that reads near the end need no look at the disk. Kafka: LogSegment.
"""

from __future__ import annotations

import errno
import logging
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

from librt.strings import read_i32_be, read_i64_be
from mypy_extensions import i64

from moldau.records.batch import (
    BATCH_LENGTH,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LAST_OFFSET_DELTA,
    LENGTH_OVERHEAD,
    MAGIC,
    MAX_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
    read_header,
)
from moldau.records.walk import find_timestamp
from moldau.storage.disk import Buffer, Disk, File
from moldau.storage.index import NO_TIMESTAMP, DamagedIndex, OffsetIndex, TimeIndex
from moldau.storage.txn_index import TransactionIndex

logger = logging.getLogger("moldau.storage")

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
DELETED_SUFFIX: Final = ".deleted"

RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF
SEARCH_CHUNK: Final = 8192
SCAN_CHUNK: Final = 1 << 20
RECENT_MAX: Final = 64
RECENT_KEPT: Final = 32
UNKNOWN: Final = -2  # a timestamp that nobody looked up yet


class DamagedSegment(Exception):
    """The bytes of the .log file are not the batches they should be."""


class BatchScanner:
    """Walks the batches of a file one by one, each wholly in memory: `data` holds it at `header.position`.

    `next` returns None at the end or where the bytes stop making sense; `problem` then says why (empty at the end).
    """

    def __init__(self, file: File, position: int, end: int) -> None:
        self.file = file
        self.end = end
        self.position = position  # of the batch that `next` returned last
        self.next_position = position
        self.data = b""
        self.data_position = position
        self.problem = ""

    def next(self) -> BatchHeader | None:
        position: i64 = self.next_position
        remaining: i64 = self.end - position
        if remaining <= 0:
            return None
        if remaining < HEADER_SIZE:
            self.problem = f"{remaining} bytes at the end are no batch"
            return None
        index: i64 = position - self.data_position
        if index + HEADER_SIZE > len(self.data):
            self._fill(position, SCAN_CHUNK)
            index = 0
            if len(self.data) < HEADER_SIZE:
                self.problem = "the file is shorter than expected"
                return None
        size: i64 = i64(read_i32_be(self.data, index + BATCH_LENGTH)) + LENGTH_OVERHEAD
        if size < HEADER_SIZE or size > remaining:
            self.problem = f"a batch of {size} bytes cannot be in {remaining} bytes"
            return None
        if index + size > len(self.data):
            self._fill(position, max(size, SCAN_CHUNK))
            index = 0
        try:
            header = read_header(self.data, index, len(self.data))
        except CorruptBatch as error:
            self.problem = str(error)
            return None
        self.position = position
        self.next_position = position + size
        return header

    def _fill(self, position: int, size: int) -> None:
        self.data = self.file.read(position, min(size, self.end - position))
        self.data_position = position


def sync_file(disk: Disk, path: str) -> None:
    file = disk.open(path)
    file.sync()
    file.close()


class Segment:
    """`size` and the `has_*` flags come from the listing of the folder; no file is opened before it is needed."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        base_offset: int,
        index_interval_bytes: int,
        index_bytes_max: int,
        created_ms: int,
        roll_jitter_ms: int,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.size = 0
        self.index_interval_bytes = index_interval_bytes
        self.index_bytes_max = index_bytes_max
        self.created_ms = created_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.file: File | None = None
        self.first_timestamp: int = UNKNOWN
        self.max_timestamp: int = NO_TIMESTAMP
        self.max_timestamp_offset: int = base_offset
        self.timestamps_known = True
        self.bytes_since_index_entry = 0
        self.recent_last_offsets: list[int] = []
        self.recent_positions: list[int] = []
        self.bound_offset = -1  # the last upper bound that was looked up, and its position
        self.bound_position = 0
        self.reserved_bytes = 0  # set aside for the file when it is created, and given back when nothing is appended
        self.torn = False  # bytes of a failed append could not be cut off: nothing may be appended any more
        self.indexes_are_new = True  # no index file yet: the entries in memory are all there are
        self.transaction_index_exists = False
        self.offset_entries: OffsetIndex | None = None
        self.time_entries: TimeIndex | None = None
        self.transactions: TransactionIndex | None = None

    @staticmethod
    def found(
        disk: Disk,
        directory: str,
        base_offset: int,
        size: int,
        has_transaction_index: bool,
        index_interval_bytes: int,
        index_bytes_max: int,
        now_ms: int,
    ) -> Segment:
        """A segment whose files are there already. Its indexes are read when first needed."""
        segment = Segment(disk, directory, base_offset, index_interval_bytes, index_bytes_max, now_ms, 0)
        segment.size = size
        segment.timestamps_known = size == 0
        segment.indexes_are_new = False
        segment.transaction_index_exists = has_transaction_index
        return segment

    # Files

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}"

    def move_to(self, directory: str) -> None:
        """Its files are in another folder now; the open one has followed."""
        self.directory = directory
        if self.offset_entries is not None:
            self.offset_entries.path = self.path(INDEX_SUFFIX)
        if self.time_entries is not None:
            self.time_entries.path = self.path(TIME_INDEX_SUFFIX)
        if self.transactions is not None:
            self.transactions.path = self.path(TRANSACTION_INDEX_SUFFIX)

    def log_file(self) -> File:
        file = self.file
        if file is None:
            file = self.disk.open(self.path(LOG_SUFFIX), create=True)
            self.file = file
        return file

    def create(self) -> None:
        """Creates the .log file; bytes that an earlier file of this name left behind go."""
        file = self.log_file()
        if file.size() > 0:
            file.truncate(0)
        if self.reserved_bytes > 0:
            try:
                file.reserve(self.reserved_bytes)
            except OSError as error:
                logger.info("%s grows as it is written, no space was set aside: %s", self.path(LOG_SUFFIX), error)

    def give_space_back(self) -> None:
        """Nothing is appended any more: the file takes no more space than it has bytes."""
        if self.reserved_bytes > 0:
            self.log_file().truncate(self.size)
            self.reserved_bytes = 0

    def close_files(self) -> None:
        if self.file is not None:
            self.file.close()
            self.file = None

    def file_suffixes(self) -> list[str]:
        """Those of the files this segment has or may have, in the order in which they are renamed."""
        return [LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX]

    # Indexes

    def offset_index(self) -> OffsetIndex:
        index = self.offset_entries
        if index is None:
            index = OffsetIndex(
                self.disk,
                self.path(INDEX_SUFFIX),
                self.base_offset,
                self.index_bytes_max,
                self.indexes_are_new or self.size == 0,
            )
            self.offset_entries = index
        if not index.loaded:
            try:
                index.load(self.size)
            except (DamagedIndex, FileNotFoundError) as error:
                logger.warning("building the offset index of %s anew: %s", self.path(LOG_SUFFIX), error)
                self.rebuild_indexes()
        index.used = True
        return index

    def time_index(self) -> TimeIndex:
        index = self.time_entries
        if index is None:
            index = TimeIndex(
                self.disk,
                self.path(TIME_INDEX_SUFFIX),
                self.base_offset,
                self.index_bytes_max,
                self.indexes_are_new or self.size == 0,
            )
            self.time_entries = index
        if not index.loaded:
            try:
                index.load(self.size)
            except (DamagedIndex, FileNotFoundError) as error:
                logger.warning("building the time index of %s anew: %s", self.path(LOG_SUFFIX), error)
                self.rebuild_indexes()
        index.used = True
        return index

    def transaction_index(self) -> TransactionIndex:
        index = self.transactions
        if index is None:
            index = TransactionIndex(
                self.disk, self.path(TRANSACTION_INDEX_SUFFIX), self.base_offset, self.transaction_index_exists
            )
            self.transactions = index
        return index

    def rebuild_indexes(self) -> None:
        """Fills both indexes from the log again. Batches were checked before; their checksums are not looked at."""
        self.reset_indexes()
        scanner = BatchScanner(self.log_file(), 0, self.size)
        header = scanner.next()
        while header is not None:
            self.index_batch(header.last_offset, header.max_timestamp, scanner.position, header.size)
            header = scanner.next()
        if scanner.problem:
            raise DamagedSegment(f"{self.path(LOG_SUFFIX)} at {scanner.next_position}: {scanner.problem}")

    def reset_indexes(self) -> None:
        """Both indexes empty, loaded and not on disk; timestamps and recent batches forgotten."""
        if self.offset_entries is None:
            self.offset_entries = OffsetIndex(
                self.disk, self.path(INDEX_SUFFIX), self.base_offset, self.index_bytes_max, True
            )
        if self.time_entries is None:
            self.time_entries = TimeIndex(
                self.disk, self.path(TIME_INDEX_SUFFIX), self.base_offset, self.index_bytes_max, True
            )
        self.offset_entries.reset()
        self.time_entries.reset()
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = self.base_offset
        self.timestamps_known = True
        self.bytes_since_index_entry = 0
        self.forget_recent()

    def forget_recent(self) -> None:
        self.recent_last_offsets = []
        self.recent_positions = []
        self.bound_offset = -1

    def load_timestamps(self) -> None:
        """The last entry of a closed segment's time index is its largest timestamp."""
        if not self.timestamps_known:
            index = self.time_index()
            if not self.timestamps_known and len(index.offsets) == 0:
                # A closed segment with records has an entry; when it is lost, the batches know.
                self.rebuild_indexes()
            if not self.timestamps_known:
                self.max_timestamp = index.last_timestamp()
                self.max_timestamp_offset = index.last_offset()
                self.timestamps_known = True

    def largest_timestamp(self) -> int:
        """For retention: without any timestamp, the time at which the segment was created or found."""
        self.load_timestamps()
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    def unload_indexes(self) -> None:
        """Gives memory back when nobody looked anything up since the last call. Only for segments that are closed."""
        offset_index = self.offset_entries
        if offset_index is not None:
            if not offset_index.used:
                offset_index.unload()
            offset_index.used = False
        time_index = self.time_entries
        if time_index is not None:
            if not time_index.used:
                time_index.unload()
            time_index.used = False

    # Appending

    def append(self, parts: Sequence[Buffer], size: int, headers: list[BatchHeader]) -> None:
        """Writes the batches in one go. When it fails nothing has changed, or `torn` is set."""
        if self.torn:
            raise OSError(errno.EIO, "the segment has a torn end that could not be cut off", self.path(LOG_SUFFIX))
        if self.offset_entries is None or not self.offset_entries.loaded or not self.timestamps_known:
            # Everything that may fail comes before the write: afterwards the batch is in the log.
            self.offset_index()
            self.time_index()
            self.load_timestamps()
        file = self.log_file()
        try:
            written = file.append(parts)
        except OSError:
            self._cut_torn_end(file)
            raise
        if written != size:
            self._cut_torn_end(file)
            raise OSError(errno.EIO, f"{written} of {size} bytes were written", self.path(LOG_SUFFIX))
        position: i64 = self.size
        self.size = position + size
        for header in headers:
            self.index_batch(header.last_offset, header.max_timestamp, position, header.size)
            position += header.size

    def _cut_torn_end(self, file: File) -> None:
        try:
            file.truncate(self.size)
            # Else a power loss may bring the torn end back, in a segment that is flushed and not looked at again.
            file.sync()
        except OSError:
            self.torn = True

    def index_batch(self, last_offset: i64, max_timestamp: i64, position: i64, size: i64) -> None:
        """Notes a batch that lies at `position`, with an index entry when the last one is far enough back."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.bytes_since_index_entry > self.index_interval_bytes:
            self.offset_index().append(last_offset, position)
            self.time_index().maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.bytes_since_index_entry = 0
        self.bytes_since_index_entry += size
        recent = self.recent_last_offsets
        if len(recent) >= RECENT_MAX:
            del recent[: RECENT_MAX - RECENT_KEPT]
            del self.recent_positions[: RECENT_MAX - RECENT_KEPT]
        recent.append(last_offset)
        self.recent_positions.append(position)

    def should_roll(
        self,
        added_bytes: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
        segment_bytes: int,
        segment_ms: int,
    ) -> bool:
        """Whether a batch must go to a new segment: size, record time, full index, offset too far from the base."""
        size = self.size
        if size > segment_bytes - added_bytes:
            return True
        if last_offset - self.base_offset > RELATIVE_OFFSET_MAX:
            return True
        if size == 0:
            return False
        first = self.first_timestamp
        if first == UNKNOWN:
            first = self.load_first_timestamp()
        waited_ms = max_timestamp - first if first >= 0 else now_ms - self.created_ms
        if waited_ms > segment_ms - self.roll_jitter_ms:
            return True
        offset_index = self.offset_entries
        if offset_index is not None and offset_index.loaded and offset_index.is_full:
            return True
        time_index = self.time_entries
        return time_index is not None and time_index.loaded and time_index.is_full

    def load_first_timestamp(self) -> int:
        """The largest timestamp of the first batch: segments roll by its distance to what comes in."""
        if self.size < HEADER_SIZE:
            return UNKNOWN
        data = self.log_file().read(0, HEADER_SIZE)
        if len(data) == HEADER_SIZE:
            self.first_timestamp = read_i64_be(data, MAX_TIMESTAMP)
        return self.first_timestamp

    def finish_indexes(self) -> None:
        """At a roll and at a clean stop: the largest timestamp becomes the last time index entry; files are written."""
        self.give_space_back()
        if self.size == 0 and self.indexes_are_new:
            return  # an empty segment needs no index files
        if self.offset_entries is None and self.time_entries is None and not self.indexes_are_new:
            return  # nothing was appended or looked up since the files were found
        self.load_timestamps()
        time_index = self.time_index()
        time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.write_indexes()

    def write_indexes(self) -> None:
        self.offset_index().write()
        self.time_index().write()
        self.indexes_are_new = False

    # Looking up

    def find_batch(self, offset: int) -> tuple[int, int]:
        """(position, size) of the first batch that ends at or after `offset`; (-1, 0) when there is none."""
        recent = self.recent_last_offsets
        count = len(recent)
        if count > 0:
            index = bisect_left(recent, offset)
            if index == count:
                return -1, 0
            position = self.recent_positions[index]
            if index > 0 or position == 0:
                end = self.recent_positions[index + 1] if index + 1 < count else self.size
                return position, end - position
        if self.size == 0:
            return -1, 0
        found = self._search(offset, self.offset_index().lookup(offset))
        if found[0] == -2:
            logger.warning("building the indexes of %s anew: the offset index is wrong", self.path(LOG_SUFFIX))
            self.rebuild_indexes()
            found = self._search(offset, self.offset_index().lookup(offset))
        if found[0] == -2:
            raise DamagedSegment(f"{self.path(LOG_SUFFIX)} has no batch where its index points")
        return found

    def _search(self, offset: i64, start: i64) -> tuple[int, int]:
        """Walks the headers from `start` on; (-2, 0) when `start` is not where the index must have pointed."""
        file = self.log_file()
        size: i64 = self.size
        position: i64 = start
        first = True
        while position + HEADER_SIZE <= size:
            data = file.read(position, min(SEARCH_CHUNK, size - position))
            index: i64 = 0
            while index + HEADER_SIZE <= len(data):
                base_offset = read_i64_be(data, index)
                batch_size: i64 = i64(read_i32_be(data, index + BATCH_LENGTH)) + LENGTH_OVERHEAD
                sane = data[index + MAGIC] == CURRENT_MAGIC and batch_size >= HEADER_SIZE
                if not sane or position + index + batch_size > size or (first and start > 0 and base_offset > offset):
                    if start > 0:
                        return -2, 0
                    raise DamagedSegment(f"{self.path(LOG_SUFFIX)} has no batch at {position + index}")
                first = False
                if base_offset + i64(read_i32_be(data, index + LAST_OFFSET_DELTA)) >= offset:
                    return position + index, batch_size
                index += batch_size
            if index == 0:
                break
            position += index
        return -1, 0

    def position_of_bound(self, offset: int) -> int:
        """Where the batches that lie wholly below `offset` end."""
        if offset == self.bound_offset:
            return self.bound_position
        position = self.find_batch(offset)[0]
        if position < 0:
            return self.size
        self.bound_offset = offset
        self.bound_position = position
        return position

    def offset_behind(self, position: int) -> int:
        """An offset above all that lies before this boundary of batches, as low as can be told without reading; -1 when
        nothing is known to follow."""
        index = self.offset_index()
        entry = bisect_left(index.positions, position)
        if entry < len(index.positions):
            return index.base_offset + index.offsets[entry]
        recent = bisect_left(self.recent_positions, position)
        return self.recent_last_offsets[recent] if recent < len(self.recent_positions) else -1

    def whole_batches_before(self, start: int, limit: int, first_size: int) -> int:
        """A batch boundary in [start, limit], near the limit. Index entries are boundaries: cutting there costs no
        read and loses no more than what lies between two entries."""
        if start + first_size > limit:
            return start
        best = start + first_size
        recent = self.recent_positions
        if recent and recent[0] <= limit:
            return max(best, recent[bisect_right(recent, limit) - 1])
        index = self.offset_index()
        entry = index.entry_at_or_before(limit)
        if entry >= 0 and index.positions[entry] > best:
            return index.positions[entry]
        data = self.log_file().read(best, min(limit - best, SEARCH_CHUNK))
        skipped: i64 = 0
        while skipped + HEADER_SIZE <= len(data):
            size: i64 = i64(read_i32_be(data, skipped + BATCH_LENGTH)) + LENGTH_OVERHEAD
            if size < HEADER_SIZE or best + skipped + size > limit:
                break
            skipped += size
        return best + skipped

    def find_timestamp(self, timestamp: int, start_offset: int) -> tuple[int, int, int] | None:
        """(offset, timestamp, leader epoch) of the first record from `start_offset` on that is not older."""
        if self.size == 0:
            return None
        from_offset = max(self.time_index().lookup(timestamp), start_offset)
        position = self.offset_index().lookup(from_offset)
        scanner = BatchScanner(self.log_file(), position, self.size)
        header = scanner.next()
        while header is not None:
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                found = find_timestamp(scanner.data, header, timestamp, start_offset)
                if found is not None:
                    return found[1], found[0], header.partition_leader_epoch
            header = scanner.next()
        return None

    def read_next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on."""
        position = 0
        index = self.offset_index()
        if len(index.positions) > 0:
            position = index.positions[-1]
        scanner = BatchScanner(self.log_file(), position, self.size)
        next_offset = self.base_offset
        header = scanner.next()
        while header is not None:
            next_offset = header.last_offset + 1
            header = scanner.next()
        if scanner.problem:
            raise DamagedSegment(f"{self.path(LOG_SUFFIX)} at {scanner.next_position}: {scanner.problem}")
        return next_offset

    # Cutting

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Removes every batch that holds `offset` or a later one; returns how many bytes that were."""
        position = self.find_batch(offset)[0]
        self.offset_index().truncate(offset)
        self.time_index().truncate(offset)
        self.transaction_index().truncate(offset)
        self.transaction_index_exists = self.transaction_index().exists
        if position < 0:
            return 0
        removed = self.size - position
        file = self.log_file()
        file.truncate(position)
        file.sync()  # else a power loss could bring the cut data back, under segments that were begun since
        self.size = position
        self.torn = False
        self.forget_recent()
        self.bytes_since_index_entry = 0
        if position == 0:
            self.created_ms = now_ms
            self.first_timestamp = UNKNOWN
            self.max_timestamp = NO_TIMESTAMP
            self.max_timestamp_offset = self.base_offset
            self.timestamps_known = True
        else:
            self._find_max_timestamp()
        return removed

    def _find_max_timestamp(self) -> None:
        """After a cut: the last time index entry that is left, or a batch behind the place it points at."""
        time_index = self.time_index()
        self.max_timestamp = time_index.last_timestamp()
        self.max_timestamp_offset = time_index.last_offset()
        self.timestamps_known = True
        position = self.offset_index().lookup(self.max_timestamp_offset)
        scanner = BatchScanner(self.log_file(), position, self.size)
        header = scanner.next()
        while header is not None:
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.last_offset
            header = scanner.next()

    # Durability

    def sync(self) -> None:
        """The log on the medium, and the index files that were written.

        An index that is missing or makes no sense is built anew; one that lost its last entries, or is again what it
        was before it was written anew, looks whole and is not.
        """
        self.log_file().sync()
        self.sync_indexes()

    def sync_indexes(self) -> None:
        if self.offset_entries is not None and self.offset_entries.written > 0:
            sync_file(self.disk, self.path(INDEX_SUFFIX))
        if self.time_entries is not None and self.time_entries.written > 0:
            sync_file(self.disk, self.path(TIME_INDEX_SUFFIX))
        if self.transactions is not None:
            self.transactions.sync()

    def rename_files(self, added_suffix: str) -> list[str]:
        """Gives every file of this segment a further suffix; returns the new paths. An open file goes on being read."""
        renamed = []
        for suffix in self.file_suffixes():
            path = self.path(suffix)
            if self.disk.exists(path):
                self.disk.rename(path, path + added_suffix)
                renamed.append(path + added_suffix)
        return renamed
