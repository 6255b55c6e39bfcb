"""AlterPartitionReassignments request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/045-alter-partition-reassignments.txt.
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


class AlterPartitionReassignmentsRequest(Message):
    API_KEY: ClassVar[int] = 45
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("timeout_ms", "allow_replication_factor_change", "topics")

    def __init__(
        self,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: list[ReassignableTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.timeout_ms: int = timeout_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.topics: list[ReassignableTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterPartitionReassignmentsRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("AlterPartitionReassignmentsRequest", version))
        timeout_ms = reader.int32()
        allow_replication_factor_change: bool = True
        if version >= 1:
            allow_replication_factor_change = reader.boolean()
        topics: list[ReassignableTopic] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(ReassignableTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterPartitionReassignmentsRequest(timeout_ms, allow_replication_factor_change, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("AlterPartitionReassignmentsRequest", version))
        writer.int32(self.timeout_ms)
        if version >= 1:
            writer.boolean(self.allow_replication_factor_change)
        elif not self.allow_replication_factor_change:
            raise cannot_send("allow_replication_factor_change", version)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReassignableTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReassignableTopic:
        name = reader.compact_string()
        partitions: list[ReassignablePartition] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            partitions.append(ReassignablePartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ReassignableTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReassignablePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "replicas")

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] | None = replicas
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReassignablePartition:
        partition_index = reader.int32()
        count = reader.compact_nullable_array_length(4)
        replicas = None if count < 0 else reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return ReassignablePartition(partition_index, replicas, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if self.replicas is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.replicas))
            writer.int32_list(self.replicas)
        writer.unknown_tags(self.unknown_tags)
