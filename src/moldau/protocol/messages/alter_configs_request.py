"""AlterConfigs request, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/033-alter-configs.txt.
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


class AlterConfigsRequest(Message):
    API_KEY: ClassVar[int] = 33
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("resources", "validate_only")

    def __init__(
        self,
        resources: list[AlterConfigsResource] | None = None,
        validate_only: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resources: list[AlterConfigsResource] = [] if resources is None else resources
        self.validate_only: bool = validate_only
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterConfigsRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("AlterConfigsRequest", version))
        resources: list[AlterConfigsResource] = []
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(7)
        for _ in range(count):
            resources.append(AlterConfigsResource.decode(reader, version))
        validate_only = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterConfigsRequest(resources, validate_only, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("AlterConfigsRequest", version))
        if version >= 2:
            writer.compact_array_length(len(self.resources))
        else:
            writer.array_length(len(self.resources))
        for resources_element in self.resources:
            resources_element.encode(writer, version)
        writer.boolean(self.validate_only)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterConfigsResource(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("resource_type", "resource_name", "configs")

    def __init__(
        self,
        resource_type: int = 0,
        resource_name: str = "",
        configs: list[AlterableConfig] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.configs: list[AlterableConfig] = [] if configs is None else configs
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterConfigsResource:
        resource_type = reader.int8()
        resource_name: str
        if version >= 2:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        configs: list[AlterableConfig] = []
        if version >= 2:
            count = reader.compact_array_length(3)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            configs.append(AlterableConfig.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterConfigsResource(resource_type, resource_name, configs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 2:
            writer.compact_array_length(len(self.configs))
        else:
            writer.array_length(len(self.configs))
        for configs_element in self.configs:
            configs_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterableConfig(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "value")

    def __init__(self, name: str = "", value: str | None = "", unknown_tags: UnknownTags | None = None) -> None:
        self.name: str = name
        self.value: str | None = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterableConfig:
        name: str
        if version >= 2:
            name = reader.compact_string()
        else:
            name = reader.string()
        value: str | None
        if version >= 2:
            value = reader.compact_nullable_string()
        else:
            value = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterableConfig(name, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 2:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
