"""DescribeTopicPartitions response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/075-describe-topic-partitions.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    no_such_version,
)


class DescribeTopicPartitionsResponse(Message):
    API_KEY: ClassVar[int] = 75
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics", "next_cursor")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[DescribeTopicPartitionsResponseTopic] | None = None,
        next_cursor: Cursor | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[DescribeTopicPartitionsResponseTopic] = [] if topics is None else topics
        self.next_cursor: Cursor | None = next_cursor
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeTopicPartitionsResponse:
        if version != 0:
            raise DecodeError(no_such_version("DescribeTopicPartitionsResponse", version))
        throttle_time_ms = reader.int32()
        topics: list[DescribeTopicPartitionsResponseTopic] = []
        count = reader.compact_array_length(26)
        for _ in range(count):
            topics.append(DescribeTopicPartitionsResponseTopic.decode(reader, version))
        next_cursor = Cursor.decode(reader, version) if reader.int8() >= 0 else None
        unknown_tags = reader.unknown_tags()
        return DescribeTopicPartitionsResponse(throttle_time_ms, topics, next_cursor, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeTopicPartitionsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if self.next_cursor is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.next_cursor.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class DescribeTopicPartitionsResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )

    def __init__(
        self,
        error_code: int = 0,
        name: str | None = "",
        topic_id: bytes = ZERO_UUID,
        is_internal: bool = False,
        partitions: list[DescribeTopicPartitionsResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[DescribeTopicPartitionsResponsePartition] = [] if partitions is None else partitions
        self.topic_authorized_operations: int = topic_authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeTopicPartitionsResponseTopic:
        error_code = reader.int16()
        name = reader.compact_nullable_string()
        topic_id = reader.uuid()
        is_internal = reader.boolean()
        partitions: list[DescribeTopicPartitionsResponsePartition] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            partitions.append(DescribeTopicPartitionsResponsePartition.decode(reader, version))
        topic_authorized_operations = reader.int32()
        unknown_tags = reader.unknown_tags()
        return DescribeTopicPartitionsResponseTopic(
            error_code,
            name,
            topic_id,
            is_internal,
            partitions,
            topic_authorized_operations,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.boolean(self.is_internal)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.int32(self.topic_authorized_operations)
        writer.unknown_tags(self.unknown_tags)


class DescribeTopicPartitionsResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )

    def __init__(
        self,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: list[int] | None = None,
        isr_nodes: list[int] | None = None,
        eligible_leader_replicas: list[int] | None = None,
        last_known_elr: list[int] | None = None,
        offline_replicas: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is None else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is None else isr_nodes
        self.eligible_leader_replicas: list[int] | None = eligible_leader_replicas
        self.last_known_elr: list[int] | None = last_known_elr
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeTopicPartitionsResponsePartition:
        error_code = reader.int16()
        partition_index = reader.int32()
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        count = reader.compact_array_length(4)
        replica_nodes = reader.int32_list(count)
        count = reader.compact_array_length(4)
        isr_nodes = reader.int32_list(count)
        count = reader.compact_nullable_array_length(4)
        eligible_leader_replicas = None if count < 0 else reader.int32_list(count)
        count = reader.compact_nullable_array_length(4)
        last_known_elr = None if count < 0 else reader.int32_list(count)
        count = reader.compact_array_length(4)
        offline_replicas = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return DescribeTopicPartitionsResponsePartition(
            error_code,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            eligible_leader_replicas,
            last_known_elr,
            offline_replicas,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.int32(self.partition_index)
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.compact_array_length(len(self.replica_nodes))
        writer.int32_list(self.replica_nodes)
        writer.compact_array_length(len(self.isr_nodes))
        writer.int32_list(self.isr_nodes)
        if self.eligible_leader_replicas is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.eligible_leader_replicas))
            writer.int32_list(self.eligible_leader_replicas)
        if self.last_known_elr is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.last_known_elr))
            writer.int32_list(self.last_known_elr)
        writer.compact_array_length(len(self.offline_replicas))
        writer.int32_list(self.offline_replicas)
        writer.unknown_tags(self.unknown_tags)


class Cursor(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partition_index")

    def __init__(self, topic_name: str = "", partition_index: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.topic_name: str = topic_name
        self.partition_index: int = partition_index
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Cursor:
        topic_name = reader.compact_string()
        partition_index = reader.int32()
        unknown_tags = reader.unknown_tags()
        return Cursor(topic_name, partition_index, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.int32(self.partition_index)
        writer.unknown_tags(self.unknown_tags)
