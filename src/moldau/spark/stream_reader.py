"""Streaming reads: where a query stands, how far its next micro-batch goes, and which ranges its tasks read.

One instance lives on the driver as long as the query runs; copies of it travel to executors, where only `read` is
called. What it must remember across a restart lies in the offsets that Spark keeps in the checkpoint (offsets.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from moldau.spark.offsets import StreamOffsets
from moldau.spark.options import ReadOptions
from moldau.spark.reader import RangePartition, ReadTask
from moldau.spark.stream_position import StreamPosition

Offset = dict[str, dict[str, int]]


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Spark's side of a stream; the decisions are in stream_position.py, which needs no Spark."""

    def __init__(self, options: ReadOptions, schema: StructType) -> None:
        self._options = options
        self._task = ReadTask(options, schema)
        self._stream: StreamPosition | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_stream": None}

    @property
    def _position(self) -> StreamPosition:
        if self._stream is None:
            self._stream = StreamPosition(self._options)
        return self._stream

    def initialOffset(self) -> Offset:
        return self._position.initial().to_object()

    def getDefaultReadLimit(self) -> ReadLimit:
        # Spark knows one limit only. The least number of offsets is our own affair, in StreamPosition.next_end().
        most = self._options.max_offsets_per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        options = self._options
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        # Trigger.Once asks for everything, whatever the options say.
        asks_for_all = most is None and options.max_offsets_per_trigger is not None
        least = None if asks_for_all else options.min_offsets_per_trigger
        return self._position.next_end(StreamOffsets.from_object(start), most, least).to_object()

    def prepareForTriggerAvailableNow(self) -> None:
        self._position.freeze_end()

    def reportLatestOffset(self) -> Offset | None:
        latest = self._position.latest_seen
        return None if latest is None else latest.to_object()

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        ranges = self._position.plan(StreamOffsets.from_object(start), StreamOffsets.from_object(end))
        return [RangePartition(item) for item in ranges]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return self._task.read(partition)

    def commit(self, end: Offset) -> None:
        self._position.finished(StreamOffsets.from_object(end))

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
