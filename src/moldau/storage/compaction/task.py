"""What the broker tells a compaction worker, and what it hears back: plain data that travels between processes."""

from __future__ import annotations

from dataclasses import dataclass, field

CLEANED_SUFFIX = ".cleaned"


@dataclass(slots=True)
class SourceSegment:
    """One segment as it is now."""

    base_offset: int
    size: int


@dataclass(slots=True)
class CompactionTask:
    """One run over one log. The segments go from the log start to the first uncleanable offset, without the active one.

    `producers` has the last data offset (-1 for none) and the epoch of each producer that the log remembers. `aborted`
    has the aborted transactions with records below `end_offset`, as (producer id, first offset, offset of the marker,
    last stable offset): the marker of one that began here may lie beyond.
    """

    name: str
    directory: str
    segments: list[SourceSegment]
    log_start_offset: int
    first_dirty_offset: int
    end_offset: int
    wall_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    map_load_factor: float
    producers: dict[int, tuple[int, int]]
    aborted: list[tuple[int, int, int, int]] = field(default_factory=list)
    seed: int = 0


@dataclass(slots=True)
class CleanedSegment:
    """One `.cleaned` segment and the segments it stands for; `unchanged` if the only source may stay as it is."""

    base_offset: int
    sources: list[int]
    size: int = 0
    has_transaction_index: bool = False
    unchanged: bool = False


@dataclass(slots=True)
class CompactionStats:
    """What one run has read and written, and how long it took, the start of its process included."""

    map_bytes_read: int = 0
    map_records: int = 0
    map_keys: int = 0
    map_utilization: float = 0.0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_kept: int = 0
    keyless_records: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class CompactionResult:
    """`end_offset` is the first dirty offset from now on. With `problem` set, nothing was written."""

    cleaned: list[CleanedSegment] = field(default_factory=list)
    end_offset: int = -1
    stats: CompactionStats = field(default_factory=CompactionStats)
    problem: str = ""
