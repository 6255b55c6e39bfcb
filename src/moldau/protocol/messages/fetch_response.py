"""Fetch response, versions 4 to 18 (generated).

Written by tools/generate_messages.py from schemas/messages/001-fetch.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
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
from moldau.protocol.records_data import Records


class FetchResponse(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 4
    HIGHEST_VERSION: ClassVar[int] = 18
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 12
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        session_id: int = 0,
        responses: list[FetchableTopicResponse] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.session_id: int = session_id
        self.responses: list[FetchableTopicResponse] = [] if responses is None else responses
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchResponse:
        if version < 4 or version > 18:
            raise DecodeError(no_such_version("FetchResponse", version))
        throttle_time_ms = reader.int32()
        error_code: int = 0
        if version >= 7:
            error_code = reader.int16()
        session_id: int = 0
        if version >= 7:
            session_id = reader.int32()
        responses: list[FetchableTopicResponse] = []
        if version >= 12:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            responses.append(FetchableTopicResponse.decode(reader, version))
        node_endpoints: list[NodeEndpoint] = []
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 16:
                    count = reader.compact_array_length(11)
                    node_endpoints = []
                    for _ in range(count):
                        node_endpoints.append(NodeEndpoint.decode(reader, version))
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return FetchResponse(throttle_time_ms, error_code, session_id, responses, node_endpoints, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 4 or version > 18:
            raise EncodeError(no_such_version("FetchResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 7:
            writer.int16(self.error_code)
        if version >= 7:
            writer.int32(self.session_id)
        elif self.session_id != 0:
            raise cannot_send("session_id", version)
        if version >= 12:
            writer.compact_array_length(len(self.responses))
        else:
            writer.array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        if version <= 15 and len(self.node_endpoints) > 0:
            raise cannot_send("node_endpoints", version)
        if version >= 12:
            tags: UnknownTags = []
            if version >= 16 and len(self.node_endpoints) > 0:
                part = Writer()
                part.compact_array_length(len(self.node_endpoints))
                for node_endpoints_element in self.node_endpoints:
                    node_endpoints_element.encode(part, version)
                tags.append((0, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class FetchableTopicResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchableTopicResponse:
        topic: str = ""
        if version == 12:
            topic = reader.compact_string()
        elif version <= 11:
            topic = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 13:
            topic_id = reader.uuid()
        partitions: list[PartitionData] = []
        if version >= 12:
            count = reader.compact_array_length(37)
        else:
            count = reader.array_length(30)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            unknown_tags = reader.unknown_tags()
        return FetchableTopicResponse(topic, topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version == 12:
            writer.compact_string(self.topic)
        elif version <= 11:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 12:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 12:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        diverging_epoch: EpochEndOffset | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        snapshot_id: SnapshotId | None = None,
        aborted_transactions: list[AbortedTransaction] | None = NOT_GIVEN,
        preferred_read_replica: int = -1,
        records: Records | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.high_watermark: int = high_watermark
        self.last_stable_offset: int = last_stable_offset
        self.log_start_offset: int = log_start_offset
        self.diverging_epoch: EpochEndOffset = EpochEndOffset() if diverging_epoch is None else diverging_epoch
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id
        self.aborted_transactions: list[AbortedTransaction] | None = (
            [] if aborted_transactions is NOT_GIVEN else aborted_transactions
        )
        self.preferred_read_replica: int = preferred_read_replica
        self.records: Records | None = records
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        error_code = reader.int16()
        high_watermark = reader.int64()
        last_stable_offset = reader.int64()
        log_start_offset: int = -1
        if version >= 5:
            log_start_offset = reader.int64()
        diverging_epoch: EpochEndOffset = EpochEndOffset()
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
        snapshot_id: SnapshotId = SnapshotId()
        aborted_transactions: list[AbortedTransaction] | None
        if version >= 12:
            count = reader.compact_nullable_array_length(17)
        else:
            count = reader.nullable_array_length(16)
        if count < 0:
            aborted_transactions = None
        else:
            aborted_transactions = []
            for _ in range(count):
                aborted_transactions.append(AbortedTransaction.decode(reader, version))
        preferred_read_replica: int = -1
        if version >= 11:
            preferred_read_replica = reader.int32()
        records: Records | None
        if version >= 12:
            records = reader.compact_nullable_records()
        else:
            records = reader.nullable_records()
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    diverging_epoch = EpochEndOffset.decode(reader, version)
                elif tag == 1:
                    current_leader = LeaderIdAndEpoch.decode(reader, version)
                elif tag == 2:
                    snapshot_id = SnapshotId.decode(reader, version)
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return PartitionData(
            partition_index,
            error_code,
            high_watermark,
            last_stable_offset,
            log_start_offset,
            diverging_epoch,
            current_leader,
            snapshot_id,
            aborted_transactions,
            preferred_read_replica,
            records,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.int64(self.high_watermark)
        writer.int64(self.last_stable_offset)
        if version >= 5:
            writer.int64(self.log_start_offset)
        if version <= 11 and not self.diverging_epoch.is_default():
            raise cannot_send("diverging_epoch", version)
        if version <= 11 and not self.current_leader.is_default():
            raise cannot_send("current_leader", version)
        if version <= 11 and not self.snapshot_id.is_default():
            raise cannot_send("snapshot_id", version)
        if version >= 12:
            if self.aborted_transactions is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.aborted_transactions))
                for aborted_transactions_element in self.aborted_transactions:
                    aborted_transactions_element.encode(writer, version)
        else:
            if self.aborted_transactions is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.aborted_transactions))
                for aborted_transactions_element in self.aborted_transactions:
                    aborted_transactions_element.encode(writer, version)
        if version >= 11:
            writer.int32(self.preferred_read_replica)
        elif self.preferred_read_replica != -1:
            raise cannot_send("preferred_read_replica", version)
        if version >= 12:
            writer.compact_nullable_records(self.records)
        else:
            writer.nullable_records(self.records)
        if version >= 12:
            tags: UnknownTags = []
            if not self.diverging_epoch.is_default():
                part = Writer()
                self.diverging_epoch.encode(part, version)
                tags.append((0, part.to_bytes()))
            if not self.current_leader.is_default():
                part = Writer()
                self.current_leader.encode(part, version)
                tags.append((1, part.to_bytes()))
            if not self.snapshot_id.is_default():
                part = Writer()
                self.snapshot_id.encode(part, version)
                tags.append((2, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class EpochEndOffset(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("epoch", "end_offset")

    def __init__(self, epoch: int = -1, end_offset: int = -1, unknown_tags: UnknownTags | None = None) -> None:
        self.epoch: int = epoch
        self.end_offset: int = end_offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EpochEndOffset:
        epoch = reader.int32()
        end_offset = reader.int64()
        unknown_tags = reader.unknown_tags()
        return EpochEndOffset(epoch, end_offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.epoch)
        writer.int64(self.end_offset)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.epoch != -1:
            return False
        if self.end_offset != -1:
            return False
        return self.unknown_tags is None


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


class SnapshotId(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("end_offset", "epoch")

    def __init__(self, end_offset: int = -1, epoch: int = -1, unknown_tags: UnknownTags | None = None) -> None:
        self.end_offset: int = end_offset
        self.epoch: int = epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SnapshotId:
        end_offset = reader.int64()
        epoch = reader.int32()
        unknown_tags = reader.unknown_tags()
        return SnapshotId(end_offset, epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.end_offset)
        writer.int32(self.epoch)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.end_offset != -1:
            return False
        if self.epoch != -1:
            return False
        return self.unknown_tags is None


class AbortedTransaction(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("producer_id", "first_offset")

    def __init__(self, producer_id: int = 0, first_offset: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.producer_id: int = producer_id
        self.first_offset: int = first_offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AbortedTransaction:
        producer_id = reader.int64()
        first_offset = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            unknown_tags = reader.unknown_tags()
        return AbortedTransaction(producer_id, first_offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        writer.int64(self.first_offset)
        if version >= 12:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


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
