"""BrokerHeartbeat response, versions 0 to 2 (generated).

Written by tools/generate_messages.py from schemas/messages/063-broker-heartbeat.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class BrokerHeartbeatResponse(Message):
    API_KEY: ClassVar[int] = 63
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 2
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "is_caught_up",
        "is_fenced",
        "should_shut_down",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        is_caught_up: bool = False,
        is_fenced: bool = True,
        should_shut_down: bool = False,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.is_caught_up: bool = is_caught_up
        self.is_fenced: bool = is_fenced
        self.should_shut_down: bool = should_shut_down
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> BrokerHeartbeatResponse:
        if version < 0 or version > 2:
            raise DecodeError(no_such_version("BrokerHeartbeatResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        is_caught_up = reader.boolean()
        is_fenced = reader.boolean()
        should_shut_down = reader.boolean()
        unknown_tags = reader.unknown_tags()
        return BrokerHeartbeatResponse(
            throttle_time_ms,
            error_code,
            is_caught_up,
            is_fenced,
            should_shut_down,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version < 0 or version > 2:
            raise EncodeError(no_such_version("BrokerHeartbeatResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.boolean(self.is_caught_up)
        writer.boolean(self.is_fenced)
        writer.boolean(self.should_shut_down)
        writer.unknown_tags(self.unknown_tags)
