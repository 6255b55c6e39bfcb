"""OffsetDelete request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/047-offset-delete.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class OffsetDeleteRequest(Message):
    API_KEY: ClassVar[int] = 47
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics")

    def __init__(
        self,
        group_id: str = "",
        topics: list[OffsetDeleteRequestTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[OffsetDeleteRequestTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetDeleteRequest:
        if version != 0:
            raise DecodeError(no_such_version("OffsetDeleteRequest", version))
        group_id = reader.string()
        topics: list[OffsetDeleteRequestTopic] = []
        count = reader.array_length(6)
        for _ in range(count):
            topics.append(OffsetDeleteRequestTopic.decode(reader, version))
        return OffsetDeleteRequest(group_id, topics)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("OffsetDeleteRequest", version))
        writer.string(self.group_id)
        writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetDeleteRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteRequestPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteRequestPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetDeleteRequestTopic:
        name = reader.string()
        partitions: list[OffsetDeleteRequestPartition] = []
        count = reader.array_length(4)
        for _ in range(count):
            partitions.append(OffsetDeleteRequestPartition.decode(reader, version))
        return OffsetDeleteRequestTopic(name, partitions)

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetDeleteRequestPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index",)

    def __init__(self, partition_index: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetDeleteRequestPartition:
        partition_index = reader.int32()
        return OffsetDeleteRequestPartition(partition_index)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
