"""Which of the oldest segments of a log may go: expired, too much, or below the log start.

Only whole segments from the front, only wholly below the high watermark, and never an empty active one. Kafka:
UnifiedLog.deleteOldSegments.
"""

from __future__ import annotations

from typing import Final

from moldau.config.log_config import LogConfig
from moldau.records.clocks import WallClock
from moldau.storage.segment import Segment

NO_LIMIT: Final = 1 << 62


def count_deletable(
    segments: list[Segment],
    config: LogConfig,
    *,
    size_bytes: int,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
    wall: WallClock,
    segments_max: int = NO_LIMIT,
) -> int:
    """How many segments from the front, up to so many; all of them when even the active one is to go (it is rolled
    first then)."""
    excess_bytes = size_bytes - config.retention_bytes if config.delete and config.retention_bytes >= 0 else 0
    count = 0
    for segment in segments:
        if count >= segments_max:
            break
        is_last = count + 1 == len(segments)
        end_offset = log_end_offset if is_last else segments[count + 1].base_offset
        if high_watermark < end_offset or (is_last and segment.size == 0):
            break
        below_start = not is_last and end_offset <= log_start_offset
        too_much = excess_bytes > 0 and excess_bytes >= segment.size
        if not (below_start or too_much or is_expired(segment, config, now_ms, wall)):
            break
        excess_bytes -= segment.size
        count += 1
    return count


def is_expired(segment: Segment, config: LogConfig, now_ms: int, wall: WallClock) -> bool:
    """Never while the wall clock is in doubt: size and log start go on to count."""
    if not config.delete or config.retention_ms < 0 or not wall.may_delete_by_age:
        return False
    return age_ms(segment, now_ms, wall) > config.retention_ms


def age_ms(segment: Segment, now_ms: int, wall: WallClock) -> int:
    """How old its newest record is; without any timestamp, for how long the segment is known here."""
    timestamp = segment.largest_timestamp()
    return wall.at(now_ms) - timestamp if segment.max_timestamp >= 0 else now_ms - segment.created_ms
