"""InitializeShareGroupState response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/083-initialize-share-group-state.txt.
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


class InitializeShareGroupStateResponse(Message):
    API_KEY: ClassVar[int] = 83
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("results",)

    def __init__(
        self,
        results: list[InitializeStateResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.results: list[InitializeStateResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> InitializeShareGroupStateResponse:
        if version != 0:
            raise DecodeError(no_such_version("InitializeShareGroupStateResponse", version))
        results: list[InitializeStateResult] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            results.append(InitializeStateResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return InitializeShareGroupStateResponse(results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("InitializeShareGroupStateResponse", version))
        writer.compact_array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class InitializeStateResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionResult] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> InitializeStateResult:
        topic_id = reader.uuid()
        partitions: list[PartitionResult] = []
        count = reader.compact_array_length(8)
        for _ in range(count):
            partitions.append(PartitionResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return InitializeStateResult(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition", "error_code", "error_message")

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionResult:
        partition = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        unknown_tags = reader.unknown_tags()
        return PartitionResult(partition, error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.unknown_tags(self.unknown_tags)
