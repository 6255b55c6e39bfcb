"""What stands in front of a stored record: its type and version."""

from __future__ import annotations

from typing import Final

from moldau.protocol.primitives import DecodeError, Message, Reader, Writer

FRAME_VERSION: Final = 1


class UnknownRecordType(DecodeError):
    """A record whose type is not in the table, written by a newer release perhaps."""

    def __init__(self, record_type: int) -> None:
        super().__init__(f"unknown record type {record_type}")
        self.record_type = record_type


def encode_record(record: Message, version: int) -> bytes:
    """Metadata records: uvarint frame version, uvarint id, uvarint version, fields."""
    writer = Writer()
    writer.uvarint(FRAME_VERSION)
    writer.uvarint(record.API_KEY)
    writer.uvarint(version)
    record.encode(writer, version)
    return writer.to_bytes()


def decode_record(table: dict[int, type[Message]], data: bytes) -> Message:
    reader = Reader(data)
    frame_version = reader.uvarint()
    if frame_version != FRAME_VERSION:
        raise DecodeError(f"unknown frame version {frame_version}")
    record_class = find(table, reader.uvarint())
    version = reader.uvarint()
    record = record_class.decode(reader, version)
    if reader.remaining > 0:
        raise DecodeError(f"{reader.remaining} bytes follow the {record_class.__name__}")
    return record


def encode_key(key: Message) -> bytes:
    """Keys of coordinator records: int16 type, fields in version 0."""
    writer = Writer()
    writer.int16(key.API_KEY)
    key.encode(writer, 0)
    return writer.to_bytes()


def decode_key(table: dict[int, type[Message]], data: bytes) -> Message:
    reader = Reader(data)
    return find(table, reader.int16()).decode(reader, 0)


def encode_value(value: Message, version: int) -> bytes:
    """Values of coordinator records: int16 version, fields."""
    writer = Writer()
    writer.int16(version)
    value.encode(writer, version)
    return writer.to_bytes()


def decode_value(table: dict[int, type[Message]], record_type: int, data: bytes) -> Message:
    reader = Reader(data)
    version = reader.int16()
    return find(table, record_type).decode(reader, version)


def find(table: dict[int, type[Message]], record_type: int) -> type[Message]:
    record_class = table.get(record_type)
    if record_class is None:
        raise UnknownRecordType(record_type)
    return record_class
