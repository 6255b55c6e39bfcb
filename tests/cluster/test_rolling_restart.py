"""All nodes are restarted one after the other under load: no request fails, and in the end every replica is in sync."""

from __future__ import annotations

from tests.cluster.checker import check_every_replica
from tests.cluster.cluster_nodes import Cluster
from tests.cluster.conftest import PARTITIONS, TOPIC
from tests.cluster.load import Load, Reader


def test_a_rolling_restart_fails_no_request_and_leaves_no_replica_behind(cluster: Cluster) -> None:
    load, reader = Load(cluster.bootstrap, TOPIC, PARTITIONS), Reader(cluster.bootstrap, TOPIC, PARTITIONS)
    load.start()
    reader.start()
    for node_id in cluster.ids:
        assert cluster.stop(node_id) == 0, cluster.nodes[node_id].output()[-3000:]
        assert node_id not in cluster.leaders(TOPIC).values(), "it went without giving up its leaderships"
        cluster.start(node_id)
        cluster.await_full_isr(TOPIC)
    load.finish()
    reader.finish()
    check_every_replica(cluster, load, reader)
    print(f"\n{load.acknowledged} records while all nodes restarted, the longest wait {load.longest_wait():.3f} s")
