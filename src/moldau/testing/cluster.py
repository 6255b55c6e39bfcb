"""Brokers for tests: one, or a cluster of them, each a process with ports and data of its own, gone at the end."""

from __future__ import annotations

import base64
import functools
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from moldau.testing.errors import NotRunning
from moldau.testing.faults import Fault
from moldau.testing.guard import Guard
from moldau.testing.looking import ClientMethods
from moldau.testing.node import FaultMethods, Node
from moldau.testing.ports import HeldPort
from moldau.testing.process import START_TIMEOUT_MS, NodeProcess
from moldau.testing.waiting import wait_for

if TYPE_CHECKING:
    from moldau.client.admin.configs import ConfigResource
    from moldau.testing.proxy import Door, Proxy

HOST = "127.0.0.1"
MEMORY_DIRECTORY = "/dev/shm"
# Containers often have 64 MB there, which a test may fill.
MEMORY_FREE_MIN = 1 << 30
COMBINED_CONTROLLERS_MAX = 3
REPLICATION_FACTOR_MAX = 3
NO_SPACE = str(1 << 62)

# Small where that is quicker and no test can tell the difference.
QUICK_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "4",
    "log.segment.delete.delay.ms": "1000",
    "moldau.log.scrub.bytes.per.second": "0",
}


def warn_of_typing_errors(config: Mapping[str, str], stack_level: int) -> None:
    """A broker ignores settings that it does not know, as Kafka's do: who mistyped one would look for it for long."""
    if not config:
        return
    from moldau.config.broker_config import find_broker_key
    from moldau.config.broker_keys import BROKER_KEYS

    for name in config:
        near = get_close_matches(name, BROKER_KEYS.by_name, 1, 0.8) if find_broker_key(name) is None else []
        if near:
            warnings.warn(
                f"there is no setting {name}, it has no effect: did you mean {near[0]}?", stacklevel=stack_level
            )


