"""Produce request, versions 3 to 13 (generated).

Written by tools/generate_messages.py from schemas/messages/000-produce.txt.
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
from moldau.protocol.records_data import Records


class ProduceRequest(Message):
    API_KEY: ClassVar[int] = 0
    LOWEST_VERSION: ClassVar[int] = 3
    HIGHEST_VERSION: ClassVar[int] = 13
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 9
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_id", "acks", "timeout_ms", "topic_data")

    def __init__(
        self,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.acks: int = acks
        self.timeout_ms: int = timeout_ms
        self.topic_data: list[TopicProduceData] = [] if topic_data is None else topic_data
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ProduceRequest:
        if version < 3 or version > 13:
            raise DecodeError(no_such_version("ProduceRequest", version))
        transactional_id: str | None
        if version >= 9:
            transactional_id = reader.compact_nullable_string()
        else:
            transactional_id = reader.nullable_string()
        acks = reader.int16()
        timeout_ms = reader.int32()
        topic_data: list[TopicProduceData] = []
        if version >= 9:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topic_data.append(TopicProduceData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return ProduceRequest(transactional_id, acks, timeout_ms, topic_data, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 3 or version > 13:
            raise EncodeError(no_such_version("ProduceRequest", version))
        if version >= 9:
            writer.compact_nullable_string(self.transactional_id)
        else:
            writer.nullable_string(self.transactional_id)
        writer.int16(self.acks)
        writer.int32(self.timeout_ms)
        if version >= 9:
            writer.compact_array_length(len(self.topic_data))
        else:
            writer.array_length(len(self.topic_data))
        for topic_data_element in self.topic_data:
            topic_data_element.encode(writer, version)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TopicProduceData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "topic_id", "partition_data")

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.partition_data: list[PartitionProduceData] = [] if partition_data is None else partition_data
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TopicProduceData:
        name: str = ""
        if 9 <= version <= 12:
            name = reader.compact_string()
        elif version <= 8:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 13:
            topic_id = reader.uuid()
        partition_data: list[PartitionProduceData] = []
        if version >= 9:
            count = reader.compact_array_length(6)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            partition_data.append(PartitionProduceData.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return TopicProduceData(name, topic_id, partition_data, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if 9 <= version <= 12:
            writer.compact_string(self.name)
        elif version <= 8:
            writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 9:
            writer.compact_array_length(len(self.partition_data))
        else:
            writer.array_length(len(self.partition_data))
        for partition_data_element in self.partition_data:
            partition_data_element.encode(writer, version)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class PartitionProduceData(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("index", "records")

    def __init__(self, index: int = 0, records: Records | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.index: int = index
        self.records: Records | None = records
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PartitionProduceData:
        index = reader.int32()
        records: Records | None
        if version >= 9:
            records = reader.compact_nullable_records()
        else:
            records = reader.nullable_records()
        unknown_tags: UnknownTags | None = None
        if version >= 9:
            unknown_tags = reader.unknown_tags()
        return PartitionProduceData(index, records, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.index)
        if version >= 9:
            writer.compact_nullable_records(self.records)
        else:
            writer.nullable_records(self.records)
        if version >= 9:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
