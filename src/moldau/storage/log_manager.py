"""All logs of a node in all its log directories: loads, creates, deletes them, and does what is due from time to time.

A directory that fails takes its own logs offline and no others. Checkpoints, retention and removals happen in
`housekeeping`; a clean stop leaves a marker that saves the next start from looking at the data. Kafka: LogManager.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable

from moldau.config.log_config import LogConfig
from moldau.protocol.errors import KAFKA_STORAGE_ERROR, KafkaError
from moldau.protocol.uuids import ZERO_UUID
from moldau.storage import partition_metadata
from moldau.storage.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
    DamagedCheckpoint,
    Partition,
    format_offsets,
    read_offsets,
    write_offsets,
)
from moldau.storage.disk import Disk
from moldau.storage.future_logs import FutureLogs, parse_future_name
from moldau.storage.log import Log
from moldau.storage.log_directory import NO_SPACE, LogDirectory
from moldau.storage.meta_properties import read_meta_properties
from moldau.storage.recovery import DEFAULT_PRODUCER_EXPIRATION_MS, create_log, load_log, no_jitter
from moldau.storage.recovery_task import (
    SMALLEST_TASK_BYTES,
    WORTH_IT_BYTES,
    RecoveryResult,
    RecoveryTask,
    RecoveryWorkers,
    bytes_to_walk,
    take_over,
)
from moldau.storage.run_note import epoch_of_killed_run, forget_run, note_run

CLEAN_SHUTDOWN_FILE = ".kafka_cleanshutdown"
METADATA_TOPIC = "__cluster_metadata"
DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
NAME_LENGTH_MAX = 255
UNKNOWN_BROKER_EPOCH = -1
NO_LIMIT = 1 << 63

CHECKPOINT_INTERVAL_MS = 60_000
RETENTION_INTERVAL_MS = 300_000
EXPIRATION_INTERVAL_MS = 600_000
FIRST_RUN_DELAY_MS = 30_000

PARTITION_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
MARKED_NAME = re.compile(r"\S+\.[0-9a-z]{32}-(?:delete|future|stray)")

logger = logging.getLogger("moldau.storage")


class CannotStart(Exception):
    """The directories are in a state that a person must look at."""


def parse_partition_name(name: str) -> Partition | None:
    """Topic and partition of a replica's folder; None for any other name."""
    match = PARTITION_NAME.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match is not None else None


class DoomedFolder:
    """A folder that was renamed to -delete and goes at `due_ms`."""

    def __init__(self, directory: LogDirectory, path: str, due_ms: int) -> None:
        self.directory = directory
        self.path = path
        self.due_ms = due_ms


