"""Puts cleaned segments in the place of those they were made from, so that a crash leaves the old state or the new one.

The order of the renames is Kafka's (LocalLog.replaceSegments): `.cleaned` becomes `.swap`, then the old files become
`.deleted`, then `.swap` gets its name. `recovery.py` finishes or undoes what it finds. Groups are swapped in the order
of their offsets: a tombstone must not go before the older values that it hides.
"""

from __future__ import annotations

import logging

from moldau.storage.compaction.task import CLEANED_SUFFIX, CleanedSegment, CompactionResult, SourceSegment
from moldau.storage.log import Log
from moldau.storage.recovery import SWAP_SUFFIX
from moldau.storage.segment import (
    INDEX_SUFFIX,
    LOG_SUFFIX,
    TIME_INDEX_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    Segment,
)

logger = logging.getLogger("moldau.storage")

SUFFIXES = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TRANSACTION_INDEX_SUFFIX)


def is_still_valid(log: Log, sources: list[SourceSegment]) -> bool:
    """Whether the log still has what the run was made from: nothing truncated, deleted or replaced since."""
    sizes = {segment.base_offset: segment.size for segment in log.segments[:-1]}
    return all(sizes.get(source.base_offset) == source.size for source in sources)


def swap_in(log: Log, result: CompactionResult, now_ms: int) -> None:
    """Replaces the segments of the log by the cleaned ones; raises OSError when the disk fails."""
    for cleaned in result.cleaned:
        if not cleaned.unchanged:
            _swap_one(log, cleaned, now_ms)


def _swap_one(log: Log, cleaned: CleanedSegment, now_ms: int) -> None:
    disk = log.disk
    segment = Segment.found(
        disk,
        log.directory,
        cleaned.base_offset,
        cleaned.size,
        cleaned.has_transaction_index,
        log.config.index_interval_bytes,
        log.config.segment_index_bytes,
        now_ms,
    )
    paths = [segment.path(suffix) for suffix in SUFFIXES if suffix != TRANSACTION_INDEX_SUFFIX]
    if cleaned.has_transaction_index:
        paths.append(segment.path(TRANSACTION_INDEX_SUFFIX))
    for path in paths:
        disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)
    # From here on a start completes the swap; the names must be there before the old ones go.
    disk.sync_directory(log.directory)
    log.replace_segments(cleaned.sources, segment, now_ms)
    for path in paths:
        disk.rename(path + SWAP_SUFFIX, path)
    disk.sync_directory(log.directory)


def remove_cleaned(log: Log, result: CompactionResult) -> None:
    """A result that nobody wants any more."""
    for cleaned in result.cleaned:
        for suffix in SUFFIXES:
            log.disk.remove(f"{log.directory}/{cleaned.base_offset:020d}{suffix}{CLEANED_SUFFIX}")
