"""Brings appended data to the medium without holding up the node, then moves the recovery point.

Files are synced one after the other on the disk's own threads, then, as one job, what cannot be learned from the data
again: leader epochs, the id of the topic, the names of the files, the directory itself. Until the last of it is done a
crash costs a scan of these segments and nothing else, so whoever rolls or appends need not wait. The active segment
needs no index files: a start walks the segment that holds the recovery point. One that is rolled in the meantime is not
active any more, and needs them before a checkpoint may say that nobody walks it again (see `log_flushing.py`).

One job at a time for a log: what is asked for while it runs shares the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.storage.checkpoints import LEADER_EPOCH_FILE
from moldau.storage.disk import BlockingDisk
from moldau.storage.partition_metadata import PARTITION_METADATA_FILE
from moldau.storage.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, Segment

if TYPE_CHECKING:
    from moldau.storage.log import Log

Done = Callable[[OSError | None], None]


class Flusher:
    """The flushes of one log."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._is_running = False
        self._wanted: list[tuple[int, Done | None]] = []

    def flush_later(self, end_offset: int, done: Done | None) -> None:
        """Syncs everything below `end_offset` without blocking, then moves the recovery point and calls `done`."""
        self._wanted.append((end_offset, done))
        if not self._is_running:
            self._start()

    def _start(self) -> None:
        wanted, self._wanted = self._wanted, []
        self._is_running = True
        # It may have been truncated since; and it may begin behind its end, after offsets that were compacted away.
        end_offset = max(self._log.log_end_offset, self._log.active.base_offset)
        end_offset = min(max(end for end, _ in wanted), end_offset)
        FlushJob(self._log, end_offset, lambda error: self._on_over(wanted, error)).start()

    def _on_over(self, wanted: list[tuple[int, Done | None]], error: OSError | None) -> None:
        self._is_running = False
        for _, done in wanted:
            if done is not None:
                done(error)
        if self._wanted and not self._is_running:
            self._start()


class DirectorySync:
    """The last part of a flush: files by name, their directory, and the directory it is in if that is needed."""

    def __init__(self, directory: str, files: list[str], parent: str) -> None:
        self.directory = directory
        self.files = files
        self.parent = parent

    def run(self, disk: BlockingDisk) -> None:
        """On a thread."""
        for path in self.files:
            disk.sync_file(path)
        disk.sync_directory(self.directory)
        if self.parent:
            disk.sync_directory(self.parent)


