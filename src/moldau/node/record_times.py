"""The timestamp of the first record at or after an offset: how long ago a group should have read it.

Most often the header of a batch tells: where all records have one time, or the first of them is asked for. Only for a
record in the middle of a batch with several times its records are read.
"""

from __future__ import annotations

import struct
from typing import Final

from moldau.records.batch import HEADER_SIZE, split_batches
from moldau.records.walk import read_records
from moldau.replication.partition import Partition
from moldau.storage.disk import File

# Base offset, length, leader epoch, magic, crc, attributes, last offset delta, base timestamp, max timestamp, producer
# id, producer epoch, base sequence, number of records.
HEADER: Final = struct.Struct(">qiibIhiqqqhii")
LOG_APPEND_TIME: Final = 8


def find_local(partition: Partition, offset: int) -> int:
    """-1 where there is no such record. Raises KafkaError, and ColdRead where the caller refuses to wait."""
    log = partition.log
    if log is None:
        return -1
    offset = max(offset, log.log_start_offset)
    records = log.read(offset, 1, partition.high_watermark.offset, min_one_batch=True).records
    if records is None:
        return -1
    file = records.file
    assert isinstance(file, File)
    timestamp = timestamp_in_header(file.read(records.position, HEADER_SIZE), offset)
    return timestamp if timestamp >= 0 else find_in(file.read(records.position, records.size), offset)


def timestamp_in_header(data: bytes, offset: int) -> int:
    """-1 where the records themselves must be looked at."""
    fields = HEADER.unpack_from(data)
    base_offset, attributes, last_delta, base_timestamp, max_timestamp = fields[0], *fields[5:9]
    if attributes & LOG_APPEND_TIME or base_timestamp == max_timestamp:
        return int(max_timestamp)
    # Compaction keeps the times of a batch and takes its records, maybe the first: then their number is less.
    is_first = offset <= base_offset and fields[12] == last_delta + 1
    return int(base_timestamp) if is_first else -1


def find_in(data: bytes, offset: int) -> int:
    """-1 where none of these batches goes so far."""
    for header in split_batches(data, 0, len(data)):
        if header.last_offset >= offset:
            for record in read_records(data, header):
                if record.offset >= offset:
                    return record.timestamp
            return int(header.max_timestamp)
    return -1
