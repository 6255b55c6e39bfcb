"""OffsetFetch response, versions 1 to 10 (generated).

Written by tools/generate_messages.py from schemas/messages/009-offset-fetch.txt.
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
    cannot_send,
    no_such_version,
)


class OffsetFetchResponse(Message):
    API_KEY: ClassVar[int] = 9
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 10
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics", "error_code", "groups")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetFetchResponseTopic] | None = None,
        error_code: int = 0,
        groups: list[OffsetFetchResponseGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetFetchResponseTopic] = [] if topics is None else topics
        self.error_code: int = error_code
        self.groups: list[OffsetFetchResponseGroup] = [] if groups is None else groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchResponse:
        if version < 1 or version > 10:
            raise DecodeError(no_such_version("OffsetFetchResponse", version))
        throttle_time_ms: int = 0
        if version >= 3:
            throttle_time_ms = reader.int32()
        topics: list[OffsetFetchResponseTopic] = []
        if version <= 7:
            if version >= 6:
                count = reader.compact_array_length(3)
            else:
                count = reader.array_length(6)
            for _ in range(count):
                topics.append(OffsetFetchResponseTopic.decode(reader, version))
        error_code: int = 0
        if 2 <= version <= 7:
            error_code = reader.int16()
        groups: list[OffsetFetchResponseGroup] = []
        if version >= 8:
            count = reader.compact_array_length(5)
            for _ in range(count):
                groups.append(OffsetFetchResponseGroup.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return OffsetFetchResponse(throttle_time_ms, topics, error_code, groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 10:
            raise EncodeError(no_such_version("OffsetFetchResponse", version))
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version >= 8:
            if len(self.topics) > 0:
                raise cannot_send("topics", version)
        else:
            if version >= 6:
                writer.compact_array_length(len(self.topics))
            else:
                writer.array_length(len(self.topics))
            for topics_element in self.topics:
                topics_element.encode(writer, version)
        if 2 <= version <= 7:
            writer.int16(self.error_code)
        if version >= 8:
            writer.compact_array_length(len(self.groups))
            for groups_element in self.groups:
                groups_element.encode(writer, version)
        elif len(self.groups) > 0:
            raise cannot_send("groups", version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetFetchResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetFetchResponsePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetFetchResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchResponseTopic:
        name: str
        if version >= 6:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[OffsetFetchResponsePartition] = []
        if version >= 6:
            count = reader.compact_array_length(20)
        else:
            count = reader.array_length(16)
        for _ in range(count):
            partitions.append(OffsetFetchResponsePartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return OffsetFetchResponseTopic(name, partitions, unknown_tags)

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


class OffsetFetchResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchResponsePartition:
        partition_index = reader.int32()
        committed_offset = reader.int64()
        committed_leader_epoch: int = -1
        if version >= 5:
            committed_leader_epoch = reader.int32()
        metadata: str | None
        if version >= 6:
            metadata = reader.compact_nullable_string()
        else:
            metadata = reader.nullable_string()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return OffsetFetchResponsePartition(
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata,
            error_code,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.committed_offset)
        if version >= 5:
            writer.int32(self.committed_leader_epoch)
        if version >= 6:
            writer.compact_nullable_string(self.metadata)
        else:
            writer.nullable_string(self.metadata)
        writer.int16(self.error_code)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetFetchResponseGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics", "error_code")

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetFetchResponseTopics] | None = None,
        error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetFetchResponseTopics] = [] if topics is None else topics
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchResponseGroup:
        group_id = reader.compact_string()
        topics: list[OffsetFetchResponseTopics] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(OffsetFetchResponseTopics.decode(reader, version))
        error_code = reader.int16()
        unknown_tags = reader.unknown_tags()
        return OffsetFetchResponseGroup(group_id, topics, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int16(self.error_code)
        writer.unknown_tags(self.unknown_tags)


class OffsetFetchResponseTopics(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "partitions")

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetFetchResponsePartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetFetchResponsePartitions] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchResponseTopics:
        name: str = ""
        if version <= 9:
            name = reader.compact_string()
        topic_id: bytes = ZERO_UUID
        if version >= 10:
            topic_id = reader.uuid()
        partitions: list[OffsetFetchResponsePartitions] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            partitions.append(OffsetFetchResponsePartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return OffsetFetchResponseTopics(name, topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 9:
            writer.compact_string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class OffsetFetchResponsePartitions(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "metadata",
        "error_code",
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = "",
        error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.metadata: str | None = metadata
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetFetchResponsePartitions:
        partition_index = reader.int32()
        committed_offset = reader.int64()
        committed_leader_epoch = reader.int32()
        metadata = reader.compact_nullable_string()
        error_code = reader.int16()
        unknown_tags = reader.unknown_tags()
        return OffsetFetchResponsePartitions(
            partition_index,
            committed_offset,
            committed_leader_epoch,
            metadata,
            error_code,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.committed_offset)
        writer.int32(self.committed_leader_epoch)
        writer.compact_nullable_string(self.metadata)
        writer.int16(self.error_code)
        writer.unknown_tags(self.unknown_tags)
