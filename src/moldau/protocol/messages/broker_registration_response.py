"""BrokerRegistration response, versions 0 to 4 (generated).

Written by tools/generate_messages.py from schemas/messages/062-broker-registration.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class BrokerRegistrationResponse(Message):
    API_KEY: ClassVar[int] = 62
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 4
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code", "broker_epoch")

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        broker_epoch: int = -1,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.broker_epoch: int = broker_epoch
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerRegistrationResponse:
        if version < 0 or version > 4:
            raise DecodeError(no_such_version("BrokerRegistrationResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        broker_epoch = reader.int64()
        unknown_tags = reader.unknown_tags()
        return BrokerRegistrationResponse(throttle_time_ms, error_code, broker_epoch, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 4:
            raise EncodeError(no_such_version("BrokerRegistrationResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.int64(self.broker_epoch)
        writer.unknown_tags(self.unknown_tags)
