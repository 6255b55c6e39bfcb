"""All logs of a node in all its log directories: loads, creates, deletes them, and does what is due from time to time.

A directory that fails takes its own logs offline and no others. Checkpoints, retention and removals happen in
`housekeeping`; a clean stop leaves a marker that saves the next start from looking at the data. Kafka: LogManager.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable
from itertools import chain

from moldau.config.log_config import LogConfig
from moldau.protocol.errors import KAFKA_STORAGE_ERROR, KafkaError
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.clocks import WallClock
from moldau.storage import partition_metadata
from moldau.storage.checkpoints import LOG_START_FILE, RECOVERY_POINT_FILE, Partition
from moldau.storage.deleted_logs import DeletedLogs
from moldau.storage.disk import Disk
from moldau.storage.future_logs import FutureLogs, parse_future_name
from moldau.storage.killed_broker import UNKNOWN_BROKER_EPOCH
from moldau.storage.log import Log
from moldau.storage.log_checkpoints import LogCheckpoints
from moldau.storage.log_directory import NO_SPACE, LogDirectory
from moldau.storage.log_loading import LOGS_PER_TURN, LogLoading
from moldau.storage.log_rounds import LogRounds
from moldau.storage.meta_properties import read_meta_properties
from moldau.storage.recovery import CLEANED_SUFFIX, DEFAULT_PRODUCER_EXPIRATION_MS, create_log, load_log, no_jitter
from moldau.storage.recovery_task import RecoveryResult, RecoveryTask, RecoveryWorkers, take_over
from moldau.storage.replica_directory import EMPTY, REPLICA, kind_of_directory
from moldau.storage.retention_run import RetentionRun
from moldau.storage.run_history import RunHistory
from moldau.storage.truncation import Truncation

DELETE_SUFFIX = "-delete"
STRAY_SUFFIX = "-stray"
NAME_LENGTH_MAX = 255
NO_LIMIT = 1 << 63

CHECKPOINT_INTERVAL_MS = 60_000
RETENTION_INTERVAL_MS = 300_000
EXPIRATION_INTERVAL_MS = 600_000
FIRST_RUN_DELAY_MS = 30_000
"""Deleted logs that may still be in the checkpoint files of a directory."""

PARTITION_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})")
MARKED_NAME = re.compile(r"\S+\.[0-9a-z]{32}-(?:delete|future|stray)")

logger = logging.getLogger("moldau.storage")


class CannotStart(Exception):
    """The storage is not in a state that a node can start from; the text is for the operator."""


def parse_partition_name(name: str) -> Partition | None:
    """Topic and partition of a replica's directory; None for any other name."""
    match = PARTITION_NAME.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match is not None else None


