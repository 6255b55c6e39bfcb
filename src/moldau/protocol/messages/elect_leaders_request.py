"""ElectLeaders request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/043-elect-leaders.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    cannot_send,
    no_such_version,
)


class ElectLeadersRequest(Message):
    API_KEY: ClassVar[int] = 43
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("election_type", "topic_partitions", "timeout_ms")

    def __init__(
        self,
        election_type: int = 0,
        topic_partitions: list[TopicPartitions] | None = NOT_GIVEN,
        timeout_ms: int = 60000,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.election_type: int = election_type
        self.topic_partitions: list[TopicPartitions] | None = [] if topic_partitions is NOT_GIVEN else topic_partitions
        self.timeout_ms: int = timeout_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ElectLeadersRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("ElectLeadersRequest", version))
        election_type: int = 0
        if version >= 1:
            election_type = reader.int8()
        topic_partitions: list[TopicPartitions] | None
        if version >= 2:
            count = reader.compact_nullable_array_length(3)
        else:
            count = reader.nullable_array_length(6)
        if count < 0:
            topic_partitions = None
        else:
            topic_partitions = []
            for _ in range(count):
                topic_partitions.append(TopicPartitions.decode(reader, version))
        timeout_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return ElectLeadersRequest(election_type, topic_partitions, timeout_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("ElectLeadersRequest", version))
        if version >= 1:
            writer.int8(self.election_type)
        elif self.election_type != 0:
            raise cannot_send("election_type", version)
        if version >= 2:
            if self.topic_partitions is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.topic_partitions))
                for topic_partitions_element in self.topic_partitions:
                    topic_partitions_element.encode(writer, version)
        else:
            if self.topic_partitions is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.topic_partitions))
                for topic_partitions_element in self.topic_partitions:
                    topic_partitions_element.encode(writer, version)
        writer.int32(self.timeout_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TopicPartitions(Message):
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
    def decode(reader: Reader, version: int) -> TopicPartitions:
        topic: str
        if version >= 2:
            topic = reader.compact_string()
        else:
            topic = reader.string()
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        partitions = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return TopicPartitions(topic, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic)
        else:
            writer.string(self.topic)
        if version >= 2:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        writer.int32_list(self.partitions)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
