"""The metadata log on disk: `__cluster_metadata-0` with its snapshots and the file quorum-state.

Implements `raft.log.RaftLog` on a `storage.log.Log`. An append is in the file when it returns and on the medium when a
sync that began after it reports back; appends that arrive meanwhile share the next sync. Snapshots are written
beside the log under another name, synced, renamed; they never change (mode 0400). Nothing here waits for the medium:
that is done in jobs of the disk, which has a thread for this directory alone. Kafka: KafkaMetadataLog.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import NamedTuple

from moldau.config.broker_config import BrokerConfig
from moldau.config.log_config import LogConfig
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import METADATA_TOPIC_UUID
from moldau.raft.batches import control_records
from moldau.raft.log import OffsetAndEpoch, RaftLog
from moldau.raft.snapshots import check_snapshot
from moldau.raft.state import QuorumState
from moldau.records.batch import CorruptBatch, has_valid_crc, split_batches
from moldau.records.builder import SNAPSHOT_HEADER
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource
from moldau.storage.disk import BlockingDisk, Disk, Done, File
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.recovery import create_log, load_log
from moldau.storage.run_history import CLEAN_SHUTDOWN_FILE

logger = logging.getLogger("moldau.metadata")

QUORUM_STATE_FILE = "quorum-state"
CHECKPOINT_SUFFIX = ".checkpoint"
PART_SUFFIX = ".checkpoint.part"
DELETED_SUFFIX = ".deleted"
DELETE_DELAY_MS = 60_000
NO_LIMIT = 1 << 62

_SNAPSHOT_NAME = re.compile(r"([0-9]{20})-([0-9]{10})\.checkpoint")


def snapshot_name(snapshot: OffsetAndEpoch) -> str:
    return f"{snapshot.offset:020d}-{snapshot.epoch:010d}{CHECKPOINT_SUFFIX}"


CHECK_BYTES = 1 << 20
HEADER_BYTES = 1 << 16


class StoredSnapshot(NamedTuple):
    """What is known of a snapshot without its file: the timestamp is that of the last record in it."""

    size: int
    timestamp_ms: int


def _timestamp_of(data: bytes) -> int:
    for _, control_type, value in control_records(data[:HEADER_BYTES]):
        if control_type == SNAPSHOT_HEADER and len(value) >= 10:
            return int.from_bytes(value[2:10], "big", signed=True)
    return 0


def _ignore(failure: OSError | None) -> None:
    """A file that stays behind is removed at the next start."""


class DamagedMetadataLog(Exception):
    """Bytes in the middle of the log, or of quorum-state, are not what was written."""

    @staticmethod
    def at(path: str, position: int) -> DamagedMetadataLog:
        return DamagedMetadataLog(
            f"{path} is damaged at or after position {position} although the last stop was clean: restore it from a "
            f"copy. Without {CLEAN_SHUTDOWN_FILE} the node starts with what lies before, and topics may be lost."
        )


class MetadataLog(RaftLog):
    """Made by `open_metadata_log`."""

    def __init__(self, disk: Disk, log: Log, config: BrokerConfig, rng: RandomSource) -> None:
        self.disk = disk
        self.log = log
        self.config = config
        self._rng = rng
        self._directory = log.directory
        self._snapshots: dict[OffsetAndEpoch, StoredSnapshot] = {}
        self._parts: dict[OffsetAndEpoch, str] = {}
        """What is being fetched."""
        self._checked: dict[OffsetAndEpoch, tuple[str, StoredSnapshot]] = {}
        """What was fetched, is whole and on the medium, and has no name of its own yet."""
        self._to_delete: list[tuple[int, str]] = []
        self._synced_to = log.log_start_offset
        """What a process that died had written may not be on the medium: the first sync covers all of it."""

    # quorum-state

    def read_quorum_state(self) -> QuorumState | None:
        path = f"{self._directory}/{QUORUM_STATE_FILE}"
        if not self.disk.exists(path):
            return None
        try:
            return QuorumState.from_json(self.disk.read_file(path))
        except (ValueError, KeyError, TypeError) as error:
            text = (
                "without it this node could vote twice in an epoch. Restore it, or let the node join with an empty disk"
            )
            raise DamagedMetadataLog(f"{path} is damaged ({error}): {text}") from error

    def write_quorum_state(self, state: QuorumState, data_version: int, voter_ids: list[int], done: Done) -> None:
        """On the medium when `done(None)` is called: a vote must not be forgotten. One after the other, as asked."""
        path, data = f"{self._directory}/{QUORUM_STATE_FILE}", state.to_json(data_version, voter_ids)
        self.disk.do_later(self._directory, lambda disk: disk.write_file(path, data), done)

    def write_first_quorum_state(self, state: QuorumState, data_version: int, voter_ids: list[int]) -> None:
        """While the node starts and nobody else needs its turn."""
        path, data = f"{self._directory}/{QUORUM_STATE_FILE}", state.to_json(data_version, voter_ids)
        self.disk.blocking().write_file(path, data)

    # Positions

    def start_offset(self) -> int:
        return self.log.log_start_offset

    def end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def truncations(self) -> int:
        """Grows when the log is truncated, and when a snapshot replaces the log."""
        return self.log.truncations

    def last_epoch(self) -> int:
        latest = self.log.leader_epochs.latest_epoch
        if latest >= 0:
            return latest
        snapshot = self.latest_snapshot()
        return snapshot.epoch if snapshot is not None else 0

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch:
        epochs = self.log.leader_epochs
        earliest = self.earliest_snapshot()
        if not epochs.epochs or epoch < epochs.epochs[0]:
            if earliest is not None and epoch >= earliest.epoch:
                return earliest
            return OffsetAndEpoch(self.start_offset(), epoch if not epochs.epochs else min(epoch, epochs.epochs[0]))
        if epoch >= epochs.latest_epoch:
            return OffsetAndEpoch(self.end_offset(), epochs.latest_epoch)
        found, end = epochs.end_offset_for_epoch(epoch, self.end_offset())
        return OffsetAndEpoch(end, found)

    # Records

    def append(self, batch: bytes) -> None:
        self.log.append_as_follower(MemoryRecords(batch, 0, len(batch)))

    def append_fetched(self, batches: bytes) -> None:
        self.log.append_as_follower(MemoryRecords(batches, 0, len(batches)))

    def read(self, offset: int, max_bytes: int) -> bytes:
        records = self.log.read(offset, max_bytes, NO_LIMIT, True).records
        if records is None:
            return b""
        file = records.file
        assert isinstance(file, File)
        return file.read(records.position, records.size)

    def truncate_to(self, offset: int) -> None:
        truncation = self.log.truncate(offset, 0)
        if truncation is not None:
            truncation.start(None)
        self._synced_to = min(self._synced_to, offset)

    def is_settled(self) -> bool:
        return self.log.holds == 0

    def sync_later(self, done: Done) -> None:
        """Syncs what is appended by now; `done` is called in a later turn."""
        end, truncations = self.end_offset(), self.log.truncations
        segments = [s for i, s in enumerate(self.log.segments) if self._next_base(i) > self._synced_to]
        files = [segment.log_file() for segment in segments]
        if not self.log.directory_changed:
            self._sync_files(files, end, truncations, done)
            return

        def on_names_synced(error: OSError | None) -> None:
            if error is not None:
                self.log.log_directory.fail(error)
                done(error)
            else:
                self._sync_files(files, end, truncations, done)

        self.log.directory_changed = False
        self._sync_names_later(on_names_synced)

    def _sync_names_later(self, done: Done) -> None:
        directory = self._directory
        self.disk.do_later(directory, lambda disk: disk.sync_directory(directory), done)

    def _next_base(self, number: int) -> int:
        segments = self.log.segments
        return segments[number + 1].base_offset if number + 1 < len(segments) else NO_LIMIT

    def _sync_files(self, files: list[File], end: int, truncations: int, done: Done) -> None:
        """One after the other: the oldest first, so that the synced part of the log has no hole."""

        def on_synced(error: OSError | None) -> None:
            if error is not None:
                self.log.log_directory.fail(error)
                done(error)
            elif self.log.closed or truncations != self.log.truncations:
                done(None)  # closing it has synced all of it; after a truncation this tells nothing any more
            elif len(files) > 1:
                self._sync_files(files[1:], end, truncations, done)
            else:
                self._synced_to = max(self._synced_to, end)
                done(None)

        self.disk.sync_later(files[0], on_synced)

    # Snapshots

    def latest_snapshot(self) -> OffsetAndEpoch | None:
        return max(self._snapshots, default=None)

    def earliest_snapshot(self) -> OffsetAndEpoch | None:
        return min(self._snapshots, default=None)

    def snapshot_size(self, snapshot: OffsetAndEpoch) -> int:
        stored = self._snapshots.get(snapshot)
        return stored.size if stored is not None else -1

    def read_snapshot_later(
        self, snapshot: OffsetAndEpoch, position: int, max_bytes: int, done: Callable[[bytes | OSError], None]
    ) -> None:
        """For another replica: nobody may have read the file for a long time. It may be gone by now."""
        try:
            file = self.disk.open(f"{self._directory}/{snapshot_name(snapshot)}")
        except OSError as error:
            done(error)
            return

        def on_read(data: bytes | OSError) -> None:
            file.close()
            done(data)

        self.disk.read_later(file, position, max_bytes, on_read)

    def read_snapshot(self, snapshot: OffsetAndEpoch, position: int, max_bytes: int) -> bytes:
        file = self.disk.open(f"{self._directory}/{snapshot_name(snapshot)}")
        try:
            return file.read(position, max_bytes)
        finally:
            file.close()

    def write_snapshot(self, snapshot: OffsetAndEpoch, data: bytes, done: Done) -> None:
        """Writes a snapshot of committed records; it counts when `done(None)` is called."""
        path = f"{self._directory}/{snapshot_name(snapshot)}"

        def on_written(error: OSError | None) -> None:
            if self.log.closed:
                return  # the directory may belong to another process by now
            if error is None:
                if snapshot.offset < self.start_offset():
                    # A newer one was fetched meanwhile, and the log behind this one is gone.
                    self.disk.remove_later([path], _ignore)
                else:
                    self._snapshots[snapshot] = StoredSnapshot(len(data), _timestamp_of(data))
            done(error)

        self.disk.do_later(self._directory, lambda disk: disk.write_file(path, data, mode=0o400), on_written)

    def _part_path(self, snapshot: OffsetAndEpoch) -> str:
        number = self._rng.randrange(1 << 62)
        return f"{self._directory}/{snapshot.offset:020d}-{snapshot.epoch:010d}-{number}{PART_SUFFIX}"

    def append_fetched_snapshot(self, snapshot: OffsetAndEpoch, position: int, data: bytes) -> None:
        if position == 0:
            self._drop_parts()
            self._parts[snapshot] = self._part_path(snapshot)
        file = self.disk.open(self._parts[snapshot], create=True)
        file.append([data])
        file.close()

    def _drop_parts(self) -> None:
        """What was fetched of a snapshot before the leader changed, or before it named a newer one."""
        self.disk.remove_later(list(self._parts.values()), _ignore)
        self._parts.clear()

    def check_fetched_snapshot(
        self, snapshot: OffsetAndEpoch, done: Callable[[OSError | ValueError | None], None]
    ) -> None:
        """Reads what was fetched and brings it to the medium; ValueError says that it is no whole snapshot."""
        part, name = self._parts.pop(snapshot), snapshot_name(snapshot)
        found: list[StoredSnapshot] = []
        problems: list[ValueError] = []

        def check(disk: BlockingDisk) -> None:
            data = disk.read_file(part)
            try:
                check_snapshot(data, name)
            except ValueError as problem:
                problems.append(problem)
                return
            disk.write_file(part, data, mode=0o400)
            found.append(StoredSnapshot(len(data), _timestamp_of(data)))

        def on_checked(error: OSError | None) -> None:
            if error is None and found:
                self.drop_fetched_snapshot(snapshot)
                self._checked[snapshot] = (part, found[0])
            else:
                self.disk.remove_later([part], _ignore)
            done(problems[0] if error is None and problems else error)

        self.disk.do_later(self._directory, check, on_checked)

    def drop_fetched_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        checked = self._checked.pop(snapshot, None)
        if checked is not None:
            self.disk.remove_later([checked[0]], _ignore)

    def install_fetched_snapshot(self, snapshot: OffsetAndEpoch) -> None:
        part, stored = self._checked.pop(snapshot)
        self.disk.rename(part, f"{self._directory}/{snapshot_name(snapshot)}")
        self._snapshots[snapshot] = stored
        self.log.start_at(snapshot.offset, 0).start(None)
        self._synced_to = snapshot.offset
        self.disk.remove_later(self._forget_snapshots_before(snapshot.offset), _ignore)

    def _start_after(self, snapshot: OffsetAndEpoch) -> None:
        """At a start: empties the log, for the snapshot is newer than everything in it."""
        self.log.truncate_fully_and_start_at(snapshot.offset)
        self._synced_to = snapshot.offset

    def _forget_snapshots_before(self, offset: int) -> list[str]:
        """They have no log that goes on; returns their paths."""
        old = [snapshot for snapshot in sorted(self._snapshots) if snapshot.offset < offset]
        for snapshot in old:
            del self._snapshots[snapshot]
        return [f"{self._directory}/{snapshot_name(snapshot)}" for snapshot in old]

    # Retention

    def clean(self, now_ms: int) -> None:
        """Deletes old snapshots by size and age, never the latest, and the log before the oldest one that is kept."""
        bytes_max = self.config.get_int("metadata.max.retention.bytes")
        age_max_ms = self.config.get_int("metadata.max.retention.ms")
        while len(self._snapshots) > 1:
            oldest, following = sorted(self._snapshots)[:2]
            total = self.log.size_bytes + sum(stored.size for stored in self._snapshots.values())
            too_big = 0 <= bytes_max < total
            too_old = age_max_ms >= 0 and self._age_ms(oldest, now_ms) > age_max_ms
            if not too_big and not too_old:
                break
            self._delete_snapshot(oldest, now_ms)
            if self.log.advance_log_start(min(following.offset, self.log.log_end_offset)):
                self.log.apply_retention(now_ms, following.offset)

    def _age_ms(self, snapshot: OffsetAndEpoch, now_ms: int) -> int:
        wall = self.log.wall
        return wall.at(now_ms) - self._snapshots[snapshot].timestamp_ms if wall.may_delete_by_age else 0

    def _delete_snapshot(self, snapshot: OffsetAndEpoch, now_ms: int) -> None:
        path = f"{self._directory}/{snapshot_name(snapshot)}"
        del self._snapshots[snapshot]
        self.disk.rename(path, path + DELETED_SUFFIX)
        self._to_delete.append((now_ms + DELETE_DELAY_MS, path + DELETED_SUFFIX))

    def housekeeping(self, now_ms: int) -> None:
        """Removes files whose delay is over."""
        self.log.housekeeping(now_ms)
        self.disk.remove_later([path for due_ms, path in self._to_delete if now_ms >= due_ms], _ignore)
        self._to_delete = [entry for entry in self._to_delete if now_ms < entry[0]]

    def close(self, now_ms: int) -> None:
        self.log.close(now_ms)

    def load_snapshots(self) -> None:
        """Finds the snapshots; what a crash left half written or half deleted goes."""
        for name, size in self.disk.list_with_sizes(self._directory).items():
            match = _SNAPSHOT_NAME.fullmatch(name)
            if match is not None:
                snapshot = OffsetAndEpoch(int(match[1]), int(match[2]))
                timestamp_ms = _timestamp_of(self.read_snapshot(snapshot, 0, HEADER_BYTES))
                self._snapshots[snapshot] = StoredSnapshot(size, timestamp_ms)
            elif CHECKPOINT_SUFFIX in name:
                self.disk.blocking().remove(f"{self._directory}/{name}")
        latest = self.latest_snapshot()
        if latest is not None:
            # Removals that were not synced when the log before them was gone already.
            for path in self._forget_snapshots_before(min(latest.offset, self.start_offset())):
                self.disk.blocking().remove(path)
        if latest is not None and not self._agrees_with(latest):
            logger.info(
                "truncating the metadata log fully: it ends below its snapshot, starting at offset %d", latest.offset
            )
            self._start_after(latest)
            for path in self._forget_snapshots_before(latest.offset):
                self.disk.blocking().remove(path)

    def _agrees_with(self, snapshot: OffsetAndEpoch) -> bool:
        """Whether the log holds what the snapshot ends with. A replica that fetched a snapshot because its log had
        parted from the leader's may have crashed before it emptied the log, or before it forgot its epochs."""
        if self.start_offset() == snapshot.offset:
            return self.end_offset() > snapshot.offset or self.last_epoch() == snapshot.epoch
        end = self.end_offset_for_epoch(snapshot.epoch)
        return self.end_offset() >= snapshot.offset and end.epoch == snapshot.epoch and end.offset >= snapshot.offset


