"""The rows of Arrow batches handed to a producer: which column becomes what of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from moldau.spark.decisions import SinkError
from moldau.spark.sink_options import WriteOptions
from moldau.spark.sink_schema import HEADERS, KEY, PARTITION, TIMESTAMP, TOPIC, VALUE

# Keys and values as Arrow's offsets of 32 bits allow them: larger batches are cut in two.
BYTES_AT_ONCE = 1 << 30

Send = Callable[[str, Any], None]


class RowSender:
    """Hands the rows of Arrow batches to `send(topic, table)`, split where they go to several topics."""

    def __init__(self, options: WriteOptions, send: Send) -> None:
        self._topic = options.topic
        self._names = [KEY, VALUE, HEADERS] + ([TIMESTAMP] if options.with_timestamps else [])
        self._send = send
        self.rows = 0
        self.bytes = 0

    def send(self, batch: Any) -> None:
        """batch: a RecordBatch with at least one row."""
        for part in _cut(batch):
            for topic, rows in self._by_topic(part):
                self._send_rows(topic, rows)
        self.rows += batch.num_rows
        self.bytes += batch.nbytes

    def _by_topic(self, batch: Any) -> Iterator[tuple[str, Any]]:
        if self._topic:
            yield self._topic, batch
            return
        names = batch.column(TOPIC)
        if names.null_count:
            raise SinkError("A row has no topic: its column topic is null. Filter such rows, or set the option topic.")
        distinct = names.unique().to_pylist()
        if len(distinct) == 1:
            yield distinct[0], batch
            return
        for topic in distinct:
            yield topic, batch.filter(pc.equal(names, topic))

    def _send_rows(self, topic: str, batch: Any) -> None:
        columns = {name: batch.column(name) for name in self._names if name in batch.schema.names}
        if PARTITION not in batch.schema.names:
            self._send(topic, pa.record_batch(columns))
            return
        chosen = batch.column(PARTITION)
        rows = pa.record_batch({**columns, PARTITION: chosen})
        if chosen.null_count == 0:
            self._send(topic, rows)
            return
        # Rows that leave the partition open go where their key says, as in Spark's connector.
        free = pc.is_null(chosen)
        if chosen.null_count < batch.num_rows:
            self._send(topic, rows.filter(pc.invert(free)))
        self._send(topic, pa.record_batch(columns).filter(free))


def _cut(batch: Any) -> Iterator[Any]:
    if batch.nbytes <= BYTES_AT_ONCE or batch.num_rows <= 1:
        yield batch
        return
    half = batch.num_rows // 2
    yield from _cut(batch.slice(0, half))
    yield from _cut(batch.slice(half))
