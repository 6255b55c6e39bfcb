"""OffsetCommit request, versions 2 to 10 (generated).

Written by tools/generate_messages.py from schemas/messages/008-offset-commit.txt.
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


class OffsetCommitRequest(Message):
    API_KEY: ClassVar[int] = 8
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 10
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 8
    FIELDS: ClassVar[tuple[str, ...]] = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "group_instance_id",
        "retention_time_ms",
        "topics",
    )

    def __init__(
        self,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        retention_time_ms: int = -1,
        topics: list[OffsetCommitRequestTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.generation_id_or_member_epoch: int = generation_id_or_member_epoch
        self.member_id: str = member_id
        self.group_instance_id: str | None = group_instance_id
        self.retention_time_ms: int = retention_time_ms
        self.topics: list[OffsetCommitRequestTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitRequest:
        if version < 2 or version > 10:
            raise DecodeError(no_such_version("OffsetCommitRequest", version))
        group_id: str
        if version >= 8:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        generation_id_or_member_epoch = reader.int32()
        member_id: str
        if version >= 8:
            member_id = reader.compact_string()
        else:
            member_id = reader.string()
        group_instance_id: str | None = None
        if version >= 8:
            group_instance_id = reader.compact_nullable_string()
        elif version >= 7:
            group_instance_id = reader.nullable_string()
        retention_time_ms: int = -1
        if version <= 4:
            retention_time_ms = reader.int64()
        topics: list[OffsetCommitRequestTopic] = []
        if version >= 8:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(OffsetCommitRequestTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 8:
            unknown_tags = reader.unknown_tags()
        return OffsetCommitRequest(
            group_id,
            generation_id_or_member_epoch,
            member_id,
            group_instance_id,
            retention_time_ms,
            topics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 10:
            raise EncodeError(no_such_version("OffsetCommitRequest", version))
        if version >= 8:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        writer.int32(self.generation_id_or_member_epoch)
        if version >= 8:
            writer.compact_string(self.member_id)
        else:
            writer.string(self.member_id)
        if version >= 8:
            writer.compact_nullable_string(self.group_instance_id)
        elif version >= 7:
            writer.nullable_string(self.group_instance_id)
        elif self.group_instance_id is not None:
            raise cannot_send("group_instance_id", version)
        if version <= 4:
            writer.int64(self.retention_time_ms)
        if version >= 8:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 8:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetCommitRequestTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "partitions")

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[OffsetCommitRequestPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partitions: list[OffsetCommitRequestPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetCommitRequestTopic:
        name: str = ""
        if 8 <= version <= 9:
            name = reader.compact_string()
        elif version <= 7:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 10:
            topic_id = reader.uuid()
        partitions: list[OffsetCommitRequestPartition] = []
        if version >= 8:
            count = reader.compact_array_length(18)
        else:
            count = reader.array_length(14)
        for _ in range(count):
            partitions.append(OffsetCommitRequestPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 8:
            unknown_tags = reader.unknown_tags()
        return OffsetCommitRequestTopic(name, topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if 8 <= version <= 9:
            writer.compact_string(self.name)
        elif version <= 7:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 8:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 8:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class OffsetCommitRequestPartition(Message):
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
    def decode(reader: Reader, version: int) -> OffsetCommitRequestPartition:
        partition_index = reader.int32()
        committed_offset = reader.int64()
        committed_leader_epoch: int = -1
        if version >= 6:
            committed_leader_epoch = reader.int32()
        committed_metadata: str | None
        if version >= 8:
            committed_metadata = reader.compact_nullable_string()
        else:
            committed_metadata = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 8:
            unknown_tags = reader.unknown_tags()
        return OffsetCommitRequestPartition(
            partition_index,
            committed_offset,
            committed_leader_epoch,
            committed_metadata,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.committed_offset)
        if version >= 6:
            writer.int32(self.committed_leader_epoch)
        if version >= 8:
            writer.compact_nullable_string(self.committed_metadata)
        else:
            writer.nullable_string(self.committed_metadata)
        if version >= 8:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