class Cluster(FaultMethods, ClientMethods):
    """A cluster of brokers, which are controllers too; `with` and `async with` start and end it."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: Mapping[str, str] | None = None,
        host: str = HOST,
        data_dir: str | os.PathLike[str] | None = None,
        log_level: str = "WARNING",
        start_timeout_ms: int = START_TIMEOUT_MS,
    ) -> None:
        """config: broker settings in Kafka's names. host: an address of this machine that clients are told.
        data_dir: keeps the data there, also afterwards; otherwise it is in memory where there is room, and removed.
        """
        super().__init__()
        if brokers < 1:
            raise ValueError("a cluster has at least one broker")
        self.nodes: list[Node] = []
        self.host = host
        self._brokers = brokers
        self._config = {str(key): str(value) for key, value in (config or {}).items()}
        warn_of_typing_errors(self._config, 3 if type(self) is Cluster else 4)  # where the test made it
        self._data_dir = None if data_dir is None else Path(data_dir)
        self._log_level = log_level
        self._start_timeout_ms = start_timeout_ms
        self._directory: Path | None = None
        self._leftovers: list[Path] = []
        self._proxy: Proxy | None = None
        self._guard: Guard | None = None
        self._held: list[HeldPort] = []
        self._direct: dict[int, str] = {}
        self._lasting: list[Fault] = []

    # Beginning and end

    def start(self) -> Self:
        """Starts all brokers and waits until they are ready. BrokerNotStarted has their last lines when one is not."""
        if self.nodes:
            return self
        try:
            self._build()
            for node in self.nodes:
                node.begin_start()
            self._open_doors()
            for node in self.nodes:
                node.finish_start(self._start_timeout_ms)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Ends everything; data that nobody asked to keep is removed."""
        self._close_clients()
        for node in self.nodes:
            if self._data_dir is not None and not node.is_paused:
                node.stop()
            else:
                node.kill()
        self.nodes = []
        self._lasting = []
        if self._proxy is not None:
            self._proxy.close()
            self._proxy = None
        for held in self._held:
            held.close()
        self._held = []
        for leftover in self._leftovers:
            shutil.rmtree(leftover, ignore_errors=True) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        self._leftovers = []
        self._directory = None
        if self._guard is not None:
            self._guard.close()
            self._guard = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        import asyncio

        return await asyncio.to_thread(self.start)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        import asyncio

        await asyncio.to_thread(self.close)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __getitem__(self, index: int) -> Node:
        return self.nodes[index]

    def __len__(self) -> int:
        return len(self.nodes)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.bootstrap_servers if self.nodes else 'not started'}>"

    # What clients need

    @property
    def bootstrap_servers(self) -> str:
        """The address for any client of any language: host:port, with commas between several."""
        self._check_started()
        return ",".join(f"{self.host}:{node.port}" for node in self.nodes)

    @property
    def data_dir(self) -> Path:
        """Where the brokers keep their data and their logs, a directory for each."""
        self._check_started()
        found = self._data_dir or self._directory
        assert found is not None
        return found

    def leader(self, topic: str, partition: int = 0) -> Node:
        """The broker that leads a partition at the moment."""
        rows = self._with_admin(lambda admin: admin.partitions_of(str(topic)))
        leader_id = next(row.leader for row in rows if row.partition == partition)
        for node in self.nodes:
            if node.node_id == leader_id:
                return node
        raise NotRunning(f"{topic}-{partition} has no leader at the moment")

    # Faults of the whole cluster

    def fill_disk(self) -> Fault:
        """Brokers behave as on a full disk: what is written is refused with KAFKA_STORAGE_ERROR, until the fault ends.

        It is the broker's own check of free space, told that it needs more than there is.
        """
        self._set_free_bytes_min(NO_SPACE)
        return self._lasting_fault("the disk is full", lambda: self._set_free_bytes_min(None))

    def fill_transaction_log(self) -> Fault:
        """Nothing can be written to the log of transactions, until the fault ends: they neither begin nor commit.

        Clients are told what a broker tells whose transaction log lies on a full disk: NOT_COORDINATOR, and for
        records of a transaction NOT_ENOUGH_REPLICAS. Producers without transactions go on.
        """
        from moldau.testing.transaction_faults import full_transaction_log

        proxy, doors = self._faulty()
        faults = [proxy.add(fault, doors) for fault in full_transaction_log()]

        def undo() -> None:
            for fault in faults:
                fault.end()

        return self._lasting_fault("the transaction log is full", undo)

    def heal(self) -> None:
        """Ends all faults: paused brokers go on, those that are gone are started again."""
        for node in self.nodes:
            if node.is_paused:
                node.resume()
            node.start(self._start_timeout_ms)
        if self._proxy is not None:
            self._proxy.heal()
        for fault in list(self._lasting):
            fault.end()

    @property
    def is_healthy(self) -> bool:
        """Whether every broker runs and no fault is in force."""
        proxy_is_healthy = self._proxy is not None and not self._proxy.has_faults
        return proxy_is_healthy and not self._lasting and all(n.is_running and not n.is_paused for n in self.nodes)

    # Inside

    def _build(self) -> None:
        base = self._data_dir
        if base is None:
            base = self._directory = Path(tempfile.mkdtemp(prefix="moldau-test-", dir=_temporary_place()))
        for number in range(1, self._brokers + 1):
            (base / f"broker-{number}").mkdir(parents=True, exist_ok=True)
        if self._directory is not None:  # one that somebody gave us is not ours to remove
            self._leftovers = [base, *(note for directory in base.iterdir() for note in _run_notes(directory))]
        self._guard = Guard(self._leftovers)
        ports = [[self._hold() for _ in range(4)] for _ in range(self._brokers)]
        controllers = self._brokers if self._brokers < COMBINED_CONTROLLERS_MAX else COMBINED_CONTROLLERS_MAX
        controllers = 1 if self._brokers == 2 else controllers
        voters = ",".join(f"{i + 1}@{_bracketed(self.host)}:{ports[i][3].port}" for i in range(controllers))
        cluster_id = _cluster_id(base)
        for index, held in enumerate(ports):
            node_id = index + 1
            settings = {**self._settings(node_id, held, voters, index < controllers, base), **self._config}
            process = NodeProcess(
                f"broker {node_id}", settings, cluster_id, base / f"broker-{node_id}.log", self._log_level, self._guard
            )
            self.nodes.append(Node(node_id, process, held))
            self._direct[node_id] = f"{_bracketed(self.host)}:{held[2].port}"

    def _open_doors(self) -> None:
        """While the brokers start: what the doors need is not imported before."""
        from moldau.testing.proxy import Proxy

        self._proxy = Proxy()
        for node in self.nodes:
            node.attach(self._proxy)

    def _settings(
        self, node_id: int, held: list[HeldPort], voters: str, is_controller: bool, base: Path
    ) -> dict[str, str]:
        front, behind, direct, controller = (port.port for port in held)
        host = _bracketed(self.host)
        factor = min(REPLICATION_FACTOR_MAX, self._brokers)
        in_sync = str(max(1, factor - 1))
        listeners = [f"PLAINTEXT://{host}:{behind}", f"DIRECT://{host}:{direct}"]
        if is_controller:
            listeners.append(f"CONTROLLER://{host}:{controller}")
        return {
            "process.roles": "broker,controller" if is_controller else "broker",
            "node.id": str(node_id),
            "controller.quorum.voters": voters,
            "listeners": ",".join(listeners),
            "advertised.listeners": f"PLAINTEXT://{host}:{front},DIRECT://{host}:{direct}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,DIRECT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "DIRECT",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(base / f"broker-{node_id}"),
            "default.replication.factor": str(factor),
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": str(factor),
            "transaction.state.log.replication.factor": str(factor),
            "transaction.state.log.min.isr": in_sync,
            "share.coordinator.state.topic.replication.factor": str(factor),
            "share.coordinator.state.topic.min.isr": in_sync,
            **QUICK_SETTINGS,
        }

    def _hold(self) -> HeldPort:
        held = HeldPort(self.host)
        self._held.append(held)
        return held

    def _check_started(self) -> None:
        if not self.nodes:
            raise NotRunning(f"this {type(self).__name__} is not started: use it in a `with`, or call start()")

    def _direct_servers(self) -> str:
        self._check_started()
        alive = [self._direct[node.node_id] for node in self.nodes if node.is_running and not node.is_paused]
        if not alive:
            raise NotRunning("no broker runs: start(), resume() or heal() first")
        return ",".join(alive)

    def _faulty(self) -> tuple[Proxy, list[Door]]:
        self._check_started()
        assert self._proxy is not None
        return self._proxy, [door for node in self.nodes for door in node._faulty()[1]]

    def _lasting_fault(self, what: str, undo: Callable[[], None]) -> Fault:
        def end(fault: Fault) -> None:
            if fault in self._lasting:
                self._lasting.remove(fault)
                undo()

        fault = Fault("condition", what, on_end=end)
        self._lasting.append(fault)
        return fault

    def _set_free_bytes_min(self, value: str | None) -> None:
        """Of all brokers, and waits until each of them knows it."""
        from moldau.client.admin.configs import DELETE, SET, ConfigChange, ConfigResource
        from moldau.config.own_keys import FREE_BYTES_MIN_KEY
        from moldau.config.resources import BROKER

        key, everybody = FREE_BYTES_MIN_KEY, ConfigResource(BROKER, "")
        change = ConfigChange(key, value, DELETE if value is None else SET)
        self._with_admin(lambda admin: admin.incremental_alter_configs({everybody: [change]})[everybody].get())
        for node in self.nodes:
            if node.is_running and not node.is_paused:
                one = ConfigResource(BROKER, str(node.node_id))
                wait_for(functools.partial(self._node_shows, one, key, value))

    def _node_shows(self, resource: ConfigResource, key: str, value: str | None) -> bool:
        found = self._with_admin(lambda admin: admin.describe_configs([resource], names=[key])[resource].get())
        shown = next((entry.value for entry in found if entry.name == key), None)
        return (shown == NO_SPACE) == (value == NO_SPACE)


