"""Three nodes on which everything is open become three on which nothing is, one restart after the other, under load.

The order is the one that Kafka's documentation has for a running cluster: secured listeners beside the old ones; then
the clients, and what nodes say to each other; then the old listeners go. Between any two restarts the cluster is
of two kinds, and no record may be lost, doubled or out of order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from moldau.client import Admin
from moldau.client.admin.users import ScramMechanism, ScramUpsertion
from tests.certificates import Authority
from tests.cluster.checker import check_every_replica
from tests.cluster.cluster_nodes import QUICK, Cluster, ClusterNode, is_open
from tests.cluster.conftest import PARTITIONS, TOPIC, create_topic
from tests.cluster.load import Load, Reader
from tests.cluster.proxy import HOST
from tests.interop.nodes import free_ports

Settings = dict[str, str]
PASSWORDS = {"node": "node-secret-1", "app": "app-secret-1"}
PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
OWN = f'username="node" password="{PASSWORDS["node"]}"'
BOTH = f'{OWN} user_node="{PASSWORDS["node"]}"'


class SecuredPorts:
    """Where one node listens for those who prove who they are; the last two are the doors that other nodes use."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.clients, self.internal, self.controller = free_ports(3)
        self.internal_door = cluster.network.door(node_id, self.internal)
        self.controller_door = cluster.network.door(node_id, self.controller)


class Change:
    """The three settings files of each node, and the way from one to the next."""

    def __init__(self, cluster: Cluster, authority: Authority) -> None:
        self.cluster = cluster
        self.authority = authority
        self.ports = {node_id: SecuredPorts(cluster, node_id) for node_id in cluster.ids}
        self.before = {node_id: read_settings(node) for node_id, node in cluster.nodes.items()}

    def beside(self, node_id: int) -> Settings:
        """Every listener has a secured one beside it, which nobody has to use yet."""
        old, ports = self.before[node_id], self.ports[node_id]
        names = ("CLIENTS", "INTERNAL", "CONTROLLER")
        protocols = [f"{name}:PLAINTEXT" for name in names] + [f"SECURED_{name}:SASL_SSL" for name in names]
        listeners, advertised = self._secured_listeners(ports)
        own = self.authority.sign(f"node-{node_id}")
        return {
            **old,
            "listeners": f"{old['listeners']},{listeners}",
            "advertised.listeners": f"{old['advertised.listeners']},{advertised}",
            "listener.security.protocol.map": ",".join(protocols),
            "controller.listener.names": "CONTROLLER,SECURED_CONTROLLER",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(own.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "sasl.mechanism.controller.protocol": "PLAIN",
            "listener.name.secured_controller.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.secured_controller.plain.sasl.jaas.config": f"{PLAIN} {BOTH};",
            "listener.name.secured_internal.scram-sha-512.sasl.jaas.config": f"{SCRAM} {OWN};",
            "listener.name.secured_clients.scram-sha-512.sasl.jaas.config": f"{SCRAM};",
        }

    @staticmethod
    def _secured_listeners(ports: SecuredPorts) -> tuple[str, str]:
        bound = {"CLIENTS": ports.clients, "INTERNAL": ports.internal, "CONTROLLER": ports.controller}
        shown = {**bound, "INTERNAL": ports.internal_door, "CONTROLLER": ports.controller_door}
        listeners, advertised = (
            ",".join(f"SECURED_{name}://{HOST}:{port}" for name, port in of.items()) for of in (bound, shown)
        )
        return listeners, advertised

    def between(self, node_id: int) -> Settings:
        """Nodes talk to each other over the secured listeners; the old ones are there for those that do not yet."""
        voters = ",".join(f"{number}@{HOST}:{ports.controller_door}" for number, ports in self.ports.items())
        return {
            **self.beside(node_id),
            "controller.quorum.voters": voters,
            "controller.listener.names": "SECURED_CONTROLLER,CONTROLLER",
            "inter.broker.listener.name": "SECURED_INTERNAL",
        }

    def alone(self, node_id: int) -> Settings:
        """The old listeners are gone, and rights are asked for."""
        listeners, advertised = self._secured_listeners(self.ports[node_id])
        return {
            **self.between(node_id),
            "listeners": listeners,
            "advertised.listeners": advertised,
            "controller.listener.names": "SECURED_CONTROLLER",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:node;User:app",
        }

    def roll(self, settings: Callable[[int], Settings]) -> None:
        """Each node in turn stops cleanly and comes back with new settings."""
        for node_id in self.cluster.ids:
            node = self.cluster.nodes[node_id]
            assert self.cluster.stop(node_id) == 0, node.output()[-3000:]
            lines = [f"{key}={value}\n" for key, value in settings(node_id).items()]
            node.properties.write_text("".join(lines))
            self.cluster.start(node_id)
            self.cluster.await_full_isr(TOPIC)

    def move_admin(self) -> None:
        """The test's own administration uses the secured listeners from now on."""
        self.cluster.security = self.client_settings()
        for node_id, node in self.cluster.nodes.items():
            node.port = self.ports[node_id].clients
        self.cluster.forget_admin()

    def client_settings(self) -> dict[str, object]:
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "app",
            "sasl.password": PASSWORDS["app"],
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
        }


def read_settings(node: ClusterNode) -> Settings:
    return dict(line.split("=", 1) for line in node.properties.read_text().splitlines())


def add_users(admin: Admin) -> None:
    mechanism = ScramMechanism.SCRAM_SHA_512
    users = [ScramUpsertion(name, password, mechanism) for name, password in PASSWORDS.items()]
    for outcome in admin.alter_user_scram_credentials(users).values():
        outcome.get()


def test_from_plaintext_to_sasl_ssl_without_a_loss(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, QUICK) as cluster:
        cluster.start()
        create_topic(cluster)
        add_users(cluster.admin)
        open_ports = [port for n in cluster.nodes.values() for port in (n.port, n.internal_port, n.controller_port)]
        load, reader = Load(cluster.bootstrap, TOPIC, PARTITIONS), Reader(cluster.bootstrap, TOPIC, PARTITIONS)
        load.start()
        reader.start()
        change = Change(cluster, Authority(tmp_path / "authority"))

        change.roll(change.beside)
        change.move_admin()
        load.move(cluster.bootstrap, cluster.security)
        change.roll(change.between)
        reader.move(cluster.bootstrap, cluster.security)
        change.roll(change.alone)

        load.finish()
        reader.finish()
        check_every_replica(cluster, load, reader)
        assert not [port for port in open_ports if is_open(port)], "nothing of what was open is left"
        outputs = {node_id: node.output() for node_id, node in cluster.nodes.items()}
        told = [line for output in outputs.values() for line in output.splitlines() if "ailed authentication" in line]
        assert not told, told[:5]
        assert not [node_id for node_id, output in outputs.items() if "Traceback" in output]
        print(
            f"\n{load.acknowledged} records while nine restarts closed everything: {load.longest_wait():.3f} s at most"
        )
