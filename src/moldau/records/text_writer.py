"""Writes fetched records as text, by a format string or as JSON lines; makes no object for a record.

A format is a list of fields with literal text behind each. With no fields at all the records are only counted.
"""

from __future__ import annotations

import json
from binascii import b2a_base64
from typing import Final

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i32, i64

from moldau.records.batch import BatchHeader, CorruptBatch
from moldau.records.varints import read_varint, read_varlong
from moldau.records.walk import add_wrapping

VALUE: Final = 1
VALUE_SIZE: Final = 2
KEY: Final = 3
KEY_SIZE: Final = 4
HEADERS: Final = 5
TOPIC: Final = 6
PARTITION: Final = 7
OFFSET: Final = 8
TIMESTAMP: Final = 9
# The size of the value as four bytes, as kcat writes it.
BINARY_SIZE: Final = 10
# The whole record as one JSON object.
JSON: Final = 11

NO_LIMIT: Final = -1
NO_END: Final = 0x7FFFFFFFFFFFFFFF
SAFE_SUMMAND: Final = 0x3FFFFFFFFFFFFFFF


class TextWriter:
    """Text of the records of any number of partitions, one behind the other."""

    def __init__(self, before: bytes, fields: bytes, literals: list[bytes], null: bytes) -> None:
        """before: text in front of each record. fields: codes of this module; literals: the text behind each."""
        if len(fields) != len(literals):
            raise ValueError("every field has the text behind it")
        self._before: bytes = before
        self._fields: bytes = fields
        self._literals: list[bytes] = literals
        self._null_text: bytes = null
        self._out: BytesWriter = BytesWriter()
        # How many records were looked at, how many were written, how many bytes their keys and values have, and how
        # many are to be written at most.
        self.seen: i64 = 0
        self.rows: i64 = 0
        self.record_bytes: i64 = 0
        self.limit: i64 = NO_LIMIT
        self._ends: dict[tuple[str, int], int] = {}
        self._end: i64 = NO_END
        self._topic: bytes = b""
        self._partition: bytes = b""
        self._json_start: bytes = b""

    def set_end(self, topic: str, partition: int, end: int) -> None:
        """Records of this partition from the offset `end` on are left out."""
        self._ends[topic, partition] = end

    def begin(self, topic: str, partition: int) -> None:
        """What is added from now on is of this partition."""
        self._end = self._ends.get((topic, partition), NO_END)
        self._topic = topic.encode()
        self._partition = str(partition).encode()
        start = '{"topic":' + json.dumps(topic, ensure_ascii=False) + ',"partition":' + str(partition) + ',"offset":'
        self._json_start = start.encode()

    @property
    def full(self) -> bool:
        """Nothing is written any more: the limit is reached."""
        return 0 <= self.limit <= self.rows

    @property
    def size(self) -> int:
        """How many bytes of text wait to be taken."""
        return len(self._out)

    def take(self) -> bytes:
        """The text since the last call."""
        text = self._out.getvalue()
        self._out = BytesWriter()
        return text

    def add_batch(self, data: bytes, position: i64, end: i64, header: BatchHeader, from_offset: i64) -> None:
        """Writes the records of a batch, not compressed any more, from an offset on."""
        if header.records_count > end - position:
            raise CorruptBatch(f"{header.records_count} records do not fit into {end - position} bytes")
        self.seen += header.records_count
        try:
            self._add(data, position, end, header, from_offset)
        except IndexError as error:
            raise CorruptBatch("a record reaches beyond the end of its batch") from error

    def _add(self, data: bytes, position: i64, end: i64, header: BatchHeader, from_offset: i64) -> None:
        append_time = header.is_log_append_time
        number = header.records_count
        while number > 0:
            number -= 1
            if 0 <= self.limit <= self.rows:
                return
            size, position = read_varint(data, position)
            record_end = position + size
            if size < 0 or record_end > end:
                raise CorruptBatch(f"record of {size} bytes does not fit into the {end - position} bytes left")
            delta, position = read_varlong(data, position + 1)
            offset_delta, position = read_varint(data, position)
            offset = header.base_offset + offset_delta
            if offset < from_offset or offset >= self._end:
                position = record_end
                continue
            key_size, key_start = read_varint(data, position)
            if key_size > record_end - key_start:
                raise CorruptBatch("a key reaches beyond the end of its record")
            value_size, value_start = read_varint(data, key_start + max(key_size, i64(0)))
            if value_size > record_end - value_start:
                raise CorruptBatch("a value reaches beyond the end of its record")
            position = value_start + max(value_size, i64(0))
            if data[position] == 0:
                headers_start: i64 = -1
                position += 1
            else:
                headers_start = position
                position = _skip_headers(data, position, record_end)
            if position != record_end:
                raise CorruptBatch("the fields of a record do not fill it")
            timestamp = header.max_timestamp if append_time else _sum(header.base_timestamp, delta)
            self.rows += 1
            self.record_bytes += max(key_size, i64(0)) + max(value_size, i64(0))
            self._write(
                data,
                offset,
                timestamp,
                key_start=key_start,
                key_size=key_size,
                value_start=value_start,
                value_size=value_size,
                headers_start=headers_start,
            )

    def _write(
        self,
        data: bytes,
        offset: i64,
        timestamp: i64,
        *,
        key_start: i64,
        key_size: i64,
        value_start: i64,
        value_size: i64,
        headers_start: i64,
    ) -> None:
        out = self._out
        if len(self._before) > 0:
            out.write(self._before)
        index: i64 = 0
        count: i64 = len(self._fields)
        while index < count:
            field = i64(self._fields[index])
            if field == VALUE:
                out.write(self._null_text if value_size < 0 else data[value_start : value_start + value_size])
            elif field == KEY:
                out.write(self._null_text if key_size < 0 else data[key_start : key_start + key_size])
            elif field == OFFSET:
                write_decimal(out, offset)
            elif field == TIMESTAMP:
                write_decimal(out, timestamp)
            elif field == PARTITION:
                out.write(self._partition)
            elif field == TOPIC:
                out.write(self._topic)
            elif field == VALUE_SIZE:
                write_decimal(out, max(value_size, i64(-1)))
            elif field == KEY_SIZE:
                write_decimal(out, max(key_size, i64(-1)))
            elif field == HEADERS:
                if headers_start >= 0:
                    _write_headers(out, data, headers_start)
            elif field == BINARY_SIZE:
                write_i32_be(out, i32(max(value_size, i64(-1))))
            else:
                out.write(self._json_start)
                write_decimal(out, offset)
                out.write(b',"timestamp":')
                write_decimal(out, timestamp)
                out.write(b',"key":')
                write_json(out, data, key_start, key_size)
                out.write(b',"value":')
                write_json(out, data, value_start, value_size)
                if headers_start >= 0:
                    _write_json_headers(out, data, headers_start)
                else:
                    out.write(b',"headers":[]}')
            out.write(self._literals[index])
            index += 1


