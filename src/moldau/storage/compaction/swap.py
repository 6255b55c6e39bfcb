"""Puts cleaned segments in the place of those they were made from, so that a crash leaves the old state or the new one.

The order of the renames is Kafka's (LocalLog.replaceSegments): `.cleaned` becomes `.swap`, then the old files become
`.deleted`, then `.swap` gets its name. `recovery.py` finishes or undoes what it finds. Groups come in the order of
their offsets in every step: a tombstone must not go before the older values that it hides.
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
    """Replaces the segments of the log by the cleaned ones; raises OSError when the disk fails.

    All of them become `.swap` before the first old one goes: one sync serves them all, and whoever waits for the node
    waits for two.
    """
    swaps = [SegmentSwap(log, cleaned, now_ms) for cleaned in result.cleaned if not cleaned.unchanged]
    if not swaps:
        return
    for swap in swaps:
        swap.announce()
    # From here on a start completes the swap; the names must be there before the old ones go.
    log.disk.sync_directory(log.directory)
    for swap in swaps:
        swap.finish()
    log.disk.sync_directory(log.directory)


class SegmentSwap:
    """One cleaned segment on its way into the log."""

    def __init__(self, log: Log, cleaned: CleanedSegment, now_ms: int) -> None:
        self.log = log
        self.cleaned = cleaned
        self.now_ms = now_ms
        self.segment = Segment.found(
            log.disk,
            log.directory,
            cleaned.base_offset,
            cleaned.size,
            cleaned.has_transaction_index,
            log.config.index_interval_bytes,
            log.config.segment_index_bytes,
            now_ms,
        )
        self.paths = [self.segment.path(suffix) for suffix in SUFFIXES if suffix != TRANSACTION_INDEX_SUFFIX]
        if cleaned.has_transaction_index:
            self.paths.append(self.segment.path(TRANSACTION_INDEX_SUFFIX))

    def announce(self) -> None:
        for path in self.paths:
            self.log.disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)

    def finish(self) -> None:
        self.log.replace_segments(self.cleaned.sources, self.segment, self.now_ms)
        for path in self.paths:
            self.log.disk.rename(path + SWAP_SUFFIX, path)


def remove_cleaned(log: Log, result: CompactionResult) -> None:
    """A result that nobody wants any more."""
    for cleaned in result.cleaned:
        for suffix in SUFFIXES:
            log.disk.remove(f"{log.directory}/{cleaned.base_offset:020d}{suffix}{CLEANED_SUFFIX}")
