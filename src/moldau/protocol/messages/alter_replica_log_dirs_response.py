"""AlterReplicaLogDirs response, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/034-alter-replica-log-dirs.txt.
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


class AlterReplicaLogDirsResponse(Message):
    API_KEY: ClassVar[int] = 34
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AlterReplicaLogDirTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AlterReplicaLogDirTopicResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterReplicaLogDirsResponse:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("AlterReplicaLogDirsResponse", version))
        throttle_time_ms = reader.int32()
        results: list[AlterReplicaLogDirTopicResult] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            results.append(AlterReplicaLogDirTopicResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterReplicaLogDirsResponse(throttle_time_ms, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("AlterReplicaLogDirsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_length(len(self.results))
        else:
            writer.array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterReplicaLogDirTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("topic_name", "partitions")

    def __init__(
        self,
        topic_name: str = "",
        partitions: list[AlterReplicaLogDirPartitionResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topic_name: str = topic_name
        self.partitions: list[AlterReplicaLogDirPartitionResult] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterReplicaLogDirTopicResult:
        topic_name: str
        if version >= 2:
            topic_name = reader.compact_string()
        else:
            topic_name = reader.string()
        partitions: list[AlterReplicaLogDirPartitionResult] = []
        if version >= 2:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            partitions.append(AlterReplicaLogDirPartitionResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterReplicaLogDirTopicResult(topic_name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.topic_name)
        else:
            writer.string(self.topic_name)
        if version >= 2:
            writer.compact_array_length(len(self.partitions))
        else:
            writer.array_length(len(self.partitions))
        for partitions_element in self.partitions:
            partitions_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterReplicaLogDirPartitionResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "error_code")

    def __init__(self, partition_index: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.partition_index: int = partition_index
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterReplicaLogDirPartitionResult:
        partition_index = reader.int32()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterReplicaLogDirPartitionResult(partition_index, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int16(self.error_code)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
