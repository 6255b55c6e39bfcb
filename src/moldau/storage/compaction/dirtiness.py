"""How dirty a log is: what compaction could clean, and whether it is worth it or due."""

from __future__ import annotations

from moldau.protocol.integers import LONG_MAX
from moldau.storage.log import Log
from moldau.storage.retention import age_ms
from moldau.storage.segment import Segment


class Dirtiness:
    """The clean and the cleanable part of one log at one moment. Kafka: LogToClean."""

    def __init__(self, log: Log, cleaned_to: int, high_watermark: int, now_ms: int) -> None:
        """`cleaned_to` is what the checkpoint says, -1 for nothing."""
        self.log = log
        self.first_dirty_offset = first_dirty_offset(log, cleaned_to)
        self.end_offset = _first_uncleanable(log, high_watermark, now_ms)
        self.segments = [segment for segment in log.segments[:-1] if segment.base_offset < self.end_offset]
        dirty = [segment for segment in self.segments if segment.base_offset >= self.first_dirty_offset]
        self.clean_bytes = sum(segment.size for segment in self.segments) - sum(segment.size for segment in dirty)
        self.cleanable_bytes = sum(segment.size for segment in dirty)
        self.overdue_ms = _overdue_ms(log, dirty, now_ms)

    @property
    def ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total > 0 else 0.0

    @property
    def is_due(self) -> bool:
        """Worth it by `min.cleanable.dirty.ratio`, or waiting for longer than `max.compaction.lag.ms`."""
        if self.cleanable_bytes <= 0:
            return False
        return self.overdue_ms > 0 or self.ratio > self.log.config.min_cleanable_dirty_ratio


def first_dirty_offset(log: Log, cleaned_to: int) -> int:
    """A checkpoint that does not fit the log, because that was truncated, counts as none."""
    if cleaned_to < log.log_start_offset or cleaned_to > log.log_end_offset:
        return log.log_start_offset
    return cleaned_to


def _first_uncleanable(log: Log, high_watermark: int, now_ms: int) -> int:
    """Base offset of the first segment that must stay as it is."""
    # What is not flushed yet stays: after a crash, a gap behind the recovery point is a loss and not a compaction.
    stable = min(log.last_stable_offset(high_watermark), log.flushing.checkpoint_offset())
    lag_ms = log.config.min_compaction_lag_ms
    for number, segment in enumerate(log.segments[:-1]):
        if log.base_offsets[number + 1] > stable:
            return segment.base_offset
        if lag_ms > 0 and age_ms(segment, now_ms, log.wall) < lag_ms:
            return segment.base_offset
    return log.active.base_offset


def _overdue_ms(log: Log, dirty: list[Segment], now_ms: int) -> int:
    """For how long the oldest dirty record has waited beyond `max.compaction.lag.ms`."""
    lag_ms = log.config.max_compaction_lag_ms
    if lag_ms >= LONG_MAX:
        return 0
    times = [segment.load_first_timestamp() for segment in dirty if segment.size > 0]
    wall_ms = log.wall.at(now_ms)
    earliest = min((time for time in times if time > 0), default=wall_ms)
    return max(0, wall_ms - earliest - lag_ms)
