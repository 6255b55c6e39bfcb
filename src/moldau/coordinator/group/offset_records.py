"""Keys and values of committed offsets as they lie in __consumer_offsets: written and read once for every commit.

The layouts are those of OffsetCommitKey and OffsetCommitValue in `protocol.stored.group_records`, which is what tools
use; here they are read into numbers without a message object, because a start may have a million of them to read.
"""

from __future__ import annotations

from typing import Final

from librt.strings import (
    BytesWriter,
    read_i16_be,
    read_i32_be,
    read_i64_be,
    write_i16_be,
    write_i32_be,
    write_i64_be,
)
from mypy_extensions import i16, i32, i64, mypyc_attr

from moldau.protocol.errors import UNKNOWN_SERVER_ERROR, KafkaError
from moldau.protocol.primitives import DecodeError
from moldau.protocol.uuids import ZERO_UUID

LEGACY_OFFSET_TYPE: Final = 0
OFFSET_TYPE: Final = 1
CURRENT_VERSION: Final = 4
EXPIRING_VERSION: Final = 1
NO_EPOCH: Final = -1
NO_EXPIRY: Final = -1
TOPIC_ID_TAG: Final = 0
UUID_SIZE: Final = 16
PARTITION_SIZE: Final = 4
STRING_BYTES_MAX: Final = 0x7FFF


@mypyc_attr(acyclic=True)
class CommittedOffset:
    """Where a group is in one partition. Of two commits, the one with the higher `record_offset` counts."""

    __slots__ = ("commit_ms", "expire_ms", "leader_epoch", "metadata", "offset", "record_offset", "topic_id")

    def __init__(
        self,
        offset: i64,
        leader_epoch: i32,
        metadata: str,
        commit_ms: i64,
        expire_ms: i64,
        topic_id: bytes,
        record_offset: i64,
    ) -> None:
        self.offset: i64 = offset
        self.leader_epoch: i32 = leader_epoch
        self.metadata: str = metadata
        self.commit_ms: i64 = commit_ms
        self.expire_ms: i64 = expire_ms
        self.topic_id: bytes = topic_id
        self.record_offset: i64 = record_offset

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, CommittedOffset)
            and self.offset == other.offset
            and self.leader_epoch == other.leader_epoch
            and self.metadata == other.metadata
            and self.commit_ms == other.commit_ms
            and self.expire_ms == other.expire_ms
            and self.topic_id == other.topic_id
            and self.record_offset == other.record_offset
        )

    def __hash__(self) -> int:
        return hash((self.offset, self.record_offset))

    def __repr__(self) -> str:
        return f"CommittedOffset({self.offset}, epoch={self.leader_epoch}, at={self.record_offset})"


def encode_offset_key(group_id: str, topic: str, partition: int) -> bytes:
    writer = BytesWriter()
    write_i16_be(writer, OFFSET_TYPE)
    _write_string(writer, group_id)
    _write_string(writer, topic)
    write_i32_be(writer, i32(partition))
    return writer.getvalue()


def encode_offset_value(
    offset: int, leader_epoch: int, metadata: str, commit_ms: int, expire_ms: int, topic_id: bytes
) -> bytes:
    """Version 4 as Kafka writes it today; version 1 where an old client has set an end to the offset's life."""
    writer = BytesWriter()
    if expire_ms != NO_EXPIRY:
        write_i16_be(writer, EXPIRING_VERSION)
        write_i64_be(writer, offset)
        _write_string(writer, metadata)
        write_i64_be(writer, commit_ms)
        write_i64_be(writer, expire_ms)
        return writer.getvalue()
    write_i16_be(writer, CURRENT_VERSION)
    write_i64_be(writer, offset)
    write_i32_be(writer, i32(leader_epoch))
    text = metadata.encode()
    _write_uvarint(writer, len(text) + 1)
    writer.write(text)
    write_i64_be(writer, commit_ms)
    if topic_id == ZERO_UUID:
        writer.append(0)
    else:
        writer.append(1)
        writer.append(TOPIC_ID_TAG)
        writer.append(UUID_SIZE)
        writer.write(topic_id)
    return writer.getvalue()


