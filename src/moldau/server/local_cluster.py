"""Plans a cluster of several nodes on this machine: who is broker and controller; ports, directories, settings.

The plan is kept beside the data (`cluster.json`): later starts keep ids, roles and ports. The controllers never change
afterwards: voters that have nothing could outvote the one that has everything.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from moldau.config.broker_config import BrokerConfig
from moldau.config.definitions import ConfigError
from moldau.config.listeners import is_loopback
from moldau.config.unserved import check_served
from moldau.server.config_file import FOR_ONE_MACHINE, WRITTEN_BY_UP, environment_values, parse_overrides
from moldau.server.directory_check import CLUSTER_PLAN_FILE as PLAN_FILE
from moldau.server.secured_cluster import CLIENTS, INTERNAL, node_settings
from moldau.server.signing import write_private

LOCK_FILE = ".up.lock"
LOOPBACK = "127.0.0.1"
CONTROLLER_PORTS_AHEAD = 10000
INTERNAL_PORTS_AHEAD = 20000
FIRST_PORT_MAX = 60000
FIRST_CONTROLLER_ID = 101
REPLICATION_FACTOR_MAX = 3
COMBINED_CONTROLLERS_MAX = 3


@dataclass(slots=True)
class PlannedNode:
    node_id: int
    is_broker: bool
    is_controller: bool
    port: int
    """For clients and, in a cluster that is not secured, other brokers; 0 for a node that is only a controller."""
    controller_port: int
    internal_port: int = 0
    """For other brokers of a secured cluster."""

    @property
    def name(self) -> str:
        return f"node-{self.node_id}" if self.is_broker else f"controller-{self.node_id}"

    @property
    def roles(self) -> str:
        return ",".join(role for role, has in (("broker", self.is_broker), ("controller", self.is_controller)) if has)


@dataclass(slots=True)
class LocalCluster:
    """See the module."""

    directory: Path
    cluster_id: str
    host: str
    nodes: list[PlannedNode]
    is_secured: bool = False

    def brokers(self) -> list[PlannedNode]:
        return [node for node in self.nodes if node.is_broker]

    def controllers(self) -> list[PlannedNode]:
        return [node for node in self.nodes if node.is_controller]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"{self.host}:{node.port}" for node in self.brokers())

    def properties_file(self, node: PlannedNode) -> Path:
        return self.directory / node.name / "server.properties"

    def data_directory(self, node: PlannedNode) -> Path:
        return self.directory / node.name / "data"

    def values(self, node: PlannedNode) -> dict[str, str]:
        """The settings of a node; what the user overrides comes on top."""
        factor = min(REPLICATION_FACTOR_MAX, len(self.brokers()))
        in_sync = str(max(1, factor - 1))
        values = {
            "process.roles": node.roles,
            "node.id": str(node.node_id),
            "controller.quorum.voters": ",".join(
                f"{voter.node_id}@{LOOPBACK}:{voter.controller_port}" for voter in self.controllers()
            ),
            "listeners": ",".join(self._listeners(node)),
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_directory(node)),
            "default.replication.factor": str(factor),
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": str(factor),
            "transaction.state.log.replication.factor": str(factor),
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": str(factor),
            "share.coordinator.state.topic.min.isr": in_sync,
            **FOR_ONE_MACHINE,
        }
        if node.is_broker:
            values["advertised.listeners"] = self._advertised(node)
            values["inter.broker.listener.name"] = "PLAINTEXT"
            values["broker.rack"] = socket.gethostname()
        if self.is_secured:
            values.update(node_settings(self.directory, node.is_broker, node.is_controller, self.host))
        return values

    def _listeners(self, node: PlannedNode) -> list[str]:
        """Nodes are on this machine, whoever their clients are."""
        listeners = []
        if node.is_broker:
            name = CLIENTS if self.is_secured else "PLAINTEXT"
            listeners.append(f"{name}://{LOOPBACK if is_loopback(self.host) else ''}:{node.port}")
            if self.is_secured:
                listeners.append(f"{INTERNAL}://{LOOPBACK}:{node.internal_port}")
        if node.is_controller:
            listeners.append(f"CONTROLLER://{LOOPBACK}:{node.controller_port}")
        return listeners

    def _advertised(self, node: PlannedNode) -> str:
        if not self.is_secured:
            return f"PLAINTEXT://{self.host}:{node.port}"
        return f"{CLIENTS}://{self.host}:{node.port},{INTERNAL}://{LOOPBACK}:{node.internal_port}"


def plan_cluster(
    directory: Path,
    brokers: int | None,
    controllers: int | None,
    host: str,
    port: int,
    new_cluster_id: str,
    is_secured: bool = False,
) -> LocalCluster:
    """The cluster that is in the directory, grown to so many brokers, or a new one. ConfigError when that cannot be.

    `port` is that of the first broker; 0 takes any that are free.
    """
    stored = read_plan(directory, host)
    if stored is None:
        nodes = _first_nodes(3 if brokers is None else brokers, controllers or 0)
        cluster = LocalCluster(directory, new_cluster_id, host, nodes, is_secured)
    else:
        cluster = stored
        _check_same_security(cluster, is_secured)
        _grow(cluster, brokers, controllers)
    _give_ports(cluster, port)
    return cluster


def _first_nodes(brokers: int, controllers: int) -> list[PlannedNode]:
    # An even number of voters survives no more failures than one less does.
    combined = 0 if controllers else 1 if brokers < COMBINED_CONTROLLERS_MAX else COMBINED_CONTROLLERS_MAX
    nodes = [PlannedNode(number, True, number <= combined, 0, 0) for number in range(1, brokers + 1)]
    first = FIRST_CONTROLLER_ID
    return nodes + [PlannedNode(number, False, True, 0, 0) for number in range(first, first + controllers)]


def _check_same_security(cluster: LocalCluster, is_secured: bool) -> None:
    """Users, rights and listeners of a cluster with data are not changed by a flag that somebody forgot."""
    if cluster.is_secured and not is_secured:
        raise ConfigError(
            f"the cluster in {cluster.directory} is secured: start it with --secure, or start another cluster in "
            "another --data-dir"
        )
    if is_secured and not cluster.is_secured:
        raise ConfigError(
            f"the cluster in {cluster.directory} was made without --secure and stays so: leave --secure out, or start "
            "a secured cluster in another --data-dir"
        )


def _grow(cluster: LocalCluster, brokers: int | None, controllers: int | None) -> None:
    known = cluster.brokers()
    separate = [node for node in cluster.nodes if not node.is_broker]
    if controllers is not None and controllers != len(separate):
        raise ConfigError(
            f"the cluster in {cluster.directory} has {len(separate)} separate controllers and keeps them: leave "
            "--controllers out, or start a new cluster in another --data-dir"
        )
    if brokers is not None and brokers < len(known):
        raise ConfigError(
            f"the cluster in {cluster.directory} has {len(known)} brokers with data: ask for at least as many, or "
            "start a new cluster in another --data-dir"
        )
    highest = max(node.node_id for node in known)
    if separate and brokers is not None and highest + brokers - len(known) >= FIRST_CONTROLLER_ID:
        raise ConfigError(f"a cluster with separate controllers has at most {FIRST_CONTROLLER_ID - 1} brokers")
    for number in range(highest + 1, highest + 1 + (brokers or 0) - len(known)):
        cluster.nodes.insert(len(cluster.brokers()), PlannedNode(number, True, False, 0, 0))


def _give_ports(cluster: LocalCluster, port: int) -> None:
    """New nodes get the next ports; those of a plan that is there already stay."""
    wanted = [node for node in cluster.nodes if node.is_broker and node.port == 0]
    wanted_by_controllers = [node for node in cluster.nodes if node.is_controller and node.controller_port == 0]
    wanted_inside = [node for node in cluster.brokers() if cluster.is_secured and node.internal_port == 0]
    if port == 0:
        ports = free_ports(len(wanted) + len(wanted_by_controllers) + len(wanted_inside))
        for node in wanted:
            node.port = ports.pop()
        for node in wanted_by_controllers:
            node.controller_port = ports.pop()
        for node in wanted_inside:
            node.internal_port = ports.pop()
        return
    taken = {number for node in cluster.nodes for number in (node.port, node.controller_port, node.internal_port)}
    for node in wanted:
        node.port = _next_port(port, taken)
    for node in wanted_by_controllers:
        node.controller_port = _next_port(min(port + CONTROLLER_PORTS_AHEAD, FIRST_PORT_MAX), taken)
    for node in wanted_inside:
        node.internal_port = _next_port(min(port + INTERNAL_PORTS_AHEAD, FIRST_PORT_MAX), taken)


def _next_port(first: int, taken: set[int]) -> int:
    port = first
    while port in taken:
        port += 1
    if port > 65535:
        raise ConfigError(f"there are not enough ports from {first} on")
    taken.add(port)
    return port


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on at this moment."""
    held = []
    try:
        for _ in range(count):
            sock = socket.socket()
            held.append(sock)
            sock.bind((LOOPBACK, 0))
        return [sock.getsockname()[1] for sock in held]
    finally:
        for sock in held:
            sock.close()


