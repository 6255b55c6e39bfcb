"""Under load of all kinds no call that may wait for the medium is made on a broker's loop."""

from __future__ import annotations

import os
import time
from pathlib import Path

from moldau.client import Consumer, NewTopic, Producer, TopicPartition
from moldau.server.posix_disk import WARM_S
from tests.cluster import watched_calls_node
from tests.cluster.cluster_nodes import Cluster, wait_for
from tests.cluster.launched_node import LaunchedNode
from tests.pace import moment_ms, patience_ms

PARTITIONS = 3
SEGMENT_BYTES = 32_768
RECORD_BYTES = 4000
RECORDS = 40
"""Of a partition: several segments each."""
SETTINGS = {
    "broker.session.timeout.ms": str(moment_ms(6000)),
    "log.retention.check.interval.ms": "200",
    "log.initial.task.delay.ms": "200",
    "log.cleaner.backoff.ms": "100",
    "log.segment.delete.delay.ms": "200",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "replica.high.watermark.checkpoint.interval.ms": "500",
    "metadata.log.max.snapshot.interval.ms": "1000",
    "internal.metadata.log.segment.bytes": "10000",
    "metadata.max.retention.bytes": "30000",
    "offsets.topic.num.partitions": "2",
}
TOPICS = {
    "kept": {"retention.ms": "-1"},
    "shortened": {"retention.bytes": str(2 * SEGMENT_BYTES)},
    "compacted": {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "deleted": {},
}


class WatchedNode(LaunchedNode):
    """Its calls are written down while its file `control` is there."""

    launcher = Path(watched_calls_node.__file__)

    def calls(self, place: str) -> list[str]:
        """On the "loop" or on "threads"."""
        file = self.folder / f"control.{place}"
        return file.read_text().splitlines() if file.exists() else []

    def logs_of(self, topic: str) -> list[Path]:
        return sorted((self.folder / "data").glob(f"{topic}-*/*.log"))

    def made(self, name: str, of: str) -> bool:
        return any(line.startswith(f"{name} ") and of in line for line in self.calls("threads"))


def produce(cluster: Cluster, topic: str) -> None:
    with Producer(cluster.bootstrap, config={"linger.ms": 0, "delivery.timeout.ms": patience_ms(60_000)}) as producer:
        for number in range(RECORDS):
            for partition in range(PARTITIONS):
                key = b"%d" % (number % 5)
                producer.send(topic, os.urandom(RECORD_BYTES), key=key, partition=partition)
            if number % 8 == 7:
                producer.flush()


def evict(path: Path) -> None:
    """Out of the system's memory."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def evict_segments(node: WatchedNode, topic: str) -> None:
    """All of a topic but those that are written to."""
    for folder in {path.parent for path in node.logs_of(topic)}:
        for path in sorted(folder.glob("*.log"))[:-1]:
            for suffix in (".log", ".index", ".timeindex"):
                evict(path.with_suffix(suffix))


def can_be_cold(folder: Path) -> bool:
    """Whether the file system keeps files elsewhere than in memory, and says so."""
    probe = folder / "probe"
    probe.write_bytes(bytes(1 << 20))
    evict(probe)
    with probe.open("rb") as file:
        try:
            os.preadv(file.fileno(), [bytearray(1)], 1 << 19, os.RWF_NOWAIT)
        except BlockingIOError:
            return True
        except OSError:
            return False
    return False


def read_all(cluster: Cluster, topic: str) -> int:
    """As a member of a group that notes how far it came."""
    count = 0
    config = {"group.id": "readers", "auto.offset.reset": "earliest", "default.api.timeout.ms": patience_ms(60_000)}
    with Consumer(cluster.bootstrap, config=config) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(PARTITIONS)])
        while count < RECORDS * PARTITIONS:
            count += len(list(consumer.poll(timeout_ms=1000)))
        consumer.commit()
    return count


def test_no_call_that_may_wait_is_made_on_the_loop(tmp_path: Path) -> None:
    """Segments are rolled, flushed, removed by size, compacted and read when they are cold; a topic goes; the metadata
    log is rolled and gets snapshots; offsets are committed; a follower does the same."""
    with Cluster(tmp_path, 2, SETTINGS, WatchedNode) as cluster:
        cluster.start()
        nodes = [node for node in cluster.nodes.values() if isinstance(node, WatchedNode)]
        for node in nodes:
            node.control.touch()
        for topic, configs in TOPICS.items():
            wanted = NewTopic(topic, PARTITIONS, 2, {"internal.segment.bytes": str(SEGMENT_BYTES), **configs})
            cluster.admin.create_topics([wanted])[topic].get()
        for topic in TOPICS:
            produce(cluster, topic)
        cluster.admin.delete_topics(["deleted"])["deleted"].get()
        for node in nodes:
            await_all(node)
        time.sleep(2 * WARM_S)  # what was found in memory is believed to be there for so long
        for node in nodes:
            evict_segments(node, "kept")
        assert read_all(cluster, "kept") == RECORDS * PARTITIONS
        for node in nodes:
            assert_loop_did_not_wait(node)
        was_cold = any(node.made("preadv", "/kept-") for node in nodes)
        assert was_cold or not can_be_cold(tmp_path), "nothing that was read was cold"


def await_all(node: WatchedNode) -> None:
    """Everything has happened on threads, so that its absence on the loop says something."""
    data = str(node.folder / "data")
    await_call(node, "fdatasync", f"{data}/kept-")
    await_call(node, "fsync", f"{data}/kept-")
    await_call(node, "fdatasync", f"{data}/__cluster_metadata-0")
    await_call(node, "remove", f"{data}/shortened-")
    await_call(node, "remove", f"{data}/compacted-")
    await_call(node, "rmdir", "")


def await_call(node: WatchedNode, name: str, of: str) -> None:
    def was_made() -> bool:
        assert_loop_did_not_wait(node)
        return node.made(name, of)

    wait_for(was_made, 30, f"node {node.node_id} has made {name} of {of} on a thread", node.output)


def assert_loop_did_not_wait(node: WatchedNode) -> None:
    calls = node.calls("loop")
    assert not calls, f"{len(calls)} calls on the loop of node {node.node_id}:\n" + "\n".join(calls[:20])
