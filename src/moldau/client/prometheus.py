"""Shows the metrics of clients to Prometheus, under the names that Java's clients have there through the JMX exporter.

    from moldau.client import Producer
    from moldau.client.prometheus import register

    producer = Producer("localhost:9092", client_id="orders")
    register(producer)

`record-send-total` of `producer-metrics` is `kafka_producer_producer_metrics_record_send_total{client_id="orders"}`.
What was not measured lately, and so is not a number, is left out: sums over other series stay numbers.

Needs prometheus-client: `pip install 'moldau[prometheus]'`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isnan
from typing import Protocol
from weakref import WeakKeyDictionary

from prometheus_client import REGISTRY, CollectorRegistry, Metric
from prometheus_client.registry import Collector

from moldau.client.metrics.catalogue import KINDS, kind_of, known_metrics
from moldau.client.metrics.names import CLIENT_ID, MetricName, Metrics

__all__ = ["ClientCollector", "register", "unregister"]

# How the names of each kind of client begin; Java's clients name their beans like this.
DOMAINS = {
    "producer": "kafka_producer",
    "consumer": "kafka_consumer",
    "share consumer": "kafka_consumer",
    "admin": "kafka_admin_client",
}
TOTAL = "_total"


class Client(Protocol):
    """A producer, consumer, share consumer or admin client, of either face."""

    def metrics(self) -> Metrics: ...


class ClientCollector(Collector):
    """All clients that are shown in one registry."""

    def __init__(self) -> None:
        self._clients: dict[tuple[str, str], Client] = {}
        self._about = {
            (known.group, known.name): known.about for kind in KINDS for known in reversed(known_metrics(kind))
        }

    def add(self, client: Client, client_id: str | None = None) -> None:
        """client_id: in place of the setting client.id, which two clients of one kind must not share here."""
        metrics = client.metrics()
        name = client_id or dict(next(iter(metrics)).tags)[CLIENT_ID]
        key = (DOMAINS[_kind(metrics)], name)
        if self._clients.get(key, client) is not client:
            raise ValueError(f"Another client has the client_id {name}: give register() one of its own.")
        self._clients[key] = client

    def remove(self, client: Client) -> None:
        """The client's series end; one that was never added is no error."""
        self._clients = {key: other for key, other in self._clients.items() if other is not client}

    def describe(self) -> Iterable[Metric]:
        """Nothing: which series there are depends on the topics that clients use."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of all clients that were added, as they are now: what a registry asks for at a scrape."""
        families: dict[str, Metric] = {}
        for (domain, client_id), client in list(self._clients.items()):
            metrics = client.metrics()
            for key, value in metrics.items():
                if not isinstance(value, str) and not isnan(value):
                    self._add_sample(families, domain, client_id, key, value)
            _add_app_info(families, domain, client_id, metrics)
        yield from families.values()

    def _add_sample(
        self, families: dict[str, Metric], domain: str, client_id: str, key: MetricName, value: float
    ) -> None:
        name = f"{domain}_{key.group}_{key.name}".replace("-", "_")
        family = families.get(name)
        if family is None:
            kind = "counter" if name.endswith(TOTAL) else "gauge"
            about = self._about.get((key.group, key.name), key.name)
            family = families[name] = Metric(name.removesuffix(TOTAL), f"{key.name} of {key.group}: {about}", kind)
        labels = {tag.replace("-", "_"): text for tag, text in key.tags}
        family.add_sample(name, {**labels, "client_id": client_id}, value)


def _add_app_info(families: dict[str, Metric], domain: str, client_id: str, metrics: Metrics) -> None:
    """Text is shown as labels, as the JMX exporter's rules do."""
    texts = {key.name.replace("-", "_"): value for key, value in metrics.items() if isinstance(value, str)}
    name = f"{domain}_app_info"
    family = families.setdefault(name, Metric(name, "who the client is", "gauge"))
    family.add_sample(name, {"client_id": client_id, **texts}, 1.0)


def _kind(metrics: Metrics) -> str:
    return kind_of({key.group for key in metrics})


_collectors: WeakKeyDictionary[CollectorRegistry, ClientCollector] = WeakKeyDictionary()


def register(client: Client, client_id: str | None = None, registry: CollectorRegistry = REGISTRY) -> None:
    """Shows the client's metrics in the registry, until unregister().

    client_id: the label, in place of the setting client.id. Raises ValueError where another client of the kind has it.
    """
    collector = _collectors.get(registry)
    if collector is None:
        collector = _collectors[registry] = ClientCollector()
        registry.register(collector)
    collector.add(client, client_id)


def unregister(client: Client, registry: CollectorRegistry = REGISTRY) -> None:
    """The client's metrics are shown no more; to be called when it is closed."""
    collector = _collectors.get(registry)
    if collector is not None:
        collector.remove(client)
