"""FetchSnapshot request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/059-fetch-snapshot.txt.
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


class FetchSnapshotRequest(Message):
    API_KEY: ClassVar[int] = 59
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("cluster_id", "replica_id", "max_bytes", "topics")

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        max_bytes: int = 2147483647,
        topics: list[TopicSnapshot] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.max_bytes: int = max_bytes
        self.topics: list[TopicSnapshot] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchSnapshotRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("FetchSnapshotRequest", version))
        cluster_id: str | None = None
        replica_id = reader.int32()
        max_bytes = reader.int32()
        topics: list[TopicSnapshot] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicSnapshot.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0:
                cluster_id = reader.compact_nullable_string()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return FetchSnapshotRequest(cluster_id, replica_id, max_bytes, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("FetchSnapshotRequest", version))
        writer.int32(self.replica_id)
        writer.int32(self.max_bytes)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        tags: UnknownTags = []
        if self.cluster_id is not None:
            part = Writer()
            part.compact_nullable_string(self.cluster_id)
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
        count = reader.compact_array_length(30)
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
        "partition",
        "current_leader_epoch",
        "snapshot_id",
        "position",
        "replica_directory_id",
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = 0,
        snapshot_id: SnapshotId | None = None,
        position: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.snapshot_id: SnapshotId = SnapshotId() if snapshot_id is None else snapshot_id
        self.position: int = position
        self.replica_directory_id: bytes = replica_directory_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionSnapshot:
        partition = reader.int32()
        current_leader_epoch = reader.int32()
        snapshot_id = SnapshotId.decode(reader, version)
        position = reader.int64()
        replica_directory_id: bytes = ZERO_UUID
        unknown_tags: UnknownTags | None = None
        for _ in range(reader.tag_count()):
            tag = reader.uvarint()
            end = reader.tag_end()
            if tag == 0 and version >= 1:
                replica_directory_id = reader.uuid()
            else:
                unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
            reader.check_tag_end(end)
        return PartitionSnapshot(
            partition,
            current_leader_epoch,
            snapshot_id,
            position,
            replica_directory_id,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.int32(self.current_leader_epoch)
        self.snapshot_id.encode(writer, version)
        writer.int64(self.position)
        tags: UnknownTags = []
        if version >= 1 and self.replica_directory_id != ZERO_UUID:
            part = Writer()
            part.uuid(self.replica_directory_id)
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