class Broker(Cluster):
    """A single broker, with the methods of a node at hand."""

    def __init__(
        self,
        *,
        config: Mapping[str, str] | None = None,
        host: str = HOST,
        data_dir: str | os.PathLike[str] | None = None,
        log_level: str = "WARNING",
        start_timeout_ms: int = START_TIMEOUT_MS,
    ) -> None:
        super().__init__(
            1, config=config, host=host, data_dir=data_dir, log_level=log_level, start_timeout_ms=start_timeout_ms
        )

    @property
    def node(self) -> Node:
        """The broker as a node of its cluster of one."""
        self._check_started()
        return self.nodes[0]

    @property
    def port(self) -> int:
        """Where clients connect."""
        return self.node.port

    @property
    def pid(self) -> int | None:
        """The broker's process; None where it does not run."""
        return self.node.pid

    @property
    def log(self) -> str:
        """What the broker has written to its log so far."""
        return self.node.log

    def stop(self) -> None:
        """Stops the broker in order, as an operator does; `restart()` or `heal()` brings it back with its data."""
        self.node.stop()

    def kill(self) -> None:
        """Ends the broker at once, as `kill -9` does; `restart()` or `heal()` brings it back with its data."""
        self.node.kill()

    def pause(self) -> None:
        """Stops the broker's clock, as a machine that hangs: connections stay open and there are no responses."""
        self.node.pause()

    def resume(self) -> None:
        """Lets the broker go on after `pause()`."""
        self.node.resume()

    def restart(self, hard: bool = False) -> None:
        """Stops and starts the broker on the same port; `hard` kills it instead."""
        self.node.restart(hard)


def _temporary_place() -> str | None:
    """In memory where there is room; None leaves it to the system."""
    try:
        status = os.statvfs(MEMORY_DIRECTORY)
    except OSError:
        return None
    has_room = status.f_bavail * status.f_frsize >= MEMORY_FREE_MIN
    return MEMORY_DIRECTORY if has_room and os.access(MEMORY_DIRECTORY, os.W_OK | os.X_OK) else None


def _run_notes(directory: Path) -> list[Path]:
    """What a killed node leaves outside of its directory (moldau/server/machine_memory.py)."""
    status = directory.stat()
    note = f"{MEMORY_DIRECTORY}/moldau-run-{os.geteuid()}-{status.st_dev:x}-{status.st_ino:x}"
    return [Path(note), Path(f"{note}.details")]


def _cluster_id(base: Path) -> str:
    """A new one; a directory that has data already keeps what it has."""
    for found in sorted(base.glob("broker-*/meta.properties")):
        for line in found.read_text().splitlines():
            key, _, value = line.partition("=")
            if key.strip() == "cluster.id":
                return value.strip()
    # It begins with a letter: tools take a dash for an option.
    return base64.urlsafe_b64encode(b"M" + os.urandom(15)).decode().rstrip("=")


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
