"""Opens and makes tables: which format a folder has, and the class that reads and writes it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moldau.lake.errors import LakeError, NoTableError
from moldau.lake.table import FORMATS, LEFT_BY_KILLS, LakeTable, check_partition_columns, local_path


def detect_format(path: str) -> str | None:
    """The format of the table in a folder, None if there is none."""
    folder = Path(path)
    if (folder / "_delta_log").is_dir():
        return "delta"
    if (folder / "_moldau" / "catalog.db").is_file():
        return "iceberg"
    if (folder / "_moldau" / "commits").is_dir():
        return "parquet"
    return None


def open_table(path: str, format_name: str | None = None) -> LakeTable:
    """The table in a folder; LakeError if there is none, or one of another format."""
    folder = local_path(path)
    found = detect_format(folder)
    if found is None:
        raise NoTableError(f"There is no table in {folder}. `moldau load TOPIC --to {folder}` makes one.")
    if format_name is not None and format_name != found:
        raise LakeError(
            f"The table in {folder} is {found}, not {format_name}: leave --format out, or name another folder."
        )
    return _class_of(found).open(folder)


def open_or_create(path: str, format_name: str | None, schema: Any, partition_by: Sequence[str]) -> LakeTable:
    """The table in a folder, made if there is none; LakeError if it is divided in another way than asked for."""
    folder = local_path(path)
    try:
        table = open_table(folder, format_name)
    except NoTableError:
        return create_table(folder, format_name or detect_format(folder) or "delta", schema, partition_by)
    if partition_by and tuple(partition_by) != table.partitioning.columns:
        by = ", ".join(table.partitioning.columns) or "nothing"
        raise LakeError(f"{folder} is partitioned by {by}: leave partitions out, or write to another table.")
    return table


def create_table(path: str, format_name: str, schema: Any, partition_by: Sequence[str]) -> LakeTable:
    """Makes an empty table; if somebody else was faster, opens that one."""
    folder = local_path(path)
    if format_name not in FORMATS:
        raise LakeError(f"{format_name} is no format of tables: there are {', '.join(FORMATS)}.")
    check_partition_columns(schema, partition_by)
    if os.path.isdir(folder) and any(name not in LEFT_BY_KILLS for name in os.listdir(folder)):
        raise LakeError(f"{folder} is not empty and holds no table: name an empty folder.")
    return _class_of(format_name).create(folder, schema, partition_by)


def _class_of(format_name: str) -> Any:
    if format_name == "delta":
        from moldau.lake.delta_table import DeltaLakeTable

        return DeltaLakeTable
    if format_name == "iceberg":
        from moldau.lake.iceberg_table import IcebergLakeTable

        return IcebergLakeTable
    from moldau.lake.parquet_table import ParquetLakeTable

    return ParquetLakeTable
