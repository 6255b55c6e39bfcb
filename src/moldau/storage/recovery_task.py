"""Recovery of one log as a task for another process: what it must know, what it does, and what it returns.

A worker opens the log as after a crash and writes down what a clean stop does; the node then opens it as after one.
The data itself is not synced, which would take longer than all the rest: the recovery point stays where it is, and the
next crash has as much to walk.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from moldau.config.log_config import LogConfig
from moldau.protocol.errors import KafkaError
from moldau.records.clocks import WallClock
from moldau.storage.disk import Disk
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.recovery import load_log, offset_of
from moldau.storage.segment import LOG_SUFFIX

logger = logging.getLogger("moldau.storage")

SMALLEST_TASK_BYTES = 4 << 20  # below that a worker is not worth the telling
WORTH_IT_BYTES = 256 << 20  # a process needs as long for its start as to walk this much in large batches


@dataclass(slots=True)
class RecoveryTask:
    """The directory of one partition, what the checkpoints say about it, and the settings that matter."""

    log_directory: str
    directory: str
    topic: str
    partition: int
    found_ms: int
    wall_offset_ms: int
    recovery_point: int
    log_start_offset: int
    gaps_to: int
    producer_expiration_ms: int
    compact: bool
    index_interval_bytes: int
    segment_index_bytes: int
    size_bytes: int = 0


@dataclass(slots=True)
class RecoveryResult:
    """Where the log begins and ends, how far it was flushed before, and whether something had to be truncated."""

    end_offset: int
    log_start_offset: int
    recovery_point: int
    truncated: bool


class RecoveryWorkers:
    """Runs tasks somewhere else, several at a time; None for one that failed."""

    in_background = False
    """Whether `run_later` returns before the tasks are done."""

    def run(self, tasks: list[RecoveryTask], workers_max: int) -> list[RecoveryResult | None]:
        """Returns when all are done."""
        raise NotImplementedError

    def run_later(
        self, tasks: list[RecoveryTask], workers_max: int, done: Callable[[list[RecoveryResult | None]], None]
    ) -> None:
        """`done` is called when all are done, in a later turn if they run in the background."""
        done(self.run(tasks, workers_max))


def bytes_to_walk(files: dict[str, int], recovery_point: int) -> int:
    """How much of a partition's directory recovery must read: from the segment that holds the recovery point on."""
    segments = sorted((offset_of(name), size) for name, size in files.items() if name.endswith(LOG_SUFFIX))
    first = 0
    for number, (base_offset, _) in enumerate(segments):
        if base_offset <= recovery_point:
            first = number
    return sum(size for _, size in segments[first:])


def recover(disk: Disk, task: RecoveryTask) -> RecoveryResult | None:
    """In the worker. A log that cannot be recovered here is left to the node, which meets the same failure."""
    config = LogConfig(
        compact=task.compact,
        index_interval_bytes=task.index_interval_bytes,
        segment_index_bytes=task.segment_index_bytes,
    )
    try:
        log = load_log(
            disk,
            LogDirectory(task.log_directory, wall=WallClock(task.wall_offset_ms)),
            task.directory,
            task.topic,
            task.partition,
            config=config,
            now_ms=task.found_ms,
            recovery_point=task.recovery_point,
            log_start_offset=task.log_start_offset,
            producer_expiration_ms=task.producer_expiration_ms,
            gaps_to=task.gaps_to,
        )
        result = RecoveryResult(
            log.log_end_offset,
            log.log_start_offset,
            log.recovery_point,
            log.log_directory.truncated_in_recovery,
        )
        log.active.finish_indexes()
        log.snapshots.take(log.producers)
        for segment in log.segments:
            # The node does not know that they are new, and takes them for durable when the data is.
            segment.sync_indexes()
        log.close_files()
    except (OSError, KafkaError) as error:
        logger.error("cannot recover %s in a recovery process: %s", task.directory, error)
        return None
    return result


def take_over(log: Log, result: RecoveryResult) -> None:
    """In the node, after it opened the log that a worker has recovered: what it takes for flushed may not be so."""
    log.recovery_point = min(result.recovery_point, log.log_end_offset)
    log.indexed_to = min(log.recovery_point, log.active.base_offset)
    log.directory_changed = True
    log.leader_epochs.unsynced = True
    if result.truncated:
        log.log_directory.truncated_in_recovery = True
