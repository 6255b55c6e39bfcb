"""ExpireDelegationToken request, versions 1 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/040-expire-delegation-token.txt.
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


class ExpireDelegationTokenRequest(Message):
    API_KEY: ClassVar[int] = 40
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("hmac", "expiry_time_period_ms")

    def __init__(
        self,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.hmac: bytes = hmac
        self.expiry_time_period_ms: int = expiry_time_period_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ExpireDelegationTokenRequest:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("ExpireDelegationTokenRequest", version))
        hmac: bytes
        if version >= 2:
            hmac = reader.compact_bytes()
        else:
            hmac = reader.bytes_()
        expiry_time_period_ms = reader.int64()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return ExpireDelegationTokenRequest(hmac, expiry_time_period_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("ExpireDelegationTokenRequest", version))
        if version >= 2:
            writer.compact_bytes(self.hmac)
        else:
            writer.bytes_(self.hmac)
        writer.int64(self.expiry_time_period_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
