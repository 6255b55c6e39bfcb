"""One compaction run over one log, from its offset map to the `.cleaned` files. Runs in a worker process.

It only reads what is there and writes `.cleaned` files beside it; putting them in place is `swap.py`. Kafka: Cleaner.
"""

from __future__ import annotations

from collections.abc import Callable

from moldau.records.batch import BatchHeader, CorruptBatch, has_valid_crc
from moldau.storage.batch_scanner import BatchScanner
from moldau.storage.compaction.batches import NO_HORIZON, empty_batch, filter_records, keep_whole, note_keys, rebuild
from moldau.storage.compaction.offset_map import OffsetMap
from moldau.storage.compaction.task import (
    CLEANED_SUFFIX,
    CleanedSegment,
    CompactionResult,
    CompactionStats,
    CompactionTask,
    SourceSegment,
)
from moldau.storage.compaction.transactions import TransactionWalk
from moldau.storage.control_markers import read_marker
from moldau.storage.disk import Disk
from moldau.storage.index import OffsetIndex, TimeIndex
from moldau.storage.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    RELATIVE_OFFSET_MAX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
)
from moldau.storage.txn_index import AbortedTransaction, TransactionIndex

WRITE_CHUNK = 1 << 20

Throttle = Callable[[int], None]
"""Told how many bytes were read or written; comes back when more may be."""


class Uncleanable(Exception):
    """This log cannot be compacted until somebody does what the message says."""


def compact(disk: Disk, task: CompactionTask, throttle: Throttle) -> CompactionResult:
    """Runs the task. Leaves no file behind when it fails."""
    result = CompactionResult()
    run = CompactionRun(disk, task, throttle, result)
    try:
        run.run()
    except (Uncleanable, CorruptBatch) as error:
        run.remove_cleaned()
        return CompactionResult(problem=str(error) or type(error).__name__)
    except OSError:
        run.remove_cleaned()
        raise
    return result


class CompactionRun:
    """See `compact`."""

    def __init__(self, disk: Disk, task: CompactionTask, throttle: Throttle, result: CompactionResult) -> None:
        self.disk = disk
        self.task = task
        self.throttle = throttle
        self.result = result
        self.stats: CompactionStats = result.stats
        self.segments = task.segments
        self._aborted = [AbortedTransaction(*entry) for entry in task.aborted]

    def run(self) -> None:
        task = self.task
        self.remove_cleaned()
        offsets = OffsetMap(task.map_bytes, task.map_load_factor, task.seed)
        self._build_map(offsets)
        self.stats.map_keys = int(offsets.size)
        self.stats.map_utilization = offsets.utilization
        end_offset = int(offsets.latest_offset) + 1
        copied = [segment for segment in self.segments if segment.base_offset < end_offset]
        walk = TransactionWalk(self._aborted)
        for group in group_segments(copied, task):
            self.result.cleaned.append(GroupCopy(self, group, offsets, walk).run())
        self.result.end_offset = end_offset

    def path(self, base_offset: int, suffix: str) -> str:
        return f"{self.task.directory}/{base_offset:020d}{suffix}"

    def scanner(self, segment: SourceSegment) -> BatchScanner:
        return BatchScanner(self.disk.open(self.path(segment.base_offset, LOG_SUFFIX)), 0, segment.size)

    def check(self, scanner: BatchScanner, segment: SourceSegment, header: BatchHeader) -> None:
        if not has_valid_crc(scanner.data, header):
            path = self.path(segment.base_offset, LOG_SUFFIX)
            raise Uncleanable(f"{path} is damaged at position {scanner.position}: the checksum is wrong")

    def check_end(self, scanner: BatchScanner, segment: SourceSegment) -> None:
        if scanner.problem:
            path = self.path(segment.base_offset, LOG_SUFFIX)
            raise Uncleanable(f"{path} is damaged at position {scanner.next_position}: {scanner.problem}")

    # The offset map

    def _build_map(self, offsets: OffsetMap) -> None:
        """Whole segments only: what is half in the map would be looked at again anyway."""
        task = self.task
        dirty = [number for number, segment in enumerate(self.segments) if self._end(number) > task.first_dirty_offset]
        first = dirty[0] if dirty else len(self.segments)
        # Those that ended before the walk begins must not be taken for open ones: their markers are not passed again.
        start = self.segments[first].base_offset if dirty else 0
        walk = TransactionWalk([entry for entry in self._aborted if entry.last_offset >= start])
        for number in range(first, len(self.segments)):
            if not self._map_segment(self.segments[number], offsets, walk):
                if number == first:
                    raise Uncleanable(self._too_small(self.segments[number], offsets))
                return
            offsets.latest_offset = self._end(number) - 1

    def _end(self, number: int) -> int:
        """Where a segment ends: at the next one, or where the cleanable part does."""
        return self.segments[number + 1].base_offset if number + 1 < len(self.segments) else self.task.end_offset

    def _too_small(self, segment: SourceSegment, offsets: OffsetMap) -> str:
        return (
            f"the segment {self.path(segment.base_offset, LOG_SUFFIX)} has more than {offsets.capacity} keys, which is "
            "all the offset map can hold: raise log.cleaner.dedupe.buffer.size or lower log.cleaner.threads"
        )

    def _map_segment(self, segment: SourceSegment, offsets: OffsetMap, walk: TransactionWalk) -> bool:
        from_offset = self.task.first_dirty_offset
        scanner = self.scanner(segment)
        header = scanner.next()
        try:
            while header is not None:
                size = int(header.size)
                self.stats.map_bytes_read += size
                self.throttle(size)
                if header.last_offset >= from_offset and not self._map_batch(scanner, header, offsets, walk):
                    return False
                header = scanner.next()
        finally:
            scanner.file.close()
        self.check_end(scanner, segment)
        return True

    def _map_batch(self, scanner: BatchScanner, header: BatchHeader, offsets: OffsetMap, walk: TransactionWalk) -> bool:
        if header.is_control:
            marker = read_marker(scanner.data, header)
            if marker is not None:
                walk.is_marker_spare(header, marker.commit)
            return True
        if header.is_transactional and walk.is_aborted(header):
            return True
        self.stats.map_records += int(header.records_count)
        return note_keys(scanner.data, header, offsets, self.task.first_dirty_offset)

    def remove_cleaned(self) -> None:
        """Whatever was written so far goes, and what a process left behind that was ended: a `.cleaned` file that is no
        part of a swap would make a start undo that swap when it is half done."""
        for name in self.disk.list(self.task.directory):
            if name.endswith(CLEANED_SUFFIX):
                self.disk.blocking().remove(f"{self.task.directory}/{name}")


