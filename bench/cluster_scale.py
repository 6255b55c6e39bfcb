"""Measures a cluster with many partitions: creation, idle CPU, memory, failover of the controller and of a broker.

    python bench/cluster_scale.py [--moldau COMMAND] [--kafka PATH] [--partitions 10000] [--systems moldau,kafka]

Three combined nodes on this machine, 100 topics, three replicas of each partition. Moldau first, then, where
`../shared/oracle/kafka` (or the script named with --kafka) can start them, three Apache Kafkas with the heap of the
distribution; both with their default settings. Nodes are killed with SIGKILL, and everything is timed from outside, by
asking the nodes that are left. CPU and memory are those of the nodes' processes, from /proc. A step that takes longer
than --limit ends the run of that system, and the table says so.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from side_by_side import (
    HOST,
    KafkaScript,
    Wire,
    combined_node_settings,
    cpu_seconds_of,
    format_moldau,
    free_ports,
    memory_mb_of,
    parser_of,
    say,
    start_moldau,
)

from moldau.protocol.messages import describe_quorum_request as quorum
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import Reader

NODES = (1, 2, 3)
TOPICS = 100
TOPICS_PER_REQUEST = 10
CREATE_VERSION, QUORUM_VERSION = 7, 1
# The last one without flexible fields, which is quicker to take apart.
METADATA_VERSION = 8
SETTLE_S = 15.0
IDLE_S = 20.0


class TooLong(Exception):
    """A step did not finish in time; the text says which."""


def partitions_of(port: int) -> Iterator[tuple[int, int]]:
    """Leader and size of the ISR of every partition, as one node knows them."""
    with Wire(port, 30.0) as wire:
        reader = wire.exchange(MetadataRequest(None), METADATA_VERSION)
    reader.int32()
    for _ in range(reader.int32()):
        reader.int32(), reader.string(), reader.int32(), reader.nullable_string()
    reader.nullable_string(), reader.int32()
    for _ in range(reader.int32()):
        reader.int16()
        name = reader.string()
        reader.boolean()
        for _ in range(reader.int32()):
            reader.int16(), reader.int32()
            leader = reader.int32()
            reader.int32()
            skip_numbers(reader)
            in_sync = skip_numbers(reader)
            skip_numbers(reader)
            if name.startswith("many-"):
                yield leader, in_sync
        reader.int32()


def skip_numbers(reader: Reader) -> int:
    count = reader.int32()
    for _ in range(count):
        reader.int32()
    return count


# The systems


class System:
    """Three nodes; `pids` are those that run."""

    name = ""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.pids: dict[int, int] = {}

    def start_all(self) -> None:
        raise NotImplementedError

    def start(self, node: int) -> None:
        """Returns when it lets clients in."""
        raise NotImplementedError

    def stop(self, node: int) -> None:
        """A clean stop."""
        raise NotImplementedError

    def remove(self) -> None:
        raise NotImplementedError

    def data(self, node: int) -> Path:
        raise NotImplementedError

    def kill(self, node: int) -> None:
        os.kill(self.pids.pop(node), signal.SIGKILL)

    @property
    def others(self) -> list[int]:
        """Those that run."""
        return list(self.pids)

    def processes(self, node: int) -> list[int]:
        """A node's process and those it started."""
        found = [self.pids[node]]
        for pid in found:
            try:
                for task in os.listdir(f"/proc/{pid}/task"):
                    found += [int(child) for child in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
            except OSError:
                continue
        return found

    def cpu_seconds(self, node: int) -> float:
        return sum(cpu_seconds_of(pid) for pid in self.processes(node))

    def memory_mb(self, node: int) -> float:
        """Pages that several processes share are counted once."""
        return sum(memory_mb_of(pid, "Pss", "smaps_rollup") for pid in self.processes(node))


class Moldau(System):
    name = "Moldau"

    def __init__(self, command: list[str]) -> None:
        super().__init__()
        self.command = command
        self.folder = Path(tempfile.mkdtemp(prefix="moldau-bench-"))
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        ports = free_ports(6)
        self.ports = dict(zip(NODES, ports, strict=False))
        controller_ports = dict(zip(NODES, ports[3:], strict=True))
        for node in NODES:
            properties = self._properties(node)
            properties.parent.mkdir(parents=True)
            settings = combined_node_settings(node, self.ports[node], controller_ports, self.data(node))
            format_moldau(command, properties, settings)

    def _properties(self, node: int) -> Path:
        return self.folder / f"node-{node}" / "server.properties"

    def data(self, node: int) -> Path:
        return self.folder / f"node-{node}" / "data"

    def _begin(self, node: int) -> None:
        properties = self._properties(node)
        self.running[node] = start_moldau(self.command, properties, properties.with_name("output.log"))
        self.pids[node] = self.running[node].pid

    def start_all(self) -> None:
        for node in NODES:
            self._begin(node)
        for node in NODES:
            wait_until(lambda: is_open(self.ports[node]), 60, "the start of a node")  # noqa: B023

    def start(self, node: int) -> None:
        self._begin(node)
        wait_until(lambda: is_open(self.ports[node]), 120, "the start of a node")

    def kill(self, node: int) -> None:
        super().kill(node)
        self.running.pop(node).wait()

    def stop(self, node: int) -> None:
        del self.pids[node]
        process = self.running.pop(node)
        process.terminate()
        process.wait(120)

    def remove(self) -> None:
        for process in self.running.values():
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Kafka(System):
    name = "Apache Kafka 4.3.1"

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.script = KafkaScript(path)
        self.ports = {node: self.script.port + node - 1 for node in NODES}
        self.folder = Path()

    def data(self, node: int) -> Path:
        return self.folder / f"node{node}"

    def start_all(self) -> None:
        facts = self.script.run("start", "3")
        self.folder = Path(facts["data"])
        for node in NODES:
            self._note_pid(node)

    def _note_pid(self, node: int) -> None:
        self.pids[node] = int((self.folder / f"node{node}.pid").read_text())

    def start(self, node: int) -> None:
        self.script.run("start-node", str(node))
        self._note_pid(node)

    def kill(self, node: int) -> None:
        pid = self.pids[node]
        super().kill(node)
        wait_until(lambda: not Path(f"/proc/{pid}/exe").exists(), 30, "the end of a process")

    def stop(self, node: int) -> None:
        del self.pids[node]
        self.script.run("stop-node", str(node))

    def remove(self) -> None:
        self.script.run("stop")


def is_open(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), 1).close()
    except OSError:
        return False
    return True


