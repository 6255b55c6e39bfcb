"""One cluster of both kinds whose nodes talk over mutual TLS: brokers and controllers of each trust the other's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.interop.conftest import require_kafka, stop_cleanly
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import HOST, MoldauNode, Node, free_ports
from tests.interop.test_mixed_cluster import RECORDS, Pair, create, produce, read

pytestmark = pytest.mark.interop


def settings(node: Node, authority: Authority, number: int, controller_port: int) -> dict[str, str]:
    own = authority.sign(f"node-{number}")
    between = f"INTERNAL://{HOST}:{free_ports(1)[0]}"
    plain = f"PLAINTEXT://{HOST}:{node.port}"
    controllers = f",CONTROLLER://{HOST}:{controller_port}" if number == 1 else ""
    return {
        "process.roles": "broker,controller" if number == 1 else "broker",
        "node.id": str(number),
        "controller.quorum.voters": f"1@{HOST}:{controller_port}",
        "listeners": f"{plain},{between}{controllers}",
        "advertised.listeners": f"{plain},{between}",
        "inter.broker.listener.name": "INTERNAL",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INTERNAL:SSL,CONTROLLER:SSL",
        "ssl.client.auth": "required",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }


@pytest.fixture(params=["moldau under kafka", "kafka under moldau"])
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Pair]:
    require_kafka()
    authority = Authority(tmp_path / "authority")
    kinds: tuple[type[Node], type[Node]] = (KafkaNode, MoldauNode)
    if request.param == "kafka under moldau":
        kinds = (MoldauNode, KafkaNode)
    first, second = kinds[0](tmp_path / "first"), kinds[1](tmp_path / "second")
    second.cluster_id = first.cluster_id
    for number, node in enumerate((first, second), 1):
        node.write_properties(settings(node, authority, number, first.controller_port))
    for node in (first, second):
        node.format()
        node.start()
    yield Pair(first, second)
    stop_cleanly(second)
    stop_cleanly(first)


def test_nodes_of_both_kinds_follow_each_other_over_tls(pair: Pair) -> None:
    create(pair, "secured")
    produce(pair, 0)
    for index in (0, 1):
        assert read(pair, index, RECORDS) == list(range(RECORDS))
