"""Truncates a log: in memory at once, on the medium in order, on threads, while only that log waits.

The log takes no appends until all of it is durable: a power loss could bring the truncated data back, behind what is
written from now on, or a checkpoint that says that nobody need look. Nobody else waits. In order:

1. The checkpoints, where a crash could find an offset above the new end in them.
2. The names of segments that go. They were renamed in the same turn, the newest first: whatever part of that a power
   loss keeps, the log has no hole.
3. The truncation of the segment that is the last one now. It waits for the names where whole segments go, as a
   shorter segment before a later one is a hole, and below the recovery point a hole is taken for compaction. Until then
   the file is longer than its segment. Where nothing but the last segment is truncated, this is done at once: a start
   walks the last segment from its beginning, whatever the checkpoints say.
"""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.storage.aborted import truncate_files
from moldau.storage.disk import BlockingDisk, Done
from moldau.storage.log_producers import reload_producers, replay_producers
from moldau.storage.retired_files import DELAY_FROM_NEXT_LOOK
from moldau.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, Segment

if TYPE_CHECKING:
    from moldau.storage.log import Log

logger = logging.getLogger("moldau.storage")


class Truncation:
    """One of a log. `segment` is the one that was truncated, with `is_deferred` only in memory so far."""

    def __init__(self, log: Log, offset: int, segment: Segment, is_deferred: bool, names_changed: bool) -> None:
        self.log = log
        self.offset = offset
        self.segment = segment
        self.is_deferred = is_deferred
        self.names_changed = names_changed
        self.directory = log.directory
        self.is_over = False
        log.hold()
        log.pending_truncations.append(self)

    def start(self, write_checkpoints: Callable[[Done], None] | None) -> None:
        """`write_checkpoints` if these must come first."""
        if write_checkpoints is None:
            self._on_checkpoints(None)
        else:
            write_checkpoints(self._on_checkpoints)

    def _on_checkpoints(self, error: OSError | None) -> None:
        if not self._may_go_on(error):
            return
        if not self.names_changed:
            self._on_names(None)
            return
        self.log.disk.do_later(self.log.directory, self._sync_directory, self._on_names)

    def _sync_directory(self, disk: BlockingDisk) -> None:
        disk.sync_directory(self.directory)

    def _on_names(self, error: OSError | None) -> None:
        if not self._may_go_on(error):
            return
        try:
            self._truncate_files()
            if self.log.has_segment(self.segment):
                self.log.disk.sync_later(self.segment.log_file(), self._on_truncated)
                return
        except OSError as failure:
            self.log.log_directory.fail(failure)
            return
        self._on_truncated(None)

    def _truncate_files(self) -> None:
        if self.is_deferred and self.log.has_segment(self.segment):
            truncate_files(self.log, self.segment, self.offset)
        self.is_deferred = False

    def _on_truncated(self, error: OSError | None) -> None:
        if self._may_go_on(error):
            self._end()

    def _end(self) -> None:
        self.is_over = True
        self.log.pending_truncations.remove(self)
        self.log.release()

    def let_go(self) -> None:
        """Nobody waits: the log had no records, so there are none that a power loss could bring back among new ones."""
        self._end()

    def _may_go_on(self, error: OSError | None) -> bool:
        """A log that is gone needs nothing any more; one whose directory failed keeps refusing."""
        if self.is_over or self.log.closed or self.log.log_directory.failed:
            return False
        if error is not None:
            self.log.log_directory.fail(error)
        return error is None

    def finish(self, disk: BlockingDisk) -> None:
        """Does the rest before it returns, but for the checkpoints, which come first; for the end of a node."""
        if self.names_changed:
            disk.sync_directory(self.log.directory)
        self._truncate_files()
        if self.log.has_segment(self.segment):
            disk.sync_file(self.segment.path(LOG_SUFFIX))
        self._end()


def truncate_log(log: Log, offset: int, now_ms: int) -> Truncation:
    """Removes everything from `offset` on, which lies in the log; raises OSError and DamagedSegment."""
    log.truncations += 1
    keep = bisect_right(log.base_offsets, offset)
    removed = log.segments[keep:]
    is_deferred = bool(removed) or any(pending.is_deferred for pending in log.pending_truncations)
    # The newest data goes first, so that a crash in between leaves a log without holes.
    for segment in reversed(removed):
        log.retire([segment], DELAY_FROM_NEXT_LOOK)
    del log.segments[keep:]
    del log.base_offsets[keep:]
    if is_deferred:
        _take_indexes_off_disk(log, log.active)
    log.active.truncate_to(offset, now_ms)
    if not is_deferred:
        truncate_files(log, log.active, offset)
    log.set_end(offset, min(log.log_start_offset, offset))
    log.leader_epochs.truncate_from_end(offset)
    _take_producers_back(log, offset, now_ms)
    return Truncation(log, offset, log.active, is_deferred, bool(removed))


def _take_indexes_off_disk(log: Log, segment: Segment) -> None:
    """Their files must not be shorter than the log, which is truncated later; without files a start builds them
    anew."""
    segment.load_timestamps()
    segment.take_indexes_off_disk()
    log.retired.retire_files([segment.path(INDEX_SUFFIX), segment.path(TIME_INDEX_SUFFIX)], DELAY_FROM_NEXT_LOOK)


def _take_producers_back(log: Log, offset: int, now_ms: int) -> None:
    """Producer state where the log ends now: from memory if what is known there says enough, else read from the last
    place on at which it was remembered or written down."""
    producers = log.producers
    log.retired.retire_files(log.snapshots.forget_above(offset), DELAY_FROM_NEXT_LOOK)
    if producers.go_back(offset):
        return
    entries, unreplicated = producers.entries, producers.unreplicated
    point = producers.nearest_point(offset)
    if point is not None and point.offset >= log.snapshots.latest():
        producers.go_back_to(point)
        replay_producers(producers, log.segments, log.base_offsets, now_ms)
        producers.end_offset = offset
    else:
        log.retired.retire_files(reload_producers(log, now_ms, -1), DELAY_FROM_NEXT_LOOK)
    producers.keep_known(entries, unreplicated, offset)


def begin_anew(log: Log, offset: int, now_ms: int) -> Truncation:
    """Forgets everything; the next append gets `offset` or more. Raises OSError."""
    logger.info("truncating %s-%d fully, starting at offset %d", log.topic, log.partition, offset)
    log.truncations += 1
    log.retire(log.segments, DELAY_FROM_NEXT_LOOK)
    log.retired.retire_files(log.snapshots.forget_above(-1), DELAY_FROM_NEXT_LOOK)
    log.leader_epochs.clear()
    segment = log.new_segment(offset, now_ms)
    segment.create()
    log.segments = [segment]
    log.base_offsets = [offset]
    log.set_end(offset, offset)
    log.producers.clear(offset)
    log.directory_changed = True
    return Truncation(log, offset, segment, False, True)
