"""ListPartitionReassignments response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/046-list-partition-reassignments.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class ListPartitionReassignmentsResponse(Message):
    API_KEY: ClassVar[int] = 46
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "error_message", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[OngoingTopicReassignment] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[OngoingTopicReassignment] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListPartitionReassignmentsResponse:
        if version != 0:
            raise DecodeError(no_such_version("ListPartitionReassignmentsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        topics: list[OngoingTopicReassignment] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(OngoingTopicReassignment.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ListPartitionReassignmentsResponse(throttle_time_ms, error_code, error_message, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ListPartitionReassignmentsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class OngoingTopicReassignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[OngoingPartitionReassignment] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[OngoingPartitionReassignment] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OngoingTopicReassignment:
        name = reader.compact_string()
        partitions: list[OngoingPartitionReassignment] = []
        count = reader.compact_array_length(8)
        for _ in range(count):
            partitions.append(OngoingPartitionReassignment.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return OngoingTopicReassignment(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class OngoingPartitionReassignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

    def __init__(
        self,
        partition_index: int = 0,
        replicas: list[int] | None = None,
        adding_replicas: list[int] | None = None,
        removing_replicas: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.replicas: list[int] = [] if replicas is None else replicas
        self.adding_replicas: list[int] = [] if adding_replicas is None else adding_replicas
        self.removing_replicas: list[int] = [] if removing_replicas is None else removing_replicas
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OngoingPartitionReassignment:
        partition_index = reader.int32()
        count = reader.compact_array_length(4)
        replicas = reader.int32_list(count)
        count = reader.compact_array_length(4)
        adding_replicas = reader.int32_list(count)
        count = reader.compact_array_length(4)
        removing_replicas = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return OngoingPartitionReassignment(partition_index, replicas, adding_replicas, removing_replicas, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.compact_array_length(len(self.replicas))
        writer.int32_list(self.replicas)
        writer.compact_array_length(len(self.adding_replicas))
        writer.int32_list(self.adding_replicas)
        writer.compact_array_length(len(self.removing_replicas))
        writer.int32_list(self.removing_replicas)
        writer.unknown_tags(self.unknown_tags)