def read_plan(directory: Path, host: str) -> LocalCluster | None:
    path = directory / PLAN_FILE
    try:
        text = path.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    try:
        plan = json.loads(text)
        nodes = [PlannedNode(**node) for node in plan["nodes"]]
        return LocalCluster(directory, plan["cluster_id"], host, nodes, plan.get("is_secured") is True)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigError(f"{path} is damaged ({error}): repair it, or start anew in another --data-dir") from None


def check_settings(cluster: LocalCluster, overrides: Sequence[str]) -> None:
    """Raises ConfigError when a node would not start with what its file, the environment and the user say."""
    changes = {**environment_values(os.environ), **parse_overrides(overrides)}
    for node in cluster.nodes:
        check_served(BrokerConfig({**cluster.values(node), **changes}, warn=False))


def lock_cluster(directory: Path, is_secured: bool = False) -> None:
    """Takes the directory for this process, until it ends, however it ends. ConfigError when another one has it."""
    make_directory(directory, is_secured)
    descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = os.read(descriptor, 20).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise ConfigError(
            f"the cluster in {directory} runs already, pid {pid or 'unknown'}: stop that one first, or start another "
            "cluster in another --data-dir"
        ) from None
    os.ftruncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode("ascii"))


def make_directory(directory: Path, is_secured: bool) -> None:
    """That of a secured cluster is for its owner alone; one that is there already stays open to whom it was."""
    directory.mkdir(mode=0o700 if is_secured else 0o777, parents=True, exist_ok=True)


