"""OffsetCommit response, versions 2 to 10 (generated).

Written by tools/generate_messages.py from schemas/messages/008-offset-commit.txt.
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


class OffsetCommitResponse(Message):
    API_KEY: ClassVar[int] = 8
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 10
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetCommitResponseTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetCommitResponseTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitResponse:
        if version < 2 or version > 10:
            raise DecodeError(no_such_version("OffsetCommitResponse", version))
        throttle_time_ms: int = 0
        if version >= 3:
            throttle_time_ms = reader.int32()
        topics: list[OffsetCommitResponseTopic] = []
        if version >= 8:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(OffsetCommitResponseTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 8:
            unknown_tags = reader.unknown_tags()
        return OffsetCommitResponse(throttle_time_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 10:
            raise EncodeError(no_such_version("OffsetCommitResponse", version))
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version >= 8:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 8:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetCommitResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "partitions")

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitResponsePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitResponseTopic:
        name: str = ""
        if 8 <= version <= 9:
            name = reader.compact_string()
        elif version <= 7:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 10:
            topic_id = reader.uuid()
        partitions: list[OffsetCommitResponsePartition] = []
        if version >= 8:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            partitions.append(OffsetCommitResponsePartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 8:
            unknown_tags = reader.unknown_tags()
        return OffsetCommitResponseTopic(name, topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if 8 <= version <= 9:
            writer.compact_string(self.name)
        elif version <= 7:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 8:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 8:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetCommitResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code")

    def __init__(self, partition_index: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitResponsePartition:
        partition_index = reader.int32()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 8:
            unknown_tags = reader.unknown_tags()
        return OffsetCommitResponsePartition(partition_index, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        if version >= 8:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
