"""What a broker tells of its partitions agrees with what was done to them."""

from __future__ import annotations

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.server.metrics.metric import CONFLUENT
from tests.unit.node.cluster import Cluster
from tests.unit.node.world import NodeWorld, batch, produce_request
from tests.unit.server.metrics.pages import page_of

MANAGER = "kafka_server_replicamanager"


def test_partitions_are_counted_and_have_rows() -> None:
    world = NodeWorld().start()
    for topic in ("a", "b"):
        assert world.create(topic) == errors.NONE
    page = page_of(world.node, world.now_ms)
    assert page[f"{MANAGER}_leadercount"] == page[f"{MANAGER}_partitioncount"] == 2
    assert page[f"{MANAGER}_underreplicatedpartitions"] == page[f"{MANAGER}_offlinereplicacount"] == 0
    assert page[f"{MANAGER}_atminisrpartitioncount"] == 2
    assert page["kafka_cluster_partition_replicascount", "topic=a", "partition=0"] == 1
    assert page["kafka_cluster_partition_atminisr", "topic=b", "partition=0"] == 1


@pytest.fixture(scope="module")
def degraded() -> Cluster:
    """Three replicas everywhere, of which one broker's are gone, and two must be in sync."""
    cluster = Cluster(min_insync_replicas="2").start()
    assert cluster[1].create("t", partitions=3) == errors.NONE
    cluster.run(500)
    cluster[3].kill()
    cluster.run(30_000)
    return cluster


def test_what_is_under_replicated_is_told_by_its_leader(degraded: Cluster) -> None:
    pages = [page_of(member.node, degraded.now_ms) for member in degraded.up()]
    assert sum(page[f"{MANAGER}_leadercount"] for page in pages) == 3
    assert sum(page[f"{MANAGER}_underreplicatedpartitions"] for page in pages) == 3
    assert sum(page[f"{MANAGER}_atminisrpartitioncount"] for page in pages) == 3
    assert sum(page[f"{MANAGER}_underminisrpartitioncount"] for page in pages) == 0
    assert all(page[f"{MANAGER}_partitioncount"] == 3 for page in pages)
    for index in range(3):
        label = f"partition={index}"
        told = [page["kafka_cluster_partition_underreplicated", "topic=t", label] for page in pages]
        assert sorted(told) == [0, 1], "the follower says nothing of it"
        assert sum(page["kafka_cluster_partition_insyncreplicascount", "topic=t", label] for page in pages) == 2
        assert sum(page["kafka_cluster_partition_replicascount", "topic=t", label] for page in pages) == 3
        exported = [page.rows("kafka_topic_partition_under_replicated_partition") for page in pages]
        assert [
            rows[f'topic="t",partition="{index}"'] for rows in exported if rows.get(f'topic="t",partition="{index}"')
        ]


def test_followers_tell_what_they_fetched() -> None:
    cluster = Cluster().start()
    assert cluster[1].create("t") == errors.NONE
    cluster.run(500)
    leader = next(m for m in cluster.up() if m.node.replicas.find("t", 0).is_leader)  # type: ignore[union-attr]
    leader.ask(produce_request("t", 0, batch(cluster.now_ms, 5), acks=-1), 9)
    cluster.run(2000)
    follower = next(member for member in cluster.up() if member is not leader)
    page = page_of(follower.node, cluster.now_ms)
    client = f"ReplicaFetcherThread-0-{leader.node_id}"
    assert (
        page["kafka_server_fetcherstats_bytes_total", f"clientId={client}", f"brokerPort={9000 + leader.node_id}"] > 60
    )
    assert page["kafka_server_fetcherstats_requests_total", f"clientId={client}"] >= 2
    assert page["kafka_server_fetcherlagmetrics_consumerlag", f"clientId={client}", "topic=t", "partition=0"] == 0
    assert page["kafka_server_replicafetchermanager_maxlag", "clientId=Replica"] == 0
    assert page["kafka_server_replicafetchermanager_failedpartitionscount", "clientId=Replica"] == 0
    assert page[f"{MANAGER}_leadercount"] == 0 and page[f"{MANAGER}_partitioncount"] == 1
    of_leader = page_of(leader.node, cluster.now_ms)
    sessions = of_leader["kafka_server_fetchsessioncache_numincrementalfetchsessions"]
    assert sessions == of_leader["kafka_server_fetchsessioncache_numincrementalfetchpartitionscached"] == 2
    assert of_leader["kafka_server_delayedoperationpurgatory_numdelayedoperations", "delayedOperation=Fetch"] == 2
    assert of_leader["kafka_server_delayedfetchmetrics_expires_total", "fetcherType=follower"] >= 2
    confluent = page_of(follower.node, cluster.now_ms, CONFLUENT)
    assert confluent["kafka_server_fetcherlagmetrics_consumerlag", f"clientid={client}", "topic=t"] == 0


