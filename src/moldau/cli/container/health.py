"""Whether the node of this container responds: one ApiVersions request to its own listener, without a client."""

from __future__ import annotations

import socket
import struct
from collections.abc import Mapping

from moldau.config.broker_config import BrokerConfig
from moldau.config.listeners import EVERY_ADDRESS

TIMEOUT_S = 4.0
API_VERSIONS = 18
CORRELATION_ID = 0x6D6F6C64


class HealthProblem(Exception):
    """The node does not respond; the text says where and how."""


def check_health(values: Mapping[str, str]) -> str:
    """A sentence about a node that responds. A listener that is not plaintext only has to accept the connection."""
    config = BrokerConfig(dict(values), warn=False)
    controllers = config.controller_listener_names
    candidates = [each for each in config.listeners if (each.name in controllers) != config.is_broker]
    plain = [each for each in candidates if each.protocol == "PLAINTEXT"]
    endpoint = (plain or candidates)[0]
    host = "localhost" if endpoint.host in EVERY_ADDRESS else endpoint.host
    where = f"{endpoint.name} on {host}:{endpoint.port}"
    try:
        with socket.create_connection((host, endpoint.port), timeout=TIMEOUT_S) as connection:
            if not plain:
                return f"{where} accepts connections."
            _ask(connection)
    except OSError as error:
        raise HealthProblem(f"{where} does not respond: {error.strerror or error}.") from None
    return f"{where} responds."


def _ask(connection: socket.socket) -> None:
    connection.settimeout(TIMEOUT_S)
    connection.sendall(struct.pack(">ihhih", 10, API_VERSIONS, 0, CORRELATION_ID, -1))
    head = b""
    while len(head) < 10:
        more = connection.recv(10 - len(head))
        if not more:
            raise ConnectionError("it closed the connection")
        head += more
    _, correlation_id, error_code = struct.unpack(">iih", head)
    if correlation_id != CORRELATION_ID or error_code != 0:
        raise ConnectionError("it does not respond as a broker")
