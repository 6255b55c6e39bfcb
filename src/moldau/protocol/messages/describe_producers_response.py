"""DescribeProducers response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/061-describe-producers.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class DescribeProducersResponse(Message):
    API_KEY: ClassVar[int] = 61
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TopicResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TopicResponse] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeProducersResponse:
        if version != 0:
            raise DecodeError(no_such_version("DescribeProducersResponse", version))
        throttle_time_ms = reader.int32()
        topics: list[TopicResponse] = []
        count = reader.compact_array_length(3)
        for _ in range(count):
            topics.append(TopicResponse.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return DescribeProducersResponse(throttle_time_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("DescribeProducersResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[PartitionResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[PartitionResponse] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicResponse:
        name = reader.compact_string()
        partitions: list[PartitionResponse] = []
        count = reader.compact_array_length(9)
        for _ in range(count):
            partitions.append(PartitionResponse.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicResponse(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code", "error_message", "active_producers")

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: list[ProducerState] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.active_producers: list[ProducerState] = [] if active_producers is None else active_producers
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionResponse:
        partition_index = reader.int32()
        error_code = reader.int16()
        error_message = reader.compact_nullable_string()
        active_producers: list[ProducerState] = []
        count = reader.compact_array_length(37)
        for _ in range(count):
            active_producers.append(ProducerState.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return PartitionResponse(partition_index, error_code, error_message, active_producers, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_array_length(len(self.active_producers))
        for active_producers_element in self.active_producers:
            active_producers_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ProducerState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.last_sequence: int = last_sequence
        self.last_timestamp: int = last_timestamp
        self.coordinator_epoch: int = coordinator_epoch
        self.current_txn_start_offset: int = current_txn_start_offset
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ProducerState:
        producer_id = reader.int64()
        producer_epoch = reader.int32()
        last_sequence = reader.int32()
        last_timestamp = reader.int64()
        coordinator_epoch = reader.int32()
        current_txn_start_offset = reader.int64()
        unknown_tags = reader.unknown_tags()
        return ProducerState(
            producer_id,
            producer_epoch,
            last_sequence,
            last_timestamp,
            coordinator_epoch,
            current_txn_start_offset,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        writer.int32(self.producer_epoch)
        writer.int32(self.last_sequence)
        writer.int64(self.last_timestamp)
        writer.int32(self.coordinator_epoch)
        writer.int64(self.current_txn_start_offset)
        writer.unknown_tags(self.unknown_tags)
