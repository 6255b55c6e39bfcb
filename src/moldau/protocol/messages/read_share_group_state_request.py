"""ReadShareGroupState request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/084-read-share-group-state.txt.
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


class ReadShareGroupStateRequest(Message):
    API_KEY: ClassVar[int] = 84
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "topics")

    def __init__(
        self,
        group_id: str = "",
        topics: list[ReadStateData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.topics: list[ReadStateData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReadShareGroupStateRequest:
        if version != 0:
            raise DecodeError(no_such_version("ReadShareGroupStateRequest", version))
        group_id = reader.compact_string()
        topics: list[ReadStateData] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(ReadStateData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ReadShareGroupStateRequest(group_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ReadShareGroupStateRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReadStateData(Message):
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
    def decode(reader: Reader, version: int) -> ReadStateData:
        topic_id = reader.uuid()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ReadStateData(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition", "leader_epoch")

    def __init__(self, partition: int = 0, leader_epoch: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition = reader.int32()
        leader_epoch = reader.int32()
        unknown_tags = reader.unknown_tags()
        return PartitionData(partition, leader_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.int32(self.leader_epoch)
        writer.unknown_tags(self.unknown_tags)
