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
    """Replaces the segments of the log by the cleaned ones, in one turn; raises OSError when the disk fails.

    All of them become `.swap` before the first old one goes. These are changes of names in one directory, which reach
    the medium in the order in which they were made: a crash at any point leaves what `recovery.py` finishes or undoes.
    The caller has the directory synced before it says how far compaction came.
    """
    swaps = [SegmentSwap(log, cleaned, now_ms) for cleaned in result.cleaned if not cleaned.unchanged]
    for swap in swaps:
        swap.announce()
    for swap in swaps:
        swap.finish(now_ms)
    if swaps:
        log.directory_changed = True


class SegmentSwap:
    """One cleaned segment on its way into the log."""

    def __init__(self, log: Log, cleaned: CleanedSegment, now_ms: int) -> None:
        self.log = log
        self.cleaned = cleaned
        self.segment = Segment.found(
            log.disk,
            log.directory,
            cleaned.base_offset,
            size=cleaned.size,
            has_transaction_index=cleaned.has_transaction_index,
            index_interval_bytes=log.config.index_interval_bytes,
            index_bytes_max=log.config.segment_index_bytes,
            now_ms=now_ms,
        )
        self.paths = [self.segment.path(suffix) for suffix in SUFFIXES if suffix != TRANSACTION_INDEX_SUFFIX]
        if cleaned.has_transaction_index:
            self.paths.append(self.segment.path(TRANSACTION_INDEX_SUFFIX))

    def announce(self) -> None:
        for path in self.paths:
            self.log.disk.rename(path + CLEANED_SUFFIX, path + SWAP_SUFFIX)

    def finish(self, now_ms: int) -> None:
        self.log.replace_segments(self.cleaned.sources, self.segment, now_ms)
        for path in self.paths:
            self.log.disk.rename(path + SWAP_SUFFIX, path)


def cleaned_files(log: Log) -> list[str]:
    """What a run has left in the directory of a log, for as long as nothing of it was announced."""
    return [f"{log.directory}/{name}" for name in log.disk.list(log.directory) if name.endswith(CLEANED_SUFFIX)]
