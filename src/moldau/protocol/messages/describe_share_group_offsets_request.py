"""DescribeShareGroupOffsets request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/090-describe-share-group-offsets.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    no_such_version,
)


class DescribeShareGroupOffsetsRequest(Message):
    API_KEY: ClassVar[int] = 90
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("groups",)

    def __init__(
        self,
        groups: list[DescribeShareGroupOffsetsRequestGroup] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.groups: list[DescribeShareGroupOffsetsRequestGroup] = [] if groups is None else groups
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("DescribeShareGroupOffsetsRequest", version))
        groups: list[DescribeShareGroupOffsetsRequestGroup] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            groups.append(DescribeShareGroupOffsetsRequestGroup.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsRequest(groups, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("DescribeShareGroupOffsetsRequest", version))
        writer.compact_array_length(len(self.groups))
        for groups_element in self.groups:
            groups_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribeShareGroupOffsetsRequestGroup(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics")

    def __init__(
        self,
        group_id: str = "",
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[DescribeShareGroupOffsetsRequestTopic] | None = [] if topics is NOT_GIVEN else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsRequestGroup:
        group_id = reader.compact_string()
        topics: list[DescribeShareGroupOffsetsRequestTopic] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            topics = None
        else:
            topics = []
            for _ in range(count):
                topics.append(DescribeShareGroupOffsetsRequestTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsRequestGroup(group_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        if self.topics is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.topics))
            for topics_element in self.topics:
                topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribeShareGroupOffsetsRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeShareGroupOffsetsRequestTopic:
        topic_name = reader.compact_string()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return DescribeShareGroupOffsetsRequestTopic(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)
