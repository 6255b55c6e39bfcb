"""Envelope response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/058-envelope.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class EnvelopeResponse(Message):
    API_KEY: ClassVar[int] = 58
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("response_data", "error_code")

    def __init__(
        self,
        response_data: bytes | None = None,
        error_code: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.response_data: bytes | None = response_data
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EnvelopeResponse:
        if version != 0:
            raise DecodeError(no_such_version("EnvelopeResponse", version))
        response_data = reader.compact_nullable_bytes()
        error_code = reader.int16()
        unknown_tags = reader.unknown_tags()
        return EnvelopeResponse(response_data, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("EnvelopeResponse", version))
        writer.compact_nullable_bytes(self.response_data)
        writer.int16(self.error_code)
        writer.unknown_tags(self.unknown_tags)
