"""Plain parquet tables: manifests decide, files follow.

Tasks write to `_moldau/staging`, which readers of directories skip. A commit is a manifest; after it, settle() moves
its files to their places, and files that it removed to `_moldau/removed`. settle() only does what a manifest says,
so that anybody may run it at any time, also after a kill in its midst.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import Any

from moldau.client.results import TopicPartition
from moldau.lake.data_file import DataFile
from moldau.lake.errors import CommitConflict
from moldau.lake.extras import need
from moldau.lake.lock import DIRECTORY
from moldau.lake.manifest import Manifest, TableState, read_state, write_commit
from moldau.lake.positions import Positions
from moldau.lake.table import DATE, LakeTable, Note, Partitioning

STAGING = f"{DIRECTORY}/staging"
REMOVED = f"{DIRECTORY}/removed"


class ParquetLakeTable(LakeTable):
    """A directory of parquet files with manifests."""

    format = "parquet"

    def __init__(self, path: str, state: TableState) -> None:
        super().__init__(path)
        self._state = state
        self.settle()

    @staticmethod
    def open(path: str) -> ParquetLakeTable:
        return ParquetLakeTable(path, read_state(path))

    @staticmethod
    def create(path: str, schema: Any, partition_by: Sequence[str]) -> ParquetLakeTable:
        pa = need("pyarrow")
        if DATE in partition_by and DATE not in schema.names:
            schema = schema.append(pa.field(DATE, pa.date32()))
        try:
            state = write_commit(path, TableState(), Manifest("create", Positions(), schema, tuple(partition_by)))
        except CommitConflict:
            state = read_state(path)
        return ParquetLakeTable(path, state)

    def refresh(self) -> None:
        self._state = read_state(self.path)

    @property
    def state(self) -> TableState:
        return self._state

    @property
    def version(self) -> int:
        return self._state.version

    def schema(self) -> Any:
        return self._state.schema

    @property
    def partitioning(self) -> Partitioning:
        return Partitioning(self._state.partition_by)

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        known = self._state.positions
        wanted = list(partitions)
        return Positions(
            {item: known.offsets[item] for item in wanted if item in known.offsets},
            {
                topic: topic_id
                for topic, topic_id in known.topic_ids.items()
                if topic in {item.topic for item in wanted}
            },
        )

    def known_positions(self) -> Positions:
        return self._state.positions

    def forget(self, topic: str) -> None:
        self.commit(
            Manifest("forget", self._state.positions.without(topic), self._state.schema, self._state.partition_by)
        )

    def history(self, count: int) -> list[dict[str, Any]]:
        return self._state.commits[: -count - 1 : -1]

    def files(self) -> list[DataFile]:
        return list(self._state.files.values())

    def add_columns(self, fields: Sequence[Any]) -> None:
        pa = need("pyarrow")
        schema = self._state.schema
        for field in fields:
            schema = schema.append(pa.field(field.name, field.type))
        self.commit(Manifest("add-columns", self._state.positions, schema, self._state.partition_by))

    @property
    def write_directory(self) -> str:
        return STAGING

    def _commit(self, files: Sequence[DataFile], before: Positions, after: Positions, note: Note) -> int:
        known = self._state.positions
        merged = Positions({**known.offsets, **after.offsets}, {**known.topic_ids, **after.topic_ids})
        manifest = Manifest(note.operation, merged, self._state.schema, self._state.partition_by, files)
        manifest.details = dict(note.details)
        return self.commit(manifest)

    def commit(self, manifest: Manifest) -> int:
        """Commits on top of the state of the last refresh(), then moves files; CommitConflict if it is old."""
        write_commit(self.path, self._state, manifest)
        self.settle()
        return self.version

    def settle(self) -> None:
        """Moves committed files to their places and removed ones away; idempotent."""
        staging = os.path.join(self.path, STAGING)
        waiting = set(os.listdir(staging)) if os.path.isdir(staging) else set()
        for path in self._state.files if waiting else ():
            if os.path.basename(path) in waiting:
                _move(os.path.join(staging, os.path.basename(path)), os.path.join(self.path, path))
        for path in self._state.removed:
            _move(os.path.join(self.path, path), os.path.join(self.path, REMOVED, os.path.basename(path)))

    def dataset(self) -> Any:
        """A pyarrow dataset of exactly the committed files."""
        dataset = need("pyarrow.dataset")
        columns = self._state.partition_by
        pa = need("pyarrow")
        scheme = dataset.partitioning(pa.schema([self._state.schema.field(name) for name in columns]), flavor="hive")
        return dataset.dataset(
            [os.path.join(self.path, path) for path in self._state.files],
            schema=self._state.schema,
            format="parquet",
            partitioning=scheme if columns else None,
            partition_base_dir=self.path,
        )


def _move(source: str, target: str) -> None:
    """Whoever comes second finds nothing to do."""
    if not os.path.exists(source):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.rename(source, target)
    except FileNotFoundError:
        pass
