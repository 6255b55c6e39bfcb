"""Three nodes that speak TLS on every listener and know each other by certificates: they outlive kills and renewals."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
import time
from pathlib import Path

from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from tests.certificates import Authority
from tests.cluster.checker import check_load, read_all
from tests.cluster.cluster_nodes import QUICK, Cluster, wait_for
from tests.cluster.conftest import PARTITIONS, TOPIC, create_topic
from tests.cluster.load import Load
from tests.cluster.proxy import HOST
from tests.interop.wire import Wire
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


class TlsWire(Wire):
    """A connection to one listener that stays."""

    def __init__(self, authority: Authority, own: Path, port: int) -> None:
        super().__init__(HOST, port)
        context = ssl.create_default_context(cafile=str(authority.certificate))
        context.load_cert_chain(own)
        self.socket = context.wrap_socket(self.socket, server_hostname=HOST)


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
        ports = [port for n in cluster.nodes.values() for port in (n.port, n.internal_port, n.controller_port)]
        old_connections = [TlsWire(authority, own, port) for port in ports]
        before = serial_of(authority, own, ports[0])
        delays = []
        for round_number in range(3):
            fresh = tmp_path / "fresh.pem"
            shutil.copy(authority.sign(f"node-{round_number}", "/CN=node").pem, fresh)
            os.replace(fresh, own)
            began = time.monotonic()
            for port in ports:
                wait_for(
                    lambda port=port, old=before: serial_of(authority, own, port) != old,  # type: ignore[misc]
                    1,
                    "new connections see the new certificate",
                    cluster.outputs,
                    0.05,
                )
            delays.append(time.monotonic() - began)
            before = serial_of(authority, own, ports[0])
            for wire in old_connections:
                assert wire.ask(ApiVersionsRequest(), 0).error_code == 0, "those that are there live on"
        for wire in old_connections:
            wire.socket.close()
        load.finish()
        found = read_all(cluster.bootstrap, TOPIC, PARTITIONS, cluster.security)
        check_load(load, None, found, "the secured cluster")
        assert cluster.in_sync(TOPIC) == {number: {1, 2, 3} for number in range(PARTITIONS)}
        outputs = [node.output() for node in cluster.nodes.values()]
        assert all("stay as they were" not in output and "ailed authentication" not in output for output in outputs)
        seen = ", ".join(f"{delay:.2f} s" for delay in delays)
        print(f"\nnew certificates at {len(ports)} listeners after {seen}; {load.acknowledged} records meanwhile")
