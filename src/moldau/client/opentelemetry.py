"""Shows the metrics of clients to OpenTelemetry, under the names that the instrumentation of Java's clients uses.

    from moldau.client import Producer
    from moldau.client.opentelemetry import observe

    producer = Producer("localhost:9092", client_id="orders")
    observe(producer)

`record-send-total` is the counter `kafka.producer.record_send_total` with the attributes `client-id` and `topic`. Where
Kafka has a metric in all and for each topic, partition or broker, only the finest is shown, so that sums are right.
Spans are in moldau.client.tracing.

Needs opentelemetry-api: `pip install 'moldau[opentelemetry]'`. Without a MeterProvider of an SDK nothing is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import isnan
from typing import Protocol
from weakref import ref

from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter_provider

from moldau import __version__
from moldau.client.metrics.catalogue import KnownMetric, kind_of, known_metrics
from moldau.client.metrics.names import Metrics

__all__ = ["observe"]

PREFIXES = {"producer": "producer", "consumer": "consumer", "share consumer": "share_consumer", "admin": "admin"}
# Text, which OpenTelemetry has in the resource of a service.
TEXTS = ("version", "commit-id")

Callback = Callable[[CallbackOptions], Iterable[Observation]]


class Client(Protocol):
    """A producer, consumer, share consumer or admin client, of either face."""

    def metrics(self) -> Metrics: ...


def observe(client: Client, meter_provider: MeterProvider | None = None) -> None:
    """Shows the client's metrics in this provider, None for that of the process, for as long as the client is used;
    a producer of the compiled build is kept for as long as the provider is."""
    provider = get_meter_provider() if meter_provider is None else meter_provider
    meter = provider.get_meter("moldau.client", __version__)
    kind = kind_of({key.group for key in client.metrics()})
    reference = _reference(client)
    for known in _finest(known_metrics(kind)):
        name = f"kafka.{PREFIXES[kind]}.{known.name.replace('-', '_')}"
        callback = _callback(reference, known)
        if name.endswith("_total"):
            meter.create_observable_counter(name, [callback], description=known.about)
        else:
            meter.create_observable_gauge(name, [callback], description=known.about)


def _reference(client: Client) -> Callable[[], Client | None]:
    try:
        return ref(client)
    except TypeError:  # of a compiled class
        return lambda: client


def _finest(metrics: list[KnownMetric]) -> list[KnownMetric]:
    """Of each name the one with the most tags."""
    finest: dict[str, KnownMetric] = {}
    for known in metrics:
        if known.name in TEXTS:
            continue
        if known.name not in finest or len(known.tags) > len(finest[known.name].tags):
            finest[known.name] = known
    return list(finest.values())


def _callback(client: Callable[[], Client | None], known: KnownMetric) -> Callback:
    tags_count = len(known.tags) + 1

    def measure(options: CallbackOptions) -> Iterable[Observation]:
        found = client()
        if found is None:
            return []
        return [
            Observation(value, dict(key.tags))
            for key, value in found.metrics().items()
            if key.name == known.name and key.group == known.group and len(key.tags) == tags_count
            if not isinstance(value, str) and not isnan(value)
        ]

    return measure
