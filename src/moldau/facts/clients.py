"""Who is connected to the brokers: what their pages `/clients` tell, connection by connection and client by client.

Kafka's protocol does not tell. A broker of Moldau has it on a page where `moldau.metrics.listener` says so; of all
others it is not known.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from moldau.config.own_keys import METRICS_LISTENER_KEY
from moldau.facts.share_progress import fetch_page, page_address

if TYPE_CHECKING:
    from moldau.client.admin import Admin

CLIENTS_PATH = "/clients"


class ConnectedTo(NamedTuple):
    """One connection of a client to a broker."""

    broker: int
    listener: str
    address: str
    principal: str
    client_id: str | None
    software_name: str
    software_version: str
    connected_ms: int
    idle_ms: int
    tls: bool
    requests: int
    bytes_in: int
    bytes_out: int
    throttled_ms: int
    throttled_total: int
    instance_ids: tuple[str, ...]


class Found(NamedTuple):
    """What the brokers told: connections, how many were left out, and which brokers told nothing."""

    connections: list[ConnectedTo]
    left_out: int
    silent: list[str]


class Client(NamedTuple):
    """Connections that are one client's, as far as can be told: the same principal, id, software and host."""

    client_id: str | None
    software_name: str
    software_version: str
    principal: str
    host: str
    listeners: list[str]
    brokers: list[int]
    connections: int
    connected_ms: int
    requests: int
    bytes_in: int
    bytes_out: int
    throttled_ms: int
    throttled_total: int
    instance_ids: list[str]


def pages_of(admin: Admin) -> dict[str, tuple[str, int] | None]:
    """Where the page of each broker is, by the broker's id; None where it has none that can be reached from here."""
    from moldau.client.admin import BROKER, ConfigResource

    brokers = {str(broker.id): broker for broker in admin.describe_cluster().brokers}
    resources = [ConfigResource(BROKER, broker_id) for broker_id in brokers]
    found: dict[str, tuple[str, int] | None] = {}
    for resource, outcome in admin.describe_configs(resources, names=[METRICS_LISTENER_KEY]).items():
        value = next((entry.value for entry in outcome.get() if entry.name == METRICS_LISTENER_KEY), None)
        found[resource.name] = page_address(value or "", brokers[resource.name])
    return found


def fetch_connections(pages: dict[str, tuple[str, int] | None]) -> Found:
    """Asks every page."""
    connections: list[ConnectedTo] = []
    left_out = 0
    silent: list[str] = []
    for name, address in pages.items():
        text = None if address is None else fetch_page(*address, CLIENTS_PATH)
        told = None if text is None else parse_connections(text)
        if told is None:
            silent.append(name)
            continue
        connections += told[0]
        left_out += told[1]
    return Found(connections, left_out, silent)


def parse_connections(text: str) -> tuple[list[ConnectedTo], int] | None:
    """What a page tells, and how many connections it leaves out; None for what is not such a page."""
    try:
        document = json.loads(text)
        node = document["node"]
        return [_connection(node, row) for row in document["connections"]], document["left_out"]
    except (ValueError, KeyError, TypeError):
        return None


def _connection(node: int, row: dict[str, Any]) -> ConnectedTo:
    known = {name: row[name] for name in ConnectedTo._fields if name in row}
    return ConnectedTo(broker=node, instance_ids=tuple(each["instance_id"] for each in row["telemetry"]), **known)


def clients_of(connections: Iterable[ConnectedTo]) -> list[Client]:
    """Throttled ones first, then those with most traffic."""
    together: dict[tuple[object, ...], list[ConnectedTo]] = {}
    for each in connections:
        host = each.address.rpartition(":")[0]
        key = (each.client_id, each.software_name, each.software_version, each.principal, host)
        together.setdefault(key, []).append(each)
    found = [_client(rows) for rows in together.values()]
    return sorted(found, key=lambda row: (-row.throttled_ms, -(row.bytes_in + row.bytes_out), row.client_id or ""))


def _client(rows: list[ConnectedTo]) -> Client:
    first = rows[0]
    return Client(
        first.client_id,
        first.software_name,
        first.software_version,
        first.principal,
        first.address.rpartition(":")[0],
        sorted({row.listener for row in rows}),
        sorted({row.broker for row in rows}),
        len(rows),
        max(row.connected_ms for row in rows),
        sum(row.requests for row in rows),
        sum(row.bytes_in for row in rows),
        sum(row.bytes_out for row in rows),
        max(row.throttled_ms for row in rows),
        sum(row.throttled_total for row in rows),
        sorted({each for row in rows for each in row.instance_ids}),
    )
