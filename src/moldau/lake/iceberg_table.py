"""Iceberg tables through `pyiceberg`: offsets are properties, set in the transaction that adds the files.

The catalog is a SQLite file in the table's directory (`_moldau/catalog.db`). Its commit replaces the pointer to the
metadata if that is still the one that was read. pyiceberg tries a refused append again on top of the other writer's
snapshot, which would add rows twice when that writer loaded the same offsets: its retries are switched off on our
handle, and append() looks at the positions before it tries again.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

from moldau.client.results import TopicPartition
from moldau.lake.data_file import DataFile
from moldau.lake.errors import CommitConflict, NoTableError
from moldau.lake.extras import need
from moldau.lake.lock import DIRECTORY
from moldau.lake.positions import Positions
from moldau.lake.table import DATE, TIMESTAMP, LakeTable, Note, Partitioning

NAMESPACE = "lake"
NAME = "table"
POSITIONS = "moldau.offsets"
RETRIES = "commit.retry.num-retries"


def _is_not_about_statistics(record: logging.LogRecord) -> bool:
    """Bytes and nested columns have no statistics on purpose (file_writer.py), which is told for each file."""
    return not str(record.msg).startswith("PyArrow statistics missing")


logging.getLogger("pyiceberg.io.pyarrow").addFilter(_is_not_about_statistics)


class IcebergLakeTable(LakeTable):
    """A table of the Iceberg format in a directory, with its catalog beside it."""

    format = "iceberg"

    def __init__(self, path: str, table: Any) -> None:
        super().__init__(path)
        self._table = table

    @staticmethod
    def open(path: str) -> IcebergLakeTable:
        catalog = open_catalog(path)
        exceptions = need("pyiceberg.exceptions")
        try:
            return IcebergLakeTable(path, catalog.load_table((NAMESPACE, NAME)))
        except (exceptions.NoSuchTableError, exceptions.NoSuchNamespaceError):
            raise NoTableError(f"The catalog in {path}/{DIRECTORY} has no table.") from None

    @staticmethod
    def create(path: str, schema: Any, partition_by: Sequence[str]) -> IcebergLakeTable:
        os.makedirs(os.path.join(path, DIRECTORY), exist_ok=True)
        catalog = open_catalog(path)
        catalog.create_namespace_if_not_exists(NAMESPACE)
        exceptions = need("pyiceberg.exceptions")
        try:
            with (
                catalog.create_table_transaction((NAMESPACE, NAME), schema, location=url_of(path)) as transaction,
                transaction.update_spec() as spec,
            ):
                for column in partition_by:
                    _add_partition(spec, column, schema)
        except exceptions.TableAlreadyExistsError:
            pass
        return IcebergLakeTable(path, catalog.load_table((NAMESPACE, NAME)))

    def refresh(self) -> None:
        self._table = self._table.refresh()

    @property
    def iceberg(self) -> Any:
        """The table of the pyiceberg package, as of the last refresh()."""
        return self._table

    @property
    def version(self) -> int:
        return int(self._table.metadata.last_sequence_number)

    def schema(self) -> Any:
        pa = need("pyarrow")
        found = need("pyiceberg.io.pyarrow").schema_to_pyarrow(self._table.schema(), include_field_ids=False)
        return pa.schema([pa.field(field.name, plain_type(pa, field.type)) for field in found])

    @property
    def partitioning(self) -> Partitioning:
        names = []
        for field in self._table.spec().fields:
            source = self._table.schema().find_column_name(field.source_id)
            names.append(DATE if str(field.transform) == "day" and source == TIMESTAMP else str(source))
        return Partitioning(tuple(names), in_files=True)

    def positions(self, partitions: Iterable[TopicPartition]) -> Positions:
        known = self._known()
        wanted = list(partitions)
        topics = {item.topic for item in wanted}
        return Positions(
            {item: known.offsets[item] for item in wanted if item in known.offsets},
            {topic: topic_id for topic, topic_id in known.topic_ids.items() if topic in topics},
        )

    def _known(self) -> Positions:
        text = self._table.properties.get(POSITIONS)
        return Positions() if text is None else Positions.from_json(text)

    def known_positions(self) -> Positions:
        return self._known()

    def forget(self, topic: str) -> None:
        with self._table.transaction() as transaction:
            transaction.set_properties({POSITIONS: self._known().without(topic).to_json()})
        self.refresh()

    def history(self, count: int) -> list[dict[str, Any]]:
        found = []
        for snapshot in self._table.snapshots()[: -count - 1 : -1]:
            told = snapshot.summary.additional_properties
            operation = told.get("moldau.operation", snapshot.summary.operation.value)
            details = json.loads(told.get("moldau.details", "{}"))
            found.append(
                {
                    "version": snapshot.sequence_number,
                    "timestamp": snapshot.timestamp_ms,
                    "operation": operation,
                    "details": details,
                }
            )
        return found

    def files(self) -> list[DataFile]:
        prefix = url_of(self.path) + "/"
        return [
            DataFile(
                str(task.file.file_path).removeprefix(prefix),
                task.file.file_size_in_bytes,
                task.file.record_count,
                # Only told apart here, never written: files of equal values belong together.
                {str(place): str(value) for place, value in enumerate(task.file.partition)},
            )
            for task in self._table.scan().plan_files()
        ]

    def replace_files(self, old: Sequence[DataFile], new: Sequence[DataFile]) -> None:
        """New files in place of old ones, in one snapshot; CommitConflict if there is a newer one."""
        arrow = need("pyiceberg.io.pyarrow")
        prefix = url_of(self.path) + "/"
        gone = {prefix + file.path for file in old}
        self._table.metadata.properties[RETRIES] = "0"
        tasks = [task.file for task in self._table.scan().plan_files() if task.file.file_path in gone]
        try:
            with self._table.transaction() as transaction:
                update = transaction.update_snapshot(snapshot_properties={"moldau.operation": "optimize"}).overwrite()
                with update:
                    for file in tasks:
                        update.delete_data_file(file)
                    paths = [prefix + file.path for file in new]
                    for added in arrow.parquet_files_to_data_files(
                        self._table.io, transaction.table_metadata, iter(paths)
                    ):
                        update.append_data_file(added)
        except need("pyiceberg.exceptions").CommitFailedException as error:
            raise CommitConflict(str(error)) from error
        self.refresh()

    def delete_older(self, bound: datetime) -> int:
        """Deletes rows with older timestamps; returns how many."""
        before = sum(file.rows for file in self.files())
        self._table.delete(f"{TIMESTAMP} < '{bound:%Y-%m-%dT%H:%M:%S}+00:00'")
        self.refresh()
        return before - sum(file.rows for file in self.files())

    def referenced_files(self, without: Collection[int] = ()) -> set[str]:
        """The places of the data files of all snapshots but some."""
        found: set[str] = set()
        for snapshot in self._table.snapshots():
            if snapshot.snapshot_id in without:
                continue
            for manifest in snapshot.manifests(self._table.io):
                for entry in manifest.fetch_manifest_entry(self._table.io, discard_deleted=True):
                    found.add(str(entry.data_file.file_path).removeprefix("file://"))
        return found

    def add_columns(self, fields: Sequence[Any]) -> None:
        pa = need("pyarrow")
        try:
            with self._table.update_schema() as update:
                update.union_by_name(pa.schema([field.with_nullable(True) for field in fields]))
        except need("pyiceberg.exceptions").CommitFailedException as error:
            raise CommitConflict(str(error)) from error
        self.refresh()

    def _commit(self, files: Sequence[DataFile], before: Positions, after: Positions, note: Note) -> int:
        exceptions = need("pyiceberg.exceptions")
        known = self._known()
        merged = Positions({**known.offsets, **after.offsets}, {**known.topic_ids, **after.topic_ids})
        # On this handle only: properties of a commit go through updates, not through this dictionary.
        self._table.metadata.properties[RETRIES] = "0"
        summary = {
            POSITIONS: merged.to_json(),
            "moldau.operation": note.operation,
            "moldau.details": json.dumps(note.details),
        }
        try:
            with self._table.transaction() as transaction:
                if files:
                    paths = [f"{url_of(self.path)}/{file.path}" for file in files]
                    transaction.add_files(paths, snapshot_properties=summary, check_duplicate_files=False)
                else:
                    _require_snapshot(transaction, self._table)
                transaction.set_properties({POSITIONS: merged.to_json()})
        except exceptions.CommitFailedException as error:
            raise CommitConflict(str(error)) from error
        self.refresh()
        return self.version


def open_catalog(path: str) -> Any:
    """The catalog in the table's directory."""
    need("sqlalchemy")
    need("pyiceberg")
    sql = need("pyiceberg.catalog.sql")
    place = os.path.join(path, DIRECTORY, "catalog.db")
    return sql.SqlCatalog("moldau", uri=f"sqlite:///{place}", warehouse=url_of(path))


def url_of(path: str) -> str:
    return f"file://{path}"


def plain_type(pa: Any, kind: Any) -> Any:
    """Iceberg's large types of Arrow as those that tasks write."""
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(plain_type(pa, kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, plain_type(pa, field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(plain_type(pa, kind.key_type), plain_type(pa, kind.item_type))
    return kind


def _add_partition(spec: Any, column: str, schema: Any) -> None:
    transforms = need("pyiceberg.transforms")
    if column == DATE and DATE not in schema.names:
        spec.add_field(TIMESTAMP, transforms.DayTransform(), DATE)
    else:
        spec.add_field(column, transforms.IdentityTransform(), f"{column}_value" if column == DATE else None)


def _require_snapshot(transaction: Any, table: Any) -> None:
    """A commit without files has no condition by itself: the snapshot that was read must still be current."""
    update = need("pyiceberg.table.update")
    snapshot = table.current_snapshot()
    requirement = update.AssertRefSnapshotId(ref="main", snapshot_id=None if snapshot is None else snapshot.snapshot_id)
    transaction._apply((), (requirement,))
