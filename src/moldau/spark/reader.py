"""Batch reads: the driver plans ranges of offsets, each task reads one straight from its partition's leader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from moldau.spark.batch_plan import plan_batch
from moldau.spark.options import ReadOptions
from moldau.spark.planning import OffsetRange
from moldau.spark.rows import read_range
from moldau.spark.schema import checked_schema
from moldau.spark.worker_process import AcknowledgesAtOnce, settle

if TYPE_CHECKING:
    from moldau.spark.decode import Decoder


class RangePartition(InputPartition):
    """One task's range, in the shape that Spark carries to executors."""

    def __init__(self, wanted: OffsetRange) -> None:
        super().__init__(wanted)


class ReadTask(AcknowledgesAtOnce):
    """What tasks do, of a batch read and of micro-batches alike. Plain data: pickled to executors."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._schema = checked_schema(options, schema)
        self._decoder = self._make_decoder()

    def _make_decoder(self) -> Decoder | None:
        if not self._options.value.format:
            return None  # and nothing is imported for it, as tasks of short micro-batches wait for imports
        from moldau.spark.decoders import make_decoder

        return make_decoder(self._options.value, self._schema.field("value").type)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        wanted = partition.value
        if not isinstance(wanted, OffsetRange):
            return  # Spark makes one task where there is nothing to read
        options = self._options
        batches = read_range(
            wanted,
            options.client_config,
            include_headers=options.include_headers,
            fail_on_data_loss=options.fail_on_data_loss,
            poll_timeout_ms=options.poll_timeout_ms,
            rows_per_batch=options.rows_per_batch,
        )
        if self._decoder is not None:
            from moldau.spark.value_reader import decode_values

            yield from decode_values(batches, self._decoder, options, self._schema)
        else:
            yield from self._as_spark_wants(batches)
        settle()

    def _as_spark_wants(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Spark compares schemas strictly, names inside of lists included; only those differ, no data is copied."""
        for first in batches:
            if first.schema.equals(self._schema):
                yield first
                yield from batches
            else:
                yield first.cast(self._schema)
                yield from (batch.cast(self._schema) for batch in batches)


class BatchReader(DataSourceReader):
    """Reads what lies between two offsets of each partition. Holds plain data only: it is pickled to executors."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._task = ReadTask(options, schema)

    def partitions(self) -> list[InputPartition]:
        return [RangePartition(item) for item in plan_batch(self._options)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.read(partition)
