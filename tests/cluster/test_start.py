"""How three nodes come together: all at once, one by one, and again after all of them were gone."""

from __future__ import annotations

import time
from pathlib import Path

from tests.cluster.checker import check_load, read_all
from tests.cluster.cluster_nodes import QUICK, Cluster, is_open, wait_for
from tests.cluster.conftest import PARTITIONS, TOPIC, create_topic
from tests.cluster.load import Load
from tests.pace import patience


def test_a_node_alone_waits_for_the_others_and_says_so(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, QUICK) as cluster:
        cluster.begin_start(1)
        alone = cluster.nodes[1]
        wait_for(lambda: "no leader of the metadata quorum" in alone.output(), 20, "it says what it waits for")
        assert not alone.is_ready and not is_open(alone.port), "clients are let in only when there is a cluster"
        cluster.begin_start(2)
        cluster.await_ready(1)
        cluster.await_ready(2)
        cluster.start(3)
        create_topic(cluster)


def test_all_nodes_killed_at_once_come_back_with_everything_acknowledged(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, QUICK) as cluster:
        cluster.start()
        create_topic(cluster)
        load = Load(cluster.bootstrap, TOPIC, PARTITIONS)
        load.start()
        time.sleep(1.5)
        for node_id in cluster.ids:
            cluster.kill(node_id)
        cluster.start()
        cluster.await_full_isr(TOPIC)
        time.sleep(0.5)
        load.finish()
        check_load(load, None, read_all(cluster.bootstrap, TOPIC, PARTITIONS), "the restarted cluster")


def test_all_nodes_told_to_stop_at_once_end_cleanly_and_soon(tmp_path: Path) -> None:
    with Cluster(tmp_path, 3, QUICK) as cluster:
        cluster.start()
        create_topic(cluster)
        began = time.monotonic()
        processes = [node.process for node in cluster.nodes.values()]
        for process in processes:
            assert process is not None
            process.terminate()
        codes = [process.wait(patience(30)) for process in processes if process is not None]
        assert codes == [0, 0, 0], cluster.outputs()
        assert time.monotonic() - began < patience(15)
        for node in cluster.nodes.values():
            node.process = None
            assert (node.folder / "data" / ".kafka_cleanshutdown").exists()
