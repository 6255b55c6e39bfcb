"""Writes record batches, byte for byte as Kafka's own builder does; also the control batches.

Offsets are given or run on by themselves; timestamps are stored relative to the first record's. The 61 header bytes are
written last, when count, sizes and crc are known.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be, write_i64_be
from mypy_extensions import i16, i32, i64

from moldau.records.batch import (
    ATTRIBUTES,
    CONTROL_FLAG,
    CURRENT_MAGIC,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_FLAG,
)
from moldau.records.codecs import DEFAULT_LEVEL, NONE, compress
from moldau.records.crc import crc32c
from moldau.records.varints import varint_size, write_varint

# Types of control records: the second number of their key.
ABORT: Final = 0
COMMIT: Final = 1
LEADER_CHANGE: Final = 2
SNAPSHOT_HEADER: Final = 3
SNAPSHOT_FOOTER: Final = 4
KRAFT_VERSION: Final = 5
KRAFT_VOTERS: Final = 6


class BatchBuilder:
    """Collects records and makes one batch of them."""

    def __init__(
        self,
        base_offset: int = 0,
        codec: int = NONE,
        level: int = DEFAULT_LEVEL,
        delete_horizon_ms: int = NO_TIMESTAMP,
    ) -> None:
        self.base_offset: i64 = base_offset
        self.codec: int = codec
        self.level: int = level
        self.delete_horizon_ms: i64 = delete_horizon_ms
        # With a delete horizon, that is what the base timestamp holds and what the records count from (KIP-534).
        self.base_timestamp: i64 = delete_horizon_ms
        self.max_timestamp: i64 = NO_TIMESTAMP
        self.last_offset: i64 = base_offset - 1
        self.records_count: i64 = 0
        self._records: BytesWriter = BytesWriter()

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]] | None = None,
    ) -> int:
        """Adds a record at the next offset, which is returned."""
        offset = int(self.last_offset) + 1
        self.append_at(offset, timestamp, key, value, headers)
        return offset

    def append_at(
        self,
        offset: i64,
        timestamp: i64,
        key: bytes | None,
        value: bytes | None,
        headers: list[tuple[str, bytes | None]] | None = None,
    ) -> None:
        """Adds a record at an offset above the last one; compaction leaves gaps."""
        if offset <= self.last_offset:
            raise ValueError(f"offset {offset} is not above the last offset {self.last_offset}")
        if self.records_count == 0 and self.delete_horizon_ms == NO_TIMESTAMP:
            self.base_timestamp = timestamp
        _write_record(self._records, timestamp - self.base_timestamp, offset - self.base_offset, key, value, headers)
        self.last_offset = offset
        self.records_count += 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp

    def encoded_records(self) -> bytes:
        """The records alone, not compressed."""
        return self._records.getvalue()

    @property
    def uncompressed_size(self) -> int:
        """The size of the batch if it is not compressed, which it rarely exceeds by more than the codec's framing."""
        return len(self._records) + HEADER_SIZE

    def build(
        self,
        *,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        partition_leader_epoch: int = NO_LEADER_EPOCH,
        transactional: bool = False,
        control: bool = False,
        log_append_time_ms: int = NO_TIMESTAMP,
        last_offset: int = -1,
    ) -> bytes:
        """The finished batch. `log_append_time_ms`, if given, is every record's time; `last_offset` adds a gap."""
        attributes = self.codec
        if log_append_time_ms != NO_TIMESTAMP:
            attributes |= LOG_APPEND_TIME_FLAG
        if transactional:
            attributes |= TRANSACTIONAL_FLAG
        if control:
            attributes |= CONTROL_FLAG
        if self.delete_horizon_ms != NO_TIMESTAMP:
            attributes |= DELETE_HORIZON_FLAG
        last = max(int(self.last_offset), last_offset)
        return assemble_batch(
            compress(self.codec, self._records.getvalue(), self.level),
            self.base_offset,
            partition_leader_epoch=partition_leader_epoch,
            attributes=attributes,
            last_offset_delta=i64(last) - self.base_offset,
            base_timestamp=self.base_timestamp if self.records_count > 0 else i64(NO_TIMESTAMP),
            max_timestamp=self.max_timestamp if log_append_time_ms == NO_TIMESTAMP else i64(log_append_time_ms),
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self.records_count,
        )


def record_size(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]] | None = None,
) -> int:
    """How many bytes a record takes in a batch that is not compressed."""
    size = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + _bytes_size(key) + _bytes_size(value)
    if headers:
        size += varint_size(len(headers))
        for name, header_value in headers:
            size += _bytes_size(name.encode()) + _bytes_size(header_value)
    else:
        size += 1
    return int(size + varint_size(size))


def _bytes_size(value: bytes | None) -> i64:
    return 1 if value is None else varint_size(len(value)) + len(value)


