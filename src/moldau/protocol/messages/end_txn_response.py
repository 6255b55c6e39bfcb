"""EndTxn response, versions 0 to 5 (generated).

Written by tools/generate_messages.py from schemas/messages/026-end-txn.txt.
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


class EndTxnResponse(Message):
    API_KEY: ClassVar[int] = 26
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 5
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> EndTxnResponse:
        if version < 0 or version > 5:
            raise DecodeError(no_such_version("EndTxnResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        producer_id: int = -1
        if version >= 5:
            producer_id = reader.int64()
        producer_epoch: int = -1
        if version >= 5:
            producer_epoch = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return EndTxnResponse(throttle_time_ms, error_code, producer_id, producer_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 5:
            raise EncodeError(no_such_version("EndTxnResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 5:
            writer.int64(self.producer_id)
        if version >= 5:
            writer.int16(self.producer_epoch)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
