"""Decodes the records of the cluster's own topics into JSON: metadata, groups, transactions, share groups, control.

Each decoder returns the text of the key and that of the value, None where there is none to show. A record that cannot
be read does not end a dump: its text says what is wrong, in the words of Kafka's tools.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from moldau.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from moldau.protocol.primitives import DecodeError, Message, Reader
from moldau.protocol.stored.control_records import (
    EndTxnMarker,
    KRaftVersionRecord,
    LeaderChangeMessage,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    VotersRecord,
)
from moldau.protocol.stored.framing import FRAME_VERSION
from moldau.protocol.stored.metadata_records import METADATA_RECORDS
from moldau.records.walk import Record
from moldau.storage.inspect.batches import Unreadable
from moldau.storage.inspect.json_text import JsonObject, json_text, message_to_json

Shown = tuple[str | None, str | None]
Decoder = Callable[[Record], Shown]
Table = dict[int, type[Message]]

DELETED = "<DELETE>"
CONSUMER_PROTOCOL = "consumer"
GROUP_METADATA = 2
SHORT_MAX = 0x7FFF

ABORT = 0
COMMIT = 1
CONTROL_TYPES: dict[int, tuple[str, type[Message]]] = {
    2: ("LeaderChange:", LeaderChangeMessage),
    3: ("SnapshotHeader", SnapshotHeaderRecord),
    4: ("SnapshotFooter", SnapshotFooterRecord),
    5: ("KRaftVersion", KRaftVersionRecord),
    6: ("KRaftVoters", VotersRecord),
}


def record_type_name(record_class: type[Message]) -> str:
    """RegisterBrokerRecord -> REGISTER_BROKER_RECORD."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", record_class.__name__).upper()


def metadata_json(value: bytes, records: Table = METADATA_RECORDS) -> JsonObject:
    """A metadata record with its type and version; raises DecodeError."""
    reader = Reader(value)
    frame_version = _read_number(reader, "frame version")
    if frame_version == 0:
        raise DecodeError(
            "Could not deserialize metadata record with frame version 0. Note that upgrades from the preview release"
            " of KRaft in 2.8 to newer versions are not supported."
        )
    if frame_version != FRAME_VERSION:
        raise DecodeError(
            f"Could not deserialize metadata record due to unknown frame version {frame_version}"
            "(only frame version 1 is supported)"
        )
    record_type = _read_number(reader, "type")
    record_class = records.get(record_type)
    if record_class is None:
        unknown = f"org.apache.kafka.common.errors.UnsupportedVersionException: Unknown metadata id {record_type}"
        raise DecodeError(unknown)
    version = _read_number(reader, "version")
    try:
        message = record_class.decode(reader, version)
    except DecodeError as error:
        raise DecodeError(f"Failed to deserialize record with type {record_type}") from error
    if reader.remaining > 0:
        raise DecodeError(f"Found {reader.remaining} byte(s) of garbage after {record_type_name(record_class)}")
    return {"type": record_type_name(record_class), "version": version, "data": message_to_json(message, version)}


def _read_number(reader: Reader, name: str) -> int:
    try:
        number = reader.uvarint()
    except DecodeError as error:
        raise DecodeError(f"Error while reading {name}") from error
    if number > SHORT_MAX:
        raise DecodeError(f"Value for {name} was too large.")
    return number


def decode_metadata(record: Record) -> Shown:
    try:
        return None, json_text(metadata_json(record.value or b""))
    except DecodeError as error:
        return None, f"Error at {record.offset}, skipping. {error}"


def decode_remote_log_metadata(record: Record) -> Shown:
    """Shown as JSON; the real tool shows them as its Java objects print themselves."""
    from moldau.protocol.stored.remote_log_records import REMOTE_LOG_RECORDS

    try:
        if record.value is None:
            raise DecodeError(
                'Cannot invoke "java.nio.ByteBuffer.remaining()" because the return value of'
                ' "org.apache.kafka.common.record.internal.Record.value()" is null'
            )
        return None, json_text(metadata_json(record.value, REMOTE_LOG_RECORDS))
    except DecodeError as error:
        return None, f"Error at offset {record.offset}, skipping. {error}"


