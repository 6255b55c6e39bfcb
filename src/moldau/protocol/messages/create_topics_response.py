"""CreateTopics response, versions 2 to 7 (generated).

Written by tools/generate_messages.py from schemas/messages/019-create-topics.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    NOT_GIVEN,
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


class CreateTopicsResponse(Message):
    API_KEY: ClassVar[int] = 19
    LOWEST_VERSION: ClassVar[int] = 2
    HIGHEST_VERSION: ClassVar[int] = 7
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 5
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "topics")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        topics: list[CreatableTopicResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.topics: list[CreatableTopicResult] = [] if topics is None else topics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreateTopicsResponse:
        if version < 2 or version > 7:
            raise DecodeError(no_such_version("CreateTopicsResponse", version))
        throttle_time_ms = reader.int32()
        topics: list[CreatableTopicResult] = []
        if version >= 5:
            count = reader.compact_array_length(12)
        else:
            count = reader.array_length(6)
        for _ in range(count):
            topics.append(CreatableTopicResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            unknown_tags = reader.unknown_tags()
        return CreateTopicsResponse(throttle_time_ms, topics, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 2 or version > 7:
            raise EncodeError(no_such_version("CreateTopicsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 5:
            writer.compact_array_length(len(self.topics))
        else:
            writer.array_length(len(self.topics))
        for topics_element in self.topics:
            topics_element.encode(writer, version)
        if version >= 5:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatableTopicResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "topic_config_error_code",
        "num_partitions",
        "replication_factor",
        "configs",
    )

    def __init__(
        self,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        error_code: int = 0,
        error_message: str | None = "",
        topic_config_error_code: int = 0,
        num_partitions: int = -1,
        replication_factor: int = -1,
        configs: list[CreatableTopicConfigs] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.topic_id: bytes = topic_id
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.topic_config_error_code: int = topic_config_error_code
        self.num_partitions: int = num_partitions
        self.replication_factor: int = replication_factor
        self.configs: list[CreatableTopicConfigs] | None = [] if configs is NOT_GIVEN else configs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatableTopicResult:
        name: str
        if version >= 5:
            name = reader.compact_string()
        else:
            name = reader.string()
        topic_id: bytes = ZERO_UUID
        if version >= 7:
            topic_id = reader.uuid()
        error_code = reader.int16()
        error_message: str | None
        if version >= 5:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        topic_config_error_code: int = 0
        num_partitions: int = -1
        if version >= 5:
            num_partitions = reader.int32()
        replication_factor: int = -1
        if version >= 5:
            replication_factor = reader.int16()
        configs: list[CreatableTopicConfigs] | None = []
        if version >= 5:
            count = reader.compact_nullable_array_length(6)
            if count < 0:
                configs = None
            else:
                configs = []
                for _ in range(count):
                    configs.append(CreatableTopicConfigs.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 5:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0:
                    topic_config_error_code = reader.int16()
                else:
                    unknown_tags = reader.unknown_tag(unknown_tags, tag, end)
                reader.check_tag_end(end)
        return CreatableTopicResult(
            name,
            topic_id,
            error_code,
            error_message,
            topic_config_error_code,
            num_partitions,
            replication_factor,
            configs,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 7:
            writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        if version >= 5:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 5:
            writer.int32(self.num_partitions)
        if version >= 5:
            writer.int16(self.replication_factor)
        if version >= 5:
            if self.configs is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.configs))
                for configs_element in self.configs:
                    configs_element.encode(writer, version)
        if version >= 5:
            tags: UnknownTags = []
            if self.topic_config_error_code != 0:
                part = Writer()
                part.int16(self.topic_config_error_code)
                tags.append((0, part.to_bytes()))
            writer.tags(tags, self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class CreatableTopicConfigs(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "value", "read_only", "config_source", "is_sensitive")

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreatableTopicConfigs:
        name = reader.compact_string()
        value = reader.compact_nullable_string()
        read_only = reader.boolean()
        config_source = reader.int8()
        is_sensitive = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return CreatableTopicConfigs(name, value, read_only, config_source, is_sensitive, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.compact_nullable_string(self.value)
        writer.boolean(self.read_only)
        writer.int8(self.config_source)
        writer.boolean(self.is_sensitive)
        writer.unknown_tags(self.unknown_tags)
