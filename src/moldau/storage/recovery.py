"""Opens the directory of a partition: puts leftovers in order, finds and truncates what an unclean shutdown damaged.

After a clean stop nothing but the small files is read: sizes come from the listing, the end of the log from the
recovery point. After an unclean stop every segment from the recovery point on is walked batch by batch (size, magic,
checksum, rising offsets); the first batch that is wrong ends the log. Indexes, leader epochs and producer state of what
was walked are built anew. Kafka: LogLoader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.config.log_config import LogConfig
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.batch import NO_LEADER_EPOCH, BatchHeader, CorruptBatch, has_valid_crc
from moldau.storage import partition_metadata, producer_window
from moldau.storage.batch_scanner import BatchScanner
from moldau.storage.checkpoints import LEADER_EPOCH_FILE, DamagedCheckpoint
from moldau.storage.control_markers import read_marker
from moldau.storage.disk import Disk
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_producers import reload_producers, replay_producers
from moldau.storage.producer_snapshots import SUFFIX as SNAPSHOT_SUFFIX
from moldau.storage.producer_snapshots import ProducerSnapshots
from moldau.storage.segment import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    RELATIVE_OFFSET_MAX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    DamagedSegment,
    Segment,
)
from moldau.storage.txn_index import ENTRY_SIZE as TRANSACTION_ENTRY_SIZE
from moldau.storage.txn_index import AbortedTransaction

CLEANED_SUFFIX = ".cleaned"
SWAP_SUFFIX = ".swap"
TEMPORARY_SUFFIX = ".tmp"
OFFSET_DIGITS = 20
NOTHING = 1 << 63
DEFAULT_PRODUCER_EXPIRATION_MS = 86_400_000

logger = logging.getLogger("moldau.storage")


def no_jitter(_limit: int) -> int:
    return 0


def offset_of(name: str) -> int:
    """The offset in a file name, -1 when it has none."""
    digits = name[:OFFSET_DIGITS]
    return int(digits) if len(digits) == OFFSET_DIGITS and digits.isdecimal() and digits.isascii() else -1


def create_log(
    disk: Disk,
    log_directory: LogDirectory,
    directory: str,
    topic: str,
    partition: int,
    *,
    topic_id: bytes,
    config: LogConfig,
    now_ms: int,
    random_below: Callable[[int], int] = no_jitter,
    start_offset: int = 0,
) -> Log:
    """A new directory with an empty log. Nothing is synced: until something is acknowledged there is nothing to
    lose."""
    disk.make_directory(directory)
    log = Log(
        disk, log_directory, directory, topic, partition, topic_id=topic_id, config=config, random_below=random_below
    )
    segment = log.new_segment(start_offset, now_ms)
    segment.create()
    segment.close_files()
    log.segments.append(segment)
    log.base_offsets.append(start_offset)
    log.log_start_offset = log.log_end_offset = log.recovery_point = log.indexed_to = start_offset
    log.producers.clear(start_offset)
    log.directory_changed = True
    if topic_id != ZERO_UUID:
        partition_metadata.write_topic_id(disk, directory, topic_id)
    return log


def load_log(
    disk: Disk,
    log_directory: LogDirectory,
    directory: str,
    topic: str,
    partition: int,
    *,
    config: LogConfig,
    now_ms: int,
    recovery_point: int = 0,
    log_start_offset: int = 0,
    clean: bool = False,
    random_below: Callable[[int], int] = no_jitter,
    producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
    gaps_to: int = 0,
) -> Log:
    """Opens the log in `directory`. `recovery_point` and `log_start_offset` are what the checkpoints say (else 0);
    `clean` says that the last stop was a clean one; below `gaps_to` compaction may have removed records. Raises
    OSError when the disk fails."""
    log = Log(
        disk, log_directory, directory, topic, partition, topic_id=ZERO_UUID, config=config, random_below=random_below
    )
    log.log_start_offset = log_start_offset
    log.recovery_point = recovery_point
    loader = Loader(log, now_ms, clean, producer_expiration_ms, gaps_to)
    loader.load()
    return log


class Loader:
    """One run of load_log; the steps in the order in which they must happen."""

    def __init__(self, log: Log, opened_ms: int, clean: bool, producer_expiration_ms: int, gaps_to: int) -> None:
        self.log = log
        self.disk = log.disk
        self.blocking = log.disk.blocking()
        self.directory = log.directory
        self.opened_ms = opened_ms
        self.clean = clean
        self.producer_expiration_ms = producer_expiration_ms
        self.gaps_to = gaps_to
        self.files = self.disk.list_with_sizes(self.directory)
        self.epochs_lost = False
        self.epochs_on_disk: list[tuple[int, int]] = []
        self.producers_known = False
        self.walk_from = NOTHING  # the first segment that has to be walked although it was flushed

    def load(self) -> None:
        if any(name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX, TEMPORARY_SUFFIX)) for name in self.files):
            self._finish_renames()
            if not self.clean:
                # The run before may not have synced its renames: segments that it truncated must not come back at a
                # power loss behind what is appended from now on.
                self.blocking.sync_directory(self.directory)
            self.files = self.disk.list_with_sizes(self.directory)
        self._load_topic_id()
        self._load_epochs()
        self._find_segments()
        log = self.log
        if log.segments and not (self.clean and self.walk_from == NOTHING and self._trust_recovery_point()):
            self._recover()
        if not log.segments:
            self._start_empty()
        self._check_log_start()
        log.leader_epochs.drop_empty(log.log_end_offset)
        log.leader_epochs.truncate_from_start(log.log_start_offset)
        log.size_bytes = sum(segment.size for segment in log.segments)
        log.indexed_to = min(log.recovery_point, log.active.base_offset)
        # Whatever the files were: this is what all others build on.
        assert log.base_offsets[0] <= log.log_start_offset <= log.log_end_offset, f"{log} begins and ends like that"
        assert log.recovery_point <= log.log_end_offset, f"{log} has recovery point {log.recovery_point}"
        self._load_producers()
        assert log.producers.end_offset <= log.log_end_offset, f"{log}: producers to {log.producers.end_offset}"

    # Leftovers

    def _finish_renames(self) -> None:
        """Ends what deletion and compaction had begun: .cleaned is given up, .swap takes its place, .deleted goes."""
        cleaned = [name for name in self.files if name.endswith(CLEANED_SUFFIX) and offset_of(name) >= 0]
        # A .cleaned file beside .swap files: the renaming to .swap was not complete, nothing was replaced yet.
        limit = min((offset_of(name) for name in cleaned), default=NOTHING)
        complete = []
        for name in sorted(name for name in self.files if name.endswith(SWAP_SUFFIX)):
            if offset_of(name) >= limit:
                self.blocking.remove(f"{self.directory}/{name}")
            else:
                complete.append(name)
        # Only now: while they are there, a start that is interrupted comes to the same conclusion again.
        for name in cleaned:
            self.blocking.remove(f"{self.directory}/{name}")
        for name in self.files:
            if name.endswith(TEMPORARY_SUFFIX) or (name.endswith(DELETED_SUFFIX) and offset_of(name) >= 0):
                self.blocking.remove(f"{self.directory}/{name}")
        self._finish_swaps(complete)

    def _finish_swaps(self, swaps: list[str]) -> None:
        """Removes the segments that a complete .swap log replaces, then gives the .swap files their names."""
        logs = [name for name in swaps if name.endswith(LOG_SUFFIX + SWAP_SUFFIX)]
        for name in logs:
            base_offset = offset_of(name)
            segment = self._segment(base_offset, self.files[name])
            segment.file = self.disk.open(f"{self.directory}/{name}")
            end_offset = self._end_of_swap(segment)
            for other in list(self.files):
                inside = base_offset <= offset_of(other) < max(end_offset, base_offset + 1)
                if inside and other.endswith((LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)):
                    self.blocking.remove(f"{self.directory}/{other}")
            segment.close_files()
        for name in swaps:
            path = f"{self.directory}/{name}"
            self.disk.rename(path, path[: -len(SWAP_SUFFIX)])

    def _end_of_swap(self, segment: Segment) -> int:
        scanner = BatchScanner(segment.log_file(), 0, segment.size)
        end_offset = segment.base_offset
        header = scanner.next()
        while header is not None:
            end_offset = header.last_offset + 1
            header = scanner.next()
        return end_offset

    # Small files

    def _load_topic_id(self) -> None:
        if partition_metadata.PARTITION_METADATA_FILE not in self.files:
            return
        try:
            self.log.topic_id = partition_metadata.read_topic_id(self.disk, self.directory)
        except partition_metadata.DamagedPartitionMetadata as error:
            logger.warning(
                "ignoring a damaged partition.metadata file, the topic id is taken from the metadata log: %s", error
            )

    def _load_epochs(self) -> None:
        if LEADER_EPOCH_FILE not in self.files:
            self.epochs_lost = True
            return
        try:
            data = self.disk.read_file(f"{self.directory}/{LEADER_EPOCH_FILE}")
            self.log.leader_epochs.load(data)
            self.epochs_lost = not data
            self.epochs_on_disk = self.log.leader_epochs.entries()
        except DamagedCheckpoint as error:
            logger.warning("rebuilding the leader epoch checkpoint from the batches: %s", error)
            self.epochs_lost = True

    # Segments

    def _segment(self, base_offset: int, size: int) -> Segment:
        config = self.log.config
        transaction_index = f"{base_offset:020d}{TRANSACTION_INDEX_SUFFIX}"
        segment = Segment.found(
            self.disk,
            self.directory,
            base_offset,
            size=size,
            has_transaction_index=transaction_index in self.files,
            index_interval_bytes=config.index_interval_bytes,
            index_bytes_max=config.segment_index_bytes,
            now_ms=self.opened_ms,
        )
        if self.files.get(transaction_index, 0) % TRANSACTION_ENTRY_SIZE != 0:
            logger.warning(
                "recovering segment %s: its transaction index ends within an entry", segment.path(LOG_SUFFIX)
            )
            self.walk_from = min(self.walk_from, base_offset)
        return segment

    def _find_segments(self) -> None:
        log = self.log
        snapshots = []
        for name in sorted(self.files):
            offset = offset_of(name)
            if offset < 0:
                continue
            suffix = name[OFFSET_DIGITS:]
            if suffix == LOG_SUFFIX:
                log.segments.append(self._segment(offset, self.files[name]))
                log.base_offsets.append(offset)
            elif suffix == SNAPSHOT_SUFFIX:
                snapshots.append(offset)
            elif suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
                if f"{offset:020d}{LOG_SUFFIX}" not in self.files:
                    logger.warning(
                        "deleting orphaned index file %s/%s: its segment does not exist", self.directory, name
                    )
                    self.blocking.remove(f"{self.directory}/{name}")
        has_window = producer_window.FILE in self.files
        log.snapshots = ProducerSnapshots(self.disk, self.directory, snapshots, log.wall, has_window)
        if log.segments:
            log.segments[-1].roll_jitter_ms = log.new_jitter_ms()
            if not self.clean:
                # Space may have been set aside for it (`preallocate`); that shows nowhere in its size.
                log.segments[-1].reserved_bytes = log.config.segment_bytes

    def _trust_recovery_point(self) -> bool:
        """After a clean stop the recovery point is the end of the log; a snapshot of that name confirms it."""
        log = self.log
        active = log.segments[-1]
        if self.epochs_lost and any(segment.size > 0 for segment in log.segments):
            return False
        if active.size == 0:
            log.log_end_offset = active.base_offset
        elif log.recovery_point > active.base_offset and log.recovery_point in log.snapshots.offsets:
            log.log_end_offset = log.recovery_point
        else:
            try:
                log.log_end_offset = active.read_next_offset()
            except DamagedSegment as error:
                logger.warning(
                    "recovering %s-%d although the last shutdown was clean: %s", log.topic, log.partition, error
                )
                return False
        log.recovery_point = log.log_end_offset
        return True

    def _recover(self) -> None:
        """Walks everything from the recovery point on, at least the last segment."""
        log = self.log
        first = 0
        if not self.epochs_lost:
            first = len(log.segments) - 1
            walk_from = min(self.walk_from, log.recovery_point)
            while first > 0 and log.segments[first].base_offset > walk_from:
                first -= 1
        start_offset = log.segments[first].base_offset
        log.log_end_offset = start_offset
        segments = log.segments
        log.segments, log.base_offsets = segments[:first], log.base_offsets[:first]
        self._load_producers_up_to(start_offset)
        log.leader_epochs.truncate_from_end(max(log.recovery_point, start_offset), write=False)
        last_epoch = NO_LEADER_EPOCH
        strict_from = NOTHING if log.config.compact else log.recovery_point
        last_gap = -1
        for number in range(first, len(segments)):
            segment = segments[number]
            if number > first and log.log_end_offset < segment.base_offset:
                if not self._may_be_compacted(log.log_end_offset):
                    log.log_directory.truncated_in_recovery = True
                    logger.warning(
                        "truncating %s to offset %d: the records behind it are missing",
                        self.directory,
                        log.log_end_offset,
                    )
                    self._drop(segments[number:])
                    log.producers.end_offset = log.log_end_offset
                    break
                last_gap = number
            if number > first and segment.base_offset < log.log_end_offset:
                log.log_directory.truncated_in_recovery = True
                logger.warning(
                    "truncating %s to offset %d: segment %s begins below it, and was deleted before the power was lost",
                    self.directory,
                    log.log_end_offset,
                    segment.path(LOG_SUFFIX),
                )
                self._drop(segments[number:])
                log.producers.end_offset = log.log_end_offset
                break
            recovery = SegmentRecovery(log, segment, last_epoch, strict_from, self.opened_ms)
            problem = recovery.run()
            last_epoch = recovery.last_epoch
            log.segments.append(segment)
            log.base_offsets.append(segment.base_offset)
            log.log_end_offset = max(recovery.next_offset, segment.base_offset)
            log.producers.end_offset = log.log_end_offset
            if problem:
                log.log_directory.truncated_in_recovery = True
                logger.warning(
                    "truncating segment %s behind its last valid batch, the log end offset is %d: %s",
                    segment.path(LOG_SUFFIX),
                    log.log_end_offset,
                    problem,
                )
                self._drop(segments[number + 1 :])
                break
            if number + 1 < len(segments):
                segment.finish_indexes()
                if segments[number + 1].base_offset <= log.recovery_point:
                    segment.sync()  # the next start does not walk it again
                log.producers.end_offset = segments[number + 1].base_offset
                log.snapshots.take(log.producers)
        if last_gap >= 0:
            self._accept_gaps(segments[first:last_gap], segments[last_gap].base_offset)
        log.recovery_point = min(log.recovery_point, log.log_end_offset)
        if self.epochs_lost or log.leader_epochs.entries() != self.epochs_on_disk:
            log.leader_epochs.write()
        log.leader_epochs.unsynced = True  # the last process may not have synced them
        self.producers_known = True

    def _may_be_compacted(self, offset: int) -> bool:
        """Whether records from `offset` on may be missing because compaction removed them; else they are lost.

        Compaction leaves no gap at or above the recovery point on disk, and writes down how far it came when it is
        done. Apache Kafka may go beyond the recovery point, on logs that are still compacted or in its own checkpoint.
        """
        return self.log.config.compact or offset < max(self.log.recovery_point, self.gaps_to)

    def _accept_gaps(self, segments: list[Segment], offset: int) -> None:
        """Moves the recovery point behind the last gap, so that it is no question any more when the log is not
        compacted in future."""
        if offset > self.log.recovery_point:
            for segment in segments:
                segment.sync()
            self.log.recovery_point = offset

    def _load_producers_up_to(self, offset: int) -> None:
        """Producer state at the start of the first segment that is walked; walking takes it from there."""
        log = self.log
        self._remove_all(log.snapshots.restore(log.producers, log.log_start_offset, offset, self.opened_ms, -1))
        if log.segments:
            replay_producers(log.producers, log.segments, log.base_offsets, self.opened_ms)
        log.producers.end_offset = max(log.producers.end_offset, offset)

    def _remove_all(self, paths: list[str]) -> None:
        for path in paths:
            self.blocking.remove(path)

    def _drop(self, segments: list[Segment]) -> None:
        for segment in reversed(segments):
            logger.warning("deleting segment %s: it lies behind the end of the recovered log", segment.path(LOG_SUFFIX))
            for suffix in segment.file_suffixes():
                self.blocking.remove(segment.path(suffix))
            self.log.snapshots.remove(segment.base_offset)
        if segments:
            # Else they may come back at a power loss, in the place of what is appended from now on.
            self.blocking.sync_directory(self.directory)

    def _start_empty(self) -> None:
        log = self.log
        segment = log.new_segment(log.log_start_offset, self.opened_ms)
        segment.create()
        segment.close_files()
        log.segments = [segment]
        log.base_offsets = [segment.base_offset]
        log.log_end_offset = log.recovery_point = segment.base_offset
        log.directory_changed = True

    def _check_log_start(self) -> None:
        """The log start is at least the first segment's; a log that ends before its start begins anew there."""
        log = self.log
        log.log_start_offset = max(log.log_start_offset, log.segments[0].base_offset)
        if log.log_end_offset < log.log_start_offset:
            logger.warning(
                "deleting all segments of %s: they end below the log start offset %d",
                self.directory,
                log.log_start_offset,
            )
            self._drop(log.segments)
            self._start_empty()
            self.producers_known = False
        self.walk_from = NOTHING  # the first segment that has to be walked although it was flushed

    def _load_producers(self) -> None:
        log = self.log
        log.snapshots.keep_only(log.base_offsets)
        if self.producers_known:
            log.producers.on_log_start(log.log_start_offset)
            log.producers.expire(self.opened_ms, self.producer_expiration_ms)
            return
        self._remove_all(reload_producers(log, self.opened_ms, self.producer_expiration_ms))


