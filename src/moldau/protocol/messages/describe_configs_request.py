"""DescribeConfigs request, versions 1 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/032-describe-configs.txt.
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


class DescribeConfigsRequest(Message):
    API_KEY: ClassVar[int] = 32
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 4
    FIELDS: ClassVar[tuple[str, ...]] = ("resources", "include_synonyms", "include_documentation")

    def __init__(
        self,
        resources: list[DescribeConfigsResource] | None = None,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resources: list[DescribeConfigsResource] = [] if resources is None else resources
        self.include_synonyms: bool = include_synonyms
        self.include_documentation: bool = include_documentation
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeConfigsRequest:
        if version < 1 or version > 4:
            raise DecodeError(no_such_version("DescribeConfigsRequest", version))
        resources: list[DescribeConfigsResource] = []
        if version >= 4:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(7)
        for _ in range(count):
            resources.append(DescribeConfigsResource.decode(reader, version))
        include_synonyms = reader.boolean()
        include_documentation: bool = False
        if version >= 3:
            include_documentation = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DescribeConfigsRequest(resources, include_synonyms, include_documentation, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 4:
            raise EncodeError(no_such_version("DescribeConfigsRequest", version))
        if version >= 4:
            writer.compact_array_length(len(self.resources))
        else:
            writer.array_length(len(self.resources))
        for resources_element in self.resources:
            resources_element.encode(writer, version)
        writer.boolean(self.include_synonyms)
        if version >= 3:
            writer.boolean(self.include_documentation)
        elif self.include_documentation:
            raise cannot_send("include_documentation", version)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class DescribeConfigsResource(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("resource_type", "resource_name", "configuration_keys")

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: list[str] | None = NOT_GIVEN,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configuration_keys: list[str] | None = [] if configuration_keys is NOT_GIVEN else configuration_keys
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> DescribeConfigsResource:
        resource_type = reader.int8()
        resource_name: str
        if version >= 4:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        configuration_keys: list[str] | None
        if version >= 4:
            count = reader.compact_nullable_array_length(1)
            configuration_keys = None if count < 0 else reader.compact_string_list(count)
        else:
            count = reader.nullable_array_length(2)
            configuration_keys = None if count < 0 else reader.string_list(count)
        unknown_tags: UnknownTags | None = None
        if version >= 4:
            unknown_tags = reader.unknown_tags()
        return DescribeConfigsResource(resource_type, resource_name, configuration_keys, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 4:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 4:
            if self.configuration_keys is None:
                writer.compact_array_length(-1)
            else:
                writer.compact_array_length(len(self.configuration_keys))
                writer.compact_string_list(self.configuration_keys)
        else:
            if self.configuration_keys is None:
                writer.array_length(-1)
            else:
                writer.array_length(len(self.configuration_keys))
                writer.string_list(self.configuration_keys)
        if version >= 4:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
