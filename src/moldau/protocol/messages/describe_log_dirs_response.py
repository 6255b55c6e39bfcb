"""DescribeLogDirs response, versions 1 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/035-describe-log-dirs.txt.
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


class DescribeLogDirsResponse(Message):
    API_KEY: ClassVar[int] = 35
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results: list[DescribeLogDirsResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.results: list[DescribeLogDirsResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeLogDirsResponse:
        if version < 1 or version > 5:
            raise DecodeError(no_such_version("DescribeLogDirsResponse", version))
        throttle_time_ms = reader.int32()
        error_code: int = 0
        if version >= 3:
            error_code = reader.int16()
        results: list[DescribeLogDirsResult] = []
        if version >= 2:
            count = reader.compact_array_length(5)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            results.append(DescribeLogDirsResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeLogDirsResponse(throttle_time_ms, error_code, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 5:
            raise EncodeError(no_such_version("DescribeLogDirsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 3:
            writer.int16(self.error_code)
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


class DescribeLogDirsResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "error_code",
        "log_dir",
        "topics",
        "total_bytes",
        "usable_bytes",
        "is_cordoned",
    )

    def __init__(
        self,
        error_code: int = 0,
        log_dir: str = "",
        topics: list[DescribeLogDirsTopic] | None = None,
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.log_dir: str = log_dir
        self.topics: list[DescribeLogDirsTopic] = [] if topics is None else topics
        self.total_bytes: int = total_bytes
        self.usable_bytes: int = usable_bytes
        self.is_cordoned: bool = is_cordoned
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeLogDirsResult:
        error_code = reader.int16()
        log_dir: str
        if version >= 2:
            log_dir = reader.compact_string()
        else:
            log_dir = reader.string()
        topics: list[DescribeLogDirsTopic] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(DescribeLogDirsTopic.decode(reader, version))
        total_bytes: int = -1
        if version >= 4:
            total_bytes = reader.int64()
        usable_bytes: int = -1
        if version >= 4:
            usable_bytes = reader.int64()
        is_cordoned: bool = False
        if version >= 5:
            is_cordoned = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeLogDirsResult(error_code, log_dir, topics, total_bytes, usable_bytes, is_cordoned, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_string(self.log_dir)
        else:
            writer.string(self.log_dir)
        if version >= 2:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 4:
            writer.int64(self.total_bytes)
        if version >= 4:
            writer.int64(self.usable_bytes)
        if version >= 5:
            writer.boolean(self.is_cordoned)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeLogDirsTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "partitions")

    def __init__(
        self,
        name: str = "",
        partitions: list[DescribeLogDirsPartition] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.partitions: list[DescribeLogDirsPartition] = [] if partitions is None else partitions
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeLogDirsTopic:
        name: str
        if version >= 2:
            name = reader.compact_string()
        else:
            name = reader.string()
        partitions: list[DescribeLogDirsPartition] = []
        if version >= 2:
            count = reader.compact_array_length(22)
        else:
            count = reader.array_length(21)
        for _ in range(count):
            partitions.append(DescribeLogDirsPartition.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeLogDirsTopic(name, partitions, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
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


class DescribeLogDirsPartition(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "partition_size", "offset_lag", "is_future_key")

    def __init__(
        self,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.partition_size: int = partition_size
        self.offset_lag: int = offset_lag
        self.is_future_key: bool = is_future_key
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeLogDirsPartition:
        partition_index = reader.int32()
        partition_size = reader.int64()
        offset_lag = reader.int64()
        is_future_key = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return DescribeLogDirsPartition(partition_index, partition_size, offset_lag, is_future_key, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int64(self.partition_size)
        writer.int64(self.offset_lag)
        writer.boolean(self.is_future_key)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
