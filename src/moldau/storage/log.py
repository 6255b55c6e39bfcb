"""One partition on disk: a row of segments that is appended to at its end and truncated at both.

The log does not know the high watermark: whoever replicates it passes it in where it matters. An append changes nothing
in memory before its bytes are in the file. An OSError takes the log's directory offline; a full disk does not, the
append is then refused and undone. Kafka: UnifiedLog, LocalLog.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final

from librt.strings import read_i64_be

from moldau.config.log_config import LogConfig
from moldau.protocol.errors import (
    CORRUPT_MESSAGE,
    KAFKA_STORAGE_ERROR,
    OFFSET_OUT_OF_RANGE,
    RECORD_LIST_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    KafkaError,
)
from moldau.protocol.records_data import FileRecords, MemoryRecords
from moldau.records.batch import BatchHeader, CorruptBatch, has_valid_crc, split_batches
from moldau.records.clocks import WallClock
from moldau.storage.aborted import collect_aborted, end_of_read
from moldau.storage.disk import Buffer, Disk
from moldau.storage.flush_job import flush_now
from moldau.storage.leader_epochs import LeaderEpochs
from moldau.storage.log_directory import NO_SPACE, LogDirectory
from moldau.storage.log_flushing import LogFlushing
from moldau.storage.log_producers import check_producers, note_producers, read_markers
from moldau.storage.log_results import AppendResult, ReadResult
from moldau.storage.producer_snapshots import ProducerSnapshots
from moldau.storage.producer_state import ProducedBatch, ProducerState, TransactionMarker
from moldau.storage.retention import NO_LIMIT, count_deletable
from moldau.storage.retired_files import RetiredFiles
from moldau.storage.segment import UNKNOWN, DamagedSegment, Segment
from moldau.storage.truncation import Truncation, begin_anew, truncate_log
from moldau.storage.txn_index import AbortedTransaction
from moldau.storage.validation import CLIENT, validate
from moldau.storage.validation_rules import rules_for

logger = logging.getLogger("moldau.storage")

ANY_EPOCH: Final = 0x7FFFFFFF


class Log:
    """Made by recovery.load_log and recovery.create_log; `segments` is never empty and its last one is active."""

    def __init__(
        self,
        disk: Disk,
        log_directory: LogDirectory,
        directory: str,
        topic: str,
        partition: int,
        *,
        topic_id: bytes,
        config: LogConfig,
        random_below: Callable[[int], int],
    ) -> None:
        self.disk = disk
        self.log_directory = log_directory
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.rules = rules_for(config, f"{self.topic}-{self.partition}")
        self.random_below = random_below
        self.wall: WallClock = log_directory.wall
        self.segments: list[Segment] = []
        self.base_offsets: list[int] = []
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.indexed_to = 0  # segments that end there or below have their indexes on the medium; the active one never
        self.size_bytes = 0
        self.leader_epochs = LeaderEpochs(disk, directory)
        self.producers = ProducerState()
        self.snapshots = ProducerSnapshots(disk, directory, [], self.wall)
        self.retired = RetiredFiles(disk)
        self.unflushed_since_ms = -1
        self.flush_target = 0  # what was appended below this offset counts when the recovery point has reached it
        self.flushing = LogFlushing(self)
        self.on_durable: Callable[[Log], None] | None = None  # told when a flush in the background is over
        self.directory_changed = False  # files were created or renamed since the directory was last synced
        self.directory_unsynced = True  # the directory itself, and whose it is, may be lost with the power
        self.truncations = 0
        self.holds = 0  # reasons why nothing may be appended now: something else must be on the medium first
        self.pending_truncations: list[Truncation] = []
        self.on_released: Callable[[Log], None] | None = None  # told when appends are possible again
        self.compacting = False  # a run is under way: its segments must stay what they are
        self.moving = False  # it is copied into another directory: it is not compacted until that is over
        self.closed = False

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    def set_config(self, config: LogConfig) -> None:
        """New settings hold from the next append or check on; index sizes from the next segment on."""
        self.config = config
        self.rules = rules_for(config, f"{self.topic}-{self.partition}")
        self.active.index_interval_bytes = config.index_interval_bytes

    def check_usable(self) -> None:
        if self.log_directory.failed:
            raise self.log_directory.storage_error()
        if self.closed:
            raise KafkaError(KAFKA_STORAGE_ERROR, f"The log of partition {self.topic}-{self.partition} is closed")

    def check_writable(self, origin: int) -> None:
        """When space is low clients are refused; what the node itself must write goes on."""
        self.check_usable()
        if origin == CLIENT and self.log_directory.low_space:
            raise self.log_directory.low_space_error()

    def hold(self) -> None:
        """Nothing is appended until `release`, called as often."""
        self.holds += 1

    def release(self) -> None:
        self.holds -= 1
        assert self.holds >= 0, f"{self} is released more often than held"
        if self.holds == 0 and self.on_released is not None:
            self.on_released(self)

    def check_not_held(self) -> None:
        if self.holds > 0:
            # One that was truncated as a follower a moment ago, and leads now; or one that did not fit on its disk.
            raise KafkaError(
                KAFKA_STORAGE_ERROR,
                f"Partition {self.topic}-{self.partition} takes no records until its truncation is on the disk: "
                "try again",
            )

    def storage_failure(self, error: OSError) -> KafkaError:
        """Takes the directory offline and returns what the caller is told."""
        self.log_directory.fail(error)
        return self.log_directory.storage_error()

    def damage(self, error: DamagedSegment) -> KafkaError:
        """Bytes that are not what was written: this log is in trouble, its directory need not be."""
        logger.error(
            "log of %s-%d is damaged, a restart without the clean shutdown file recovers it: %s",
            self.topic,
            self.partition,
            error,
        )
        return KafkaError(CORRUPT_MESSAGE, str(error))

    # Appending

    def append_as_leader(
        self,
        records: MemoryRecords,
        leader_epoch: int,
        now_ms: int,
        origin: int = CLIENT,
        transaction_version: int = 0,
    ) -> AppendResult:
        """Gives the batches offsets and this epoch and writes them; raises KafkaError when they are not acceptable.

        `transaction_version` matters for a marker only: it is what WriteTxnMarkers says.
        """
        if self.closed or self.log_directory.refusing or self.holds > 0:
            self.check_writable(origin)
            self.check_not_held()
        validated = validate(
            records.data, records.start, records.end, self.log_end_offset,
            leader_epoch=leader_epoch, now_ms=self.wall.at(now_ms), rules=self.rules, origin=origin,
        )  # fmt: skip
        headers = validated.batches
        size = validated.size
        if size > self.config.segment_bytes:
            raise KafkaError(
                RECORD_LIST_TOO_LARGE,
                f"Message batch size is {size} bytes in append to partition {self.topic}-{self.partition}, which "
                f"exceeds the maximum configured segment size of {self.config.segment_bytes}.",
            )
        markers: list[TransactionMarker | None] | None = None
        if len(headers) != 1 or headers[0].producer_id >= 0:
            markers = read_markers(records, headers)
            duplicate = check_producers(self.producers, headers, markers, origin == CLIENT, transaction_version)
            if duplicate is not None:
                return self._duplicate_result(duplicate)
        if leader_epoch != self.leader_epochs.latest_epoch:
            self.leader_epochs.assign(leader_epoch, self.log_end_offset)
        self._write(
            validated.parts, size, headers, markers=markers, first_offset=validated.first_offset,
            last_offset=validated.last_offset, max_timestamp=validated.max_timestamp, now_ms=now_ms,
        )  # fmt: skip
        return AppendResult(
            validated.first_offset,
            validated.last_offset,
            validated.append_time_ms,
            validated.max_timestamp,
            self.log_start_offset,
        )

    def append_as_follower(
        self, records: MemoryRecords, now_ms: int = 0, leader_epoch: int = ANY_EPOCH
    ) -> AppendResult | None:
        """Writes what the leader sent, offsets and epochs as they are; None when there was no whole batch.

        Batches of a later epoch than `leader_epoch`, the one the fetch was made in, are left for the next fetch: after
        a truncation at the leader they could contradict what came before them (KAFKA-18723).
        """
        self.check_usable()
        self.check_not_held()
        headers = self._check_replicated(records, leader_epoch)
        if not headers:
            return None
        last = headers[-1]
        data: Buffer = records.data
        if records.start > 0 or last.end < len(records.data):
            data = memoryview(records.data)[records.start : last.end]
        markers = read_markers(records, headers)
        max_timestamp = max([int(header.max_timestamp) for header in headers])
        first_offset = int(headers[0].base_offset)
        size = int(last.end) - records.start
        for header in headers:
            if header.partition_leader_epoch > self.leader_epochs.latest_epoch:
                self.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
        self._write(
            [data],
            size,
            headers,
            markers=markers,
            first_offset=first_offset,
            last_offset=last.last_offset,
            max_timestamp=max_timestamp,
            now_ms=now_ms,
        )
        return AppendResult(first_offset, last.last_offset, -1, max_timestamp, self.log_start_offset)

    def _check_replicated(self, records: MemoryRecords, leader_epoch: int) -> list[BatchHeader]:
        try:
            headers = split_batches(records.data, records.start, records.end)
        except CorruptBatch as error:
            raise KafkaError(CORRUPT_MESSAGE, str(error)) from error
        next_offset = self.log_end_offset
        accepted: list[BatchHeader] = []
        for header in headers:
            if header.partition_leader_epoch > leader_epoch:
                break
            if not has_valid_crc(records.data, header):
                raise KafkaError(
                    CORRUPT_MESSAGE,
                    f"Record is corrupt (stored crc = {header.crc}) in topic partition {self.topic}-{self.partition}.",
                )
            if header.base_offset < next_offset or header.last_offset_delta < 0:
                raise KafkaError(
                    UNKNOWN_SERVER_ERROR,
                    f"Unexpected offset in append to {self.topic}-{self.partition}: {header.base_offset} comes before "
                    f"the next offset {next_offset}",
                )
            next_offset = header.last_offset + 1
            accepted.append(header)
        return accepted

    def _duplicate_result(self, batch: ProducedBatch) -> AppendResult:
        first_offset = batch.last_offset - batch.offset_delta
        result = AppendResult(first_offset, batch.last_offset, batch.timestamp, batch.timestamp, self.log_start_offset)
        result.duplicate = True
        return result

    def _write(
        self,
        parts: Sequence[Buffer],
        size: int,
        headers: list[BatchHeader],
        *,
        markers: list[TransactionMarker | None] | None,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        now_ms: int,
    ) -> None:
        """The one place where the end of the log moves up."""
        assert self.log_end_offset <= first_offset <= last_offset, f"{first_offset}..{last_offset} appended to {self}"
        config = self.config
        segment = self.segments[-1]
        try:
            if segment.should_roll(size, last_offset, max_timestamp, now_ms, config.segment_bytes, config.roll_ms):
                segment = self._roll_at(max(first_offset, self.log_end_offset), now_ms)
            segment.append(parts, size, headers)
        except OSError as error:
            if error.errno in NO_SPACE and not segment.torn:
                self.log_directory.look_again(self.disk)
                self._undo_append(segment, now_ms)
                raise KafkaError(KAFKA_STORAGE_ERROR, f"No space for {self.topic}-{self.partition}: {error}") from error
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged
        self.log_end_offset = last_offset + 1
        self.size_bytes += size
        self.log_directory.note_written(size, self.disk)
        note_producers(self, segment, headers, markers, now_ms)
        if segment.size >= self.flushing.write_back_at:
            self.flushing.on_grown(segment)
        if self.unflushed_since_ms < 0:
            self.unflushed_since_ms = now_ms
        if self.log_end_offset - self.recovery_point >= config.flush_messages:
            self.flush_target = self.log_end_offset
            self.flushing.start()

    def _undo_append(self, segment: Segment, now_ms: int) -> None:
        """There was no space for it: nothing of it may be left, on the medium too."""
        if self.producers.end_offset > self.log_end_offset:
            # It rolled, or tried to, for a batch behind offsets that were compacted away. What comes next may begin
            # before that: neither a segment nor a snapshot of producers may be there.
            try:
                truncate_log(self, self.log_end_offset, now_ms).start(None)
            except OSError as error:
                raise self.storage_failure(error) from error
        elif segment.truncation_unsynced:
            # A power loss may bring a torn end back, in a segment that is flushed and not looked at again.
            segment.truncation_unsynced = False
            Truncation(self, self.log_end_offset, segment, False, False).start(None)

    # Reading

    def read(self, offset: int, max_bytes: int, upper_bound_offset: int, min_one_batch: bool) -> ReadResult:
        """Whole batches from the one that holds `offset` on, none of them at or above `upper_bound_offset`."""
        if self.closed or self.log_directory.failed:
            self.check_usable()
        end = self.log_end_offset
        if offset < self.log_start_offset or offset > end:
            raise KafkaError(
                OFFSET_OUT_OF_RANGE,
                f"Received request for offset {offset} for partition {self.topic}-{self.partition}, but we only have "
                f"log segments from offset {self.log_start_offset} to {end}.",
            )
        if upper_bound_offset > end:
            upper_bound_offset = end
        if offset >= upper_bound_offset:
            return ReadResult(None, -1, -1, offset)
        segments = self.segments
        number = len(segments) - 1
        if offset < self.base_offsets[number]:
            number = bisect_right(self.base_offsets, offset) - 1
        try:
            while number < len(segments):
                result = self._read_segment(number, offset, max_bytes, upper_bound_offset, min_one_batch)
                if result is not None:
                    return result
                number += 1  # the offset was compacted away, what follows it is in the next segment
        except OSError as error:
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged
        return ReadResult(None, -1, -1, offset)

    def _read_segment(
        self, number: int, offset: int, max_bytes: int, upper_bound_offset: int, min_one_batch: bool
    ) -> ReadResult | None:
        segment = self.segments[number]
        base_offset = segment.base_offset
        if base_offset >= upper_bound_offset:
            return ReadResult(None, -1, -1, offset)
        position, first_size = segment.find_batch(offset)
        if position < 0:
            return None
        end_offset = self.base_offsets[number + 1] if number + 1 < len(self.segments) else self.log_end_offset
        end_position = segment.size
        if upper_bound_offset < end_offset:
            end_offset = upper_bound_offset
            end_position = segment.position_of_bound(upper_bound_offset)
        if position + first_size > end_position:
            return ReadResult(None, base_offset, position, offset)
        size = end_position - position
        if size > max_bytes:
            size = segment.whole_batches_before(position, position + max_bytes, first_size) - position
            if size == 0 and min_one_batch:
                size = first_size
        if size == 0:
            return ReadResult(None, base_offset, position, offset)
        return ReadResult(FileRecords(segment.log_file(), position, size), base_offset, position, end_offset)

    def batch_start(self, offset: int) -> int:
        """The first offset of the batch that holds `offset`; the offset itself where none does."""
        self.check_usable()
        try:
            segment = self.segments[max(0, bisect_right(self.base_offsets, offset) - 1)]
            position = segment.find_batch(offset)[0]
            if position < 0:
                return offset
            return min(offset, int(read_i64_be(segment.log_file().read(position, 8), 0)))
        except OSError as error:
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged

    def offset_for_timestamp(self, timestamp: int, upper_bound_offset: int) -> tuple[int, int, int] | None:
        """(offset, timestamp, leader epoch) of the first record that is not older than `timestamp`."""
        self.check_usable()
        try:
            for segment in self.segments:
                segment.load_timestamps()
                if segment.max_timestamp >= timestamp:
                    found = segment.find_timestamp(timestamp, self.log_start_offset)
                    if found is not None:
                        return found if found[0] < upper_bound_offset else None
        except OSError as error:
            raise self.storage_failure(error) from error
        except (DamagedSegment, CorruptBatch) as damaged:
            raise KafkaError(CORRUPT_MESSAGE, str(damaged)) from damaged
        return None

    def offset_of_max_timestamp(self, upper_bound_offset: int) -> tuple[int, int, int] | None:
        """The same for the largest timestamp in the log: the first record that has it."""
        self.check_usable()
        best: int = -1
        try:
            for segment in self.segments:
                segment.load_timestamps()
                best = max(best, segment.max_timestamp)
        except OSError as error:
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged
        return self.offset_for_timestamp(best, upper_bound_offset) if best >= 0 else None

    def last_stable_offset(self, high_watermark: int) -> int:
        """Up to where no transaction is undecided, as far as it is replicated."""
        producers = self.producers
        if not producers.has_unstable:
            return high_watermark
        producers.on_high_watermark(high_watermark)
        first_unstable = producers.first_unstable_offset()
        if first_unstable < 0:
            return high_watermark
        # Its first records may be deleted already, while it is still open.
        return min(max(first_unstable, self.log_start_offset), high_watermark)

    def aborted_transactions(
        self, start_offset: int, end_offset: int, found: ReadResult | None = None
    ) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions with records in that range, by offset; with `found`
        only those that matter to who reads that."""
        aborted = self.collect_aborted(start_offset, end_offset, found)
        by_offset = [(entry.first_offset, entry.producer_id) for entry in aborted]
        by_offset.sort()
        return [(producer_id, first_offset) for first_offset, producer_id in by_offset]

    def aborted_within(self, offset: int, found: ReadResult) -> list[tuple[int, int]]:
        """Those that matter to who reads `found`, which was read from `offset` on: not all up to the end of the log,
        which would be told again with every read."""
        return [] if found.records is None else self.aborted_transactions(offset, found.end_offset, found)

    def collect_aborted(
        self, start_offset: int, end_offset: int, found: ReadResult | None = None
    ) -> list[AbortedTransaction]:
        """Also those whose marker lies beyond the end."""
        try:
            return collect_aborted(self, start_offset, end_offset if found is None else end_of_read(self, found))
        except OSError as error:
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged

    # Rolling, flushing, closing

    def new_jitter_ms(self) -> int:
        """How much earlier than segment.ms one segment rolls, so that not all logs roll at once."""
        config = self.config
        if config.segment_jitter_ms <= 0:
            return 0
        return self.random_below(max(1, min(config.segment_jitter_ms, config.segment_ms)))

    def new_segment(self, base_offset: int, now_ms: int) -> Segment:
        config = self.config
        segment = Segment(
            self.disk,
            self.directory,
            base_offset,
            config.index_interval_bytes,
            config.segment_index_bytes,
            now_ms,
            self.new_jitter_ms(),
        )
        if config.preallocate:
            segment.reserved_bytes = self.log_directory.take_space(config.segment_bytes, self.disk)
        return segment

    def roll(self, now_ms: int) -> None:
        """Starts a new segment at the end of the log, unless the active one is empty already."""
        self.check_usable()
        self.check_not_held()
        try:
            self._roll_at(self.log_end_offset, now_ms)
        except OSError as error:
            raise self.storage_failure(error) from error

    def _roll_at(self, base_offset: int, now_ms: int) -> Segment:
        """Nothing waits for the medium. Names in a directory reach it in the order in which they were made, so no power
        loss keeps the new segment and not the one before it; what it takes from the end of that one ends the log."""
        old = self.segments[-1]
        if old.size == 0 and old.base_offset == base_offset:
            old.created_ms = now_ms
            old.first_timestamp = UNKNOWN
            return old
        assert base_offset > old.base_offset, f"{self} rolls at {base_offset}, its last segment is {old.base_offset}"
        old.finish_indexes()
        self.producers.end_offset = base_offset
        self.snapshots.take(self.producers)
        self.producers.mark()
        # The last step that may fail: an empty segment that is left behind would end the log at the next start.
        segment = self.new_segment(base_offset, now_ms)
        segment.create()
        self.segments.append(segment)
        self.base_offsets.append(base_offset)
        self.directory_changed = True
        self.flushing.on_rolled(base_offset)
        return segment

    def has_segment(self, segment: Segment) -> bool:
        """Whether it is (still) part of this log."""
        number = bisect_right(self.base_offsets, segment.base_offset) - 1
        return number >= 0 and self.segments[number] is segment

    def is_durable(self, offset: int) -> bool:
        """Whether what lies below `offset` is as safe as `flush.messages` wants it."""
        return self.recovery_point >= min(self.flush_target, offset)

    def flush(self) -> None:
        """Everything that was appended is on the medium when this returns."""
        self.check_usable()
        try:
            flush_now(self)
        except OSError as error:
            raise self.storage_failure(error) from error

    def close(self, now_ms: int) -> None:
        """A clean stop: everything written down and synced, so that the next start need not look at the data."""
        if self.closed:
            return
        self.check_usable()
        try:
            for truncation in self.pending_truncations[:]:
                truncation.finish(self.disk.blocking())
            self.active.finish_indexes()
            for segment in self.segments:
                segment.save_rebuilt()
            self.snapshots.take(self.producers)
            flush_now(self)
        except OSError as error:
            raise self.storage_failure(error) from error
        self.close_files()

    def close_files(self) -> None:
        """Lets go of every file without writing anything; the log cannot be used any more."""
        self.closed = True
        for segment in self.segments:
            segment.close_files()

    # Truncation

    def truncate_to(self, offset: int, now_ms: int = 0) -> bool:
        """The same, and it is on the medium when this returns; False when there was nothing to remove."""
        truncation = self.truncate(offset, now_ms)
        if truncation is not None:
            self._finish(truncation)
        return truncation is not None

    def truncate_fully_and_start_at(self, offset: int, now_ms: int = 0) -> None:
        """The same as `start_at`, and it is on the medium when this returns."""
        self._finish(self.start_at(offset, now_ms))

    def _finish(self, truncation: Truncation) -> None:
        try:
            truncation.finish(self.disk.blocking())
        except OSError as error:
            raise self.storage_failure(error) from error

    def truncate(self, offset: int, now_ms: int) -> Truncation | None:
        """Removes everything from `offset` on. Nothing is appended until what this returns has been brought to an end;
        None when there was nothing to remove."""
        self.check_usable()
        if offset < 0:
            raise ValueError(f"cannot truncate {self.topic}-{self.partition} to {offset}")
        try:
            if offset >= self.log_end_offset:
                # An epoch without records, left from a leadership that wrote nothing, may contradict the leader's.
                self.leader_epochs.truncate_from_end(self.log_end_offset)
                return None
            logger.info("truncating %s-%d to offset %d", self.topic, self.partition, offset)
            if offset < self.segments[0].base_offset:
                return begin_anew(self, offset, now_ms)
            return truncate_log(self, offset, now_ms)
        except OSError as error:
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged

    def set_end(self, end_offset: int, start_offset: int) -> None:
        """The log was truncated: it ends there, and begins no later than that."""
        self.log_end_offset = end_offset
        self.log_start_offset = start_offset
        self.recovery_point = min(self.recovery_point, end_offset)
        self.indexed_to = min(self.indexed_to, end_offset)
        self.flush_target = min(self.flush_target, end_offset)
        assert 0 <= start_offset <= end_offset and self.base_offsets[-1] <= end_offset, f"{self} after a truncation"
        self.flushing.on_truncation(self.active.size)
        self.size_bytes = sum([segment.size for segment in self.segments])

    def start_at(self, offset: int, now_ms: int) -> Truncation:
        """Forgets everything; the next append gets `offset` or more."""
        self.check_usable()
        try:
            return begin_anew(self, offset, now_ms)
        except OSError as error:
            raise self.storage_failure(error) from error

    def advance_log_start(self, offset: int) -> bool:
        """Records below `offset` are gone for readers; segments below it go with the next retention run."""
        self.check_usable()
        if offset > self.log_end_offset:
            raise KafkaError(
                OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic}-{self.partition} since "
                f"it is larger than the high watermark",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.producers.on_log_start(offset)
        self.leader_epochs.truncate_from_start(offset)
        return True

    def apply_retention(self, now_ms: int, high_watermark: int, segments_max: int = NO_LIMIT) -> int:
        """Schedules the segments that are to go for deletion, up to so many, and moves the log start; returns how
        many they were."""
        self.check_usable()
        try:
            count = count_deletable(
                self.segments,
                self.config,
                size_bytes=self.size_bytes,
                log_start_offset=self.log_start_offset,
                log_end_offset=self.log_end_offset,
                high_watermark=high_watermark,
                now_ms=now_ms,
                wall=self.wall,
                segments_max=segments_max,
            )
            if count > 0:
                if count == len(self.segments):
                    self._roll_at(self.log_end_offset, now_ms)
                assert self.base_offsets[count] <= high_watermark, f"{self}: deletes above {high_watermark}"
                self._delete_oldest(count, now_ms)
        except OSError as error:
            raise self.storage_failure(error) from error
        except DamagedSegment as damaged:
            raise self.damage(damaged) from damaged
        return count

    def _delete_oldest(self, count: int, now_ms: int) -> None:
        deleted = self.segments[:count]
        new_start = self.base_offsets[count]
        logger.info(
            "deleting %d segments of %s-%d below the new log start offset %d",
            count,
            self.topic,
            self.partition,
            new_start,
        )
        self.advance_log_start(new_start)
        del self.segments[:count]
        del self.base_offsets[:count]
        self.size_bytes -= sum([segment.size for segment in deleted])
        assert self.size_bytes >= 0, f"{self} has {self.size_bytes} bytes"
        self.retire(deleted, now_ms + self.config.file_delete_delay_ms)

    def retire(self, segments: list[Segment], due_ms: int) -> None:
        self.retired.retire(segments, self.snapshots, due_ms, False)
        self.directory_changed = True

    def replace_segments(self, base_offsets: list[int], segment: Segment, now_ms: int) -> None:
        """Compaction made `segment` of the segments that begin at these offsets: their files are renamed, it is in use
        from now on. Its own files get their names afterwards."""
        first = self.base_offsets.index(base_offsets[0])
        last = first + len(base_offsets)
        old = self.segments[first:last]
        self.retired.retire(old, self.snapshots, now_ms + self.config.file_delete_delay_ms, True)
        self.segments[first:last] = [segment]
        self.base_offsets[first:last] = [segment.base_offset]
        self.size_bytes += segment.size - sum([replaced.size for replaced in old])

    def housekeeping(self, now_ms: int) -> None:
        """Removes what is due, flushes by time."""
        if self.closed or self.log_directory.failed:
            return
        try:
            self.retired.remove_due(now_ms, self.config.file_delete_delay_ms, self.log_directory.fail)
            if self.unflushed_since_ms >= 0 and now_ms - self.unflushed_since_ms >= self.config.flush_ms:
                self.flushing.start()
        except OSError as error:
            self.log_directory.fail(error)

    def __repr__(self) -> str:
        return f"Log({self.topic}-{self.partition}, offsets {self.log_start_offset}..{self.log_end_offset})"
