"""GetTelemetrySubscriptions response, version 0 (generated).

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


class GetTelemetrySubscriptionsResponse(Message):
    API_KEY: ClassVar[int] = 71
    LOWEST_VERSION: ClassVar[int] = 0
    HIGHEST_VERSION: ClassVar[int] = 0
    FIRST_FLEXIBLE_VERSION: ClassVar[int] = 0
    FIELDS: ClassVar[tuple[str, ...]] = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )

    def __init__(
        self,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: bytes = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: list[int] | None = None,
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: list[str] | None = None,
        unknown_tags: UnknownTags | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        self.error_code: int = error_code
        self.client_instance_id: bytes = client_instance_id
        self.subscription_id: int = subscription_id
        self.accepted_compression_types: list[int] = (
            [] if accepted_compression_types is None else accepted_compression_types
        )
        self.push_interval_ms: int = push_interval_ms
        self.telemetry_max_bytes: int = telemetry_max_bytes
        self.delta_temporality: bool = delta_temporality
        self.requested_metrics: list[str] = [] if requested_metrics is None else requested_metrics
        self.unknown_tags: UnknownTags | None = unknown_tags

    @staticmethod
    def decode(reader: Reader, version: int) -> GetTelemetrySubscriptionsResponse:
        if version != 0:
            raise DecodeError(no_such_version("GetTelemetrySubscriptionsResponse", version))
        throttle_time_ms = reader.int32()
        error_code = reader.int16()
        client_instance_id = reader.uuid()
        subscription_id = reader.int32()
        count = reader.compact_array_length(1)
        accepted_compression_types = reader.int8_list(count)
        push_interval_ms = reader.int32()
        telemetry_max_bytes = reader.int32()
        delta_temporality = reader.boolean()
        count = reader.compact_array_length(1)
        requested_metrics = reader.compact_string_list(count)
        unknown_tags = reader.unknown_tags()
        return GetTelemetrySubscriptionsResponse(
            throttle_time_ms,
            error_code,
            client_instance_id,
            subscription_id,
            accepted_compression_types,
            push_interval_ms,
            telemetry_max_bytes,
            delta_temporality,
            requested_metrics,
            unknown_tags,
        )

    def encode(self, writer: Writer, version: int) -> None:
        if version != 0:
            raise EncodeError(no_such_version("GetTelemetrySubscriptionsResponse", version))
        writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.uuid(self.client_instance_id)
        writer.int32(self.subscription_id)
        writer.compact_array_length(len(self.accepted_compression_types))
        writer.int8_list(self.accepted_compression_types)
        writer.int32(self.push_interval_ms)
        writer.int32(self.telemetry_max_bytes)
        writer.boolean(self.delta_temporality)
        writer.compact_array_length(len(self.requested_metrics))
        writer.compact_string_list(self.requested_metrics)
        writer.unknown_tags(self.unknown_tags)
