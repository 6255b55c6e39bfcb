"""Writes Arrow batches as Parquet files below a table's directory, one file for each value of the partition columns.

Runs in Spark's tasks. Names are made of random numbers, so that a second attempt of a task, or a task whose driver
is gone, never touches a file of another one. Nothing here makes a file part of the table.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moldau.lake.data_file import DataFile, partition_directory
from moldau.lake.errors import LakeError
from moldau.lake.extras import need
from moldau.lake.table import DATE, TIMESTAMP, Partitioning

# Each open file has buffers of its own; the one that was not written to for longest is closed first.
OPEN_FILES_MAX = 50
# Rows of a file wait until they make a row group of this size: what readers take into memory at once.
GROUP_BYTES = 64 * 1024 * 1024
# All that waits in one task; then the file with most of it gets a smaller group.
WAITING_BYTES_MAX = 192 * 1024 * 1024
# Columns whose lowest and highest values a commit keeps, so that readers can skip files.
MEASURED = ("partition", "offset", "timestamp")
# Few different values: the only columns where a dictionary pays for itself without looking at the data.
REPETITIVE = ("topic", "partition", "timestamp_type")


@dataclass(frozen=True)
class WriteSettings:
    """How and where files are written; plain data that travels to executors."""

    directory: str
    # Below the directory: where files wait for their commit, if not at their own place.
    staging: str = ""
    # Below the directory: in front of the partitions' directories.
    prefix: str = ""
    partitioning: Partitioning = field(default_factory=Partitioning)
    compression: str = "zstd"
    file_bytes_max: int = 512 * 1024 * 1024
    fsync: bool = False


class FileWriter:
    """Takes batches of one schema; finish() returns the files."""

    def __init__(self, settings: WriteSettings) -> None:
        self._settings = settings
        self._open: dict[tuple[str | None, ...], _OpenFile] = {}
        self._done: list[DataFile] = []

    def write(self, batch: Any) -> None:
        """Adds the rows of a RecordBatch."""
        if batch.num_rows == 0:
            return
        if not self._settings.partitioning.columns:
            self._write_part((), batch)
            return
        for values, part in split_by_partition(batch, self._settings.partitioning):
            self._write_part(values, part)

    def finish(self) -> list[DataFile]:
        """Closes all files; what it returns is complete on disk as far as this machine stays up."""
        for values in list(self._open):
            self._close(values)
        return self._done

    def abandon(self) -> None:
        """Removes what was written, after an error; what cannot be removed is left to vacuum."""
        for file in self._open.values():
            file.abandon()
        for done in self._done:
            place = self._place(done.path)
            if os.path.exists(place):
                os.unlink(place)
        self._open.clear()
        self._done.clear()

    def _write_part(self, values: tuple[str | None, ...], part: Any) -> None:
        file = self._open.pop(values, None)
        if file is None:
            if len(self._open) >= OPEN_FILES_MAX:
                self._close(next(iter(self._open)))
            file = self._start(values, part.schema)
        # Put behind the others: the first one is the one to close next.
        self._open[values] = file
        file.write(part)
        if sum(item.bytes_waiting for item in self._open.values()) > WAITING_BYTES_MAX:
            max(self._open.values(), key=lambda item: item.bytes_waiting).write_group()
        if file.bytes_written >= self._settings.file_bytes_max:
            self._close(values)

    def _start(self, values: tuple[str | None, ...], schema: Any) -> _OpenFile:
        partition = dict(zip(self._settings.partitioning.columns, values, strict=True))
        name = f"part-{uuid.uuid4().hex}.parquet"
        path = "/".join(filter(None, (self._settings.prefix, partition_directory(partition), name)))
        place = self._place(path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        return _OpenFile(path, place, partition, schema, self._settings)

    def _place(self, path: str) -> str:
        if self._settings.staging:
            return os.path.join(self._settings.directory, self._settings.staging, os.path.basename(path))
        return os.path.join(self._settings.directory, path)

    def _close(self, values: tuple[str | None, ...]) -> None:
        self._done.append(self._open.pop(values).close())


class _OpenFile:
    """One Parquet file on its way."""

    def __init__(
        self, path: str, place: str, partition: Mapping[str, str | None], schema: Any, settings: WriteSettings
    ) -> None:
        pa, parquet = need("pyarrow"), need("pyarrow.parquet")
        self._path = path
        self._place = place
        self._partition = partition
        self._fsync = settings.fsync
        self._rows = 0
        self._waiting: list[Any] = []
        self.bytes_waiting = 0
        self._ranges: dict[str, tuple[int, int]] = {}
        self._nulls: dict[str, int] = {}
        self._sink = pa.OSFile(place, "wb")
        self._writer = parquet.ParquetWriter(
            self._sink,
            schema,
            compression=settings.compression,
            use_dictionary=_dictionary_columns(pa, schema),
            # Iceberg reads its bounds from here; the engines skip row groups by them.
            write_statistics=_statistics_columns(pa, schema),
            store_schema=False,
        )

    @property
    def bytes_written(self) -> int:
        return int(self._sink.tell())

    def write(self, batch: Any) -> None:
        self._waiting.append(batch)
        self.bytes_waiting += batch.nbytes
        if self.bytes_waiting >= GROUP_BYTES:
            self.write_group()
        self._rows += batch.num_rows
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            self._nulls[name] = self._nulls.get(name, 0) + column.null_count
            if name in MEASURED and column.null_count < len(column):
                self._widen(name, *bounds(column))

    def write_group(self) -> None:
        """Writes what waits as one row group."""
        if self._waiting:
            rows = need("pyarrow").Table.from_batches(self._waiting)
            self._waiting = []
            self.bytes_waiting = 0
            self._writer.write_table(rows, row_group_size=rows.num_rows)

    def close(self) -> DataFile:
        self.write_group()
        self._writer.close()
        self._sink.close()
        if self._fsync:
            _flush(self._place)
        return DataFile(
            self._path, os.path.getsize(self._place), self._rows, dict(self._partition), self._ranges, self._nulls
        )

    def abandon(self) -> None:
        # Its footer is not wanted any more, and may not even find room on the disk.
        self._writer.is_open = False
        self._sink.close()
        if os.path.exists(self._place):
            os.unlink(self._place)

    def _widen(self, name: str, low: int, high: int) -> None:
        known = self._ranges.get(name)
        self._ranges[name] = (low, high) if known is None else (min(low, known[0]), max(high, known[1]))


def split_by_partition(batch: Any, partitioning: Partitioning) -> Iterator[tuple[tuple[str | None, ...], Any]]:
    """The rows of each combination of partition values, without the columns that files do not keep."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    columns = [_partition_column(batch, name) for name in partitioning.columns]
    kept = [name for name in batch.schema.names if partitioning.in_files or name not in partitioning.columns]
    rows = batch.select(kept)
    singles = [_only_value(compute, column) for column in columns]
    if all(found for found, _ in singles):
        yield tuple(value_text(value) for _, value in singles), rows
        return
    keys = pa.table({str(place): column for place, column in enumerate(columns)})
    combinations = keys.group_by([str(place) for place in range(len(columns))]).aggregate([]).to_pylist()
    for combination in combinations:
        values = [combination[str(place)] for place in range(len(columns))]
        mask = None
        for column, value in zip(columns, values, strict=True):
            same = column.is_null() if value is None else compute.fill_null(compute.equal(column, value), False)
            mask = same if mask is None else compute.and_(mask, same)
        yield tuple(value_text(value) for value in values), rows.filter(mask)


