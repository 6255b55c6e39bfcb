"""AlterConfigs response, versions 0 to 2 (generated).

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


class AlterConfigsResponse(Message):
    API_KEY: ClassVar[int] = 33
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "responses")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        responses: list[AlterConfigsResourceResponse] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.responses: list[AlterConfigsResourceResponse] = [] if responses is None else responses
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterConfigsResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("AlterConfigsResponse", version))
        throttle_time_ms = reader.int32()
        responses: list[AlterConfigsResourceResponse] = []
        if version >= 2:
            count = reader.compact_array_length(6)
        else:
            count = reader.array_length(7)
        for _ in range(count):
            responses.append(AlterConfigsResourceResponse.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterConfigsResponse(throttle_time_ms, responses, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("AlterConfigsResponse", version))
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.compact_array_length(len(self.responses))
        else:
            writer.array_length(len(self.responses))
        for responses_element in self.responses:
            responses_element.encode(writer, version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class AlterConfigsResourceResponse(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message", "resource_type", "resource_name")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.resource_type: int = resource_type
        self.resource_name: str = resource_name
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AlterConfigsResourceResponse:
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        resource_type = reader.int8()
        resource_name: str
        if version >= 2:
            resource_name = reader.compact_string()
        else:
            resource_name = reader.string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AlterConfigsResourceResponse(error_code, error_message, resource_type, resource_name, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        writer.int8(self.resource_type)
        if version >= 2:
            writer.compact_string(self.resource_name)
        else:
            writer.string(self.resource_name)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
