"""WriteShareGroupState request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/085-write-share-group-state.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    no_such_version,
)


class WriteShareGroupStateRequest(Message):
    API_KEY: ClassVar[int] = 85
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics")

    def __init__(
        self,
        group_id: str = "",
        topics: list[WriteStateData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[WriteStateData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WriteShareGroupStateRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("WriteShareGroupStateRequest", version))
        group_id = reader.compact_string()
        topics: list[WriteStateData] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(WriteStateData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return WriteShareGroupStateRequest(group_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("WriteShareGroupStateRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class WriteStateData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> WriteStateData:
        topic_id = reader.uuid()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(22)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return WriteStateData(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )

    def __init__(
        self,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: list[StateBatch] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.state_epoch: int = state_epoch
        self.leader_epoch: int = leader_epoch
        self.start_offset: int = start_offset
        self.delivery_complete_count: int = delivery_complete_count
        self.state_batches: list[StateBatch] = [] if state_batches is None else state_batches
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition = reader.int32()
        state_epoch = reader.int32()
        leader_epoch = reader.int32()
        start_offset = reader.int64()
        delivery_complete_count: int = -1
        if version >= 1:
            delivery_complete_count = reader.int32()
        state_batches: list[StateBatch] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            state_batches.append(StateBatch.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return PartitionData(
            partition,
            state_epoch,
            leader_epoch,
            start_offset,
            delivery_complete_count,
            state_batches,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.int32(self.state_epoch)
        writer.int32(self.leader_epoch)
        writer.int64(self.start_offset)
        if version >= 1:
            writer.int32(self.delivery_complete_count)
        writer.compact_array_length(len(self.state_batches))
        for state_batches_element in self.state_batches:
            state_batches_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class StateBatch(Message):
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
    def decode(reader: Reader, version: int) -> StateBatch:
        first_offset = reader.int64()
        last_offset = reader.int64()
        delivery_state = reader.int8()
        delivery_count = reader.int16()
        unknown_tags = reader.unknown_tags()
        return StateBatch(first_offset, last_offset, delivery_state, delivery_count, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.first_offset)
        writer.int64(self.last_offset)
        writer.int8(self.delivery_state)
        writer.int16(self.delivery_count)
        writer.unknown_tags(self.unknown_tags)
