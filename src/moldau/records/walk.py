"""Walks over the records inside a batch: checks them in bulk, reads them, finds one by its timestamp.

`check_records` is the loop that every produced record goes through; it allocates nothing. The other functions are for
the few who want the records themselves: coordinators, time lookups, compaction, tests.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from moldau.records.batch import HEADER_SIZE, NO_TIMESTAMP, BatchHeader, CorruptBatch
from moldau.records.codecs import NONE, decompress
from moldau.records.varints import read_varint, read_varlong

# What one batch may need in memory when it is decompressed. Kafka streams and has no such limit; real batches, whose
# compressed size `max.message.bytes` bounds, stay far below it.
DECOMPRESSED_BYTES_MAX: Final = 128 * 1024 * 1024

# Findings of check_records.
OFFSETS_WITH_GAPS: Final = 1
REWRITE_NEEDED: Final = 2
KEY_MISSING: Final = 4
TIMESTAMP_OUT_OF_RANGE: Final = 8

LOWEST_LONG: Final = -0x8000000000000000
HIGHEST_LONG: Final = 0x7FFFFFFFFFFFFFFF
# Sums of two numbers within these bounds cannot leave 64 bits.
SAFE_SUMMAND: Final = 0x3FFFFFFFFFFFFFFF


class Record:
    """One record with its final offset and timestamp."""

    def __init__(
        self,
        offset: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]],
    ) -> None:
        self.offset: int = offset
        self.timestamp: int = timestamp
        self.key: bytes | None = key
        self.value: bytes | None = value
        self.headers: list[tuple[str, bytes | None]] = headers

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Record)
            and self.offset == other.offset
            and self.timestamp == other.timestamp
            and self.key == other.key
            and self.value == other.value
            and self.headers == other.headers
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.timestamp, self.key, self.value))

    def __repr__(self) -> str:
        return (
            f"Record(offset={self.offset}, timestamp={self.timestamp}, key={self.key!r}, value={self.value!r}, "
            f"headers={self.headers!r})"
        )


def add_wrapping(left: int, right: int) -> int:
    """The 64-bit sum as Java has it, also when it overflows; only hostile timestamps do."""
    return ((left + right + 0x8000000000000000) & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def check_records(
    data: bytes, position: i64, end: i64, count: i64, base_timestamp: i64, lowest: i64, highest: i64
) -> tuple[i64, i64]:
    """The largest timestamp of `count` records that must fill `data` from position to end, and what was found in them.

    Findings: offset deltas that do not run 0, 1, 2, …; a record without a key; a timestamp outside lowest..highest; and
    a form that differs from what Kafka would write (first timestamp delta, attributes). Records that cannot be read are
    CorruptBatch.
    """
    if position < 0 or end > len(data) or count > end - position:
        raise CorruptBatch(f"{count} records do not fit into {end - position} bytes")
    try:
        return _check_records(data, position, end, count, base_timestamp, lowest, highest)
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error


def _check_records(
    data: bytes, position: i64, end: i64, count: i64, base_timestamp: i64, lowest: i64, highest: i64
) -> tuple[i64, i64]:
    # Short varints are read in place: they are nearly all that there are, and a call costs as much as half a record.
    safe_base = -SAFE_SUMMAND <= base_timestamp <= SAFE_SUMMAND
    max_timestamp: i64 = NO_TIMESTAMP
    findings: i64 = 0
    number: i64 = 0
    while number < count:
        size = i64(data[position])
        if size < 0x80:
            position += 1
            size = (size >> 1) ^ -(size & 1)
        elif data[position + 1] < 0x80:
            size = (size & 0x7F) | (i64(data[position + 1]) << 7)
            position += 2
            size = (size >> 1) ^ -(size & 1)
        else:
            size, position = read_varint(data, position)
        if size < 0 or size > end - position:
            raise CorruptBatch(f"record of {size} bytes does not fit into the {end - position} bytes that are left")
        record_end = position + size
        if data[position] != 0:
            findings |= REWRITE_NEEDED
        position += 1
        delta = i64(data[position])
        if delta < 0x80:
            position += 1
            delta = (delta >> 1) ^ -(delta & 1)
        elif data[position + 1] < 0x80:
            delta = (delta & 0x7F) | (i64(data[position + 1]) << 7)
            position += 2
            delta = (delta >> 1) ^ -(delta & 1)
        else:
            delta, position = read_varlong(data, position)
        if safe_base and -SAFE_SUMMAND <= delta <= SAFE_SUMMAND:
            timestamp = base_timestamp + delta
        else:
            timestamp = i64(add_wrapping(int(base_timestamp), int(delta)))
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if (timestamp < lowest or timestamp > highest) and timestamp != NO_TIMESTAMP:
            findings |= TIMESTAMP_OUT_OF_RANGE
        if number == 0 and delta != 0:
            findings |= REWRITE_NEEDED
        offset_delta = i64(data[position])
        if offset_delta < 0x80:
            position += 1
            offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
        elif data[position + 1] < 0x80:
            offset_delta = (offset_delta & 0x7F) | (i64(data[position + 1]) << 7)
            position += 2
            offset_delta = (offset_delta >> 1) ^ -(offset_delta & 1)
        else:
            offset_delta, position = read_varint(data, position)
        if offset_delta != number:
            findings |= OFFSETS_WITH_GAPS
        size = i64(data[position])
        if size < 0x80:
            position += 1
            size = (size >> 1) ^ -(size & 1)
        else:
            size, position = read_varint(data, position)
        if size < 0:
            findings |= KEY_MISSING
        else:
            position += size
        size = i64(data[position])
        if size < 0x80:
            position += 1
            size = (size >> 1) ^ -(size & 1)
        elif data[position + 1] < 0x80:
            size = (size & 0x7F) | (i64(data[position + 1]) << 7)
            position += 2
            size = (size >> 1) ^ -(size & 1)
        else:
            size, position = read_varint(data, position)
        if size > 0:
            position += size
        if data[position] == 0:
            position += 1
        else:
            position = _skip_headers(data, position, record_end)
        if position != record_end:
            raise CorruptBatch("the fields of a record do not fill it")
        number += 1
    if position != end:
        raise CorruptBatch(f"{end - position} bytes are left after the last record")
    return max_timestamp, findings


def _skip_headers(data: bytes, position: i64, record_end: i64) -> i64:
    count, position = read_varint(data, position)
    if count < 0 or count > record_end - position:
        raise CorruptBatch(f"record header count {count} is not possible")
    while count > 0:
        size, position = read_varint(data, position)
        if size < 0:
            raise CorruptBatch(f"record header key of {size} bytes")
        position += size
        size, position = read_varint(data, position)
        if size > 0:
            position += size
        if position > record_end:
            raise CorruptBatch("record headers reach beyond the end of their record")
        count -= 1
    return position


def records_bytes(data: bytes, header: BatchHeader, limit: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """The records of a batch, decompressed where they are compressed."""
    body = data[header.position + HEADER_SIZE : header.position + header.size]
    codec = int(header.codec)
    return body if codec == NONE else decompress(codec, body, limit)


def read_records(data: bytes, header: BatchHeader, limit: int = DECOMPRESSED_BYTES_MAX) -> list[Record]:
    """All records of a batch."""
    return parse_records(records_bytes(data, header, limit), header)


def parse_records(body: bytes, header: BatchHeader) -> list[Record]:
    """All records in `body`, the decompressed records of the batch that `header` describes."""
    if header.records_count < 0 or header.records_count > len(body):
        raise CorruptBatch(f"{header.records_count} records do not fit into {len(body)} bytes")
    records: list[Record] = []
    position: i64 = 0
    try:
        for _ in range(header.records_count):
            record, position = _read_record(body, position, header)
            records.append(record)
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error
    if position != len(body):
        raise CorruptBatch(f"{len(body) - position} bytes are left after the last record")
    return records


def _read_record(body: bytes, position: i64, header: BatchHeader) -> tuple[Record, i64]:
    size, position = read_varint(body, position)
    if size < 0 or size > i64(len(body)) - position:
        raise CorruptBatch(f"record of {size} bytes does not fit into the {len(body) - position} bytes that are left")
    record_end = position + size
    timestamp_delta, position = read_varlong(body, position + 1)
    offset_delta, position = read_varint(body, position)
    key, position = _read_bytes(body, position, record_end)
    value, position = _read_bytes(body, position, record_end)
    count, position = read_varint(body, position)
    if count < 0 or count > record_end - position:
        raise CorruptBatch(f"record header count {count} is not possible")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(body, position, record_end)
        if name is None:
            raise CorruptBatch("record header without a key")
        header_value, position = _read_bytes(body, position, record_end)
        headers.append((name.decode("utf-8", "replace"), header_value))
    if position != record_end:
        raise CorruptBatch("the fields of a record do not fill it")
    if header.is_log_append_time:
        timestamp = int(header.max_timestamp)
    else:
        timestamp = add_wrapping(int(header.base_timestamp), int(timestamp_delta))
    return Record(int(header.base_offset) + int(offset_delta), timestamp, key, value, headers), position


def read_keys_and_values(
    data: bytes, header: BatchHeader, limit: int = DECOMPRESSED_BYTES_MAX
) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of all records: for state machines that replay many and need nothing else of them."""
    body = records_bytes(data, header, limit)
    size: i64 = len(body)
    if header.records_count < 0 or header.records_count > size:
        raise CorruptBatch(f"{header.records_count} records do not fit into {size} bytes")
    records: list[tuple[int, bytes | None, bytes | None]] = []
    position: i64 = 0
    try:
        for _ in range(header.records_count):
            length, position = read_varint(body, position)
            if length < 0 or length > size - position:
                raise CorruptBatch(f"record of {length} bytes does not fit into the {size - position} that are left")
            record_end = position + length
            _, position = read_varlong(body, position + 1)
            offset_delta, position = read_varint(body, position)
            key, position = _read_bytes(body, position, record_end)
            value, _ = _read_bytes(body, position, record_end)
            records.append((int(header.base_offset + offset_delta), key, value))
            position = record_end
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error
    if position != size:
        raise CorruptBatch(f"{size - position} bytes are left after the last record")
    return records


