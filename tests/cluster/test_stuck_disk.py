"""The disk takes no segments for a while, on all nodes at once: the cluster goes on deciding, and nobody is fenced."""

from __future__ import annotations

import time
from pathlib import Path

from moldau.client import NewTopic, Producer
from tests.cluster.cluster_nodes import Cluster, wait_for
from tests.cluster.stuck_node import StuckNode
from tests.pace import moment, moment_ms

PARTITIONS = 12
SEGMENT_BYTES = 1 << 20
STUCK_S = moment(10)
"""Longer than any of the timeouts below."""
TIMEOUTS = {
    "broker.session.timeout.ms": str(moment_ms(6000)),
    "broker.heartbeat.interval.ms": "1000",
    "controller.quorum.fetch.timeout.ms": str(moment_ms(5000)),
    "controller.quorum.election.timeout.ms": str(moment_ms(2000)),
}


def fill_a_segment(cluster: Cluster) -> None:
    with Producer(cluster.bootstrap, config={"acks": "1", "linger.ms": 0, "max.request.size": 400_000}) as producer:
        for _ in range(5):
            for partition in range(PARTITIONS):
                producer.send("rolled", bytes(300_000), partition=partition)
        producer.flush()


def is_stuck(node: StuckNode) -> bool:
    assert not node.synced_by_the_loop, f"the loop waited itself:\n{node.synced_by_the_loop}"
    return node.stuck_partitions >= 4


def make_topics(cluster: Cluster, for_s: float) -> list[float]:
    """Makes a topic each second; returns how long each of them took."""
    took_s: list[float] = []
    began_s = time.monotonic()
    while time.monotonic() < began_s + for_s:
        before_s = time.monotonic()
        name = f"made-{len(took_s)}"
        cluster.admin.create_topics([NewTopic(name, 1, 3)])[name].get()
        took_s.append(time.monotonic() - before_s)
        time.sleep(1)
    return took_s


def test_segments_that_cannot_be_synced_hold_up_neither_the_quorum_nor_the_brokers(tmp_path: Path) -> None:
    """All partitions roll at once, everywhere; no sync of a segment comes to its end while a topic is made."""
    settings = {"log.segment.bytes": str(SEGMENT_BYTES), **TIMEOUTS}
    with Cluster(tmp_path, 3, settings, StuckNode) as cluster:
        cluster.start()
        cluster.admin.create_topics([NewTopic("rolled", PARTITIONS, 3)])["rolled"].get()
        cluster.await_full_isr("rolled")
        epoch = cluster.admin.describe_metadata_quorum().leader_epoch
        nodes = [node for node in cluster.nodes.values() if isinstance(node, StuckNode)]
        for node in nodes:
            node.stuck.touch()
        since = {node.node_id: len(node.output()) for node in nodes}
        fill_a_segment(cluster)
        wait_for(lambda: all(is_stuck(node) for node in nodes), 30, "every disk is stuck", cluster.outputs)
        took_s = make_topics(cluster, STUCK_S)
        assert max(took_s) < STUCK_S / 2, f"{took_s}: a topic waited for segments, all stuck for {STUCK_S} s and longer"
        assert cluster.admin.describe_metadata_quorum().leader_epoch == epoch, cluster.outputs()
        for node in nodes:
            said = node.output()[since[node.node_id] :]
            assert "fenc" not in said and "prospective" not in said, said
            assert is_stuck(node)
        for node in nodes:
            node.stuck.unlink()
        cluster.await_full_isr("rolled")
