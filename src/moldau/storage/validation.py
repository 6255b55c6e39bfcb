"""Checks what a producer sent and turns it into bytes for the log: offsets, leader epoch, timestamps, compression.

The checks, their order and their error codes are those of Apache Kafka's produce path (ProduceRequest.validateRecords,
then UnifiedLog.analyzeAndValidateRecords, then LogValidator). Two differences, both for batches that no client builds:
offset deltas that do not run 0, 1, 2, … are refused also when the batch is not compressed, and a record whose length is
wrong is refused also when the batch is.

The body of a batch is not copied, unless it is so small that a copy costs less than a view: what goes to the file is
a new start of its header and a view of the rest.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_be, read_i64_be, write_i32_be, write_i64_be
from mypy_extensions import i32, i64

from moldau.protocol.errors import (
    CORRUPT_MESSAGE,
    INVALID_RECORD,
    INVALID_TIMESTAMP,
    MESSAGE_TOO_LARGE,
    UNKNOWN_SERVER_ERROR,
    KafkaError,
)
from moldau.records.batch import (
    ATTRIBUTES,
    BATCH_LENGTH,
    CODEC_MASK,
    CONTROL_FLAG,
    CURRENT_MAGIC,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    LOG_APPEND_TIME_FLAG,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    SIZE_UP_TO_MAGIC,
    SMALLEST_BATCH_LENGTH,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    CorruptBatch,
    header_at,
)
from moldau.records.builder import BatchBuilder, header_start, header_tail
from moldau.records.codecs import (
    DEFAULT_LEVEL,
    LZ4,
    NONE,
    ZSTD,
    DecompressedTooLarge,
    compress,
    decompress,
    has_linked_lz4_blocks,
)
from moldau.records.crc import crc32c
from moldau.records.walk import (
    DECOMPRESSED_BYTES_MAX,
    HIGHEST_LONG,
    KEY_MISSING,
    LOWEST_LONG,
    OFFSETS_WITH_GAPS,
    REWRITE_NEEDED,
    TIMESTAMP_OUT_OF_RANGE,
    Record,
    check_records,
    parse_records,
)

# Who appends: a client through Produce, a coordinator on its own log, the leader of the metadata quorum.
CLIENT: Final = 0
COORDINATOR: Final = 1
RAFT_LEADER: Final = 2

# compression_type of a topic that keeps what the producer chose.
PRODUCER_COMPRESSION: Final = -1

# As a constant the function is reached without a lookup in the module.
CRC32C: Final = crc32c

# Base offset, length and leader epoch: the bytes of a header that are new for every batch.
REWRITTEN_SIZE: Final = 16
KNOWN_ATTRIBUTES: Final = CODEC_MASK | LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG | DELETE_HORIZON_FLAG
ERRORS_SHOWN_MAX: Final = 3
# Up to this size bytes are copied faster than two views of them are made.
COPIED_SIZE_MAX: Final = 4096


class InvalidRecords(KafkaError):
    """The records are refused. `client_message` is what the response may say: Kafka is silent about most reasons."""

    def __init__(
        self,
        code: int,
        message: str,
        record_errors: list[tuple[int, str | None]] | None = None,
        client_message: str | None = None,
    ) -> None:
        super().__init__(code, message)
        self.record_errors: list[tuple[int, str | None]] = [] if record_errors is None else record_errors
        self.client_message: str | None = client_message


class NotOneBatch(InvalidRecords):
    """A produce request must bring one whole batch of magic 2 per partition; refused before the log is asked."""


class ValidationRules:
    """What one log asks of the records that are appended to it."""

    def __init__(
        self,
        *,
        compression_type: int = PRODUCER_COMPRESSION,
        level: int = DEFAULT_LEVEL,
        log_append_time: bool = False,
        before_max_ms: int = HIGHEST_LONG,
        after_max_ms: int = 3_600_000,
        max_message_bytes: int = 1_048_588,
        compacted: bool = False,
        topic_partition: str = "",
        decompressed_bytes_max: int = DECOMPRESSED_BYTES_MAX,
    ) -> None:
        self.compression_type: i64 = compression_type
        self.level: int = level
        self.log_append_time: bool = log_append_time
        self.before_max_ms: i64 = before_max_ms
        self.after_max_ms: i64 = after_max_ms
        self.max_message_bytes: i64 = max_message_bytes
        self.compacted: bool = compacted
        self.topic_partition: str = topic_partition
        self.decompressed_bytes_max: int = decompressed_bytes_max


class ValidatedBatches:
    """Batches that may be appended: `parts` are their bytes, to be written one after the other.

    `batches` have their final offsets, and positions within those bytes. `offset_of_max_timestamp` is the last offset
    of the batch that has the largest timestamp: what the time index stores.
    """

    def __init__(
        self,
        parts: list[bytes | memoryview],
        size: i64,
        batches: list[BatchHeader],
        *,
        first_offset: i64,
        last_offset: i64,
        max_timestamp: i64,
        offset_of_max_timestamp: i64,
        append_time_ms: i64,
        records_count: i64,
    ) -> None:
        self.parts: list[bytes | memoryview] = parts
        self.size: i64 = size
        self.batches: list[BatchHeader] = batches
        self.first_offset: i64 = first_offset
        self.last_offset: i64 = last_offset
        self.max_timestamp: i64 = max_timestamp
        self.offset_of_max_timestamp: i64 = offset_of_max_timestamp
        self.append_time_ms: i64 = append_time_ms
        self.records_count: i64 = records_count

    def to_bytes(self) -> bytes:
        """The parts as one piece, for logs that live in memory and for tests."""
        return b"".join(self.parts)


def validate(
    data: bytes,
    start: i64,
    end: i64,
    next_offset: i64,
    *,
    leader_epoch: i64,
    now_ms: i64,
    rules: ValidationRules,
    origin: i64 = CLIENT,
) -> ValidatedBatches:
    """The one batch in data[start:end], checked, with `next_offset` and `leader_epoch` in its header.

    The leader of the metadata quorum has numbered its batches itself: they are checked and kept as they are.
    """
    if origin == RAFT_LEADER:
        return _validate_numbered(data, start, end, leader_epoch, rules)
    size = _size_of_only_batch(data, start, end)
    header = _check_batch(data, start, size, rules, origin)
    codec = header.attributes & CODEC_MASK
    if codec == NONE:
        body, body_start, body_end = data, start + HEADER_SIZE, start + size
    else:
        body = _decompressed(data, start + HEADER_SIZE, start + size, codec, rules)
        body_start, body_end = 0, i64(len(body))
    target = rules.compression_type
    if target == PRODUCER_COMPRESSION or (codec == NONE and header.attributes & CONTROL_FLAG != 0):
        target = codec
    max_timestamp, findings = _check_body(body, body_start, body_end, header, now_ms, rules, target == codec)
    if target == codec:
        return _keep(data, header, max_timestamp, next_offset, leader_epoch, now_ms, rules)
    if body_start > 0:
        body = body[body_start:body_end]
    return _recompress(
        body,
        header,
        max_timestamp=max_timestamp,
        findings=findings,
        target=target,
        next_offset=next_offset,
        leader_epoch=leader_epoch,
        now_ms=now_ms,
        rules=rules,
    )


def _size_of_only_batch(data: bytes, start: i64, end: i64) -> i64:
    """The size of the batch at `start`, which must be whole, of magic 2, and the only one before `end`."""
    if start < 0 or end > len(data):
        raise IndexError(f"records from {start} to {end} in {len(data)} bytes")
    size = next_batch_size(data, start, end)
    if size < 0:
        raise NotOneBatch(INVALID_RECORD, "Records must hold at least one whole record batch per partition")
    if data[start + MAGIC] != CURRENT_MAGIC:
        raise NotOneBatch(INVALID_RECORD, "Only record batches of magic 2 are accepted")
    if start + size < end and _next_is_batch(data, start + size, end):
        raise NotOneBatch(INVALID_RECORD, "Records must hold exactly one record batch per partition")
    return size


def next_batch_size(data: bytes, start: i64, end: i64) -> i64:
    """The size of the batch at `start`, or -1 where there is no whole one before `end`; CORRUPT_MESSAGE for garbage."""
    if end - start < LENGTH_OVERHEAD:
        return -1
    length = i64(read_i32_be(data, start + BATCH_LENGTH))
    if length < SMALLEST_BATCH_LENGTH:
        message = f"Record size {length} is less than the minimum record overhead ({SMALLEST_BATCH_LENGTH})"
        raise InvalidRecords(CORRUPT_MESSAGE, message, client_message=message)
    if end - start < SIZE_UP_TO_MAGIC:
        return -1
    magic = i64(data[start + MAGIC])
    if magic > CURRENT_MAGIC:
        message = f"Invalid magic found in record: {magic - 256 if magic > 127 else magic}"
        raise InvalidRecords(CORRUPT_MESSAGE, message, client_message=message)
    size = length + LENGTH_OVERHEAD
    return size if size <= end - start else -1


def _next_is_batch(data: bytes, start: i64, end: i64) -> bool:
    try:
        return next_batch_size(data, start, end) >= 0
    except InvalidRecords as error:
        # About the second batch of a partition Kafka says nothing but the code.
        raise InvalidRecords(error.code, error.message) from error


def _check_batch(data: bytes, start: i64, size: i64, rules: ValidationRules, origin: i64) -> BatchHeader:
    """The header of the batch, if everything that can be told without its records is right."""
    if origin == CLIENT and read_i64_be(data, start) != 0:
        raise InvalidRecords(INVALID_RECORD, f"The base offset of a batch for {rules.topic_partition} should be 0")
    if size > rules.max_message_bytes:
        raise InvalidRecords(
            MESSAGE_TOO_LARGE,
            f"The record batch size in the append to {rules.topic_partition} is {size} bytes which exceeds the "
            f"maximum configured value of {rules.max_message_bytes}.",
        )
    if size < HEADER_SIZE:
        raise InvalidRecords(CORRUPT_MESSAGE, f"Record batch of {size} bytes for {rules.topic_partition} is too small")
    header = header_at(data, start, size)
    if crc_of(data, start + ATTRIBUTES, start + size) != header.crc:
        raise InvalidRecords(
            CORRUPT_MESSAGE,
            f"Record is corrupt (stored crc = {header.crc}) in topic partition {rules.topic_partition}.",
        )
    if header.attributes & CODEC_MASK > ZSTD:
        raise InvalidRecords(UNKNOWN_SERVER_ERROR, f"Unknown compression type id: {header.attributes & CODEC_MASK}")
    if origin == CLIENT:
        _check_client_batch(header, rules)
    return header


def crc_of(data: bytes, start: i64, end: i64) -> int:
    """The crc of data[start:end]; the library releases the GIL for large ones."""
    if end - start <= COPIED_SIZE_MAX:
        return CRC32C(data[start:end])
    return CRC32C(memoryview(data)[start:end])


def _check_client_batch(header: BatchHeader, rules: ValidationRules) -> None:
    """What coordinators may do and clients may not."""
    reason = ""
    if header.last_offset_delta < 0:
        reason = f"Batch has an invalid offset range: [0, {header.last_offset_delta}]"
    elif header.records_count <= 0:
        reason = f"Invalid reported count for record batch: {header.records_count}"
    elif header.records_count != header.last_offset_delta + 1:
        reason = f"Inconsistent batch offset range [0, {header.last_offset_delta}] and count {header.records_count}"
    elif header.attributes & CONTROL_FLAG != 0:
        reason = "Clients are not allowed to write control records"
    elif header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        reason = f"Invalid sequence number {header.base_sequence} in a batch with producer id {header.producer_id}"
    if reason:
        raise InvalidRecords(INVALID_RECORD, f"{reason} in topic partition {rules.topic_partition}")


def _decompressed(data: bytes, start: i64, end: i64, codec: i64, rules: ValidationRules) -> bytes:
    body = data[start:end]
    try:
        records = decompress(int(codec), body, rules.decompressed_bytes_max)
        if codec == LZ4 and has_linked_lz4_blocks(body, 0):
            raise CorruptBatch("lz4 blocks must be independent")
        return records
    except CorruptBatch as error:
        raise InvalidRecords(UNKNOWN_SERVER_ERROR, f"{error} in topic partition {rules.topic_partition}") from error
    except DecompressedTooLarge as too_large:
        # The code that makes producers split their batch.
        raise InvalidRecords(
            MESSAGE_TOO_LARGE, f"{too_large} in topic partition {rules.topic_partition}"
        ) from too_large


def _check_body(
    body: bytes, start: i64, end: i64, header: BatchHeader, now_ms: i64, rules: ValidationRules, kept: bool
) -> tuple[i64, i64]:
    """Walks over the records; the largest timestamp, and whether they must be written anew if they are recompressed."""
    count = header.records_count
    marked = header.attributes & LOG_APPEND_TIME_FLAG != 0
    lowest: i64 = LOWEST_LONG
    highest: i64 = HIGHEST_LONG
    if not rules.log_append_time:
        lowest = now_ms - rules.before_max_ms
        if rules.after_max_ms <= HIGHEST_LONG - now_ms:
            highest = now_ms + rules.after_max_ms
    try:
        if not marked:
            max_timestamp, findings = check_records(body, start, end, count, header.base_timestamp, lowest, highest)
        else:
            _, findings = check_records(body, start, end, count, 0, LOWEST_LONG, HIGHEST_LONG)
            # A producer that claims LogAppendTime gives all records one time, and may do so only in vain.
            max_timestamp = max(header.max_timestamp, i64(NO_TIMESTAMP))
            findings |= REWRITE_NEEDED
            in_range = lowest <= header.max_timestamp <= highest
            if rules.log_append_time or header.max_timestamp == NO_TIMESTAMP or not in_range:
                findings |= TIMESTAMP_OUT_OF_RANGE
    except CorruptBatch as error:
        raise InvalidRecords(INVALID_RECORD, f"{error} in topic partition {rules.topic_partition}") from error
    if findings != 0:
        if findings & TIMESTAMP_OUT_OF_RANGE or (rules.compacted and findings & KEY_MISSING):
            raise _record_errors(body[start:end], header, now_ms, rules, kept)
        if kept and findings & OFFSETS_WITH_GAPS:
            raise InvalidRecords(
                INVALID_RECORD, f"Record offsets are not consecutive in topic partition {rules.topic_partition}"
            )
    return max_timestamp, findings


def _keep(
    data: bytes,
    header: BatchHeader,
    max_timestamp: i64,
    next_offset: i64,
    leader_epoch: i64,
    now_ms: i64,
    rules: ValidationRules,
) -> ValidatedBatches:
    """The batch as it came, but for its header; a new crc only if a timestamp field must change."""
    append_time_ms: i64 = NO_TIMESTAMP
    attributes = header.attributes
    if rules.log_append_time:
        append_time_ms = max_timestamp = now_ms
        attributes |= LOG_APPEND_TIME_FLAG
    else:
        attributes &= ~LOG_APPEND_TIME_FLAG
    start = header.position
    end = start + header.size
    parts: list[bytes | memoryview]
    if max_timestamp == header.max_timestamp and attributes == header.attributes:
        writer = BytesWriter()
        write_i64_be(writer, next_offset)
        write_i32_be(writer, i32(header.size - LENGTH_OVERHEAD))
        write_i32_be(writer, i32(leader_epoch))
        if header.size <= COPIED_SIZE_MAX:
            writer.write(data[start + REWRITTEN_SIZE : end])
            parts = [writer.getvalue()]
        else:
            parts = [writer.getvalue(), memoryview(data)[start + REWRITTEN_SIZE : end]]
    else:
        header.attributes = attributes & KNOWN_ATTRIBUTES
        header.max_timestamp = max_timestamp
        parts = _with_new_header(memoryview(data)[start + HEADER_SIZE : end], header, next_offset, leader_epoch)
    header.position = 0
    header.base_offset = next_offset
    header.partition_leader_epoch = leader_epoch
    last_offset = next_offset + header.last_offset_delta
    return ValidatedBatches(
        parts,
        header.size,
        [header],
        first_offset=next_offset,
        last_offset=last_offset,
        max_timestamp=max_timestamp,
        offset_of_max_timestamp=last_offset,
        append_time_ms=append_time_ms,
        records_count=header.records_count,
    )


def _with_new_header(
    body: memoryview, header: BatchHeader, next_offset: i64, leader_epoch: i64
) -> list[bytes | memoryview]:
    tail = header_tail(
        attributes=header.attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=header.records_count,
    )
    header.crc = CRC32C(body, CRC32C(tail))
    return [header_start(next_offset, header.size, leader_epoch, header.crc) + tail, body]


def _recompress(
    body: bytes,
    header: BatchHeader,
    *,
    max_timestamp: i64,
    findings: i64,
    target: i64,
    next_offset: i64,
    leader_epoch: i64,
    now_ms: i64,
    rules: ValidationRules,
) -> ValidatedBatches:
    """The records of the batch in the topic's own codec. They are written anew only if their form is not Kafka's."""
    base_timestamp = header.base_timestamp
    if findings & (OFFSETS_WITH_GAPS | REWRITE_NEEDED):
        records = parse_records(body, header)
        builder = BatchBuilder()
        for record in records:
            builder.append(record.timestamp, record.key, record.value, record.headers)
        body = builder.encoded_records()
        base_timestamp = builder.base_timestamp
    packed = compress(int(target), body, rules.level)
    append_time_ms: i64 = NO_TIMESTAMP
    attributes = target | (header.attributes & (TRANSACTIONAL_FLAG | CONTROL_FLAG))
    if rules.log_append_time:
        append_time_ms = max_timestamp = now_ms
        attributes |= LOG_APPEND_TIME_FLAG
    size = HEADER_SIZE + i64(len(packed))
    if size > rules.max_message_bytes:
        raise InvalidRecords(
            MESSAGE_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {rules.topic_partition} which exceeds the "
            f"maximum configured size of {rules.max_message_bytes}.",
        )
    header.position = 0
    header.base_offset = next_offset
    header.size = size
    header.partition_leader_epoch = leader_epoch
    header.attributes = attributes
    header.last_offset_delta = header.records_count - 1
    header.base_timestamp = base_timestamp
    header.max_timestamp = max_timestamp
    parts = _with_new_header(memoryview(packed), header, next_offset, leader_epoch)
    last_offset = next_offset + header.last_offset_delta
    return ValidatedBatches(
        parts,
        size,
        [header],
        first_offset=next_offset,
        last_offset=last_offset,
        max_timestamp=max_timestamp,
        offset_of_max_timestamp=last_offset,
        append_time_ms=append_time_ms,
        records_count=header.records_count,
    )


def _record_errors(body: bytes, header: BatchHeader, now_ms: i64, rules: ValidationRules, kept: bool) -> InvalidRecords:
    """The refusal that names each record that is wrong: a missing key before a wrong time, one error for a record."""
    errors: list[tuple[int, str | None]] = []
    wrong_time = False
    try:
        records = parse_records(body, header)
    except CorruptBatch as error:
        return InvalidRecords(INVALID_RECORD, f"{error} in topic partition {rules.topic_partition}")
    for index, record in enumerate(records):
        if rules.compacted and record.key is None:
            partition = rules.topic_partition
            errors.append((index, f"Compacted topic cannot accept message without key in topic partition {partition}"))
            continue
        text = _time_error(record, header, int(now_ms), rules, kept)
        if text is not None:
            wrong_time = True
            errors.append((index, text))
    if wrong_time:
        message = "One or more records have been rejected due to invalid timestamp"
        return InvalidRecords(INVALID_TIMESTAMP, message, errors, message)
    shown = ", ".join(
        [f"RecordError(batchIndex={index}, message='{text}')" for index, text in errors[:ERRORS_SHOWN_MAX]]
    )
    message = (
        f"One or more records have been rejected due to {len(errors)} record errors in total, "
        f"and only showing the first three errors at most: [{shown}]"
    )
    return InvalidRecords(INVALID_RECORD, message, errors, message)


def _time_error(record: Record, header: BatchHeader, now_ms: int, rules: ValidationRules, kept: bool) -> str | None:
    if not rules.log_append_time and record.timestamp != NO_TIMESTAMP:
        lowest = now_ms - int(rules.before_max_ms)
        highest = now_ms + int(rules.after_max_ms)
        if lowest <= record.timestamp <= highest:
            return None
        return (
            f"Timestamp {record.timestamp} of message with offset {record.offset} is out of range. "
            f"The timestamp should be within [{lowest}, {highest}]"
        )
    if not header.is_log_append_time:
        return None
    # Kafka shows its own object here, whose name and null sizes depend on the iterator that it used.
    partial = kept and header.codec != NONE
    missing = -1 if partial else 0
    key_size = missing if record.key is None else len(record.key)
    value_size = missing if record.value is None else len(record.value)
    return (
        f"Invalid timestamp type in message {'PartialDefaultRecord' if partial else 'DefaultRecord'}"
        f"(offset={record.offset}, timestamp={record.timestamp}, key={key_size} bytes, value={value_size} bytes). "
        "Producer should not set timestamp type to LogAppendTime."
    )


def _validate_numbered(
    data: bytes, start: i64, end: i64, leader_epoch: i64, rules: ValidationRules
) -> ValidatedBatches:
    """Batches of the quorum's leader: whole, sound, of its epoch, and with offsets that rise."""
    result = check_replicated(data, start, end, rules.topic_partition)
    for header in result.batches:
        if header.partition_leader_epoch != leader_epoch:
            raise InvalidRecords(
                INVALID_RECORD,
                f"Append from the quorum leader has epoch {header.partition_leader_epoch}, expected {leader_epoch}",
            )
        if header.size > rules.max_message_bytes:
            raise InvalidRecords(
                MESSAGE_TOO_LARGE,
                f"The record batch size in the append to {rules.topic_partition} is {header.size} bytes which exceeds "
                f"the maximum configured value of {rules.max_message_bytes}.",
            )
    if not result.batches or result.size != end - start:
        raise InvalidRecords(INVALID_RECORD, f"Records for {rules.topic_partition} do not hold whole record batches")
    return result