def _read_bytes(body: bytes, position: i64, record_end: i64) -> tuple[bytes | None, i64]:
    size, position = read_varint(body, position)
    if size < 0:
        return None, position
    if size > record_end - position:
        raise CorruptBatch(f"{size} bytes do not fit into the {record_end - position} that are left of the record")
    return body[position : position + size], position + size


def find_timestamp(
    data: bytes, header: BatchHeader, target: int, from_offset: int = 0, limit: int = DECOMPRESSED_BYTES_MAX
) -> tuple[int, int] | None:
    """Timestamp and offset of the first record at `target` or later, and at `from_offset` or later."""
    if header.max_timestamp < target:
        return None
    for timestamp, offset in _times(data, header, limit):
        if timestamp >= target and offset >= from_offset:
            return timestamp, offset
    return None


def max_timestamp_record(
    data: bytes, header: BatchHeader, limit: int = DECOMPRESSED_BYTES_MAX
) -> tuple[int, int] | None:
    """Timestamp and offset of the first record that has the largest timestamp; None for a batch without records."""
    best: tuple[int, int] | None = None
    for entry in _times(data, header, limit):
        if best is None or entry[0] > best[0]:
            best = entry
    return best


def _times(data: bytes, header: BatchHeader, limit: int) -> list[tuple[int, int]]:
    """Timestamp and offset of every record, keys and values left alone."""
    body = records_bytes(data, header, limit)
    end = i64(len(body))
    if header.records_count > end:
        raise CorruptBatch(f"{header.records_count} records do not fit into {len(body)} bytes")
    times: list[tuple[int, int]] = []
    append_time = header.is_log_append_time
    position: i64 = 0
    try:
        for _ in range(header.records_count):
            size, position = read_varint(body, position)
            if size < 0 or size > end - position:
                raise CorruptBatch(f"record of {size} bytes does not fit into the {end - position} bytes left")
            delta, after = read_varlong(body, position + 1)
            offset_delta, after = read_varint(body, after)
            timestamp = header.max_timestamp if append_time else add_wrapping(int(header.base_timestamp), int(delta))
            times.append((int(timestamp), int(header.base_offset + offset_delta)))
            position += size
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error
    return times
