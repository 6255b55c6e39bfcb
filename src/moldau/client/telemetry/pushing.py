"""Asks for the subscription of a client and pushes its metrics, on a thread and a connection of its own.

Nothing that goes wrong here reaches the client: a push that fails is left out, and the next one tells what was added
since the last that was taken.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable

from moldau.client.config import ClientConfig
from moldau.client.connection.cluster import Cluster
from moldau.client.errors import ClientError, RequestTimeoutError
from moldau.client.metrics.names import Metrics
from moldau.client.telemetry.otlp_writer import OtlpWriter
from moldau.client.telemetry.schedule import ASKS, OFF, PUSHES, Schedule, Subscription
from moldau.protocol.errors import NONE
from moldau.protocol.messages.get_telemetry_subscriptions_request import GetTelemetrySubscriptionsRequest
from moldau.protocol.messages.get_telemetry_subscriptions_response import GetTelemetrySubscriptionsResponse
from moldau.protocol.messages.push_telemetry_request import PushTelemetryRequest
from moldau.protocol.messages.push_telemetry_response import PushTelemetryResponse
from moldau.protocol.primitives import ZERO_UUID
from moldau.records.codecs import compress

logger = logging.getLogger("moldau.client")

CALL_TIMEOUT_MS = 5000
# What Java's client tells of itself besides; by the setting that has it.
RESOURCE = {
    "client.rack": "client_rack",
    "group.id": "group_id",
    "group.instance.id": "group_instance_id",
    "transactional.id": "transactional_id",
}


class Pushing:
    """See the module; starts with its making."""

    def __init__(self, config: ClientConfig, metrics: Callable[[], Metrics]) -> None:
        self._config = config
        self._metrics = metrics
        self._schedule = Schedule()
        self._writer = OtlpWriter(resource_of(config), time.time_ns())
        self._subscribed = threading.Event()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="moldau-telemetry", daemon=True)
        self._thread.start()

    def instance_id(self, timeout_s: float) -> bytes:
        if not self._subscribed.wait(timeout_s):
            raise RequestTimeoutError("No broker has given this client an id within the timeout.")
        assert self._schedule.subscription is not None
        return self._schedule.subscription.instance_id

    def close(self, timeout_ms: int) -> None:
        """Has a last push sent, and waits for it no longer than this."""
        self._closing.set()
        if self._thread is not threading.current_thread():
            self._thread.join(timeout_ms / 1000)

    def _run(self) -> None:
        cluster = Cluster(self._config)
        try:
            while not self._closing.is_set() and self._schedule.state != OFF:
                wait_ms = self._schedule.due_ms - cluster.network.now_ms()
                if wait_ms > 0:
                    self._closing.wait(wait_ms / 1000)
                else:
                    self._step(cluster)
            if self._schedule.state == PUSHES:
                self._step(cluster, is_last=True)
        except Exception:
            logger.exception("The metrics of this client are not pushed any more.")
        finally:
            cluster.close()

    def _step(self, cluster: Cluster, is_last: bool = False) -> None:
        try:
            if self._schedule.state == ASKS:
                self._ask(cluster)
            else:
                self._push(cluster, is_last)
        except ClientError as error:
            logger.debug("No broker takes the metrics of this client: %s", error)
            self._schedule.on_no_response(cluster.network.now_ms())

    def _ask(self, cluster: Cluster) -> None:
        known = self._schedule.subscription
        request = GetTelemetrySubscriptionsRequest(ZERO_UUID if known is None else known.instance_id)
        response = cluster.call(request, GetTelemetrySubscriptionsResponse, CALL_TIMEOUT_MS)
        now_ms = cluster.network.now_ms()
        if response.error_code != NONE:
            self._schedule.on_error(response.error_code, now_ms)
            return
        subscription = Subscription(
            response.client_instance_id,
            response.subscription_id,
            response.push_interval_ms,
            tuple(response.accepted_compression_types),
            response.telemetry_max_bytes,
            response.delta_temporality,
            tuple(response.requested_metrics),
        )
        self._schedule.on_subscription(subscription, random.random(), now_ms)
        self._subscribed.set()

    def _push(self, cluster: Cluster, is_last: bool) -> None:
        subscription = self._schedule.subscription
        assert subscription is not None
        codec = self._schedule.codec()
        data = self._writer.write(self._metrics().items(), subscription.wants, subscription.is_delta, time.time_ns())
        packed = compress(codec, data) if data else data
        if max(len(data), len(packed)) > subscription.bytes_max:
            logger.debug("%d bytes of metrics are more than brokers take at once.", len(data))
            self._schedule.on_pushed(cluster.network.now_ms())
            return
        request = PushTelemetryRequest(
            subscription.instance_id, subscription.subscription_id, is_last, codec if data else 0, packed
        )
        response = cluster.call(request, PushTelemetryResponse, CALL_TIMEOUT_MS, tries=1)
        now_ms = cluster.network.now_ms()
        if response.error_code == NONE:
            self._writer.taken()
            self._schedule.on_pushed(now_ms)
        else:
            self._schedule.on_error(response.error_code, now_ms)


def resource_of(config: ClientConfig) -> dict[str, str]:
    """What is true of all metrics of a client."""
    found = {}
    for setting, name in RESOURCE.items():
        value = config.get_optional(setting) if setting in config.given else None
        if value:
            found[name] = value
    return found
