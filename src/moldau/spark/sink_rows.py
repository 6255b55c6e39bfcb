"""Which columns of a query become what of a record, and the rows of Arrow batches handed to a producer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    IntegerType,
    LongType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from moldau.spark.decisions import SinkError
from moldau.spark.options import OptionError
from moldau.spark.sink_options import WriteOptions

KEY, VALUE, HEADERS, TOPIC, PARTITION, TIMESTAMP = "key", "value", "headers", "topic", "partition", "timestamp"
# Keys and values as Arrow's offsets of 32 bits allow them: larger batches are cut in two.
BYTES_AT_ONCE = 1 << 30

Send = Callable[[str, Any], None]


def check_schema(schema: StructType, options: WriteOptions) -> None:
    """Refuses columns that cannot become records; other columns are left alone, as Spark's connector does."""
    types = {field.name: field.dataType for field in schema.fields}
    if VALUE not in types:
        raise OptionError(
            f"A write needs the column value, text or binary; there are {', '.join(types) or 'none'}. Select one, such"
            " as to_json(struct(*)) AS value."
        )
    if not options.topic and TOPIC not in types:
        raise OptionError("Where do the records go? Set the option topic, or select a column topic.")
    text = (StringType, BinaryType)
    _check(types, KEY, text, "text or binary")
    _check(types, VALUE, text, "text or binary")
    if not options.topic:
        _check(types, TOPIC, (StringType,), "text")
    _check(types, PARTITION, (IntegerType,), "an integer: cast it to int")
    if options.with_timestamps:
        if TIMESTAMP not in types:
            raise OptionError("writeTimestamps=true needs the column timestamp.")
        _check(types, TIMESTAMP, (TimestampType, TimestampNTZType, LongType), "a timestamp, or milliseconds as long")
    if HEADERS in types and not _is_headers(types[HEADERS]):
        raise OptionError(
            f"The column headers is {types[HEADERS].simpleString()}: it must be array<struct<key:string,value:binary>>."
        )


def _check(types: dict[str, DataType], name: str, allowed: tuple[type[DataType], ...], words: str) -> None:
    found = types.get(name)
    if found is not None and not isinstance(found, allowed):
        raise OptionError(f"The column {name} is {found.simpleString()}: it must be {words}.")


def _is_headers(kind: DataType) -> bool:
    if not isinstance(kind, ArrayType) or not isinstance(kind.elementType, StructType):
        return False
    fields = kind.elementType.fields
    return (
        [field.name for field in fields] == ["key", "value"]
        and isinstance(fields[0].dataType, StringType)
        and isinstance(fields[1].dataType, (BinaryType, StringType))
    )


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
