"""CreateTopics request, versions 2 to 7 (generated).

Written by tools/generate_messages.py from schemas/messages/019-create-topics.txt.
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


class CreateTopicsRequest(Message):
    API_KEY: ClassVar[int] = 19
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 7
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[str, ...]] = ("topics", "timeout_ms", "validate_only")

    def __init__(
        self,
        topics: list[CreatableTopic] | None = None,
        timeout_ms: int = 60000,
        validate_only: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.topics: list[CreatableTopic] = [] if topics is None else topics
        self.timeout_ms: int = timeout_ms
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreateTopicsRequest:
        if version < 2 or version > 7:
            raise DecodeError(no_such_version("CreateTopicsRequest", version))
        topics: list[CreatableTopic] = []
        if version >= 5:
            count = reader.compact_array_length(10)
        else:
            count = reader.array_length(16)
        for _ in range(count):
            topics.append(CreatableTopic.decode(reader, version))
        timeout_ms = reader.int32()
        validate_only = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return CreateTopicsRequest(topics, timeout_ms, validate_only, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 7:
            raise EncodeError(no_such_version("CreateTopicsRequest", version))
        if version >= 5:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        writer.int32(self.timeout_ms)
        writer.boolean(self.validate_only)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatableTopic(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "num_partitions", "replication_factor", "assignments", "configs")

    def __init__(
        self,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: list[CreatableReplicaAssignment] | None = None,
        configs: list[CreatableTopicConfig] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.assignments: list[CreatableReplicaAssignment] = [] if assignments is None else assignments
        self.configs: list[CreatableTopicConfig] = [] if configs is None else configs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatableTopic:
        name: str
        if version >= 5:
            name = reader.compact_string()
        else:
            name = reader.string()
        num_partitions = reader.int32()
        replication_factor = reader.int16()
        assignments: list[CreatableReplicaAssignment] = []
        if version >= 5:
            count = reader.compact_array_length(6)
        else:
            count = reader.array_length(8)
        for _ in range(count):
            assignments.append(CreatableReplicaAssignment.decode(reader, version))
        configs: list[CreatableTopicConfig] = []
        if version >= 5:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            configs.append(CreatableTopicConfig.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return CreatableTopic(name, num_partitions, replication_factor, assignments, configs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.int32(self.num_partitions)
        writer.int16(self.replication_factor)
        if version >= 5:
            writer.compact_array_length(len(self.assignments))
        else:
            writer.array_length(len(self.assignments))
        for assignments_element in self.assignments:
            assignments_element.encode(writer, version)
        if version >= 5:
            writer.compact_array_length(len(self.configs))
        else:
            writer.array_length(len(self.configs))
        for configs_element in self.configs:
            configs_element.encode(writer, version)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatableReplicaAssignment(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("partition_index", "broker_ids")

    def __init__(
        self,
        partition_index: int = 0,
        broker_ids: list[int] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.partition_index: int = partition_index
        self.broker_ids: list[int] = [] if broker_ids is None else broker_ids
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatableReplicaAssignment:
        partition_index = reader.int32()
        if version >= 5:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        broker_ids = reader.int32_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return CreatableReplicaAssignment(partition_index, broker_ids, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if version >= 5:
            writer.compact_array_length(len(self.broker_ids))
        else:
            writer.array_length(len(self.broker_ids))
        writer.int32_list(self.broker_ids)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatableTopicConfig(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "value")

    def __init__(self, name: str = "", value: str | None = "", unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.value: str | None = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatableTopicConfig:
        name: str
        if version >= 5:
            name = reader.compact_string()
        else:
            name = reader.string()
        value: str | None
        if version >= 5:
            value = reader.compact_nullable_string()
        else:
            value = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return CreatableTopicConfig(name, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 5:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
