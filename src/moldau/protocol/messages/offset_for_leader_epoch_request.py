"""OffsetForLeaderEpoch request, versions 2 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/023-offset-for-leader-epoch.txt.
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


class OffsetForLeaderEpochRequest(Message):
    API_KEY: ClassVar[int] = 23
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("replica_id", "topics")

    def __init__(
        self,
        replica_id: int = -2,
        topics: list[OffsetForLeaderTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.replica_id: int = replica_id
        self.topics: list[OffsetForLeaderTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetForLeaderEpochRequest:
        if version < 2 or version > 4:
            raise DecodeError(no_such_version("OffsetForLeaderEpochRequest", version))
        replica_id: int = -2
        if version >= 3:
            replica_id = reader.int32()
        topics: list[OffsetForLeaderTopic] = []
        if version >= 4:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(OffsetForLeaderTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return OffsetForLeaderEpochRequest(replica_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 4:
            raise EncodeError(no_such_version("OffsetForLeaderEpochRequest", version))
        if version >= 3:
            writer.int32(self.replica_id)
        if version >= 4:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetForLeaderTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[OffsetForLeaderPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[OffsetForLeaderPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetForLeaderTopic:
        topic: str
        if version >= 4:
            topic = reader.compact_string()
        else:
            topic = reader.string()
        partitions: list[OffsetForLeaderPartition] = []
        if version >= 4:
            count = reader.compact_array_length(13)
        else:
            count = reader.array_length(12)
        for _ in range(count):
            partitions.append(OffsetForLeaderPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return OffsetForLeaderTopic(topic, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 4:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetForLeaderPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition", "current_leader_epoch", "leader_epoch")

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetForLeaderPartition:
        partition = reader.int32()
        current_leader_epoch = reader.int32()
        leader_epoch = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return OffsetForLeaderPartition(partition, current_leader_epoch, leader_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.int32(self.current_leader_epoch)
        writer.int32(self.leader_epoch)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
