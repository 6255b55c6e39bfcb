"""Stored records: share records (generated).

Written by tools/generate_messages.py from schemas/stored/share_records.txt.
"""

from __future__ import annotations

from typing import ClassVar, Final

from moldau.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)
from moldau.protocol.stored.framing import decode_key, decode_value, encode_key, encode_value


class ShareSnapshotKey(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topic_id", "partition")

    def __init__(
        self,
        group_id: str = "",
        topic_id: bytes = ZERO_UUID,
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topic_id: bytes = topic_id
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareSnapshotKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareSnapshotKey", version))
        group_id = reader.string()
        topic_id = reader.uuid()
        partition = reader.int32()
        return ShareSnapshotKey(group_id, topic_id, partition)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareSnapshotKey", version))
        writer.string(self.group_id)
        writer.uuid(self.topic_id)
        writer.int32(self.partition)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareSnapshotValue(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "snapshot_epoch",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "create_timestamp",
        "write_timestamp",
        "state_batches",
    )

    def __init__(
        self,
        snapshot_epoch: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        create_timestamp: int = 0,
        write_timestamp: int = 0,
        state_batches: list[ShareSnapshotStateBatch] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.snapshot_epoch: int = snapshot_epoch
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.create_timestamp: int = create_timestamp
        self.write_timestamp: int = write_timestamp
        self.state_batches: list[ShareSnapshotStateBatch] = [] if state_batches is None else state_batches
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareSnapshotValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareSnapshotValue", version))
        snapshot_epoch = reader.int32()
        state_epoch = reader.int32()
        leader_epoch = reader.int32()
        start_offset = reader.int64()
        delivery_complete_count: int = -1
        create_timestamp = reader.int64()
        write_timestamp = reader.int64()
        state_batches: list[ShareSnapshotStateBatch] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            state_batches.append(ShareSnapshotStateBatch.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                delivery_complete_count = reader.int32()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ShareSnapshotValue(
            snapshot_epoch,
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            create_timestamp,
            write_timestamp,
            state_batches,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareSnapshotValue", version))
        writer.int32(self.snapshot_epoch)
        writer.int32(self.state_epoch)
        writer.int32(self.leader_epoch)
        writer.int64(self.start_offset)
        writer.int64(self.create_timestamp)
        writer.int64(self.write_timestamp)
        writer.compact_array_length(len(self.state_batches))
        for state_batches_element in self.state_batches:
            state_batches_element.encode(writer, version)
        tags: UnknownTags = []
        if self.delivery_complete_count != -1:
            part = Writer()
            part.int32(self.delivery_complete_count)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ShareSnapshotStateBatch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareSnapshotStateBatch:
        first_offset = reader.int64()
        last_offset = reader.int64()
        delivery_state = reader.int8()
        delivery_count = reader.int16()
        unknown_tags = reader.unknown_tags()
        return ShareSnapshotStateBatch(first_offset, last_offset, delivery_state, delivery_count, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.first_offset)
        writer.int64(self.last_offset)
        writer.int8(self.delivery_state)
        writer.int16(self.delivery_count)
        writer.unknown_tags(self.unknown_tags)


class ShareUpdateKey(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topic_id", "partition")

    def __init__(
        self,
        group_id: str = "",
        topic_id: bytes = ZERO_UUID,
        partition: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topic_id: bytes = topic_id
        self.partition: int = partition
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareUpdateKey:
        if version != 0:
            raise DecodeError(no_such_version("ShareUpdateKey", version))
        group_id = reader.string()
        topic_id = reader.uuid()
        partition = reader.int32()
        return ShareUpdateKey(group_id, topic_id, partition)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareUpdateKey", version))
        writer.string(self.group_id)
        writer.uuid(self.topic_id)
        writer.int32(self.partition)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ShareUpdateValue(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "snapshot_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )

    def __init__(
        self,
        snapshot_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[ShareUpdateStateBatch] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.snapshot_epoch: int = snapshot_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.state_batches: list[ShareUpdateStateBatch] = [] if state_batches is None else state_batches
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareUpdateValue:
        if version != 0:
            raise DecodeError(no_such_version("ShareUpdateValue", version))
        snapshot_epoch = reader.int32()
        leader_epoch = reader.int32()
        start_offset = reader.int64()
        delivery_complete_count: int = -1
        state_batches: list[ShareUpdateStateBatch] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            state_batches.append(ShareUpdateStateBatch.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                delivery_complete_count = reader.int32()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return ShareUpdateValue(
            snapshot_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            state_batches,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ShareUpdateValue", version))
        writer.int32(self.snapshot_epoch)
        writer.int32(self.leader_epoch)
        writer.int64(self.start_offset)
        writer.compact_array_length(len(self.state_batches))
        for state_batches_element in self.state_batches:
            state_batches_element.encode(writer, version)
        tags: UnknownTags = []
        if self.delivery_complete_count != -1:
            part = Writer()
            part.int32(self.delivery_complete_count)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class ShareUpdateStateBatch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareUpdateStateBatch:
        first_offset = reader.int64()
        last_offset = reader.int64()
        delivery_state = reader.int8()
        delivery_count = reader.int16()
        unknown_tags = reader.unknown_tags()
        return ShareUpdateStateBatch(first_offset, last_offset, delivery_state, delivery_count, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.first_offset)
        writer.int64(self.last_offset)
        writer.int8(self.delivery_state)
        writer.int16(self.delivery_count)
        writer.unknown_tags(self.unknown_tags)


SHARE_KEYS: Final[dict[int, type[Message]]] = {
    0: ShareSnapshotKey,
    1: ShareUpdateKey,
}

SHARE_VALUES: Final[dict[int, type[Message]]] = {
    0: ShareSnapshotValue,
    1: ShareUpdateValue,
}


def encode_share_key(key: Message) -> bytes:
    return encode_key(key)


def decode_share_key(data: bytes) -> Message:
    return decode_key(SHARE_KEYS, data)


def encode_share_value(value: Message, version: int) -> bytes:
    return encode_value(value, version)


def decode_share_value(record_type: int, data: bytes) -> Message:
    return decode_value(SHARE_VALUES, record_type, data)
