"""AlterShareGroupOffsets request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/091-alter-share-group-offsets.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class AlterShareGroupOffsetsRequest(Message):
    API_KEY: ClassVar[int] = 91
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics")

    def __init__(
        self,
        group_id: str = "",
        topics: list[AlterShareGroupOffsetsRequestTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[AlterShareGroupOffsetsRequestTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterShareGroupOffsetsRequest:
        if version != 0:
            raise DecodeError(no_such_version("AlterShareGroupOffsetsRequest", version))
        group_id = reader.compact_string()
        topics: list[AlterShareGroupOffsetsRequestTopic] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(AlterShareGroupOffsetsRequestTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterShareGroupOffsetsRequest(group_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AlterShareGroupOffsetsRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AlterShareGroupOffsetsRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterShareGroupOffsetsRequestPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterShareGroupOffsetsRequestPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterShareGroupOffsetsRequestTopic:
        topic_name = reader.compact_string()
        partitions: list[AlterShareGroupOffsetsRequestPartition] = []
        count = reader.compact_array_length(13)
        for _ in range(count):
            partitions.append(AlterShareGroupOffsetsRequestPartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterShareGroupOffsetsRequestTopic(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AlterShareGroupOffsetsRequestPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "start_offset")

    def __init__(
        self,
        partition_index: int = 0,
        start_offset: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.start_offset: int = start_offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterShareGroupOffsetsRequestPartition:
        partition_index = reader.int32()
        start_offset = reader.int64()
        unknown_tags = reader.unknown_tags()
        return AlterShareGroupOffsetsRequestPartition(partition_index, start_offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.start_offset)
        writer.unknown_tags(self.unknown_tags)
