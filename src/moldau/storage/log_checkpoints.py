"""The checkpoint files of all log directories of a node: what they are to have, when they are written, who waits.

High watermarks are replication's: they are handed in here, and what a start found is handed out once. A running node
does not wait for the disk, every few seconds, for what a start can do without: it takes the start of the log for the
high watermark until it knows better.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from moldau.storage.checkpoints import (
    CLEANER_FILE,
    LOG_START_FILE,
    RECOVERY_POINT_FILE,
    REPLICATION_FILE,
    DamagedCheckpoint,
    Partition,
    format_lines,
    read_offsets,
)
from moldau.storage.directory_checkpoints import FILES, DirectoryCheckpoints, Offsets
from moldau.storage.disk import Disk, Done
from moldau.storage.log import Log
from moldau.storage.log_directory import LogDirectory
from moldau.storage.log_rounds import Lines

logger = logging.getLogger("moldau.storage")

Logs = dict[Partition, Log]


class FoundCheckpoints(NamedTuple):
    """What a start found in a directory. Without all files nobody knows how far compaction has come: then no gap is
    taken for a loss."""

    recovery_points: Offsets
    log_starts: Offsets
    gaps_known: bool


class LogCheckpoints:
    """`logs` and `futures` are the manager's own: what is so in them now is what is written."""

    def __init__(self, disk: Disk, directories: list[LogDirectory], logs: Logs, futures: Logs) -> None:
        self._disk = disk
        self._directories = directories
        self._logs = logs
        self._futures = futures
        self.high_watermarks: Offsets = {}
        self.cleaned_to: Offsets = {}
        self._due: dict[str, tuple[bool, bool]] = {}  # at the end of loading; that of the cleaner too
        self._files = {directory.path: self._make(directory) for directory in directories}

    def _make(self, directory: LogDirectory) -> DirectoryCheckpoints:
        return DirectoryCheckpoints(self._disk, directory, lambda name: self._offsets_for(directory, name))

    def _offsets_for(self, directory: LogDirectory, name: str) -> Offsets:
        """What a checkpoint file should have: log starts only where the name of the first segment does not tell."""
        offsets: Offsets = {}
        for logs in (self._futures, self._logs):
            for partition, log in logs.items():
                if log.log_directory is not directory:
                    continue
                if name == RECOVERY_POINT_FILE:
                    offsets[partition] = log.flushing.checkpoint_offset()
                elif name == LOG_START_FILE:
                    if log.log_start_offset > log.base_offsets[0]:
                        offsets[partition] = log.log_start_offset
                elif partition in self.cleaned_to:
                    offsets[partition] = self.cleaned_to[partition]
        return offsets

    # Loading

    def read(self, directory: LogDirectory, clean: bool) -> FoundCheckpoints:
        """`clean` says that the last stop was a clean one."""
        recovery_points = self._read_file(directory, RECOVERY_POINT_FILE)
        log_starts = self._read_file(directory, LOG_START_FILE) or {}
        self.high_watermarks.update(self._read_file(directory, REPLICATION_FILE) or {})
        cleaned_to = self._read_file(directory, CLEANER_FILE)
        self.cleaned_to.update(cleaned_to or {})
        gaps_known = recovery_points is not None and cleaned_to is not None
        self._due[directory.path] = (not clean or not gaps_known, cleaned_to is None)
        recovery_points = recovery_points or {}
        files = self._files[directory.path]
        files.load(RECOVERY_POINT_FILE, recovery_points)
        files.load(LOG_START_FILE, log_starts)
        files.load(CLEANER_FILE, cleaned_to or {})
        return FoundCheckpoints(recovery_points, log_starts, gaps_known)

    def _read_file(self, directory: LogDirectory, name: str) -> Offsets | None:
        """None when there is none that can be read."""
        path = f"{directory.path}/{name}"
        if not self._disk.exists(path):
            return None
        try:
            return read_offsets(self._disk, path)
        except DamagedCheckpoint as error:
            logger.warning("ignoring a damaged checkpoint file, recovery takes longer: %s", error)
            return None

    def finish_directory(self, directory: LogDirectory) -> None:
        """All logs in it are open. A gap that was accepted must lie below the recovery point before the settings of the
        log can change."""
        is_due, cleaner_too = self._due[directory.path]
        if not is_due:
            return
        files = self._files[directory.path]
        try:
            files.write_now(RECOVERY_POINT_FILE, LOG_START_FILE)
            if cleaner_too:
                files.write_now(CLEANER_FILE)
        except OSError as error:
            directory.on_write_failed(error)

    # Writing

    def write(self) -> None:
        """Recovery points and log starts of every directory, in the background."""
        self.write_if_changed(RECOVERY_POINT_FILE, LOG_START_FILE)

    def write_if_changed(self, *names: str) -> None:
        for directory in self._online():
            for name in names:
                self._files[directory.path].write_if_changed(name)

    def write_now(self) -> None:
        """All of them, for a node that stops: it must not leave old ones behind."""
        for directory in self._online():
            try:
                self._files[directory.path].write_now(*FILES)
                directory.on_written()
            except OSError as error:
                directory.fail(error)

    def _online(self) -> list[LogDirectory]:
        return [directory for directory in self._directories if not directory.failed]

    def may_have(self, log: Log, above: int = -1) -> bool:
        """Whether a crash could find an offset above that one for the log, in the files of its directory."""
        return self._files[log.log_directory.path].may_have((log.topic, log.partition), above)

    def remember(self, partition: Partition) -> bool:
        """Whether a start could take offsets of a log that was deleted for those of a new one of the same name."""
        return any(self._files[directory.path].may_have(partition) for directory in self._online())

    def forget_later(self, partition: Partition, done: Done) -> None:
        """`done` is called when that is no longer so, or could not be written."""
        files = [self._files[directory.path] for directory in self._online()]
        waiting = [each for each in files if each.may_have(partition)]
        results: list[OSError | None] = []

        def on_written(error: OSError | None) -> None:
            results.append(error)
            if len(results) == len(waiting):
                done(next((each for each in results if each is not None), None))

        for each in waiting:
            each.write_later(on_written, *FILES)

    def write_all_later(self, log: Log, done: Done) -> None:
        """Those of the log's directory: before it is truncated, takes over from another, or takes records under the
        name of one that was deleted."""
        self._files[log.log_directory.path].write_later(done, *FILES)

    def write_all_of(self, log: Log) -> None:
        """The same at a start."""
        self._files[log.log_directory.path].write_now(*FILES)

    def ensure_recovery_point(self, log: Log, offset: int, done: Done) -> None:
        """Calls `done` when the recovery point of the log on disk is at least `offset`.

        Compaction asks for this before it leaves gaps: behind the recovery point a gap is taken for a loss."""
        files = self._files[log.log_directory.path]
        if files.is_durable(RECOVERY_POINT_FILE, (log.topic, log.partition), offset):
            done(None)
        else:
            files.write_later(done, RECOVERY_POINT_FILE)

    # How far compaction came

    def set_cleaned_to(self, partition: Partition, offset: int, done: Done | None = None) -> None:
        """Compaction has come so far in a log; `done` is called when that is written down."""
        self.cleaned_to[partition] = offset
        self._files[self._logs[partition].log_directory.path].write_later(done, CLEANER_FILE)

    def lower_cleaned_to(self, log: Log, offset: int) -> None:
        """The log was truncated there."""
        partition = (log.topic, log.partition)
        if self._logs.get(partition) is log and self.cleaned_to.get(partition, -1) > offset:
            self.cleaned_to[partition] = offset

    def forget_cleaned_to(self, log: Log) -> None:
        """A new log of the same name must not be taken for compacted."""
        known = self.cleaned_to.pop((log.topic, log.partition), None)
        if known is not None and not log.log_directory.failed:
            self._files[log.log_directory.path].write_later(None, CLEANER_FILE)

    # High watermarks

    def write_last_high_watermarks(self, high_watermarks: Offsets) -> None:
        """What replication hands in when the node stops, each partition into the directory it lives in."""
        lines: Lines = {}
        for (topic, partition), offset in high_watermarks.items():
            log = self._logs.get((topic, partition))
            if log is not None:
                lines.setdefault(log.log_directory.path, []).append(f"{topic} {partition} {offset}")
        self.write_high_watermarks(lines, stopping=True)

    def write_high_watermarks(self, lines: Lines, stopping: bool = False) -> None:
        for directory in self._online():
            data = format_lines(lines.get(directory.path, []))
            try:
                path = f"{directory.path}/{REPLICATION_FILE}"
                if stopping:
                    self._disk.blocking().write_file(path, data)
                else:
                    self._disk.replace_file(path, data)
                directory.on_written()
            except OSError as error:
                directory.on_write_failed(error)
