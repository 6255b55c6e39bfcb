"""FetchSnapshot response, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/059-fetch-snapshot.txt.
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
from moldau.protocol.records_data import Records


class FetchSnapshotResponse(Message):
    API_KEY: ClassVar[int] = 59
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "topics", "node_endpoints")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[TopicSnapshot] | None = None,
        node_endpoints: list[NodeEndpoint] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[TopicSnapshot] = [] if topics is None else topics
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchSnapshotResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("FetchSnapshotResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        topics: list[TopicSnapshot] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicSnapshot.decode(reader, version))
        node_endpoints: list[NodeEndpoint] = []
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0 and version >= 1:
                count = reader.compact_array_length(8)
                node_endpoints = []
                for _ in range(count):
                    node_endpoints.append(NodeEndpoint.decode(reader, version))
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return FetchSnapshotResponse(throttle_time_ms, error_code, topics, node_endpoints, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("FetchSnapshotResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version <= 0 and len(self.node_endpoints) > 0:
            raise cannot_send("node_endpoints", version)
        tags: UnknownTags = []
        if version >= 1 and len(self.node_endpoints) > 0:
            part = Writer()
            part.compact_array_length(len(self.node_endpoints))
            for node_endpoints_element in self.node_endpoints:
                node_endpoints_element.encode(part, version)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class TopicSnapshot(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionSnapshot] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[PartitionSnapshot] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicSnapshot:
        name = reader.compact_string()
        partitions: list[PartitionSnapshot] = []
        count = reader.compact_array_length(37)
        for _ in range(count):
            partitions.append(PartitionSnapshot.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicSnapshot(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionSnapshot(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "index",
        "error_code",
        "snapshot_id",
        "current_leader",
        "size",
        "position",
        "unaligned_records",
    )

    def __init__(
        self,
        index: int = 0,
        error_code: int = 0,
        snapshot_id: SnapshotId | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
        size: int = 0,
        position: int = 0,
        unaligned_records: Records | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.index: int = index
        self.error_code: int = error_code
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id
        self.current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch() if current_leader is None else current_leader
        self.size: int = size
        self.position: int = position
        self.unaligned_records: Records | None = unaligned_records
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionSnapshot:
        index = reader.int32()
        error_code = reader.int16()
        snapshot_id = SnapshotId.decode(reader, version)
        current_leader: LeaderIdAndEpoch = LeaderIdAndEpoch()
        size = reader.int64()
        position = reader.int64()
        unaligned_records = reader.compact_records()
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                current_leader = LeaderIdAndEpoch.decode(reader, version)
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return PartitionSnapshot(
            index,
            error_code,
            snapshot_id,
            current_leader,
            size,
            position,
            unaligned_records,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.index)
        writer.int16(self.error_code)
        self.snapshot_id.encode(writer, version)
        writer.int64(self.size)
        writer.int64(self.position)
        if self.unaligned_records is None:
            raise cannot_send("unaligned_records", version)
        writer.compact_records(self.unaligned_records)
        tags: UnknownTags = []
        if not self.current_leader.is_default():
            part = Writer()
            self.current_leader.encode(part, version)
            tags.append((0, part.to_bytes()))
        writer.tags(tags, self.unknown_tags)


class SnapshotId(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("end_offset", "epoch")

    def __init__(self, end_offset: int = 0, epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
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
        if self.end_offset != 0:
            return False
        if self.epoch != 0:
            return False
        return self.unknown_tags is None


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
    FIELDS: ClassVar[tuple[str, ...]] = ("node_id", "host", "port")

    def __init__(
        self,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.node_id: int = node_id
        self.host: str = host
        self.port: int = port
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> NodeEndpoint:
        node_id = reader.int32()
        host = reader.compact_string()
        port = reader.uint16()
        unknown_tags = reader.unknown_tags()
        return NodeEndpoint(node_id, host, port, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.unknown_tags(self.unknown_tags)
