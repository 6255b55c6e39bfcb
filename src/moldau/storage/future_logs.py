"""Logs on their way into another log directory: a directory `<topic>-<partition>.<32 hex>-future` until it takes over.

The swap renames the old directory away before the new one gets its name, so that no crash leaves two directories of one
partition; a future log that is alone at a start, where the cluster's metadata expects the replica, takes over then.
Kafka: LogManager.replaceCurrentWithFutureLog, recoverAbandonedFutureLogs.
"""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING

from moldau.protocol.errors import KAFKA_STORAGE_ERROR, KafkaError
from moldau.storage.checkpoints import Partition
from moldau.storage.log import Log
from moldau.storage.log_directory import NO_SPACE, LogDirectory
from moldau.storage.recovery import create_log

if TYPE_CHECKING:
    from moldau.storage.log_manager import LogManager

FUTURE_SUFFIX = "-future"
FUTURE_NAME = re.compile(r"(?P<topic>[A-Za-z0-9._-]{1,249})-(?P<partition>\d{1,10})\.[0-9a-z]{32}-future")
DIRECTORY_NAME_MAX = 255

logger = logging.getLogger("moldau.storage")


def parse_future_name(name: str) -> Partition | None:
    """Topic and partition of the directory of a future log; None for any other name."""
    match = FUTURE_NAME.fullmatch(name)
    return (match["topic"], int(match["partition"])) if match is not None else None


def fits_future_name(topic: str, partition: int) -> bool:
    """A long topic name leaves no room for the suffix."""
    return len(f"{topic}-{partition}.{'0' * 32}{FUTURE_SUFFIX}") <= DIRECTORY_NAME_MAX


class FutureLogs:
    """All future logs of a node, by partition."""

    def __init__(self, manager: LogManager) -> None:
        self._manager = manager
        self.logs: dict[Partition, Log] = {}
        # After an unclean stop: up to where each is known to be on the medium.
        self.certain_to: dict[Partition, int] = {}

    def get(self, topic: str, partition: int) -> Log | None:
        return self.logs.get((topic, partition))

    def add(self, log: Log) -> None:
        self.logs[(log.topic, log.partition)] = log
        log.on_released = self._manager.on_log_released
        self._manager.count_log(log.log_directory, 1)

    def create(self, source: Log, directory: LogDirectory, now_ms: int) -> Log:
        """An empty log in the directory; it begins where the first segment of the current one does."""
        manager = self._manager
        if directory.failed:
            raise directory.storage_error()
        path = self._new_path(source.topic, source.partition, directory)
        try:
            directory.directories_changed += 1
            log = create_log(
                manager.disk,
                directory,
                path,
                source.topic,
                source.partition,
                topic_id=source.topic_id,
                config=source.config,
                now_ms=now_ms,
                random_below=manager.random_below,
                start_offset=source.base_offsets[0],
            )
        except OSError as error:
            if error.errno in NO_SPACE:
                raise KafkaError(KAFKA_STORAGE_ERROR, f"No space for {path}: {error}") from error
            directory.fail(error)
            raise directory.storage_error() from error
        self.add(log)
        manager.hold_until_forgotten(log)
        return log

    def _new_path(self, topic: str, partition: int, directory: LogDirectory) -> str:
        unique = f"{self._manager.random_below(1 << 128):032x}"
        return f"{directory.path}/{topic}-{partition}.{unique}{FUTURE_SUFFIX}"

    def drop_uncertain(self, log: Log, now_ms: int) -> None:
        """What may have been lost with the power is copied again: a gap in it could be taken for a compacted one."""
        certain_to = self.certain_to.pop((log.topic, log.partition), log.log_end_offset)
        if certain_to < log.log_end_offset:
            # A checkpoint need not name the beginning of a batch.
            certain_to = log.batch_start(max(certain_to, log.base_offsets[0]))
            self._manager.truncate(log, certain_to, now_ms)

    def remove(self, topic: str, partition: int, now_ms: int) -> None:
        """The move is off; its directory goes after the delay."""
        log = self._take_out(topic, partition)
        if log is None:
            return
        log.close_files()
        if not log.log_directory.failed:
            self._manager.schedule_deletion(log, now_ms)

    def _take_out(self, topic: str, partition: int) -> Log | None:
        log = self.logs.pop((topic, partition), None)
        if log is not None:
            self._manager.count_log(log.log_directory, -1)
        return log

    def rename_back(self, log: Log) -> None:
        """Gives a future log the name of one again, if it has lost it."""
        if parse_future_name(log.directory.rpartition("/")[2]) is None:
            self._manager.rename_directory(log, self._new_path(log.topic, log.partition, log.log_directory))

    def take_over(self, topic: str, partition: int, source: Log, now_ms: int) -> Log:
        """The future log, which has its own name by now, is the log of the partition; `source` goes."""
        future = self.logs[(topic, partition)]
        self._take_out(topic, partition)
        self._manager.replace(source, future, now_ms)
        return future

    def take_over_at_start(self, topic: str, partition: int, now_ms: int) -> Log:
        """The same for one whose source is gone: the run before ended between the two renames."""
        manager = self._manager
        future = self.logs[(topic, partition)]
        try:
            manager.checkpoints.write_all_of(future)
            manager.rename_directory(future, f"{future.log_directory.path}/{topic}-{partition}")
            manager.disk.blocking().sync_directory(future.log_directory.path)
        except OSError as error:
            raise future.storage_failure(error) from error
        self._take_out(topic, partition)
        manager.replace(None, future, now_ms)
        logger.info("moved %s-%d to log directory %s", topic, partition, future.log_directory.path)
        return future
