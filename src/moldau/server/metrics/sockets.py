"""Connections one by one: bytes, requests, what waits, and who is at the other end; names of Kafka's socket server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from moldau.metrics.traffic import Traffic
from moldau.net.connection import Connection
from moldau.net.listener import Listener
from moldau.net.listener_group import ListenerGroup
from moldau.server.metrics.connections import PREFIX
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.metric import COUNTER, GAUGE, Labels, Metric
from moldau.server.metrics.rates import Rates

SOFTWARE_MAX = 100
"""So many names and versions of clients have rows; they are whatever clients say. The rest is OTHER."""
OTHER = ("other", "other")
CONFLUENT_PREFIX = "kafka_server_socketservermetrics"

COUNTED: tuple[tuple[str, str], ...] = (
    ("connection_creation", "Connections accepted"),
    ("connection_close", "Connections closed"),
    ("incoming_byte", "Bytes received"),
    ("outgoing_byte", "Bytes sent"),
    ("request", "Responses sent, which Kafka counts under this name"),
    ("response", "Requests received, which Kafka counts under this name"),
    ("network_io", "Requests received and responses sent"),
)


class Census:
    """What a walk over all connections finds."""

    def __init__(self) -> None:
        self.requests_waiting = 0
        self.responses_waiting = 0
        self.software: dict[tuple[str, str, str], int] = {}
        self.tls: dict[tuple[str, str, str], int] = {}
        self._known: set[tuple[str, str]] = set()

    def count(self, listener: str, connection: Connection) -> None:
        self.requests_waiting += connection.frames_waiting
        self.responses_waiting += connection.is_sending
        context = connection.context
        pair = (context.software_name, context.software_version)
        if pair not in self._known:
            if len(self._known) < SOFTWARE_MAX:
                self._known.add(pair)
            else:
                pair = OTHER
        key = (*pair, listener)
        self.software[key] = self.software.get(key, 0) + 1
        if connection.tls is not None:
            agreed = (*connection.tls.cipher_and_protocol(), listener)
            self.tls[agreed] = self.tls.get(agreed, 0) + 1


def socket_metrics(groups: Iterable[ListenerGroup], rates: Rates, now_s: float) -> Iterator[Metric | None]:
    totals = [Metric(f"{PREFIX}_{stem}_total", COUNTER, about) for stem, about in COUNTED]
    speeds = [Metric(f"{PREFIX}_{stem}_rate", GAUGE, f"{about}, a second") for stem, about in COUNTED]
    census = Census()
    for group in groups:
        for listener in group.listeners:
            traffic = Traffic()
            for _ in count_connections(listener, traffic, census):
                yield None
            labels: Labels = (("listener", listener.name),)
            values = (
                listener.accepted_total,
                max(0, listener.accepted_total - len(listener.connections) - len(listener.handshakes)),
                traffic.bytes_in,
                traffic.bytes_out,
                traffic.responses,
                traffic.requests,
                traffic.requests + traffic.responses,
            )
            for total, speed, value in zip(totals, speeds, values, strict=True):
                total.values[labels] = value
                speed.values[labels] = rates.rate(total.name, labels, value, now_s)
    yield from totals
    yield from speeds
    yield from census_metrics(census)


def count_connections(listener: Listener, traffic: Traffic, census: Census) -> Iterator[None]:
    """One that closes meanwhile is counted all the same: its traffic is where it was, and the listener's was read."""
    traffic.add(listener.traffic)
    connections = list(listener.connections)
    for start in range(0, len(connections), BLOCK_SIZE):
        for connection in connections[start : start + BLOCK_SIZE]:
            traffic.add(connection.traffic)
            census.count(listener.name, connection)
        yield


def census_metrics(census: Census) -> list[Metric]:
    channel = "kafka_network_requestchannel"
    software = Metric(
        f"{PREFIX}_connections_software",
        GAUGE,
        "Open connections, by what clients say they are",
        confluent=f"{CONFLUENT_PREFIX}_connections",
    )
    for (name, version, listener), count in census.software.items():
        software.values[
            ("clientSoftwareName", name),
            ("clientSoftwareVersion", version),
            ("listener", listener),
            ("networkProcessor", "0"),
        ] = count
    tls = Metric(f"{PREFIX}_connections_tls_info", GAUGE, "Open connections, by cipher and protocol")
    for (cipher, protocol, listener), count in census.tls.items():
        tls.values[("cipher", cipher), ("protocol", protocol), ("listener", listener), ("networkProcessor", "0")] = (
            count
        )
    return [
        software,
        tls,
        Metric(f"{channel}_requestqueuesize", GAUGE, "Requests that wait for their turn", census.requests_waiting),
        Metric(
            f"{channel}_responsequeuesize",
            GAUGE,
            "Connections that do not take their responses",
            census.responses_waiting,
        ),
    ]
