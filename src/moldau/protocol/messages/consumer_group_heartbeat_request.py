"""ConsumerGroupHeartbeat request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/068-consumer-group-heartbeat.txt.
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


class ConsumerGroupHeartbeatRequest(Message):
    API_KEY: ClassVar[int] = 68
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )

    def __init__(
        self,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: list[str] | None = None,
        subscribed_topic_regex: str | None = None,
        server_assignor: str | None = None,
        topic_partitions: list[TopicPartitions] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.group_id: str = group_id
        self.member_id: str = member_id
        self.member_epoch: int = member_epoch
        self.instance_id: str | None = instance_id
        self.rack_id: str | None = rack_id
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        self.subscribed_topic_names: list[str] | None = subscribed_topic_names
        self.subscribed_topic_regex: str | None = subscribed_topic_regex
        self.server_assignor: str | None = server_assignor
        self.topic_partitions: list[TopicPartitions] | None = topic_partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConsumerGroupHeartbeatRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("ConsumerGroupHeartbeatRequest", version))
        group_id = reader.compact_string()
        member_id = reader.compact_string()
        member_epoch = reader.int32()
        instance_id = reader.compact_nullable_string()
        rack_id = reader.compact_nullable_string()
        rebalance_timeout_ms = reader.int32()
        count = reader.compact_nullable_array_length(1)
        subscribed_topic_names = None if count < 0 else reader.compact_string_list(count)
        subscribed_topic_regex: str | None = None
        if version >= 1:
            subscribed_topic_regex = reader.compact_nullable_string()
        server_assignor = reader.compact_nullable_string()
        topic_partitions: list[TopicPartitions] | None
        count = reader.compact_nullable_array_length(18)
        if count < 0:
            topic_partitions = None
        else:
            topic_partitions = []
            for _ in range(count):
                topic_partitions.append(TopicPartitions.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ConsumerGroupHeartbeatRequest(
            group_id,
            member_id,
            member_epoch,
            instance_id,
            rack_id,
            rebalance_timeout_ms,
            subscribed_topic_names,
            subscribed_topic_regex,
            server_assignor,
            topic_partitions,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("ConsumerGroupHeartbeatRequest", version))
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.int32(self.rebalance_timeout_ms)
        if self.subscribed_topic_names is None:
            writer.compact_array_length(-1)
        else:
            writer.compact_array_length(len(self.subscribed_topic_names))
            writer.compact_string_list(self.subscribed_topic_names)
        if version >= 1:
            writer.compact_nullable_string(self.subscribed_topic_regex)
        elif self.subscribed_topic_regex is not None:
            raise cannot_send("subscribed_topic_regex", version)
        writer.compact_nullable_string(self.server_assignor)
        if self.topic_partitions is None:
            writer.compact_array_length(-1)
        else:
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
