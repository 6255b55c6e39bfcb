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
)
from moldau.records.walk import find_timestamp
from moldau.storage.batch_scanner import BatchScanner
from moldau.storage.disk import Buffer, Disk, File
from moldau.storage.index import NO_TIMESTAMP, DamagedIndex, OffsetIndex, Place, TimeIndex, TimePlace
from moldau.storage.txn_index import TransactionIndex

logger = logging.getLogger("moldau.storage")

LOG_SUFFIX: Final = ".log"
INDEX_SUFFIX: Final = ".index"
TIME_INDEX_SUFFIX: Final = ".timeindex"
TRANSACTION_INDEX_SUFFIX: Final = ".txnindex"
DELETED_SUFFIX: Final = ".deleted"

RELATIVE_OFFSET_MAX: Final = 0x7FFFFFFF
SEARCH_CHUNK: Final = 8192
RECENT_MAX: Final = 64
RECENT_KEPT: Final = 32
UNKNOWN: Final = -2  # a timestamp that nobody looked up yet


class DamagedSegment(Exception):
    """The bytes of the .log file are not the batches they should be."""


class Segment:
    """`size` and the `has_*` flags come from the listing of the directory; no file is opened before it is needed."""

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
        self.indexed_from = 0  # every batch from this position on has an index entry, appended by this process
        self.recent_last_offsets: list[int] = []
        self.recent_positions: list[int] = []
        self.bound_offset = -1  # the last upper bound that was looked up, and its position
        self.bound_position = 0
        self.seen_offset = -1  # of the batch that an index entry was last compared with; a read may begin there
        self.seen_position = -1
        self.seen_size = 0
        self.reserved_bytes = 0  # set aside for the file when it is created, and given back when nothing is appended
        self.torn = False  # bytes of a failed append could not be truncated: nothing may be appended any more
        self.truncation_unsynced = False  # such bytes were truncated, and a power loss could bring them back
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
        *,
        size: int,
        has_transaction_index: bool,
        index_interval_bytes: int,
        index_bytes_max: int,
        now_ms: int,
    ) -> Segment:
        """A segment whose files are there already. Its indexes are read when first needed."""
        segment = Segment(disk, directory, base_offset, index_interval_bytes, index_bytes_max, now_ms, 0)
        segment.size = size
        segment.indexed_from = size
        segment.timestamps_known = size == 0
        segment.indexes_are_new = False
        segment.transaction_index_exists = has_transaction_index
        return segment

    # Files

    def path(self, suffix: str) -> str:
        return f"{self.directory}/{self.base_offset:020d}{suffix}"

    def move_to(self, directory: str) -> None:
        """Its files are in another directory now; the open one has followed."""
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
                logger.info(
                    "cannot preallocate segment %s, it grows as it is written: %s", self.path(LOG_SUFFIX), error
                )

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
                self.rebuild_indexes(str(error))
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
                self.rebuild_indexes(str(error))
        return index

    def transaction_index(self) -> TransactionIndex:
        index = self.transactions
        if index is None:
            index = TransactionIndex(
                self.disk, self.path(TRANSACTION_INDEX_SUFFIX), self.base_offset, self.transaction_index_exists
            )
            self.transactions = index
        return index

    def rebuild_indexes(self, reason: str) -> None:
        """Fills both indexes from the log again. Batches were checked before; their checksums are not looked at.

        This one read waits for the medium, whoever asks: an index that is built in part must not be left behind.
        """
        logger.warning("rebuilding the indexes of segment %s: %s", self.path(LOG_SUFFIX), reason)
        refused_cold, self.disk.refuses_cold = self.disk.refuses_cold, False
        try:
            self._fill_indexes()
        finally:
            self.disk.refuses_cold = refused_cold

    def _fill_indexes(self) -> None:
        self.reset_indexes()
        scanner = BatchScanner(self.log_file(), 0, self.size)
        header = scanner.next()
        while header is not None:
            self.index_batch(header.last_offset, header.max_timestamp, scanner.position, header.size)
            header = scanner.next()
        if scanner.problem:
            # What was learned of one part is not to be taken for the whole.
            self.offset_entries = None
            self.time_entries = None
            self.timestamps_known = False
            self.forget_recent()
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
        self.seen_offset = self.seen_position = -1

    def load_timestamps(self) -> None:
        """The last entry of a closed segment's time index is its largest timestamp."""
        if not self.timestamps_known:
            index = self.time_index()
            timestamp = index.last_timestamp()
            if not self.timestamps_known and timestamp <= 0:
                is_lost = self._has_later_batch(timestamp)
                if is_lost and not self.timestamps_known:
                    self.rebuild_indexes(f"{index.path} has lost its entries")
            if not self.timestamps_known:
                self.max_timestamp = timestamp
                self.max_timestamp_offset = index.last_offset()
                self.timestamps_known = True

    def _has_later_batch(self, timestamp: int) -> bool:
        """Whether the first batch or the last one of the index has a later timestamp. Records may all be of 1970, or
        have no timestamp at all; a time index that says so may also be one that was lost."""
        last = self._last_place().position
        return self._timestamp_at(0) > timestamp or self._timestamp_at(last) > timestamp

    def _timestamp_at(self, position: int) -> int:
        data = self.log_file().read(position, HEADER_SIZE)
        if len(data) < HEADER_SIZE:
            raise DamagedSegment(f"{self.path(LOG_SUFFIX)} has no batch at {position}")
        return read_i64_be(data, MAX_TIMESTAMP)

    def largest_timestamp(self) -> int:
        """For retention: without any timestamp, the time at which the segment was created or found."""
        self.load_timestamps()
        return self.max_timestamp if self.max_timestamp >= 0 else self.created_ms

    def release_indexes(self) -> None:
        """Nothing is appended for now: the index files know what was in memory."""
        if self.offset_entries is not None:
            self.offset_entries.release()
        if self.time_entries is not None:
            self.time_entries.release()
        if self.transactions is not None:
            self.transactions.release()

    def save_rebuilt(self) -> None:
        """Indexes that were built anew take the place of the files, so that it need not be done again. In one go and
        synced: a file that is half there may look whole, and nobody walks a segment below the recovery point."""
        offset_index = self.offset_entries
        if offset_index is not None and offset_index.loaded and not offset_index.on_disk and self.size > 0:
            self.disk.blocking().write_file(offset_index.path, offset_index.encode(0))
            offset_index.mark_written()
        time_index = self.time_entries
        if time_index is not None and time_index.loaded and not time_index.on_disk and self.size > 0:
            time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.disk.blocking().write_file(time_index.path, time_index.encode(0))
            time_index.mark_written()
        if self.transactions is not None:
            self.transactions.save()

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
        """The caller has the file synced before anything else is appended, if there was such an end."""
        try:
            if file.size() > self.size:
                file.truncate(self.size)
                self.truncation_unsynced = True
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
        else:
            self.indexed_from = position + size
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
        self.release_indexes()

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
        if offset == self.seen_offset:
            return self.seen_position, self.seen_size
        if self.offset_entries is not None and self.indexed_from < self.size:
            indexed = self._find_indexed(self.offset_entries, offset)
            if indexed[0] >= 0:
                return indexed
        place = self._place(offset)
        if offset == place.last_offset + 1 and place.next_position > 0:
            size = self._size_of_batch(offset, place.next_position)
            if size > 0:
                return place.next_position, size
        found = self._search(offset, place)
        if found[0] == -2:
            self.rebuild_indexes("the offset index is wrong")
            found = self._search(offset, self._place(offset))
        if found[0] == -2:
            raise DamagedSegment(f"{self.path(LOG_SUFFIX)} has no batch where its index points")
        return found

    def _find_indexed(self, index: OffsetIndex, offset: int) -> tuple[int, int]:
        """The same without a read, where the batch and the one before it have entries: batches that are larger than
        the distance of two entries all have one. (-1, 0) where that is not known."""
        entry: i64 = bisect_left(index.offsets, offset - self.base_offset)
        count: i64 = len(index.offsets)
        if entry == count:
            return -1, 0
        position: i64 = index.positions[entry]
        if position <= self.indexed_from:
            return -1, 0
        end: i64 = index.positions[entry + 1] if entry + 1 < count else self.size
        return position, end - position

    def _size_of_batch(self, base_offset: int, position: int) -> int:
        """Of the batch there, if it begins with this offset; 0 if not. Who reads on asks for what follows an indexed
        batch, which is the next one that is indexed when batches are large: one look instead of a search."""
        data = self.log_file().read(position, HEADER_SIZE)
        if len(data) < HEADER_SIZE or read_i64_be(data, 0) != base_offset or data[MAGIC] != CURRENT_MAGIC:
            return 0
        size = int(read_i32_be(data, BATCH_LENGTH)) + LENGTH_OVERHEAD
        return size if size >= HEADER_SIZE and position + size <= self.size else 0

    def _place(self, offset: int) -> Place:
        """Where the search for an offset begins, not compared with the batch there yet."""
        try:
            return self.offset_index().lookup(offset)
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))
            return self.offset_index().lookup(offset)

    def _last_place(self) -> Place:
        """Of the last indexed batch, the segment's start without one."""
        try:
            place = self.offset_index().last()
            self._check_place(place)
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))
            place = self.offset_index().last()
        return place

    def _check_place(self, place: Place) -> None:
        """Raises DamagedIndex unless the batch is there that the index tells of."""
        if place.certain:
            return
        data = self.log_file().read(place.position, HEADER_SIZE)
        if len(data) == HEADER_SIZE and data[MAGIC] == CURRENT_MAGIC:
            size = i64(read_i32_be(data, BATCH_LENGTH)) + LENGTH_OVERHEAD
            base_offset = read_i64_be(data, 0)
            last_offset = base_offset + i64(read_i32_be(data, LAST_OFFSET_DELTA))
            fits = size >= HEADER_SIZE and place.position + size <= self.size
            if fits and place.after_offset < base_offset and last_offset <= place.last_offset:
                self.seen_offset = base_offset
                self.seen_position = place.position
                self.seen_size = size
                return
        raise DamagedIndex(f"{self.path(INDEX_SUFFIX)} points at {place.position}, where no such batch is")

    def _search(self, offset: i64, place: Place) -> tuple[int, int]:
        """Walks the headers from this place on; (-2, 0) when the index is wrong: no such batch is there, or the one
        that is looked for is not where the next entries say."""
        file = self.log_file()
        size: i64 = self.size
        start: i64 = place.position
        limit: i64 = place.limit
        position: i64 = start
        first = not place.certain
        while position + HEADER_SIZE <= size:
            data = file.read(position, min(SEARCH_CHUNK, size - position))
            index: i64 = 0
            while index + HEADER_SIZE <= len(data):
                base_offset = read_i64_be(data, index)
                batch_size: i64 = i64(read_i32_be(data, index + BATCH_LENGTH)) + LENGTH_OVERHEAD
                sane = data[index + MAGIC] == CURRENT_MAGIC and batch_size >= HEADER_SIZE
                if not sane or position + index + batch_size > size:
                    if start > 0:
                        return -2, 0
                    raise DamagedSegment(f"{self.path(LOG_SUFFIX)} has no batch at {position + index}")
                last_offset: i64 = base_offset + i64(read_i32_be(data, index + LAST_OFFSET_DELTA))
                if first and (base_offset <= place.after_offset or last_offset > place.last_offset):
                    return -2, 0
                if position + index >= limit:
                    return -2, 0
                first = False
                if last_offset >= offset:
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
        if position == self.seen_position:
            return self.seen_offset
        try:
            place = self.offset_index().first_behind(position)
            if place is not None:
                self._check_place(place)
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))
            place = self.offset_index().first_behind(position)
        if place is not None:
            return place.last_offset
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
        try:
            place = self.offset_index().last_before(limit)
            if place.position > best:
                self._check_place(place)
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))
            place = self.offset_index().last_before(limit)
        if place.position > best:
            return place.position
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
        try:
            entry = self._time_place(timestamp)
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))
            entry = self._time_place(timestamp)
        position = self.find_batch(max(entry.offset, start_offset))[0]
        if position < 0:
            return None
        scanner = BatchScanner(self.log_file(), position, self.size)
        header = scanner.next()
        while header is not None:
            if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
                found = find_timestamp(scanner.data, header, timestamp, start_offset)
                if found is not None:
                    return found[1], found[0], header.partition_leader_epoch
            header = scanner.next()
        return None

    def _time_place(self, timestamp: int) -> TimePlace:
        """Where the search for a timestamp begins; raises DamagedIndex unless that batch has the timestamp that the
        index tells of."""
        entry = self.time_index().lookup(timestamp)
        if not entry.certain:
            position = self.find_batch(entry.offset)[0]
            if position < 0 or self._timestamp_at(position) != entry.timestamp:
                raise DamagedIndex(f"{self.path(TIME_INDEX_SUFFIX)} tells a wrong timestamp of offset {entry.offset}")
        return entry

    def read_next_offset(self) -> int:
        """The offset after the last batch, found from the last index entry on."""
        if self.size == 0:
            return self.base_offset
        scanner = BatchScanner(self.log_file(), self._last_place().position, self.size)
        next_offset = self.base_offset
        header = scanner.next()
        while header is not None:
            next_offset = header.last_offset + 1
            header = scanner.next()
        if scanner.problem:
            raise DamagedSegment(f"{self.path(LOG_SUFFIX)} at {scanner.next_position}: {scanner.problem}")
        return next_offset

    # Truncation

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Removes every batch that holds `offset` or a later one; returns how many bytes that were. The log file and
        the transaction index stay as they are until `truncate_files`; nothing is synced."""
        position = self.find_batch(offset)[0]
        self._truncate_indexes(offset, self.size if position < 0 else position)
        removed = self.size - position if position >= 0 else 0
        if position >= 0:
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
        elif position > 0 and (not self.timestamps_known or self.max_timestamp_offset >= offset):
            self._find_max_timestamp()
        return removed

    def _truncate_indexes(self, offset: int, size: int) -> None:
        try:
            self.offset_index().truncate(offset, size)
            self.time_index().truncate(offset, size)
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))
            self.offset_index().truncate(offset, size)
            self.time_index().truncate(offset, size)

    def take_indexes_off_disk(self) -> None:
        """Both indexes in memory alone: their files are going."""
        self.indexed_from = self.size
        try:
            self.offset_index().take_off_disk()
            self.time_index().take_off_disk()
        except (DamagedIndex, FileNotFoundError) as error:
            self.rebuild_indexes(str(error))

    def truncate_files(self, offset: int) -> None:
        """The files are no longer than the segment and its transaction index."""
        self.transaction_index().truncate(offset)
        self.transaction_index_exists = self.transaction_index().exists
        file = self.log_file()
        if file.size() > self.size:
            file.truncate(self.size)

    def _find_max_timestamp(self) -> None:
        """After a truncation: that of the last time index entry that is left, or of a batch behind the last place where
        there could have been one."""
        time_index = self.time_index()
        self.max_timestamp = time_index.last_timestamp()
        self.max_timestamp_offset = time_index.last_offset()
        self.timestamps_known = True
        position = max(0, self.find_batch(self.max_timestamp_offset)[0], self.offset_index().last().position)
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
        self.disk.blocking().sync_file(self.path(LOG_SUFFIX))
        self.sync_indexes()

    def sync_indexes(self) -> None:
        blocking = self.disk.blocking()
        if self.offset_entries is not None and self.offset_entries.written > 0:
            blocking.sync_file(self.path(INDEX_SUFFIX))
        if self.time_entries is not None and self.time_entries.written > 0:
            blocking.sync_file(self.path(TIME_INDEX_SUFFIX))
        if self.transactions is not None and self.transactions.exists:
            blocking.sync_file(self.path(TRANSACTION_INDEX_SUFFIX))

    def rename_files(self, added_suffix: str) -> list[str]:
        """Gives every file of this segment a further suffix; returns the new paths. An open file goes on being read."""
        renamed = []
        for suffix in self.file_suffixes():
            path = self.path(suffix)
            if self.disk.exists(path):
                self.disk.rename(path, path + added_suffix)
                renamed.append(path + added_suffix)
        return renamed
