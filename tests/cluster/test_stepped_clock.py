"""Somebody sets the wall clock of a running node forward: nobody is fenced, the ISR stays full, nothing is deleted."""

from __future__ import annotations

import time
from pathlib import Path

from moldau.client import NewTopic, Producer
from tests.cluster import stepped_clock_node
from tests.cluster.cluster_nodes import Cluster, wait_for
from tests.cluster.launched_node import LaunchedNode
from tests.pace import moment, moment_ms, patience_ms

SEGMENTS = 6
SEGMENT_BYTES = 8192
STAMPED, KEPT = "stamped", "kept"
KEPT_MS = 600_000
"""Far longer than the test takes, and far shorter than an hour."""
SETTINGS = {
    "broker.session.timeout.ms": str(moment_ms(6000)),
    "broker.heartbeat.interval.ms": "500",
    "replica.lag.time.max.ms": str(moment_ms(6000)),
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
}
HEARTBEATS_S = 2.0
"""Several of them; who judges them by a clock that was set fences at once."""


class SteppedNode(LaunchedNode):
    launcher = Path(stepped_clock_node.__file__)

    def set_forward(self, seconds: int) -> None:
        beside = self.control.with_suffix(".new")
        beside.write_text(str(seconds))
        beside.replace(self.control)

    def segments(self) -> list[str]:
        return sorted(f"{path.parent.name}/{path.name}" for path in (self.folder / "data").glob(f"{KEPT}-*/*.log"))


def send(cluster: Cluster, topic: str, partition: int, count: int = 1) -> int:
    """Returns the timestamp of the last record, as the broker has stored it."""
    timestamp = 0
    with Producer(cluster.bootstrap, config={"acks": "all", "delivery.timeout.ms": patience_ms(30_000)}) as producer:
        for _ in range(count):
            timestamp = producer.send(topic, bytes(SEGMENT_BYTES * 3 // 4), partition=partition).result().timestamp
    return timestamp


def ahead_s(cluster: Cluster, partition: int) -> float:
    """How far the wall clock of a leader is ahead of that of the machine, as clients see it."""
    return send(cluster, STAMPED, partition) / 1000 - time.time()


def make_topics(cluster: Cluster) -> None:
    wanted = [
        NewTopic(STAMPED, 3, 3, {"message.timestamp.type": "LogAppendTime"}),
        NewTopic(KEPT, 3, 3, {"retention.ms": str(KEPT_MS), "internal.segment.bytes": str(SEGMENT_BYTES)}),
    ]
    for outcome in cluster.admin.create_topics(wanted).values():
        outcome.get()
    for partition in range(3):
        send(cluster, KEPT, partition, SEGMENTS)
    for topic in (STAMPED, KEPT):
        cluster.await_full_isr(topic)


def watch_isr(cluster: Cluster, for_s: float) -> None:
    until_s = time.monotonic() + for_s
    while time.monotonic() < until_s:
        for topic in (STAMPED, KEPT):
            in_sync = cluster.in_sync(topic)
            assert all(replicas == {1, 2, 3} for replicas in in_sync.values()), f"{in_sync}\n{cluster.outputs()}"
        time.sleep(0.1)


def test_a_clock_that_is_set_forward_fences_nobody_and_deletes_nothing(tmp_path: Path) -> None:
    """That of the active controller, and then that of a broker; by a minute, and by an hour."""
    with Cluster(tmp_path, 3, SETTINGS, SteppedNode) as cluster:
        cluster.start()
        make_topics(cluster)
        nodes = {i: node for i, node in cluster.nodes.items() if isinstance(node, SteppedNode)}
        before = cluster.admin.describe_metadata_quorum()
        leaders = cluster.leaders(STAMPED)
        segments = {i: node.segments() for i, node in nodes.items()}
        assert all(len(found) == 3 * SEGMENTS for found in segments.values()), segments
        since = {i: len(node.output()) for i, node in nodes.items()}
        controller = before.leader_id
        for step_s in (60, 3600):
            for stepped in (controller, controller % 3 + 1):
                nodes[stepped].set_forward(step_s)
                (led,) = [partition for partition, leader in leaders.items() if leader == stepped]
                wait_for(lambda led=led, step_s=step_s: ahead_s(cluster, led) > step_s / 2, 30, "it has stepped")  # type: ignore[misc]
            watch_isr(cluster, moment(HEARTBEATS_S))
            assert cluster.leaders(STAMPED) == leaders, cluster.outputs()
            assert {i: node.segments() for i, node in nodes.items()} == segments
        for i, node in nodes.items():
            said = node.output()[since[i] :]
            assert "fenc" not in said and "prospective" not in said, said
            assert ("time-based retention is suspended" in said) == (i in (controller, controller % 3 + 1)), said
        after = cluster.admin.describe_metadata_quorum()
        assert (after.leader_id, after.leader_epoch) == (controller, before.leader_epoch)
