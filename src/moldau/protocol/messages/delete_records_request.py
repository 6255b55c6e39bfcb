"""DeleteRecords request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/021-delete-records.txt.
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


class DeleteRecordsRequest(Message):
    API_KEY: ClassVar[int] = 21
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "timeout_ms")

    def __init__(
        self,
        topics: list[DeleteRecordsTopic] | None = None,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[DeleteRecordsTopic] = [] if topics is None else topics
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteRecordsRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DeleteRecordsRequest", version))
        topics: list[DeleteRecordsTopic] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(DeleteRecordsTopic.decode(reader, version))
        timeout_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteRecordsRequest(topics, timeout_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DeleteRecordsRequest", version))
        if version >= 2:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int32(self.timeout_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeleteRecordsTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[DeleteRecordsPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[DeleteRecordsPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteRecordsTopic:
        name: str
        if version >= 2:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[DeleteRecordsPartition] = []
        if version >= 2:
            count = reader.compact_array_length(13)
        else:
            count = reader.array_length(12)
        for _ in range(count):
            partitions.append(DeleteRecordsPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteRecordsTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DeleteRecordsPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "offset")

    def __init__(self, partition_index: int = 0, offset: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.offset: int = offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DeleteRecordsPartition:
        partition_index = reader.int32()
        offset = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DeleteRecordsPartition(partition_index, offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.offset)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
