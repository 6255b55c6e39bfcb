"""Several nodes as real processes on loopback; they reach each other through proxies, clients reach them directly."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from moldau.client import Admin
from tests.cluster.proxy import HOST, ProxyNetwork
from tests.interop.nodes import MoldauNode, free_ports, random_cluster_id
from tests.pace import moment_ms, patience, patience_ms, wait_until

START_S_MAX = 60.0
STOP_S_MAX = patience(60)
READY = b"moldau ready:"

# The timeouts for what only a timeout can find out, shorter than the defaults so that many faults fit into a run. On a
# machine that is slow now they are longer, so that nobody who lives is taken for dead.
QUICK = {
    "broker.session.timeout.ms": str(moment_ms(2000)),
    "broker.heartbeat.interval.ms": "400",
    "replica.lag.time.max.ms": str(moment_ms(1500)),
    "controller.quorum.fetch.timeout.ms": str(moment_ms(1000)),
    "controller.quorum.election.timeout.ms": str(moment_ms(500)),
    "controller.quorum.election.backoff.max.ms": "300",
}


class ClusterNode:
    """One of the nodes; `kill`, `pause` and `go_on` are the faults of a process."""

    def __init__(self, node_id: int, folder: Path, roles: str = "broker,controller") -> None:
        self.node_id = node_id
        self.roles = roles
        self.folder = folder
        self.port, self.internal_port, self.controller_port = free_ports(3)
        self.properties = folder / "server.properties"
        self.log_file = folder / "output.log"
        self.process: subprocess.Popen[bytes] | None = None
        self.paused = False
        self._log_at_start = 0

    def command(self, *words: str) -> list[str]:
        return [*MoldauNode.command(), *words]

    def environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        if "MOLDAU_COMMAND" not in environment:
            environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        return environment

    def format(self, cluster_id: str) -> None:
        done = subprocess.run(
            self.command("storage", "format", "-t", cluster_id, "-c", str(self.properties)),
            capture_output=True,
            text=True,
            env=self.environment(),
        )
        assert done.returncode == 0, f"formatting failed:\n{done.stdout}{done.stderr}"

    def start(self) -> None:
        assert self.process is None
        self._log_at_start = self.log_file.stat().st_size if self.log_file.exists() else 0
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(
                self.command("server", str(self.properties)),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=self.environment(),
            )

    @property
    def is_ready(self) -> bool:
        """It has said so since its last start."""
        assert self.process is not None and self.process.poll() is None, f"it ended:\n{self.output()[-3000:]}"
        with self.log_file.open("rb") as log:
            log.seek(self._log_at_start)
            return READY in log.read()

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def output(self) -> str:
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            self.paused = False

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        self.paused = True

    def go_on(self) -> None:
        if self.paused and self.process is not None:
            self.process.send_signal(signal.SIGCONT)
        self.paused = False

    def stop(self) -> int:
        """A clean stop; returns the exit code."""
        assert self.process is not None
        self.go_on()
        self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"node {self.node_id} did not stop:\n{self.output()[-3000:]}") from None
        self.process = None
        return code

    def memory_mb(self) -> float:
        assert self.process is not None
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
        raise AssertionError("no Pss")


class Cluster:
    """All nodes and the network between them."""

    def __init__(
        self,
        folder: Path,
        size: int = 3,
        overrides: dict[str, str] | None = None,
        node_class: type[ClusterNode] = ClusterNode,
        security: dict[str, object] | None = None,
    ) -> None:
        self.network = ProxyNetwork()
        self.nodes = {number: node_class(number, folder / f"node-{number}") for number in range(1, size + 1)}
        self._admin: Admin | None = None
        self.security = security or {}
        self._write_properties(overrides or {})
        cluster_id = random_cluster_id()
        for node in self.nodes.values():
            node.format(cluster_id)

    def _write_properties(self, overrides: dict[str, str]) -> None:
        controllers = {i: self.network.door(i, node.controller_port) for i, node in self.nodes.items()}
        voters = ",".join(f"{i}@{HOST}:{port}" for i, port in controllers.items())
        factor = str(min(3, len(self.nodes)))
        in_sync = "2" if len(self.nodes) > 2 else "1"
        for i, node in self.nodes.items():
            node.folder.mkdir(parents=True, exist_ok=True)
            internal = self.network.door(i, node.internal_port)
            protocols = ",".join(f"{name}:PLAINTEXT" for name in ("CLIENTS", "INTERNAL", "CONTROLLER"))
            settings = {
                "process.roles": node.roles,
                "node.id": str(i),
                "controller.quorum.voters": voters,
                "listeners": f"CLIENTS://{HOST}:{node.port},INTERNAL://{HOST}:{node.internal_port},"
                f"CONTROLLER://{HOST}:{node.controller_port}",
                "advertised.listeners": f"CLIENTS://{HOST}:{node.port},INTERNAL://{HOST}:{internal},"
                f"CONTROLLER://{HOST}:{controllers[i]}",
                "listener.security.protocol.map": protocols,
                "inter.broker.listener.name": "INTERNAL",
                "controller.listener.names": "CONTROLLER",
                "log.dirs": str(node.folder / "data"),
                "default.replication.factor": factor,
                "min.insync.replicas": in_sync,
                "offsets.topic.replication.factor": factor,
                "transaction.state.log.replication.factor": factor,
                "transaction.state.log.min.isr": in_sync,
                "share.coordinator.state.topic.replication.factor": factor,
                "share.coordinator.state.topic.min.isr": in_sync,
                **overrides,
            }
            node.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))

    # The nodes

    @property
    def ids(self) -> list[int]:
        return list(self.nodes)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{HOST}:{node.port}" for node in self.nodes.values())

    def begin_start(self, node_id: int) -> None:
        self.network.open_doors(node_id)
        self.nodes[node_id].start()

    def start(self, *node_ids: int) -> None:
        """Starts them together and waits until all are ready."""
        for node_id in node_ids or self.ids:
            self.begin_start(node_id)
        for node_id in node_ids or self.ids:
            self.await_ready(node_id)

    def await_ready(self, node_id: int) -> None:
        node = self.nodes[node_id]
        wait_for(lambda: node.is_ready, START_S_MAX, f"node {node_id} is ready", node.output)

    def kill(self, node_id: int) -> None:
        # The ports of a process that dies close before its connections. A door that is shut later may let those in
        # who come back at once, and leave them waiting for an answer.
        self.network.shut_doors(node_id)
        self.nodes[node_id].kill()

    def stop(self, node_id: int) -> int:
        code = self.nodes[node_id].stop()
        self.network.shut_doors(node_id)
        return code

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close()
        for node in self.nodes.values():
            node.kill()
        self.network.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def outputs(self) -> str:
        return "".join(f"--- node {i}\n{node.output()[-2500:]}\n" for i, node in self.nodes.items())

    # What the cluster says about itself

    @property
    def admin(self) -> Admin:
        if self._admin is None:
            self._admin = Admin(
                self.bootstrap,
                config={
                    "request.timeout.ms": moment_ms(3000),
                    "default.api.timeout.ms": patience_ms(15000),
                    **self.security,
                },
            )
        return self._admin

    def forget_admin(self) -> None:
        """The next one is made with the addresses and settings of that time."""
        if self._admin is not None:
            self._admin.close()
            self._admin = None

    def active_controller(self) -> int:
        return self.admin.describe_metadata_quorum().leader_id

    def leaders(self, topic: str) -> dict[int, int]:
        return {p.partition: p.leader for p in self.admin.describe_topics([topic])[topic].get().partitions.values()}

    def in_sync(self, topic: str) -> dict[int, set[int]]:
        described = self.admin.describe_topics([topic])[topic].get()
        return {p.partition: set(p.in_sync_replicas) for p in described.partitions.values()}

    def await_full_isr(self, topic: str, timeout_s: float = 30.0) -> None:
        wanted = set(self.ids)
        seen: dict[int, set[int]] = {}

        def is_full() -> bool:
            nonlocal seen
            seen = self.in_sync(topic)
            return all(replicas == wanted for replicas in seen.values())

        wait_for(is_full, timeout_s, f"every replica of {topic} is in sync", lambda: f"{seen}\n{self.outputs()}", 0.1)


def wait_for(
    condition: Callable[[], bool],
    timeout_s: float,
    what: str,
    explain: Callable[[], str] = str,
    pause_s: float = 0.02,
) -> None:
    """Waits until something is true; AssertionError when it does not come to be."""
    wait_until(condition, timeout_s, lambda: f"not so: {what}\n{explain()[-6000:]}", pause_s)


def is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), patience(1)):
        return True
    return False


def running(nodes: dict[int, ClusterNode]) -> Iterator[int]:
    return (i for i, node in nodes.items() if node.is_running and not node.paused)
