"""Keeps compacted logs clean: picks the dirtiest, hands it to a worker, swaps the result in, notes how far it came.

Kafka: LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.protocol.errors import KafkaError
from moldau.records.clocks import AT_ONCE_MS, NEVER_MS
from moldau.storage.checkpoints import Partition
from moldau.storage.compaction.dirtiness import Dirtiness, first_dirty_offset
from moldau.storage.compaction.metrics import CleanerMetrics
from moldau.storage.compaction.swap import cleaned_files, is_still_valid, swap_in
from moldau.storage.compaction.task import CompactionResult, CompactionTask, SourceSegment
from moldau.storage.log import Log
from moldau.storage.log_directory import NO_SPACE, LogDirectory
from moldau.storage.log_manager import LogManager
from moldau.storage.segment import DamagedSegment

logger = logging.getLogger("moldau.storage")

PAUSE_MS = 60_000

Done = Callable[[CompactionResult | OSError], None]


class CompactionWorkers:
    """Runs tasks somewhere else; `done` is called later, in the node's own turn."""

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        raise NotImplementedError

    def cancel(self, task: CompactionTask) -> None:
        """Its result is not wanted any more; `done` is still called."""
        raise NotImplementedError


class CleanerSettings:
    """The log.cleaner.* settings."""

    def __init__(
        self,
        enabled: bool = True,
        threads: int = 1,
        dedupe_buffer_bytes: int = 134_217_728,
        load_factor: float = 0.9,
        backoff_ms: int = 15_000,
        bytes_per_second: float = 1.7976931348623157e308,
    ) -> None:
        self.enabled = enabled
        self.threads = threads
        self.dedupe_buffer_bytes = dedupe_buffer_bytes
        self.load_factor = load_factor
        self.backoff_ms = backoff_ms
        self.bytes_per_second = bytes_per_second


class Running:
    """One run under way, in one of `log.cleaner.threads` places."""

    def __init__(self, log: Log, task: CompactionTask, place: int, started_ms: int) -> None:
        self.log = log
        self.task = task
        self.place = place
        self.started_ms = started_ms
        self.truncations = log.truncations


