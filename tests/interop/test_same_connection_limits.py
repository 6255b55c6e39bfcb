"""Moldau and Apache Kafka let in as many connections as the limits allow, and treat the rest alike.

A connection is let in when a request on it is answered. One that has to wait is connected and silent. Limits are set
over a connection to the brokers' listener that is there all the time and counts as one. They are larger than what Kafka
opens to its own controller, which they limit too.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.interop.conftest import new_node, require_kafka, stop_cleanly
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import HOST, Node, free_ports
from tests.interop.wire import CLOSED, Wire
from tests.pace import moment, patience

BROKER = 4
LIMIT = 20
SILENT_S = 1.0
SETTLE_S = 0.5
WINDOWS_S = 11.5
IN, OUT, WAITS = "in", "closed", "waits"


class Limited:
    """A node with a listener for clients and one for brokers."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.inside_port = free_ports(1)[0]
        self.wires: list[Wire] = []
        self.admin: Wire | None = None
        listeners = f"PLAINTEXT://{HOST}:{node.port},INSIDE://{HOST}:{self.inside_port}"
        node.write_properties(
            {
                "listeners": f"{listeners},CONTROLLER://{HOST}:{node.controller_port}",
                "advertised.listeners": listeners,
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "inter.broker.listener.name": "INSIDE",
            }
        )

    def set(self, name: str, value: str | None, validate_only: bool = False) -> int:
        row = AlterableConfig(name, 1 if value is None else 0, value)
        resources = [AlterConfigsResource(BROKER, "1", [row])]
        answer = self._ask(IncrementalAlterConfigsRequest(resources, validate_only), 1)
        code: int = answer.responses[0].error_code
        return code

    def limit_ip(self, rate: float | None, ip: str | None = HOST) -> None:
        op = OpData("connection_creation_rate", rate or 0.0, rate is None)
        request = AlterClientQuotasRequest([EntryData([EntityData("ip", ip)], [op])])
        assert self._ask(request, 1).entries[0].error_code == 0

    def _ask(self, request: Any, version: int) -> Any:
        if self.admin is None:
            self.admin = Wire(HOST, self.inside_port)
        answer = self.admin.ask(request, version)
        time.sleep(moment(SETTLE_S))
        return answer

    def close(self) -> None:
        self.disconnect_all()
        if self.admin is not None:
            self.admin.socket.close()

    def connect(self, inside: bool = False, waits: bool = False) -> str:
        wire = Wire(HOST, self.inside_port if inside else self.node.port)
        self.wires.append(wire)
        if waits:
            wire.socket.settimeout(moment(SILENT_S))
        try:
            wire.send(ApiVersionsRequest("a", "1"), 3)
            return self.answer(wire)
        except TimeoutError:
            return WAITS
        except (ConnectionResetError, BrokenPipeError):
            return OUT
        finally:
            wire.socket.settimeout(patience(20))

    def answer(self, wire: Wire) -> str:
        return OUT if wire.receive(18, 3) == CLOSED else IN

    def disconnect(self, number: int) -> None:
        self.wires.pop(number).socket.close()

    def disconnect_all(self) -> None:
        while self.wires:
            self.disconnect(0)
        time.sleep(moment(SETTLE_S))

    def is_gone(self, number: int) -> bool:
        self.wires[number].socket.settimeout(moment(SILENT_S))
        try:
            return self.wires[number].socket.recv(1) == b""
        except TimeoutError:
            return False
        except ConnectionResetError:
            return True


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Limited]]:
    require_kafka()
    kafka = Limited(KafkaNode(tmp_path_factory.mktemp("limited-kafka")))
    kafka.node.format()
    moldau = Limited(new_node(tmp_path_factory.mktemp("limited-moldau")))
    made = [kafka, moldau]
    for limited in made:
        limited.node.start()
    yield made
    for limited in made:
        limited.close()
        stop_cleanly(limited.node)


@pytest.fixture
def alike(pair: list[Limited]) -> Callable[[Callable[[Limited], Any]], Any]:
    def run(scenario: Callable[[Limited], Any]) -> Any:
        seen = []
        for limited in pair:
            try:
                seen.append(scenario(limited))
            finally:
                limited.disconnect_all()
        assert seen[1] == seen[0], "Moldau (left) differs from Apache Kafka (right)"
        return seen[0]

    return run


Alike = Callable[[Callable[[Limited], Any]], Any]


