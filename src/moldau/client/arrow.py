"""Arrow tables into batches of records, and fetched batches into Arrow: columns at a time, no object for a row.

pyarrow is imported when it is first needed; `pip install moldau[arrow]` brings it.
"""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.client.arguments import seconds_of
from moldau.client.errors import ClientError, ConfigError, RequestTimeoutError, error_for
from moldau.client.produce.delivery import DeliveryFuture, Fate
from moldau.protocol.errors import MESSAGE_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION
from moldau.records.arrow_decoder import ArrowColumns, ViewColumn, repeated_text
from moldau.records.arrow_encoder import (
    BinaryColumn,
    FramedRows,
    HeaderColumn,
    frame_rows,
    group_rows,
    partitions_by_key,
)

if TYPE_CHECKING:
    from moldau.client.encoded import EncodedBatches
    from moldau.client.fetch.fetcher import ArrowPart

# Rows are framed in stretches of this many and at most this many bytes, which bounds the memory beside the table.
ROWS_AT_ONCE = 65_536
BYTES_AT_ONCE = 1024 * 1024


class DeliveredBatch(NamedTuple):
    """Rows that were delivered together; the offset is -1 when the broker did not say (acks=0)."""

    topic: str
    partition: int
    base_offset: int
    rows: int


class ArrowDelivery:
    """The future of all rows of a table."""

    def __init__(self) -> None:
        self._futures: list[tuple[DeliveryFuture, int]] = []

    def _add(self, future: DeliveryFuture, count: int) -> None:
        self._futures.append((future, count))

    @property
    def rows(self) -> int:
        """How many rows were queued."""
        return sum(count for _, count in self._futures)

    def done(self) -> bool:
        """Whether each row is delivered or has failed."""
        return all(fate.done for future, count in self._futures for fate, _ in _leaves(future.fate, count))

    def result(self, timeout_ms: int | None = None) -> list[DeliveredBatch]:
        """Waits until all rows are delivered, and tells where they went, batch by batch.

        Raises the first error, or RequestTimeoutError after timeout_ms; None waits as long as delivery.timeout.ms
        allows.
        """
        timeout_s = seconds_of(timeout_ms)
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        delivered: list[DeliveredBatch] = []
        for future, count in self._futures:
            # A batch that the broker found too large was split, so its last row may be elsewhere.
            for fate, rows in _wait_leaves(future.fate, count, deadline):
                if fate.error is not None:
                    raise fate.error
                delivered.append(DeliveredBatch(fate.topic, fate.partition, int(fate.base_offset), rows))
        return delivered

    def exception(self, timeout_ms: int | None = None) -> ClientError | None:
        """Waits as result() does: the first error, None when all rows were delivered."""
        try:
            self.result(timeout_ms)
        except ClientError as error:
            return error
        return None


def _leaves(fate: Fate, count: int) -> Iterator[tuple[Fate, int]]:
    """The fates that a batch of so many records has by now, after all splits."""
    if not fate.parts:
        yield fate, count
        return
    for place, (first, part) in enumerate(fate.parts):
        behind = fate.parts[place + 1][0] if place + 1 < len(fate.parts) else count
        yield from _leaves(part, behind - first)


def _wait_leaves(fate: Fate, count: int, deadline: float | None) -> Iterator[tuple[Fate, int]]:
    if not fate.wait(None if deadline is None else max(0.0, deadline - time.monotonic())):
        raise RequestTimeoutError("Not all rows were delivered within the timeout.")
    for leaf, rows in list(_leaves(fate, count)):
        if leaf.done:
            yield leaf, rows
        else:
            yield from _wait_leaves(leaf, rows, deadline)


def pyarrow() -> Any:
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ConfigError("Arrow needs the pyarrow package: pip install 'moldau[arrow]'.") from None