class LogCleaner:
    """See the module. `poll` when its deadline comes; `on_deadline` is told when that is earlier than it said."""

    def __init__(
        self,
        logs: LogManager,
        workers: CompactionWorkers,
        settings: CleanerSettings,
        high_watermark_of: Callable[[Log], int],
        seed: int = 0,
    ) -> None:
        self.logs = logs
        self.workers = workers
        self.settings = settings
        logs.on_log_gone = self.on_log_gone
        self.running: dict[Partition, Running] = {}
        self.uncleanable: dict[Partition, str] = {}
        self.metrics = CleanerMetrics()
        self._high_watermark_of = high_watermark_of
        self._seed = seed
        self._next_ms = 0
        # What the disk or a worker has finished goes on in the next turn, which knows what time it is.
        self._finished: list[Callable[[int], None]] = []
        self.on_deadline: Callable[[int], None] | None = None

    def poll(self, now_ms: int) -> int:
        """Starts what is due, goes on with what was finished since; returns when to look again."""
        if self.settings.enabled and now_ms >= self._next_ms:
            self._next_ms = now_ms + self.settings.backoff_ms
            self._start_due(now_ms)
        while self._finished:
            finished, self._finished = self._finished, []
            for step in finished:
                step(now_ms)
        return self._next_ms if self.settings.enabled else NEVER_MS

    def _in_next_turn(self, step: Callable[[int], None]) -> None:
        self._finished.append(step)
        self._wake(AT_ONCE_MS)

    def _wake(self, deadline_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(deadline_ms)

    def _start_due(self, now_ms: int) -> None:
        taken = {running.place for running in self.running.values()}
        free = [place for place in range(self.settings.threads) if place not in taken]
        if not free or not self.logs.wall.may_delete_by_age:
            # Tombstones go by their age, and what is too young stays.
            return
        for place, dirtiness in zip(free, self._due_logs(now_ms), strict=False):
            self._start(dirtiness, place, now_ms)

    def _due_logs(self, now_ms: int) -> list[Dirtiness]:
        """The most urgent first: those that wait too long, then by dirtiness."""
        found = []
        max_ratio, max_delay_ms = 0.0, 0
        for partition, log in self.logs.logs.items():
            if not log.config.compact or log.closed or log.moving or log.log_directory.failed:
                continue
            if partition in self.running or partition in self.uncleanable:
                continue
            try:
                dirtiness = Dirtiness(
                    log, self.logs.checkpoints.cleaned_to.get(partition, -1), self._high_watermark_of(log), now_ms
                )
            except OSError as error:
                log.log_directory.fail(error)
                continue
            except DamagedSegment as error:
                self._give_up(log, str(error))
                continue
            max_ratio, max_delay_ms = max(max_ratio, dirtiness.ratio), max(max_delay_ms, dirtiness.overdue_ms)
            if dirtiness.is_due:
                found.append(dirtiness)
        self.metrics.note_look(now_ms, max_ratio, max_delay_ms)
        found.sort(key=lambda dirtiness: (-dirtiness.overdue_ms, -dirtiness.ratio, dirtiness.log.directory))
        return found

    def _start(self, dirtiness: Dirtiness, place: int, now_ms: int) -> None:
        log = dirtiness.log
        settings = self.settings
        config = log.config
        try:
            aborted = log.collect_aborted(log.base_offsets[0], dirtiness.end_offset)
        except KafkaError as error:
            if not log.log_directory.failed:
                self._give_up(log, str(error))
            return
        task = CompactionTask(
            name=f"{log.topic}-{log.partition}",
            directory=log.directory,
            segments=[SourceSegment(segment.base_offset, segment.size) for segment in dirtiness.segments],
            log_start_offset=log.log_start_offset,
            first_dirty_offset=dirtiness.first_dirty_offset,
            end_offset=dirtiness.end_offset,
            wall_ms=log.wall.at(now_ms),
            delete_retention_ms=config.delete_retention_ms,
            segment_bytes=config.segment_bytes,
            segment_index_bytes=config.segment_index_bytes,
            index_interval_bytes=config.index_interval_bytes,
            map_bytes=settings.dedupe_buffer_bytes // max(settings.threads, 1),
            map_load_factor=settings.load_factor,
            producers={entry.producer_id: (entry.last_offset, entry.epoch) for entry in log.producers.entries.values()},
            aborted=[
                (entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
                for entry in aborted
            ],
            seed=self._seed,
        )
        running = Running(log, task, place, now_ms)
        self.running[(log.topic, log.partition)] = running
        log.compacting = True
        self.workers.submit(
            task,
            settings.bytes_per_second / settings.threads,
            lambda result: self._in_next_turn(lambda now_ms: self._on_done(running, result, now_ms)),
        )

    def _on_done(self, running: Running, result: CompactionResult | OSError, now_ms: int) -> None:
        log = running.log
        if self._is_gone(running):
            if not isinstance(result, OSError):
                logger.info(
                    "discarding the compaction of %s-%d: the log has changed meanwhile", log.topic, log.partition
                )
            self._discard(running, now_ms)
        elif isinstance(result, OSError):
            self._on_failed(running, result, now_ms)
        elif result.problem:
            self._give_up(log, result.problem)
            self._discard(running, now_ms)
        else:
            self.logs.checkpoints.ensure_recovery_point(
                log,
                result.end_offset,
                lambda error: self._in_next_turn(lambda now_ms: self._swap(running, result, error, now_ms)),
            )

    def _end(self, running: Running) -> None:
        """Its place is free, and the log may be compacted again."""
        partition = (running.log.topic, running.log.partition)
        if self.running.get(partition) is running:
            del self.running[partition]
        running.log.compacting = False

    def _give_up(self, log: Log, problem: str) -> None:
        self.metrics.failed_runs_total += 1
        self.uncleanable[(log.topic, log.partition)] = problem
        logger.error("marking %s-%d as uncleanable: %s", log.topic, log.partition, problem)

    def _look_again(self, due_ms: int) -> None:
        self._next_ms = due_ms
        self._wake(due_ms)

    def _is_truncated(self, running: Running) -> bool:
        """Deleted, closed, offline or truncated."""
        log = running.log
        if log.closed or log.log_directory.failed or self.logs.get(log.topic, log.partition) is not log:
            return True
        return log.truncations != running.truncations

    def _is_gone(self, running: Running) -> bool:
        """It is not what the run was made from any more."""
        return self._is_truncated(running) or not is_still_valid(running.log, running.task.segments)

    def _discard(self, running: Running, look_again_ms: int) -> None:
        """Whatever the run has left behind goes, before another one may write files of the same names."""
        log = running.log

        def done(error: OSError | None) -> None:
            if error is not None:
                log.log_directory.fail(error)
            self._end(running)
            self._look_again(look_again_ms)

        if log.closed or log.log_directory.failed:
            done(None)
            return
        try:
            paths = cleaned_files(log)
        except OSError as error:
            done(error)
            return
        log.disk.remove_later(paths, done)

    def _on_failed(self, running: Running, error: OSError, now_ms: int) -> None:
        log = running.log
        self.metrics.failed_runs_total += 1
        if error.errno in NO_SPACE or isinstance(error, ChildProcessError):
            logger.warning("cannot compact %s-%d now, trying again in a minute: %s", log.topic, log.partition, error)
        else:
            log.log_directory.fail(error)
        self._discard(running, now_ms + PAUSE_MS)

    # Putting a result to use: each step when the one before it is on the medium, unless the log has changed since

    def _swap(self, running: Running, result: CompactionResult, error: OSError | None, now_ms: int) -> None:
        log = running.log
        if error is not None or self._is_gone(running):
            self._discard(running, now_ms + (PAUSE_MS if error is not None else 0))
            return
        try:
            swap_in(log, result, now_ms)
        except OSError as failure:
            log.log_directory.fail(failure)
            self._end(running)
            return
        directory = log.directory
        log.disk.do_later(
            directory,
            lambda disk: disk.sync_directory(directory),
            lambda error: self._on_swapped(running, result, error),
        )

    def _on_swapped(self, running: Running, result: CompactionResult, error: OSError | None) -> None:
        log = running.log
        if self._is_truncated(running):
            self._end(running)
            self._look_again(AT_ONCE_MS)
        elif error is not None:
            log.log_directory.fail(error)
            self._end(running)
        else:
            self.logs.checkpoints.set_cleaned_to(
                (log.topic, log.partition),
                result.end_offset,
                lambda error: self._in_next_turn(lambda now_ms: self._on_noted(running, result, now_ms)),
            )

    def _on_noted(self, running: Running, result: CompactionResult, now_ms: int) -> None:
        """If it could not be written down, a start does a little of this again."""
        log = running.log
        # The turn that began it may have been late.
        elapsed_ms = max(int(result.stats.seconds * 1000), now_ms - running.started_ms)
        self.metrics.note_run(running.place, result.stats, elapsed_ms)
        self._tell(log, result, elapsed_ms)
        self._end(running)
        self._look_again(now_ms)

    def _tell(self, log: Log, result: CompactionResult, elapsed_ms: int) -> None:
        stats = result.stats
        logger.info(
            "compacted %s-%d up to offset %d in %.3f s: %d of %d records stayed, %d bytes became %d, "
            "%d keys filled %.1f%% of the offset map",
            log.topic,
            log.partition,
            result.end_offset,
            elapsed_ms / 1000,
            stats.records_kept,
            stats.records_read,
            stats.bytes_read,
            stats.bytes_written,
            stats.map_keys,
            100 * stats.map_utilization,
        )

    def on_log_gone(self, log: Log) -> None:
        """A log was deleted or cut: a run over it is for nothing."""
        running = self.running.get((log.topic, log.partition))
        if running is not None and running.log is log:
            self.workers.cancel(running.task)
        self.uncleanable.pop((log.topic, log.partition), None)

    def change_settings(self, settings: CleanerSettings) -> None:
        """What could not be compacted may fit into a larger buffer."""
        self.settings = settings
        self.metrics.note_places(settings.threads)
        self.uncleanable.clear()

    # What metrics show

    def uncleanable_in(self, directory: LogDirectory) -> list[Log]:
        """Those of one log directory that cannot be compacted until somebody does something."""
        logs = [self.logs.logs.get(partition) for partition in self.uncleanable]
        return [log for log in logs if log is not None and log.log_directory is directory]

    def dirty_bytes(self, log: Log) -> int:
        """How much of a log was written since it was compacted."""
        first_dirty = first_dirty_offset(log, self.logs.checkpoints.cleaned_to.get((log.topic, log.partition), -1))
        return sum(segment.size for segment in log.segments if segment.base_offset >= first_dirty)