def wait_until(condition: Callable[[], bool], limit_s: float, what: str, pause_s: float = 0.01) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TooLong(f"{what}: did not finish in {limit_s:.0f} s")
        time.sleep(pause_s)


# Measurements


class Run:
    """One system from its start to the last fault; `rows` has what was measured."""

    def __init__(self, system: System, partitions: int, limit_s: float) -> None:
        self.system = system
        self.partitions = partitions
        self.limit_s = limit_s
        self.rows: dict[str, str] = {}

    def note(self, row: str, value: str) -> None:
        self.rows[row] = value
        say(f"{self.system.name}: {row}: {value}")

    def timed(self, row: str, condition: Callable[[], bool], began: float | None = None, pause_s: float = 0.02) -> None:
        """How long it takes until something is so."""
        began = time.monotonic() if began is None else began
        try:
            wait_until(condition, self.limit_s, row, pause_s)
        except TooLong:
            self.note(row, f"did not finish in {self.limit_s:.0f} s")
            raise
        self.note(row, f"{time.monotonic() - began:.2f} s")

    def all(self) -> None:
        self.create()
        self.idle()
        active = self.active_controller()
        self.fail_broker(next(node for node in NODES if node != active))
        self.fail_controller()
        self.roll()

    def create(self) -> None:
        began = time.monotonic()
        names = [f"many-{number}" for number in range(TOPICS)]
        with Wire(self.system.ports[1], self.limit_s) as wire:
            for first in range(0, TOPICS, TOPICS_PER_REQUEST):
                wanted = [
                    CreatableTopic(name=name, num_partitions=self.partitions // TOPICS, replication_factor=3)
                    for name in names[first : first + TOPICS_PER_REQUEST]
                ]
                answer = wire.ask(
                    CreateTopicsRequest(topics=wanted, timeout_ms=int(self.limit_s * 1000)), CREATE_VERSION
                )
                refused = {topic.error_code for topic in answer.topics} - {0}
                if refused:
                    raise RuntimeError(f"topics were refused: {refused}")
        self.note(f"creation of {self.partitions} partitions: answered", f"{time.monotonic() - began:.2f} s")
        self.timed("creation: every node knows all leaders", lambda: self.is_known(in_sync=3), began)
        self.timed("creation: every replica is on its disk", self.are_on_disk, began, 0.2)

    def is_known(self, gone: int = 0, in_sync: int = 1) -> bool:
        """Whether every node that runs knows a leader other than the one that is gone, for all partitions."""
        for node in self.system.others:
            try:
                rows = list(partitions_of(self.system.ports[node]))
            except OSError:
                return False
            if len(rows) < self.partitions:
                return False
            if any(leader in (-1, gone) or members < in_sync for leader, members in rows):
                return False
        return True

    def are_on_disk(self) -> bool:
        return all(
            sum(name.startswith("many-") for name in os.listdir(self.system.data(node))) >= self.partitions
            for node in NODES
        )

    def idle(self) -> None:
        time.sleep(SETTLE_S)
        before = {node: self.system.cpu_seconds(node) for node in NODES}
        time.sleep(IDLE_S)
        shares = [(self.system.cpu_seconds(node) - before[node]) / IDLE_S * 100 for node in NODES]
        self.note("idle: CPU of each node", ", ".join(f"{share:.1f}" for share in sorted(shares)) + " % of a core")
        memory = [self.system.memory_mb(node) for node in NODES]
        self.note("idle: memory of each node", ", ".join(f"{size:.0f}" for size in sorted(memory)) + " MB")

    def active_controller(self) -> int:
        request = quorum.DescribeQuorumRequest([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])])
        with Wire(self.system.ports[self.system.others[0]], 10.0) as wire:
            leader: int = wire.ask(request, QUORUM_VERSION).topics[0].partitions[0].leader_id
        return leader

    def fail_broker(self, node: int) -> None:
        began = time.monotonic()
        self.system.kill(node)
        self.timed("broker killed: all its partitions have new leaders", lambda: self.is_known(gone=node), began)
        self.come_back(node, "broker killed")

    def fail_controller(self) -> None:
        node = self.active_controller()
        began = time.monotonic()
        self.system.kill(node)
        self.timed("controller killed: another one has answered a write", self.is_writable, began)
        self.timed("controller killed: all its partitions have new leaders", lambda: self.is_known(gone=node), began)
        self.come_back(node, "controller killed")

    def is_writable(self) -> bool:
        """Whether one of the nodes that are left creates a topic."""
        name = f"after-{time.monotonic_ns()}"
        request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=2)])
        for node in self.system.others:
            try:
                with Wire(self.system.ports[node], 2.0) as wire:
                    if wire.ask(request, CREATE_VERSION).topics[0].error_code == 0:
                        return True
            except OSError:
                continue
        return False

    def come_back(self, node: int, row: str) -> None:
        began = time.monotonic()
        self.system.start(node)
        self.note(f"{row}: started again", f"{time.monotonic() - began:.2f} s")
        self.timed(f"{row}: all replicas in sync again", lambda: self.is_known(in_sync=3), began, 0.1)

    def roll(self) -> None:
        """Every node is stopped cleanly and started again, when all replicas are in sync."""
        began = time.monotonic()
        for node in NODES:
            self.system.stop(node)
            self.system.start(node)
            wait_until(lambda: self.is_known(in_sync=3), self.limit_s, "rolling restart", 0.1)
        self.note("rolling restart of all three, in sync after each", f"{time.monotonic() - began:.2f} s")


