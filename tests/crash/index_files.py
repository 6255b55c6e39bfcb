"""Holds the index files of a stopped node against its log files, with a reader of their own."""

from __future__ import annotations

import struct
from pathlib import Path

from tests.crash.raw import Batch, parse_batches


def check_partition_directory(directory: Path) -> int:
    """Raises AssertionError where an index and its log disagree; returns the number of index entries seen."""
    entries = 0
    logs = sorted(directory.glob("*.log"))
    assert logs, f"{directory} has no segment"
    next_offset = -1
    for log in logs:
        base_offset = int(log.stem)
        batches = parse_batches(log.read_bytes(), allow_partial=False)
        assert next_offset in (-1, base_offset), f"{log} begins at {base_offset}, the one before ends at {next_offset}"
        next_offset = _check_offsets(log, base_offset, batches)
        entries += _check_offset_index(log.with_suffix(".index"), base_offset, batches)
        entries += _check_time_index(log.with_suffix(".timeindex"), base_offset, batches)
    return entries


def _check_offsets(log: Path, base_offset: int, batches: list[Batch]) -> int:
    expected = base_offset
    for batch in batches:
        assert batch.base_offset == expected, f"{log}: offset {batch.base_offset} where {expected} was due"
        expected = batch.last_offset + 1
    return expected


def _check_offset_index(path: Path, base_offset: int, batches: list[Batch]) -> int:
    data = path.read_bytes() if path.exists() else b""
    assert len(data) % 8 == 0, f"{path} has {len(data)} bytes"
    by_position = {batch.position: batch for batch in batches}
    last = -1
    for relative, position in struct.iter_unpack(">ii", data):
        batch = by_position.get(position)
        assert batch is not None, f"{path}: no batch begins at {position}"
        assert batch.last_offset == base_offset + relative, f"{path}: {relative} is not the last offset at {position}"
        assert relative > last, f"{path}: entries do not rise"
        last = relative
    return len(data) // 8


def _check_time_index(path: Path, base_offset: int, batches: list[Batch]) -> int:
    data = path.read_bytes() if path.exists() else b""
    assert len(data) % 12 == 0, f"{path} has {len(data)} bytes"
    largest_until: dict[int, int] = {}
    largest = -1
    for batch in batches:
        largest = max(largest, batch.max_timestamp)
        largest_until[batch.last_offset] = largest
    last = (-1, -1)
    for entry in struct.iter_unpack(">qi", data):
        timestamp, relative = entry
        offset = base_offset + relative
        assert largest_until.get(offset) == timestamp, f"{path}: {timestamp} is not the largest up to {offset}"
        assert timestamp > last[0] and relative > last[1], f"{path}: entries do not rise"
        last = entry
    if batches and data:
        assert last[0] == largest, f"{path}: the last entry is not the largest timestamp of the segment"
    return len(data) // 12
