"""SaslHandshake response, versions 0 to 1 (generated).

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


class SaslHandshakeResponse(Message):
    API_KEY: ClassVar[int] = 17
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 1
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "mechanisms")

    def __init__(
        self,
        error_code: int = 0,
        mechanisms: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.mechanisms: list[str] = [] if mechanisms is None else mechanisms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> SaslHandshakeResponse:
        if version < 0 or version > 1:
            raise DecodeError(no_such_version("SaslHandshakeResponse", version))
        error_code = reader.int16()
        count = reader.array_length(2)
        mechanisms = reader.string_list(count)
        return SaslHandshakeResponse(error_code, mechanisms)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 1:
            raise EncodeError(no_such_version("SaslHandshakeResponse", version))
        writer.int16(self.error_code)
        writer.array_length(len(self.mechanisms))
        writer.string_list(self.mechanisms)
        if self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