def measured(system: System, partitions: int, limit_s: float) -> dict[str, str]:
    run = Run(system, partitions, limit_s)
    try:
        system.start_all()
        run.all()
    except (TooLong, OSError, RuntimeError, subprocess.SubprocessError) as error:
        say(f"{system.name}: {error!r}")
        run.rows.setdefault("ended early", str(error))
    finally:
        system.remove()
    return run.rows


def show(results: dict[str, dict[str, str]], markdown: bool) -> str:
    rows = list(dict.fromkeys(row for found in results.values() for row in found))
    if markdown:
        lines = ["| |" + "".join(f" {name} |" for name in results), "|---|" + "---:|" * len(results)]
        lines += [f"| {row} |" + "".join(f" {found.get(row, '–')} |" for found in results.values()) for row in rows]
    else:
        lines = [f"{'':60s}" + "".join(f"{name:>28s}" for name in results)]
        lines += [f"{row:60s}" + "".join(f"{found.get(row, '-'):>28s}" for found in results.values()) for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = parser_of((__doc__ or "").splitlines()[0])
    parser.add_argument("--systems", default="moldau,kafka")
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--limit", type=float, default=240.0, help="seconds for one step")
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    results: dict[str, dict[str, str]] = {}
    for wanted in arguments.systems.split(","):
        if wanted == "kafka" and not arguments.kafka.exists():
            say(f"{arguments.kafka} is not there: Moldau alone")
            continue
        system = Moldau(shlex.split(arguments.moldau)) if wanted == "moldau" else Kafka(arguments.kafka)
        results[system.name] = measured(system, arguments.partitions, arguments.limit)
    print(show(results, arguments.markdown))


if __name__ == "__main__":
    main()
