"""AlterShareGroupOffsets response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/091-alter-share-group-offsets.txt.
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


class AlterShareGroupOffsetsResponse(Message):
    API_KEY: ClassVar[int] = 91
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "error_message", "responses")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: list[AlterShareGroupOffsetsResponseTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[AlterShareGroupOffsetsResponseTopic] = [] if responses is None else responses
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterShareGroupOffsetsResponse:
        if version != 0:
            raise DecodeError(no_such_version("AlterShareGroupOffsetsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        responses: list[AlterShareGroupOffsetsResponseTopic] = []
        count = reader.compact_array_length(19)
        for _ in range(count):
            responses.append(AlterShareGroupOffsetsResponseTopic.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterShareGroupOffsetsResponse(throttle_time_ms, error_code, error_message, responses, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AlterShareGroupOffsetsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AlterShareGroupOffsetsResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "topic_id", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        topic_id: bytes = ZERO_UUID,
        partitions: list[AlterShareGroupOffsetsResponsePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.topic_id: bytes = topic_id
        self.partitions: list[AlterShareGroupOffsetsResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterShareGroupOffsetsResponseTopic:
        topic_name = reader.compact_string()
        topic_id = reader.uuid()
        partitions: list[AlterShareGroupOffsetsResponsePartition] = []
        count = reader.compact_array_length(8)
        for _ in range(count):
            partitions.append(AlterShareGroupOffsetsResponsePartition.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterShareGroupOffsetsResponseTopic(topic_name, topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic_name)
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class AlterShareGroupOffsetsResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterShareGroupOffsetsResponsePartition:
        partition_index = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return AlterShareGroupOffsetsResponsePartition(partition_index, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
