"""SaslHandshake request, versions 0 to 1 (generated).

Written by tools/generate_messages.py from schemas/messages/017-sasl-handshake.txt.
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


class SaslHandshakeRequest(Message):
    API_KEY: ClassVar[int] = 17
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("mechanism",)

    def __init__(self, mechanism: str = "", unknown_tags: UnknownTags | None = None) -> None:
        self.mechanism: str = mechanism
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SaslHandshakeRequest:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("SaslHandshakeRequest", version))
        mechanism = reader.string()
        return SaslHandshakeRequest(mechanism)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("SaslHandshakeRequest", version))
        writer.string(self.mechanism)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