def group_segments(segments: list[SourceSegment], task: CompactionTask) -> list[list[SourceSegment]]:
    """Neighbours that fit into one segment together: bytes, index entries, distance of offsets."""
    groups: list[list[SourceSegment]] = []
    size = 0
    for number, segment in enumerate(segments):
        end_offset = segments[number + 1].base_offset if number + 1 < len(segments) else task.end_offset
        fits = (
            bool(groups)
            and size + segment.size <= task.segment_bytes
            and index_bytes(size + segment.size, task) <= task.segment_index_bytes
            and end_offset - 1 - groups[-1][0].base_offset <= RELATIVE_OFFSET_MAX
        )
        if fits:
            groups[-1].append(segment)
            size += segment.size
        else:
            groups.append([segment])
            size = segment.size
    return groups


def index_bytes(size: int, task: CompactionTask) -> int:
    """The most that the time index, the larger of the two, can need for so many bytes of log."""
    return (size // max(task.index_interval_bytes, 1) + 2) * 12


class GroupCopy:
    """Copies one group of segments into one `.cleaned` segment."""

    def __init__(
        self, run: CompactionRun, group: list[SourceSegment], offsets: OffsetMap, walk: TransactionWalk
    ) -> None:
        self.run_ = run
        self.task = run.task
        self.stats = run.stats
        self.disk = run.disk
        self.group = group
        self.offsets = offsets
        self.walk = walk
        self.base_offset = group[0].base_offset
        size_max = self.task.segment_index_bytes
        index_path = self._path(INDEX_SUFFIX)
        self.offset_index = OffsetIndex(self.disk, index_path, self.base_offset, size_max, True)
        time_path = self._path(TIME_INDEX_SUFFIX)
        self.time_index = TimeIndex(self.disk, time_path, self.base_offset, size_max, True)
        self.file = self.disk.open(self._path(LOG_SUFFIX), create=True)
        self.parts: list[bytes] = []
        self.pending = 0
        self.position = 0
        self.since_entry = 0
        self.max_timestamp = -1
        self.max_timestamp_offset = self.base_offset
        self.changed = len(group) > 1

    def _path(self, suffix: str) -> str:
        return self.run_.path(self.base_offset, suffix + CLEANED_SUFFIX)

    def run(self) -> CleanedSegment:
        if self.file.size() > 0:
            self.file.truncate(0)
        kept_before = len(self.walk.kept)
        try:
            for segment in self.group:
                self._copy_segment(segment)
            self._write_out()
            cleaned = CleanedSegment(self.base_offset, [segment.base_offset for segment in self.group])
            cleaned.size = self.position
            if not self.changed:
                cleaned.unchanged = True
                self.disk.blocking().remove(self._path(LOG_SUFFIX))
                return cleaned
            self._finish_files(self.walk.kept[kept_before:], cleaned)
            return cleaned
        finally:
            self.file.close()

    def _finish_files(self, aborted: list[AbortedTransaction], cleaned: CleanedSegment) -> None:
        """On the medium before the broker hears of it."""
        blocking = self.disk.blocking()
        blocking.sync_file(self._path(LOG_SUFFIX))
        self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
        self.offset_index.write()
        self.time_index.write()
        blocking.sync_file(self._path(INDEX_SUFFIX))
        blocking.sync_file(self._path(TIME_INDEX_SUFFIX))
        if aborted:
            index = TransactionIndex(self.disk, self._path(TRANSACTION_INDEX_SUFFIX), self.base_offset, False)
            for entry in aborted:
                index.append(entry)
            blocking.sync_file(self._path(TRANSACTION_INDEX_SUFFIX))
            cleaned.has_transaction_index = True

    def _copy_segment(self, segment: SourceSegment) -> None:
        run = self.run_
        scanner = run.scanner(segment)
        header = scanner.next()
        try:
            while header is not None:
                run.check(scanner, segment, header)
                size = int(header.size)
                self.stats.bytes_read += size
                self.stats.records_read += int(header.records_count)
                run.throttle(size)
                self._copy_batch(scanner, header)
                header = scanner.next()
        finally:
            scanner.file.close()
        run.check_end(scanner, segment)

    def _copy_batch(self, scanner: BatchScanner, header: BatchHeader) -> None:
        data = scanner.data
        spare = self._is_spare(data, header)
        horizon_ms = int(header.base_timestamp) if header.has_delete_horizon else NO_HORIZON
        past_horizon = horizon_ms != NO_HORIZON and horizon_ms <= self.task.wall_ms
        if header.is_control:
            drop_all = spare and past_horizon
            remains = None if drop_all else keep_whole(data, header)
            needs_horizon = spare and horizon_ms == NO_HORIZON
        else:
            remains = None if spare else filter_records(data, header, self.offsets, not past_horizon)
            needs_horizon = remains is not None and remains.has_tombstone and horizon_ms == NO_HORIZON
        if remains is None or remains.kept == 0:
            if header.records_count > 0 or not self._is_last_of_producer(header):
                self.changed = True
            if self._is_last_of_producer(header):
                self._add(empty_batch(header) if header.records_count > 0 else _slice(data, header), header)
            return
        if remains.keyless:
            self.stats.keyless_records += int(remains.keyless)
        self.stats.records_kept += int(remains.kept)
        if remains.dropped == 0 and not needs_horizon:
            self._add(_slice(data, header), header)
            return
        self.changed = True
        new_horizon_ms = self.task.wall_ms + self.task.delete_retention_ms if needs_horizon else NO_HORIZON
        self._add(rebuild(header, remains, new_horizon_ms), header)

    def _is_spare(self, data: bytes, header: BatchHeader) -> bool:
        """Whether all records of the batch may go: never committed, or a marker that ends nothing any more."""
        if header.is_control:
            marker = read_marker(data, header)
            return marker is None or self.walk.is_marker_spare(header, marker.commit)
        return header.is_transactional and self.walk.is_aborted(header)

    def _is_last_of_producer(self, header: BatchHeader) -> bool:
        last = self.task.producers.get(int(header.producer_id)) if header.producer_id >= 0 else None
        if last is None:
            return False
        last_offset, epoch = last
        if last_offset >= 0:
            return int(header.last_offset) == last_offset
        return header.is_control and int(header.producer_epoch) == epoch

    def _add(self, batch: bytes, header: BatchHeader) -> None:
        """Puts a batch behind the others, with index entries as an append would have made them."""
        last_offset = int(header.last_offset)
        timestamp = int.from_bytes(batch[35:43], "big", signed=True)
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
            self.max_timestamp_offset = last_offset
        if self.since_entry > self.task.index_interval_bytes:
            self.offset_index.append(last_offset, self.position)
            self.time_index.maybe_append(self.max_timestamp, self.max_timestamp_offset)
            self.since_entry = 0
        self.since_entry += len(batch)
        self.position += len(batch)
        self.parts.append(batch)
        self.pending += len(batch)
        if self.pending >= WRITE_CHUNK:
            self._write_out()

    def _write_out(self) -> None:
        if self.parts:
            self.run_.throttle(self.pending)
            self.file.append(self.parts)
            self.stats.bytes_written += self.pending
            self.parts = []
            self.pending = 0


def _slice(data: bytes, header: BatchHeader) -> bytes:
    return data[header.position : header.position + header.size]
