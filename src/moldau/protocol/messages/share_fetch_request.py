"""ShareFetch request, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/078-share-fetch.txt.
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


class ShareFetchRequest(Message):
    API_KEY: ClassVar[int] = 78
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = (
        "group_id",
        "member_id",
        "share_session_epoch",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "max_records",
        "batch_size",
        "share_acquire_mode",
        "is_renew_ack",
        "topics",
        "forgotten_topics_data",
    )

    def __init__(
        self,
        group_id: str | None = None,
        member_id: str | None = "",
        share_session_epoch: int = 0,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        max_records: int = 0,
        batch_size: int = 0,
        share_acquire_mode: int = 0,
        is_renew_ack: bool = False,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str | None = group_id
        self.member_id: str | None = member_id
        self.share_session_epoch: int = share_session_epoch
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.max_records: int = max_records
        self.batch_size: int = batch_size
        self.share_acquire_mode: int = share_acquire_mode
        self.is_renew_ack: bool = is_renew_ack
        self.topics: list[FetchTopic] = [] if topics is None else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if forgotten_topics_data is None else forgotten_topics_data
        )
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareFetchRequest:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("ShareFetchRequest", version))
        group_id = reader.compact_nullable_string()
        member_id = reader.compact_nullable_string()
        share_session_epoch = reader.int32()
        max_wait_ms = reader.int32()
        min_bytes = reader.int32()
        max_bytes = reader.int32()
        max_records = reader.int32()
        batch_size = reader.int32()
        share_acquire_mode: int = 0
        if version >= 2:
            share_acquire_mode = reader.int8()
        is_renew_ack: bool = False
        if version >= 2:
            is_renew_ack = reader.boolean()
        topics: list[FetchTopic] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(FetchTopic.decode(reader, version))
        forgotten_topics_data: list[ForgottenTopic] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            forgotten_topics_data.append(ForgottenTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ShareFetchRequest(
            group_id,
            member_id,
            share_session_epoch,
            max_wait_ms,
            min_bytes,
            max_bytes,
            max_records,
            batch_size,
            share_acquire_mode,
            is_renew_ack,
            topics,
            forgotten_topics_data,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("ShareFetchRequest", version))
        writer.compact_nullable_string(self.group_id)
        writer.compact_nullable_string(self.member_id)
        writer.int32(self.share_session_epoch)
        writer.int32(self.max_wait_ms)
        writer.int32(self.min_bytes)
        writer.int32(self.max_bytes)
        writer.int32(self.max_records)
        writer.int32(self.batch_size)
        if version >= 2:
            writer.int8(self.share_acquire_mode)
        if version >= 2:
            writer.boolean(self.is_renew_ack)
        elif self.is_renew_ack:
            raise cannot_send("is_renew_ack", version)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.compact_array_length(len(self.forgotten_topics_data))
        for forgotten_topics_data_element in self.forgotten_topics_data:
            forgotten_topics_data_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class FetchTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchTopic:
        topic_id = reader.uuid()
        partitions: list[FetchPartition] = []
        count = reader.compact_array_length(6)
        for _ in range(count):
            partitions.append(FetchPartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return FetchTopic(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class FetchPartition(Message):
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
    def decode(reader: Reader, version: int) -> FetchPartition:
        partition_index = reader.int32()
        acknowledgement_batches: list[AcknowledgementBatch] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            acknowledgement_batches.append(AcknowledgementBatch.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return FetchPartition(partition_index, acknowledgement_batches, unknown_tags)

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


class ForgottenTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ForgottenTopic:
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return ForgottenTopic(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)
