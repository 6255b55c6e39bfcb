"""Fetch request, versions 4 to 18 (generated).

Written by tools/generate_messages.py from schemas/messages/001-fetch.txt.
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


class FetchRequest(Message):
    API_KEY: ClassVar[int] = 1
    LOWEST_VERSION: ClassVar[int] = 4
    HIGHEST_VERSION: ClassVar[int] = 18
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 12
    FIELDS: ClassVar[tuple[str, ...]] = (
        "cluster_id",
        "replica_id",
        "replica_state",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
    )

    def __init__(
        self,
        cluster_id: str | None = None,
        replica_id: int = -1,
        replica_state: ReplicaState | None = None,
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        topics: list[FetchTopic] | None = None,
        forgotten_topics_data: list[ForgottenTopic] | None = None,
        rack_id: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.cluster_id: str | None = cluster_id
        self.replica_id: int = replica_id
        self.replica_state: ReplicaState = ReplicaState() if replica_state is None else replica_state
        self.max_wait_ms: int = max_wait_ms
        self.min_bytes: int = min_bytes
        self.max_bytes: int = max_bytes
        self.isolation_level: int = isolation_level
        self.session_id: int = session_id
        self.session_epoch: int = session_epoch
        self.topics: list[FetchTopic] = [] if topics is None else topics
        self.forgotten_topics_data: list[ForgottenTopic] = (
            [] if forgotten_topics_data is None else forgotten_topics_data
        )
        self.rack_id: str = rack_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchRequest:
        if version < 4 or version > 18:
            raise DecodeError(no_such_version("FetchRequest", version))
        cluster_id: str | None = None
        replica_id: int = -1
        if version <= 14:
            replica_id = reader.int32()
        replica_state: ReplicaState = ReplicaState()
        max_wait_ms = reader.int32()
        min_bytes = reader.int32()
        max_bytes = reader.int32()
        isolation_level = reader.int8()
        session_id: int = 0
        if version >= 7:
            session_id = reader.int32()
        session_epoch: int = -1
        if version >= 7:
            session_epoch = reader.int32()
        topics: list[FetchTopic] = []
        if version >= 12:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(FetchTopic.decode(reader, version))
        forgotten_topics_data: list[ForgottenTopic] = []
        if version >= 7:
            if version >= 12:
                count = reader.compact_array_length(3)
            else:
                count = reader.array_length(6)
            for _ in range(count):
                forgotten_topics_data.append(ForgottenTopic.decode(reader, version))
        rack_id: str = ""
        if version >= 12:
            rack_id = reader.compact_string()
        elif version >= 11:
            rack_id = reader.string()
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    cluster_id = reader.compact_nullable_string()
                elif tag == 1 and version >= 15:
                    replica_state = ReplicaState.decode(reader, version)
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return FetchRequest(
            cluster_id,
            replica_id,
            replica_state,
            max_wait_ms,
            min_bytes,
            max_bytes,
            isolation_level,
            session_id,
            session_epoch,
            topics,
            forgotten_topics_data,
            rack_id,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 4 or version > 18:
            raise EncodeError(no_such_version("FetchRequest", version))
        if version >= 15:
            if self.replica_id != -1:
                raise cannot_send("replica_id", version)
        else:
            writer.int32(self.replica_id)
        if version <= 14 and not self.replica_state.is_default():
            raise cannot_send("replica_state", version)
        writer.int32(self.max_wait_ms)
        writer.int32(self.min_bytes)
        writer.int32(self.max_bytes)
        writer.int8(self.isolation_level)
        if version >= 7:
            writer.int32(self.session_id)
        if version >= 7:
            writer.int32(self.session_epoch)
        if version >= 12:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 7:
            if version >= 12:
                writer.compact_array_length(len(self.forgotten_topics_data))
            else:
                writer.array_length(len(self.forgotten_topics_data))
            for forgotten_topics_data_element in self.forgotten_topics_data:
                forgotten_topics_data_element.encode(writer, version)
        elif len(self.forgotten_topics_data) > 0:
            raise cannot_send("forgotten_topics_data", version)
        if version >= 12:
            writer.compact_string(self.rack_id)
        elif version >= 11:
            writer.string(self.rack_id)
        if version >= 12:
            tags: UnknownTags = []
            if self.cluster_id is not None:
                part = Writer()
                part.compact_nullable_string(self.cluster_id)
                tags.append((0, part.to_bytes()))
            if version >= 15 and not self.replica_state.is_default():
                part = Writer()
                self.replica_state.encode(part, version)
                tags.append((1, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ReplicaState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("replica_id", "replica_epoch")

    def __init__(self, replica_id: int = -1, replica_epoch: int = -1, unknown_tags: UnknownTags | None = None) -> None:
        self.replica_id: int = replica_id
        self.replica_epoch: int = replica_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReplicaState:
        replica_id = reader.int32()
        replica_epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return ReplicaState(replica_id, replica_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.replica_id)
        writer.int64(self.replica_epoch)
        writer.unknown_tags(self.unknown_tags)

    def is_default(self) -> bool:
        if self.replica_id != -1:
            return False
        if self.replica_epoch != -1:
            return False
        return self.unknown_tags is None


class FetchTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[FetchPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[FetchPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchTopic:
        topic: str = ""
        if version == 12:
            topic = reader.compact_string()
        elif version <= 11:
            topic = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 13:
            topic_id = reader.uuid()
        partitions: list[FetchPartition] = []
        if version >= 12:
            count = reader.compact_array_length(33)
        else:
            count = reader.array_length(16)
        for _ in range(count):
            partitions.append(FetchPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            unknown_tags = reader.unknown_tags()
        return FetchTopic(topic, topic_id, partitions, unknown_tags)

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


class FetchPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        partition: int = 0,
        current_leader_epoch: int = -1,
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,
        log_start_offset: int = -1,
        partition_max_bytes: int = 0,
        replica_directory_id: bytes = ZERO_UUID,
        high_watermark: int = 9223372036854775807,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.current_leader_epoch: int = current_leader_epoch
        self.fetch_offset: int = fetch_offset
        self.last_fetched_epoch: int = last_fetched_epoch
        self.log_start_offset: int = log_start_offset
        self.partition_max_bytes: int = partition_max_bytes
        self.replica_directory_id: bytes = replica_directory_id
        self.high_watermark: int = high_watermark
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> FetchPartition:
        partition = reader.int32()
        current_leader_epoch: int = -1
        if version >= 9:
            current_leader_epoch = reader.int32()
        fetch_offset = reader.int64()
        last_fetched_epoch: int = -1
        if version >= 12:
            last_fetched_epoch = reader.int32()
        log_start_offset: int = -1
        if version >= 5:
            log_start_offset = reader.int64()
        partition_max_bytes = reader.int32()
        replica_directory_id: bytes = ZERO_UUID
        high_watermark: int = 9223372036854775807
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 17:
                    replica_directory_id = reader.uuid()
                elif tag == 1 and version >= 18:
                    high_watermark = reader.int64()
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return FetchPartition(
            partition,
            current_leader_epoch,
            fetch_offset,
            last_fetched_epoch,
            log_start_offset,
            partition_max_bytes,
            replica_directory_id,
            high_watermark,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        if version >= 9:
            writer.int32(self.current_leader_epoch)
        writer.int64(self.fetch_offset)
        if version >= 12:
            writer.int32(self.last_fetched_epoch)
        elif self.last_fetched_epoch != -1:
            raise cannot_send("last_fetched_epoch", version)
        if version >= 5:
            writer.int64(self.log_start_offset)
        writer.int32(self.partition_max_bytes)
        if version >= 12:
            tags: UnknownTags = []
            if version >= 17 and self.replica_directory_id != ZERO_UUID:
                part = Writer()
                part.uuid(self.replica_directory_id)
                tags.append((0, part.to_bytes()))
            if version >= 18 and self.high_watermark != 9223372036854775807:
                part = Writer()
                part.int64(self.high_watermark)
                tags.append((1, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ForgottenTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        topic: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.topic_id: bytes = topic_id
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ForgottenTopic:
        topic: str = ""
        if version == 12:
            topic = reader.compact_string()
        elif version <= 11:
            topic = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 13:
            topic_id = reader.uuid()
        if version >= 12:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 12:
            unknown_tags = reader.unknown_tags()
        return ForgottenTopic(topic, topic_id, partitions, unknown_tags)

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
        writer.int32_list(self.partitions)
        if version >= 12:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
