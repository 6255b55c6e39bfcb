"""ShareAcknowledge response, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/079-share-acknowledge.txt.
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


class ShareAcknowledgeResponse(Message):
    API_KEY: ClassVar[int] = 79
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "acquisition_lock_timeout_ms",
        "responses",
        "node_endpoints",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        acquisition_lock_timeout_ms: int = 0,
        responses: list[ShareAcknowledgeTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.acquisition_lock_timeout_ms: int = acquisition_lock_timeout_ms
        self.responses: list[ShareAcknowledgeTopicResponse] = [] if responses is None else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareAcknowledgeResponse:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("ShareAcknowledgeResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        acquisition_lock_timeout_ms: int = 0
        if version >= 2:
            acquisition_lock_timeout_ms = reader.int32()
        responses: list[ShareAcknowledgeTopicResponse] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            responses.append(ShareAcknowledgeTopicResponse.decode(reader, version))
        node_endpoints: list[NodeEndpoint] = []
        count = reader.compact_array_length(11)
        for _ in range(count):
            node_endpoints.append(NodeEndpoint.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareAcknowledgeResponse(
            throttle_time_ms,
            error_code,
            error_message,
            acquisition_lock_timeout_ms,
            responses,
            node_endpoints,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("ShareAcknowledgeResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        if version >= 2:
            writer.int32(self.acquisition_lock_timeout_ms)
        writer.compact_array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        writer.compact_array_length(len(self.node_endpoints))
        for node_endpoints_element in self.node_endpoints:
            node_endpoints_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ShareAcknowledgeTopicResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareAcknowledgeTopicResponse:
        topic_id = reader.uuid()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(17)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareAcknowledgeTopicResponse(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code", "error_message", "current_leader")

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        current_leader = LeaderIdAndEpoch.decode(reader, version)
        unknown_tags = reader.unknown_tags()
        return PartitionData(partition_index, error_code, error_message, current_leader, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        self.current_leader.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class LeaderIdAndEpoch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("leader_id", "leader_epoch")

    def __init__(self, leader_id: int = 0, leader_epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> LeaderIdAndEpoch:
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        unknown_tags = reader.unknown_tags()
        return LeaderIdAndEpoch(leader_id, leader_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.leader_id != 0:
            return False
        if self.leader_epoch != 0:
            return False
        return self.unknown_tags is None


class NodeEndpoint(Message):
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
    def decode(reader: Reader, version: int) -> NodeEndpoint:
        node_id = reader.int32()
        host = reader.compact_string()
        port = reader.int32()
        rack = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return NodeEndpoint(node_id, host, port, rack, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.compact_nullable_string(self.rack)
        writer.unknown_tags(self.unknown_tags)
