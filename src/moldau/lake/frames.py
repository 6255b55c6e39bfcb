"""Lake tables as Spark's DataFrames: exactly the files of the table's newest commit, read by Spark itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from moldau.lake.extras import need
from moldau.lake.table import LakeTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def read_frame(session: SparkSession, table: LakeTable) -> DataFrame:
    """The table as of its last refresh(). What is committed later is not in it; vacuum with care while it is used."""
    types = need("pyspark.sql.pandas.types")
    schema = types.from_arrow_schema(table.schema())
    files = table.files()
    if not files:
        return session.createDataFrame([], schema)
    reader = session.read.schema(schema)
    if not table.partitioning.in_files:
        # Directories tell the values of partitions; Iceberg's files have them inside.
        reader = reader.option("basePath", table.path)
    return reader.parquet(*(os.path.join(table.path, _escaped(file.path)) for file in files))


def _escaped(path: str) -> str:
    """Spark takes names for patterns."""
    return "".join(f"\\{letter}" if letter in "*?[]{}\\" else letter for letter in path)
