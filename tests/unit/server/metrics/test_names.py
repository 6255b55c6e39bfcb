"""Every metric that dashboards for Kafka may ask for is there, or the documentation says why it is not."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from moldau.api.dispatch import Dispatcher
from moldau.metrics.recent_values import RecentValues
from moldau.net.request_times import RequestTimer
from moldau.server.metrics.metric import CONFLUENT, STRIMZI
from tests.unit.api.transaction_client import Producer, transactional_world
from tests.unit.node.cluster import Cluster
from tests.unit.node.test_coordinators import commit
from tests.unit.node.world import batch, produce_request
from tests.unit.server.metrics.kafka_names import KAFKA_NAMES, LEFT_OUT, ONLY_WHEN, is_left_out
from tests.unit.server.metrics.pages import Page, page_of
from tests.unit.server.metrics.test_server import Served, talk
from tests.unit.share.node_world import ShareNode

DOCUMENT = Path(__file__).parents[4] / "docs" / "metrics.md"


async def page_behind_a_socket(spelling: str) -> Page:
    served = Served()
    served.world.dispatcher = Dispatcher(served.world.node, RequestTimer().begin)
    served.listener._handle = served.world.dispatcher.handle
    flushes = RecentValues()
    flushes.record(100, served.world.now_ms / 1000)
    try:
        writer, _, _ = await talk(served.listener.port, "a", 1)
        page = page_of(
            served.world.node,
            int(time.monotonic() * 1000),
            spelling,
            turns=served.turns,
            listener_groups=[served.group],
            request_stats=served.world.dispatcher.stats,
            flush_times=flushes,
        )
        writer.close()
    finally:
        served.listener.close()
    return page


def all_pages(spelling: str) -> list[Page]:
    """A cluster whose members follow each other, a transaction, a group that lags, share groups, and a real socket."""
    cluster = Cluster().start()
    assert cluster[1].create("t", partitions=3) == 0
    cluster.run(2000)
    pages = [page_of(member.node, cluster.now_ms, spelling) for member in cluster.up()]
    world = transactional_world()
    producer = Producer(world)
    assert producer.init() == 0 and producer.produce(0, b"a") == 0
    world.ask(produce_request("t", 1, batch(world.now_ms, 3)), 9)
    assert commit(world, "g", 1, 1) == 0
    pages.append(page_of(world.node, world.now_ms, spelling))
    shares = ShareNode(1)
    shares.join()
    pages.append(page_of(shares.world.node, shares.world.now_ms, spelling))
    pages.append(asyncio.run(page_behind_a_socket(spelling)))
    return pages


@pytest.fixture(scope="module")
def shown() -> set[str]:
    return {name for page in all_pages(STRIMZI) for name in page.names}


def test_every_name_is_there_or_left_out_for_a_reason(shown: set[str]) -> None:
    missing = [name for name in KAFKA_NAMES if name not in shown and name not in ONLY_WHEN and not is_left_out(name)]
    assert not missing
    assert not [name for name in KAFKA_NAMES if name in shown and is_left_out(name)], "there, and said to be left out"
    assert not [name for name in ONLY_WHEN if name in shown]


def test_the_documentation_has_what_is_left_out_and_why() -> None:
    text = DOCUMENT.read_text()
    rows = [f"| `{name}` | {reason} |" for name, reason in LEFT_OUT.items()]
    rows += [f"| `{name}` | {when} |" for name, when in ONLY_WHEN.items()]
    assert not [row for row in rows if row not in text]


def test_the_other_spelling_has_the_same_metrics(shown: set[str]) -> None:
    names = {name for page in all_pages(CONFLUENT) for name in page.names}
    assert len(names) == len(shown)
    assert not [name for name in names if name.endswith("_percent") and "avgidle" in name]
    for name in (
        "kafka_server_brokertopicmetrics_bytesinpersec",
        "kafka_server_raft_metrics_current_leader",
        "kafka_server_socketservermetrics_connection_count",
        "kafka_network_socketserver_networkprocessoravgidlepercent",
        "kafka_consumergroup_lag",
    ):
        assert name in names
    for page in all_pages(CONFLUENT):
        for row in page.values:
            labels = row.partition("{")[2]
            keys = [part.split('="')[0].rsplit(",", 1)[-1] for part in labels.split('",')]
            assert all(key == key.lower() for key in keys if '"' not in key), row


def test_what_only_moldau_has_says_so(shown: set[str]) -> None:
    known = ("kafka_", "moldau_", "process_")
    assert not [name for name in shown if not name.startswith(known)]
