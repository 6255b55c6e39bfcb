"""GetTelemetrySubscriptions and PushTelemetry: clients ask which of their metrics are wanted, and send them (KIP-714).

Version 0 of both, on the listeners of brokers. No rights are needed beyond the connection. They are offered where
`moldau.client.telemetry.enable` says so, as Kafka's brokers offer them where a plugin takes what is pushed. The checks
are in `moldau.telemetry.instances`.
"""

from __future__ import annotations

from typing import Final

from moldau.api.call import Call
from moldau.protocol import errors
from moldau.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from moldau.protocol.messages.push_telemetry_request import PushTelemetryRequest
from moldau.protocol.messages.push_telemetry_response import PushTelemetryResponse
from moldau.records.codecs import GZIP, LZ4, SNAPPY, ZSTD

ACCEPTED_CODECS: Final = (ZSTD, LZ4, GZIP, SNAPPY)
"""The best first."""


def handle_get_telemetry_subscriptions(call: Call, request: GetTelemetrySubscriptionsRequest) -> None:
    telemetry = call.node.telemetry
    code, instance = telemetry.get(request.client_instance_id, call.context, call.client_id, call.now_ms)
    if code != errors.NONE:
        call.respond(GetTelemetrySubscriptionsResponse(error_code=code))
        return
    call.respond(
        GetTelemetrySubscriptionsResponse(
            client_instance_id=instance.instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(ACCEPTED_CODECS),
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=telemetry.instances.bytes_max,
            delta_temporality=True,
            requested_metrics=list(instance.metrics),
        )
    )


def handle_push_telemetry(call: Call, request: PushTelemetryRequest) -> None:
    code = call.node.telemetry.push(request, call.context, call.client_id, call.now_ms)
    call.respond(PushTelemetryResponse(error_code=code))
