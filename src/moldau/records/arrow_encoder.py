"""Frames rows of Arrow columns as records: works on the columns' buffers, makes no object for a row.

A record is framing (lengths, attributes, deltas), the key, the length of the value, the value, and the headers. This
module writes the pieces between key and value for many rows into one buffer each; the bytes of keys and values are
left where they are, and whoever calls puts everything together with one call into Arrow. Rows are grouped into batches
as they are framed, because a record's framing holds its place in its batch.
"""

from __future__ import annotations

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from moldau.records.batch import HEADER_SIZE
from moldau.records.murmur2 import murmur2_range
from moldau.records.varints import varint_size, write_varint


class BinaryColumn:
    """The buffers of a binary column with 32-bit offsets; `first` is the place of row 0 in them."""

    def __init__(self, validity: bytes | None, offsets: bytes, data: bytes, first: int) -> None:
        self.validity: bytes | None = validity
        self.offsets: bytes = offsets
        self.data: bytes = data
        self.first: i64 = first

    def length(self, row: i64) -> i64:
        """How long the row's bytes are; -1 for null."""
        place = self.first + row
        validity = self.validity
        if validity is not None and (i64(validity[place >> 3]) >> (place & 7)) & 1 == 0:
            return -1
        return i64(read_i32_le(self.offsets, 4 * place + 4)) - i64(read_i32_le(self.offsets, 4 * place))

    def start(self, row: i64) -> i64:
        return i64(read_i32_le(self.offsets, 4 * (self.first + row)))


class HeaderColumn:
    """Lists of (name, value): the lists' offsets, and the columns of all names and all values."""

    def __init__(
        self, validity: bytes | None, offsets: bytes, first: int, names: BinaryColumn, values: BinaryColumn
    ) -> None:
        self.validity: bytes | None = validity
        self.offsets: bytes = offsets
        self.first: i64 = first
        self.names: BinaryColumn = names
        self.values: BinaryColumn = values


class FramedBatch:
    """Rows that make one batch: how many, how many bytes, their first and highest timestamp."""

    def __init__(self, rows: int, size: int, base_timestamp: int, max_timestamp: int) -> None:
        self.rows: int = rows
        self.size: int = size
        self.base_timestamp: int = base_timestamp
        self.max_timestamp: int = max_timestamp


class FramedRows:
    """The pieces of all rows, as data and 32-bit offsets of binary columns, and the batches in order."""

    def __init__(self) -> None:
        self.head: BytesWriter = BytesWriter()
        self.head_offsets: BytesWriter = BytesWriter()
        self.middle: BytesWriter = BytesWriter()
        self.middle_offsets: BytesWriter = BytesWriter()
        self.tail: BytesWriter = BytesWriter()
        self.tail_offsets: BytesWriter = BytesWriter()
        self.batches: list[FramedBatch] = []
        # The first row that alone is larger than a request may be, and its size; -1: none.
        self.too_large: int = -1
        self.too_large_size: int = 0
        self._end_of_piece()

    def _end_of_piece(self) -> None:
        write_i32_le(self.head_offsets, i32(len(self.head)))
        write_i32_le(self.middle_offsets, i32(len(self.middle)))
        write_i32_le(self.tail_offsets, i32(len(self.tail)))


