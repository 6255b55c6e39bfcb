"""AllocateProducerIds request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/067-allocate-producer-ids.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class AllocateProducerIdsRequest(Message):
    API_KEY: ClassVar[int] = 67
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id", "broker_epoch")

    def __init__(self, broker_id: int = 0, broker_epoch: int = -1, unknown_tags: UnknownTags | None = None) -> None:
        self.broker_id: int = broker_id
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> AllocateProducerIdsRequest:
        if version != 0:
            raise DecodeError(no_such_version("AllocateProducerIdsRequest", version))
        broker_id = reader.int32()
        broker_epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return AllocateProducerIdsRequest(broker_id, broker_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("AllocateProducerIdsRequest", version))
        writer.int32(self.broker_id)
        writer.int64(self.broker_epoch)
        writer.unknown_tags(self.unknown_tags)
