"""Envelope request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/058-envelope.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class EnvelopeRequest(Message):
    API_KEY: ClassVar[int] = 58
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("request_data", "request_principal", "client_host_address")

    def __init__(
        self,
        request_data: bytes = b"",
        request_principal: bytes | None = b"",
        client_host_address: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.request_data: bytes = request_data
        self.request_principal: bytes | None = request_principal
        self.client_host_address: bytes = client_host_address
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EnvelopeRequest:
        if version != 0:
            raise DecodeError(no_such_version("EnvelopeRequest", version))
        request_data = reader.compact_bytes()
        request_principal = reader.compact_nullable_bytes()
        client_host_address = reader.compact_bytes()
        unknown_tags = reader.unknown_tags()
        return EnvelopeRequest(request_data, request_principal, client_host_address, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("EnvelopeRequest", version))
        writer.compact_bytes(self.request_data)
        writer.compact_nullable_bytes(self.request_principal)
        writer.compact_bytes(self.client_host_address)
        writer.unknown_tags(self.unknown_tags)
