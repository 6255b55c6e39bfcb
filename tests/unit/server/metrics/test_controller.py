"""Every controller tells the state of the cluster, the active one what it decided."""

from __future__ import annotations

from moldau.controller.counts import ControllerCounts
from moldau.protocol import errors
from tests.unit.controller.test_partition_change import silence, world
from tests.unit.node.cluster import BOTH, Cluster
from tests.unit.server.metrics.pages import Page, page_of

CONTROLLER = "kafka_controller_kafkacontroller"


def pages(cluster: Cluster) -> list[Page]:
    return [page_of(member.node, cluster.now_ms) for member in cluster.up()]


def test_all_controllers_tell_the_same_state_and_one_is_active() -> None:
    cluster = Cluster({1: BOTH, 2: "controller", 3: BOTH, 4: "broker"}).start()
    assert cluster[1].create("t", partitions=4, replicas=3) == errors.NONE
    assert cluster[1].create("alone", partitions=1, replicas=1) == errors.NONE
    cluster.run(1000)
    told = [page_of(cluster[node_id].node, cluster.now_ms) for node_id in (1, 2, 3)]
    assert sum(page[f"{CONTROLLER}_activecontrollercount"] for page in told) == 1
    for page in told:
        assert page[f"{CONTROLLER}_globaltopiccount"] == 2
        assert page[f"{CONTROLLER}_globalpartitioncount"] == 5
        assert page[f"{CONTROLLER}_activebrokercount"] == 3
        assert page[f"{CONTROLLER}_fencedbrokercount"] == page[f"{CONTROLLER}_offlinepartitionscount"] == 0
        assert page[f"{CONTROLLER}_brokerregistrationstate", "broker=4"] == 30
        assert page[f"{CONTROLLER}_newactivecontrollerscount"] >= 1
    active = page_of(cluster.active().node, cluster.now_ms)
    assert active[f"{CONTROLLER}_timesincelastheartbeatreceivedms", "broker=4"] <= 2000
    assert active[f"{CONTROLLER}_lastappliedrecordlagms"] == 0
    assert active[f"{CONTROLLER}_eventqueueoperationsstartedcount"] > 5
    broker = page_of(cluster[4].node, cluster.now_ms)
    assert not [name for name in broker.names if name.startswith("kafka_controller_")]
    assert broker["kafka_server_broker_metadata_metrics_last_applied_record_offset"] > 0


def test_a_broker_that_is_gone_is_fenced_and_what_it_alone_had_is_offline() -> None:
    cluster = Cluster({1: BOTH, 2: BOTH, 3: BOTH, 4: "broker"}).start()
    assert cluster[1].create("t", partitions=4, replicas=4) == errors.NONE
    assert cluster[1].create("alone", partitions=8, replicas=1) == errors.NONE
    cluster.run(1000)
    led = [p for p in cluster[1].node.image.topics_by_name["t"].partitions.values() if p.leader == 4]
    alone = [p for p in cluster[1].node.image.topics_by_name["alone"].partitions.values() if p.leader == 4]
    assert led and alone
    cluster[4].kill()
    cluster.run(30_000)
    for page in pages(cluster):
        assert page[f"{CONTROLLER}_offlinepartitionscount"] == len(alone)
        assert page[f"{CONTROLLER}_preferredreplicaimbalancecount"] == len(alone) + len(led)
        assert page[f"{CONTROLLER}_fencedbrokercount"] == 1
        assert page[f"{CONTROLLER}_brokerregistrationstate", "broker=4"] == 10
    decided = cluster.active().node.metadata.counts
    assert decided.unclean_elections == 0


def test_silence_is_counted() -> None:
    cluster = Cluster({1: BOTH, 2: BOTH, 3: BOTH, 4: "broker"}).start()
    cluster.cut_off(cluster[4])
    cluster.run(30_000)
    told = [
        page[f"{CONTROLLER}_timedoutbrokerheartbeatcount"]
        for page in pages(cluster)
        if page.rows(f"{CONTROLLER}_activecontrollercount")
    ]
    assert sum(told) == 1


def counts_of(w: object) -> ControllerCounts:
    return w.controller.state.counts  # type: ignore[attr-defined,no-any-return]


def test_unclean_elections_are_counted() -> None:
    w = world(factor=2, unclean_leader_election_enable="true")
    silence(w, 2)
    silence(w, 1)
    w.heartbeat(2)
    w.heartbeat(1)
    assert (counts_of(w).unclean_elections, counts_of(w).elections_from_elr) == (1, 0)


def test_elections_from_eligible_replicas_are_counted() -> None:
    w = world()
    silence(w, 2, 3)
    silence(w, 1)
    partition = w.partition("t")
    assert partition.leader == -1 and partition.elr
    w.heartbeat(partition.elr[0])
    w.heartbeat(partition.elr[0])
    assert (counts_of(w).unclean_elections, counts_of(w).elections_from_elr) == (0, 1)