class LogManager:
    """`config_of` gives the settings of a topic; `random_below` a number below its argument (jitter, folder names)."""

    def __init__(
        self,
        disk: Disk,
        paths: list[str],
        config_of: Callable[[str], LogConfig],
        random_below: Callable[[int], int] = no_jitter,
        on_directory_failed: Callable[[LogDirectory], None] | None = None,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
    ) -> None:
        self.disk = disk
        self.config_of = config_of
        self.random_below = random_below
        self.on_directory_failed = on_directory_failed
        self.producer_expiration_ms = producer_expiration_ms
        self.checkpoint_interval_ms = CHECKPOINT_INTERVAL_MS
        self.log_start_checkpoint_interval_ms = CHECKPOINT_INTERVAL_MS
        self.expiration_interval_ms = EXPIRATION_INTERVAL_MS
        self.first_retention_delay_ms = FIRST_RUN_DELAY_MS
        self.retention_interval_ms = RETENTION_INTERVAL_MS
        self.free_bytes_min = -1
        self.recovery_workers: RecoveryWorkers | None = None
        self.recovery_workers_max = 1  # for each directory
        self.directories = [LogDirectory(path.rstrip("/"), ZERO_UUID, self._on_failed) for path in paths]
        self.logs: dict[Partition, Log] = {}
        self.futures = FutureLogs(self)
        self.delete_suffix = DELETE_SUFFIX
        self.clean_broker_epochs: dict[str, int] = {}
        self.high_watermarks: dict[Partition, int] = {}
        self.cleaned_to: dict[Partition, int] = {}
        self.on_log_gone: Callable[[Log], None] | None = None  # told before a log is cut or removed
        self.on_durable: Callable[[Log], None] | None = None  # told when a flush in the background is over
        self.loaded_unclean = False
        self._clean: dict[str, bool] = {}
        self._killed_epochs: dict[str, int] = {}
        self._locked = False
        self._doomed: list[DoomedFolder] = []
        # What the checkpoint files of each directory hold, to know when they must not outlive a deleted log.
        self._checkpointed: dict[str, set[Partition]] = {}
        # The offsets in the checkpoint files, as far as it is certain what they hold.
        self._recovery_points: dict[str, dict[Partition, int]] = {}
        self._log_starts: dict[str, dict[Partition, int]] = {}
        self._writing: set[str] = set()
        self._counts: dict[str, int] = {}
        self._next_checkpoint_ms = -1
        self._next_log_start_checkpoint_ms = -1
        self._next_retention_ms = -1
        self._next_expiration_ms = -1

    # Loading

    def lock(self) -> None:
        """Takes every directory for this process; nothing happens when they are taken already."""
        if self._locked:
            return
        self._locked = True
        for directory in self.directories:
            try:
                self.disk.make_directory(directory.path)
                self.disk.lock_directory(directory.path)
            except BlockingIOError as error:
                raise CannotStart(
                    f"{directory.path} is in use by another process: stop that one, or set log.dirs to another folder"
                ) from error
            except OSError as error:
                directory.fail(error)

    def load(self, now_ms: int) -> None:
        """Opens all logs of all directories. A directory that cannot be read is offline from the start."""
        self.lock()
        self.take_clean_markers()
        for directory in self.online_directories():
            try:
                self._load_directory(directory, now_ms)
                if not directory.failed:
                    # What it is now is what the run before left, if this one is killed before it has registered.
                    note_run(self.disk, directory.path, self._previous_epoch_in(directory))
            except OSError as error:
                directory.fail(error)
        self._next_checkpoint_ms = now_ms + self.checkpoint_interval_ms
        self._next_log_start_checkpoint_ms = now_ms + self.log_start_checkpoint_interval_ms
        self._next_retention_ms = now_ms + self.first_retention_delay_ms
        self._next_expiration_ms = now_ms + self.expiration_interval_ms
        self.watch_space()
        if all(directory.failed for directory in self.directories):
            raise CannotStart("none of the log directories can be used")

    def _load_directory(self, directory: LogDirectory, now_ms: int) -> None:
        properties = read_meta_properties(self.disk, directory.path)
        if properties is not None and properties.directory_id is not None:
            directory.directory_id = properties.directory_id
        clean = self._clean[directory.path]
        recovery_points = self._read_checkpoint(directory, RECOVERY_POINT_FILE)
        log_starts = self._read_checkpoint(directory, LOG_START_FILE) or {}
        self.high_watermarks.update(self._read_checkpoint(directory, REPLICATION_FILE) or {})
        cleaned_to = self._read_checkpoint(directory, CLEANER_FILE)
        self.cleaned_to.update(cleaned_to or {})
        # Without these files nobody knows how far compaction has come: then no gap is taken for a loss.
        gaps_known = recovery_points is not None and cleaned_to is not None
        recovery_points = recovery_points or {}
        self._checkpointed[directory.path] = set(recovery_points) | set(log_starts)
        self._recovery_points[directory.path] = recovery_points
        self._counts[directory.path] = 0
        tasks: list[RecoveryTask] = []
        for name, size in self.disk.list_with_sizes(directory.path).items():
            if size >= 0:
                continue
            path = f"{directory.path}/{name}"
            future = parse_future_name(name)
            if MARKED_NAME.fullmatch(name) and future is None:
                if name.endswith(DELETE_SUFFIX):
                    self._doomed.append(DoomedFolder(directory, path, now_ms))
                continue
            partition = parse_partition_name(name) if future is None else future
            if partition is None:
                logger.warning("%s is no folder of a partition and is left alone", path)
                continue
            if partition[0] == METADATA_TOPIC:
                continue
            if future is None:
                self._check_not_twice(partition, path)
            gaps_to = self.cleaned_to.get(partition, 0) if gaps_known else NO_LIMIT
            config = self.config_of(partition[0])
            tasks.append(
                RecoveryTask(
                    directory.path,
                    path,
                    partition[0],
                    partition[1],
                    now_ms,
                    recovery_points.get(partition, 0),
                    log_starts.get(partition, 0),
                    gaps_to,
                    self.producer_expiration_ms,
                    config.compact,
                    config.index_interval_bytes,
                    config.segment_index_bytes,
                )
            )
        recovered = {} if clean else self._recover_in_parallel(tasks)
        for task in tasks:
            self._load_one(directory, task, recovered.get(task.directory), clean)
        if not clean or not gaps_known:
            # A gap that was accepted must lie below the recovery point before the settings of the log can change.
            self._write_first_checkpoints(directory, cleaned_to is None)

    def _check_not_twice(self, partition: Partition, path: str) -> None:
        other = self.logs.get(partition)
        if other is not None:
            raise CannotStart(
                f"{partition[0]}-{partition[1]} is both in {other.directory} and in {path}: remove one of the two"
            )

    def _recover_in_parallel(self, tasks: list[RecoveryTask]) -> dict[str, RecoveryResult]:
        """What workers have recovered, by folder: the large logs, if there is enough to do for more than one worker."""
        workers = self.recovery_workers
        if workers is None or self.recovery_workers_max < 2:
            return {}
        for task in tasks:
            task.size_bytes = bytes_to_walk(self.disk.list_with_sizes(task.directory), task.recovery_point)
        large = [task for task in tasks if task.size_bytes >= SMALLEST_TASK_BYTES]
        if len(large) < 2 or sum(task.size_bytes for task in large) < WORTH_IT_BYTES:
            return {}
        results = workers.run(large, self.recovery_workers_max)
        return {task.directory: result for task, result in zip(large, results, strict=True) if result is not None}

    def _load_one(
        self, directory: LogDirectory, task: RecoveryTask, recovered: RecoveryResult | None, clean: bool
    ) -> None:
        log = load_log(
            self.disk,
            directory,
            task.directory,
            task.topic,
            task.partition,
            self.config_of(task.topic),
            task.now_ms,
            task.recovery_point if recovered is None else recovered.end_offset,
            task.log_start_offset if recovered is None else recovered.log_start_offset,
            clean or recovered is not None,
            self.random_below,
            self.producer_expiration_ms,
            task.gaps_to,
        )
        if recovered is not None:
            take_over(log, recovered)
        if parse_future_name(task.directory.rpartition("/")[2]) is None:
            self._add(log)
            return
        self.futures.add(log)
        if not clean:
            self.futures.certain_to[(log.topic, log.partition)] = task.recovery_point

    def _add(self, log: Log) -> None:
        self.logs[(log.topic, log.partition)] = log
        log.on_durable = self._on_durable
        self.count_log(log.log_directory, 1)

    def count_log(self, directory: LogDirectory, change: int) -> None:
        self._counts[directory.path] = self._counts.get(directory.path, 0) + change

    def _on_durable(self, log: Log) -> None:
        if self.on_durable is not None:
            self.on_durable(log)

    def take_clean_markers(self) -> None:
        """Before anything is written: a crash from here on must not be taken for a clean stop."""
        for directory in self.online_directories():
            if directory.path not in self._clean:
                try:
                    self._killed_epochs[directory.path] = epoch_of_killed_run(self.disk, directory.path)
                    # A recovery that is interrupted may have cut something off, and nobody would see it afterwards.
                    forget_run(self.disk, directory.path)
                    self._clean[directory.path] = self._take_clean_marker(directory)
                except OSError as error:
                    directory.fail(error)

    def _take_clean_marker(self, directory: LogDirectory) -> bool:
        """Reads and removes the marker of a clean stop: from now on only the next clean stop may claim one."""
        path = f"{directory.path}/{CLEAN_SHUTDOWN_FILE}"
        try:
            data = self.disk.read_file(path)
        except FileNotFoundError:
            self.loaded_unclean = True
            return False
        try:
            self.clean_broker_epochs[directory.path] = int(json.loads(data)["brokerEpoch"])
        except (ValueError, KeyError, TypeError):
            self.clean_broker_epochs[directory.path] = UNKNOWN_BROKER_EPOCH
        self.disk.remove(path)
        self.disk.sync_directory(directory.path)
        return True

    def _read_checkpoint(self, directory: LogDirectory, name: str) -> dict[Partition, int] | None:
        """None when there is none that can be read."""
        path = f"{directory.path}/{name}"
        if not self.disk.exists(path):
            return None
        try:
            return read_offsets(self.disk, path)
        except DamagedCheckpoint as error:
            logger.warning("starting without a damaged checkpoint, which costs a longer recovery: %s", error)
            return None

    def _write_first_checkpoints(self, directory: LogDirectory, cleaner_too: bool) -> None:
        try:
            self._write_directory_checkpoints(directory)
            if cleaner_too:
                self._write_cleaned_to(directory)
        except OSError as error:
            directory.on_write_failed(error)

    def previous_broker_epoch(self) -> int:
        """The broker epoch of the last run, when it lost nothing in any directory; else -1.

        That is so after a clean stop, and after a kill on a machine that has gone on, if every log ended well."""
        epochs = {self._previous_epoch_in(directory) for directory in self.directories}
        return epochs.pop() if len(epochs) == 1 else UNKNOWN_BROKER_EPOCH

    def _previous_epoch_in(self, directory: LogDirectory) -> int:
        if directory.failed:
            return UNKNOWN_BROKER_EPOCH
        if self._clean.get(directory.path):
            return self.clean_broker_epochs.get(directory.path, UNKNOWN_BROKER_EPOCH)
        return UNKNOWN_BROKER_EPOCH if directory.cut_in_recovery else self._killed_epochs.get(directory.path, -1)

    def note_run(self, broker_epoch: int) -> None:
        """The broker is registered: should it be killed, its next run can tell what it has lost."""
        for directory in self.online_directories():
            try:
                note_run(self.disk, directory.path, broker_epoch)
            except OSError as error:
                directory.on_write_failed(error)

    # Finding, creating, deleting

    def get(self, topic: str, partition: int) -> Log | None:
        return self.logs.get((topic, partition))

    def online_directories(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.failed]

    def directory_by_id(self, directory_id: bytes) -> LogDirectory | None:
        for directory in self.directories:
            if directory.directory_id == directory_id:
                return directory
        return None

    def create(
        self, topic: str, partition: int, topic_id: bytes, now_ms: int, directory: LogDirectory | None = None
    ) -> Log:
        """The log of a partition, made if it is not there; in `directory`, or in the one with the fewest partitions."""
        existing = self.logs.get((topic, partition))
        if existing is not None:
            return existing
        directory = directory if directory is not None else self._emptiest()
        if directory.failed:
            raise directory.storage_error()
        path = f"{directory.path}/{topic}-{partition}"
        try:
            self.forget_checkpoints(directory, (topic, partition))
            directory.folders_unsynced = True
            log = create_log(
                self.disk, directory, path, topic, partition, topic_id, self.config_of(topic), now_ms, self.random_below
            )
        except OSError as error:
            if error.errno in NO_SPACE:
                raise KafkaError(KAFKA_STORAGE_ERROR, f"No space for {topic}-{partition}: {error}") from error
            directory.fail(error)
            raise directory.storage_error() from error
        self._add(log)
        return log

    def forget_checkpoints(self, directory: LogDirectory, partition: Partition) -> None:
        """Offsets of a deleted log of the same name must not be taken for those of a new one."""
        if partition in self._checkpointed.get(directory.path, ()):
            self._write_directory_checkpoints(directory)

    def _emptiest(self) -> LogDirectory:
        online = self.online_directories()
        if not online:
            raise KafkaError(KAFKA_STORAGE_ERROR, "No log directory is online")
        return min(online, key=self._count)

    def _count(self, directory: LogDirectory) -> int:
        return self._counts.get(directory.path, 0)

    def set_topic_id(self, log: Log, topic_id: bytes) -> None:
        """Gives a log its topic id when it has none on disk."""
        try:
            partition_metadata.write_topic_id(self.disk, log.directory, topic_id)
        except OSError as error:
            raise log.storage_failure(error) from error
        log.topic_id = topic_id
        log.folder_unsynced = True

    def set_config(self, topic: str, config: LogConfig) -> None:
        for log in self.logs.values():
            if log.topic == topic:
                log.set_config(config)

    def truncate(self, log: Log, offset: int, now_ms: int) -> None:
        """Cuts a log. The recovery point on disk goes down first: what changes now must be walked after a crash."""
        self.log_goes(log)
        if offset < log.recovery_point:
            log.recovery_point = offset
            try:
                self._write_directory_checkpoints(log.log_directory)
            except OSError as error:
                raise log.storage_failure(error) from error
        self._lower_cleaned_to(log, offset)
        log.truncate_to(offset, now_ms)

    def truncate_fully_and_start_at(self, log: Log, offset: int, now_ms: int) -> None:
        """Empties a log, which goes on at `offset`. Its old offsets leave the checkpoint files before and after."""
        self.log_goes(log)
        try:
            if offset < log.recovery_point:
                log.recovery_point = offset
                self._write_directory_checkpoints(log.log_directory)
            self._lower_cleaned_to(log, offset)
            log.truncate_fully_and_start_at(offset, now_ms)
            self._write_directory_checkpoints(log.log_directory)
        except OSError as error:
            raise log.storage_failure(error) from error

    def _lower_cleaned_to(self, log: Log, offset: int) -> None:
        if self.logs.get((log.topic, log.partition)) is not log:
            return
        if self.cleaned_to.get((log.topic, log.partition), -1) > offset:
            self.set_cleaned_to((log.topic, log.partition), offset)

    def delete(self, topic: str, partition: int, now_ms: int) -> None:
        """Takes the log out of use at once; its folder goes after the delay."""
        log = self._remove(topic, partition)
        if log is None or log.log_directory.failed:
            return
        self.doom(log, now_ms)

    def doom(self, log: Log, now_ms: int) -> None:
        """Renames the folder of a log that is out of use; it goes after the delay."""
        self.rename_folder(log, self.marked_path(log, DELETE_SUFFIX))
        self._doomed.append(DoomedFolder(log.log_directory, log.directory, now_ms + log.config.file_delete_delay_ms))

    def set_aside(self, topic: str, partition: int) -> None:
        """A replica that the metadata does not place here becomes a -stray folder, which stays until someone looks."""
        log = self._remove(topic, partition)
        if log is not None and not log.log_directory.failed:
            path = self.marked_path(log, STRAY_SUFFIX)
            self.rename_folder(log, path)
            logger.warning("%s-%d does not belong here any more and was moved to %s", topic, partition, path)

    def replace(self, source: Log | None, log: Log, now_ms: int) -> None:
        """`log`, which has its own name by now, is the log of its partition in the place of `source`, which was
        renamed to -delete."""
        if source is not None:
            self.count_log(source.log_directory, -1)
            source.close_files()
            due_ms = now_ms + source.config.file_delete_delay_ms
            self._doomed.append(DoomedFolder(source.log_directory, source.directory, due_ms))
        self._add(log)

    def _remove(self, topic: str, partition: int) -> Log | None:
        log = self.logs.pop((topic, partition), None)
        if log is not None:
            self.count_log(log.log_directory, -1)
            self.log_goes(log)
            self.high_watermarks.pop((topic, partition), None)
            log.close_files()
            self._forget_cleaned_to(log)
        return log

    def log_goes(self, log: Log) -> None:
        if self.on_log_gone is not None:
            self.on_log_gone(log)

    def _forget_cleaned_to(self, log: Log) -> None:
        """A new log of the same name must not be taken for compacted."""
        known = self.cleaned_to.pop((log.topic, log.partition), None)
        if known is not None and not log.log_directory.failed:
            try:
                self._write_cleaned_to(log.log_directory)
            except OSError as error:
                log.log_directory.on_write_failed(error)

    def marked_path(self, log: Log, suffix: str) -> str:
        """What the folder of a log is called that goes, or that nobody knows any more."""
        unique = f".{self.random_below(1 << 128):032x}{suffix}"
        name = f"{log.topic}-{log.partition}"
        if len(name) + len(unique) > NAME_LENGTH_MAX:
            number = f"-{log.partition}"
            name = log.topic[: NAME_LENGTH_MAX - len(number) - len(unique)] + number
        return f"{log.log_directory.path}/{name}{unique}"

    def rename_folder(self, log: Log, path: str) -> None:
        try:
            self.disk.rename(log.directory, path)
        except OSError as error:
            raise log.storage_failure(error) from error
        # Open files have followed by themselves.
        log.log_directory.folders_unsynced = True
        log.retired.move_to(log.directory, path)
        log.directory = log.leader_epochs.directory = log.snapshots.directory = path
        for segment in log.segments:
            segment.move_to(path)

    # Checkpoints

    def checkpoint(self, stopping: bool = False) -> None:
        """Writes recovery points and log starts of every directory: in the background, but for one that stops, which
        must not leave old ones behind."""
        for directory in self.online_directories():
            if not stopping:
                self._write_recovery_points_later(directory)
                self._write_log_starts_later(directory)
                continue
            try:
                self._write_directory_checkpoints(directory)
                directory.on_written()
            except OSError as error:
                directory.fail(error)

    def _write_directory_checkpoints(self, directory: LogDirectory) -> None:
        """On the medium when it returns."""
        recovery_points, log_starts = self._offsets_of(directory)
        write_offsets(self.disk, f"{directory.path}/{RECOVERY_POINT_FILE}", recovery_points)
        write_offsets(self.disk, f"{directory.path}/{LOG_START_FILE}", log_starts)
        self._checkpointed[directory.path] = set(recovery_points) | set(log_starts)
        self._recovery_points[directory.path] = recovery_points
        self._log_starts[directory.path] = log_starts

    def _write_recovery_points_later(self, directory: LogDirectory) -> None:
        recovery_points, _ = self._offsets_of(directory)
        if recovery_points != self._recovery_points.get(directory.path):
            # What is on its way may be on disk at any moment; what was there before it is so no longer than until then.
            self._checkpointed.setdefault(directory.path, set()).update(recovery_points)
            self._recovery_points.pop(directory.path, None)
            self._write_later(directory, RECOVERY_POINT_FILE, recovery_points, self._recovery_points)

    def _write_log_starts_later(self, directory: LogDirectory) -> None:
        _, log_starts = self._offsets_of(directory)
        if log_starts != self._log_starts.get(directory.path):
            self._checkpointed.setdefault(directory.path, set()).update(log_starts)
            self._log_starts.pop(directory.path, None)
            self._write_later(directory, LOG_START_FILE, log_starts, self._log_starts)

    def _write_later(
        self,
        directory: LogDirectory,
        name: str,
        offsets: dict[Partition, int],
        written: dict[str, dict[Partition, int]],
    ) -> None:
        path = f"{directory.path}/{name}"
        if path in self._writing:
            return  # the disk is slow; the next time comes
        self._writing.add(path)

        def done(error: OSError | None) -> None:
            self._writing.discard(path)
            if error is not None:
                directory.on_write_failed(error)
                return
            # Unless it was written again in the meantime, by somebody who could not wait.
            written.setdefault(directory.path, offsets)
            directory.on_written()

        self.disk.write_file_later(path, format_offsets(offsets), done)

    def ensure_recovery_point(self, log: Log, offset: int) -> None:
        """The recovery point of the log on disk is at least `offset` when this returns; raises OSError.

        Compaction asks for this before it leaves gaps: behind the recovery point a gap is taken for a loss."""
        on_disk = self._recovery_points.get(log.log_directory.path, {})
        if on_disk.get((log.topic, log.partition), 0) < offset:
            self._write_directory_checkpoints(log.log_directory)
        else:
            self.disk.sync_directory(log.log_directory.path)  # what is written in the background may still be undone

    def _offsets_of(self, directory: LogDirectory) -> tuple[dict[Partition, int], dict[Partition, int]]:
        """Recovery points and log starts, these only where the name of the first segment does not tell."""
        recovery_points: dict[Partition, int] = {}
        log_starts: dict[Partition, int] = {}
        for logs in (self.futures.logs, self.logs):
            for partition, log in logs.items():
                if log.log_directory is directory:
                    recovery_points[partition] = log.recovery_point
                    if log.log_start_offset > log.base_offsets[0]:
                        log_starts[partition] = log.log_start_offset
        return recovery_points, log_starts

    def set_cleaned_to(self, partition: Partition, offset: int) -> None:
        """Compaction has come so far in a log; raises OSError."""
        self.cleaned_to[partition] = offset
        log = self.logs[partition]
        self._write_cleaned_to(log.log_directory)

    def write_checkpoints_of(self, future: Log) -> None:
        """Before a log takes over in its directory, it is known there how far it is safe and how far compacted."""
        self._write_directory_checkpoints(future.log_directory)
        if (future.topic, future.partition) in self.cleaned_to:
            self._write_cleaned_to(future.log_directory)

    def _write_cleaned_to(self, directory: LogDirectory) -> None:
        offsets = {}
        for partition, offset in self.cleaned_to.items():
            for log in (self.logs.get(partition), self.futures.logs.get(partition)):
                if log is not None and log.log_directory is directory:
                    offsets[partition] = offset
        write_offsets(self.disk, f"{directory.path}/{CLEANER_FILE}", offsets)

    def checkpoint_high_watermarks(self, high_watermarks: dict[Partition, int], sync: bool = False) -> None:
        """Writes what replication hands in, each partition into the directory it lives in.

        A running node does not wait for the disk, every few seconds, for what a start can do without: it takes the
        start of the log for the high watermark until it knows better."""
        per_directory: dict[str, dict[Partition, int]] = {directory.path: {} for directory in self.directories}
        for partition, offset in high_watermarks.items():
            log = self.logs.get(partition)
            if log is not None:
                per_directory[log.log_directory.path][partition] = offset
        for directory in self.online_directories():
            try:
                write_offsets(self.disk, f"{directory.path}/{REPLICATION_FILE}", per_directory[directory.path], sync)
                directory.on_written()
            except OSError as error:
                directory.on_write_failed(error)

    # From time to time

    def housekeeping(self, now_ms: int, high_watermark_of: Callable[[Log], int] | None = None) -> None:
        """Does what is due; call it every second or so. Retention needs to know the high watermarks."""
        self.watch_space()
        self._remove_doomed(now_ms)
        for log in self.logs.values():
            if not log.retired.is_empty or log.unflushed_since_ms >= 0:
                log.housekeeping(now_ms)
        for log in list(self.futures.logs.values()):
            log.housekeeping(now_ms)
        if now_ms >= self._next_retention_ms and high_watermark_of is not None:
            self._next_retention_ms = now_ms + self.retention_interval_ms
            self.apply_retention(now_ms, high_watermark_of)
        if now_ms >= self._next_expiration_ms:
            self._next_expiration_ms = now_ms + self.expiration_interval_ms
            for log in self.logs.values():
                log.producers.expire(now_ms, self.producer_expiration_ms)
        if now_ms >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = now_ms + self.checkpoint_interval_ms
            for directory in self.online_directories():
                self._write_recovery_points_later(directory)
        if now_ms >= self._next_log_start_checkpoint_ms:
            self._next_log_start_checkpoint_ms = now_ms + self.log_start_checkpoint_interval_ms
            for directory in self.online_directories():
                self._write_log_starts_later(directory)

    def watch_space(self) -> None:
        """Producers are refused where little space is left, before the disk is full, and go on when there is more."""
        for directory in self.online_directories():
            try:
                directory.watch_space(self.disk, self.free_bytes_min)
            except OSError as error:
                directory.fail(error)

    def apply_retention(self, now_ms: int, high_watermark_of: Callable[[Log], int]) -> int:
        """One retention run over all logs; returns how many segments are to go."""
        count = 0
        for log in list(self.logs.values()):
            if log.log_directory.failed or log.compacting:
                continue
            try:
                count += log.apply_retention(now_ms, high_watermark_of(log))
                log.housekeeping(now_ms)
            except KafkaError as error:
                logger.warning("no retention for %s-%d this time: %s", log.topic, log.partition, error)
        return count

    def _remove_doomed(self, now_ms: int) -> None:
        waiting = []
        for folder in self._doomed:
            if folder.directory.failed:
                continue
            if folder.due_ms > now_ms:
                waiting.append(folder)
                continue
            try:
                self.disk.remove_tree(folder.path)
            except FileNotFoundError:
                pass
            except OSError as error:
                folder.directory.fail(error)
        self._doomed = waiting

    def _on_failed(self, directory: LogDirectory) -> None:
        forget_run(self.disk, directory.path)
        if self.on_directory_failed is not None:
            self.on_directory_failed(directory)

    # The end

    def shutdown(
        self, now_ms: int, broker_epoch: int = UNKNOWN_BROKER_EPOCH, high_watermarks: dict[Partition, int] | None = None
    ) -> None:
        """A clean stop: logs closed, checkpoints written, then in each directory the marker that says so."""
        for log in (*self.logs.values(), *self.futures.logs.values()):
            if not log.log_directory.failed and not log.closed:
                try:
                    log.close(now_ms)
                except KafkaError as error:
                    logger.error("%s-%d could not be closed, the next start recovers it: %s", *_name(log), error)
        self.checkpoint(stopping=True)
        if high_watermarks is not None:
            self.checkpoint_high_watermarks(high_watermarks, sync=True)
        for directory in self.online_directories():
            try:
                cleaner = f"{directory.path}/{CLEANER_FILE}"
                if not self.disk.exists(cleaner):
                    write_offsets(self.disk, cleaner, {})
                self._leave_marker(directory, broker_epoch)
                forget_run(self.disk, directory.path)
            except OSError as error:
                directory.fail(error)
        for directory in self.directories:
            self.disk.unlock_directory(directory.path)

    def release(self) -> None:
        """The end of a node that never loaded the logs: their directories are as clean as they were found."""
        for directory in self.online_directories():
            try:
                if self._clean.get(directory.path) or not self._has_logs(directory):
                    epoch = self.clean_broker_epochs.get(directory.path, UNKNOWN_BROKER_EPOCH)
                    self._leave_marker(directory, epoch)
                if self._killed_epochs.get(directory.path, UNKNOWN_BROKER_EPOCH) != UNKNOWN_BROKER_EPOCH:
                    note_run(self.disk, directory.path, self._killed_epochs[directory.path])
            except OSError as error:
                directory.fail(error)
        for directory in self.directories:
            self.disk.unlock_directory(directory.path)

    def _has_logs(self, directory: LogDirectory) -> bool:
        found = [parse_partition_name(name) for name in self.disk.list(directory.path)]
        return any(partition is not None and partition[0] != METADATA_TOPIC for partition in found)

    def _leave_marker(self, directory: LogDirectory, broker_epoch: int) -> None:
        marker = f'{{"version":0,"brokerEpoch":{broker_epoch}}}'.encode("ascii")
        self.disk.write_file(f"{directory.path}/{CLEAN_SHUTDOWN_FILE}", marker)


def _name(log: Log) -> tuple[str, int]:
    return log.topic, log.partition
