"""The loops over records that compaction is made of: which keys a batch has, and what is left of it.

Records are never decoded whole: keys are looked at, the bytes of those that stay are copied. Kafka: Cleaner and
MemoryRecords.filterTo.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from librt.vecs import append, vec
from mypy_extensions import i64

from moldau.records.batch import (
    CODEC_MASK,
    DELETE_HORIZON_FLAG,
    HEADER_SIZE,
    NO_TIMESTAMP,
    BatchHeader,
    CorruptBatch,
)
from moldau.records.builder import assemble_batch
from moldau.records.codecs import DEFAULT_LEVEL, NONE, compress
from moldau.records.varints import read_varint, read_varlong, varint_size, write_varint
from moldau.records.walk import add_wrapping, records_bytes
from moldau.storage.compaction.offset_map import OffsetMap

NO_HORIZON: Final = -1
STAGED_MAX: Final = 4096  # of a batch with very many records, so many at a time
MARKS: Final = 4
KEYLESS: Final = 0
VALUE: Final = 1
TOMBSTONE: Final = 2


class Body:
    """The records of a batch, decompressed: data[start:end]."""

    def __init__(self, data: bytes, header: BatchHeader) -> None:
        if header.codec == NONE:
            self.data = data
            self.start: i64 = header.position + HEADER_SIZE
            self.end: i64 = header.position + header.size
        else:
            self.data = records_bytes(data, header)
            self.start = 0
            self.end = len(self.data)
        if header.records_count > self.end - self.start:
            raise CorruptBatch(f"{header.records_count} records do not fit into {self.end - self.start} bytes")


def _read_head(data: bytes, position: i64, end: i64) -> tuple[i64, i64, i64, i64, i64]:
    """Where a record ends, its timestamp and offset deltas, the size of its key (-1: none), and where that begins."""
    size, position = read_varint(data, position)
    record_end = position + size
    if size < 0 or record_end > end:
        raise CorruptBatch(f"record of {size} bytes does not fit into the {end - position} bytes left")
    timestamp_delta, position = read_varlong(data, position + 1)
    delta, position = read_varint(data, position)
    key_size, position = read_varint(data, position)
    if key_size > record_end - position:
        raise CorruptBatch(f"a key of {key_size} bytes does not fit into its record")
    return record_end, timestamp_delta, delta, key_size, position


def note_keys(data: bytes, header: BatchHeader, offsets: OffsetMap, from_offset: i64) -> bool:
    """Puts the keys of a batch into the map; False when it is full."""
    body = Body(data, header)
    try:
        return _note_keys(body, header, offsets, from_offset)
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error


def _note_keys(body: Body, header: BatchHeader, offsets: OffsetMap, from_offset: i64) -> bool:
    data = body.data
    position = body.start
    end = body.end
    base_offset = header.base_offset
    offsets.clear_staged()
    for _ in range(header.records_count):
        record_end, _, delta, key_size, position = _read_head(data, position, end)
        if key_size >= 0 and base_offset + delta >= from_offset:
            offsets.stage(data[position : position + key_size], base_offset + delta)
            if offsets.staged_count == STAGED_MAX:
                if not offsets.put_staged():
                    return False
                offsets.clear_staged()
        position = record_end
    return offsets.put_staged()


class Remains:
    """What is left of one batch. `runs` are the bytes of the records that stay, neighbours together."""

    def __init__(self) -> None:
        self.kept: i64 = 0
        self.dropped: i64 = 0
        self.keyless: i64 = 0
        self.has_tombstone = False
        self.max_timestamp_delta: i64 = 0
        self.runs: list[bytes] = []
        self.places: list[tuple[int, int]] = []


def filter_records(data: bytes, header: BatchHeader, offsets: OffsetMap, keep_tombstones: bool) -> Remains:
    """Decides for each record of a data batch whether it stays."""
    body = Body(data, header)
    try:
        return _filter_records(body, header, offsets, keep_tombstones)
    except IndexError as error:
        raise CorruptBatch("a record reaches beyond the end of its batch") from error


def _mark_records(body: Body, position: i64, count: i64, base_offset: i64, offsets: OffsetMap) -> vec[i64]:
    """Four numbers for each of the next records: where it ends, its timestamp delta, its offset, and what kind it is.
    Keys that have to be looked up are staged in the map."""
    data = body.data
    end = body.end
    latest = offsets.latest_offset
    marks = vec[i64](capacity=count * MARKS)
    offsets.clear_staged()
    for _ in range(count):
        record_end, timestamp_delta, delta, key_size, position = _read_head(data, position, end)
        offset = base_offset + delta
        kind: i64 = KEYLESS
        if key_size >= 0:
            value_size, _ = read_varint(data, position + key_size)
            kind = TOMBSTONE if value_size < 0 else VALUE
            if offset <= latest:
                offsets.stage(data[position : position + key_size], offset)
        marks = append(marks, record_end)
        marks = append(marks, timestamp_delta)
        marks = append(marks, offset)
        marks = append(marks, kind)
        position = record_end
    return marks


def _filter_records(body: Body, header: BatchHeader, offsets: OffsetMap, keep_tombstones: bool) -> Remains:
    remains = Remains()
    latest = offsets.latest_offset
    position = body.start
    run_start: i64 = -1
    max_delta: i64 = 0
    kept: i64 = 0
    left = header.records_count
    while left > 0:
        count = min(left, i64(STAGED_MAX))
        left -= count
        marks = _mark_records(body, position, count, header.base_offset, offsets)
        offsets.load_staged()
        staged: i64 = 0
        for number in range(count):
            record_start = position
            position = marks[number * MARKS]
            timestamp_delta = marks[number * MARKS + 1]
            offset = marks[number * MARKS + 2]
            kind = marks[number * MARKS + 3]
            keep = offset > latest
            if kind == KEYLESS:
                if not keep:
                    remains.keyless += 1
            else:
                if not keep:
                    keep = offset >= offsets.get_staged(staged)
                    staged += 1
                if keep and kind == TOMBSTONE:
                    keep = keep_tombstones or offset > latest
                    if keep:
                        remains.has_tombstone = True
            if keep:
                if kept == 0 or timestamp_delta > max_delta:
                    max_delta = timestamp_delta
                kept += 1
                if run_start < 0:
                    run_start = record_start
            else:
                remains.dropped += 1
                if run_start >= 0:
                    remains.places.append((int(run_start), int(record_start)))
                    run_start = -1
    if run_start >= 0:
        remains.places.append((int(run_start), int(position)))
    remains.kept = kept
    remains.max_timestamp_delta = max_delta
    if remains.dropped > 0 or remains.has_tombstone:
        for start, stop in remains.places:
            remains.runs.append(body.data[start:stop])
    return remains


def rebuild(header: BatchHeader, remains: Remains, new_horizon_ms: i64) -> bytes:
    """The batch with what is left of it; `new_horizon_ms` is the delete horizon it gets now, NO_HORIZON for none."""
    attributes = header.attributes
    base_timestamp = header.base_timestamp
    max_timestamp = header.max_timestamp
    if remains.dropped > 0 and not header.is_log_append_time:
        max_timestamp = add_wrapping(int(base_timestamp), int(remains.max_timestamp_delta))
    if new_horizon_ms == NO_HORIZON:
        body = b"".join(remains.runs)
    else:
        # A batch with a delete horizon has it in place of the base timestamp, and its records count from it (KIP-534).
        body = _count_from(remains, base_timestamp - new_horizon_ms)
        base_timestamp = new_horizon_ms
        attributes |= DELETE_HORIZON_FLAG
    return assemble_batch(
        compress(int(attributes & CODEC_MASK), body, DEFAULT_LEVEL),
        header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=remains.kept,
    )


def _count_from(remains: Remains, shift: i64) -> bytes:
    """The records with another base timestamp: every timestamp delta moves by `shift`."""
    writer = BytesWriter()
    for run in remains.runs:
        position: i64 = 0
        while position < len(run):
            size, body_start = read_varint(run, position)
            delta, rest = read_varlong(run, body_start + 1)
            record_end = body_start + size
            moved = i64(add_wrapping(int(delta), int(shift)))
            write_varint(writer, 1 + varint_size(moved) + record_end - rest)
            writer.append(run[body_start])
            write_varint(writer, moved)
            writer.write(run[rest:record_end])
            position = record_end
    return writer.getvalue()


def empty_batch(header: BatchHeader) -> bytes:
    """Only the header of a batch, so that the sequence of its producer stays known; the time is that of its records."""
    attributes = header.attributes & ~(CODEC_MASK | DELETE_HORIZON_FLAG)
    return assemble_batch(
        b"",
        header.base_offset,
        partition_leader_epoch=header.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=NO_TIMESTAMP,
        max_timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        records_count=0,
    )


def keep_whole(data: bytes, header: BatchHeader) -> Remains:
    """All records of a control batch, which compaction only takes away as a whole."""
    body = Body(data, header)
    remains = Remains()
    remains.kept = header.records_count
    remains.runs.append(body.data[body.start : body.end])
    return remains
