"""ListPartitionReassignments request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/046-list-partition-reassignments.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class ListPartitionReassignmentsRequest(Message):
    API_KEY: ClassVar[int] = 46
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("timeout_ms", "topics")

    def __init__(
        self,
        timeout_ms: int = 60000,
        topics: list[ListPartitionReassignmentsTopics] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.topics: list[ListPartitionReassignmentsTopics] | None = topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListPartitionReassignmentsRequest:
        if version != 0:
            raise DecodeError(no_such_version("ListPartitionReassignmentsRequest", version))
        timeout_ms = reader.int32()
        topics: list[ListPartitionReassignmentsTopics] | None
        count = reader.compact_nullable_array_length(3)
        if count < 0:
            topics = None
        else:
            topics = []
            for _ in range(count):
                topics.append(ListPartitionReassignmentsTopics.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ListPartitionReassignmentsRequest(timeout_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ListPartitionReassignmentsRequest", version))
        writer.int32(self.timeout_ms)
        if self.topics is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.topics))
            for topics_element in self.topics:
                topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ListPartitionReassignmentsTopics(Message):
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
    def decode(reader: Reader, version: int) -> ListPartitionReassignmentsTopics:
        name = reader.compact_string()
        count = reader.compact_array_length(4)
        partition_indexes = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return ListPartitionReassignmentsTopics(name, partition_indexes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partition_indexes))
        writer.int32_list(self.partition_indexes)
        writer.unknown_tags(self.unknown_tags)