def _write_string(writer: BytesWriter, text: str) -> None:
    data = text.encode()
    if len(data) > STRING_BYTES_MAX:
        raise KafkaError(UNKNOWN_SERVER_ERROR, f"a text of {len(data)} bytes is too long for the log of offsets")
    write_i16_be(writer, i16(len(data)))
    writer.write(data)


def _write_uvarint(writer: BytesWriter, value: i64) -> None:
    while value >= 0x80:
        writer.append((value & 0x7F) | 0x80)
        value >>= 7
    writer.append(value)


def decode_offset_key(key: bytes) -> tuple[str, str, int]:
    """Group, topic and partition."""
    size: i64 = len(key)
    group_end = _string_end(key, 2, size)
    topic_end = _string_end(key, group_end, size)
    if topic_end + PARTITION_SIZE != size:
        raise DecodeError("the key of a committed offset has the wrong size")
    group_id = key[4:group_end].decode()
    topic = key[group_end + 2 : topic_end].decode()
    return group_id, topic, int(read_i32_be(key, topic_end))


def partition_of_key(key: bytes) -> int:
    """The partition at the end of a key that is known to be whole."""
    return int(read_i32_be(key, len(key) - PARTITION_SIZE))


def group_of_key(key: bytes) -> str:
    """The group of any key that begins with it."""
    return key[4 : _string_end(key, 2, len(key))].decode()


def decode_offset_value(value: bytes, record_offset: int) -> CommittedOffset:
    """Any version from 0 to 4."""
    size: i64 = len(value)
    if size < 10:
        raise DecodeError("the value of a committed offset ends too early")
    version = read_i16_be(value, 0)
    if version < 0 or version > CURRENT_VERSION:
        raise DecodeError(f"version {version} of a committed offset is not known")
    offset = read_i64_be(value, 2)
    position: i64 = 10
    leader_epoch: i32 = NO_EPOCH
    if version >= 3:
        if size < 14:
            raise DecodeError("the value of a committed offset ends too early")
        leader_epoch = read_i32_be(value, 10)
        position = 14
    if version >= 4:
        length, position = _read_uvarint(value, position, size)
        start = position
        end = start + length - 1
        if length == 0:
            raise DecodeError("a committed offset has no metadata text")
    else:
        start = position + 2
        end = _string_end(value, position, size)
    expiry_size: i64 = 8 if version == 1 else 0
    if end + 8 + expiry_size > size:
        raise DecodeError("the value of a committed offset ends too early")
    metadata = value[start:end].decode() if end > start else ""
    commit_ms = read_i64_be(value, end)
    expire_ms: i64 = NO_EXPIRY
    if version == 1:
        expire_ms = read_i64_be(value, end + 8)
    topic_id = ZERO_UUID
    if version >= 4:
        topic_id = _read_topic_id(value, end + 8, size)
    return CommittedOffset(offset, leader_epoch, metadata, commit_ms, expire_ms, topic_id, record_offset)


def _read_topic_id(value: bytes, position: i64, size: i64) -> bytes:
    """The tagged topic id, if there is one; other tags are of later releases."""
    count, position = _read_uvarint(value, position, size)
    found = ZERO_UUID
    while count > 0:
        tag, position = _read_uvarint(value, position, size)
        length, position = _read_uvarint(value, position, size)
        if position + length > size:
            raise DecodeError("a tagged field of a committed offset ends too early")
        if tag == TOPIC_ID_TAG and length == UUID_SIZE:
            found = value[position : position + length]
        position += length
        count -= 1
    return found


def _string_end(data: bytes, position: i64, size: i64) -> i64:
    if position + 2 > size:
        raise DecodeError("a record of a committed offset ends too early")
    length = i64(read_i16_be(data, position))
    if length < 0 or position + 2 + length > size:
        raise DecodeError("a text of a committed offset ends too early")
    return position + 2 + length


def _read_uvarint(data: bytes, position: i64, size: i64) -> tuple[i64, i64]:
    """The number and the position behind it; five bytes at most."""
    value: i64 = 0
    shift: i64 = 0
    while shift < 35:
        if position >= size:
            raise DecodeError("a record of a committed offset ends too early")
        byte = i64(data[position])
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise DecodeError("a number of a committed offset is too long")