def _write_record(
    writer: BytesWriter,
    timestamp_delta: i64,
    offset_delta: i64,
    key: bytes | None,
    value: bytes | None,
    headers: list[tuple[str, bytes | None]] | None,
) -> None:
    if headers:
        tail = _encode_headers(headers)
    else:
        tail = b"\x00"
    size = varint_size(timestamp_delta) + varint_size(offset_delta) + _bytes_size(key) + _bytes_size(value)
    write_varint(writer, 1 + size + len(tail))
    writer.append(0)
    write_varint(writer, timestamp_delta)
    write_varint(writer, offset_delta)
    _write_bytes(writer, key)
    _write_bytes(writer, value)
    writer.write(tail)


def _write_bytes(writer: BytesWriter, value: bytes | None) -> None:
    if value is None:
        writer.append(1)
    else:
        write_varint(writer, len(value))
        writer.write(value)


def _encode_headers(headers: list[tuple[str, bytes | None]]) -> bytes:
    writer = BytesWriter()
    write_varint(writer, len(headers))
    for name, value in headers:
        _write_bytes(writer, name.encode())
        _write_bytes(writer, value)
    return writer.getvalue()


def assemble_batch(
    body: bytes,
    base_offset: i64,
    *,
    partition_leader_epoch: i64,
    attributes: i64,
    last_offset_delta: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i64,
    base_sequence: i64,
    records_count: i64,
) -> bytes:
    """A batch of header fields and records that are encoded, and compressed as the attributes say."""
    tail = header_tail(
        attributes=attributes,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=records_count,
    )
    crc: int = crc32c(body, crc32c(tail))
    writer = BytesWriter()
    writer.write(header_start(base_offset, HEADER_SIZE + len(body), partition_leader_epoch, crc))
    writer.write(tail)
    writer.write(body)
    return writer.getvalue()


def header_start(base_offset: i64, size: i64, partition_leader_epoch: i64, crc: i64) -> bytes:
    """The 21 bytes of a header that its crc does not cover; `size` is that of the whole batch."""
    writer = BytesWriter()
    write_i64_be(writer, base_offset)
    _write_int32(writer, size - LENGTH_OVERHEAD)
    _write_int32(writer, partition_leader_epoch)
    writer.append(CURRENT_MAGIC)
    _write_int32(writer, crc - 0x100000000 if crc >= 0x80000000 else crc)
    return writer.getvalue()


def header_tail(
    *,
    attributes: i64,
    last_offset_delta: i64,
    base_timestamp: i64,
    max_timestamp: i64,
    producer_id: i64,
    producer_epoch: i64,
    base_sequence: i64,
    records_count: i64,
) -> bytes:
    """The 40 bytes of a header that its crc covers, from the attributes on."""
    writer = BytesWriter()
    _write_int16(writer, attributes - 0x10000 if attributes >= 0x8000 else attributes)
    _write_int32(writer, last_offset_delta)
    write_i64_be(writer, base_timestamp)
    write_i64_be(writer, max_timestamp)
    write_i64_be(writer, producer_id)
    _write_int16(writer, producer_epoch)
    _write_int32(writer, base_sequence)
    _write_int32(writer, records_count)
    assert len(writer) == HEADER_SIZE - ATTRIBUTES
    return writer.getvalue()


def _write_int32(writer: BytesWriter, value: i64) -> None:
    write_i32_be(writer, i32(value))


def _write_int16(writer: BytesWriter, value: i64) -> None:
    write_i16_be(writer, i16(value))


def control_key(control_type: int) -> bytes:
    """The key of a control record: version 0 and the type."""
    return b"\x00\x00\x00" + bytes([control_type])


def control_batch(
    base_offset: int,
    partition_leader_epoch: int,
    timestamp: int,
    records: list[tuple[int, bytes]],
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    transactional: bool = False,
) -> bytes:
    """A control batch of (type, encoded value) pairs: leader change, snapshot header and footer, version, voters."""
    builder = BatchBuilder(base_offset)
    for control_type, value in records:
        builder.append(timestamp, control_key(control_type), value)
    return builder.build(
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
        transactional=transactional,
        control=True,
    )


def end_transaction_batch(
    base_offset: int,
    partition_leader_epoch: int,
    timestamp: int,
    producer_id: int,
    producer_epoch: int,
    commit: bool,
    coordinator_epoch: int,
) -> bytes:
    """The marker that ends a producer's transaction in one partition."""
    value = b"\x00\x00" + coordinator_epoch.to_bytes(4, "big", signed=True)
    return control_batch(
        base_offset,
        partition_leader_epoch,
        timestamp,
        [(COMMIT if commit else ABORT, value)],
        producer_id,
        producer_epoch,
        transactional=True,
    )