def write_decimal(out: BytesWriter, value: i64) -> None:
    """The number in decimal digits."""
    if value < 0:
        out.write(str(value).encode())
        return
    first: i64 = len(out)
    while True:
        out.append(48 + value % 10)
        value //= 10
        if value == 0:
            break
    last: i64 = len(out) - 1
    while first < last:
        digit = out[first]
        out[first] = out[last]
        out[last] = digit
        first += 1
        last -= 1


def write_json(out: BytesWriter, data: bytes, start: i64, size: i64) -> None:
    """Bytes as a JSON string; null for a negative size, {"base64": ...} where they are not text."""
    if size < 0:
        out.write(b"null")
        return
    index = start
    end = start + size
    while index < end:
        byte = i64(data[index])
        # Printable ASCII but the quote and the backslash stands for itself.
        if byte < 32 or byte > 126 or byte == 34 or byte == 92:
            out.write(_awkward_json(data[start:end]))
            return
        index += 1
    out.append(34)
    out.write(data[start:end])
    out.append(34)


def _awkward_json(raw: bytes) -> bytes:
    try:
        return json.dumps(raw.decode(), ensure_ascii=False).encode()
    except UnicodeDecodeError:
        return b'{"base64":"' + b2a_base64(raw, newline=False) + b'"}'


def _skip_headers(data: bytes, position: i64, record_end: i64) -> i64:
    """Checks that the headers are whole; returns where they end."""
    count, position = read_varint(data, position)
    if count < 0 or count > record_end - position:
        raise CorruptBatch(f"record header count {count} is not possible")
    while count > 0:
        count -= 1
        size, position = read_varint(data, position)
        if size < 0 or size > record_end - position:
            raise CorruptBatch(f"record header key of {size} bytes")
        size, position = read_varint(data, position + size)
        if size > record_end - position:
            raise CorruptBatch(f"record header value of {size} bytes")
        position += max(size, i64(0))
    return position


def _write_headers(out: BytesWriter, data: bytes, position: i64) -> None:
    """name=value,name=NULL of headers that were checked."""
    count, position = read_varint(data, position)
    first = True
    while count > 0:
        count -= 1
        if not first:
            out.append(44)
        first = False
        size, position = read_varint(data, position)
        out.write(_name(data[position : position + size]))
        out.append(61)
        size, position = read_varint(data, position + size)
        out.write(b"NULL" if size < 0 else data[position : position + size])
        position += max(size, i64(0))


def _write_json_headers(out: BytesWriter, data: bytes, position: i64) -> None:
    out.write(b',"headers":[')
    count, position = read_varint(data, position)
    first = True
    while count > 0:
        count -= 1
        out.write(b'{"name":' if first else b',{"name":')
        first = False
        size, position = read_varint(data, position)
        name = _name(data[position : position + size])
        write_json(out, name, 0, len(name))
        out.write(b',"value":')
        size, position = read_varint(data, position + size)
        write_json(out, data, position, size)
        out.append(125)
        position += max(size, i64(0))
    out.write(b"]}")


def _name(raw: bytes) -> bytes:
    """A header's name, which is text by definition; bytes that are not are shown as such."""
    return raw if raw.isascii() else raw.decode("utf-8", "replace").encode()


def _sum(base_timestamp: i64, delta: i64) -> i64:
    if -SAFE_SUMMAND <= base_timestamp <= SAFE_SUMMAND and -SAFE_SUMMAND <= delta <= SAFE_SUMMAND:
        return base_timestamp + delta
    return i64(add_wrapping(int(base_timestamp), int(delta)))
