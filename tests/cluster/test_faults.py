"""Nodes are killed, paused, cut off in both directions or in one, under a load that forgets nothing.

It befalls the leader, a follower, the active controller, anybody, each of them equally often.
MOLDAU_FAULTS says how many (the full run: 300); MOLDAU_FAULT_SEED repeats the choices of a run.
"""

from __future__ import annotations

import os
import random

from tests.cluster.checker import check_every_replica
from tests.cluster.cluster_nodes import Cluster
from tests.cluster.conftest import PARTITIONS, TOPIC
from tests.cluster.faults import FaultLoop, fault_plan
from tests.cluster.load import Load, Reader

FAULTS = int(os.environ.get("MOLDAU_FAULTS", "30"))
SEED = int(os.environ.get("MOLDAU_FAULT_SEED", str(random.SystemRandom().randrange(1 << 30))))


def test_nothing_acknowledged_is_lost_doubled_or_moved_by_any_fault(cluster: Cluster) -> None:
    print(f"\nMOLDAU_FAULT_SEED={SEED}")
    rng = random.Random(SEED)
    load, reader = Load(cluster.bootstrap, TOPIC, PARTITIONS), Reader(cluster.bootstrap, TOPIC, PARTITIONS)
    load.start()
    reader.start()
    loop = FaultLoop(cluster, load, rng)
    loop.run(fault_plan(FAULTS, rng))
    load.finish()
    reader.finish()
    check_every_replica(cluster, load, reader)
    print(f"{load.acknowledged} records acknowledged, none lost, doubled or moved\n{loop.summary()}")
    assert not cluster.network.strangers, "somebody went through the doors under another name"
    for node_id in cluster.ids:
        assert cluster.stop(node_id) == 0, cluster.nodes[node_id].output()[-3000:]