class LogManager:
    """`config_of` gives the settings of a topic; `random_below` a number below its argument (jitter, directory
    names)."""

    def __init__(
        self,
        disk: Disk,
        paths: list[str],
        config_of: Callable[[str], LogConfig],
        random_below: Callable[[int], int] = no_jitter,
        on_directory_failed: Callable[[LogDirectory], None] | None = None,
        producer_expiration_ms: int = DEFAULT_PRODUCER_EXPIRATION_MS,
        wall: WallClock | None = None,
    ) -> None:
        self.disk = disk
        self.wall = wall if wall is not None else WallClock()
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
        self.logs_per_turn = LOGS_PER_TURN
        self.directories = [LogDirectory(path.rstrip("/"), ZERO_UUID, self._on_failed, self.wall) for path in paths]
        self.logs: dict[Partition, Log] = {}
        self.retention = RetentionRun(self.logs)
        self.futures = FutureLogs(self)
        self.delete_suffix = DELETE_SUFFIX
        self.runs = RunHistory(disk, self.directories)
        self.checkpoints = LogCheckpoints(disk, self.directories, self.logs, self.futures.logs)
        self.on_log_gone: Callable[[Log], None] | None = None  # told before a log is truncated or removed
        self.rounds = LogRounds(self.is_in_use, self.checkpoints.write_high_watermarks)
        self.on_durable: Callable[[Log], None] | None = None  # told when a flush in the background is over
        self.on_released: Callable[[Log], None] | None = None  # told when a log takes appends again
        self._locked = False
        self._deleted = DeletedLogs(disk)
        self._foreign: set[str] = set()  # directories of others with the names of replicas
        self._unforgotten: list[Log] = []  # held until there is space to write checkpoints without their predecessors
        self._to_be_forgotten: list[Callable[[], None]] = []  # those that wait for the same before they are made
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
                    f"{directory.path} is in use by another process: stop it, or set log.dirs to another directory"
                ) from error
            except OSError as error:
                directory.fail(error)

    def begin_load(self) -> LogLoading:
        """Opens all logs of all directories, a few a turn. One that cannot be read is offline from the start."""
        self.lock()
        self.runs.take_clean_shutdown_files()
        return LogLoading(self)

    def load(self, now_ms: int) -> None:
        """The same at once."""
        loading = self.begin_load()
        while not loading.is_done:
            loading.run_turn(now_ms)

    def finish_load(self, now_ms: int) -> None:
        self._next_checkpoint_ms = now_ms + self.checkpoint_interval_ms
        self._next_log_start_checkpoint_ms = now_ms + self.log_start_checkpoint_interval_ms
        self._next_retention_ms = now_ms + self.first_retention_delay_ms
        self._next_expiration_ms = now_ms + self.expiration_interval_ms
        self.watch_space()
        if all(directory.failed for directory in self.directories):
            raise CannotStart("none of the log directories can be used")

    def find_logs(self, directory: LogDirectory, now_ms: int) -> list[RecoveryTask]:
        """What there is to open in a directory, with what its checkpoints say."""
        properties = read_meta_properties(self.disk, directory.path)
        if properties is not None and properties.directory_id is not None:
            directory.directory_id = properties.directory_id
        found = self.checkpoints.read(directory, self.runs.was_clean(directory))
        self._counts[directory.path] = 0
        tasks: list[RecoveryTask] = []
        for name, size in self.disk.list_with_sizes(directory.path).items():
            if size >= 0:
                continue
            path = f"{directory.path}/{name}"
            future = parse_future_name(name)
            if MARKED_NAME.fullmatch(name) and future is None:
                if name.endswith(DELETE_SUFFIX):
                    self._deleted.add(directory, path, now_ms)
                continue
            partition = parse_partition_name(name) if future is None else future
            if partition is None:
                logger.warning("ignoring %s: it is not the directory of a partition", path)
                continue
            if partition[0] == METADATA_TOPIC:
                continue
            kind = REPLICA if future is not None else kind_of_directory(self.disk, path)
            if kind != REPLICA:
                self._leave_alone(path, kind)
                continue
            if future is None:
                self._check_not_twice(partition, path)
            gaps_to = self.checkpoints.cleaned_to.get(partition, 0) if found.gaps_known else NO_LIMIT
            config = self.config_of(partition[0])
            tasks.append(
                RecoveryTask(
                    directory.path,
                    path,
                    partition[0],
                    partition[1],
                    now_ms,
                    self.wall.offset_ms,
                    found.recovery_points.get(partition, 0),
                    found.log_starts.get(partition, 0),
                    gaps_to,
                    self.producer_expiration_ms,
                    config.compact,
                    config.index_interval_bytes,
                    config.segment_index_bytes,
                )
            )
        self.runs.sync_killed(directory, {task.directory: task.recovery_point for task in tasks})
        return tasks

    def finish_directory(self, directory: LogDirectory) -> None:
        """All logs in it are open."""
        self.checkpoints.finish_directory(directory)
        self.runs.finish_directory(directory, self.logs)

    def _leave_alone(self, path: str, kind: int) -> None:
        if kind == EMPTY:
            logger.info("ignoring %s: the directory is empty", path)
            return
        self._foreign.add(path)
        logger.warning("ignoring %s: the directory is named like a replica but holds no file of one", path)

    def _check_not_twice(self, partition: Partition, path: str) -> None:
        other = self.logs.get(partition)
        if other is not None:
            raise CannotStart(
                f"{partition[0]}-{partition[1]} is both in {other.directory} and in {path}: remove one of the two"
            )

    def load_one(
        self, directory: LogDirectory, task: RecoveryTask, recovered: RecoveryResult | None, clean: bool
    ) -> None:
        log = load_log(
            self.disk,
            directory,
            task.directory,
            task.topic,
            task.partition,
            config=self.config_of(task.topic),
            now_ms=task.found_ms,
            recovery_point=task.recovery_point if recovered is None else recovered.end_offset,
            log_start_offset=task.log_start_offset if recovered is None else recovered.log_start_offset,
            clean=clean or recovered is not None,
            random_below=self.random_below,
            producer_expiration_ms=self.producer_expiration_ms,
            gaps_to=task.gaps_to,
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
        log.on_released = self.on_log_released
        self.runs.notes.ends_of(log.log_directory).add(log)
        self.count_log(log.log_directory, 1)

    def count_log(self, directory: LogDirectory, change: int) -> None:
        self._counts[directory.path] = self._counts.get(directory.path, 0) + change

    def _on_durable(self, log: Log) -> None:
        if self.on_durable is not None:
            self.on_durable(log)

    def on_log_released(self, log: Log) -> None:
        if self.on_released is not None:
            self.on_released(log)

    # Finding, creating, deleting

    def get(self, topic: str, partition: int) -> Log | None:
        return self.logs.get((topic, partition))

    def is_in_use(self, log: Log) -> bool:
        partition = (log.topic, log.partition)
        return self.logs.get(partition) is log or self.futures.logs.get(partition) is log

    def online_directories(self) -> list[LogDirectory]:
        return [directory for directory in self.directories if not directory.failed]

    def on_read_failed(self, path: str, error: OSError) -> None:
        """A thread could not read a file for somebody."""
        for directory in self.directories:
            if path.startswith(directory.path + "/"):
                directory.fail(error)

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
        if path in self._foreign:
            raise KafkaError(KAFKA_STORAGE_ERROR, f"{path} holds something else: move it away and start again")
        self.checkpoints.cleaned_to.pop((topic, partition), None)
        try:
            directory.directories_changed += 1
            log = create_log(
                self.disk, directory, path, topic, partition,
                topic_id=topic_id, config=self.config_of(topic), now_ms=now_ms, random_below=self.random_below,
            )  # fmt: skip
        except OSError as error:
            if error.errno in NO_SPACE:
                raise KafkaError(KAFKA_STORAGE_ERROR, f"No space for {topic}-{partition}: {error}") from error
            directory.fail(error)
            raise directory.storage_error() from error
        self._add(log)
        self.hold_until_forgotten(log)
        return log

    def hold_until_forgotten(self, log: Log) -> None:
        """Offsets of a deleted log of the same name must not be taken for those of a new one: that one takes no records
        until they have left the checkpoint files."""
        if self.checkpoints.may_have(log):
            log.hold()
            self._forget(log)

    def _forget(self, log: Log) -> None:
        self.checkpoints.write_all_later(log, lambda error: self._on_forgotten(log, error))

    def _on_forgotten(self, log: Log, error: OSError | None) -> None:
        if log.closed or log.log_directory.failed:
            return
        if error is None:
            log.release()
        else:
            self._unforgotten.append(log)  # the disk is full, which is told already

    def forget_later(self, topic: str, partition: int, done: Callable[[], None]) -> None:
        """For a log that is to be made under the name of one that was deleted: `done` is called when no start can take
        offsets of the other for its own, or when that can be tried again."""
        self.checkpoints.forget_later((topic, partition), lambda error: self._on_name_forgotten(error, done))

    def _on_name_forgotten(self, error: OSError | None, done: Callable[[], None]) -> None:
        if error is None:
            done()
        else:
            self._to_be_forgotten.append(done)  # the disk is full, which is told already

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
        log.directory_unsynced = True

    def set_config(self, topic: str, config: LogConfig) -> None:
        for log in self.logs.values():
            if log.topic == topic:
                log.set_config(config)

    def truncate(self, log: Log, offset: int, now_ms: int) -> None:
        """Cuts a log, which takes no records until that is on the medium (`Log.holds`)."""
        self.notify_log_gone(log)
        truncation = log.truncate(offset, now_ms)
        if truncation is not None:
            self._settle(log, truncation, offset)

    def truncate_fully_and_start_at(self, log: Log, offset: int, now_ms: int) -> None:
        """Empties a log, which goes on at `offset`."""
        self.notify_log_gone(log)
        self._settle(log, log.start_at(offset, now_ms), offset)

    def start_empty_log_at(self, log: Log, offset: int, now_ms: int) -> None:
        """A log without records begins somewhere else, and takes records at once."""
        self.notify_log_gone(log)
        log.start_at(offset, now_ms).let_go()
        self.runs.notes.on_truncated(log)

    def _settle(self, log: Log, truncation: Truncation, offset: int) -> None:
        """The checkpoints go down first: what is written from now on must be walked after a crash."""
        self.runs.notes.on_truncated(log)
        self.checkpoints.lower_cleaned_to(log, offset)
        if self.checkpoints.may_have(log, above=offset):
            truncation.start(lambda done: self.checkpoints.write_all_later(log, done))
        else:
            truncation.start(None)

    def delete(self, topic: str, partition: int, now_ms: int) -> None:
        """Takes the log out of use at once; its directory goes after the delay."""
        log = self._remove(topic, partition)
        if log is None or log.log_directory.failed:
            return
        self.schedule_deletion(log, now_ms)

    def schedule_deletion(self, log: Log, now_ms: int) -> None:
        """Renames the directory of a log that is out of use; it goes after the delay."""
        self.rename_directory(log, self.marked_path(log, DELETE_SUFFIX))
        self._deleted.add(log.log_directory, log.directory, now_ms + log.config.file_delete_delay_ms)

    def rename_to_stray(self, topic: str, partition: int) -> None:
        """A replica that the metadata does not place here becomes a -stray directory, which stays until someone
        looks."""
        log = self._remove(topic, partition)
        if log is not None and not log.log_directory.failed:
            path = self.marked_path(log, STRAY_SUFFIX)
            self.rename_directory(log, path)
            logger.warning(
                "renamed stray replica %s-%d to %s: the metadata does not place it on this broker",
                topic,
                partition,
                path,
            )

    def replace(self, source: Log | None, log: Log, now_ms: int) -> None:
        """`log`, which has its own name by now, is the log of its partition in the place of `source`, which was
        renamed to -delete."""
        if source is not None:
            self.count_log(source.log_directory, -1)
            self.runs.notes.on_removed(source)
            source.close_files()
            due_ms = now_ms + source.config.file_delete_delay_ms
            self._deleted.add(source.log_directory, source.directory, due_ms)
        self._add(log)

    def _remove(self, topic: str, partition: int) -> Log | None:
        log = self.logs.pop((topic, partition), None)
        if log is not None:
            self.count_log(log.log_directory, -1)
            self.runs.notes.on_removed(log)
            self.notify_log_gone(log)
            self.checkpoints.high_watermarks.pop((topic, partition), None)
            log.close_files()
            self.checkpoints.forget_cleaned_to(log)
        return log

    def notify_log_gone(self, log: Log) -> None:
        if self.on_log_gone is not None:
            self.on_log_gone(log)

    def marked_path(self, log: Log, suffix: str) -> str:
        """What the directory of a log is called that goes, or that nobody knows any more."""
        unique = f".{self.random_below(1 << 128):032x}{suffix}"
        name = f"{log.topic}-{log.partition}"
        if len(name) + len(unique) > NAME_LENGTH_MAX:
            number = f"-{log.partition}"
            name = log.topic[: NAME_LENGTH_MAX - len(number) - len(unique)] + number
        return f"{log.log_directory.path}/{name}{unique}"

    def rename_directory(self, log: Log, path: str) -> None:
        try:
            self.disk.rename(log.directory, path)
        except OSError as error:
            raise log.storage_failure(error) from error
        # Open files have followed by themselves.
        log.log_directory.directories_changed += 1
        log.retired.move_to(log.directory, path)
        log.directory = log.leader_epochs.directory = log.snapshots.directory = path
        for segment in log.segments:
            segment.move_to(path)

    # From time to time

    def _all(self) -> Iterable[Log]:
        return chain(self.futures.logs.values(), self.logs.values())

    def housekeeping(self, now_ms: int, high_watermark_of: Callable[[Log], int] | None = None) -> None:
        """Does what is due; call it every second or so. Retention needs to know the high watermarks."""
        self.watch_space()
        self.runs.notes.refresh(self.online_directories())
        self._deleted.remove_due(now_ms)
        self._forget_again()
        self.rounds.begin_housekeeping(self._all())
        if now_ms >= self._next_expiration_ms and self.wall.may_delete_by_age:
            self._next_expiration_ms = now_ms + self.expiration_interval_ms
            self.rounds.begin_expiration(self.logs.values(), self.producer_expiration_ms)
        self.rounds.poll(now_ms)
        if high_watermark_of is not None:
            if now_ms >= self._next_retention_ms:
                self._next_retention_ms = now_ms + self.retention_interval_ms
                self.retention.begin()  # somebody who calls more often than this goes on with it
            self.retention.go_on(now_ms, high_watermark_of)
        if now_ms >= self._next_checkpoint_ms:
            self._next_checkpoint_ms = now_ms + self.checkpoint_interval_ms
            self.checkpoints.write_if_changed(RECOVERY_POINT_FILE)
        if now_ms >= self._next_log_start_checkpoint_ms:
            self._next_log_start_checkpoint_ms = now_ms + self.log_start_checkpoint_interval_ms
            self.checkpoints.write_if_changed(LOG_START_FILE)

    def _forget_again(self) -> None:
        to_be_made, self._to_be_forgotten = self._to_be_forgotten, []
        for done in to_be_made:
            done()
        waiting, self._unforgotten = self._unforgotten, []
        for log in waiting:
            if not log.closed and not log.log_directory.failed:
                self._forget(log)

    def watch_space(self) -> None:
        """Producers are refused where little space is left, before the disk is full, and go on when there is more."""
        for directory in self.online_directories():
            try:
                directory.watch_space(self.disk, self.free_bytes_min)
            except OSError as error:
                directory.fail(error)

    def apply_retention(self, now_ms: int, high_watermark_of: Callable[[Log], int]) -> int:
        """One retention run over all logs, to its end; returns how many segments are to go."""
        self.retention.begin()
        count = 0
        while not self.retention.is_over:
            count += self.retention.go_on(now_ms, high_watermark_of)
        return count

    def _on_failed(self, directory: LogDirectory) -> None:
        self.runs.on_failed(directory)
        if self.on_directory_failed is not None:
            self.on_directory_failed(directory)

    # The end

    def shutdown(
        self, now_ms: int, broker_epoch: int = UNKNOWN_BROKER_EPOCH, high_watermarks: dict[Partition, int] | None = None
    ) -> None:
        """A clean stop: logs closed, checkpoints written, then in each directory the marker that says so."""
        self._deleted.is_stopped = True
        self.disk.finish_jobs()
        if any(log.pending_truncations for log in self._all()):
            self.checkpoints.write_now()  # the files may only be truncated afterwards
        self.close_logs(now_ms)
        self.checkpoints.write_now()
        if high_watermarks is not None:
            self.checkpoints.write_last_high_watermarks(high_watermarks)
        self.runs.end_cleanly(broker_epoch)
        self.unlock()

    def close_logs(self, now_ms: int) -> None:
        for log in (*self.logs.values(), *self.futures.logs.values()):
            self._remove_cleaned(log)
            if not log.log_directory.failed and not log.closed:
                try:
                    log.close(now_ms)
                except KafkaError as error:
                    logger.error("cannot close the log of %s-%d, the next start recovers it: %s", *_name(log), error)

    def _remove_cleaned(self, log: Log) -> None:
        """What a compaction has left that the stop has ended."""
        try:
            is_wanted = log.compacting and not log.closed and not log.log_directory.failed
            for name in self.disk.list(log.directory) if is_wanted else ():
                if name.endswith(CLEANED_SUFFIX):
                    self.disk.blocking().remove(f"{log.directory}/{name}")
        except OSError as error:
            log.log_directory.fail(error)

    def release(self) -> None:
        """The end of a node that never loaded the logs: their directories are as clean as they were found."""
        self.runs.leave_as_found(self._has_logs)
        self.unlock()

    def _has_logs(self, directory: LogDirectory) -> bool:
        found = [parse_partition_name(name) for name in self.disk.list(directory.path)]
        return any(partition is not None and partition[0] != METADATA_TOPIC for partition in found)

    def unlock(self) -> None:
        for directory in self.directories:
            self.disk.unlock_directory(directory.path)


def _name(log: Log) -> tuple[str, int]:
    return log.topic, log.partition
