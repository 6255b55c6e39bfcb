"""Vote request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/052-vote.txt.
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


class VoteRequest(Message):
    API_KEY: ClassVar[int] = 52
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("cluster_id", "voter_id", "topics")

    def __init__(
        self,
        cluster_id: str | None = None,
        voter_id: int = -1,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.voter_id: int = voter_id
        self.topics: list[TopicData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> VoteRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("VoteRequest", version))
        cluster_id = reader.compact_nullable_string()
        voter_id: int = -1
        if version >= 1:
            voter_id = reader.int32()
        topics: list[TopicData] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return VoteRequest(cluster_id, voter_id, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("VoteRequest", version))
        writer.compact_nullable_string(self.cluster_id)
        if version >= 1:
            writer.int32(self.voter_id)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
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
        "replica_epoch",
        "replica_id",
        "replica_directory_id",
        "voter_directory_id",
        "last_offset_epoch",
        "last_offset",
        "pre_vote",
    )

    def __init__(
        self,
        partition_index: int = 0,
        replica_epoch: int = 0,
        replica_id: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        voter_directory_id: bytes = ZERO_UUID,
        last_offset_epoch: int = 0,
        last_offset: int = 0,
        pre_vote: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.replica_epoch: int = replica_epoch
        self.replica_id: int = replica_id
        self.replica_directory_id: bytes = replica_directory_id
        self.voter_directory_id: bytes = voter_directory_id
        self.last_offset_epoch: int = last_offset_epoch
        self.last_offset: int = last_offset
        self.pre_vote: bool = pre_vote
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        replica_epoch = reader.int32()
        replica_id = reader.int32()
        replica_directory_id: bytes = ZERO_UUID
        if version >= 1:
            replica_directory_id = reader.uuid()
        voter_directory_id: bytes = ZERO_UUID
        if version >= 1:
            voter_directory_id = reader.uuid()
        last_offset_epoch = reader.int32()
        last_offset = reader.int64()
        pre_vote: bool = False
        if version >= 2:
            pre_vote = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return PartitionData(
            partition_index,
            replica_epoch,
            replica_id,
            replica_directory_id,
            voter_directory_id,
            last_offset_epoch,
            last_offset,
            pre_vote,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int32(self.replica_epoch)
        writer.int32(self.replica_id)
        if version >= 1:
            writer.uuid(self.replica_directory_id)
        if version >= 1:
            writer.uuid(self.voter_directory_id)
        writer.int32(self.last_offset_epoch)
        writer.int64(self.last_offset)
        if version >= 2:
            writer.boolean(self.pre_vote)
        elif self.pre_vote:
            raise cannot_send("pre_vote", version)
        writer.unknown_tags(self.unknown_tags)
