"""TxnOffsetCommit request, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/028-txn-offset-commit.txt.
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


class TxnOffsetCommitRequest(Message):
    API_KEY: ClassVar[int] = 28
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )

    def __init__(
        self,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: list[TxnOffsetCommitRequestTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.group_id: str = group_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.generation_id: int = generation_id
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.topics: list[TxnOffsetCommitRequestTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TxnOffsetCommitRequest:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("TxnOffsetCommitRequest", version))
        transactional_id: str
        if version >= 3:
            transactional_id = reader.compact_string()
        else:
            transactional_id = reader.string()
        group_id: str
        if version >= 3:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        producer_id = reader.int64()
        producer_epoch = reader.int16()
        generation_id: int = -1
        if version >= 3:
            generation_id = reader.int32()
        member_id: str = ""
        if version >= 3:
            member_id = reader.compact_string()
        group_instance_id: str | None = None
        if version >= 3:
            group_instance_id = reader.compact_nullable_string()
        topics: list[TxnOffsetCommitRequestTopic] = []
        if version >= 3:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(TxnOffsetCommitRequestTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return TxnOffsetCommitRequest(
            transactional_id,
            group_id,
            producer_id,
            producer_epoch,
            generation_id,
            member_id,
            group_instance_id,
            topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("TxnOffsetCommitRequest", version))
        if version >= 3:
            writer.compact_string(self.transactional_id)
        else:
            writer.string(self.transactional_id)
        if version >= 3:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int64(self.producer_id)
        writer.int16(self.producer_epoch)
        if version >= 3:
            writer.int32(self.generation_id)
        elif self.generation_id != -1:
            raise cannot_send("generation_id", version)
        if version >= 3:
            writer.compact_string(self.member_id)
        elif self.member_id != "":
            raise cannot_send("member_id", version)
        if version >= 3:
            writer.compact_nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise cannot_send("group_instance_id", version)
        if version >= 3:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TxnOffsetCommitRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitRequestPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitRequestPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TxnOffsetCommitRequestTopic:
        name: str
        if version >= 3:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[TxnOffsetCommitRequestPartition] = []
        if version >= 3:
            count = reader.compact_array_length(18)
        else:
            count = reader.array_length(14)
        for _ in range(count):
            partitions.append(TxnOffsetCommitRequestPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return TxnOffsetCommitRequestTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 3:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TxnOffsetCommitRequestPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )

    def __init__(
        self,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.committed_offset: int = committed_offset
        self.committed_leader_epoch: int = committed_leader_epoch
        self.committed_metadata: str | None = committed_metadata
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TxnOffsetCommitRequestPartition:
        partition_index = reader.int32()
        committed_offset = reader.int64()
        committed_leader_epoch: int = -1
        if version >= 2:
            committed_leader_epoch = reader.int32()
        committed_metadata: str | None
        if version >= 3:
            committed_metadata = reader.compact_nullable_string()
        else:
            committed_metadata = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return TxnOffsetCommitRequestPartition(
            partition_index,
            committed_offset,
            committed_leader_epoch,
            committed_metadata,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.committed_offset)
        if version >= 2:
            writer.int32(self.committed_leader_epoch)
        if version >= 3:
            writer.compact_nullable_string(self.committed_metadata)
        else:
            writer.nullable_string(self.committed_metadata)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
