"""UnregisterBroker request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/064-unregister-broker.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class UnregisterBrokerRequest(Message):
    API_KEY: ClassVar[int] = 64
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("broker_id",)

    def __init__(self, broker_id: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.broker_id: int = broker_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> UnregisterBrokerRequest:
        if version != 0:
            raise DecodeError(no_such_version("UnregisterBrokerRequest", version))
        broker_id = reader.int32()
        unknown_tags = reader.unknown_tags()
        return UnregisterBrokerRequest(broker_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("UnregisterBrokerRequest", version))
        writer.int32(self.broker_id)
        writer.unknown_tags(self.unknown_tags)
