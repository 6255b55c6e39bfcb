"""Three whole nodes: acknowledged writes, failover, rejoining, consumers that read in their own rack."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.config.definitions import ConfigError
from moldau.protocol import errors
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import PartitionData
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.replication.partition import Partition
from moldau.replication.replica_selector import RACK_AWARE_SELECTOR
from tests.unit.node.cluster import Cluster, Member
from tests.unit.node.world import batch, produce_request

PLENTY = 1 << 20


def partition_at(member: Member, topic: str = "t") -> Partition:
    found = member.node.replicas.find(topic, 0)
    assert found is not None and found.log is not None
    return found


def leader_of(cluster: Cluster, topic: str = "t") -> Member:
    """Who leads, and knows it."""
    leading = [member for member in cluster.up() if partition_at(member, topic).is_leader]
    return max(leading, key=lambda member: partition_at(member, topic).leader_epoch)


def followers_of(cluster: Cluster) -> list[Member]:
    return [member for member in cluster.up() if member is not leader_of(cluster)]


def write(cluster: Cluster, values: int = 1) -> tuple[int, int]:
    request = produce_request("t", 0, batch(cluster.now_ms, values), -1)
    request.timeout_ms = 30_000
    response = leader_of(cluster).ask(request, 9, limit_ms=40_000)
    row = response.responses[0].partition_responses[0]
    return row.error_code, row.base_offset


def state(cluster: Cluster) -> set[tuple[int, int, int]]:
    """(log end, high watermark, number in sync) wherever there is a replica."""
    found = set()
    for member in cluster.up():
        partition = partition_at(member)
        assert partition.log is not None
        found.add((partition.log.log_end_offset, partition.high_watermark.offset, len(partition.in_sync_replicas)))
    return found


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster().start()
    assert cluster[1].create("t", 1, 3) == errors.NONE
    cluster.run(200)
    return cluster


def test_what_is_acknowledged_is_on_all_of_them_and_all_know_it(cluster: Cluster) -> None:
    assert write(cluster, 3) == (errors.NONE, 0)
    assert {end for end, _, _ in state(cluster)} == {3}
    cluster.run(20)
    assert state(cluster) == {(3, 3, 3)}


def test_a_killed_leader_is_followed_by_another_and_comes_back_in_sync(cluster: Cluster) -> None:
    write(cluster, 3)
    dead = leader_of(cluster)
    dead.kill()
    cluster.run_until(lambda: any(partition_at(member).is_leader for member in cluster.up()))
    assert write(cluster, 2) == (errors.NONE, 3)
    dead.start()
    cluster.run_until(lambda: dead.node.is_ready)
    cluster.run_until(lambda: state(cluster) == {(5, 5, 3)})
    assert not partition_at(dead).is_leader
    assert write(cluster) == (errors.NONE, 5)


def test_a_follower_that_hangs_leaves_the_isr_and_returns(cluster: Cluster) -> None:
    for member in cluster.up():
        member.node.replicas.context.brokers.lag_max_ms = 2000
    write(cluster)
    slow = followers_of(cluster)[0]
    cluster.cut_off(slow)
    assert write(cluster) == (errors.NONE, 1), "the controller takes it out, or the leader does"
    leader = partition_at(leader_of(cluster))
    assert slow.node_id not in leader.in_sync_replicas and len(leader.in_sync_replicas) == 2
    cluster.heal()
    cluster.run_until(lambda: state(cluster) == {(2, 2, 3)})


def test_a_group_goes_on_with_another_coordinator(cluster: Cluster) -> None:
    for member in cluster.up():
        assert member.node.config.get_int("offsets.topic.replication.factor") == 3

    def commit(member: Member, offset: int) -> int:
        rows = [OffsetCommitRequestPartition(0, offset, -1, "")]
        request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", partitions=rows)])
        return int(member.ask(request, 9).topics[0].partitions[0].error_code)

    def commit_somewhere(offset: int) -> Member:
        for _ in range(200):
            for member in cluster.up():
                if member.node.is_ready and commit(member, offset) == errors.NONE:
                    return member
            cluster.run(100)
        raise AssertionError("nobody coordinates the group")

    cluster[1].ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    cluster.run(1000)
    first = commit_somewhere(5)
    first.kill()
    assert commit_somewhere(6) is not first


def test_who_waits_for_a_leader_that_leaves_is_told_where_to_go(cluster: Cluster) -> None:
    old = leader_of(cluster)
    slow = followers_of(cluster)[0]
    cluster.cut_off(slow)
    request = produce_request("t", 0, batch(cluster.now_ms), -1)
    request.topic_data[0].topic_id = partition_at(old).topic_id
    request.topic_data[0].name = ""
    request.timeout_ms = 30_000
    asked = old.send(request, 13)
    cluster.run(100)
    assert not asked.reply.done
    old.node.begin_shutdown(cluster.now_ms, lambda: None)
    cluster.run_until(lambda: asked.reply.done)
    row = asked.response.responses[0].partition_responses[0]
    now = partition_at(old).leader
    assert now not in (old.node_id, slow.node_id)
    assert (row.error_code, row.current_leader.leader_id) == (errors.NOT_LEADER_OR_FOLLOWER, now)
    assert [endpoint.node_id for endpoint in asked.response.node_endpoints] == [now]


def test_deleted_records_are_gone_everywhere_before_the_answer(cluster: Cluster) -> None:
    write(cluster, 5)
    rows = [DeleteRecordsPartition(partition_index=0, offset=4)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=rows)], timeout_ms=5000)
    began_ms = cluster.now_ms
    result = leader_of(cluster).ask(request, 2).topics[0].partitions[0]
    assert (result.error_code, result.low_watermark) == (errors.NONE, 4)
    assert cluster.now_ms - began_ms < 20, "it does not wait for a long poll to end"
    for member in cluster.up():
        log = partition_at(member).log
        assert log is not None and log.log_start_offset == 4


# Reading from the nearest replica (KIP-392)


def fetch(member: Member, offset: int, rack: str, version: int = 12, **fields: Any) -> PartitionData:
    row = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=PLENTY)
    values: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": PLENTY, "session_epoch": -1}
    request = FetchRequest(topics=[FetchTopic(topic="t", partitions=[row])], rack_id=rack, **{**values, **fields})
    answer = member.ask(request, version).responses[0].partitions[0]
    assert isinstance(answer, PartitionData)
    return answer


def size(row: PartitionData) -> int:
    return 0 if row.records is None else row.records.size


@pytest.fixture
def racks() -> Cluster:
    cluster = Cluster(replica_selector_class=RACK_AWARE_SELECTOR)
    for member in cluster.members.values():
        member.values["broker.rack"] = f"rack-{member.node_id}"
    cluster.start()
    assert cluster[1].create("t", 1, 3) == errors.NONE
    cluster.run(200)
    write(cluster, 3)
    cluster.run(20)
    return cluster


def test_a_consumer_is_sent_to_the_replica_in_its_rack_and_reads_there(racks: Cluster) -> None:
    leader, near = leader_of(racks), followers_of(racks)[0]
    sent = fetch(leader, 0, f"rack-{near.node_id}", max_wait_ms=500, min_bytes=PLENTY)
    assert (sent.error_code, sent.preferred_read_replica, size(sent)) == (errors.NONE, near.node_id, 0)
    read = fetch(near, 0, f"rack-{near.node_id}")
    assert (read.error_code, read.high_watermark, size(read) > 0) == (errors.NONE, 3, True)


def test_the_leader_serves_its_own_rack_and_racks_without_a_replica(racks: Cluster) -> None:
    leader = leader_of(racks)
    for rack in (f"rack-{leader.node_id}", "elsewhere", ""):
        read = fetch(leader, 0, rack)
        assert (read.preferred_read_replica, size(read) > 0) == (-1, True)


def test_a_replica_that_is_not_in_sync_or_does_not_have_the_offset_is_not_recommended(racks: Cluster) -> None:
    leader, near = leader_of(racks), followers_of(racks)[0]
    state = partition_at(leader).leader_state
    assert state is not None
    follower = state.find(near.node_id)
    assert follower is not None
    follower.log_start_offset = 2
    assert fetch(leader, 1, f"rack-{near.node_id}").preferred_read_replica == -1
    assert fetch(leader, 2, f"rack-{near.node_id}").preferred_read_replica == near.node_id
    state.in_sync.committed = [leader.node_id]
    assert fetch(leader, 2, f"rack-{near.node_id}").preferred_read_replica == -1


def test_a_follower_serves_up_to_its_high_watermark_and_does_not_send_consumers_back(racks: Cluster) -> None:
    near = followers_of(racks)[0]
    racks.cut_off(near)
    leader_of(racks).send(produce_request("t", 0, batch(racks.now_ms), 1), 9)
    assert fetch(near, 4, f"rack-{near.node_id}").error_code == errors.OFFSET_NOT_AVAILABLE
    assert fetch(near, 3, f"rack-{near.node_id}").error_code == errors.NONE
    partition_at(near).high_watermark.restart_at(2)
    assert size(fetch(near, 2, f"rack-{near.node_id}")) == 0


def test_a_consumer_that_knows_nothing_of_racks_reads_from_the_leader_only(racks: Cluster) -> None:
    assert fetch(followers_of(racks)[0], 0, "", version=10).error_code == errors.NOT_LEADER_OR_FOLLOWER


def test_a_waiting_consumer_at_a_follower_is_served_when_records_are_committed(racks: Cluster) -> None:
    near = followers_of(racks)[0]
    row = FetchPartition(partition=0, fetch_offset=3, partition_max_bytes=PLENTY)
    request = FetchRequest(
        topics=[FetchTopic(topic="t", partitions=[row])],
        max_wait_ms=10_000,
        min_bytes=1,
        max_bytes=PLENTY,
        session_epoch=-1,
    )
    asked = near.send(request, 12)
    write(racks)
    racks.run_until(lambda: asked.reply.done, 100)
    assert size(asked.response.responses[0].partitions[0]) > 0


def test_a_selector_of_ones_own_cannot_be_loaded() -> None:
    with pytest.raises(ConfigError, match=r"replica\.selector\.class"):
        Cluster(replica_selector_class="com.example.Mine").start()
