"""The only controller is stopped for longer than a session and goes on: brokers that heartbeat all the time stay in."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.server.local_cluster import plan_cluster, write_files
from tests.cluster.cluster_nodes import START_S_MAX, ClusterNode, wait_for
from tests.cluster.proxy import HOST
from tests.interop.nodes import random_cluster_id

CONTROLLER = 101
STOPPED_S = 14.0  # the session of a broker is 9 s


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[int, ClusterNode]]:
    """A controller and two brokers, with the timeouts that everybody has."""
    plan = plan_cluster(tmp_path, 2, 1, HOST, 0, random_cluster_id())
    write_files(plan, [])
    found = {}
    for planned in plan.nodes:
        node = found[planned.node_id] = ClusterNode(planned.node_id, tmp_path)
        node.properties = plan.properties_file(planned)
        node.log_file = tmp_path / f"{planned.node_id}.log"
    try:
        for node in found.values():
            node.start()
        for node in found.values():
            wait_for(lambda node=node: node.is_ready, START_S_MAX, f"node {node.node_id} is ready", node.output)
        yield found
    finally:
        for node in found.values():
            node.kill()


def test_who_heartbeats_is_not_fenced_by_a_controller_that_was_stopped(nodes: dict[int, ClusterNode]) -> None:
    controller = nodes[CONTROLLER]
    time.sleep(4)  # some heartbeats
    controller.pause()
    time.sleep(STOPPED_S)
    controller.go_on()
    time.sleep(6)
    assert "fencing broker" not in controller.output(), controller.output()[-2000:]
    for node in nodes.values():
        assert "was fenced while it is running" not in node.output(), node.output()[-2000:]
