"""ShareAcknowledge request, versions 1 to 2 (generated).

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
    cannot_send,
    no_such_version,
)


class ShareAcknowledgeRequest(Message):
    API_KEY: ClassVar[int] = 79
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("group_id", "member_id", "share_session_epoch", "is_renew_ack", "topics")

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        is_renew_ack: bool = False,
        topics: list[AcknowledgeTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[AcknowledgeTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareAcknowledgeRequest:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("ShareAcknowledgeRequest", version))
        group_id = reader.compact_nullable_string()
        member_id = reader.compact_nullable_string()
        share_session_epoch = reader.int32()
        is_renew_ack: bool = False
        if version >= 2:
            is_renew_ack = reader.boolean()
        topics: list[AcknowledgeTopic] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(AcknowledgeTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareAcknowledgeRequest(group_id, member_id, share_session_epoch, is_renew_ack, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("ShareAcknowledgeRequest", version))
        writer.compact_nullable_string(self.group_id)
        writer.compact_nullable_string(self.member_id)
        writer.int32(self.share_session_epoch)
        if version >= 2:
            writer.boolean(self.is_renew_ack)
        elif self.is_renew_ack:
            raise cannot_send("is_renew_ack", version)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AcknowledgeTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[AcknowledgePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[AcknowledgePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AcknowledgeTopic:
        topic_id = reader.uuid()
        partitions: list[AcknowledgePartition] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            partitions.append(AcknowledgePartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AcknowledgeTopic(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AcknowledgePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "acknowledgement_batches")

    def __init__(
        self,
        partition_index: int = 0,
        acknowledgement_batches: list[AcknowledgementBatch] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.acknowledgement_batches: list[AcknowledgementBatch] = (
            [] if acknowledgement_batches is None else acknowledgement_batches
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AcknowledgePartition:
        partition_index = reader.int32()
        acknowledgement_batches: list[AcknowledgementBatch] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            acknowledgement_batches.append(AcknowledgementBatch.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AcknowledgePartition(partition_index, acknowledgement_batches, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.compact_array_length(len(self.acknowledgement_batches))
        for acknowledgement_batches_element in self.acknowledgement_batches:
            acknowledgement_batches_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AcknowledgementBatch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("first_offset", "last_offset", "acknowledge_types")

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        acknowledge_types: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.acknowledge_types: list[int] = [] if acknowledge_types is None else acknowledge_types
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AcknowledgementBatch:
        first_offset = reader.int64()
        last_offset = reader.int64()
        count = reader.compact_array_length(1)
        acknowledge_types = reader.int8_list(count)
        unknown_tags = reader.unknown_tags()
        return AcknowledgementBatch(first_offset, last_offset, acknowledge_types, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.first_offset)
        writer.int64(self.last_offset)
        writer.compact_array_length(len(self.acknowledge_types))
        writer.int8_list(self.acknowledge_types)
        writer.unknown_tags(self.unknown_tags)
