"""InitProducerId request, versions 0 to 6 (generated).

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


class InitProducerIdRequest(Message):
    API_KEY: ClassVar[int] = 22
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 6
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 2
    FIELDS: ClassVar[tuple[str, ...]] = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )

    def __init__(
        self,
        transactional_id: str | None = "",
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,
        producer_epoch: int = -1,
        enable2_pc: bool = False,
        keep_prepared_txn: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        self.transaction_timeout_ms: int = transaction_timeout_ms
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.enable2_pc: bool = enable2_pc
        self.keep_prepared_txn: bool = keep_prepared_txn
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> InitProducerIdRequest:
        if version < 0 or version > 6:
            raise DecodeError(no_such_version("InitProducerIdRequest", version))
        transactional_id: str | None
        if version >= 2:
            transactional_id = reader.compact_nullable_string()
        else:
            transactional_id = reader.nullable_string()
        transaction_timeout_ms = reader.int32()
        producer_id: int = -1
        if version >= 3:
            producer_id = reader.int64()
        producer_epoch: int = -1
        if version >= 3:
            producer_epoch = reader.int16()
        enable2_pc: bool = False
        if version >= 6:
            enable2_pc = reader.boolean()
        keep_prepared_txn: bool = False
        if version >= 6:
            keep_prepared_txn = reader.boolean()
        unknown_tags: UnknownTags | None = None
        if version >= 2:
            unknown_tags = reader.unknown_tags()
        return InitProducerIdRequest(
            transactional_id,
            transaction_timeout_ms,
            producer_id,
            producer_epoch,
            enable2_pc,
            keep_prepared_txn,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 6:
            raise EncodeError(no_such_version("InitProducerIdRequest", version))
        if version >= 2:
            writer.compact_nullable_string(self.transactional_id)
        else:
            writer.nullable_string(self.transactional_id)
        writer.int32(self.transaction_timeout_ms)
        if version >= 3:
            writer.int64(self.producer_id)
        elif self.producer_id != -1:
            raise cannot_send("producer_id", version)
        if version >= 3:
            writer.int16(self.producer_epoch)
        elif self.producer_epoch != -1:
            raise cannot_send("producer_epoch", version)
        if version >= 6:
            writer.boolean(self.enable2_pc)
        elif self.enable2_pc:
            raise cannot_send("enable2_pc", version)
        if version >= 6:
            writer.boolean(self.keep_prepared_txn)
        elif self.keep_prepared_txn:
            raise cannot_send("keep_prepared_txn", version)
        if version >= 2:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
