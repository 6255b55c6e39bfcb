"""A cluster of three whose listeners all ask for logins: nodes log in at each other, and again when sessions end."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer
from moldau.client.admin.users import ScramMechanism, ScramUpsertion
from moldau.security.sasl_settings import UNSECURED_VALIDATOR as UNSECURED
from tests.cluster.cluster_nodes import Cluster, ClusterNode, is_open
from tests.interop.login_scripts import Talk
from tests.interop.nodes import HOST
from tests.interop.secured import User
from tests.interop.wire import CLOSED, Wire
from tests.pace import wait_until

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
NODE_PASSWORD = "node-secret-1"
SESSION_MS = 2500
RECORDS = 400


class ScramNode(ClusterNode):
    """Formatted with the user that the nodes log in as: without it nobody could begin."""

    def format(self, cluster_id: str) -> None:
        users = [f"{name}=[name=node,password={NODE_PASSWORD}]" for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
        added = [word for user in users for word in ("--add-scram", user)]
        command = self.command("storage", "format", "-t", cluster_id, "-c", str(self.properties), *added)
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment())
        assert done.returncode == 0, f"formatting failed:\n{done.stdout}{done.stderr}"
        assert NODE_PASSWORD not in done.stdout + done.stderr


def settings(mechanism: str) -> dict[str, str]:
    own = f'username="node" password="{NODE_PASSWORD}"'
    entry = {
        "PLAIN": f'{PLAIN} {own} user_node="{NODE_PASSWORD}";',
        "OAUTHBEARER": f'{BEARER} unsecuredLoginStringClaim_sub="node";',
    }.get(mechanism, f"{SCRAM} {own};")
    protocols = "CLIENTS:SASL_PLAINTEXT,INTERNAL:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    chosen = {
        "listener.security.protocol.map": protocols,
        "sasl.enabled.mechanisms": mechanism,
        "listener.name.clients.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.clients.plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret";',
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.mechanism.controller.protocol": mechanism,
    }
    for listener in ("internal", "controller"):
        chosen[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = entry
        chosen[f"listener.name.{listener}.connections.max.reauth.ms"] = str(SESSION_MS)
        if mechanism == "OAUTHBEARER":
            chosen[f"listener.name.{listener}.oauthbearer.sasl.server.callback.handler.class"] = UNSECURED
    return chosen


CLIENT: dict[str, Any] = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.username": "alice",
    "sasl.password": "alice-secret",
}


@pytest.fixture(params=["PLAIN", "SCRAM-SHA-512", "OAUTHBEARER"])
def cluster(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with Cluster(tmp_path, 3, settings(request.param), ScramNode) as made:
        made.start()
        yield made


def test_three_nodes_that_know_each_other(cluster: Cluster) -> None:
    """Replication, elections and forwarded requests go through logins, over the end of several sessions; a node that
    dies and comes back finds its way in again."""
    with Admin(cluster.bootstrap, config=CLIENT) as admin:
        admin.create_topics([NewTopic("orders", 3, 3)])["orders"].get()
    begin = time.monotonic()
    with Producer(cluster.bootstrap, config={**CLIENT, "acks": "all"}) as producer:
        for number in range(RECORDS):
            producer.send("orders", str(number))
            time.sleep(0.005)
            if number == RECORDS // 3:
                cluster.kill(3)
            if number == RECORDS * 2 // 3:
                cluster.start(3)
        producer.flush()
    while time.monotonic() - begin < 2.5 * SESSION_MS / 1000:
        time.sleep(0.1)
    with Admin(cluster.bootstrap, config=CLIENT) as admin:
        admin.create_topics([NewTopic("after", 1, 3)])["after"].get()
    found = set()
    with Consumer(cluster.bootstrap, config={**CLIENT, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["orders"])
        deadline = time.monotonic() + 60
        while len(found) < RECORDS and time.monotonic() < deadline:
            found |= {int(record.value) for record in consumer.poll(500)}
    assert found == set(range(RECORDS)), cluster.outputs()
    for node in cluster.nodes.values():
        output = node.output()
        assert NODE_PASSWORD not in output and "alice-secret" not in output
        assert "failed authentication" not in output, output[-3000:]


def test_nobody_else_gets_in(cluster: Cluster) -> None:
    from moldau.protocol.messages.describe_quorum_request import DescribeQuorumRequest
    from moldau.protocol.messages.metadata_request import MetadataRequest

    node = cluster.nodes[1]
    for port, request, version in (
        (node.controller_port, DescribeQuorumRequest(), 1),
        (node.internal_port, MetadataRequest(), 9),
        (node.port, MetadataRequest(), 9),
    ):
        with Wire(HOST, port) as wire:
            assert wire.ask(request, version) == CLOSED


NEW_PASSWORD = "node-secret-2"


def log_in(port: int, password: str) -> bool:
    """Whether a controller lets `node` in."""
    talk = Talk(HOST, port)
    with talk:
        *_, last = talk.scram("SCRAM-SHA-512", user=User("node", password))
    return bool(last != CLOSED and last[0] == 0)


def test_a_password_that_was_replaced_does_not_come_back_with_a_restart(tmp_path: Path) -> None:
    """The one that the storage was formatted with counts no more, not even on a controller that has heard of nobody
    yet; the new one is enough for all nodes to find each other again. Sessions last here: nodes still have the old
    password when it is replaced, and who had to renew its session then would never hear of the new one."""
    lasting = {name: value for name, value in settings("SCRAM-SHA-512").items() if not name.endswith("reauth.ms")}
    with Cluster(tmp_path, 3, lasting, ScramNode) as cluster:
        cluster.start()
        new = ScramUpsertion("node", NEW_PASSWORD, mechanism=ScramMechanism.SCRAM_SHA_512)
        with Admin(cluster.bootstrap, config=CLIENT) as admin:
            admin.alter_user_scram_credentials([new])["node"].get()
        ports = [node.controller_port for node in cluster.nodes.values()]
        wait_until(lambda: all(log_in(port, NEW_PASSWORD) for port in ports), 30)
        for node in cluster.nodes.values():
            cluster.kill(node.node_id)
            text = node.properties.read_text()
            node.properties.write_text(text.replace(NODE_PASSWORD, NEW_PASSWORD))
        cluster.begin_start(1)
        wait_until(lambda: is_open(ports[0]), 60)
        assert not log_in(ports[0], NODE_PASSWORD) and log_in(ports[0], NEW_PASSWORD)
        for node_id in (2, 3):
            cluster.begin_start(node_id)
        for node_id in cluster.ids:
            cluster.await_ready(node_id)
        assert not any(log_in(port, NODE_PASSWORD) for port in ports)
