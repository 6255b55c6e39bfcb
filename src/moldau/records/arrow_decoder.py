"""Turns fetched batches into the buffers of Arrow columns; makes no object for a record.

Keys and values stay where they are: their columns are views (Arrow's binary-view layout) into the fetched bytes. A view
has 16 bytes: the length, then either up to 12 bytes of data, or the first four, the number of the buffer and the place
in it.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from moldau.records.batch import BatchHeader, CorruptBatch
from moldau.records.varints import read_varint, read_varlong
from moldau.records.walk import add_wrapping

INLINE_BYTES_MAX: Final = 12
SAFE_SUMMAND: Final = 0x3FFFFFFFFFFFFFFF


class ViewColumn:
    """A binary-view column that is being filled."""

    def __init__(self) -> None:
        self.views: BytesWriter = BytesWriter()
        self.nulls: i64 = 0
        self.rows: i64 = 0
        self._bitmap: BytesWriter = BytesWriter()
        self._bits: i64 = 0

    def add(self, data: bytes, start: i64, size: i64, buffer: i64) -> None:
        """The bytes at start of the buffer with this number; a negative size is null."""
        views = self.views
        if size < 0:
            self.nulls += 1
            write_i64_le(views, 0)
            write_i64_le(views, 0)
        else:
            self._bits |= i64(1) << (self.rows & 7)
            write_i32_le(views, i32(size))
            if size > INLINE_BYTES_MAX:
                write_i32_le(views, read_i32_le(data, start))
                write_i32_le(views, i32(buffer))
                write_i32_le(views, i32(start))
            else:
                end = start + size
                while start < end:
                    views.append(data[start])
                    start += 1
                while size < INLINE_BYTES_MAX:
                    views.append(0)
                    size += 1
        self.rows += 1
        if self.rows & 7 == 0:
            self._bitmap.append(self._bits)
            self._bits = 0

    def validity(self) -> bytes | None:
        """The bitmap of rows that are not null; None when all are there. Only once everything was added."""
        if self.nulls == 0:
            return None
        if self.rows & 7 != 0:
            self._bitmap.append(self._bits)
        return self._bitmap.getvalue()


class ArrowColumns:
    """The columns of records that are being decoded."""

    def __init__(self, with_headers: bool) -> None:
        self.with_headers: bool = with_headers
        self.rows: i64 = 0
        self.keys: ViewColumn = ViewColumn()
        self.values: ViewColumn = ViewColumn()
        self.offsets: BytesWriter = BytesWriter()
        self.timestamps: BytesWriter = BytesWriter()
        self.header_offsets: BytesWriter = BytesWriter()
        self.header_names: ViewColumn = ViewColumn()
        self.header_values: ViewColumn = ViewColumn()
        write_i32_le(self.header_offsets, 0)

    def add_batch(
        self, data: bytes, position: i64, end: i64, header: BatchHeader, from_offset: i64, buffer: int
    ) -> int:
        """Adds the records of a batch, not compressed any more, from an offset on; returns how many."""
        if header.records_count > end - position:
            raise CorruptBatch(f"{header.records_count} records do not fit into {end - position} bytes")
        before = self.rows
        try:
            self._add(data, position, end, header, from_offset, buffer)
        except IndexError as error:
            raise CorruptBatch("a record reaches beyond the end of its batch") from error
        return int(self.rows - before)

    def _add(self, data: bytes, position: i64, end: i64, header: BatchHeader, from_offset: i64, buffer: i64) -> None:
        append_time = header.is_log_append_time
        number = header.records_count
        while number > 0:
            number -= 1
            size, position = read_varint(data, position)
            record_end = position + size
            if size < 0 or record_end > end:
                raise CorruptBatch(f"record of {size} bytes does not fit into the {end - position} bytes left")
            delta, position = read_varlong(data, position + 1)
            offset_delta, position = read_varint(data, position)
            if header.base_offset + offset_delta < from_offset:
                position = record_end
                continue
            key_size, key_start = read_varint(data, position)
            position = key_start + max(key_size, i64(0))
            if key_size > record_end or position > record_end:
                raise CorruptBatch("a key reaches beyond the end of its record")
            size, position = read_varint(data, position)
            if size > record_end - position:
                raise CorruptBatch("a value reaches beyond the end of its record")
            self.keys.add(data, key_start, key_size, buffer)
            self.values.add(data, position, size, buffer)
            position = self._add_headers(data, position + max(size, i64(0)), record_end, buffer)
            if position != record_end:
                raise CorruptBatch("the fields of a record do not fill it")
            write_i64_le(self.offsets, header.base_offset + offset_delta)
            write_i64_le(self.timestamps, header.max_timestamp if append_time else _sum(header.base_timestamp, delta))
            self.rows += 1
        if position != end:
            raise CorruptBatch(f"{end - position} bytes are left after the last record")

    def _add_headers(self, data: bytes, position: i64, record_end: i64, buffer: i64) -> i64:
        count, position = read_varint(data, position)
        if count < 0 or count > record_end - position:
            raise CorruptBatch(f"record header count {count} is not possible")
        while count > 0:
            count -= 1
            name_size, name_start = read_varint(data, position)
            position = name_start + name_size
            if name_size < 0 or position > record_end:
                raise CorruptBatch(f"record header key of {name_size} bytes")
            size, position = read_varint(data, position)
            if size > record_end - position:
                raise CorruptBatch(f"record header value of {size} bytes")
            if self.with_headers:
                self.header_names.add(data, name_start, name_size, buffer)
                self.header_values.add(data, position, size, buffer)
            position += max(size, i64(0))
        if self.with_headers:
            write_i32_le(self.header_offsets, i32(self.header_names.rows))
        return position


def repeated_text(parts: list[tuple[bytes, int]]) -> tuple[bytes, bytes]:
    """A string column that has each text so many times: its offsets and its data."""
    ends = BytesWriter()
    write_i32_le(ends, 0)
    end: i64 = 0
    for text, count in parts:
        size: i64 = len(text)
        left: i64 = count
        while left > 0:
            left -= 1
            end += size
            write_i32_le(ends, i32(end))
    return ends.getvalue(), b"".join([text * count for text, count in parts])


def _sum(base_timestamp: i64, delta: i64) -> i64:
    if -SAFE_SUMMAND <= base_timestamp <= SAFE_SUMMAND and -SAFE_SUMMAND <= delta <= SAFE_SUMMAND:
        return base_timestamp + delta
    return i64(add_wrapping(int(base_timestamp), int(delta)))
