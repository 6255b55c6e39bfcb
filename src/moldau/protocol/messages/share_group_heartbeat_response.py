"""ShareGroupHeartbeat response, version 1 (generated).

Written by tools/generate_messages.py from schemas/messages/076-share-group-heartbeat.txt.
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


class ShareGroupHeartbeatResponse(Message):
    API_KEY: ClassVar[int] = 76
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.member_id: str | None = member_id
        self.member_epoch: int = member_epoch
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        self.assignment: Assignment | None = assignment
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ShareGroupHeartbeatResponse:
        if version != 1:
            raise DecodeError(no_such_version("ShareGroupHeartbeatResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        member_id = reader.compact_nullable_string()
        member_epoch = reader.int32()
        heartbeat_interval_ms = reader.int32()
        assignment = Assignment.decode(reader, version) if reader.int8() >= 0 else None
        unknown_tags = reader.unknown_tags()
        return ShareGroupHeartbeatResponse(
            throttle_time_ms,
            error_code,
            error_message,
            member_id,
            member_epoch,
            heartbeat_interval_ms,
            assignment,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 1:
            raise EncodeError(no_such_version("ShareGroupHeartbeatResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_nullable_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.int32(self.heartbeat_interval_ms)
        if self.assignment is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.assignment.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class Assignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_partitions",)

    def __init__(
        self,
        topic_partitions: list[TopicPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_partitions: list[TopicPartitions] = [] if topic_partitions is None else topic_partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> Assignment:
        topic_partitions: list[TopicPartitions] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topic_partitions.append(TopicPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return Assignment(topic_partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_array_length(len(self.topic_partitions))
        for topic_partitions_element in self.topic_partitions:
            topic_partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicPartitions(Message):
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
    def decode(reader: Reader, version: int) -> TopicPartitions:
        topic_id = reader.uuid()
        count = reader.compact_array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags = reader.unknown_tags()
        return TopicPartitions(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        writer.unknown_tags(self.unknown_tags)
