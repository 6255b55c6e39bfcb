"""SaslAuthenticate response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/036-sasl-authenticate.txt.
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


class SaslAuthenticateResponse(Message):
    API_KEY: ClassVar[int] = 36
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")

    def __init__(
        self,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.error_message: str | None = error_message
        self.auth_bytes: bytes = auth_bytes
        self.session_lifetime_ms: int = session_lifetime_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SaslAuthenticateResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("SaslAuthenticateResponse", version))
        error_code = reader.int16()
        error_message: str | None
        if version >= 2:
            error_message = reader.compact_nullable_string()
        else:
            error_message = reader.nullable_string()
        auth_bytes: bytes
        if version >= 2:
            auth_bytes = reader.compact_bytes()
        else:
            auth_bytes = reader.bytes_()
        session_lifetime_ms: int = 0
        if version >= 1:
            session_lifetime_ms = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return SaslAuthenticateResponse(error_code, error_message, auth_bytes, session_lifetime_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("SaslAuthenticateResponse", version))
        writer.int16(self.error_code)
        if version >= 2:
            writer.compact_nullable_string(self.error_message)
        else:
            writer.nullable_string(self.error_message)
        if version >= 2:
            writer.compact_bytes(self.auth_bytes)
        else:
            writer.bytes_(self.auth_bytes)
        if version >= 1:
            writer.int64(self.session_lifetime_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
