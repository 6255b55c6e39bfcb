"""RequestHeader, versions 0 to 2; ResponseHeader, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/headers.txt.
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


class RequestHeader(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("request_api_key", "request_api_version", "correlation_id", "client_id")

    def __init__(
        self,
        request_api_key: int = 0,
        request_api_version: int = 0,
        correlation_id: int = 0,
        client_id: str | None = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.request_api_key: int = request_api_key
        self.request_api_version: int = request_api_version
        self.correlation_id: int = correlation_id
        self.client_id: str | None = client_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> RequestHeader:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("RequestHeader", version))
        request_api_key = reader.int16()
        request_api_version = reader.int16()
        correlation_id = reader.int32()
        client_id: str | None = ""
        if version >= 1:
            client_id = reader.nullable_string()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return RequestHeader(request_api_key, request_api_version, correlation_id, client_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("RequestHeader", version))
        writer.int16(self.request_api_key)
        writer.int16(self.request_api_version)
        writer.int32(self.correlation_id)
        if version >= 1:
            writer.nullable_string(self.client_id)
        elif self.client_id != "":
            raise cannot_send("client_id", version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)


class ResponseHeader(Message):
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 1
    FIELDS: ClassVar[tuple[str, ...]] = ("correlation_id",)

    def __init__(self, correlation_id: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.correlation_id: int = correlation_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ResponseHeader:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("ResponseHeader", version))
        correlation_id = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 1:
            unknown_tags = reader.unknown_tags()
        return ResponseHeader(correlation_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("ResponseHeader", version))
        writer.int32(self.correlation_id)
        if version >= 1:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
