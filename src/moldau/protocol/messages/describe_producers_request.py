"""DescribeProducers request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/061-describe-producers.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeProducersRequest(Message):
    API_KEY: ClassVar[int] = 61
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("topics",)

    def __init__(self, topics: list[TopicRequest] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.topics: list[TopicRequest] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeProducersRequest:
        if version != 0:
            raise DecodeError(no_such_version("DescribeProducersRequest", version))
        topics: list[TopicRequest] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicRequest.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeProducersRequest(topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeProducersRequest", version))
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicRequest(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partition_indexes")

    def __init__(
        self,
        name: str = "",
        partition_indexes: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partition_indexes: list[int] = [] if partition_indexes is None else partition_indexes
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicRequest:
        name = reader.compact_string()
        count = reader.compact_array_length(4)
        partition_indexes = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TopicRequest(name, partition_indexes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partition_indexes))
        writer.int32_list(self.partition_indexes)
        writer.unknown_tags(self.unknown_tags)
