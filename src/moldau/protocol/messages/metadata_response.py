"""Metadata response, versions 0 to 13 (generated).

Written by tools/generate_messages.py from schemas/messages/003-metadata.txt.
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
    cannot_send,
    no_such_version,
)


class MetadataResponse(Message):
    API_KEY: ClassVar[int] = 3
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 13
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        brokers: list[MetadataResponseBroker] | None = None,
        cluster_id: str | None = None,
        controller_id: int = -1,
        topics: list[MetadataResponseTopic] | None = None,
        cluster_authorized_operations: int = -2147483648,
        error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.brokers: list[MetadataResponseBroker] = [] if brokers is None else brokers
        self.cluster_id: str | None = cluster_id
        self.controller_id: int = controller_id
        self.topics: list[MetadataResponseTopic] = [] if topics is None else topics
        self.cluster_authorized_operations: int = cluster_authorized_operations
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MetadataResponse:
        if version < 0 or version > 13:
            raise DecodeError(no_such_version("MetadataResponse", version))
        throttle_time_ms: int = 0
        if version >= 3:
            throttle_time_ms = reader.int32()
        brokers: list[MetadataResponseBroker] = []
        if version >= 9:
            count = reader.compact_array_length(11)
        else:
            count = reader.array_length(10)
        for _ in range(count):
            brokers.append(MetadataResponseBroker.decode(reader, version))
        cluster_id: str | None = None
        if version >= 9:
            cluster_id = reader.compact_nullable_string()
        elif version >= 2:
            cluster_id = reader.nullable_string()
        controller_id: int = -1
        if version >= 1:
            controller_id = reader.int32()
        topics: list[MetadataResponseTopic] = []
        if version >= 9:
            count = reader.compact_array_length(10)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            topics.append(MetadataResponseTopic.decode(reader, version))
        cluster_authorized_operations: int = -2147483648
        if 8 <= version <= 10:
            cluster_authorized_operations = reader.int32()
        error_code: int = 0
        if version >= 13:
            error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return MetadataResponse(
            throttle_time_ms,
            brokers,
            cluster_id,
            controller_id,
            topics,
            cluster_authorized_operations,
            error_code,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 13:
            raise EncodeError(no_such_version("MetadataResponse", version))
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version >= 9:
            writer.compact_array_length(len(self.brokers))
        else:
            writer.array_length(len(self.brokers))
        for brokers_element in self.brokers:
            brokers_element.encode(writer, version)
        if version >= 9:
            writer.compact_nullable_string(self.cluster_id)
        elif version >= 2:
            writer.nullable_string(self.cluster_id)
        if version >= 1:
            writer.int32(self.controller_id)
        if version >= 9:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 11:
            if self.cluster_authorized_operations != -2147483648:
                raise cannot_send("cluster_authorized_operations", version)
        elif version >= 8:
            writer.int32(self.cluster_authorized_operations)
        elif self.cluster_authorized_operations != -2147483648:
            raise cannot_send("cluster_authorized_operations", version)
        if version >= 13:
            writer.int16(self.error_code)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class MetadataResponseBroker(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.rack: str | None = rack
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MetadataResponseBroker:
        node_id = reader.int32()
        host: str
        if version >= 9:
            host = reader.compact_string()
        else:
            host = reader.string()
        port = reader.int32()
        rack: str | None = None
        if version >= 9:
            rack = reader.compact_nullable_string()
        elif version >= 1:
            rack = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return MetadataResponseBroker(node_id, host, port, rack, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        if version >= 9:
            writer.compact_string(self.host)
        else:
            writer.string(self.host)
        writer.int32(self.port)
        if version >= 9:
            writer.compact_nullable_string(self.rack)
        elif version >= 1:
            writer.nullable_string(self.rack)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class MetadataResponseTopic(Message):
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
        partitions: list[MetadataResponsePartition] | None = None,
        topic_authorized_operations: int = -2147483648,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.name: str | None = name
        self.topic_id: bytes = topic_id
        self.is_internal: bool = is_internal
        self.partitions: list[MetadataResponsePartition] = [] if partitions is None else partitions
        self.topic_authorized_operations: int = topic_authorized_operations
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MetadataResponseTopic:
        error_code = reader.int16()
        name: str | None
        if version >= 12:
            name = reader.compact_nullable_string()
        elif version >= 9:
            name = reader.compact_string()
        else:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 10:
            topic_id = reader.uuid()
        is_internal: bool = False
        if version >= 1:
            is_internal = reader.boolean()
        partitions: list[MetadataResponsePartition] = []
        if version >= 9:
            count = reader.compact_array_length(18)
        else:
            count = reader.array_length(18)
        for _ in range(count):
            partitions.append(MetadataResponsePartition.decode(reader, version))
        topic_authorized_operations: int = -2147483648
        if version >= 8:
            topic_authorized_operations = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return MetadataResponseTopic(
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
        if version >= 12:
            writer.compact_nullable_string(self.name)
        elif version >= 9:
            if self.name is None:
                raise cannot_send("name", version)
            writer.compact_string(self.name)
        else:
            if self.name is None:
                raise cannot_send("name", version)
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 1:
            writer.boolean(self.is_internal)
        if version >= 9:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 8:
            writer.int32(self.topic_authorized_operations)
        elif self.topic_authorized_operations != -2147483648:
            raise cannot_send("topic_authorized_operations", version)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class MetadataResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
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
        offline_replicas: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.partition_index: int = partition_index
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.replica_nodes: list[int] = [] if replica_nodes is None else replica_nodes
        self.isr_nodes: list[int] = [] if isr_nodes is None else isr_nodes
        self.offline_replicas: list[int] = [] if offline_replicas is None else offline_replicas
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> MetadataResponsePartition:
        error_code = reader.int16()
        partition_index = reader.int32()
        leader_id = reader.int32()
        leader_epoch: int = -1
        if version >= 7:
            leader_epoch = reader.int32()
        if version >= 9:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        replica_nodes = reader.int32_list(count)
        if version >= 9:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        isr_nodes = reader.int32_list(count)
        offline_replicas: list[int] = []
        if version >= 5:
            if version >= 9:
                count = reader.compact_array_length(4)
            else:
                count = reader.array_length(4)
            offline_replicas = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return MetadataResponsePartition(
            error_code,
            partition_index,
            leader_id,
            leader_epoch,
            replica_nodes,
            isr_nodes,
            offline_replicas,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.int32(self.partition_index)
        writer.int32(self.leader_id)
        if version >= 7:
            writer.int32(self.leader_epoch)
        if version >= 9:
            writer.compact_array_length(len(self.replica_nodes))
        else:
            writer.array_length(len(self.replica_nodes))
        writer.int32_list(self.replica_nodes)
        if version >= 9:
            writer.compact_array_length(len(self.isr_nodes))
        else:
            writer.array_length(len(self.isr_nodes))
        writer.int32_list(self.isr_nodes)
        if version >= 5:
            if version >= 9:
                writer.compact_array_length(len(self.offline_replicas))
            else:
                writer.array_length(len(self.offline_replicas))
            writer.int32_list(self.offline_replicas)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