def write_files(cluster: LocalCluster, overrides: Sequence[str], first_users: Sequence[str] = ()) -> None:
    """The plan, a properties file for each node, and its directories formatted where they are new.

    `first_users` are those that a new cluster begins with, as `storage format --add-scram` takes them.
    """
    from moldau.server.posix_disk import PosixDisk
    from moldau.server.storage_format import FormatOptions, format_storage

    make_directory(cluster.directory, cluster.is_secured)
    # First, so that a node with data is never without its place in the plan.
    _write_plan(cluster)
    changes = parse_overrides(overrides)
    disk = PosixDisk()
    try:
        for node in cluster.nodes:
            values = {**cluster.values(node), **changes}
            path = cluster.properties_file(node)
            make_directory(path.parent, cluster.is_secured)
            text = f"{WRITTEN_BY_UP}\n" + "".join(f"{key}={value}\n" for key, value in values.items())
            if cluster.is_secured:
                write_private(path, text.encode())
            else:
                path.write_text(text)
            options = FormatOptions(ignore_formatted=True, add_scram=list(first_users))
            format_storage(values, cluster.cluster_id, disk, options)
    finally:
        disk.close()


def _write_plan(cluster: LocalCluster) -> None:
    nodes = [asdict(node) for node in cluster.nodes]
    plan: dict[str, object] = {"cluster_id": cluster.cluster_id, "nodes": nodes}
    if cluster.is_secured:
        plan["is_secured"] = True
    else:
        for node in nodes:
            del node["internal_port"]  # as older versions have it, which can go on with the plan
    path = cluster.directory / PLAN_FILE
    temporary = path.with_suffix(".tmp")
    temporary.write_text(json.dumps(plan, indent=1) + "\n")
    os.replace(temporary, path)
