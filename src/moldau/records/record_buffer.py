"""Fills one batch record by record on the producer's hot path: one pass over each record, no object kept for it.

The bytes are those of BatchBuilder. What differs is the life of the batch: it is open, then sealed (the records are
taken out of the writer, which serves another batch), then closed (compressed, once); and the header, whose producer
fields may change between tries, is put before the records as often as needed.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from moldau.records.batch import HEADER_SIZE, NO_LEADER_EPOCH, NO_TIMESTAMP, TRANSACTIONAL_FLAG, BatchHeader
from moldau.records.builder import header_start, header_tail
from moldau.records.codecs import NONE, compress, decompress
from moldau.records.crc import crc32c
from moldau.records.varints import varint_size, write_varint
from moldau.records.walk import DECOMPRESSED_BYTES_MAX, Record, parse_records

Headers = list[tuple[str, bytes | None]]
# A view is one of bytes, of any owner, that nobody changes.
Body = bytes | memoryview

# What one record adds at most beside its key, value and headers: lengths, attributes, deltas.
RECORD_OVERHEAD: Final = 36
# What one header adds at most beside its name and value.
HEADER_OVERHEAD: Final = 10


class RecordBuffer:
    """Records of one batch: open, then sealed, then closed."""

    def __init__(self, codec: int = NONE, level: int = -1, writer: BytesWriter | None = None) -> None:
        """The writer is an empty one, to be had back from seal()."""
        self.codec: int = codec
        self.level: int = level
        self.records_count: i64 = 0
        self.base_timestamp: i64 = NO_TIMESTAMP
        self.max_timestamp: i64 = NO_TIMESTAMP
        # The size of the batch before compression, header included.
        self.size: i64 = HEADER_SIZE
        self._writer: BytesWriter | None = BytesWriter() if writer is None else writer
        # The records, once sealed; compressed, once closed.
        self._body: Body = b""
        self._closed: bool = False

    def append(self, timestamp: i64, key: bytes | None, value: bytes | None, headers: Headers | None) -> None:
        """Adds one record behind the others."""
        writer = self._writer
        assert writer is not None
        if self.records_count == 0:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        timestamp_delta = timestamp - self.base_timestamp
        offset_delta = self.records_count
        key_size: i64 = -1 if key is None else len(key)
        value_size: i64 = -1 if value is None else len(value)
        size = 1 + small_size(timestamp_delta) + small_size(offset_delta) + small_size(key_size)
        size += small_size(value_size) + max(key_size, i64(0)) + max(value_size, i64(0))
        if headers:
            self._append_with_headers(writer, size, timestamp_delta, key, value, headers)
        else:
            write_small(writer, size + 1)
            writer.append(0)
            write_small(writer, timestamp_delta)
            write_small(writer, offset_delta)
            write_small(writer, key_size)
            if key is not None:
                writer.write(key)
            write_small(writer, value_size)
            if value is not None:
                writer.write(value)
            writer.append(0)
        self.records_count = offset_delta + 1
        self.size = HEADER_SIZE + len(writer)

    def _append_with_headers(
        self,
        writer: BytesWriter,
        size: i64,
        timestamp_delta: i64,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
    ) -> None:
        tail = BytesWriter()
        write_varint(tail, len(headers))
        for name, header_value in headers:
            _write_sized(tail, name.encode())
            _write_sized(tail, header_value)
        write_varint(writer, size + len(tail))
        writer.append(0)
        write_varint(writer, timestamp_delta)
        write_varint(writer, self.records_count)
        _write_sized(writer, key)
        _write_sized(writer, value)
        writer.write(tail.getvalue())

    def set_encoded(self, data: Body, records_count: i64, base_timestamp: i64, max_timestamp: i64) -> None:
        """Takes over records that are encoded already, in place of any others; sealed from then on."""
        self._writer = None
        self._body = data
        self.records_count = records_count
        self.base_timestamp = base_timestamp
        self.max_timestamp = max_timestamp
        self.size = HEADER_SIZE + len(data)

    def seal(self) -> BytesWriter | None:
        """Nothing can be appended afterwards. Returns the writer, emptied, if it was not sealed before."""
        writer = self._writer
        if writer is not None:
            self._writer = None
            self._body = writer.getvalue()
            writer.truncate(0)
        return writer

    def close(self) -> None:
        """Compresses the records."""
        self.seal()
        if not self._closed:
            self._closed = True
            if self.codec != NONE:
                self._body = compress(self.codec, _as_bytes(self._body), self.level)

    def parts(
        self, producer_id: i64, producer_epoch: i64, base_sequence: i64, transactional: bool = False
    ) -> list[Body]:
        """The header with these producer fields, and the records of the closed batch: nothing is copied."""
        attributes = i64(self.codec)
        if transactional:
            attributes |= TRANSACTIONAL_FLAG
        count = self.records_count
        tail = header_tail(
            attributes=attributes,
            last_offset_delta=count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=count,
        )
        body = self._body
        crc: int = crc32c(body, crc32c(tail))
        return [header_start(0, HEADER_SIZE + len(body), NO_LEADER_EPOCH, crc) + tail, body]

    def batch(self, producer_id: i64, producer_epoch: i64, base_sequence: i64, transactional: bool = False) -> bytes:
        """The same in one piece."""
        return b"".join(self.parts(producer_id, producer_epoch, base_sequence, transactional))

    def read(self) -> list[Record]:
        """The records of the closed batch, to be put into smaller ones."""
        body = _as_bytes(self._body)
        if self.codec != NONE:
            body = decompress(self.codec, body, DECOMPRESSED_BYTES_MAX)
        header = BatchHeader(
            0,
            0,
            self.size,
            partition_leader_epoch=-1,
            magic=2,
            crc=0,
            attributes=0,
            last_offset_delta=self.records_count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=0,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            records_count=self.records_count,
        )
        return parse_records(body, header)


def _as_bytes(body: Body) -> bytes:
    return body if isinstance(body, bytes) else bytes(body)


def record_bytes_max(key: bytes | None, value: bytes | None, headers: Headers | None) -> i64:
    """At most so many bytes does the record take in a batch, before compression."""
    size: i64 = RECORD_OVERHEAD
    if key is not None:
        size += len(key)
    if value is not None:
        size += len(value)
    if headers:
        for name, data in headers:
            size += HEADER_OVERHEAD + 4 * len(name)
            if data is not None:
                size += len(data)
    return size


def small_size(value: i64) -> i64:
    """varint_size without a loop for what nearly all numbers are."""
    if -64 <= value < 64:
        return 1
    if -8192 <= value < 8192:
        return 2
    return varint_size(value)


def write_small(writer: BytesWriter, value: i64) -> None:
    """write_varint without a loop for what nearly all numbers are."""
    raw = (value << 1) ^ (value >> 63)
    if 0 <= raw < 0x80:
        writer.append(raw)
    elif 0 <= raw < 0x4000:
        writer.append((raw & 0x7F) | 0x80)
        writer.append(raw >> 7)
    else:
        write_varint(writer, value)


def _write_sized(writer: BytesWriter, value: bytes | None) -> None:
    if value is None:
        writer.append(1)
    else:
        write_varint(writer, len(value))
        writer.write(value)
