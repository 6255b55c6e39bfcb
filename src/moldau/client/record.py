"""One record as a consumer sees it, and the loop that makes them of a fetched batch."""

from __future__ import annotations

from typing import Any, Final

from mypy_extensions import i64, mypyc_attr

from moldau.records.batch import BatchHeader, CorruptBatch
from moldau.records.varints import read_varint, read_varlong
from moldau.records.walk import add_wrapping

Headers = list[tuple[str, bytes | None]]

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

# Sums of two numbers within these bounds cannot leave 64 bits.
SAFE_SUMMAND: Final = 0x3FFFFFFFFFFFFFFF


# Many at a time, and never part of a cycle: the garbage collector need not look at them.
@mypyc_attr(acyclic=True)
class ConsumerRecord:
    """One record: topic, partition, offset, timestamp (in ms since 1970), key, value and headers.

    key and value are bytes or None, or what the consumer's deserializers make of them. timestamp_type: 0 where the
    producer set the time, 1 where the broker did. leader_epoch: that of the batch. delivery_count: how often a share
    group has delivered the record, this time included; 0 where none did.
    """

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: i64,
        *,
        timestamp: i64,
        timestamp_type: i64,
        key: Any,
        value: Any,
        headers: Headers | None,
        leader_epoch: i64,
    ) -> None:
        self.topic: str = topic
        self.partition: int = partition
        self.offset: i64 = offset
        self.timestamp: i64 = timestamp
        self.timestamp_type: i64 = timestamp_type
        self.key: Any = key
        self.value: Any = value
        self._headers: Headers | None = headers
        self.leader_epoch: i64 = leader_epoch
        # How often a share group has delivered the record, this time included; 0 where none did.
        self.delivery_count: i64 = 0

    @property
    def headers(self) -> Headers:
        """Pairs of a name and a value, in their order; names may repeat."""
        # Most records have none, and no list is kept for those.
        return [] if self._headers is None else self._headers

    def _fields(self) -> tuple[object, ...]:
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
            self.delivery_count,
        )

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConsumerRecord) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.topic, self.partition, self.offset))

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset},"
            f" timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, headers={self.headers!r})"
        )


def decode_batch(
    data: bytes,
    position: i64,
    end: i64,
    header: BatchHeader,
    *,
    topic: str,
    partition: int,
    from_offset: i64,
    records: list[ConsumerRecord],
) -> None:
    """Adds the records of a batch, not compressed any more, from an offset on; CorruptBatch where they break off."""
    if header.records_count > end - position:
        raise CorruptBatch(f"{header.records_count} records do not fit into {end - position} bytes")
    try:
        _decode(data, position, end, header, topic=topic, partition=partition, from_offset=from_offset, records=records)
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error


def _decode(
    data: bytes,
    position: i64,
    end: i64,
    header: BatchHeader,
    *,
    topic: str,
    partition: int,
    from_offset: i64,
    records: list[ConsumerRecord],
) -> None:
    base_offset = header.base_offset
    epoch = header.partition_leader_epoch
    append_time = header.is_log_append_time
    kind: i64 = LOG_APPEND_TIME if append_time else CREATE_TIME
    number = header.records_count
    while number > 0:
        number -= 1
        size, position = read_varint(data, position)
        record_end = position + size
        if size < 0 or record_end > end:
            raise CorruptBatch(f"record of {size} bytes does not fit into the {end - position} bytes that are left")
        delta, position = read_varlong(data, position + 1)
        offset_delta, position = read_varint(data, position)
        if base_offset + offset_delta < from_offset:
            position = record_end
            continue
        key: bytes | None = None
        size, position = read_varint(data, position)
        if size >= 0:
            if size > record_end - position:
                raise CorruptBatch("a key reaches beyond the end of its record")
            key = data[position : position + size]
            position += size
        value: bytes | None = None
        size, position = read_varint(data, position)
        if size >= 0:
            if size > record_end - position:
                raise CorruptBatch("a value reaches beyond the end of its record")
            value = data[position : position + size]
            position += size
        headers: Headers | None = None
        if data[position] == 0:
            position += 1
        else:
            headers, position = _headers(data, position, record_end)
        if position != record_end:
            raise CorruptBatch("the fields of a record do not fill it")
        timestamp = header.max_timestamp if append_time else sum_of(header.base_timestamp, delta)
        record = ConsumerRecord(
            topic,
            partition,
            base_offset + offset_delta,
            timestamp=timestamp,
            timestamp_type=kind,
            key=key,
            value=value,
            headers=headers,
            leader_epoch=epoch,
        )
        records.append(record)
    if position != end:
        raise CorruptBatch(f"{end - position} bytes are left after the last record")


def sum_of(base_timestamp: i64, delta: i64) -> i64:
    """The sum, wrapped as in Java where a hostile delta leaves 64 bits."""
    if -SAFE_SUMMAND <= base_timestamp <= SAFE_SUMMAND and -SAFE_SUMMAND <= delta <= SAFE_SUMMAND:
        return base_timestamp + delta
    return i64(add_wrapping(int(base_timestamp), int(delta)))


def _headers(data: bytes, position: i64, record_end: i64) -> tuple[Headers, i64]:
    count, position = read_varint(data, position)
    if count < 0 or count > record_end - position:
        raise CorruptBatch(f"record header count {count} is not possible")
    headers: Headers = []
    while count > 0:
        count -= 1
        size, position = read_varint(data, position)
        if size < 0 or size > record_end - position:
            raise CorruptBatch(f"record header key of {size} bytes")
        name = data[position : position + size].decode("utf-8", "replace")
        position += size
        value: bytes | None = None
        size, position = read_varint(data, position)
        if size >= 0:
            if size > record_end - position:
                raise CorruptBatch(f"record header value of {size} bytes")
            value = data[position : position + size]
            position += size
        headers.append((name, value))
    return headers, position
