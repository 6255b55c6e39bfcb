"""When a log is flushed, and what is done so that a flush has little to do; how far a crash need not look.

`flush_job.py` does the work, on the disk's threads. The offsets that come of it, `recovery_point` and `indexed_to`, are
the log's own: every append asks for them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from moldau.storage.flush_job import Flusher
from moldau.storage.segment import Segment

if TYPE_CHECKING:
    from moldau.storage.log import Log

WRITE_BACK_BYTES: Final = 32 << 20
WRITE_BACKS_MAX: Final = 2  # in a log directory at a time: they take threads from its syncs


class LogFlushing:
    """Of one log. `write_back_at` is the size of the active segment at which the next write-back begins."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._flusher = Flusher(log)
        self.is_running = False
        self.total = 0
        self.write_back_at = WRITE_BACK_BYTES
        self._is_writing_back = False

    # Flushes

    def later(self, end_offset: int, done: Callable[[OSError | None], None] | None) -> None:
        """Syncs everything below `end_offset` without blocking, then moves the recovery point and calls `done`."""
        self._flusher.flush_later(end_offset, done)

    def start(self) -> None:
        """Flushes in the background. One flush at a time: whatever is appended while it runs shares the next one."""
        if self.is_running:
            return
        log = self._log
        self.is_running = True
        log.unflushed_since_ms = -1
        self.total += 1
        self.later(log.log_end_offset, self._on_over)

    def _on_over(self, error: OSError | None) -> None:
        log = self._log
        self.is_running = False
        if log.flush_target > log.recovery_point and not log.closed and not log.log_directory.failed:
            self.start()
        if log.on_durable is not None:
            log.on_durable(log)

    # Write-backs

    def on_rolled(self, base_offset: int) -> None:
        """A new segment begins there."""
        self.write_back_at = WRITE_BACK_BYTES
        self.later(base_offset, None)

    def on_truncation(self, active_size: int) -> None:
        self.write_back_at = active_size + WRITE_BACK_BYTES

    def on_grown(self, segment: Segment) -> None:
        """Has the system write what lies behind, so that the sync at the roll has little to do; and remembers what is
        known of producers, so that a truncation has little to read."""
        log = self._log
        log.producers.mark()
        position, self.write_back_at = self.write_back_at - WRITE_BACK_BYTES, segment.size + WRITE_BACK_BYTES
        directory = log.log_directory
        if self._is_writing_back or directory.write_backs >= WRITE_BACKS_MAX:
            return  # the disk is busy with earlier ones; what is left out now is written by the sync
        self._is_writing_back = True
        directory.write_backs += 1
        log.disk.write_back_later(segment.log_file(), position, segment.size - position, self._on_written_back)

    def _on_written_back(self, error: OSError | None) -> None:
        """It was advice: what is wrong with the disk is told by the sync."""
        self._is_writing_back = False
        self._log.log_directory.write_backs -= 1

    # What is not on the medium

    def segments_below(self, end_offset: int) -> list[Segment]:
        """Those that hold something below `end_offset` that is not known to be on the medium, indexes included."""
        log = self._log
        number = max(0, bisect_right(log.base_offsets, min(log.recovery_point, log.indexed_to)) - 1)
        return [segment for segment in log.segments[number:] if segment.base_offset < end_offset]

    def checkpoint_offset(self) -> int:
        """What the checkpoint may say: segments wholly below it are not walked again after a crash. Those must have
        their indexes on the medium; the active one has none yet, even if all of its records are there."""
        log = self._log
        if log.closed:
            return log.recovery_point
        number = max(0, bisect_right(log.base_offsets, log.indexed_to) - 1)
        end = log.base_offsets[number + 1] if number + 1 < len(log.base_offsets) else log.log_end_offset
        return min(log.recovery_point, max(log.base_offsets[number], end - 1))
