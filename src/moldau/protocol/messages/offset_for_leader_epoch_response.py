"""OffsetForLeaderEpoch response, versions 2 to 4 (generated).

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


class OffsetForLeaderEpochResponse(Message):
    API_KEY: ClassVar[int] = 23
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[OffsetForLeaderTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[OffsetForLeaderTopicResult] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetForLeaderEpochResponse:
        if version < 2 or version > 4:
            raise DecodeError(no_such_version("OffsetForLeaderEpochResponse", version))
        throttle_time_ms = reader.int32()
        topics: list[OffsetForLeaderTopicResult] = []
        if version >= 4:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(OffsetForLeaderTopicResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return OffsetForLeaderEpochResponse(throttle_time_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 4:
            raise EncodeError(no_such_version("OffsetForLeaderEpochResponse", version))
        writer.int32(self.throttle_time_ms)
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


class OffsetForLeaderTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[EpochEndOffset] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[EpochEndOffset] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> OffsetForLeaderTopicResult:
        topic: str
        if version >= 4:
            topic = reader.compact_string()
        else:
            topic = reader.string()
        partitions: list[EpochEndOffset] = []
        if version >= 4:
            count = reader.compact_array_length(19)
        else:
            count = reader.array_length(18)
        for _ in range(count):
            partitions.append(EpochEndOffset.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return OffsetForLeaderTopicResult(topic, partitions, unknown_tags)

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


class EpochEndOffset(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "partition", "leader_epoch", "end_offset")

    def __init__(
        self,
        error_code: int = 0,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.partition: int = partition
        self.leader_epoch: int = leader_epoch
        self.end_offset: int = end_offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EpochEndOffset:
        error_code = reader.int16()
        partition = reader.int32()
        leader_epoch = reader.int32()
        end_offset = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return EpochEndOffset(error_code, partition, leader_epoch, end_offset, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.int32(self.partition)
        writer.int32(self.leader_epoch)
        writer.int64(self.end_offset)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
