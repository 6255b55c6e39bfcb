"""Frames rows of Arrow columns as records: works on the columns' buffers, makes no object for a row.

A record is framing (lengths, attributes, deltas), the key, the length of the value, the value, and the headers. This
module writes the framing of many rows into one buffer, and a list of views (Arrow's binary-view layout) that names all
pieces in order: framing, key, framing, value, framing, ... The bytes of keys and values are left where they are; one
cast in Arrow puts everything one behind the other. Rows are grouped into batches as they are framed, because a
record's framing holds its place in its batch.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i32_le, write_i64_le
from mypy_extensions import i32, i64

from moldau.records.batch import HEADER_SIZE
from moldau.records.murmur2 import murmur2_range
from moldau.records.record_buffer import small_size as varint_size
from moldau.records.record_buffer import write_small as write_varint

# Views hold data of up to this many bytes themselves.
INLINE_BYTES_MAX: Final = 12
# The numbers of the buffers that the views point into.
FRAMING_BUFFER: Final = 0
VALUES_BUFFER: Final = 1
KEYS_BUFFER: Final = 2


class BinaryColumn:
    """The rows of a binary column with 32-bit offsets.

    The offsets and the validity bits are cut out of the column's buffers: the first row's bit is `first_bit` of the
    first byte. So is the data, whose first byte is the one that the offsets call `data_start`; it is missing where
    nobody needs it, as most values are never looked at here.
    """

    def __init__(self, validity: bytes | None, first_bit: int, offsets: bytes, data: bytes, data_start: int) -> None:
        self.validity: bytes | None = validity
        self.first_bit: i64 = first_bit
        self.offsets: bytes = offsets
        self.data: bytes = data
        self.data_start: i64 = data_start

    def length(self, row: i64) -> i64:
        """How long the row's bytes are; -1 for null."""
        validity = self.validity
        if validity is not None:
            place = self.first_bit + row
            if (i64(validity[place >> 3]) >> (place & 7)) & 1 == 0:
                return -1
        return i64(read_i32_le(self.offsets, 4 * row + 4)) - i64(read_i32_le(self.offsets, 4 * row))

    def start(self, row: i64) -> i64:
        """Where the row's bytes start in the column's buffer."""
        return i64(read_i32_le(self.offsets, 4 * row))


