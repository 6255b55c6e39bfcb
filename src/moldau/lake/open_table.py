"""Opens and makes tables: which format a directory has, and the class that reads and writes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moldau.lake.errors import LakeError, NoTableError
from moldau.lake.table import FORMATS, LEFT_BY_KILLS, LakeTable, check_partition_columns, local_path


def detect_format(path: str) -> str | None:
    """The format of the table in a directory, None if there is none."""
    directory = Path(path)
    if (directory / "_delta_log").is_dir():
        return "delta"
    if (directory / "_moldau" / "catalog.db").is_file():
        return "iceberg"
    if (directory / "_moldau" / "commits").is_dir():
        return "parquet"
    return None


def open_table(path: str, format_name: str | None = None) -> LakeTable:
    """The table in a directory; LakeError if there is none, or one of another format."""
    directory = local_path(path)
    found = detect_format(directory)
    if found is None:
        raise NoTableError(f"There is no table in {directory}. `moldau load TOPIC --to {directory}` makes one.")
    if format_name is not None and format_name != found:
        raise LakeError(
            f"The table in {directory} is {found}, not {format_name}: leave --format out, or name another directory."
        )
    return _class_of(found).open(directory)


def open_or_create(path: str, format_name: str | None, schema: Any, partition_by: Sequence[str]) -> LakeTable:
    """The table in a directory, made if there is none; LakeError if it is divided in another way than asked for."""
    directory = local_path(path)
    try:
        table = open_table(directory, format_name)
    except NoTableError:
        return create_table(directory, format_name or detect_format(directory) or "delta", schema, partition_by)
    if partition_by and tuple(partition_by) != table.partitioning.columns:
        by = ", ".join(table.partitioning.columns) or "nothing"
        raise LakeError(f"{directory} is partitioned by {by}: leave partitions out, or write to another table.")
    return table


def create_table(path: str, format_name: str, schema: Any, partition_by: Sequence[str]) -> LakeTable:
    """Makes an empty table; if somebody else was faster, opens that one."""
    directory = local_path(path)
    if format_name not in FORMATS:
        raise LakeError(f"{format_name} is no format of tables: there are {', '.join(FORMATS)}.")
    check_partition_columns(schema, partition_by)
    if os.path.isdir(directory) and any(name not in LEFT_BY_KILLS for name in os.listdir(directory)):
        raise LakeError(f"{directory} is not empty and holds no table: name an empty directory.")
    return _class_of(format_name).create(directory, schema, partition_by)


def _class_of(format_name: str) -> Any:
    if format_name == "delta":
        from moldau.lake.delta_table import DeltaLakeTable

        return DeltaLakeTable
    if format_name == "iceberg":
        from moldau.lake.iceberg_table import IcebergLakeTable

        return IcebergLakeTable
    from moldau.lake.parquet_table import ParquetLakeTable

    return ParquetLakeTable
