"""Reads the batches and records of a log file for people who look into it: as far as they make sense, and no further.

Unlike recovery nothing here repairs or stops early: a batch with a wrong checksum is still handed out, and what cannot
be read raises Unreadable, with the words and the name of the exception that Kafka's own reader has for it.
"""

from __future__ import annotations

import zlib

from moldau.records.batch import (
    ATTRIBUTES,
    BATCH_LENGTH,
    CURRENT_MAGIC,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_SEQUENCE,
    SEQUENCE_MODULUS,
    SIZE_UP_TO_MAGIC,
    SMALLEST_BATCH_LENGTH,
    BatchHeader,
    CorruptBatch,
    header_at,
)
from moldau.records.crc import crc32c
from moldau.records.varints import read_varint, read_varlong
from moldau.records.walk import Record, parse_records, records_bytes
from moldau.storage.disk import File

WINDOW_BYTES = 1 << 20
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
INVALID_RECORD = "org.apache.kafka.common.InvalidRecordException"
CORRUPT_RECORD = "org.apache.kafka.common.errors.CorruptRecordException"


class Unreadable(Exception):
    """Bytes that are no batch or no record; `kafka_class` is the exception that Kafka's reader throws."""

    def __init__(self, kafka_class: str, message: str) -> None:
        super().__init__(message)
        self.kafka_class = kafka_class


class Batch:
    """One batch: its header, where it lies in the file, and the bytes that hold it."""

    def __init__(self, header: BatchHeader, position: int, data: bytes) -> None:
        self.header = header
        self.position = position
        self.data = data

    def is_valid(self) -> bool:
        """Whether the checksum is right."""
        start = self.header.position
        if self.header.magic < CURRENT_MAGIC:
            return zlib.crc32(memoryview(self.data)[start + MAGIC : start + self.header.size]) == self.header.crc
        return crc32c(memoryview(self.data)[start + ATTRIBUTES : start + self.header.size]) == self.header.crc

    def codec_name(self) -> str:
        if self.header.codec >= len(CODEC_NAMES):
            message = f"Unknown compression type id: {self.header.codec}"
            raise Unreadable("java.lang.IllegalArgumentException", message)
        return CODEC_NAMES[self.header.codec]

    def sequence_of(self, record: Record) -> int:
        first = int(self.header.base_sequence)
        if first < 0:
            return NO_SEQUENCE
        return (first + record.offset - int(self.header.base_offset)) % SEQUENCE_MODULUS


class BatchReader:
    """Hands out the batches between two positions of a file, reading it in large pieces."""

    def __init__(self, file: File, start: int = 0, end: int | None = None) -> None:
        size = file.size()
        self.file = file
        self.position = start  # of the next batch
        self.end = size if end is None else min(end, size)
        self._window = b""
        self._window_start = 0

    def next(self) -> Batch | None:
        """None at the end, which bytes that are no whole batch do not move: `position` stays in front of them."""
        if self.position >= self.end - SIZE_UP_TO_MAGIC:
            return None
        index = self._load(self.position, SIZE_UP_TO_MAGIC)
        length = int.from_bytes(self._window[index + BATCH_LENGTH : index + LENGTH_OVERHEAD], "big", signed=True)
        if length < SMALLEST_BATCH_LENGTH:
            raise Unreadable(
                CORRUPT_RECORD,
                f"Found record size {length} smaller than minimum record overhead ({SMALLEST_BATCH_LENGTH})"
                f" in file {self.file.path}.",
            )
        size = length + LENGTH_OVERHEAD
        if self.position > self.end - size:
            return None
        index = self._load(self.position, size)
        if self._window[index + MAGIC] < CURRENT_MAGIC:
            header = legacy_header(self._window, index, size)
        elif size < HEADER_SIZE:
            raise Unreadable(INVALID_RECORD, f"The batch at position {self.position} has only {size} bytes")
        else:
            header = header_at(self._window, index, size)
        batch = Batch(header, self.position, self._window)
        self.position += size
        return batch

    def _load(self, position: int, size: int) -> int:
        """Makes sure that the window has these bytes; returns where in it they begin."""
        index = position - self._window_start
        if index < 0 or index + size > len(self._window):
            self._window = self.file.read(position, min(max(size, WINDOW_BYTES), self.end - position))
            self._window_start = position
            index = 0
        return index