def test_requests_that_wait_and_that_waited_too_long_are_told() -> None:
    cluster = Cluster(replica_lag_time_max_ms="60000").start()
    assert cluster[1].create("t") == errors.NONE
    cluster.run(500)
    leader = next(m for m in cluster.up() if m.node.replicas.find("t", 0).is_leader)  # type: ignore[union-attr]
    for member in cluster.up():
        if member is not leader:
            member.kill()
    asked = leader.send(produce_request("t", 0, batch(cluster.now_ms, 1), acks=-1), 9)
    page = page_of(leader.node, cluster.now_ms)
    assert page["kafka_server_delayedoperationpurgatory_purgatorysize", "delayedOperation=Produce"] == 1
    cluster.run_until(lambda: asked.reply.done)
    page = page_of(leader.node, cluster.now_ms)
    assert page["kafka_server_delayedoperationpurgatory_purgatorysize", "delayedOperation=Produce"] == 0
    assert page["kafka_server_delayedproducemetrics_expires_total"] == 1


def test_a_consumer_that_waits_is_told_when_its_time_is_over() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    topic = FetchTopic("t", partitions=[FetchPartition(0, -1, 0, -1, -1, 1000)])
    request = FetchRequest(max_wait_ms=300, min_bytes=1, max_bytes=1000, session_epoch=-1, topics=[topic])
    asked = world.send(request, 12)
    waiting = "kafka_server_delayedoperationpurgatory_numdelayedoperations"
    assert page_of(world.node, world.now_ms)[waiting, "delayedOperation=Fetch"] == 1
    world.run(1000)
    assert asked.reply.done
    page = page_of(world.node, world.now_ms)
    assert page["kafka_server_delayedfetchmetrics_expires_total", "fetcherType=consumer"] == 1
    assert page[waiting, "delayedOperation=Fetch"] == 0


def test_replicas_that_are_added_are_not_missing() -> None:
    cluster = Cluster().start()
    assert cluster[1].create("t", replicas=1) == errors.NONE
    cluster.run(500)
    leader = next(m for m in cluster.up() if m.node.image.topics_by_name["t"].partitions[0].leader == m.node_id)
    others = [member for member in cluster.up() if member is not leader]
    cluster.cut_off(others[0]) if others[0] is not cluster.active() else cluster.cut_off(others[1])
    wanted = [leader.node_id, *(member.node_id for member in others)]
    rows = [ReassignableTopic("t", [ReassignablePartition(0, wanted)])]
    leader.ask(AlterPartitionReassignmentsRequest(timeout_ms=1000, topics=rows), 0)
    cluster.run(300)
    page = page_of(leader.node, cluster.now_ms)
    assert page[f"{MANAGER}_reassigningpartitions"] == 1
    assert page[f"{MANAGER}_underreplicatedpartitions"] == 0
    assert page["kafka_topic_partition_replicas", "topic=t"] == 3


def test_rows_are_bounded_and_what_is_left_out_is_counted() -> None:
    world = NodeWorld(moldau_metrics_partitions_max="2").start()
    for topic in ("a", "b", "c"):
        assert world.create(topic) == errors.NONE
    page = page_of(world.node, world.now_ms)
    assert page[f"{MANAGER}_partitioncount"] == 3
    for name in ("kafka_cluster_partition_replicascount", "kafka_log_log_size", "kafka_topic_partition_leader"):
        assert len(page.rows(name)) == 2
    assert page["moldau_metrics_rows_left_out", "what=partitions"] == 1
