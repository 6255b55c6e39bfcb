"""InitProducerId response, versions 0 to 6 (generated).

Written by tools/generate_messages.py from schemas/messages/022-init-producer-id.txt.
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


class InitProducerIdResponse(Message):
    API_KEY: ClassVar[int] = 22
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,
        ongoing_txn_producer_epoch: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.ongoing_txn_producer_id: int = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch: int = ongoing_txn_producer_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> InitProducerIdResponse:
        if version < 0 or version > 6:
            raise DecodeError(no_such_version("InitProducerIdResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        producer_id = reader.int64()
        producer_epoch = reader.int16()
        ongoing_txn_producer_id: int = -1
        if version >= 6:
            ongoing_txn_producer_id = reader.int64()
        ongoing_txn_producer_epoch: int = -1
        if version >= 6:
            ongoing_txn_producer_epoch = reader.int16()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return InitProducerIdResponse(
            throttle_time_ms,
            error_code,
            producer_id,
            producer_epoch,
            ongoing_txn_producer_id,
            ongoing_txn_producer_epoch,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 6:
            raise EncodeError(no_such_version("InitProducerIdResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.int64(self.producer_id)
        writer.int16(self.producer_epoch)
        if version >= 6:
            writer.int64(self.ongoing_txn_producer_id)
        elif self.ongoing_txn_producer_id != -1:
            raise cannot_send("ongoing_txn_producer_id", version)
        if version >= 6:
            writer.int16(self.ongoing_txn_producer_epoch)
        elif self.ongoing_txn_producer_epoch != -1:
            raise cannot_send("ongoing_txn_producer_epoch", version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
