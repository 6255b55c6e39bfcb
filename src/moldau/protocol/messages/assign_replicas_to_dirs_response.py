"""AssignReplicasToDirs response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/073-assign-replicas-to-dirs.txt.
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


class AssignReplicasToDirsResponse(Message):
    API_KEY: ClassVar[int] = 73
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "directories")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        directories: list[DirectoryData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.directories: list[DirectoryData] = [] if directories is None else directories
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AssignReplicasToDirsResponse:
        if version != 0:
            raise DecodeError(no_such_version("AssignReplicasToDirsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        directories: list[DirectoryData] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            directories.append(DirectoryData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AssignReplicasToDirsResponse(throttle_time_ms, error_code, directories, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AssignReplicasToDirsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_array_length(len(self.directories))
        for directories_element in self.directories:
            directories_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DirectoryData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("id", "topics")

    def __init__(
        self,
        id: bytes = ZERO_UUID,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.id: bytes = id
        self.topics: list[TopicData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DirectoryData:
        id = reader.uuid()
        topics: list[TopicData] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DirectoryData(id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicData(Message):
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
    def decode(reader: Reader, version: int) -> TopicData:
        topic_id = reader.uuid()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(7)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicData(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code")

    def __init__(self, partition_index: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        error_code = reader.int16()
        unknown_tags = reader.unknown_tags()
        return PartitionData(partition_index, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.unknown_tags(self.unknown_tags)
