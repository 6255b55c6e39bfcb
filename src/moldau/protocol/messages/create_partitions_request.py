"""CreatePartitions request, versions 0 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/037-create-partitions.txt.
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


class CreatePartitionsRequest(Message):
    API_KEY: ClassVar[int] = 37
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "timeout_ms", "validate_only")

    def __init__(
        self,
        topics: list[CreatePartitionsTopic] | None = None,
        timeout_ms: int = 0,
        validate_only: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[CreatePartitionsTopic] = [] if topics is None else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatePartitionsRequest:
        if version < 0 or version > 3:
            raise DecodeError(no_such_version("CreatePartitionsRequest", version))
        topics: list[CreatePartitionsTopic] = []
        if version >= 2:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(10)
        for _ in range(count):
            topics.append(CreatePartitionsTopic.decode(reader, version))
        timeout_ms = reader.int32()
        validate_only = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreatePartitionsRequest(topics, timeout_ms, validate_only, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 3:
            raise EncodeError(no_such_version("CreatePartitionsRequest", version))
        if version >= 2:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int32(self.timeout_ms)
        writer.boolean(self.validate_only)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatePartitionsTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "count", "assignments")

    def __init__(
        self,
        name: str = "",
        count: int = 0,
        assignments: list[CreatePartitionsAssignment] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.count: int = count
        self.assignments: list[CreatePartitionsAssignment] | None = [] if assignments is NOT_GIVEN else assignments
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatePartitionsTopic:
        name: str
        if version >= 2:
            name = reader.compact_string()
        else:
            name = reader.string()
        count_ = reader.int32()
        assignments: list[CreatePartitionsAssignment] | None
        if version >= 2:
            count = reader.compact_nullable_array_length(2)
        else:
            count = reader.nullable_array_length(4)
        if count < 0:
            assignments = None
        else:
            assignments = []
            for _ in range(count):
                assignments.append(CreatePartitionsAssignment.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreatePartitionsTopic(name, count_, assignments, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.int32(self.count)
        if version >= 2:
            if self.assignments is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.assignments))
                for assignments_element in self.assignments:
                    assignments_element.encode(writer, version)
        else:
            if self.assignments is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.assignments))
                for assignments_element in self.assignments:
                    assignments_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatePartitionsAssignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_ids",)

    def __init__(self, broker_ids: list[int] | None = None, unknown_tags: UnknownTags | None = None) -> None:
        self.broker_ids: list[int] = [] if broker_ids is None else broker_ids
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatePartitionsAssignment:
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        broker_ids = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreatePartitionsAssignment(broker_ids, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_array_length(len(self.broker_ids))
        else:
            writer.array_length(len(self.broker_ids))
        writer.int32_list(self.broker_ids)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