def legacy_header(data: bytes, index: int, size: int) -> BatchHeader:
    """A message of magic 0 or 1 as the header of a batch: enough to name it, its records are not read."""
    offset = int.from_bytes(data[index : index + 8], "big", signed=True)
    crc = int.from_bytes(data[index + 12 : index + 16], "big")
    timestamp = int.from_bytes(data[index + 18 : index + 26], "big", signed=True) if data[index + MAGIC] == 1 else -1
    return BatchHeader(
        index,
        offset,
        size,
        partition_leader_epoch=-1,
        magic=data[index + MAGIC],
        crc=crc,
        attributes=data[index + 17],
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=0,
    )


class RecordReader:
    """The records of one batch. `failure` is what ended them early."""

    def __init__(self, batch: Batch) -> None:
        self.records: list[Record] = []
        self.failure: Unreadable | None = None
        if batch.header.magic < CURRENT_MAGIC:
            self.failure = Unreadable(INVALID_RECORD, f"Records of magic {batch.header.magic} are not read")
            return
        try:
            body = records_bytes(batch.data, batch.header)
        except CorruptBatch as error:
            self.failure = Unreadable("org.apache.kafka.common.KafkaException", str(error))
            return
        try:
            self.records = parse_records(body, batch.header)
        except CorruptBatch:
            self._read_slowly(body, batch.header)

    def _read_slowly(self, body: bytes, header: BatchHeader) -> None:
        """Record for record, so that those in front of the damage are there."""
        position = 0
        try:
            if header.records_count < 0:
                message = f"Found invalid record count {header.records_count} in magic v{header.magic} batch"
                raise Unreadable(INVALID_RECORD, message)
            for _ in range(header.records_count):
                record, position = read_record(body, position, header)
                self.records.append(record)
            if position != len(body) and self.records:
                self.records.pop()  # with the last record comes the look at what follows it
                message = "Incorrect declared batch size, records still remaining in file"
                raise Unreadable(INVALID_RECORD, message)
        except Unreadable as failure:
            self.failure = failure
        except (IndexError, CorruptBatch, ValueError):
            self.failure = Unreadable(INVALID_RECORD, "Found invalid record structure")


def read_record(body: bytes, position: int, header: BatchHeader) -> tuple[Record, int]:
    """One record and where the next begins; what is wrong with it is said as Kafka says it."""
    try:
        size, start = read_varint(body, position)
    except IndexError:
        raise Unreadable(INVALID_RECORD, "Incorrect declared batch size, premature EOF reached") from None
    if size > len(body) - start:
        raise Unreadable(
            INVALID_RECORD,
            f"Invalid record size: expected {size} bytes in record payload, but instead the buffer has only"
            f" {len(body) - start} remaining bytes.",
        )
    timestamp_delta, position = read_varlong(body, start + 1)
    offset_delta, position = read_varint(body, position)
    key, position = _read_bytes(body, position)
    value, position = _read_bytes(body, position)
    count, position = read_varint(body, position)
    if count < 0:
        raise Unreadable(INVALID_RECORD, f"Found invalid number of record headers {count}")
    if count > len(body) - position:
        message = f"Found invalid number of record headers. {count} is larger than the remaining size of the buffer"
        raise Unreadable(INVALID_RECORD, message)
    headers = []
    for _ in range(count):
        name_size, position = read_varint(body, position)
        if name_size < 0:
            raise Unreadable(INVALID_RECORD, f"Invalid negative header key size {name_size}")
        name, position = _take(body, position, name_size)
        header_value, position = _read_bytes(body, position)
        headers.append((name.decode("utf-8", "replace"), header_value))
    if position - start != size:
        raise Unreadable(
            INVALID_RECORD,
            f"Invalid record size: expected to read {size} bytes in record payload, but instead read"
            f" {position - start}",
        )
    timestamp = int(header.max_timestamp if header.is_log_append_time else header.base_timestamp + timestamp_delta)
    return Record(int(header.base_offset + offset_delta), timestamp, key, value, headers), position


def _read_bytes(body: bytes, position: int) -> tuple[bytes | None, int]:
    size, position = read_varint(body, position)
    return (None, position) if size < 0 else _take(body, position, size)


def _take(body: bytes, position: int, size: int) -> tuple[bytes, int]:
    if size > len(body) - position:
        raise IndexError("a field reaches beyond the end of the records")
    return body[position : position + size], position + size
