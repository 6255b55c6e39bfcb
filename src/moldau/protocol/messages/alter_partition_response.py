"""AlterPartition response, versions 2 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/056-alter-partition.txt.
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


class AlterPartitionResponse(Message):
    API_KEY: ClassVar[int] = 56
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.topics: list[TopicData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterPartitionResponse:
        if version < 2 or version > 3:
            raise DecodeError(no_such_version("AlterPartitionResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        topics: list[TopicData] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterPartitionResponse(throttle_time_ms, error_code, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 3:
            raise EncodeError(no_such_version("AlterPartitionResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class TopicData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_id", "partitions")

    def __init__(
        self,
        topic_id: bytes = ZERO_UUID,
        partitions: list[PartitionData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_id: bytes = topic_id
        self.partitions: list[PartitionData] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicData:
        topic_id = reader.uuid()
        partitions: list[PartitionData] = []
        count = reader.compact_array_length(21)
        for _ in range(count):
            partitions.append(PartitionData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return TopicData(topic_id, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.compact_array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class PartitionData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "partition_index",
        "error_code",
        "leader_id",
        "leader_epoch",
        "isr",
        "leader_recovery_state",
        "partition_epoch",
    )

    def __init__(
        self,
        partition_index: int = 0,
        error_code: int = 0,
        leader_id: int = 0,
        leader_epoch: int = 0,
        isr: list[int] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.leader_id: int = leader_id
        self.leader_epoch: int = leader_epoch
        self.isr: list[int] = [] if isr is None else isr
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        error_code = reader.int16()
        leader_id = reader.int32()
        leader_epoch = reader.int32()
        count = reader.compact_array_length(4)
        isr = reader.int32_list(count)
        leader_recovery_state = reader.int8()
        partition_epoch = reader.int32()
        unknown_tags = reader.unknown_tags()
        return PartitionData(
            partition_index,
            error_code,
            leader_id,
            leader_epoch,
            isr,
            leader_recovery_state,
            partition_epoch,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        writer.int32(self.leader_id)
        writer.int32(self.leader_epoch)
        writer.compact_array_length(len(self.isr))
        writer.int32_list(self.isr)
        writer.int8(self.leader_recovery_state)
        writer.int32(self.partition_epoch)
        writer.unknown_tags(self.unknown_tags)
