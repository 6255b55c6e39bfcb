"""ExpireDelegationToken response, versions 1 to 2 (generated).

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


class ExpireDelegationTokenResponse(Message):
    API_KEY: ClassVar[int] = 40
    LOWEST_VERSION: ClassVar[int] = 1
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")

    def __init__(
        self,
        error_code: int = 0,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.error_code: int = error_code
        self.expiry_timestamp_ms: int = expiry_timestamp_ms
        self.throttle_time_ms: int = throttle_time_ms
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> ExpireDelegationTokenResponse:
        if version < 1 or version > 2:
            raise DecodeError(no_such_version("ExpireDelegationTokenResponse", version))
        error_code = reader.int16()
        expiry_timestamp_ms = reader.int64()
        throttle_time_ms = reader.int32()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return ExpireDelegationTokenResponse(error_code, expiry_timestamp_ms, throttle_time_ms, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 1 or version > 2:
            raise EncodeError(no_such_version("ExpireDelegationTokenResponse", version))
        writer.int16(self.error_code)
        writer.int64(self.expiry_timestamp_ms)
        writer.int32(self.throttle_time_ms)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
