"""Telemetry of clients on this broker (KIP-714): subscriptions from the metadata, pushes unpacked, read and passed on.

What is pushed is checked and decompressed in the turn of its request, which the size limit keeps short; it is read in
later turns, so many fields in each. What waits is bounded, and what does not fit is dropped and counted.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.config.broker_config import BrokerConfig
from moldau.config.own_keys import TELEMETRY_KEY, TELEMETRY_SERIES_MAX_KEY
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import CLIENT_METRICS_RESOURCE
from moldau.node.authorization import host_text
from moldau.node.context import ClientContext
from moldau.protocol import errors
from moldau.protocol.messages.push_telemetry_request import PushTelemetryRequest
from moldau.records.batch import CorruptBatch
from moldau.records.clocks import NEVER_MS
from moldau.records.codecs import DecompressedTooLarge, decompress
from moldau.records.random_source import RandomSource
from moldau.telemetry.instances import Instance, Instances, Push
from moldau.telemetry.otlp_reader import MalformedMetrics, OtlpReader
from moldau.telemetry.series import Series
from moldau.telemetry.subscriptions import Subscriptions

log = logging.getLogger("moldau.telemetry")

BYTES_MAX_KEY: Final = "telemetry.max.bytes"
WAITING_BYTES_MAX: Final = 8 << 20
FIELDS_PER_TURN: Final = 1000
EXPIRY_CHECK_MS: Final = 5000


class Payload:
    """What one push held, decompressed."""

    def __init__(self, instance: Instance, data: bytes) -> None:
        self.instance = instance
        self.data = data
        self.reader = OtlpReader(data)


class ConnectionEnd:
    """Tells that a connection has ended on which clients sent telemetry requests."""

    def __init__(self, telemetry: ClientTelemetry, context: ClientContext) -> None:
        self.telemetry = telemetry
        self.context = context

    def on_closed(self, now_ms: int) -> None:
        self.telemetry.on_closed(id(self.context))


class ClientTelemetry:
    """See the module."""

    def __init__(self, config: BrokerConfig, rng: RandomSource) -> None:
        self.on_deadline: Callable[[int], None] | None = None
        self.is_on = config.get_bool(TELEMETRY_KEY)
        """Whether it is offered to clients."""
        self.subscriptions = Subscriptions()
        self.instances = Instances(self.subscriptions, rng, config.get_int(BYTES_MAX_KEY))
        self.series = Series(config.get_int(TELEMETRY_SERIES_MAX_KEY))
        self.export: Callable[[bytes], None] | None = None
        """Passes what was pushed on to somebody else; must not wait."""
        self.pushes_total = 0
        self.bytes_total = 0
        self.failed_total = 0
        self.dropped_total = 0
        self._waiting: deque[Payload] = deque()
        self._waiting_bytes = 0
        self._next_expiry_ms = 0

    # Subscriptions

    def start(self, image: MetadataImage) -> None:
        for (kind, name), configs in image.configs.items():
            if kind == CLIENT_METRICS_RESOURCE:
                self.subscriptions.update(name, configs)

    def apply(self, delta: MetadataDelta, image: MetadataImage) -> None:
        for kind, name in delta.changed_configs:
            if kind == CLIENT_METRICS_RESOURCE:
                self.subscriptions.update(name, image.config(kind, name))

    # Requests

    def get(
        self, instance_id: bytes, context: ClientContext, client_id: str | None, now_ms: int
    ) -> tuple[int, Instance]:
        """What a client is asked for, and the error if it may not know that now."""
        self._watch(context)
        found = self.instances.get(instance_id, id(context), attributes_of(context, client_id), now_ms)
        self._forget_ended()
        return found

    def push(self, request: PushTelemetryRequest, context: ClientContext, client_id: str | None, now_ms: int) -> int:
        """The error code of the response."""
        data = request.metrics
        push = Push(
            request.client_instance_id,
            request.subscription_id,
            request.terminating,
            request.compression_type,
            len(data),
        )
        self._watch(context)
        code, instance = self.instances.push(push, id(context), attributes_of(context, client_id), now_ms)
        self._forget_ended()
        if code != errors.NONE or instance is None:
            return code
        if data:
            code = self._take(instance, push.codec, data, now_ms)
        self.instances.taken(instance, code, len(data))
        return code

    def on_closed(self, connection: int) -> None:
        self.instances.on_closed(connection)
        self._forget_ended()

    def _watch(self, context: ClientContext) -> None:
        if not context.has_telemetry:
            context.has_telemetry = True
            context.when_closed(ConnectionEnd(self, context).on_closed)

    def _take(self, instance: Instance, codec: int, data: bytes, now_ms: int) -> int:
        try:
            payload = decompress(codec, data, self.instances.bytes_max)
        except (CorruptBatch, DecompressedTooLarge) as error:
            self.failed_total += 1
            log.debug("the telemetry of %s cannot be decompressed: %s", instance.text, error)
            return errors.INVALID_RECORD
        self.pushes_total += 1
        self.bytes_total += len(data)
        if not self.is_on:
            return errors.NONE
        if self.export is not None:
            self.export(payload)
        if self._waiting_bytes + len(payload) > WAITING_BYTES_MAX:
            self.dropped_total += 1
            return errors.NONE
        self._waiting.append(Payload(instance, payload))
        self._waiting_bytes += len(payload)
        assert self._waiting_bytes <= WAITING_BYTES_MAX
        if self.on_deadline is not None:
            self.on_deadline(now_ms)
        return errors.NONE

    def _forget_ended(self) -> None:
        for instance in self.instances.take_ended():
            self.series.forget(instance.instance_id)

    # Turn by turn

    def poll(self, now_ms: int) -> int:
        """Reads a piece of what waits, and forgets clients that are silent."""
        if now_ms >= self._next_expiry_ms:
            self._next_expiry_ms = now_ms + EXPIRY_CHECK_MS
            self.instances.expire(now_ms)
            self._forget_ended()
        if self._waiting:
            self._read(self._waiting[0])
        if self._waiting:
            return now_ms
        return self._next_expiry_ms if len(self.instances) else NEVER_MS

    def _read(self, payload: Payload) -> None:
        instance, reader = payload.instance, payload.reader
        more = False
        if self.instances.find(instance.instance_id) is instance:
            try:
                more = reader.resume(FIELDS_PER_TURN)
            except MalformedMetrics as error:
                self.failed_total += 1
                log.debug("the telemetry of %s cannot be read: %s", instance.text, error)
            for point in reader.points:
                self.series.add(instance, point)
            reader.points.clear()
        if not more:
            self.series.left_out_total += reader.left_out
            self._waiting.popleft()
            self._waiting_bytes -= len(payload.data)


def attributes_of(context: ClientContext, client_id: str | None) -> dict[str, str]:
    """What subscriptions choose clients by; what is not known is not there."""
    found = {
        "client_software_name": context.software_name,
        "client_software_version": context.software_version,
        "client_source_address": host_text(context.peer),
        "client_source_port": context.peer.rpartition(":")[2],
    }
    if client_id is not None:
        found["client_id"] = client_id
    return found
