"""Brings appended data to the medium without holding up the node, then moves the recovery point.

The log and index files are synced one after the other in the disk's own threads. Until the last one is done a crash
costs a scan of these segments and nothing else. The active segment needs no index files: a start walks the segment
that holds the recovery point. One that is rolled in the meantime is not active any more, and needs them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.storage.segment import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX, Segment

if TYPE_CHECKING:
    from moldau.storage.log import Log


class FlushJob:
    """One run over `segments`; `done` hears about the end, whether it went well or not."""

    def __init__(
        self, log: Log, segments: list[Segment], end_offset: int, done: Callable[[OSError | None], None] | None
    ) -> None:
        self.log = log
        self.end_offset = end_offset
        self.truncations = log.truncations
        self.done = done
        self.paths: list[str] = []
        self.segments = segments
        self.without_indexes: list[Segment] = []  # their data is synced, their indexes are not
        self.files_may_be_new = False

    def start(self) -> None:
        self._next(None)

    def _next(self, error: OSError | None) -> None:
        disk = self.log.disk
        if error is None and not self.log.closed and self.truncations == self.log.truncations:
            try:
                if self.segments:
                    segment = self.segments.pop(0)
                    self.without_indexes.append(segment)
                    disk.sync_later(segment.log_file(), self._next)
                    return
                self._find_index_files()
                while self.paths:
                    path = self.paths.pop()
                    if disk.exists(path):
                        disk.sync_later(disk.open(path), self._next)
                        return
                if self.files_may_be_new:
                    self.log.directory_changed = True
                self.log.on_flushed(self.end_offset)
            except OSError as failure:
                error = failure
        if error is not None:
            self.log.log_directory.fail(error)
        if self.done is not None:
            self.done(error)

    def _find_index_files(self) -> None:
        """Asked again after every sync: when the last one is done, only the active segment may be without."""
        active = self.log.active
        for segment in self.without_indexes:
            if segment is not active:
                self.files_may_be_new = True
                for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
                    self.paths.append(segment.path(suffix))
        self.without_indexes = [segment for segment in self.without_indexes if segment is active]
