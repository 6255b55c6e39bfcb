"""DescribeLogDirs request, versions 1 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/035-describe-log-dirs.txt.
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
    cannot_send,
    no_such_version,
)


class DescribeLogDirsRequest(Message):
    API_KEY: ClassVar[int] = 35
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("topics",)

    def __init__(
        self,
        topics: list[DescribableLogDirTopic] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[DescribableLogDirTopic] | None = [] if topics is NOT_GIVEN else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeLogDirsRequest:
        if version < 1 or version > 5:
            raise DecodeError(no_such_version("DescribeLogDirsRequest", version))
        topics: list[DescribableLogDirTopic] | None
        if version >= 2:
            count = reader.compact_nullable_array_length(3)
        else:
            count = reader.nullable_array_length(6)
        if count < 0:
            topics = None
        else:
            topics = []
            for _ in range(count):
                topics.append(DescribableLogDirTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeLogDirsRequest(topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 5:
            raise EncodeError(no_such_version("DescribeLogDirsRequest", version))
        if version >= 2:
            if self.topics is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.topics))
                for topics_element in self.topics:
                    topics_element.encode(writer, version)
        else:
            if self.topics is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.topics))
                for topics_element in self.topics:
                    topics_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribableLogDirTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribableLogDirTopic:
        topic: str
        if version >= 2:
            topic = reader.compact_string()
        else:
            topic = reader.string()
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribableLogDirTopic(topic, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 2:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
