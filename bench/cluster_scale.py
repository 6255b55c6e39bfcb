"""Measures a cluster with many partitions: creation, idle CPU, memory, failover of the controller and of a broker.

    python bench/cluster_scale.py [--moldau COMMAND] [--kafka DIRECTORY] [--partitions 10000] [--systems moldau,kafka]

Three combined nodes on this machine, 100 topics, three replicas of each partition. Moldau first, then, where its jars
are (tools/fetch_kafka.sh, or --kafka DIRECTORY), three nodes of Apache Kafka with the heap of the distribution; both
with their default settings. Nodes are killed with SIGKILL, and everything is timed from outside, by asking the nodes
that are left. CPU and memory are those of the nodes' processes, from /proc. A step that takes longer than --limit ends
the run of that system, and the table says so.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator

from side_by_side import KafkaProgram, MoldauProgram, Nodes, Wire, parser_of, say, why_no_kafka

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


def wait_until(condition: Callable[[], bool], limit_s: float, what: str, pause_s: float = 0.01) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > deadline:
            raise TooLong(f"{what}: did not finish in {limit_s:.0f} s")
        time.sleep(pause_s)


# Measurements


class Run:
    """One system from its start to the last fault; `rows` has what was measured."""

    def __init__(self, system: Nodes, partitions: int, limit_s: float) -> None:
        self.system = system
        self.partitions = partitions
        self.limit_s = limit_s
        self.rows: dict[str, str] = {}

    def note(self, row: str, value: str) -> None:
        self.rows[row] = value
        say(f"{self.system.program.name}: {row}: {value}")

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
        self.note(f"creation of {self.partitions} partitions: response", f"{time.monotonic() - began:.2f} s")
        self.timed("creation: every node knows all leaders", lambda: self.is_known(in_sync=3), began)
        self.timed("creation: every replica is on its disk", self.are_on_disk, began, 0.2)

    def is_known(self, gone: int = 0, in_sync: int = 1) -> bool:
        """Whether every node that runs knows a leader other than the one that is gone, for all partitions."""
        for node in list(self.system.processes):
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
        with Wire(self.system.ports[next(iter(self.system.processes))], 10.0) as wire:
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
        self.timed("controller killed: another one has responded to a write", self.is_writable, began)
        self.timed("controller killed: all its partitions have new leaders", lambda: self.is_known(gone=node), began)
        self.come_back(node, "controller killed")

    def is_writable(self) -> bool:
        """Whether one of the nodes that are left creates a topic."""
        name = f"after-{time.monotonic_ns()}"
        request = CreateTopicsRequest(topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=2)])
        for node in list(self.system.processes):
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


def measured(system: Nodes, partitions: int, limit_s: float) -> dict[str, str]:
    run = Run(system, partitions, limit_s)
    try:
        system.start()
        run.all()
    except (TooLong, OSError, RuntimeError, subprocess.SubprocessError) as error:
        say(f"{system.program.name}: {error!r}")
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
        reason = why_no_kafka(arguments.kafka)
        if wanted == "kafka" and reason is not None:
            say(f"Moldau alone: {reason}")
            continue
        is_moldau = wanted == "moldau"
        program = MoldauProgram(shlex.split(arguments.moldau)) if is_moldau else KafkaProgram(arguments.kafka)
        system = Nodes(program, len(NODES), {})
        results[system.program.name] = measured(system, arguments.partitions, arguments.limit)
    print(show(results, arguments.markdown))


if __name__ == "__main__":
    main()