class HeaderColumn:
    """Lists of (name, value): the lists' offsets, and the columns of all names and all values."""

    def __init__(
        self, validity: bytes | None, first_bit: int, offsets: bytes, names: BinaryColumn, values: BinaryColumn
    ) -> None:
        """The offsets count from the first rows of names and values."""
        self.validity: bytes | None = validity
        self.first_bit: i64 = first_bit
        self.offsets: bytes = offsets
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
    """The framing of all rows, views of all pieces in order, and the batches in order."""

    def __init__(self) -> None:
        self.framing: BytesWriter = BytesWriter()
        self.views: BytesWriter = BytesWriter()
        self.pieces: i64 = 0
        self.rows: int = 0
        self.batches: list[FramedBatch] = []
        # The end of the record before: its headers, or that it has none.
        self.tail: bytes = b""
        # The first row that alone is larger than a request may be, and its size; -1: none.
        self.too_large: int = -1
        self.too_large_size: int = 0
        # A column without data has a row so short that its bytes are part of their view.
        self.lacks_data: bool = False
        self._piece_start: i64 = 0

    def add(
        self,
        keys: BinaryColumn | None,
        values: BinaryColumn,
        *,
        row: i64,
        size: i64,
        delta: i64,
        count: i64,
        key_size: i64,
        value_size: i64,
    ) -> None:
        """The pieces of any record but its headers, which are kept until the next one comes."""
        framing = self.framing
        framing.write(self.tail)
        write_varint(framing, size)
        framing.append(0)
        write_varint(framing, delta)
        write_varint(framing, count)
        write_varint(framing, key_size)
        if keys is not None:
            self.add_piece(keys, row, key_size, KEYS_BUFFER)
        write_varint(framing, value_size)
        self.end_piece()
        self.add_piece(values, row, value_size, VALUES_BUFFER)

    def end_piece(self) -> None:
        """What was written into the framing since the last piece becomes one."""
        framing = self.framing
        views = self.views
        start = self._piece_start
        size = i64(len(framing)) - start
        if size == 0:
            return
        write_i32_le(views, i32(size))
        if size > INLINE_BYTES_MAX:
            write_i32_le(views, 0)
            write_i32_le(views, FRAMING_BUFFER)
            write_i32_le(views, i32(start))
        else:
            index: i64 = 0
            while index < size:
                views.append(framing[start + index])
                index += 1
            while index < INLINE_BYTES_MAX:
                views.append(0)
                index += 1
        self._piece_start = start + size
        self.pieces += 1

    def add_plain(self, size: i64, delta: i64, count: i64, value_start: i64, value_size: i64) -> bool:
        """The pieces of a record without key and headers, if its framing fits into a view: no detour over bytes.

        The framing is the last byte of the record before, then size, attributes, timestamp and offset delta, no key,
        and the size of the value. False, and nothing is done, when one of them takes more than two bytes, or where
        the value itself would have to go into a view.
        """
        if size >= 8192 or not -8192 <= delta < 8192 or count >= 8192 or value_size <= INLINE_BYTES_MAX:
            return False
        low = _as_varint(size) << 8
        at: i64 = 24 if low < 0x8000 else 32
        raw = (delta << 1) ^ (delta >> 63)
        if raw < 0x80:
            low |= raw << at
            at += 8
        else:
            low |= ((raw & 0x7F) | 0x80 | ((raw >> 7) << 8)) << at
            at += 16
        # 32 to 48 bits so far. What follows, at most 40 bits, is put together apart, and shifted behind it.
        raw = count << 1
        bits: i64 = 8
        if raw >= 0x80:
            raw = (raw & 0x7F) | 0x80 | ((raw >> 7) << 8)
            bits = 16
        rest = raw | (i64(1) << bits)
        bits += 8
        raw = value_size << 1
        if raw < 0x80:
            rest |= raw << bits
            bits += 8
        else:
            rest |= ((raw & 0x7F) | 0x80 | ((raw >> 7) << 8)) << bits
            bits += 16
        first = low & 0xFFFFFFFF
        views = self.views
        write_i32_le(views, i32((at + bits) >> 3))
        write_i32_le(views, i32(first - 0x100000000 if first >= 0x80000000 else first))
        # At most seven bytes: the sign bit stays clear.
        write_i64_le(views, (low >> 32) | (rest << (at - 32)))
        write_i64_le(views, value_size)
        write_i64_le(views, VALUES_BUFFER | (value_start << 32))
        self.pieces += 2
        return True

    def add_piece(self, column: BinaryColumn, row: i64, size: i64, buffer: i32) -> None:
        """The row's bytes, which lie in the buffer with this number."""
        if size <= 0:
            return
        self.end_piece()
        views = self.views
        start = column.start(row)
        if size <= INLINE_BYTES_MAX and not column.data:
            self.lacks_data = True
        elif size > INLINE_BYTES_MAX:
            # Views hold the first four bytes to compare by; nobody compares these.
            write_i64_le(views, size)
            write_i64_le(views, i64(buffer) | (start << 32))
        else:
            write_i32_le(views, i32(size))
            data = column.data
            start -= column.data_start
            index: i64 = 0
            while index < size:
                views.append(data[start + index])
                index += 1
            while index < INLINE_BYTES_MAX:
                views.append(0)
                index += 1
        self.pieces += 1


