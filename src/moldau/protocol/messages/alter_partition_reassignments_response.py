"""AlterPartitionReassignments response, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/045-alter-partition-reassignments.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class AlterPartitionReassignmentsResponse(Message):
    API_KEY: ClassVar[int] = 45
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: list[ReassignableTopicResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.allow_replication_factor_change: bool = allow_replication_factor_change
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.responses: list[ReassignableTopicResponse] = [] if responses is None else responses
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterPartitionReassignmentsResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("AlterPartitionReassignmentsResponse", version))
        throttle_time_ms = reader.int32()
        allow_replication_factor_change: bool = True
        if version >= 1:
            allow_replication_factor_change = reader.boolean()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        responses: list[ReassignableTopicResponse] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            responses.append(ReassignableTopicResponse.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterPartitionReassignmentsResponse(
            throttle_time_ms,
            allow_replication_factor_change,
            error_code,
            error_message,
            responses,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("AlterPartitionReassignmentsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 1:
            writer.boolean(self.allow_replication_factor_change)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReassignableTopicResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[ReassignablePartitionResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[ReassignablePartitionResponse] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReassignableTopicResponse:
        name = reader.compact_string()
        partitions: list[ReassignablePartitionResponse] = []
        count = reader.compact_array_length(8)
        for _ in range(count):
            partitions.append(ReassignablePartitionResponse.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ReassignableTopicResponse(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReassignablePartitionResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReassignablePartitionResponse:
        partition_index = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return ReassignablePartitionResponse(partition_index, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
