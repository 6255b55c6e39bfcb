"""Brings finished segments to the medium without holding up the node, then moves the recovery point.

The log and index files are synced one after the other in the disk's own threads. Until the last one is done a crash
costs a scan of these segments and nothing else.
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

    def start(self) -> None:
        self._next(None)

    def _next(self, error: OSError | None) -> None:
        disk = self.log.disk
        if error is None and not self.log.closed and self.truncations == self.log.truncations:
            try:
                if self.segments:
                    segment = self.segments.pop(0)
                    for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX):
                        self.paths.append(segment.path(suffix))
                    disk.sync_later(segment.log_file(), self._next)
                    return
                while self.paths:
                    path = self.paths.pop()
                    if disk.exists(path):
                        disk.sync_later(disk.open(path), self._next)
                        return
                self.log.directory_changed = True  # index files may be new
                self.log.on_flushed(self.end_offset)
            except OSError as failure:
                error = failure
        if error is not None:
            self.log.log_directory.fail(error)
        if self.done is not None:
            self.done(error)