def frame_rows(
    keys: BinaryColumn | None,
    values: BinaryColumn,
    headers: HeaderColumn | None,
    *,
    timestamps: bytes | None,
    now_ms: i64,
    rows: i64,
    batch_bytes: i64,
    request_bytes: i64,
    more_follows: bool = False,
) -> FramedRows:
    """Frames that many rows; timestamps: 64-bit milliseconds, or all of them are of now.

    Keys and values may come without their data. Where that is needed after all, framing stops and `lacks_data` is set.
    If more rows follow, those behind the last full batch are left to come with them; `rows` tells how many are not.
    """
    framed = FramedRows()
    offsets = values.offsets
    has_nulls = values.validity is not None
    value_end = i64(read_i32_le(offsets, 0))
    last_end = i64(read_i32_le(offsets, 4 * rows))
    tail = b"\x00"
    plain = keys is None and headers is None
    count: i64 = 0
    size_of_batch: i64 = 0
    base_timestamp: i64 = 0
    max_timestamp: i64 = 0
    row: i64 = 0
    while row < rows:
        timestamp = now_ms if timestamps is None else read_i64_le(timestamps, 8 * row)
        if headers is not None:
            tail = _headers(headers, row)
        key_size: i64 = -1 if keys is None else keys.length(row)
        value_start = value_end
        value_end = i64(read_i32_le(offsets, 4 * row + 4))
        value_size = values.length(row) if has_nulls else value_end - value_start
        # The usual sizes of varints are worked out in place: a call for each would cost as much as all the rest.
        fixed = value_size + (4 if value_size < 64 else 5)
        if not plain or value_size >= 8192 or value_size < 0:
            fixed = 1 + varint_size(key_size) + varint_size(value_size) + i64(len(tail))
            fixed += max(key_size, i64(0)) + max(value_size, i64(0))
        # What the record takes at most: its deltas are not known before it is clear which batch it goes to.
        if count > 0 and HEADER_SIZE + size_of_batch + fixed + 25 > batch_bytes:
            framed.batches.append(FramedBatch(int(count), int(size_of_batch), int(base_timestamp), int(max_timestamp)))
            count = 0
            size_of_batch = 0
            if more_follows and last_end - value_start + 8 * (rows - row) < batch_bytes:
                break  # what is left is not enough for another batch; that is found out at the end as well
        if count == 0:
            base_timestamp = timestamp
            max_timestamp = timestamp
        elif timestamp > max_timestamp:
            max_timestamp = timestamp
        delta = timestamp - base_timestamp
        size = fixed + (1 if count < 64 else 2) + 1
        if count >= 8192 or delta < -64 or delta >= 64:
            size = fixed + varint_size(delta) + varint_size(count)
        whole = size + (1 if size < 64 else 2)
        if size >= 8192:
            whole = size + varint_size(size)
        if HEADER_SIZE + whole > request_bytes and framed.too_large < 0:
            framed.too_large = int(row)
            framed.too_large_size = int(HEADER_SIZE + whole)
        if not (plain and row > 0 and framed.add_plain(size, delta, count, value_start, value_size)):
            framed.add(
                keys, values, row=row, size=size, delta=delta, count=count, key_size=key_size, value_size=value_size
            )
            if framed.lacks_data:
                return framed
        framed.tail = tail
        size_of_batch += whole
        count += 1
        row += 1
    framed.framing.write(framed.tail)
    framed.end_piece()
    framed.rows = int(row)
    if more_follows and framed.batches:
        framed.rows = int(row - count)
    elif count > 0:
        framed.batches.append(FramedBatch(int(count), int(size_of_batch), int(base_timestamp), int(max_timestamp)))
    return framed


def _as_varint(value: i64) -> i64:
    """The one or two bytes of a varint, the first one lowest; for values from -8192 to 8191."""
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return raw
    return (raw & 0x7F) | 0x80 | ((raw >> 7) << 8)


def _headers(headers: HeaderColumn, row: i64) -> bytes:
    """One row's headers as they end its record."""
    tail = BytesWriter()
    base = i64(read_i32_le(headers.offsets, 0))
    first = i64(read_i32_le(headers.offsets, 4 * row)) - base
    behind = i64(read_i32_le(headers.offsets, 4 * row + 4)) - base
    validity = headers.validity
    place = headers.first_bit + row
    if validity is not None and (i64(validity[place >> 3]) >> (place & 7)) & 1 == 0:
        behind = first
    write_varint(tail, behind - first)
    while first < behind:
        _write_bytes(tail, headers.names, first)
        _write_bytes(tail, headers.values, first)
        first += 1
    return tail.getvalue()


def _write_bytes(writer: BytesWriter, column: BinaryColumn, row: i64) -> None:
    """Byte by byte: headers are short."""
    size = column.length(row)
    write_varint(writer, size)
    if size <= 0:
        return
    data = column.data
    index = column.start(row) - column.data_start
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
            start = keys.start(row) - keys.data_start
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