def check_replicated(
    data: bytes, start: i64, end: i64, topic_partition: str, leader_epoch: int = 0x7FFFFFFF
) -> ValidatedBatches:
    """Batches as a leader sent them to its follower, kept as they are: sizes, crc and rising offsets are checked.

    A torn batch at the end is left out, and so is all from the first batch on whose epoch is above `leader_epoch`.
    """
    if start < 0 or end > len(data):
        raise IndexError(f"records from {start} to {end} in {len(data)} bytes")
    batches: list[BatchHeader] = []
    position = start
    last_offset: i64 = -1
    records_count: i64 = 0
    max_timestamp: i64 = NO_TIMESTAMP
    offset_of_max_timestamp: i64 = -1
    while position < end:
        size = next_batch_size(data, position, end)
        if size < 0:
            break
        if size < HEADER_SIZE or data[position + MAGIC] != CURRENT_MAGIC:
            raise InvalidRecords(CORRUPT_MESSAGE, f"Record batch of {size} bytes for {topic_partition} is not readable")
        header = header_at(data, position, size)
        if header.partition_leader_epoch > leader_epoch:
            break
        if crc_of(data, position + ATTRIBUTES, position + size) != header.crc:
            raise InvalidRecords(
                CORRUPT_MESSAGE,
                f"Record is corrupt (stored crc = {header.crc}) in topic partition {topic_partition}.",
            )
        if header.base_offset <= last_offset or header.last_offset_delta < 0:
            raise InvalidRecords(
                UNKNOWN_SERVER_ERROR,
                f"Out of order offsets found in append to {topic_partition}: {header.base_offset} after {last_offset}",
            )
        last_offset = header.base_offset + header.last_offset_delta
        if header.max_timestamp > max_timestamp:
            max_timestamp = header.max_timestamp
            offset_of_max_timestamp = last_offset
        records_count += header.records_count
        header.position = position - start
        batches.append(header)
        position += size
    return ValidatedBatches(
        [memoryview(data)[start:position]],
        position - start,
        batches,
        first_offset=batches[0].base_offset if batches else i64(-1),
        last_offset=last_offset,
        max_timestamp=max_timestamp,
        offset_of_max_timestamp=offset_of_max_timestamp,
        append_time_ms=NO_TIMESTAMP,
        records_count=records_count,
    )
