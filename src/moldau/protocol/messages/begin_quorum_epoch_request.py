"""BeginQuorumEpoch request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/053-begin-quorum-epoch.txt.
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


class BeginQuorumEpochRequest(Message):
    API_KEY: ClassVar[int] = 53
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("cluster_id", "voter_id", "topics", "leader_endpoints")

    def __init__(
        self,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[TopicData] | None = None,
        leader_endpoints: list[LeaderEndpoint] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[TopicData] = [] if topics is None else topics
        self.leader_endpoints: list[LeaderEndpoint] = [] if leader_endpoints is None else leader_endpoints
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BeginQuorumEpochRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("BeginQuorumEpochRequest", version))
        cluster_id: str | None
        if version >= 1:
            cluster_id = reader.compact_nullable_string()
        else:
            cluster_id = reader.nullable_string()
        voter_id: int = -1
        if version >= 1:
            voter_id = reader.int32()
        topics: list[TopicData] = []
        if version >= 1:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        leader_endpoints: list[LeaderEndpoint] = []
        if version >= 1:
            count = reader.compact_array_length(5)
            for _ in range(count):
                leader_endpoints.append(LeaderEndpoint.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return BeginQuorumEpochRequest(cluster_id, voter_id, topics, leader_endpoints, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("BeginQuorumEpochRequest", version))
        if version >= 1:
            writer.compact_nullable_string(self.cluster_id)
        else:
            writer.nullable_string(self.cluster_id)
        if version >= 1:
            writer.int32(self.voter_id)
        if version >= 1:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 1:
            writer.compact_array_length(len(self.leader_endpoints))
            for leader_endpoints_element in self.leader_endpoints:
                leader_endpoints_element.encode(writer, version)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


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
        topic_name: str
        if version >= 1:
            topic_name = reader.compact_string()
        else:
            topic_name = reader.string()
        partitions: list[PartitionData] = []
        if version >= 1:
            count = reader.compact_array_length(29)
        else:
            count = reader.array_length(12)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return TopicData(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        if version >= 1:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "voter_directory_id", "leader_id", "leader_epoch")

    def __init__(
        self,
        partition_index: int = 0,
        voter_directory_id: bytes = ZERO_UUID,
        leader_id: int = 0,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.voter_directory_id: bytes = voter_directory_id
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        voter_directory_id: bytes = ZERO_UUID
        if version >= 1:
            voter_directory_id = reader.uuid()
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return PartitionData(partition_index, voter_directory_id, leader_id, leader_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if version >= 1:
            writer.uuid(self.voter_directory_id)
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class LeaderEndpoint(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "host", "port")

    def __init__(self, name: str = "", host: str = "", port: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LeaderEndpoint:
        name = reader.compact_string()
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return LeaderEndpoint(name, host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)