class SegmentRecovery:
    """Walks one segment, truncates it where it stops making sense, builds its indexes and what the log learns from
    it."""

    def __init__(self, log: Log, segment: Segment, last_epoch: int, strict_from: int, opened_ms: int) -> None:
        self.log = log
        self.opened_ms = opened_ms
        self.segment = segment
        self.next_offset = segment.base_offset
        self.last_epoch = last_epoch
        self.strict_from = strict_from

    def run(self) -> str:
        """What was wrong, empty when nothing was."""
        segment = self.segment
        segment.reset_indexes()
        segment.transaction_index().reset()
        segment.transaction_index_exists = False
        scanner = BatchScanner(segment.log_file(), 0, segment.size)
        problem = ""
        end = 0
        header = scanner.next()
        while header is not None:
            problem = self._check(scanner, header)
            if problem:
                break
            segment.index_batch(header.last_offset, header.max_timestamp, scanner.position, header.size)
            self._learn(scanner, header)
            end = scanner.next_position
            header = scanner.next()
        problem = problem or scanner.problem
        if end < segment.size:
            segment.log_file().truncate(end)
            # Else what is truncated may come back at a power loss, behind data that is written from now on.
            self.log.disk.blocking().sync_file(segment.path(LOG_SUFFIX))
            segment.size = end
        segment.close_files()
        return problem

    def _check(self, scanner: BatchScanner, header: BatchHeader) -> str:
        if not has_valid_crc(scanner.data, header):
            return f"wrong checksum at position {scanner.position}"
        if header.base_offset < self.next_offset or header.last_offset_delta < 0:
            return f"offset {header.base_offset} at position {scanner.position} after {self.next_offset - 1}"
        if header.partition_leader_epoch < self.last_epoch and self.next_offset >= self.strict_from:
            # A truncation that was not synced came undone: what was truncated follows what replaced it.
            return f"leader epoch {header.partition_leader_epoch} at position {scanner.position} after a later one"
        if header.last_offset - self.segment.base_offset > RELATIVE_OFFSET_MAX:
            return f"offset {header.last_offset} at position {scanner.position} is too far from the segment's start"
        if header.is_control:
            try:
                read_marker(scanner.data, header)
            except CorruptBatch as error:
                return f"control batch at position {scanner.position}: {error}"
        return ""

    def _learn(self, scanner: BatchScanner, header: BatchHeader) -> None:
        log = self.log
        self.next_offset = header.last_offset + 1
        self.last_epoch = header.partition_leader_epoch
        if header.partition_leader_epoch > log.leader_epochs.latest_epoch:
            log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset, write=False)
        if header.producer_id < 0:
            return
        completed = log.producers.note(header, read_marker(scanner.data, header), self.opened_ms)
        if completed is None:
            return
        last_stable_offset = log.producers.last_stable_offset_after(completed)
        if completed.aborted:
            self.segment.transaction_index().append(
                AbortedTransaction(
                    completed.producer_id, completed.first_offset, completed.last_offset, last_stable_offset
                )
            )
            self.segment.transaction_index_exists = True
        log.producers.complete(completed)