def send_table(
    producer: EncodedBatches,
    topic: str,
    table: object,
    *,
    value: object,
    key: object,
    headers: object,
    timestamp: object,
    partition: object,
) -> ArrowDelivery:
    """Queues each row of the table; back-pressure comes from the producer's buffer, batch by batch."""
    pa = pyarrow()
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if not isinstance(table, pa.Table):
        raise TypeError(f"The table is a {type(table).__name__}: give a pyarrow Table or RecordBatch.")
    rows: Any = table
    if value not in rows.column_names:
        raise ConfigError(f"The table has no column {value}: its columns are {', '.join(rows.column_names)}.")
    columns: dict[str, Any] = {"value": _binary(pa, value, rows.column(value))}
    if key in rows.column_names:
        columns["key"] = _binary(pa, key, rows.column(key))
    if headers in rows.column_names:
        columns["headers"] = rows.column(headers)
    if timestamp in rows.column_names:
        columns["timestamp"] = _milliseconds(pa, timestamp, rows.column(timestamp))
    if partition in rows.column_names:
        columns["partition"] = _partitions(pa, partition, rows.column(partition))
    delivery = ArrowDelivery()
    stretches = _Stretches(pa.table(columns))
    while (stretch := stretches.next()) is not None:
        stretches.done(_send_stretch(pa, producer, topic, stretch, stretches.more_follows, delivery))
    return delivery


def _binary(pa: Any, name: object, column: Any) -> Any:
    if pa.types.is_binary(column.type):
        return column
    return _cast(pa, name, column, pa.binary(), "bytes or text; cast it, or make JSON of it")


def _milliseconds(pa: Any, name: object, column: Any) -> Any:
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("ms", column.type.tz), safe=False)
    return _cast(pa, name, column, pa.int64(), "timestamps, or milliseconds as whole numbers")


def _partitions(pa: Any, name: object, column: Any) -> Any:
    return _cast(pa, name, column, pa.int32(), "the numbers of partitions")


def _cast(pa: Any, name: object, column: Any, wanted: Any, what: str) -> Any:
    try:
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise ConfigError(f"The column {name} is of the type {column.type}: it has to have {what}.") from None


