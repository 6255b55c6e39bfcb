"""ListOffsets request, versions 1 to 11 (generated).

Written by tools/generate_messages.py from schemas/messages/002-list-offsets.txt.
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


class ListOffsetsRequest(Message):
    API_KEY: ClassVar[int] = 2
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 11
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 6
    FIELDS: ClassVar[tuple[str, ...]] = ("replica_id", "isolation_level", "topics", "timeout_ms")

    def __init__(
        self,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: list[ListOffsetsTopic] | None = None,
        timeout_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.replica_id: int = replica_id
        self.isolation_level: int = isolation_level
        self.topics: list[ListOffsetsTopic] = [] if topics is None else topics
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListOffsetsRequest:
        if version < 1 or version > 11:
            raise DecodeError(no_such_version("ListOffsetsRequest", version))
        replica_id = reader.int32()
        isolation_level: int = 0
        if version >= 2:
            isolation_level = reader.int8()
        topics: list[ListOffsetsTopic] = []
        if version >= 6:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(ListOffsetsTopic.decode(reader, version))
        timeout_ms: int = 0
        if version >= 10:
            timeout_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return ListOffsetsRequest(replica_id, isolation_level, topics, timeout_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 11:
            raise EncodeError(no_such_version("ListOffsetsRequest", version))
        writer.int32(self.replica_id)
        if version >= 2:
            writer.int8(self.isolation_level)
        elif self.isolation_level != 0:
            raise cannot_send("isolation_level", version)
        if version >= 6:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 10:
            writer.int32(self.timeout_ms)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ListOffsetsTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[ListOffsetsPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[ListOffsetsPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListOffsetsTopic:
        name: str
        if version >= 6:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[ListOffsetsPartition] = []
        if version >= 6:
            count = reader.compact_array_length(17)
        else:
            count = reader.array_length(12)
        for _ in range(count):
            partitions.append(ListOffsetsPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return ListOffsetsTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 6:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 6:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ListOffsetsPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "current_leader_epoch", "timestamp")

    def __init__(
        self,
        partition_index: int = 0,
        current_leader_epoch: int = -1,
        timestamp: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.current_leader_epoch: int = current_leader_epoch
        self.timestamp: int = timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListOffsetsPartition:
        partition_index = reader.int32()
        current_leader_epoch: int = -1
        if version >= 4:
            current_leader_epoch = reader.int32()
        timestamp = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 6:
            unknown_tags = reader.unknown_tags()
        return ListOffsetsPartition(partition_index, current_leader_epoch, timestamp, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if version >= 4:
            writer.int32(self.current_leader_epoch)
        writer.int64(self.timestamp)
        if version >= 6:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