def coordinator_decoder(keys: Table, values: Table, topic_is_offsets: bool = False) -> Decoder:
    """A decoder for records whose keys begin with a type and whose values begin with a version."""

    def decode(record: Record) -> Shown:
        return decode_coordinator_record(record, keys, values, topic_is_offsets)

    return decode


def decode_coordinator_record(record: Record, keys: Table, values: Table, topic_is_offsets: bool) -> Shown:
    if record.key is None:
        raise Unreadable(
            "java.lang.RuntimeException",
            f"Failed to decode message at offset {record.offset} using the specified decoder (message had a missing"
            " key)",
        )
    try:
        record_type, key = read_versioned(record.key, "key")
        key_class = keys.get(record_type)
        if key_class is None:
            return f"Unknown record type {record_type} at offset {record.offset}, skipping.", None
        key_json = message_to_json(read_message(key_class, key, 0, record_type, "key"), 0)
        value_text = (
            DELETED if record.value is None else _value_text(record.value, values[record_type], topic_is_offsets)
        )
    except DecodeError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    return json_text({"type": str(record_type), "data": key_json}), value_text


def _value_text(data: bytes, value_class: type[Message], topic_is_offsets: bool) -> str:
    version, reader = read_versioned(data, "value")
    if not value_class.LOWEST_VERSION <= version <= value_class.HIGHEST_VERSION:
        raise DecodeError(f"Found an unknown record version {version} for {value_class.API_KEY} type")
    shown = message_to_json(read_message(value_class, reader, version, version, "value"), version)
    if topic_is_offsets and value_class.API_KEY == GROUP_METADATA and shown.get("protocolType") == CONSUMER_PROTOCOL:
        members = shown.get("members")
        for member in members if isinstance(members, list) else []:
            _open_member(member, "subscription", ConsumerProtocolSubscription)
            _open_member(member, "assignment", ConsumerProtocolAssignment)
    return json_text({"version": str(version), "data": shown})


def _open_member(member: JsonObject, name: str, message_class: type[Message]) -> None:
    """What the members of a classic group sent each other is a message of its own inside the record.

    Members may be newer than this, or may have sent something else altogether: then the bytes are shown as they are.
    """
    data = member.get(name)
    if isinstance(data, bytes):
        reader = Reader(data)
        try:
            version = min(max(reader.int16(), message_class.LOWEST_VERSION), message_class.HIGHEST_VERSION)
            member[name] = message_to_json(message_class.decode(reader, version), version)
        except DecodeError:
            pass


def read_versioned(data: bytes, name: str) -> tuple[int, Reader]:
    reader = Reader(data)
    try:
        return reader.int16(), reader
    except DecodeError as error:
        raise DecodeError(f"Could not read version from {name}'s buffer.") from error


def read_message(message_class: type[Message], reader: Reader, version: int, shown: int, name: str) -> Message:
    try:
        return message_class.decode(reader, version)
    except DecodeError as error:
        said = f"Could not read record with version {shown} from {name}'s buffer due to: null."
        raise DecodeError(said) from error


def control_text(record: Record) -> str:
    """What a control record says."""
    key = record.key or b""
    if len(key) < 4:
        message = (
            f"Invalid value size found for control record key. Must have at least 4 bytes, but found only {len(key)}"
        )
        raise Unreadable("org.apache.kafka.common.InvalidRecordException", message)
    control_type = int.from_bytes(key[2:4], "big", signed=True)
    reader = Reader(record.value or b"")
    if control_type in (ABORT, COMMIT):
        reader.int16()
        epoch = EndTxnMarker.decode(reader, 0).coordinator_epoch
        return f"endTxnMarker: {'COMMIT' if control_type == COMMIT else 'ABORT'} coordinatorEpoch: {epoch}"
    if control_type not in CONTROL_TYPES:
        return f"controlType: UNKNOWN({control_type})"
    label, message_class = CONTROL_TYPES[control_type]
    version = int.from_bytes((record.value or b"")[:2], "big", signed=True)
    return f"{label} {json_text(message_to_json(message_class.decode(reader, version), version))}"