def _partition_column(batch: Any, name: str) -> Any:
    pa = need("pyarrow")
    if name in batch.schema.names:
        return batch.column(name)
    if name != DATE:
        raise LakeError(f"The rows have no column {name}, which the table is partitioned by.")
    # Timestamps may lie before 1970 or be missing in very old records: casting rounds down, and null stays null.
    return batch.column(TIMESTAMP).cast(pa.timestamp("us")).cast(pa.date32(), safe=False)


def _only_value(compute: Any, column: Any) -> tuple[bool, Any]:
    """(whether there is only one, that one)"""
    if column.null_count == len(column):
        return True, None
    if column.null_count:
        return False, None
    first = column[0]
    return bool(compute.all(compute.equal(column, first)).as_py()), first.as_py()


def value_text(value: object) -> str | None:
    """A partition's value as directories and logs have it."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    # Delta takes an empty text for null, and a directory cannot have one.
    return str(value) or None


def bounds(column: Any) -> tuple[int, int]:
    """Lowest and highest of a column of numbers or of timestamps, which count as microseconds."""
    pa, compute = need("pyarrow"), need("pyarrow.compute")
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())
    found = compute.min_max(column).as_py()
    return int(found["min"]), int(found["max"])


def _dictionary_columns(pa: Any, schema: Any) -> list[str]:
    short = {field.name for field in schema if pa.types.is_string(field.type) or pa.types.is_boolean(field.type)}
    return [field.name for field in schema if field.name in REPETITIVE or field.name in short]


def _statistics_columns(pa: Any, schema: Any) -> list[str]:
    """All but bytes and nested columns, whose bounds are long and of no use."""
    return [field.name for field in schema if not pa.types.is_binary(field.type) and not pa.types.is_nested(field.type)]


def _flush(place: str) -> None:
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
