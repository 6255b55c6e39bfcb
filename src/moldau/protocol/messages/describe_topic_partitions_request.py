"""DescribeTopicPartitions request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/075-describe-topic-partitions.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeTopicPartitionsRequest(Message):
    API_KEY: ClassVar[int] = 75
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "response_partition_limit", "cursor")

    def __init__(
        self,
        topics: list[TopicRequest] | None = None,
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[TopicRequest] = [] if topics is None else topics
        self.response_partition_limit: int = response_partition_limit
        self.cursor: Cursor | None = cursor
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeTopicPartitionsRequest:
        if version != 0:
            raise DecodeError(no_such_version("DescribeTopicPartitionsRequest", version))
        topics: list[TopicRequest] = []
        count = reader.compact_array_length(2)
        for _ in range(count):
            topics.append(TopicRequest.decode(reader, version))
        response_partition_limit = reader.int32()
        cursor = Cursor.decode(reader, version) if reader.int8() >= 0 else None
        unknown_tags = reader.unknown_tags()
        return DescribeTopicPartitionsRequest(topics, response_partition_limit, cursor, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeTopicPartitionsRequest", version))
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int32(self.response_partition_limit)
        if self.cursor is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.cursor.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicRequest(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name",)

    def __init__(self, name: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicRequest:
        name = reader.compact_string()
        unknown_tags = reader.unknown_tags()
        return TopicRequest(name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.unknown_tags(self.unknown_tags)


class Cursor(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partition_index")

    def __init__(self, topic_name: str = "", partition_index: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Cursor:
        topic_name = reader.compact_string()
        partition_index = reader.int32()
        unknown_tags = reader.unknown_tags()
        return Cursor(topic_name, partition_index, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.int32(self.partition_index)
        writer.unknown_tags(self.unknown_tags)
