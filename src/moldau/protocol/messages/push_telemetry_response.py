"""PushTelemetry response, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/072-push-telemetry.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, UnknownTags, Writer, no_such_version


class PushTelemetryResponse(Message):
    API_KEY: ClassVar[int] = 72
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("throttle_time_ms", "error_code")

    def __init__(self, throttle_time_ms: int = 0, error_code: int = 0, unknown_tags: UnknownTags | None = None) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PushTelemetryResponse:
        if version != 0:
            raise DecodeError(no_such_version("PushTelemetryResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        unknown_tags = reader.unknown_tags()
        return PushTelemetryResponse(throttle_time_ms, error_code, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("PushTelemetryResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.unknown_tags(self.unknown_tags)