def metadata_log_config(config: BrokerConfig) -> LogConfig:
    """Segments as configured; nothing is deleted but by `MetadataLog.clean`."""
    return LogConfig(
        segment_bytes=config.get_int_or_none("internal.metadata.log.segment.bytes")
        or config.get_int("metadata.log.segment.bytes"),
        segment_ms=config.get_int("metadata.log.segment.ms"),
        retention_ms=-1,
        retention_bytes=-1,
        max_message_bytes=config.get_int("internal.metadata.max.batch.size.in.bytes"),
        file_delete_delay_ms=DELETE_DELAY_MS,
    )


def open_metadata_log(
    disk: Disk,
    config: BrokerConfig,
    rng: RandomSource,
    now_ms: int,
    on_failed: Callable[[LogDirectory], None] | None = None,
    wall: WallClock | None = None,
) -> MetadataLog:
    """Opens the log, creating it when it is not there; every batch is checked, for nothing says what was synced."""
    directory = f"{config.metadata_log_dir.rstrip('/')}/{METADATA_TOPIC}-0"
    log_directory = LogDirectory(config.metadata_log_dir, on_failed=on_failed, wall=wall)
    log_config = metadata_log_config(config)
    names = disk.list(directory) if disk.is_directory(directory) else []
    if any(name.endswith(".log") for name in names):
        if disk.exists(f"{log_directory.path.rstrip('/')}/{CLEAN_SHUTDOWN_FILE}"):
            check_undamaged(disk, [f"{directory}/{name}" for name in names if name.endswith(".log")])
        lost = disk.sync_all([f"{directory}/{name}" for name in names if name.endswith(".log")])
        if lost:
            logger.error(
                "writes of the previous process to %s are lost; continuing with what is on the disk", ", ".join(lost)
            )
        log = load_log(disk, log_directory, directory, METADATA_TOPIC, 0, config=log_config, now_ms=now_ms)
        log.topic_id = METADATA_TOPIC_UUID
    else:
        log = create_log(
            disk,
            log_directory,
            directory,
            METADATA_TOPIC,
            0,
            topic_id=METADATA_TOPIC_UUID,
            config=log_config,
            now_ms=now_ms,
        )
        disk.blocking().sync_directory(config.metadata_log_dir)
    metadata_log = MetadataLog(disk, log, config, rng)
    metadata_log.load_snapshots()
    metadata_log.read_quorum_state()
    # A process that was killed may have renamed quorum-state or a snapshot without having synced the directory; this
    # one is going to act on what it sees there.
    disk.blocking().sync_directory(directory)
    return metadata_log


def check_undamaged(disk: Disk, paths: list[str]) -> None:
    """After a clean stop there is no torn end: to truncate the log where it cannot be read would lose topics."""
    for path in paths:
        file = disk.open(path)
        position, chunk, size = 0, CHECK_BYTES, file.size()
        while position < size:
            data = file.read(position, chunk)
            try:
                whole = split_batches(data, 0, len(data))
            except CorruptBatch as error:
                raise DamagedMetadataLog.at(path, position) from error
            for header in whole:
                if not has_valid_crc(data, header):
                    raise DamagedMetadataLog.at(path, position + int(header.position))
            if not whole and position + chunk >= size:
                raise DamagedMetadataLog.at(path, position)
            chunk = CHECK_BYTES if whole else 2 * chunk
            position += sum(int(header.size) for header in whole)
        file.close()
