"""Joins small files of plain parquet and Iceberg tables; Delta tables are joined by `deltalake` itself."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from moldau.lake.data_file import DataFile
from moldau.lake.extras import need
from moldau.lake.file_writer import FileWriter, WriteSettings
from moldau.lake.table import LakeTable, Partitioning

# Files from this share of the target on are left as they are: joining them again and again would not pay.
LARGE_ENOUGH = 0.75


@dataclass(frozen=True)
class Bin:
    """Files of one partition that become one."""

    files: tuple[DataFile, ...]


def plan_bins(files: Sequence[DataFile], target_bytes: int) -> list[Bin]:
    """Which files to join: neighbours by offset, so that rows stay roughly in order; none alone."""
    partitions: dict[tuple[tuple[str, str | None], ...], list[DataFile]] = {}
    for file in files:
        if file.size < target_bytes * LARGE_ENOUGH:
            partitions.setdefault(tuple(sorted(file.partition.items())), []).append(file)
    bins: list[Bin] = []
    for _, members in sorted(partitions.items(), key=lambda item: str(item[0])):
        bins += _fill(sorted(members, key=_order), target_bytes)
    return bins


def _fill(members: Sequence[DataFile], target_bytes: int) -> Iterator[Bin]:
    current: list[DataFile] = []
    size = 0
    for file in members:
        if current and size + file.size > target_bytes:
            if len(current) > 1:
                yield Bin(tuple(current))
            current, size = [], 0
        current.append(file)
        size += file.size
    if len(current) > 1:
        yield Bin(tuple(current))


def _order(file: DataFile) -> tuple[tuple[int, int], tuple[int, int], str]:
    return (file.ranges.get("partition", (0, 0)), file.ranges.get("offset", (0, 0)), file.path)


def write_bin(table: LakeTable, group: Bin) -> list[DataFile]:
    """Writes the rows of a bin into one new file that no commit names yet."""
    # All of a bin's rows belong to one partition, so they are written as if there were none.
    settings = WriteSettings(table.path, table.write_directory, os.path.dirname(group.files[0].path), Partitioning())
    writer = FileWriter(settings)
    schema = file_schema(table)
    try:
        for file in group.files:
            for batch in read_batches(os.path.join(table.path, file.path)):
                writer.write(fit(batch, schema))
        done = writer.finish()
    except BaseException:
        writer.abandon()
        raise
    partition = group.files[0].partition
    return [DataFile(new.path, new.size, new.rows, partition, new.ranges, new.nulls) for new in done]


def read_batches(place: str, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """A parquet file batch by batch, without taking directories for partitions."""
    file = need("pyarrow.parquet").ParquetFile(place)
    try:
        yield from file.iter_batches(columns=None if columns is None else list(columns))
    finally:
        file.close()


def file_schema(table: LakeTable) -> Any:
    """The columns that files of the table have."""
    partitioning = table.partitioning
    left_out = set() if partitioning.in_files else set(partitioning.columns)
    return need("pyarrow").schema([item for item in table.schema() if item.name not in left_out])


def fit(batch: Any, schema: Any) -> Any:
    """The batch with exactly these columns; those that it lacks are null."""
    pa = need("pyarrow")
    arrays = [
        batch.column(item.name).cast(item.type)
        if item.name in batch.schema.names
        else pa.nulls(batch.num_rows, item.type)
        for item in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
