"""The metrics of connections, requests and logins, which all clients have; and who the client is."""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any

from moldau import __version__
from moldau.client.metrics.table import Rows, Table
from moldau.client.metrics.window import summarize

if TYPE_CHECKING:
    from moldau.client.connection.cluster import Cluster
    from moldau.client.metrics.meters import NetworkMeter, NodeMeter

# Kafka's clients give the connection to a coordinator the largest number less the broker's.
COORDINATOR_ID_MAX = 0x7FFFFFFF


def add_app_info(table: Table, started_wall_ms: int) -> None:
    rows = table.rows("app-info")
    rows.put("version", __version__)
    rows.put("commit-id", "unknown")
    rows.put("start-time-ms", started_wall_ms)


def add_network(table: Table, cluster: Cluster, group: str, node_group: str) -> None:
    """group: where those of the client as a whole belong; node_group: those of each broker."""
    meter = cluster.meter
    nodes = list(meter.nodes.items())
    rows = table.rows(group)
    _add_traffic(rows, [node for _, node in nodes])
    _add_connections(rows, meter)
    _add_turns(rows, meter)
    _add_logins(rows, meter)
    for address, node in nodes:
        found = table.rows(node_group, node_id=f"node-{_node_id(cluster, address)}")
        _add_traffic(found, [node])
        found.averages("request-latency", node.latencies_ms)


def _node_id(cluster: Cluster, address: tuple[Any, ...]) -> int:
    """Brokers that are known by their address alone have negative numbers, as in Kafka."""
    plain = (address[0], address[1])
    node_id = next((broker.id for broker in list(cluster.brokers.values()) if broker.address == plain), None)
    if node_id is None:
        known = cluster.bootstrap_addresses
        return -1 - (known.index(plain) if plain in known else len(known))
    # Another type than a plain tuple: the connection is the coordinator's own.
    return node_id if type(address) is tuple else COORDINATOR_ID_MAX - node_id


def _add_traffic(rows: Rows, nodes: list[NodeMeter]) -> None:
    rows.amounts("outgoing-byte", *(node.bytes_out for node in nodes))
    rows.amounts("incoming-byte", *(node.bytes_in for node in nodes))
    requests = rows.averages("request-size", *(node.requests for node in nodes))
    rows.count_of("request", requests)
    rows.counts("response", *(node.responses for node in nodes))


def _add_connections(rows: Rows, meter: NetworkMeter) -> None:
    nodes = list(meter.nodes.values())
    rows.counts("connection-creation", meter.connections_created)
    rows.counts("connection-close", meter.connections_closed)
    rows.put("connection-count", float(meter.connections))
    rows.counts("network-io", *(node.requests for node in nodes), *(node.responses for node in nodes))


def _add_turns(rows: Rows, meter: NetworkMeter) -> None:
    """One select a turn: what it waited for, and what was done then."""
    rows.counts("select", meter.wait_ns)
    for name, tally in (("io-wait", meter.wait_ns), ("io", meter.work_ns)):
        summary = summarize([tally])
        rows.put(f"{name}-time-ns-avg", summary.average)
        rows.put(f"{name}-time-ns-total", float(summary.total_amount))
        rows.share_of_time(f"{name}-ratio", [tally])


def _add_logins(rows: Rows, meter: NetworkMeter) -> None:
    rows.counts("successful-authentication", meter.authentications)
    rows.put("successful-authentication-no-reauth-total", float(meter.authentications.count))
    rows.counts("failed-authentication", meter.failed_authentications)
    rows.counts("successful-reauthentication", meter.reauthentications)
    rows.counts("failed-reauthentication", meter.failed_reauthentications)
    rows.averages("reauthentication-latency", meter.reauthentications)


def add_throttling(rows: Rows, cluster: Cluster, name: str) -> None:
    rows.averages(name, *(node.throttle_times_ms for node in list(cluster.meter.nodes.values())))


def seconds_ago(moment_ms: int | None, now_ms: int) -> float:
    """Kafka says -1 of what has not happened yet."""
    return -1.0 if moment_ms is None else float((now_ms - moment_ms) // 1000)


def ratio(part: float, whole: float) -> float:
    return part / whole if whole else nan
