"""Describes any file of a data directory as plain dictionaries, one for each batch, record or entry."""

from __future__ import annotations

import json
from collections.abc import Iterator

from moldau.protocol.primitives import DecodeError
from moldau.protocol.stored.group_records import GROUP_KEYS, GROUP_VALUES
from moldau.protocol.stored.share_records import SHARE_KEYS, SHARE_VALUES
from moldau.protocol.stored.transaction_records import TRANSACTION_KEYS, TRANSACTION_VALUES
from moldau.protocol.topic_names import GROUP_TOPIC, METADATA_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC
from moldau.records.batch import NO_PRODUCER_ID
from moldau.records.walk import Record
from moldau.storage.disk import Disk
from moldau.storage.inspect.batches import Batch, BatchReader, RecordReader, Unreadable
from moldau.storage.inspect.index import OffsetEntries, TimeEntries, base_offset_of
from moldau.storage.inspect.json_text import java_text
from moldau.storage.inspect.stored import Decoder, control_text, coordinator_decoder, decode_metadata
from moldau.storage.producer_snapshots import DamagedSnapshot, decode_snapshot
from moldau.storage.txn_index import DamagedTransactionIndex, TransactionIndex

Entry = dict[str, object]

LOG_SUFFIXES = (".log", ".checkpoint")
SUFFIXES = (*LOG_SUFFIXES, ".index", ".timeindex", ".snapshot", ".txnindex")


class NotReadable(Exception):
    """The file, or what is left of it, is not what its name says."""


def suffix_of(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""


def describe_file(disk: Disk, path: str, with_records: bool) -> Iterator[Entry]:
    """Raises NotReadable where the file stops making sense; what came before has been handed out then."""
    suffix = suffix_of(path)
    try:
        if suffix in LOG_SUFFIXES:
            yield from _describe_log(disk, path, with_records)
        elif suffix == ".index":
            index = OffsetEntries(disk, path, base_offset_of(path.rpartition("/")[2]))
            for offset, position in used_entries(index.entries, index.base_offset):
                yield {"kind": "index", "offset": offset, "position": position}
        elif suffix == ".timeindex":
            times = TimeEntries(disk, path, base_offset_of(path.rpartition("/")[2]))
            for timestamp, offset in used_times(times.entries, times.base_offset):
                yield {"kind": "time", "timestamp": timestamp, "offset": offset}
        elif suffix == ".snapshot":
            yield from _describe_snapshot(disk, path)
        elif suffix == ".txnindex":
            for aborted in TransactionIndex(disk, path, base_offset_of(path.rpartition("/")[2]), True).load():
                fields = ("producer_id", "first_offset", "last_offset", "last_stable_offset")
                yield {"kind": "aborted"} | {name: getattr(aborted, name) for name in fields}
        else:
            raise NotReadable(f"{path} has none of the endings {', '.join(SUFFIXES)}")
    except (Unreadable, DecodeError, DamagedSnapshot, DamagedTransactionIndex) as error:
        raise NotReadable(str(error)) from error


def used_entries(entries: list[tuple[int, int]], base_offset: int) -> list[tuple[int, int]]:
    """Without the zeros of space that was allocated in advance."""
    end = len(entries)
    while end > 0 and entries[end - 1] == (base_offset, 0):
        end -= 1
    return entries[:end]


def used_times(entries: list[tuple[int, int]], base_offset: int) -> list[tuple[int, int]]:
    end = len(entries)
    while end > 0 and entries[end - 1] == (0, base_offset):
        end -= 1
    return entries[:end]


def decoder_for(path: str) -> Decoder | None:
    """How the records of a file are read, by the topic that its directory is of; None for those of users."""
    directory = path.rpartition("/")[0].rpartition("/")[2]
    topic = directory.rpartition("-")[0]
    if suffix_of(path) == ".checkpoint" or topic == METADATA_TOPIC:
        return decode_metadata
    if topic == GROUP_TOPIC:
        return coordinator_decoder(GROUP_KEYS, GROUP_VALUES, topic_is_offsets=True)
    if topic == TRANSACTION_TOPIC:
        return coordinator_decoder(TRANSACTION_KEYS, TRANSACTION_VALUES)
    if topic == SHARE_TOPIC:
        return coordinator_decoder(SHARE_KEYS, SHARE_VALUES)
    return None


def _describe_log(disk: Disk, path: str, with_records: bool) -> Iterator[Entry]:
    decoder = decoder_for(path)
    file = disk.open(path)
    try:
        reader = BatchReader(file)
        while (batch := reader.next()) is not None:
            yield _describe_batch(batch)
            if with_records:
                records = RecordReader(batch)
                for record in records.records:
                    yield _describe_record(batch, record, decoder)
                if records.failure is not None:
                    raise records.failure
        if reader.end > reader.position:
            raise NotReadable(f"{reader.end - reader.position} bytes at the end are no whole batch")
    finally:
        file.close()


def _describe_batch(batch: Batch) -> Entry:
    header = batch.header
    entry: Entry = {
        "kind": "batch",
        "base_offset": header.base_offset,
        "last_offset": header.last_offset,
        "records": header.records_count,
        "position": batch.position,
        "size": header.size,
        "codec": batch.codec_name(),
        "max_timestamp": header.max_timestamp,
        "timestamp_type": "LogAppendTime" if header.is_log_append_time else "CreateTime",
        "leader_epoch": header.partition_leader_epoch,
        "valid": batch.is_valid(),
    }
    if header.producer_id != NO_PRODUCER_ID:
        entry |= {"producer_id": header.producer_id, "producer_epoch": header.producer_epoch}
        entry |= {"base_sequence": header.base_sequence, "last_sequence": header.last_sequence}
    if header.is_transactional:
        entry["transactional"] = True
    if header.is_control:
        entry["control"] = True
    if header.has_delete_horizon:
        entry["delete_horizon_ms"] = header.base_timestamp
    return entry


def _describe_record(batch: Batch, record: Record, decoder: Decoder | None) -> Entry:
    entry: Entry = {"kind": "record", "offset": record.offset, "timestamp": record.timestamp}
    if batch.header.is_control:
        return entry | {"control": control_text(record)}
    if decoder is None:
        entry["key"] = None if record.key is None else java_text(record.key)
        entry["value"] = None if record.value is None else java_text(record.value)
    else:
        key, value = decoder(record)
        entry |= {"key": _opened(key), "value": _opened(value)}
    if record.headers:
        entry["headers"] = [[name, None if value is None else java_text(value)] for name, value in record.headers]
    return entry


def _opened(text: str | None) -> object:
    """What a decoder wrote as JSON becomes part of the entry's own."""
    if text is not None and text.startswith("{"):
        opened: object = json.loads(text)
        return opened
    return text


def _describe_snapshot(disk: Disk, path: str) -> Iterator[Entry]:
    for producer in decode_snapshot(disk.read_file(path), path):
        entry: Entry = {
            "kind": "producer",
            "producer_id": producer.producer_id,
            "producer_epoch": producer.epoch,
            "coordinator_epoch": producer.coordinator_epoch,
            "last_timestamp": producer.last_timestamp,
        }
        if producer.transaction_first_offset >= 0:
            entry["transaction_first_offset"] = producer.transaction_first_offset
        if producer.batches:
            entry |= {
                "last_sequence": producer.batches[0].last_sequence,
                "last_offset": producer.batches[0].last_offset,
            }
        yield entry
