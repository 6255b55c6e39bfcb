"""AddOffsetsToTxn request, versions 0 to 4 (generated).

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


class AddOffsetsToTxnRequest(Message):
    API_KEY: ClassVar[int] = 25
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 3
    FIELDS: ClassVar[tuple[str, ...]] = ("transactional_id", "producer_id", "producer_epoch", "group_id")

    def __init__(
        self,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        self.producer_id: int = producer_id
        self.producer_epoch: int = producer_epoch
        self.group_id: str = group_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AddOffsetsToTxnRequest:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("AddOffsetsToTxnRequest", version))
        transactional_id: str
        if version >= 3:
            transactional_id = reader.compact_string()
        else:
            transactional_id = reader.string()
        producer_id = reader.int64()
        producer_epoch = reader.int16()
        group_id: str
        if version >= 3:
            group_id = reader.compact_string()
        else:
            group_id = reader.string()
        unknown_tags: UnknownTags | None = None
        if version >= 3:
            unknown_tags = reader.unknown_tags()
        return AddOffsetsToTxnRequest(transactional_id, producer_id, producer_epoch, group_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("AddOffsetsToTxnRequest", version))
        if version >= 3:
            writer.compact_string(self.transactional_id)
        else:
            writer.string(self.transactional_id)
        writer.int64(self.producer_id)
        writer.int16(self.producer_epoch)
        if version >= 3:
            writer.compact_string(self.group_id)
        else:
            writer.string(self.group_id)
        if version >= 3:
            writer.unknown_tags(self.unknown_tags)
        elif self.unknown_tags is not None:
            raise cannot_send("unknown_tags", version)
