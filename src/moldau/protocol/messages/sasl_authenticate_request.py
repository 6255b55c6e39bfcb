"""SaslAuthenticate request, versions 0 to 2 (generated).

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


class SaslAuthenticateRequest(Message):
    API_KEY: ClassVar[int] = 36
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("auth_bytes",)

    def __init__(self, auth_bytes: bytes = b"", unknown_tags: UnknownTags | None = None) -> None:
        self.auth_bytes: bytes = auth_bytes
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SaslAuthenticateRequest:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("SaslAuthenticateRequest", version))
        auth_bytes: bytes
        if version >= 2:
            auth_bytes = reader.compact_bytes()
        else:
            auth_bytes = reader.bytes_()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return SaslAuthenticateRequest(auth_bytes, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("SaslAuthenticateRequest", version))
        if version >= 2:
            writer.compact_bytes(self.auth_bytes)
        else:
            writer.bytes_(self.auth_bytes)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
