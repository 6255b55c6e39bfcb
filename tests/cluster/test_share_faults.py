"""Twenty members of a share group work while nodes are killed, paused and cut off: nothing is lost or accepted twice.

MOLDAU_SHARE_FAULTS says how many faults (the full run: 300); MOLDAU_FAULT_SEED repeats the choices of a run.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.protocol.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.cluster.cluster_nodes import QUICK, Cluster, wait_for
from tests.cluster.conftest import PARTITIONS, TOPIC, create_topic
from tests.cluster.faults import FaultLoop, fault_plan
from tests.cluster.load import Load
from tests.cluster.proxy import HOST
from tests.cluster.share_members import LOCK_S, Member, Tally
from tests.cluster.stuck_node import StuckNode
from tests.interop.wire import Wire
from tests.pace import patience

FAULTS = int(os.environ.get("MOLDAU_SHARE_FAULTS", "6"))
SEED = int(os.environ.get("MOLDAU_FAULT_SEED", str(random.SystemRandom().randrange(1 << 30))))
MEMBERS = 20
GROUP = "workers"
GROUP_RESOURCE = 32
DRAIN_S_MAX = patience(180)
SHARE = {
    "group.share.record.lock.duration.ms": str(int(LOCK_S * 1000)),
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.delivery.count.limit": "10",
    "share.coordinator.state.topic.num.partitions": "6",
}


@pytest.fixture
def share_cluster(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path, 3, {**QUICK, **SHARE}, StuckNode) as started:
        started.start()
        create_topic(started)
        yield started


def test_nothing_is_lost_or_accepted_twice_by_any_fault(share_cluster: Cluster) -> None:
    print(f"\nMOLDAU_FAULT_SEED={SEED}")
    cluster, rng, tally = share_cluster, random.Random(SEED), Tally()
    ports = {node_id: node.port for node_id, node in cluster.nodes.items()}
    begin_with_the_first_record(ports[1])
    members = [Member(number, ports, GROUP, TOPIC, tally, SEED) for number in range(MEMBERS)]
    for member in members:
        member.start()
    load = Load(cluster.bootstrap, TOPIC, PARTITIONS, 200)
    load.start()
    wait_for(lambda: len(tally.accepted) > 50, 60, "members get records and accept them", cluster.outputs)
    loop = FaultLoop(cluster, load, rng)
    loop.run(fault_plan(FAULTS, rng))
    load.finish()
    for member in members:
        member.only_accepts.set()
    written = {(part.partition, offset) for part in load.parts for offset in part.offsets.values()}
    deadline = time.monotonic() + DRAIN_S_MAX
    while not written <= tally.tried and time.monotonic() < deadline:
        time.sleep(0.2)
    for member in members:
        member.stopping.set()
    for member in members:
        member.join(patience(30))
    print(
        f"{len(written)} records written, {tally.delivered} deliveries, {len(tally.accepted)} accepted for certain,"
        f" {len(tally.twice)} twice\n{loop.summary()}"
    )
    assert not tally.problems, tally.problems[:5]
    missing = sorted(written - tally.tried)
    assert not missing, f"{len(missing)} records were never delivered: {missing[:10]}\n{cluster.outputs()}"
    assert not tally.twice, f"accepted twice: {tally.twice[:10]}"


def begin_with_the_first_record(port: int) -> None:
    earliest = AlterableConfig("share.auto.offset.reset", 0, "earliest")
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(GROUP_RESOURCE, GROUP, [earliest])])
    with Wire(HOST, port) as wire:
        answer = wire.ask(request, 1)
    assert answer.responses[0].error_code == 0, answer.responses[0]
