"""ListConfigResources response, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/074-list-config-resources.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class ListConfigResourcesResponse(Message):
    API_KEY: ClassVar[int] = 74
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "config_resources")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        config_resources: list[ConfigResource] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.config_resources: list[ConfigResource] = [] if config_resources is None else config_resources
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ListConfigResourcesResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("ListConfigResourcesResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        config_resources: list[ConfigResource] = []
        count = reader.compact_array_length(2)
        for _ in range(count):
            config_resources.append(ConfigResource.decode(reader, version))
        unknown_tags = reader.unknown_tags()
        return ListConfigResourcesResponse(throttle_time_ms, error_code, config_resources, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("ListConfigResourcesResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.compact_array_length(len(self.config_resources))
        for config_resources_element in self.config_resources:
            config_resources_element.encode(writer, version)
        writer.unknown_tags(self.unknown_tags)


class ConfigResource(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("resource_name", "resource_type")

    def __init__(
        self,
        resource_name: str = "",
        resource_type: int = 16,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.resource_name: str = resource_name
        self.resource_type: int = resource_type
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ConfigResource:
        resource_name = reader.compact_string()
        resource_type: int = 16
        if version >= 1:
            resource_type = reader.int8()
        unknown_tags = reader.unknown_tags()
        return ConfigResource(resource_name, resource_type, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.resource_name)
        if version >= 1:
            writer.int8(self.resource_type)
        writer.unknown_tags(self.unknown_tags)
