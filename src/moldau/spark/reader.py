"""Batch reads: the driver plans ranges of offsets, each task reads one straight from its partition's leader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from moldau.spark.batch_plan import plan_batch
from moldau.spark.options import ReadOptions
from moldau.spark.planning import OffsetRange
from moldau.spark.rows import read_range
from moldau.spark.schema import check_schema


class RangePartition(InputPartition):
    """One task's range, in the shape that Spark carries to executors."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)
        self.wanted = wanted


def read_partition(options: ReadOptions, partition: InputPartition) -> Iterator[pa.RecordBatch]:
    """What a task does, of a batch read and of a micro-batch alike."""
    wanted: Any = partition.value
    if wanted is None:
        return  # Spark makes one task where there is nothing to read
    yield from read_range(
        wanted,
        options.client_config,
        include_headers=options.include_headers,
        fail_on_data_loss=options.fail_on_data_loss,
        poll_timeout_ms=options.poll_timeout_ms,
        rows_per_batch=options.rows_per_batch,
    )


class BatchReader(DataSourceReader):
    """Reads what lies between two offsets of each partition. Holds plain data only: it is pickled to executors."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        check_schema(options, schema)
        self._options = options

    def partitions(self) -> list[InputPartition]:
        return [RangePartition(item) for item in plan_batch(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_partition(self._options, partition)
