"""Three nodes that speak TLS on every listener and know each other by certificates: they outlive kills and renewals."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import time
from pathlib import Path

from tests.certificates import Authority
from tests.cluster.checker import check_load, read_all
from tests.cluster.cluster_nodes import QUICK, Cluster, wait_for
from tests.cluster.conftest import PARTITIONS, TOPIC, create_topic
from tests.cluster.load import Load
from tests.cluster.proxy import HOST
from tests.pace import patience


def secured_cluster(folder: Path, authority: Authority, own: Path) -> Cluster:
    protocols = ",".join(f"{name}:SSL" for name in ("CLIENTS", "INTERNAL", "CONTROLLER"))
    stores = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
    }
    settings = {**QUICK, **stores, "listener.security.protocol.map": protocols, "ssl.client.auth": "required"}
    security: dict[str, object] = {"security.protocol": "SSL", **stores}
    return Cluster(folder / "nodes", 3, settings, security=security)


def serial_of(authority: Authority, own: Path, port: int) -> str:
    context = ssl.create_default_context(cafile=str(authority.certificate))
    context.load_cert_chain(own)
    plain = socket.create_connection((HOST, port), patience(10))
    with context.wrap_socket(plain, server_hostname=HOST) as secured:
        certificate = secured.getpeercert()
    assert certificate is not None
    return str(certificate["serialNumber"])


def test_a_secured_cluster_outlives_the_kill_of_a_node(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "authority")
    own = authority.sign("node").pem
    with secured_cluster(tmp_path, authority, own) as cluster:
        cluster.start()
        create_topic(cluster)
        load = Load(cluster.bootstrap, TOPIC, PARTITIONS, security=cluster.security)
        load.start()
        time.sleep(1.5)
        victim = cluster.active_controller()
        cluster.kill(victim)
        wait_for(lambda: victim not in cluster.leaders(TOPIC).values(), 40, "others lead", cluster.outputs, 0.1)
        time.sleep(1)
        cluster.start(victim)
        cluster.await_full_isr(TOPIC, 60)
        load.finish()
        found = read_all(cluster.bootstrap, TOPIC, PARTITIONS, cluster.security)
        check_load(load, None, found, "the secured cluster")
        assert load.acknowledged > 0


def test_certificates_are_renewed_under_load_without_a_failure(tmp_path: Path) -> None:
    """Each node and each new connection has the new one a second later; nobody is disconnected."""
    authority = Authority(tmp_path / "authority")
    own = tmp_path / "own.pem"
    shutil.copy(authority.sign("node").pem, own)
    with secured_cluster(tmp_path, authority, own) as cluster:
        cluster.start()
        create_topic(cluster)
        load = Load(cluster.bootstrap, TOPIC, PARTITIONS, security=cluster.security)
        load.start()
        before = serial_of(authority, own, cluster.nodes[1].port)
        for round_number in range(3):
            fresh = tmp_path / "fresh.pem"
            shutil.copy(authority.sign(f"node-{round_number}", "/CN=node").pem, fresh)
            os.replace(fresh, own)
            for node in cluster.nodes.values():
                ports = (node.port, node.internal_port, node.controller_port)
                wait_for(
                    lambda ports=ports, old=before: all(serial_of(authority, own, port) != old for port in ports),  # type: ignore[misc]
                    patience(3),
                    "new connections see the new certificate",
                    cluster.outputs,
                    0.1,
                )
            before = serial_of(authority, own, cluster.nodes[1].port)
        time.sleep(0.5)
        load.finish()
        found = read_all(cluster.bootstrap, TOPIC, PARTITIONS, cluster.security)
        check_load(load, None, found, "the secured cluster")
        assert cluster.in_sync(TOPIC) == {number: {1, 2, 3} for number in range(PARTITIONS)}
        assert all("stay as they were" not in node.output() for node in cluster.nodes.values())
