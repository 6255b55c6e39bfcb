"""Committed offsets and lag, in records and in seconds, are exact: here, on other brokers, and in data that is cold."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.coordinator.routing import partition_for
from moldau.node import lag_watch
from moldau.node.record_times import find_in, timestamp_in_header
from moldau.protocol import errors
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.records.batch import HEADER_SIZE
from moldau.records.builder import BatchBuilder
from moldau.server.metrics.collect import Sources
from moldau.sim.kernel.disk import SimFile
from moldau.storage.disk import ColdRead
from tests.unit.node.cluster import Cluster, Member
from tests.unit.node.test_coordinators import commit, ready_world
from tests.unit.node.world import NodeWorld, produce_request
from tests.unit.server.metrics.pages import page_of

GROUP = "kafka_consumergroup"
CLUSTER = "cluster_name=MkU3OEVBNTcwNTJENDM2Qk"


def batch_of(timestamps: list[int], codec: int = 0) -> bytes:
    builder = BatchBuilder(codec=codec)
    for timestamp in timestamps:
        builder.append(timestamp, None, b"value", [])
    return builder.build()


def produce(world: NodeWorld, index: int, timestamps: list[int]) -> None:
    answer = world.ask(produce_request("t", index, batch_of(timestamps)), 9)
    assert answer.responses[0].partition_responses[0].error_code == errors.NONE


def test_offsets_and_lag_of_a_group_without_members() -> None:
    world = ready_world()
    now = world.now_ms
    produce(world, 0, [now - 9000, now - 8000, now - 7000])
    produce(world, 1, [now - 500])
    assert commit(world, "g", 0, 1) == commit(world, "g", 1, 1) == errors.NONE
    page = page_of(world.node, world.now_ms)
    wall_ms = world.node.wall.at(world.now_ms)
    rows = {"current_offset": (1, 1, -1), "lag": (2, 0, -1)}
    for name, values in rows.items():
        for index, value in enumerate(values):
            labels = ("consumergroup=g", "topic=t", f"partition={index}")
            assert page[f"{GROUP}_{name}", *labels] == value
    assert page[f"{GROUP}_current_offset_sum", "consumergroup=g", "topic=t"] == 1
    assert page[f"{GROUP}_lag_sum", "consumergroup=g", "topic=t"] == 2
    assert page[f"{GROUP}_members", "consumergroup=g"] == 0
    place = (CLUSTER, "group=g", "topic=t", "partition=0")
    assert page[f"{GROUP}_group_offset", *place] == 1
    assert page[f"{GROUP}_group_lag", *place] == 2
    assert page[f"{GROUP}_group_lag_seconds", *place] == (wall_ms - (now - 8000)) / 1000
    assert page[f"{GROUP}_group_lag_seconds", "group=g", "partition=1"] == 0
    assert len(page.rows(f"{GROUP}_group_lag")) == 2, "nothing is committed for the third"
    assert page[f"{GROUP}_group_max_lag", "group=g"] == page[f"{GROUP}_group_sum_lag", "group=g"] == 2
    assert page[f"{GROUP}_group_max_lag_seconds", "group=g"] == (wall_ms - (now - 8000)) / 1000
    assert page[f"{GROUP}_group_topic_sum_lag", "group=g", "topic=t"] == 2


def test_seconds_grow_until_somebody_commits() -> None:
    world = ready_world()
    produce(world, 0, [world.now_ms])
    assert commit(world, "g", 0, 0) == errors.NONE
    sources = Sources(world.node)
    first = page_of(world.node, world.now_ms, sources=sources)[f"{GROUP}_group_max_lag_seconds", "group=g"]
    world.run(10_000)
    second = page_of(world.node, world.now_ms, sources=sources)[f"{GROUP}_group_max_lag_seconds", "group=g"]
    assert second == pytest.approx(first + 10)
    assert commit(world, "g", 0, 1) == errors.NONE
    assert page_of(world.node, world.now_ms, sources=sources)[f"{GROUP}_group_max_lag_seconds", "group=g"] == 0


def test_internal_topics_and_those_that_do_not_match_are_left_out() -> None:
    world = ready_world(moldau_metrics_topics="^t", moldau_metrics_groups="^shown", moldau_metrics_groups_max="1")
    assert world.create("other") == errors.NONE
    for group in ("shown-1", "shown-2", "hidden"):
        assert commit(world, group, 0, 0) == commit(world, group, 0, 0, "other") == errors.NONE
    page = page_of(world.node, world.now_ms)
    assert {row.split('"')[1] for row in page.rows("kafka_topic_partition_leader")} == {"t"}
    assert len(page.rows(f"{GROUP}_members")) == 1
    assert all('consumergroup="shown-' in row and 'topic="t"' in row for row in page.rows(f"{GROUP}_current_offset"))
    assert page["moldau_metrics_rows_left_out", "what=groups"] == 1
    by_default = page_of(ready_world().node, world.now_ms)
    assert {row.split('"')[1] for row in by_default.rows("kafka_topic_partitions")} == {"t"}


def test_many_lookups_are_spread_over_scrapes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lag_watch, "LOOKUPS_PER_SCRAPE", 2)
    world = ready_world()
    for index in range(3):
        produce(world, index, [world.now_ms, world.now_ms])
        assert commit(world, "g", index, 1) == errors.NONE
    sources = Sources(world.node)
    page = page_of(world.node, world.now_ms, sources=sources)
    assert len(page.rows(f"{GROUP}_group_lag_seconds")) == 2
    assert page["moldau_metrics_rows_left_out", "what=lag in seconds"] == 1
    for _ in range(2):
        page = page_of(world.node, world.now_ms, sources=sources)
    assert len(page.rows(f"{GROUP}_group_lag_seconds")) == 3


def test_cold_records_are_looked_up_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ready_world()
    now = world.now_ms
    produce(world, 0, [now - 5000])
    assert commit(world, "g", 0, 0) == errors.NONE
    read, is_cold = SimFile.read, [True]

    def refuse(file: SimFile, position: int, size: int) -> Any:
        if is_cold[0] and world.disk.refuses_cold and file.path.endswith("t-0/00000000000000000000.log"):
            if world.disk.find_brought(file.path, position, size) is None:
                raise ColdRead(file, position, size)
        return read(file, position, size)

    monkeypatch.setattr(SimFile, "read", refuse)
    sources = Sources(world.node)
    page = page_of(world.node, world.now_ms, sources=sources)
    assert not page.rows(f"{GROUP}_group_lag_seconds") and page[f"{GROUP}_group_lag", "group=g"] == 1
    assert world.disk.refuses_cold is False
    world.run(100)
    is_cold[0] = False
    world.run(2000)
    page = page_of(world.node, world.now_ms, sources=sources)
    wall_ms = world.node.wall.at(world.now_ms)
    assert page[f"{GROUP}_group_lag_seconds", "group=g"] == (wall_ms - (now - 5000)) / 1000


@pytest.mark.parametrize("codec", [0, 1, 4])
def test_times_are_those_of_the_record(codec: int) -> None:
    data = batch_of([100, 300, 200], codec)
    assert [find_in(data, offset) for offset in range(4)] == [100, 300, 200, -1]
    head = data[:HEADER_SIZE]
    assert timestamp_in_header(head, 0) == 100
    assert timestamp_in_header(head, 1) == -1
    assert timestamp_in_header(batch_of([7, 7])[:HEADER_SIZE], 1) == 7


# Partitions that others lead


@pytest.fixture
def cluster() -> Cluster:
    found = Cluster({1: "broker,controller", 2: "broker", 3: "broker"}, offsets_topic_num_partitions="3").start()
    assert found[1].create("t", partitions=6, replicas=1) == errors.NONE
    for _ in range(20):
        if found[1].ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4).coordinators[0].error_code == errors.NONE:
            break
        found.run(500)
    found.run(1000)
    return found


def leader_of(cluster: Cluster, topic: str, index: int) -> Member:
    return cluster[cluster[1].node.image.topics_by_name[topic].partitions[index].leader]


def commit_at(coordinator: Member, index: int, offset: int) -> None:
    row = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(index, offset, -1, "")])
    answer = coordinator.ask(OffsetCommitRequest("g", topics=[row]), 9)
    assert answer.topics[0].partitions[0].error_code == errors.NONE


def test_other_leaders_are_asked_while_somebody_scrapes(cluster: Cluster) -> None:
    coordinator = leader_of(cluster, "__consumer_offsets", partition_for("g", 3))
    now = cluster.now_ms
    for index in range(6):
        data = batch_of([now - 60_000 + 1000 * n for n in range(index + 2)])
        leader_of(cluster, "t", index).ask(produce_request("t", index, data), 9)
        commit_at(coordinator, index, 1)
    remote = [index for index in range(6) if leader_of(cluster, "t", index) is not coordinator]
    assert 0 < len(remote) < 6
    sources = Sources(coordinator.node)
    page = page_of(coordinator.node, cluster.now_ms, sources=sources)
    assert len(page.rows(f"{GROUP}_lag")) == 6 - len(remote), "nobody has been asked yet"
    assert len(page.rows(f"{GROUP}_current_offset")) == 6
    cluster.run(2000)
    page = page_of(coordinator.node, cluster.now_ms, sources=sources)
    wall_ms = coordinator.node.wall.at(cluster.now_ms)
    for index in range(6):
        assert page[f"{GROUP}_lag", "consumergroup=g", f"partition={index}"] == index + 1
        seconds = page[f"{GROUP}_group_lag_seconds", "group=g", f"partition={index}"]
        assert seconds == (wall_ms - (now - 59_000)) / 1000
    leader = leader_of(cluster, "t", remote[0])
    leader.ask(produce_request("t", remote[0], batch_of([now] * 10)), 9)
    commit_at(coordinator, remote[0], 2)
    cluster.run(6000)
    page = page_of(coordinator.node, cluster.now_ms, sources=sources)
    assert page[f"{GROUP}_lag", "consumergroup=g", f"partition={remote[0]}"] == remote[0] + 10
    opened = [wire for wire in coordinator.outbox.opened if wire.purpose in ("latest offsets", "record times")]
    assert {wire.purpose for wire in opened} == {"latest offsets", "record times"}


def test_nobody_is_asked_long_after_the_last_scrape(cluster: Cluster) -> None:
    coordinator = leader_of(cluster, "__consumer_offsets", partition_for("g", 3))
    for index in range(6):
        commit_at(coordinator, index, 0)
    page_of(coordinator.node, cluster.now_ms)
    cluster.run(lag_watch.WATCHED_MS)
    watch = coordinator.node.lag_watch
    assert watch.ends
    cluster.run(2 * lag_watch.ROUND_MS)
    assert not watch.ends
    assert watch.poll(cluster.now_ms) > cluster.now_ms + 3_600_000


def test_a_leader_that_is_gone_leaves_no_lag_behind(cluster: Cluster) -> None:
    coordinator = leader_of(cluster, "__consumer_offsets", partition_for("g", 3))
    victim = next(member for member in cluster.up() if member.node_id != 1 and member is not coordinator)
    for index in range(6):
        commit_at(coordinator, index, 0)
    gone = [index for index in range(6) if leader_of(cluster, "t", index) is victim]
    sources = Sources(coordinator.node)
    page_of(coordinator.node, cluster.now_ms, sources=sources)
    cluster.run(2000)
    assert len(page_of(coordinator.node, cluster.now_ms, sources=sources).rows(f"{GROUP}_lag")) == 6
    victim.kill()
    cluster.run(40_000)
    page = page_of(coordinator.node, cluster.now_ms, sources=sources)
    assert len(page.rows(f"{GROUP}_lag")) == 6 - len(gone)
