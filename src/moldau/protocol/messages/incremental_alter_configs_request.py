"""IncrementalAlterConfigs request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/044-incremental-alter-configs.txt.
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


class IncrementalAlterConfigsRequest(Message):
    API_KEY: ClassVar[int] = 44
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
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
    def decode(reader: Reader, version: int) -> IncrementalAlterConfigsRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("IncrementalAlterConfigsRequest", version))
        resources: list[AlterConfigsResource] = []
        if version >= 1:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(7)
        for _ in range(count):
            resources.append(AlterConfigsResource.decode(reader, version))
        validate_only = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return IncrementalAlterConfigsRequest(resources, validate_only, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("IncrementalAlterConfigsRequest", version))
        if version >= 1:
            writer.compact_array_length(len(self.resources))
        else:
            writer.array_length(len(self.resources))
        for resources_element in self.resources:
            resources_element.encode(writer, version)
        writer.boolean(self.validate_only)
        if version >= 1:
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
        if version >= 1:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        configs: list[AlterableConfig] = []
        if version >= 1:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(5)
        for _ in range(count):
            configs.append(AlterableConfig.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return AlterConfigsResource(resource_type, resource_name, configs, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        if version >= 1:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 1:
            writer.compact_array_length(len(self.configs))
        else:
            writer.array_length(len(self.configs))
        for configs_element in self.configs:
            configs_element.encode(writer, version)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterableConfig(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("name", "config_operation", "value")

    def __init__(
        self,
        name: str = "",
        config_operation: int = 0,
        value: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.name: str = name
        self.config_operation: int = config_operation
        self.value: str | None = value
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterableConfig:
        name: str
        if version >= 1:
            name = reader.compact_string()
        else:
            name = reader.string()
        config_operation = reader.int8()
        value: str | None
        if version >= 1:
            value = reader.compact_nullable_string()
        else:
            value = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return AlterableConfig(name, config_operation, value, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        writer.int8(self.config_operation)
        if version >= 1:
            writer.compact_nullable_string(self.value)
        else:
            writer.nullable_string(self.value)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
