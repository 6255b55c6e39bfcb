"""DescribeQuorum request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/055-describe-quorum.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeQuorumRequest(Message):
    API_KEY: ClassVar[int] = 55
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topics",)

    def __init__(self, topics: list[TopicData] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.topics: list[TopicData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeQuorumRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DescribeQuorumRequest", version))
        topics: list[TopicData] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeQuorumRequest(topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DescribeQuorumRequest", version))
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicData:
        topic_name = reader.compact_string()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicData(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index",)

    def __init__(self, partition_index: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        unknown_tags = reader.unknown_tags()
        return PartitionData(partition_index, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.unknown_tags(self.unknown_tags)
