"""ReadShareGroupState response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/084-read-share-group-state.txt.
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


class ReadShareGroupStateResponse(Message):
    API_KEY: ClassVar[int] = 84
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("results",)

    def __init__(self, results: list[ReadStateResult] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.results: list[ReadStateResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ReadShareGroupStateResponse:
        if version != 0:
            raise DecodeError(no_such_version("ReadShareGroupStateResponse", version))
        results: list[ReadStateResult] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            results.append(ReadStateResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ReadShareGroupStateResponse(results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("ReadShareGroupStateResponse", version))
        writer.compact_array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ReadStateResult(Message):
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
    def decode(reader: Reader, version: int) -> ReadStateResult:
        topic_id = reader.uuid()
        partitions: list[PartitionResult] = []
        count = reader.compact_array_length(21)
        for _ in range(count):
            partitions.append(PartitionResult.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ReadStateResult(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "start_offset",
        "state_batches",
    )

    def __init__(
        self,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: list[StateBatch] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition: int = partition
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.state_epoch: int = state_epoch
        self.start_offset: int = start_offset
        self.state_batches: list[StateBatch] = [] if state_batches is None else state_batches
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionResult:
        partition = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        state_epoch = reader.int32()
        start_offset = reader.int64()
        state_batches: list[StateBatch] = []
        count = reader.compact_array_length(20)
        for _ in range(count):
            state_batches.append(StateBatch.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return PartitionResult(
            partition,
            error_code,
            error_message,
            state_epoch,
            start_offset,
            state_batches,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.int32(self.state_epoch)
        writer.int64(self.start_offset)
        writer.compact_array_length(len(self.state_batches))
        for state_batches_element in self.state_batches:
            state_batches_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class StateBatch(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("first_offset", "last_offset", "delivery_state", "delivery_count")

    def __init__(
        self,
        first_offset: int = 0,
        last_offset: int = 0,
        delivery_state: int = 0,
        delivery_count: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.first_offset: int = first_offset
        self.last_offset: int = last_offset
        self.delivery_state: int = delivery_state
        self.delivery_count: int = delivery_count
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> StateBatch:
        first_offset = reader.int64()
        last_offset = reader.int64()
        delivery_state = reader.int8()
        delivery_count = reader.int16()
        unknown_tags = reader.unknown_tags()
        return StateBatch(first_offset, last_offset, delivery_state, delivery_count, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.first_offset)
        writer.int64(self.last_offset)
        writer.int8(self.delivery_state)
        writer.int16(self.delivery_count)
        writer.unknown_tags(self.unknown_tags)
