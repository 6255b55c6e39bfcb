"""ListOffsets response, versions 1 to 11 (generated).

Written by tools/generate_messages.py from schemas/messages/002-list-offsets.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class ListOffsetsResponse(Message):
    API_KEY: ClassVar[int] = 2
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 11
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[ListOffsetsTopicResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[ListOffsetsTopicResponse] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListOffsetsResponse:
        if version < 1 or version > 11:
            raise DecodeError(no_such_version("ListOffsetsResponse", version))
        throttle_time_ms: int = 0
        if version >= 2:
            throttle_time_ms = reader.int32()
        topics: list[ListOffsetsTopicResponse] = []
        if version >= 6:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(ListOffsetsTopicResponse.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return ListOffsetsResponse(throttle_time_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 11:
            raise EncodeError(no_such_version("ListOffsetsResponse", version))
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        if version >= 6:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ListOffsetsTopicResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartitionResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartitionResponse] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListOffsetsTopicResponse:
        name: str
        if version >= 6:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[ListOffsetsPartitionResponse] = []
        if version >= 6:
            count = reader.compact_array_length(27)
        else:
            count = reader.array_length(22)
        for _ in range(count):
            partitions.append(ListOffsetsPartitionResponse.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return ListOffsetsTopicResponse(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ListOffsetsPartitionResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.timestamp: int = timestamp
        self.offset: int = offset
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListOffsetsPartitionResponse:
        partition_index = reader.int32()
        error_code = reader.int16()
        timestamp = reader.int64()
        offset = reader.int64()
        leader_epoch: int = -1
        if version >= 4:
            leader_epoch = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return ListOffsetsPartitionResponse(partition_index, error_code, timestamp, offset, leader_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.int64(self.timestamp)
        writer.int64(self.offset)
        if version >= 4:
            writer.int32(self.leader_epoch)
        elif self.leader_epoch != -1:
            raise cannot_send("leader_epoch", version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
