"""TxnOffsetCommit response, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/028-txn-offset-commit.txt.
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


class TxnOffsetCommitResponse(Message):
    API_KEY: ClassVar[int] = 28
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[TxnOffsetCommitResponseTopic] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[TxnOffsetCommitResponseTopic] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TxnOffsetCommitResponse:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("TxnOffsetCommitResponse", version))
        throttle_time_ms = reader.int32()
        topics: list[TxnOffsetCommitResponseTopic] = []
        if version >= 3:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(TxnOffsetCommitResponseTopic.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return TxnOffsetCommitResponse(throttle_time_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("TxnOffsetCommitResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 3:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TxnOffsetCommitResponseTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[TxnOffsetCommitResponsePartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[TxnOffsetCommitResponsePartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TxnOffsetCommitResponseTopic:
        name: str
        if version >= 3:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[TxnOffsetCommitResponsePartition] = []
        if version >= 3:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            partitions.append(TxnOffsetCommitResponsePartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return TxnOffsetCommitResponseTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 3:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class TxnOffsetCommitResponsePartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code")

    def __init__(self, partition_index: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> TxnOffsetCommitResponsePartition:
        partition_index = reader.int32()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return TxnOffsetCommitResponsePartition(partition_index, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
