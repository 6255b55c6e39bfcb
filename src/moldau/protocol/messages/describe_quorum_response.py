"""DescribeQuorum response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/055-describe-quorum.txt.
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


class DescribeQuorumResponse(Message):
    API_KEY: ClassVar[int] = 55
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message", "topics", "nodes")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        topics: list[TopicData] | None = None,
        nodes: list[Node] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topics: list[TopicData] = [] if topics is None else topics
        self.nodes: list[Node] = [] if nodes is None else nodes
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeQuorumResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("DescribeQuorumResponse", version))
        error_code = reader.int16()
        error_message: str | None = ""
        if version >= 2:
            error_message = reader.compact_nullable_string()
        topics: list[TopicData] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        nodes: list[Node] = []
        if version >= 2:
            count = reader.compact_array_length(6)
            for _ in range(count):
                nodes.append(Node.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeQuorumResponse(error_code, error_message, topics, nodes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("DescribeQuorumResponse", version))
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 2:
            writer.compact_array_length(len(self.nodes))
            for nodes_element in self.nodes:
                nodes_element.encode(writer, version)
        elif len(self.nodes) > 0:
            raise cannot_send("nodes", version)
        writer.unknown_tags(self.unknown_tags)


class TopicData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicData:
        topic_name = reader.compact_string()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(25)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicData(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: list[ReplicaState] | None = None,
        observers: list[ReplicaState] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.high_watermark: int = high_watermark
        self.current_voters: list[ReplicaState] = [] if current_voters is None else current_voters
        self.observers: list[ReplicaState] = [] if observers is None else observers
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        error_code = reader.int16()
        error_message: str | None = ""
        if version >= 2:
            error_message = reader.compact_nullable_string()
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        high_watermark = reader.int64()
        current_voters: list[ReplicaState] = []
        count = reader.compact_array_length(13)
        for _ in range(count):
            current_voters.append(ReplicaState.decode(reader, version))
        observers: list[ReplicaState] = []
        count = reader.compact_array_length(13)
        for _ in range(count):
            observers.append(ReplicaState.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return PartitionData(
            partition_index,
            error_code,
            error_message,
            leader_id,
            leader_epoch,
            high_watermark,
            current_voters,
            observers,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.int64(self.high_watermark)
        writer.compact_array_length(len(self.current_voters))
        for current_voters_element in self.current_voters:
            current_voters_element.encode(writer, version)
        writer.compact_array_length(len(self.observers))
        for observers_element in self.observers:
            observers_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReplicaState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,
        last_caught_up_timestamp: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.log_end_offset: int = log_end_offset
        self.last_fetch_timestamp: int = last_fetch_timestamp
        self.last_caught_up_timestamp: int = last_caught_up_timestamp
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReplicaState:
        replica_id = reader.int32()
        replica_directory_id: bytes = ZERO_UUID
        if version >= 2:
            replica_directory_id = reader.uuid()
        log_end_offset = reader.int64()
        last_fetch_timestamp: int = -1
        if version >= 1:
            last_fetch_timestamp = reader.int64()
        last_caught_up_timestamp: int = -1
        if version >= 1:
            last_caught_up_timestamp = reader.int64()
        unknown_tags = reader.unknown_tags()
        return ReplicaState(
            replica_id,
            replica_directory_id,
            log_end_offset,
            last_fetch_timestamp,
            last_caught_up_timestamp,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.replica_id)
        if version >= 2:
            writer.uuid(self.replica_directory_id)
        elif self.replica_directory_id != ZERO_UUID:
            raise cannot_send("replica_directory_id", version)
        writer.int64(self.log_end_offset)
        if version >= 1:
            writer.int64(self.last_fetch_timestamp)
        if version >= 1:
            writer.int64(self.last_caught_up_timestamp)
        writer.unknown_tags(self.unknown_tags)


class Node(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("node_id", "listeners")

    def __init__(
        self,
        node_id: int = 0,
        listeners: list[Listener] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.listeners: list[Listener] = [] if listeners is None else listeners
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Node:
        node_id = reader.int32()
        listeners: list[Listener] = []
        count = reader.compact_array_length(5)
        for _ in range(count):
            listeners.append(Listener.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Node(node_id, listeners, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_array_length(len(self.listeners))
        for listeners_element in self.listeners:
            listeners_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Listener(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "host", "port")

    def __init__(self, name: str = "", host: str = "", port: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Listener:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return Listener(name, host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)
