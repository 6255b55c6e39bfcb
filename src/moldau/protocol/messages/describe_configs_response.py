"""DescribeConfigs response, versions 1 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/032-describe-configs.txt.
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


class DescribeConfigsResponse(Message):
    API_KEY: ClassVar[int] = 32
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[DescribeConfigsResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[DescribeConfigsResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeConfigsResponse:
        if version < 1 or version > 4:
            raise DecodeError(no_such_version("DescribeConfigsResponse", version))
        throttle_time_ms = reader.int32()
        results: list[DescribeConfigsResult] = []
        if version >= 4:
            count = reader.compact_array_length(7)
        else:
            count = reader.array_length(11)
        for _ in range(count):
            results.append(DescribeConfigsResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DescribeConfigsResponse(throttle_time_ms, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 4:
            raise EncodeError(no_such_version("DescribeConfigsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.compact_array_length(len(self.results))
        else:
            writer.array_length(len(self.results))
        for results_element in self.results:
            results_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeConfigsResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message", "resource_type", "resource_name", "configs")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[DescribeConfigsResourceResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[DescribeConfigsResourceResult] = [] if configs is None else configs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeConfigsResult:
        error_code = reader.int16()
        error_message: str | None
        if version >= 4:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        resource_type = reader.int8()
        resource_name: str
        if version >= 4:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        configs: list[DescribeConfigsResourceResult] = []
        if version >= 4:
            count = reader.compact_array_length(9)
        else:
            count = reader.array_length(11)
        for _ in range(count):
            configs.append(DescribeConfigsResourceResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DescribeConfigsResult(error_code, error_message, resource_type, resource_name, configs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 4:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.int8(self.resource_type)
        if version >= 4:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 4:
            writer.compact_array_length(len(self.configs))
        else:
            writer.array_length(len(self.configs))
        for configs_element in self.configs:
            configs_element.encode(writer, version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeConfigsResourceResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: list[DescribeConfigsSynonym] | None = None,
        config_type: int = 0,
        documentation: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.read_only: bool = read_only
        self.config_source: int = config_source
        self.is_sensitive: bool = is_sensitive
        self.synonyms: list[DescribeConfigsSynonym] = [] if synonyms is None else synonyms
        self.config_type: int = config_type
        self.documentation: str | None = documentation
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeConfigsResourceResult:
        name: str
        if version >= 4:
            name = reader.compact_string()
        else:
            name = reader.string()
        value: str | None
        if version >= 4:
            value = reader.compact_nullable_string()
        else:
            value = reader.nullable_string()
        read_only = reader.boolean()
        config_source = reader.int8()
        is_sensitive = reader.boolean()
        synonyms: list[DescribeConfigsSynonym] = []
        if version >= 4:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(5)
        for _ in range(count):
            synonyms.append(DescribeConfigsSynonym.decode(reader, version))
        config_type: int = 0
        if version >= 3:
            config_type = reader.int8()
        documentation: str | None = ""
        if version >= 4:
            documentation = reader.compact_nullable_string()
        elif version >= 3:
            documentation = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DescribeConfigsResourceResult(
            name,
            value,
            read_only,
            config_source,
            is_sensitive,
            synonyms,
            config_type,
            documentation,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 4:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        writer.boolean(self.read_only)
        writer.int8(self.config_source)
        writer.boolean(self.is_sensitive)
        if version >= 4:
            writer.compact_array_length(len(self.synonyms))
        else:
            writer.array_length(len(self.synonyms))
        for synonyms_element in self.synonyms:
            synonyms_element.encode(writer, version)
        if version >= 3:
            writer.int8(self.config_type)
        if version >= 4:
            writer.compact_nullable_string(self.documentation)
        elif version >= 3:
            writer.nullable_string(self.documentation)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeConfigsSynonym(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "value", "source")

    def __init__(
        self,
        name: str = "",
        value: str | None = "",
        source: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.value: str | None = value
        self.source: int = source
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeConfigsSynonym:
        name: str
        if version >= 4:
            name = reader.compact_string()
        else:
            name = reader.string()
        value: str | None
        if version >= 4:
            value = reader.compact_nullable_string()
        else:
            value = reader.nullable_string()
        source = reader.int8()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DescribeConfigsSynonym(name, value, source, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 4:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        writer.int8(self.source)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
