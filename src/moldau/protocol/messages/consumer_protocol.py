"""ConsumerProtocolSubscription, versions 0 to 3; ConsumerProtocolAssignment, versions 0 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/consumer-protocol.txt.
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


class ConsumerProtocolSubscription(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "user_data", "owned_partitions", "generation_id", "rack_id")

    def __init__(
        self,
        topics: list[str] | None = None,
        user_data: bytes | None = None,
        owned_partitions: list[SubscriptionTopicPartition] | None = None,
        generation_id: int = -1,
        rack_id: str | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[str] = [] if topics is None else topics
        self.user_data: bytes | None = user_data
        self.owned_partitions: list[SubscriptionTopicPartition] = [] if owned_partitions is None else owned_partitions
        self.generation_id: int = generation_id
        self.rack_id: str | None = rack_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerProtocolSubscription:
        if version < 0 or version > 3:
            raise DecodeError(no_such_version("ConsumerProtocolSubscription", version))
        count = reader.array_length(2)
        topics = reader.string_list(count)
        user_data = reader.nullable_bytes()
        owned_partitions: list[SubscriptionTopicPartition] = []
        if version >= 1:
            count = reader.array_length(6)
            for _ in range(count):
                owned_partitions.append(SubscriptionTopicPartition.decode(reader, version))
        generation_id: int = -1
        if version >= 2:
            generation_id = reader.int32()
        rack_id: str | None = None
        if version >= 3:
            rack_id = reader.nullable_string()
        return ConsumerProtocolSubscription(topics, user_data, owned_partitions, generation_id, rack_id)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 3:
            raise EncodeError(no_such_version("ConsumerProtocolSubscription", version))
        writer.array_length(len(self.topics))
        writer.string_list(self.topics)
        writer.nullable_bytes(self.user_data)
        if version >= 1:
            writer.array_length(len(self.owned_partitions))
            for owned_partitions_element in self.owned_partitions:
                owned_partitions_element.encode(writer, version)
        if version >= 2:
            writer.int32(self.generation_id)
        if version >= 3:
            writer.nullable_string(self.rack_id)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class SubscriptionTopicPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SubscriptionTopicPartition:
        topic = reader.string()
        count = reader.array_length(4)
        partitions = reader.int32_list(count)
        return SubscriptionTopicPartition(topic, partitions)

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ConsumerProtocolAssignment(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("assigned_partitions", "user_data")

    def __init__(
        self,
        assigned_partitions: list[AssignmentTopicPartition] | None = None,
        user_data: bytes | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.assigned_partitions: list[AssignmentTopicPartition] = (
            [] if assigned_partitions is None else assigned_partitions
        )
        self.user_data: bytes | None = user_data
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerProtocolAssignment:
        if version < 0 or version > 3:
            raise DecodeError(no_such_version("ConsumerProtocolAssignment", version))
        assigned_partitions: list[AssignmentTopicPartition] = []
        count = reader.array_length(6)
        for _ in range(count):
            assigned_partitions.append(AssignmentTopicPartition.decode(reader, version))
        user_data = reader.nullable_bytes()
        return ConsumerProtocolAssignment(assigned_partitions, user_data)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 3:
            raise EncodeError(no_such_version("ConsumerProtocolAssignment", version))
        writer.array_length(len(self.assigned_partitions))
        for assigned_partitions_element in self.assigned_partitions:
            assigned_partitions_element.encode(writer, version)
        writer.nullable_bytes(self.user_data)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AssignmentTopicPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic", "partitions")

    def __init__(
        self,
        topic: str = "",
        partitions: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic: str = topic
        self.partitions: list[int] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AssignmentTopicPartition:
        topic = reader.string()
        count = reader.array_length(4)
        partitions = reader.int32_list(count)
        return AssignmentTopicPartition(topic, partitions)

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