@pytest.mark.parametrize(
    ("name", "admitted"),
    [("max.connections", LIMIT - 1), ("listener.name.plaintext.max.connections", LIMIT)],
    ids=["broker", "listener"],
)
def test_who_finds_no_slot_waits_for_one(alike: Alike, name: str, admitted: int) -> None:
    def scenario(limited: Limited) -> Any:
        assert limited.set(name, str(LIMIT)) == 0
        seen = [limited.connect() for _ in range(admitted)]
        seen.append(limited.connect(waits=True))
        limited.disconnect(0)
        seen.append(limited.answer(limited.wires[-1]))
        assert limited.set(name, None) == 0
        seen.append(limited.connect())
        return seen

    assert alike(scenario) == [IN] * admitted + [WAITS, IN, IN]


def test_a_raised_limit_lets_in_who_waits(alike: Alike) -> None:
    def scenario(limited: Limited) -> Any:
        assert limited.set("max.connections", str(LIMIT)) == 0
        seen = [limited.connect() for _ in range(LIMIT - 1)]
        seen.append(limited.connect(waits=True))
        assert limited.set("max.connections", None) == 0
        return [*seen, limited.answer(limited.wires[-1])]

    assert alike(scenario) == [IN] * (LIMIT - 1) + [WAITS, IN]


def test_the_brokers_listener_has_a_limit_of_its_own_and_others_make_room_for_it(alike: Alike) -> None:
    """The limit of all is also what each listener may have by itself, as long as it is not told otherwise."""

    def scenario(limited: Limited) -> Any:
        assert limited.set("max.connections", str(LIMIT)) == 0
        outside = [limited.connect() for _ in range(LIMIT - 1)]
        inside = [limited.connect(inside=True) for _ in range(LIMIT - 1)]
        inside.append(limited.connect(inside=True, waits=True))
        time.sleep(moment(SETTLE_S))
        gone = [limited.is_gone(number) for number in (0, 1, LIMIT - 2, LIMIT - 1)]
        assert limited.set("listener.name.inside.max.connections", "100") == 0
        inside.append(limited.answer(limited.wires[-1]))
        for name in ("max.connections", "listener.name.inside.max.connections"):
            assert limited.set(name, None) == 0
        return outside, inside, gone

    assert alike(scenario) == ([IN] * (LIMIT - 1), [IN] * (LIMIT - 1) + [WAITS, IN], [True, True, True, False])


@pytest.mark.parametrize(
    "limits",
    [
        {"max.connections.per.ip": "20"},
        {"max.connections.per.ip.overrides": "localhost:20", "max.connections.per.ip": "15"},
    ],
    ids=["per ip", "override"],
)
def test_an_address_with_too_many_connections_is_closed_at_once(alike: Alike, limits: dict[str, str]) -> None:
    def scenario(limited: Limited) -> Any:
        for name, value in limits.items():
            assert limited.set(name, value) == 0
        seen = [limited.connect() for _ in range(LIMIT)]
        limited.disconnect(0)
        time.sleep(moment(SETTLE_S))
        seen += [limited.connect(), limited.connect()]
        for name in limits:
            assert limited.set(name, None) == 0
        return seen

    assert alike(scenario) == [IN] * (LIMIT - 1) + [OUT, IN, OUT]


@pytest.mark.parametrize("ip", [HOST, None], ids=["address", "default"])
def test_an_address_that_comes_too_often_is_not_served_and_closed_later(alike: Alike, ip: str | None) -> None:
    """What came under a limit that is gone counts for the next one: both begin with an address that did not come."""

    def scenario(limited: Limited) -> Any:
        time.sleep(WINDOWS_S)
        limited.limit_ip(1, ip)
        seen = [limited.connect() for _ in range(10)]
        wire = socket.create_connection((HOST, limited.node.port))
        wire.settimeout(patience(20))
        wire.sendall(b"\0\0\0\1x")
        try:
            seen.append(OUT if wire.recv(1) == b"" else IN)
        except ConnectionResetError:  # what it sent was never read
            seen.append(OUT)
        wire.close()
        limited.limit_ip(None, ip)
        return [*seen, limited.connect()]

    assert alike(scenario) == [IN] * 10 + [OUT, IN]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max.connections", "0"),
        ("max.connection.creation.rate", "0"),
        ("listener.name.plaintext.max.connections", "0"),
        ("listener.name.plaintext.max.connection.creation.rate", "0"),
        ("max.connections.per.ip", "0"),
    ],
)
def test_limits_of_nothing_are_accepted_or_refused_alike(alike: Alike, name: str, value: str) -> None:
    def scenario(limited: Limited) -> Any:
        return limited.set(name, value, validate_only=True)

    alike(scenario)