def frame_rows(
    keys: BinaryColumn | None,
    values: BinaryColumn,
    headers: HeaderColumn | None,
    timestamps: bytes | None,
    first_timestamp: i64,
    now_ms: i64,
    start: i64,
    end: i64,
    batch_bytes: i64,
    request_bytes: i64,
) -> FramedRows:
    """Frames the rows from start to end; timestamps: 64-bit milliseconds, the first at place first_timestamp."""
    framed = FramedRows()
    head = framed.head
    middle = framed.middle
    tail = framed.tail
    count: i64 = 0
    size_of_batch: i64 = 0
    base_timestamp: i64 = 0
    max_timestamp: i64 = 0
    row = start
    while row < end:
        timestamp = now_ms if timestamps is None else read_i64_le(timestamps, 8 * (first_timestamp + row))
        tail_before = i64(len(tail))
        if headers is None:
            tail.append(0)
        else:
            _write_headers(tail, headers, row)
        key_size: i64 = -1 if keys is None else keys.length(row)
        value_size = values.length(row)
        fixed = 1 + varint_size(key_size) + varint_size(value_size) + len(tail) - tail_before
        fixed += max(key_size, i64(0)) + max(value_size, i64(0))
        # What the record takes at most: its deltas are not known before it is clear which batch it goes to.
        if count > 0 and HEADER_SIZE + size_of_batch + fixed + 25 > batch_bytes:
            framed.batches.append(FramedBatch(int(count), int(size_of_batch), int(base_timestamp), int(max_timestamp)))
            count = 0
            size_of_batch = 0
        if count == 0:
            base_timestamp = timestamp
            max_timestamp = timestamp
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        delta = timestamp - base_timestamp
        size = fixed + varint_size(delta) + varint_size(count)
        whole = size + varint_size(size)
        if HEADER_SIZE + whole > request_bytes and framed.too_large < 0:
            framed.too_large = int(row)
            framed.too_large_size = int(HEADER_SIZE + whole)
        write_varint(head, size)
        head.append(0)
        write_varint(head, delta)
        write_varint(head, count)
        write_varint(head, key_size)
        write_varint(middle, value_size)
        framed._end_of_piece()
        size_of_batch += whole
        count += 1
        row += 1
    if count > 0:
        framed.batches.append(FramedBatch(int(count), int(size_of_batch), int(base_timestamp), int(max_timestamp)))
    return framed


def _write_headers(tail: BytesWriter, headers: HeaderColumn, row: i64) -> None:
    place = headers.first + row
    first = i64(read_i32_le(headers.offsets, 4 * place))
    behind = i64(read_i32_le(headers.offsets, 4 * place + 4))
    validity = headers.validity
    if validity is not None and (i64(validity[place >> 3]) >> (place & 7)) & 1 == 0:
        behind = first
    write_varint(tail, behind - first)
    while first < behind:
        _write_bytes(tail, headers.names, first)
        _write_bytes(tail, headers.values, first)
        first += 1


def _write_bytes(writer: BytesWriter, column: BinaryColumn, row: i64) -> None:
    """Byte by byte: headers are short, and a slice would be an object."""
    size = column.length(row)
    write_varint(writer, size)
    if size <= 0:
        return
    data = column.data
    index = column.start(row)
    end = index + size
    while index < end:
        writer.append(data[index])
        index += 1


def partitions_by_key(keys: BinaryColumn, rows: i64, partitions: i64, without_key: i64) -> bytes:
    """The partition of each row as 32-bit numbers, by its key; rows with a null key get `without_key`."""
    writer = BytesWriter()
    row: i64 = 0
    while row < rows:
        size = keys.length(row)
        if size < 0:
            write_i32_le(writer, i32(without_key))
        else:
            start = keys.start(row)
            hashed = murmur2_range(keys.data, start, start + size) & 0x7FFFFFFF
            write_i32_le(writer, i32(hashed % partitions))
        row += 1
    return writer.getvalue()


def group_rows(numbers: bytes, rows: i64, groups: i64) -> tuple[bytes, list[int]]:
    """Row numbers (64 bits) grouped by their group's number (32 bits, from 0), and how many each group has.

    Rows keep their order within a group. A number outside of 0 to groups-1 is an IndexError.
    """
    counts = [0] * int(groups)
    row: i64 = 0
    while row < rows:
        counts[read_i32_le(numbers, 4 * row)] += 1
        row += 1
    if rows and min_of(numbers, rows) < 0:
        raise IndexError("a group's number is negative")
    writers = [BytesWriter() for _ in range(groups)]
    row = 0
    while row < rows:
        write_i64_le(writers[read_i32_le(numbers, 4 * row)], row)
        row += 1
    return b"".join([writer.getvalue() for writer in writers]), counts


def min_of(numbers: bytes, rows: i64) -> i64:
    """The least of 32-bit numbers."""
    least = i64(read_i32_le(numbers, 0))
    row: i64 = 1
    while row < rows:
        least = min(least, i64(read_i32_le(numbers, 4 * row)))
        row += 1
    return least
