"""A broker with many partitions with full indexes is restarted: it stays in the cluster, and no turn of it is long."""

from __future__ import annotations

import re
import time
import urllib.request
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin, NewTopic, TopicPartition
from moldau.net.turns import LONG_TURN_S
from moldau.server.local_cluster import plan_cluster, write_files
from moldau.server.posix_disk import PosixDisk
from moldau.storage.checkpoints import read_offsets, write_offsets
from tests.cluster.cluster_nodes import START_S_MAX, ClusterNode, wait_for
from tests.cluster.full_indexes import ENTRIES, OLD_MS, FullSegment
from tests.cluster.proxy import HOST
from tests.interop.nodes import free_ports, random_cluster_id
from tests.pace import moment, moment_ms, patience_ms

BROKER, CONTROLLER = 1, 101
PARTITIONS = 60
OLD = (0, PARTITIONS // 2, PARTITIONS - 1)
"""Their closed segments are to be deleted for their age: that they are gone tells that all were looked at."""
PER_REQUEST = 6
TOPIC = "full"
LINE = re.compile(
    r'^moldau_loop_long_turn(s|_seconds|_waiting_seconds)_total\{kind="(\w+)",what="([^"]*)"\} (\S+)$', re.M
)


class BrokerAndController:
    def __init__(self, folder: Path) -> None:
        plan = plan_cluster(folder, 1, 1, HOST, 0, random_cluster_id())
        (self.metrics_port,) = free_ports(1)
        overrides = {
            "broker.session.timeout.ms": moment_ms(9000),
            "broker.heartbeat.interval.ms": 500,
            "log.initial.task.delay.ms": 1000,
            "log.retention.check.interval.ms": 1000,
            "log.segment.delete.delay.ms": 0,
        }
        write_files(plan, [f"{key}={value}" for key, value in overrides.items()])
        self.nodes: dict[int, ClusterNode] = {}
        for planned in plan.nodes:
            node = self.nodes[planned.node_id] = ClusterNode(planned.node_id, folder)
            node.properties = plan.properties_file(planned)
            node.log_file = folder / f"{planned.node_id}.log"
        self.broker = self.nodes[BROKER]
        with self.broker.properties.open("a") as file:
            file.write(f"moldau.metrics.listener={HOST}:{self.metrics_port}\n")
        self.bootstrap = plan.bootstrap_servers
        self.data = plan.data_directory(plan.brokers()[0])

    def start(self, *nodes: ClusterNode) -> None:
        for node in nodes:
            node.start()
        for node in nodes:
            wait_for(lambda node=node: node.is_ready, START_S_MAX, "it is ready", node.output)  # type: ignore[misc]

    def cpu_of_long_turns(self) -> dict[tuple[str, str], tuple[int, float]]:
        """By what they did: how many there were, and their seconds on the CPU, all together."""
        with urllib.request.urlopen(f"http://{HOST}:{self.metrics_port}/metrics") as page:
            text = page.read().decode()
        assert "moldau_loop_turns_total" in text
        found: dict[tuple[str, str], dict[str, float]] = defaultdict(dict)
        for name, kind, what, value in LINE.findall(text):
            found[kind, what][name] = float(value)
        return {done: (int(each["s"]), each["_seconds"] - each["_waiting_seconds"]) for done, each in found.items()}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[BrokerAndController]:
    """Both run, and the broker has the partitions."""
    found = BrokerAndController(tmp_path / "cluster")
    try:
        found.start(*found.nodes.values())
        with admin_of(found) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].get()
        partitions = [found.data / f"{TOPIC}-{number}" / "partition.metadata" for number in range(PARTITIONS)]
        wait_for(lambda: all(path.exists() for path in partitions), 30, "all partitions are there")
        yield found
    finally:
        for node in found.nodes.values():
            node.kill()


def admin_of(pair: BrokerAndController) -> Admin:
    return Admin(pair.bootstrap, config={"default.api.timeout.ms": patience_ms(30_000)})


def fill(pair: BrokerAndController, folder: Path) -> FullSegment:
    """Of the partitions that the stopped broker has; returns what most of them have now."""
    kept, old = FullSegment(folder / "kept"), FullSegment(folder / "old", OLD_MS)
    for number in range(PARTITIONS):
        (old if number in OLD else kept).put_into(pair.data / f"{TOPIC}-{number}")
    checkpoint = str(pair.data / "recovery-point-offset-checkpoint")
    points = read_offsets(PosixDisk(), checkpoint) | {(TOPIC, number): ENTRIES for number in range(PARTITIONS)}
    write_offsets(PosixDisk().blocking(), checkpoint, points)
    return kept


def look_up(pair: BrokerAndController, timestamp: int) -> dict[int, int]:
    """The offsets of a time in all partitions, a few in a request."""
    offsets: dict[int, int] = {}
    with admin_of(pair) as admin:
        for first in range(0, PARTITIONS, PER_REQUEST):
            partitions = range(first, min(first + PER_REQUEST, PARTITIONS))
            found = admin.list_offsets({TopicPartition(TOPIC, number): timestamp for number in partitions})
            offsets |= {part.partition: outcome.get().offset for part, outcome in found.items()}
    return offsets


def test_full_indexes_neither_fence_a_broker_nor_hold_up_its_loop(pair: BrokerAndController, tmp_path: Path) -> None:
    assert pair.broker.stop() == 0
    segment = fill(pair, tmp_path)
    since = {number: len(node.output()) for number, node in pair.nodes.items()}
    pair.start(pair.broker)
    oldest = [pair.data / f"{TOPIC}-{number}" / f"{0:020d}.log" for number in OLD]
    wait_for(lambda: not any(path.exists() for path in oldest), 30, "retention saw all logs", pair.broker.output)
    offsets = look_up(pair, segment.timestamp(ENTRIES // 2))
    assert offsets == {number: -1 if number in OLD else ENTRIES // 2 for number in range(PARTITIONS)}
    time.sleep(moment(1))  # some heartbeats
    for done, (count, cpu_s) in pair.cpu_of_long_turns().items():
        assert cpu_s <= count * moment(LONG_TURN_S), f"{done}: {count} long turns, {cpu_s} s of them on the CPU"
    for number, node in pair.nodes.items():
        said = node.output()[since[number] :]
        assert "fencing broker" not in said and "was fenced" not in said, said
