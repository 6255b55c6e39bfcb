"""PushTelemetry request, version 0 (generated).

Written by tools/generate_messages.py from schemas/messages/072-push-telemetry.txt.
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


class PushTelemetryRequest(Message):
    API_KEY: ClassVar[int] = 72
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "client_instance_id",
        "subscription_id",
        "terminating",
        "compression_type",
        "metrics",
    )

    def __init__(
        self,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.client_instance_id: bytes = client_instance_id
        self.subscription_id: int = subscription_id
        self.terminating: bool = terminating
        self.compression_type: int = compression_type
        self.metrics: bytes = metrics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> PushTelemetryRequest:
        if version != 0:
            raise DecodeError(no_such_version("PushTelemetryRequest", version))
        client_instance_id = reader.uuid()
        subscription_id = reader.int32()
        terminating = reader.boolean()
        compression_type = reader.int8()
        metrics = reader.compact_bytes()
        unknown_tags = reader.unknown_tags()
        return PushTelemetryRequest(
            client_instance_id,
            subscription_id,
            terminating,
            compression_type,
            metrics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("PushTelemetryRequest", version))
        writer.uuid(self.client_instance_id)
        writer.int32(self.subscription_id)
        writer.boolean(self.terminating)
        writer.int8(self.compression_type)
        writer.compact_bytes(self.metrics)
        writer.unknown_tags(self.unknown_tags)
