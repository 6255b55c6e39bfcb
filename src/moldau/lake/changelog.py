"""Compacted topics and change data as tables: one row for each key, which the newest record wrote.

Tasks reduce each range to the newest record of each key and write it beside the table; the driver merges all of it
by `deltalake`, in one commit with the new positions. Files of changes are removed afterwards, by the next round if
this one is killed: no commit names them.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from moldau.lake.delta_table import DeltaLakeTable
from moldau.lake.errors import CommitConflict, LakeError
from moldau.lake.extras import need
from moldau.lake.file_writer import WriteSettings
from moldau.lake.load import Load, LoadSettings
from moldau.lake.lock import DIRECTORY
from moldau.lake.newest import newest
from moldau.lake.positions import Positions
from moldau.lake.row_shape import DELETED, RowShape, make_shape
from moldau.lake.table import DATE, LakeTable, Note, Partitioning
from moldau.lake.tasks import Runner, TaskResult

CHANGES = f"{DIRECTORY}/changes"
# The driver merges a round in its own memory.
ROUND_OFFSETS_MAX = 2_000_000
NEWER = (
    "((s.partition = t.partition AND s.offset > t.offset)"
    " OR (s.partition <> t.partition AND s.timestamp >= t.timestamp))"
)


class ChangelogLoad(Load):
    """A load whose table equals what compaction would leave of the topic."""

    newest_only = True

    def __init__(self, settings: LoadSettings, runner: Runner) -> None:
        if settings.format not in (None, "delta"):
            raise LakeError(f"Upserts need a Delta table: write --format delta, not {settings.format}.")
        if DATE in settings.partition_by:
            raise LakeError("Rows that change would wander between dates: partition a table of keys by another column.")
        limit = min(settings.round_offsets_max, ROUND_OFFSETS_MAX)
        super().__init__(replace(settings, format="delta", round_offsets_max=limit), runner)

    def _make_shape(self) -> RowShape:
        return make_shape(self._options, self.settings.envelope, changes=True)

    def _open(self) -> LakeTable:
        shutil.rmtree(os.path.join(self.directory, CHANGES), ignore_errors=True)
        return super()._open()

    def _write_settings(self, table: LakeTable) -> WriteSettings:
        return WriteSettings(table.path, CHANGES, "", Partitioning(), self.settings.compression)

    def _commit(self, table: LakeTable, results: Sequence[TaskResult], before: Positions, after: Positions) -> int:
        assert isinstance(table, DeltaLakeTable)
        places = [
            os.path.join(table.path, CHANGES, os.path.basename(file.path))
            for result in results
            for file in result.files
        ]
        changes = read_changes(places)
        note = Note("upsert", {"changes": 0 if changes is None else changes.num_rows, "records": _records(results)})
        version = table.commit_if(before, after, lambda: _merge(table, changes, before, after, note))
        for place in places:
            os.unlink(place)
        return version


def _records(results: Sequence[TaskResult]) -> int:
    return sum(result.rows for result in results)


def read_changes(places: Sequence[str]) -> Any:
    """All files of changes as one table with one row for each key; None if there are none."""
    pa, parquet = need("pyarrow"), need("pyarrow.parquet")
    tables = [parquet.ParquetFile(place).read() for place in places]
    return newest(pa.concat_tables(tables)) if tables else None


def _merge(table: DeltaLakeTable, changes: Any, before: Positions, after: Positions, note: Note) -> int:
    """One commit of the Delta log; CommitConflict if another one changed what was read."""
    if changes is None or not changes.num_rows:
        return table._commit([], before, after, note)
    deltalake = need("deltalake")
    read_version = table.version
    columns = [name for name in changes.column_names if name != DELETED]
    values = {f"t.`{name}`": f"s.`{name}`" for name in columns}
    inserted = {f"`{name}`": f"s.`{name}`" for name in columns}
    merger = table.delta.merge(
        changes,
        "t.topic = s.topic AND t.key = s.key",
        source_alias="s",
        target_alias="t",
        commit_properties=table.commit_properties(before, after, note),
    )
    try:
        (
            merger.when_matched_delete(f"s.{DELETED} AND {NEWER}")
            .when_matched_update(values, f"NOT s.{DELETED} AND {NEWER}")
            .when_not_matched_insert(inserted, f"NOT s.{DELETED}")
            .execute()
        )
    except deltalake.exceptions.CommitFailedError as error:
        raise CommitConflict(str(error)) from error
    table.note_commit(read_version, before, after)
    return table.version
