"""AddOffsetsToTxn response, versions 0 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/025-add-offsets-to-txn.txt.
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


class AddOffsetsToTxnResponse(Message):
    API_KEY: ClassVar[int] = 25
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code")

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddOffsetsToTxnResponse:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("AddOffsetsToTxnResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddOffsetsToTxnResponse(throttle_time_ms, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("AddOffsetsToTxnResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