class _Stretches:
    """The table in record batches that are small enough to be framed at once."""

    def __init__(self, table: Any) -> None:
        self._table = table
        per_row = max(1, table.nbytes // max(1, table.num_rows))
        self._rows = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE // per_row))
        self._start = 0
        batches = table.to_batches()
        # A table in one piece is cut without making tables of its parts.
        self._whole = batches[0] if len(batches) == 1 else None

    def next(self) -> Any:
        """The next one, None after the last."""
        if self._start >= self._table.num_rows:
            return None
        if self._whole is not None:
            return self._whole.slice(self._start, self._rows)
        return self._table.slice(self._start, self._rows).combine_chunks().to_batches()[0]

    @property
    def more_follows(self) -> bool:
        return bool(self._start + self._rows < self._table.num_rows)

    def done(self, rows: int) -> None:
        """So many rows of the last one are dealt with; the others come again."""
        self._start += rows


def _send_stretch(
    pa: Any, producer: EncodedBatches, topic: str, batch: Any, more_follows: bool, delivery: ArrowDelivery
) -> int:
    """Queues the batch, and returns how many rows of it: if more follow, the last may be left to come with those."""
    partitions = len(producer.partitions_for(topic))
    names = batch.schema.names
    if "partition" in names:
        numbers = _numbers(batch.column("partition"), 4)
        if batch.column("partition").null_count:
            raise ConfigError("The partition column has nulls: leave it out, or fill it.")
        groups = partitions
    elif "key" in names and batch.column("key").null_count < batch.num_rows:
        numbers = partitions_by_key(_column(batch.column("key")), batch.num_rows, partitions, partitions)
        groups = partitions + 1  # the last one for rows without a key
    else:
        return _send_rows(pa, producer, topic, None, batch, more_follows, delivery)
    try:
        order, counts = group_rows(numbers, batch.num_rows, groups)
    except IndexError:
        sentence = f"Topic {topic} has {partitions} partitions, the partition column names another one."
        raise error_for(UNKNOWN_TOPIC_OR_PARTITION, sentence) from None
    indices = pa.Array.from_buffers(pa.int64(), batch.num_rows, [None, pa.py_buffer(order)])
    start = 0
    for partition, count in enumerate(counts):
        if count:
            chosen = None if partition == partitions else partition
            _send_rows(pa, producer, topic, chosen, batch.take(indices.slice(start, count)), False, delivery)
        start += count
    return start


def _send_rows(
    pa: Any,
    producer: EncodedBatches,
    topic: str,
    partition: int | None,
    batch: Any,
    more_follows: bool,
    delivery: ArrowDelivery,
) -> int:
    names = batch.schema.names
    keys = batch.column("key") if "key" in names else None
    values = batch.column("value")
    # Without the data of keys and values first: only that of very short ones is read here.
    framed = _frame(pa, producer, batch, keys, values, False, more_follows)
    if framed.lacks_data:
        framed = _frame(pa, producer, batch, keys, values, True, more_follows)
    if framed.too_large >= 0:
        sentence = (
            f"Row {framed.too_large} takes {framed.too_large_size} bytes, more than max.request.size"
            f" ({producer.request_bytes_max})."
        )
        raise error_for(MESSAGE_TOO_LARGE, sentence)
    data = memoryview(_join(pa, framed, keys, values))
    start = 0
    for item in framed.batches:
        body = data[start : start + item.size]
        start += item.size
        future = producer.send(topic, partition, body, item.rows, item.base_timestamp, item.max_timestamp)
        delivery._add(future, item.rows)
    return framed.rows


def _frame(
    pa: Any, producer: EncodedBatches, batch: Any, keys: Any, values: Any, with_data: bool, more_follows: bool
) -> FramedRows:
    names = batch.schema.names
    times = batch.column("timestamp") if "timestamp" in names else None
    return frame_rows(
        None if keys is None else _column(keys, with_data),
        _column(values, with_data),
        _headers(pa, batch.column("headers")) if "headers" in names else None,
        timestamps=None if times is None else _numbers(times.fill_null(-1), 8),
        now_ms=time.time_ns() // 1_000_000,
        rows=batch.num_rows,
        batch_bytes=producer.encoded_bytes_max,
        request_bytes=producer.request_bytes_max,
        more_follows=more_follows,
    )


def _join(pa: Any, framed: FramedRows, keys: Any, values: Any) -> Any:
    """All records one behind the other: Arrow copies the pieces that the views name."""
    buffers = [None, pa.py_buffer(framed.views.getvalue()), pa.py_buffer(framed.framing.getvalue())]
    buffers.append(values.buffers()[2] or pa.py_buffer(b""))
    if keys is not None:
        buffers.append(keys.buffers()[2] or pa.py_buffer(b""))
    return pa.Array.from_buffers(pa.binary_view(), int(framed.pieces), buffers).cast(pa.binary()).buffers()[2]


def _column(array: Any, with_data: bool = True) -> BinaryColumn:
    """The array's part of its buffers, which may be those of a far larger one."""
    if len(array) == 0:
        return BinaryColumn(None, 0, bytes(4), b"", 0)
    validity, offsets, data = array.buffers()
    places = offsets.slice(4 * array.offset, 4 * len(array) + 4).to_pybytes()
    start, end = (int.from_bytes(places[at : at + 4], "little") for at in (0, 4 * len(array)))
    return BinaryColumn(
        _validity(array, validity),
        array.offset & 7,
        places,
        data.slice(start, end - start).to_pybytes() if data is not None and with_data else b"",
        start,
    )


def _validity(array: Any, bits: Any) -> bytes | None:
    if bits is None or array.null_count == 0:
        return None
    first = array.offset >> 3
    data: bytes = bits.slice(first, ((array.offset + len(array) + 7) >> 3) - first).to_pybytes()
    return data


def _numbers(array: Any, width: int) -> bytes:
    start = array.offset * width
    data: bytes = array.buffers()[1].slice(start, len(array) * width).to_pybytes()
    return data


def _headers(pa: Any, array: Any) -> HeaderColumn:
    """A list of structs whose first field is the name and whose second is the value; null is no header."""
    wanted = pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))
    plain = _cast(pa, "of headers", array, wanted, "lists of structs of a key and a value")
    validity, offsets = plain.buffers()[:2]
    places = offsets.slice(4 * plain.offset, 4 * len(plain) + 4).to_pybytes()
    first, behind = (int.from_bytes(places[at : at + 4], "little") for at in (0, 4 * len(plain)))
    return HeaderColumn(
        _validity(plain, validity),
        plain.offset & 7,
        places,
        _column(plain.values.field(0).slice(first, behind - first)),
        _column(plain.values.field(1).slice(first, behind - first)),
    )


