"""GetTelemetrySubscriptions request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/071-get-telemetry-subscriptions.txt.
"""

from __future__ import annotations

from typing import ClassVar

from moldau.protocol.primitives import (
    ZERO_UUID,
    DecodeError,
    EncodeError,
    Message,
    Reader,
    UnknownTags,
    Writer,
    no_such_version,
)


class GetTelemetrySubscriptionsRequest(Message):
    API_KEY: ClassVar[int] = 71
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = ("client_instance_id",)

    def __init__(self, client_instance_id: bytes = ZERO_UUID, unknown_tags: UnknownTags | None = None) -> None:
        self.client_instance_id: bytes = client_instance_id
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> GetTelemetrySubscriptionsRequest:
        if version != 0:
            raise DecodeError(no_such_version("GetTelemetrySubscriptionsRequest", version))
        client_instance_id = reader.uuid()
        unknown_tags = reader.unknown_tags()
        return GetTelemetrySubscriptionsRequest(client_instance_id, unknown_tags)

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("GetTelemetrySubscriptionsRequest", version))
        writer.uuid(self.client_instance_id)
        writer.unknown_tags(self.unknown_tags)
