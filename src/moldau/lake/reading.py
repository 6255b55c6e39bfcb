"""Reads lake tables with Arrow: the committed rows and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from moldau.lake.extras import need
from moldau.lake.table import LakeTable


def read_table(table: LakeTable, columns: Sequence[str] | None = None) -> Any:
    """All rows as a pyarrow table; for tables that fit into memory."""
    from moldau.lake.delta_table import DeltaLakeTable
    from moldau.lake.iceberg_table import IcebergLakeTable
    from moldau.lake.parquet_table import ParquetLakeTable

    wanted = None if columns is None else list(columns)
    if isinstance(table, DeltaLakeTable):
        return table.delta.to_pyarrow_table(columns=wanted)
    if isinstance(table, IcebergLakeTable):
        scan = table.iceberg.scan() if wanted is None else table.iceberg.scan(selected_fields=tuple(wanted))
        return scan.to_arrow()
    assert isinstance(table, ParquetLakeTable)
    if not table.files():
        empty = need("pyarrow").schema([table.schema().field(name) for name in wanted or table.schema().names])
        return empty.empty_table()
    return table.dataset().to_table(columns=wanted)