def to_record_batch(parts: list[ArrowPart], columns: ArrowColumns, buffers: list[bytes], views: bool = False) -> Any:
    """The decoded columns as a RecordBatch. Keys and values are views into the fetched bytes, which stay in memory with
    them, or are copied out by Arrow."""
    schema = fetched_schema(columns.with_headers, views)
    return pyarrow().RecordBatch.from_arrays(to_arrays(parts, columns, buffers, views), schema=schema)


def to_arrays(parts: list[ArrowPart], columns: ArrowColumns, buffers: list[bytes], views: bool = False) -> list[Any]:
    """Like to_record_batch(), each column by itself, in the order of fetched_schema()."""
    pa = pyarrow()
    rows = int(columns.rows)
    types = _fetched_types(columns.with_headers, views)
    ends, names = repeated_text([(part.partition.topic.encode(), part.rows) for part in parts])
    partitions = b"".join([part.partition.partition.to_bytes(4, "little") * part.rows for part in parts])
    kinds = b"".join([part.timestamp_type.to_bytes(4, "little") * part.rows for part in parts])
    data = [pa.py_buffer(item) for item in buffers]
    arrays = [
        pa.StringArray.from_buffers(rows, pa.py_buffer(ends), pa.py_buffer(names)),
        _fixed(pa, types[1], rows, partitions),
        _fixed(pa, types[2], rows, columns.offsets.getvalue()),
        _fixed(pa, types[3], rows, columns.timestamps.getvalue()),
        _fixed(pa, types[4], rows, kinds),
        _views(pa, columns.keys, data, views),
        _views(pa, columns.values, data, views),
    ]
    if columns.with_headers:
        header_names = _views(pa, columns.header_names, data, False)
        header_values = _views(pa, columns.header_values, data, False)
        pairs = pa.StructArray.from_arrays([header_names, header_values], ["key", "value"])
        offsets = _fixed(pa, pa.int32(), rows + 1, columns.header_offsets.getvalue())
        arrays.append(pa.ListArray.from_arrays(offsets, pairs))
    return arrays


@functools.cache
def fetched_schema(with_headers: bool, views: bool) -> Any:
    pa = pyarrow()
    binary = pa.binary_view() if views else pa.binary()
    fields = [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("ms", "UTC")),
        ("timestamp_type", pa.int32()),
        ("key", binary),
        ("value", binary),
    ]
    if with_headers:
        fields.append(("headers", pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())]))))
    return pa.schema(fields)


@functools.cache
def _fetched_types(with_headers: bool, views: bool) -> list[Any]:
    return list(fetched_schema(with_headers, views).types)


def _fixed(pa: Any, kind: Any, rows: int, data: bytes) -> Any:
    return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(data)])


def _views(pa: Any, column: ViewColumn, data: list[Any], as_views: bool) -> Any:
    rows = int(column.rows)
    if column.nulls == rows:
        return pa.nulls(rows, pa.binary_view() if as_views else pa.binary())
    validity = column.validity()
    buffers = [None if validity is None else pa.py_buffer(validity), pa.py_buffer(column.views.getvalue()), *data]
    array = pa.Array.from_buffers(pa.binary_view(), rows, buffers, int(column.nulls))
    return array if as_views else array.cast(pa.binary())
