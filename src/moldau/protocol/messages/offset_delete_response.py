"""OffsetDelete response, version 0 (generated).

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


class OffsetDeleteResponse(Message):
    API_KEY: ClassVar[int] = 47
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "throttle_time_ms", "topics")

    def __init__(
        self,
        error_code: int = 0,
        throttle_time_ms: int = 0,
        topics: list[OffsetDeleteResponseTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetDeleteResponseTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetDeleteResponse:
        if version != 0:
            raise DecodeError(no_such_version("OffsetDeleteResponse", version))
        error_code = reader.int16()
        throttle_time_ms = reader.int32()
        topics: list[OffsetDeleteResponseTopic] = []
        count = reader.array_length(6)
        for _ in range(count):
            topics.append(OffsetDeleteResponseTopic.decode(reader, version))
        return OffsetDeleteResponse(error_code, throttle_time_ms, topics)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("OffsetDeleteResponse", version))
        writer.int16(self.error_code)
        writer.int32(self.throttle_time_ms)
        writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetDeleteResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[OffsetDeleteResponsePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[OffsetDeleteResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetDeleteResponseTopic:
        name = reader.string()
        partitions: list[OffsetDeleteResponsePartition] = []
        count = reader.array_length(6)
        for _ in range(count):
            partitions.append(OffsetDeleteResponsePartition.decode(reader, version))
        return OffsetDeleteResponseTopic(name, partitions)

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetDeleteResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code")

    def __init__(self, partition_index: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetDeleteResponsePartition:
        partition_index = reader.int32()
        error_code = reader.int16()
        return OffsetDeleteResponsePartition(partition_index, error_code)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
