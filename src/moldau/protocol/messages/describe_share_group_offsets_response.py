"""DescribeShareGroupOffsets response, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/090-describe-share-group-offsets.txt.
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


class DescribeShareGroupOffsetsResponse(Message):
    API_KEY: ClassVar[int] = 90
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "groups")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        groups: list[DescribeShareGroupOffsetsResponseGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.groups: list[DescribeShareGroupOffsetsResponseGroup] = [] if groups is None else groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("DescribeShareGroupOffsetsResponse", version))
        throttle_time_ms = reader.int32()
        groups: list[DescribeShareGroupOffsetsResponseGroup] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            groups.append(DescribeShareGroupOffsetsResponseGroup.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsResponse(throttle_time_ms, groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("DescribeShareGroupOffsetsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.groups))
        for groups_element in self.groups:
            groups_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribeShareGroupOffsetsResponseGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics", "error_code", "error_message")

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsResponseTopic] | None = None,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsResponseTopic] = [] if topics is None else topics
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsResponseGroup:
        group_id = reader.compact_string()
        topics: list[DescribeShareGroupOffsetsResponseTopic] = []
        count = reader.compact_array_length(19)
        for _ in range(count):
            topics.append(DescribeShareGroupOffsetsResponseTopic.decode(reader, version))
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsResponseGroup(group_id, topics, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)


class DescribeShareGroupOffsetsResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[DescribeShareGroupOffsetsResponsePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[DescribeShareGroupOffsetsResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsResponseTopic:
        topic_name = reader.compact_string()
        topic_id = reader.uuid()
        partitions: list[DescribeShareGroupOffsetsResponsePartition] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            partitions.append(DescribeShareGroupOffsetsResponsePartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsResponseTopic(topic_name, topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribeShareGroupOffsetsResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.leader_epoch: int = leader_epoch
        self.lag: int = lag
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsResponsePartition:
        partition_index = reader.int32()
        start_offset = reader.int64()
        leader_epoch = reader.int32()
        lag: int = -1
        if version >= 1:
            lag = reader.int64()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsResponsePartition(
            partition_index,
            start_offset,
            leader_epoch,
            lag,
            error_code,
            error_message,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.start_offset)
        writer.int32(self.leader_epoch)
        if version >= 1:
            writer.int64(self.lag)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
