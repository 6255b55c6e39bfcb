"""Produce response, versions 3 to 13 (generated).

Written by tools/generate_messages.py from schemas/messages/000-produce.txt.
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


class ProduceResponse(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 3
    HIGHEST_VERSION: ClassVar[int] = 13
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[str, ...]] = ("responses", "throttle_time_ms", "node_endpoints")

    def __init__(
        self,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is None else responses
        self.throttle_time_ms: int = throttle_time_ms
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ProduceResponse:
        if version < 3 or version > 13:
            raise DecodeError(no_such_version("ProduceResponse", version))
        responses: list[TopicProduceResponse] = []
        if version >= 9:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            responses.append(TopicProduceResponse.decode(reader, version))
        throttle_time_ms = reader.int32()
        node_endpoints: list[NodeEndpoint] = []
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 10:
                    count = reader.compact_array_length(11)
                    node_endpoints = []
                    for _ in range(count):
                        node_endpoints.append(NodeEndpoint.decode(reader, version))
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return ProduceResponse(responses, throttle_time_ms, node_endpoints, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 3 or version > 13:
            raise EncodeError(no_such_version("ProduceResponse", version))
        if version >= 9:
            writer.compact_array_length(len(self.responses))
        else:
            writer.array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        writer.int32(self.throttle_time_ms)
        if version <= 9 and len(self.node_endpoints) > 0:
            raise cannot_send("node_endpoints", version)
        if version >= 9:
            tags: UnknownTags = []
            if version >= 10 and len(self.node_endpoints) > 0:
                part = Writer()
                part.compact_array_length(len(self.node_endpoints))
                for node_endpoints_element in self.node_endpoints:
                    node_endpoints_element.encode(part, version)
                tags.append((0, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TopicProduceResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "partition_responses")

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_responses: list[PartitionProduceResponse] = (
            [] if partition_responses is None else partition_responses
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicProduceResponse:
        name: str = ""
        if 9 <= version <= 12:
            name = reader.compact_string()
        elif version <= 8:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 13:
            topic_id = reader.uuid()
        partition_responses: list[PartitionProduceResponse] = []
        if version >= 9:
            count = reader.compact_array_length(33)
        else:
            count = reader.array_length(22)
        for _ in range(count):
            partition_responses.append(PartitionProduceResponse.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return TopicProduceResponse(name, topic_id, partition_responses, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if 9 <= version <= 12:
            writer.compact_string(self.name)
        elif version <= 8:
            writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 9:
            writer.compact_array_length(len(self.partition_responses))
        else:
            writer.array_length(len(self.partition_responses))
        for partition_responses_element in self.partition_responses:
            partition_responses_element.encode(writer, version)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class PartitionProduceResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.base_offset: int = base_offset
        self.log_append_time_ms: int = log_append_time_ms
        self.log_start_offset: int = log_start_offset
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is None else record_errors
        self.error_message: str | None = error_message
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionProduceResponse:
        index = reader.int32()
        error_code = reader.int16()
        base_offset = reader.int64()
        log_append_time_ms = reader.int64()
        log_start_offset: int = -1
        if version >= 5:
            log_start_offset = reader.int64()
        record_errors: list[BatchIndexAndErrorMessage] = []
        if version >= 8:
            if version >= 9:
                count = reader.compact_array_length(6)
            else:
                count = reader.array_length(6)
            for _ in range(count):
                record_errors.append(BatchIndexAndErrorMessage.decode(reader, version))
        error_message: str | None = None
        if version >= 9:
            error_message = reader.compact_nullable_string()
        elif version >= 8:
            error_message = reader.nullable_string()
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 10:
                    current_leader = LeaderIdAndEpoch.decode(reader, version)
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return PartitionProduceResponse(
            index,
            error_code,
            base_offset,
            log_append_time_ms,
            log_start_offset,
            record_errors,
            error_message,
            current_leader,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.index)
        writer.int16(self.error_code)
        writer.int64(self.base_offset)
        writer.int64(self.log_append_time_ms)
        if version >= 5:
            writer.int64(self.log_start_offset)
        if version >= 8:
            if version >= 9:
                writer.compact_array_length(len(self.record_errors))
            else:
                writer.array_length(len(self.record_errors))
            for record_errors_element in self.record_errors:
                record_errors_element.encode(writer, version)
        if version >= 9:
            writer.compact_nullable_string(self.error_message)
        elif version >= 8:
            writer.nullable_string(self.error_message)
        if version <= 9 and not self.current_leader.is_default():
            raise cannot_send("current_leader", version)
        if version >= 9:
            tags: UnknownTags = []
            if version >= 10 and not self.current_leader.is_default():
                part = Writer()
                self.current_leader.encode(part, version)
                tags.append((0, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class BatchIndexAndErrorMessage(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("batch_index", "batch_index_error_message")

    def __init__(
        self,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.batch_index: int = batch_index
        self.batch_index_error_message: str | None = batch_index_error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BatchIndexAndErrorMessage:
        batch_index = reader.int32()
        batch_index_error_message: str | None
        if version >= 9:
            batch_index_error_message = reader.compact_nullable_string()
        else:
            batch_index_error_message = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return BatchIndexAndErrorMessage(batch_index, batch_index_error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.batch_index)
        if version >= 9:
            writer.compact_nullable_string(self.batch_index_error_message)
        else:
            writer.nullable_string(self.batch_index_error_message)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class LeaderIdAndEpoch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("leader_id", "leader_epoch")

    def __init__(self, leader_id: int = -1, leader_epoch: int = -1, unknown_tags: UnknownTags | None = None) -> None:
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
        if self.leader_id != -1:
            return False
        if self.leader_epoch != -1:
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
