"""Fixtures of the tests with several real nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import NewTopic
from tests.cluster.cluster_nodes import QUICK, Cluster
from tests.cluster.stuck_node import StuckNode

TOPIC = "ledger"
PARTITIONS = 4


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """Three running nodes with quick timeouts, and a topic with a replica on each of them."""
    with Cluster(tmp_path, 3, QUICK, StuckNode) as started:
        started.start()
        create_topic(started)
        yield started


def create_topic(cluster: Cluster) -> None:
    for outcome in cluster.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values():
        outcome.get()
    cluster.await_full_isr(TOPIC)
