"""Who is connected to this node: a JSON document with a row for each connection, for the page `/clients`.

Made in pieces, between which others have their turn. The numbers are those that connections have anyway.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from moldau.net.connection import Connection
from moldau.net.listener import Listener
from moldau.net.listener_group import ListenerGroup
from moldau.node.client_telemetry import ClientTelemetry

CONNECTIONS_MAX = 10_000
ROWS_AT_ONCE = 100


def client_list(
    node_id: int, groups: Sequence[ListenerGroup], telemetry: ClientTelemetry, now_ms: int
) -> Iterator[str]:
    """Texts that make up the document. An empty one only marks a place to stop at."""
    listeners = [listener for group in groups for listener in group.listeners]
    connected = sum(len(listener.connections) for listener in listeners)
    left_out = max(0, connected - CONNECTIONS_MAX)
    yield f'{{"node": {node_id}, "telemetry": {json.dumps(telemetry.is_on)}, "left_out": {left_out}, "connections": ['
    left = CONNECTIONS_MAX
    separator = "\n"
    for listener in listeners:
        connections = list(listener.connections)[:left]
        left -= len(connections)
        for start in range(0, len(connections), ROWS_AT_ONCE):
            block = [each for each in connections[start : start + ROWS_AT_ONCE] if not each.closed]
            if block:
                rows = [json.dumps(connection_row(listener, each, telemetry, now_ms)) for each in block]
                yield separator + ",\n".join(rows)
                separator = ",\n"
            yield ""
    yield "\n]}\n"


def connection_row(
    listener: Listener, connection: Connection, telemetry: ClientTelemetry, now_ms: int
) -> dict[str, object]:
    context, traffic = connection.context, connection.traffic
    instances = telemetry.instances.on_connection(id(context)) if context.has_telemetry else []
    return {
        "listener": listener.name,
        "address": context.peer,
        "principal": context.principal,
        "client_id": context.client_id,
        "software_name": context.software_name,
        "software_version": context.software_version,
        "connected_ms": max(0, now_ms - connection.opened_ms),
        "idle_ms": max(0, now_ms - connection.last_active_ms),
        "tls": connection.tls is not None,
        "requests": traffic.requests,
        "responses": traffic.responses,
        "bytes_in": traffic.bytes_in,
        "bytes_out": traffic.bytes_out,
        "throttled_ms": connection.muted_ms(now_ms),
        "throttled_total": connection.muted_total,
        "telemetry": [
            {
                "instance_id": each.text,
                "pushes": each.pushes_total,
                "series": telemetry.series.of_instance(each.instance_id),
            }
            for each in instances
        ],
    }
