"""Looks after tables: joins small files, removes what no commit needs, deletes old rows, tells how a table is.

None of it moves positions, so that a load may run beside it; only a vacuum with a short retention wants the table
for itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import Any

from moldau.lake.compaction import Bin, plan_bins, write_bin
from moldau.lake.data_file import DataFile
from moldau.lake.delta_table import DeltaLakeTable
from moldau.lake.errors import CommitConflict, LakeError
from moldau.lake.iceberg_table import IcebergLakeTable
from moldau.lake.lock import WriterLock
from moldau.lake.manifest import Manifest, prune
from moldau.lake.parquet_table import REMOVED, STAGING, ParquetLakeTable
from moldau.lake.positions import Positions
from moldau.lake.table import COMMIT_TRIES, DATE, TIMESTAMP, LakeTable

TARGET_BYTES = 256 * 1024 * 1024
RETENTION_HOURS = 7 * 24
# No task runs for so long between the first byte of a file and its commit.
SAFE_RETENTION_HOURS = 24


@dataclass(frozen=True)
class Optimized:
    """How many files became how many."""

    removed: int = 0
    added: int = 0


def optimize(table: LakeTable, target_bytes: int = TARGET_BYTES) -> Optimized:
    """Joins files that are well below the target size with others of their partition."""
    table.refresh()
    if isinstance(table, DeltaLakeTable):
        found = table.delta.optimize.compact(target_size=target_bytes)
        table.refresh()
        return Optimized(int(found["numFilesRemoved"]), int(found["numFilesAdded"]))
    removed = added = 0
    for group in plan_bins(table.files(), target_bytes):
        if _replace(table, group):
            removed += len(group.files)
            added += 1
    return Optimized(removed, added)


def _replace(table: LakeTable, group: Bin) -> bool:
    """One file in place of several; False if others have changed these files in the meantime."""
    new = write_bin(table, group)
    for _ in range(COMMIT_TRIES):
        known = {file.path for file in table.files()}
        if not all(file.path in known for file in group.files):
            return False
        try:
            _commit_replacement(table, group.files, new)
            return True
        except CommitConflict:
            table.refresh()
    return False


def _commit_replacement(table: LakeTable, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
    if isinstance(table, ParquetLakeTable):
        state = table.state
        paths = [file.path for file in old]
        manifest = Manifest("optimize", state.positions, state.schema, state.partition_by, new, paths)
        table.commit(manifest)
        return
    assert isinstance(table, IcebergLakeTable)
    table.replace_files(old, new)


# Removal


def vacuum(table: LakeTable, retention_hours: float = RETENTION_HOURS, dry_run: bool = False) -> list[str]:
    """Removes files that no commit of the last hours needs, and files that no commit ever named;
    returns their paths."""
    if retention_hours < 0:
        raise LakeError("The retention is below zero: give hours from 0 up.")
    if retention_hours >= SAFE_RETENTION_HOURS or dry_run:
        return _vacuum(table, retention_hours, dry_run)
    # A load that runs now may have files that its commit is about to name.
    with WriterLock(table.path, "a vacuum"):
        return _vacuum(table, retention_hours, dry_run)


def _vacuum(table: LakeTable, retention_hours: float, dry_run: bool) -> list[str]:
    table.refresh()
    before_ms = int((time.time() - retention_hours * 3600) * 1000)
    if isinstance(table, DeltaLakeTable):
        found = table.delta.vacuum(
            retention_hours=ceil(retention_hours), dry_run=dry_run, enforce_retention_duration=False, full=True
        )
        table.refresh()
        return [str(path) for path in found]
    if isinstance(table, IcebergLakeTable):
        return _vacuum_iceberg(table, before_ms, dry_run)
    assert isinstance(table, ParquetLakeTable)
    return _vacuum_parquet(table, before_ms, dry_run)


def _vacuum_parquet(table: ParquetLakeTable, before_ms: int, dry_run: bool) -> list[str]:
    table.settle()
    state = table.state
    live = {os.path.basename(path) for path in state.files}
    old = [path for path, when in state.removed.items() if when < before_ms]
    unused = [
        os.path.join(STAGING, name)
        for name in _names(os.path.join(table.path, STAGING))
        if name not in live and _is_older(os.path.join(table.path, STAGING, name), before_ms)
    ]
    unneeded = [*(os.path.join(REMOVED, os.path.basename(path)) for path in old), *unused]
    if dry_run:
        return unneeded
    for path in unneeded:
        _unlink(os.path.join(table.path, path))
    if old:
        table.commit(Manifest("vacuum", state.positions, state.schema, state.partition_by, forget=old))
    prune(table.path, before_ms)
    return unneeded


def _vacuum_iceberg(table: IcebergLakeTable, before_ms: int, dry_run: bool) -> list[str]:
    """Snapshots that are older are given up first; then files of no snapshot go."""
    iceberg = table.iceberg
    current = iceberg.current_snapshot()
    expired = {
        snapshot.snapshot_id
        for snapshot in iceberg.snapshots()
        if current is not None and snapshot.timestamp_ms < before_ms and snapshot.snapshot_id != current.snapshot_id
    }
    if expired and not dry_run:
        iceberg.maintenance.expire_snapshots().by_ids(sorted(expired)).commit()
        table.refresh()
    used = table.referenced_files(without=expired)
    directory = os.path.join(table.path, "data")
    unneeded = []
    for parent, _, names in os.walk(directory):
        for name in names:
            place = os.path.join(parent, name)
            if place not in used and _is_older(place, before_ms):
                unneeded.append(os.path.relpath(place, table.path))
    for path in [] if dry_run else unneeded:
        _unlink(os.path.join(table.path, path))
    return unneeded


def expire_rows(table: LakeTable, older_than: datetime) -> int:
    """Deletes rows whose records are older; returns how many. Plain parquet loses whole files only."""
    table.refresh()
    bound = older_than.astimezone(UTC)
    if isinstance(table, DeltaLakeTable):
        table.delta.delete(_delta_condition(table, bound))
        deleted = int(table.delta.history(1)[0].get("operationMetrics", {}).get("num_deleted_rows", 0) or 0)
        table.refresh()
        return deleted
    if isinstance(table, IcebergLakeTable):
        return table.delete_older(bound)
    assert isinstance(table, ParquetLakeTable)
    return _expire_parquet(table, int(bound.timestamp() * 1_000_000))


def _delta_condition(table: DeltaLakeTable, bound: datetime) -> str:
    if table.partitioning.by_date:
        # Whole days: nothing has to be written anew.
        return f"{DATE} < DATE '{bound:%Y-%m-%d}'"
    return f"{TIMESTAMP} < TIMESTAMP '{bound:%Y-%m-%dT%H:%M:%S}Z'"


def _expire_parquet(table: ParquetLakeTable, bound_us: int) -> int:
    for _ in range(COMMIT_TRIES):
        state = table.state
        old = [file for file in table.files() if TIMESTAMP in file.ranges and file.ranges[TIMESTAMP][1] < bound_us]
        if not old:
            return 0
        paths = [file.path for file in old]
        try:
            table.commit(Manifest("expire", state.positions, state.schema, state.partition_by, remove=paths))
            return sum(file.rows for file in old)
        except CommitConflict:
            table.refresh()
    raise LakeError(f"{table.path} changes faster than old rows can be deleted; try again later.")


def forget_topic(table: LakeTable, topic: str) -> None:
    """Forgets how far a topic is loaded: the next load begins anew, and rows that are there stay."""
    with WriterLock(table.path, "forgetting a topic"):
        table.refresh()
        if not any(item.topic == topic for item in table.known_positions().offsets):
            raise LakeError(
                f"{table.path} was never loaded from topic {topic}: `moldau lake describe` shows its topics."
            )
        table.forget(topic)


# Telling


@dataclass(frozen=True)
class Description:
    """How a table is."""

    path: str
    format: str
    version: int
    schema: Any
    partition_by: tuple[str, ...]
    files: int
    rows: int
    bytes: int
    small_files: int
    positions: Positions
    commits: Sequence[dict[str, Any]] = field(default_factory=list)


def describe(table: LakeTable, commits: int = 10) -> Description:
    """Reads what the table says about itself; no broker is asked."""
    table.refresh()
    files = table.files()
    return Description(
        table.path,
        table.format,
        table.version,
        table.schema(),
        table.partitioning.columns,
        len(files),
        sum(file.rows for file in files),
        sum(file.size for file in files),
        sum(file.size < TARGET_BYTES // 8 for file in files),
        table.known_positions(),
        table.history(commits),
    )


def parse_age(text: str) -> timedelta:
    """90d, 12h, 30m: how long ago."""
    units: dict[str, Callable[[int], timedelta]] = {
        "d": lambda count: timedelta(days=count),
        "h": lambda count: timedelta(hours=count),
        "m": lambda count: timedelta(minutes=count),
    }
    if len(text) < 2 or text[-1] not in units or not text[:-1].isdigit():
        raise LakeError(f"{text!r} is no time: write 90d, 12h or 30m.")
    return units[text[-1]](int(text[:-1]))


def _names(directory: str) -> Iterable[str]:
    return sorted(os.listdir(directory)) if os.path.isdir(directory) else []


def _is_older(place: str, before_ms: int) -> bool:
    try:
        return os.path.getmtime(place) * 1000 < before_ms
    except FileNotFoundError:
        return False


def _unlink(place: str) -> None:
    try:
        os.unlink(place)
    except FileNotFoundError:
        pass