class FlushJob:
    """One run over the segments up to `end_offset`; `done` hears about the end, whether it went well or not."""

    def __init__(self, log: Log, end_offset: int, done: Done) -> None:
        self.log = log
        self.end_offset = end_offset
        self.truncations = log.truncations
        self.done = done
        self.segments = log.flushing.segments_below(end_offset)
        self.without_indexes: list[Segment] = []  # their data is synced, their indexes are not
        self.paths: list[str] = []
        self.directory_is_due = True
        self.directory_sync = DirectorySync("", [], "")
        self.epoch_changes = 0
        self.directory_was_unsynced = False
        self.directories_changed = 0

    def start(self) -> None:
        self._go_on(None)

    def _is_void(self) -> bool:
        """The log is gone, or not what it was when this began."""
        return self.log.closed or self.truncations != self.log.truncations

    def _go_on(self, error: OSError | None) -> None:
        if error is None and not self._is_void():
            try:
                if self._sync_next_file() or self._sync_directory():
                    return
                self._finish()
            except OSError as failure:
                error = failure
        self._end(error)

    def _end(self, error: OSError | None) -> None:
        if isinstance(error, FileNotFoundError) and self._is_void():
            error = None
        if error is not None:
            self.log.log_directory.fail(error)
        self.done(error)

    # Files

    def _sync_next_file(self) -> bool:
        """Whether one is under way."""
        disk = self.log.disk
        while self.segments:
            segment = self.segments.pop(0)
            if self.log.has_segment(segment):  # else it was deleted or compacted meanwhile
                self.without_indexes.append(segment)
                disk.sync_later(segment.log_file(), self._go_on)
                return True
        self._find_index_files()
        while self.paths:
            path = self.paths.pop()
            if disk.exists(path):
                disk.sync_later(disk.open(path), self._go_on)
                return True
        return False

    def _find_index_files(self) -> None:
        """Asked again after every sync: when the last one is done, only the active segment may be without."""
        active = self.log.active
        for segment in self.without_indexes:
            if segment is not active and self.log.has_segment(segment):
                self.directory_is_due = True  # they may be new
                self.log.directory_changed = True
                for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
                    self.paths.append(segment.path(suffix))
        self.without_indexes = [segment for segment in self.without_indexes if segment is active]

    # The directory

    def _sync_directory(self) -> bool:
        """Whether that is under way. What changes meanwhile belongs to data that is not flushed here."""
        log = self.log
        if not self.directory_is_due:
            return False
        self.directory_is_due = False
        directory = log.log_directory
        files: list[str] = []
        if log.leader_epochs.needs_sync(log.log_end_offset):
            # Written in this turn, so that nobody else's directory gets it if this one is renamed.
            log.leader_epochs.write()
            files.append(f"{log.directory}/{LEADER_EPOCH_FILE}")
        if log.directory_unsynced and log.disk.exists(f"{log.directory}/{PARTITION_METADATA_FILE}"):
            files.append(f"{log.directory}/{PARTITION_METADATA_FILE}")
        if not files and not log.directory_changed and not log.directory_unsynced:
            return False
        parent = directory.path if log.directory_unsynced and directory.has_unsynced_directories else ""
        self.directory_sync = DirectorySync(log.directory, files, parent)
        self.epoch_changes = log.leader_epochs.changes
        self.directory_was_unsynced = log.directory_unsynced
        self.directories_changed = directory.directories_changed
        log.directory_changed = log.directory_unsynced = False
        log.disk.do_later(log.directory, self.directory_sync.run, self._on_directory_synced)
        return True

    def _on_directory_synced(self, error: OSError | None) -> None:
        log = self.log
        if error is None and not self._is_void():
            if self.directory_sync.files:
                log.leader_epochs.on_synced(self.epoch_changes)
            if self.directory_sync.parent:
                log.log_directory.on_directories_synced(self.directories_changed)
            self._go_on(None)
            return
        log.directory_changed = True
        log.directory_unsynced = log.directory_unsynced or self.directory_was_unsynced
        if isinstance(error, FileNotFoundError) and log.directory != self.directory_sync.directory:
            self.directory_is_due = True  # the directory was renamed meanwhile
            error = None
        self._go_on(error)

    def _finish(self) -> None:
        log = self.log
        # A segment may begin behind the end while its first batch is written, after offsets that were compacted away.
        assert self.end_offset <= max(log.log_end_offset, log.active.base_offset), f"{log}: {self.end_offset} flushed"
        log.recovery_point = max(log.recovery_point, self.end_offset)
        log.indexed_to = max(log.indexed_to, min(self.end_offset, log.active.base_offset))


def flush_now(log: Log) -> None:
    """Blocks until everything that was appended is on the medium, for a node that does not serve; raises OSError."""
    end_offset = log.log_end_offset
    if log.recovery_point < end_offset or log.indexed_to < log.active.base_offset:
        for segment in log.flushing.segments_below(end_offset):
            if segment.size > 0:
                segment.write_indexes()
            segment.sync()
        _sync_directory_now(log)
    elif log.directory_changed and end_offset > 0:
        log.disk.blocking().sync_directory(log.directory)
        log.directory_changed = False
    log.recovery_point = end_offset
    log.indexed_to = log.active.base_offset
    log.unflushed_since_ms = -1


def _sync_directory_now(log: Log) -> None:
    blocking = log.disk.blocking()
    if log.leader_epochs.needs_sync(log.log_end_offset):
        log.leader_epochs.write()
        blocking.sync_file(f"{log.directory}/{LEADER_EPOCH_FILE}")
        log.leader_epochs.on_synced(log.leader_epochs.changes)
    path = f"{log.directory}/{PARTITION_METADATA_FILE}"
    if log.directory_unsynced and log.disk.exists(path):
        blocking.sync_file(path)
    blocking.sync_directory(log.directory)
    log.directory_changed = False
    directory = log.log_directory
    if log.directory_unsynced and directory.has_unsynced_directories:
        blocking.sync_directory(directory.path)
        directory.on_directories_synced(directory.directories_changed)
    log.directory_unsynced = False
