"""AlterPartition request, versions 2 to 3 (generated).

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
    cannot_send,
    no_such_version,
)


class AlterPartitionRequest(Message):
    API_KEY: ClassVar[int] = 56
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id", "broker_epoch", "topics")

    def __init__(
        self,
        broker_id: int = 0,
        broker_epoch: int = -1,
        topics: list[TopicData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.topics: list[TopicData] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterPartitionRequest:
        if version < 2 or version > 3:
            raise DecodeError(no_such_version("AlterPartitionRequest", version))
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        topics: list[TopicData] = []
        count = reader.compact_array_length(18)
        for _ in range(count):
            topics.append(TopicData.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return AlterPartitionRequest(broker_id, broker_epoch, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 3:
            raise EncodeError(no_such_version("AlterPartitionRequest", version))
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
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
        count = reader.compact_array_length(15)
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
        "leader_epoch",
        "new_isr",
        "new_isr_with_epochs",
        "leader_recovery_state",
        "partition_epoch",
    )

    def __init__(
        self,
        partition_index: int = 0,
        leader_epoch: int = 0,
        new_isr: list[int] | None = None,
        new_isr_with_epochs: list[BrokerState] | None = None,
        leader_recovery_state: int = 0,
        partition_epoch: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.leader_epoch: int = leader_epoch
        self.new_isr: list[int] = [] if new_isr is None else new_isr
        self.new_isr_with_epochs: list[BrokerState] = [] if new_isr_with_epochs is None else new_isr_with_epochs
        self.leader_recovery_state: int = leader_recovery_state
        self.partition_epoch: int = partition_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionData:
        partition_index = reader.int32()
        leader_epoch = reader.int32()
        new_isr: list[int] = []
        if version <= 2:
            count = reader.compact_array_length(4)
            new_isr = reader.int32_list(count)
        new_isr_with_epochs: list[BrokerState] = []
        if version >= 3:
            count = reader.compact_array_length(13)
            for _ in range(count):
                new_isr_with_epochs.append(BrokerState.decode(reader, version))
        leader_recovery_state = reader.int8()
        partition_epoch = reader.int32()
        unknown_tags = reader.unknown_tags()
        return PartitionData(
            partition_index,
            leader_epoch,
            new_isr,
            new_isr_with_epochs,
            leader_recovery_state,
            partition_epoch,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int32(self.leader_epoch)
        if version >= 3:
            if len(self.new_isr) > 0:
                raise cannot_send("new_isr", version)
        else:
            writer.compact_array_length(len(self.new_isr))
            writer.int32_list(self.new_isr)
        if version >= 3:
            writer.compact_array_length(len(self.new_isr_with_epochs))
            for new_isr_with_epochs_element in self.new_isr_with_epochs:
                new_isr_with_epochs_element.encode(writer, version)
        elif len(self.new_isr_with_epochs) > 0:
            raise cannot_send("new_isr_with_epochs", version)
        writer.int8(self.leader_recovery_state)
        writer.int32(self.partition_epoch)
        writer.unknown_tags(self.unknown_tags)


class BrokerState(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id", "broker_epoch")

    def __init__(self, broker_id: int = 0, broker_epoch: int = -1, unknown_tags: UnknownTags | None = None) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerState:
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return BrokerState(broker_id, broker_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
        writer.unknown_tags(self.unknown_tags)
