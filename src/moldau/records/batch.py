"""The 61 bytes in front of every record batch: where each field lies, how it is read and checked.

Layout: a batch of magic 2. The crc covers everything from the attributes on, so base offset and leader epoch may be set
without touching it. Batches of magic 0 and 1 are not read: Apache Kafka 4 does not accept them either.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i16_be, read_i32_be, read_i64_be
from mypy_extensions import i64

from moldau.records.crc import crc32c

BASE_OFFSET: Final = 0
BATCH_LENGTH: Final = 8
PARTITION_LEADER_EPOCH: Final = 12
MAGIC: Final = 16
CRC: Final = 17
ATTRIBUTES: Final = 21
# The second of the two bytes has every flag that is in use.
ATTRIBUTES_LOW_BYTE: Final = 22
LAST_OFFSET_DELTA: Final = 23
BASE_TIMESTAMP: Final = 27
MAX_TIMESTAMP: Final = 35
PRODUCER_ID: Final = 43
PRODUCER_EPOCH: Final = 51
BASE_SEQUENCE: Final = 53
RECORDS_COUNT: Final = 57
HEADER_SIZE: Final = 61

# Base offset and batch length: what the size of a batch does not count.
LENGTH_OVERHEAD: Final = 12
# Up to the magic byte all formats agree; fewer bytes than this cannot be told apart.
SIZE_UP_TO_MAGIC: Final = 17
# The smallest length that any format ever had; below it the bytes are not a batch at all.
SMALLEST_BATCH_LENGTH: Final = 14

CURRENT_MAGIC: Final = 2

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_LEADER_EPOCH: Final = -1

SEQUENCE_MODULUS: Final = 0x80000000


class CorruptBatch(Exception):
    """The bytes are not a record batch, or not the one that was written."""


class BatchHeader:
    """The fields of one batch; `position` is where it starts in the bytes it was read from."""

    def __init__(
        self,
        position: i64,
        base_offset: i64,
        size: i64,
        *,
        partition_leader_epoch: i64,
        magic: i64,
        crc: i64,
        attributes: i64,
        last_offset_delta: i64,
        base_timestamp: i64,
        max_timestamp: i64,
        producer_id: i64,
        producer_epoch: i64,
        base_sequence: i64,
        records_count: i64,
    ) -> None:
        self.position: i64 = position
        self.base_offset: i64 = base_offset
        self.size: i64 = size
        self.partition_leader_epoch: i64 = partition_leader_epoch
        self.magic: i64 = magic
        self.crc: i64 = crc
        self.attributes: i64 = attributes
        self.last_offset_delta: i64 = last_offset_delta
        self.base_timestamp: i64 = base_timestamp
        self.max_timestamp: i64 = max_timestamp
        self.producer_id: i64 = producer_id
        self.producer_epoch: i64 = producer_epoch
        self.base_sequence: i64 = base_sequence
        self.records_count: i64 = records_count

    @property
    def end(self) -> i64:
        """The index behind the last byte of the batch."""
        return self.position + self.size

    @property
    def last_offset(self) -> i64:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> i64:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> i64:
        return self.attributes & CODEC_MASK

    @property
    def is_log_append_time(self) -> bool:
        return self.attributes & LOG_APPEND_TIME_FLAG != 0

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_FLAG != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_FLAG != 0

    @property
    def has_delete_horizon(self) -> bool:
        return self.attributes & DELETE_HORIZON_FLAG != 0

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> i64:
        """The sequence number of the last record; sequences go on at 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        last = self.base_sequence + self.last_offset_delta
        if last >= SEQUENCE_MODULUS:
            last -= SEQUENCE_MODULUS
        return last

    def __repr__(self) -> str:
        return (
            f"BatchHeader(offsets {self.base_offset}..{self.last_offset}, size={self.size}, "
            f"leader_epoch={self.partition_leader_epoch}, attributes=0x{self.attributes:02x}, "
            f"records={self.records_count}, producer={self.producer_id}/{self.producer_epoch}/{self.base_sequence})"
        )


def read_header(data: bytes, position: i64, end: i64) -> BatchHeader:
    """The header of the batch at `position`, which must lie wholly before `end`; its crc is not looked at."""
    if position < 0 or end > len(data) or end - position < HEADER_SIZE:
        raise CorruptBatch(f"{end - position} bytes are too few for a batch header")
    length = i64(read_i32_be(data, position + BATCH_LENGTH))
    size = length + LENGTH_OVERHEAD
    if size < HEADER_SIZE:
        raise CorruptBatch(f"batch size {size} is less than the batch header ({HEADER_SIZE})")
    if size > end - position:
        raise CorruptBatch(f"batch of {size} bytes does not fit into the {end - position} bytes that are there")
    magic = i64(data[position + MAGIC])
    if magic != CURRENT_MAGIC:
        raise CorruptBatch(f"magic {magic} is not supported")
    return header_at(data, position, size)


def header_at(data: bytes, position: i64, size: i64) -> BatchHeader:
    """Reads the fields without a check; for bytes whose bounds, size and magic are known to be good."""
    return BatchHeader(
        position,
        read_i64_be(data, position + BASE_OFFSET),
        size,
        partition_leader_epoch=i64(read_i32_be(data, position + PARTITION_LEADER_EPOCH)),
        magic=i64(data[position + MAGIC]),
        crc=i64(read_i32_be(data, position + CRC)) & 0xFFFFFFFF,
        attributes=i64(read_i16_be(data, position + ATTRIBUTES)) & 0xFFFF,
        last_offset_delta=i64(read_i32_be(data, position + LAST_OFFSET_DELTA)),
        base_timestamp=read_i64_be(data, position + BASE_TIMESTAMP),
        max_timestamp=read_i64_be(data, position + MAX_TIMESTAMP),
        producer_id=read_i64_be(data, position + PRODUCER_ID),
        producer_epoch=i64(read_i16_be(data, position + PRODUCER_EPOCH)),
        base_sequence=i64(read_i32_be(data, position + BASE_SEQUENCE)),
        records_count=i64(read_i32_be(data, position + RECORDS_COUNT)),
    )


def has_valid_crc(data: bytes, header: BatchHeader) -> bool:
    """Whether the crc in the header is that of the bytes behind it."""
    start = header.position + ATTRIBUTES
    return crc32c(memoryview(data)[start : header.position + header.size]) == header.crc


def split_batches(data: bytes, start: i64, end: i64) -> list[BatchHeader]:
    """The headers of the whole batches from `start` on; bytes at the end that are not a whole batch are left out."""
    headers: list[BatchHeader] = []
    position = start
    while end - position >= LENGTH_OVERHEAD:
        size = i64(read_i32_be(data, position + BATCH_LENGTH)) + LENGTH_OVERHEAD
        if size < HEADER_SIZE:
            raise CorruptBatch(f"batch size {size} is less than the batch header ({HEADER_SIZE})")
        if size > end - position:
            break
        headers.append(read_header(data, position, end))
        position += size
    return headers
