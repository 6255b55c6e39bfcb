"""CreateAcls response, versions 1 to 3 (generated).

Written by tools/generate_messages.py from schemas/messages/030-create-acls.txt.
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


class CreateAclsResponse(Message):
    API_KEY: ClassVar[int] = 30
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 3
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "results")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        results: list[AclCreationResult] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.results: list[AclCreationResult] = [] if results is None else results
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> CreateAclsResponse:
        if version < 1 or version > 3:
            raise DecodeError(no_such_version("CreateAclsResponse", version))
        throttle_time_ms = reader.int32()
        results: list[AclCreationResult] = []
        if version >= 2:
            count = reader.compact_array_length(4)
        else:
            count = reader.array_length(4)
        for _ in range(count):
            results.append(AclCreationResult.decode(reader, version))
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return CreateAclsResponse(throttle_time_ms, results, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 3:
            raise EncodeError(no_such_version("CreateAclsResponse", version))
        writer.int32(self.throttle_time_ms)
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


class AclCreationResult(Message):
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AclCreationResult:
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return AclCreationResult(error_code, error_message, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
