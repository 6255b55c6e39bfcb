"""Three whole nodes: what one leads the others follow, through deaths, deletions, moves and broken directories."""

from __future__ import annotations

import errno

from moldau.protocol import errors
from moldau.protocol.messages.alter_partition_reassignments_request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.records_data import FileRecords
from moldau.replication.partition import Partition
from moldau.storage.disk import File
from tests.unit.node.cluster import Cluster, Member
from tests.unit.node.world import batch, produce_request

ALL = -1


def find(member: Member, topic: str = "t", index: int = 0) -> Partition:
    partition = member.node.replicas.find(topic, index)
    assert partition is not None
    return partition


def has(member: Member, topic: str, index: int = 0) -> bool:
    partition = member.node.replicas.find(topic, index)
    return partition is not None and partition.log is not None


def leader_of(cluster: Cluster, topic: str = "t", index: int = 0) -> Member:
    """The member that leads by its own metadata."""
    cluster.run_until(lambda: any(has(m, topic, index) and find(m, topic, index).is_leader for m in cluster.up()))
    return max((m for m in cluster.up() if has(m, topic, index)), key=lambda m: find(m, topic, index).is_leader)


def produce(cluster: Cluster, values: int = 1, topic: str = "t", index: int = 0) -> int:
    """acks=all; the offset, or minus the error."""
    answer = leader_of(cluster, topic, index).ask(produce_request(topic, index, batch(cluster.now_ms, values), ALL), 9)
    row = answer.responses[0].partition_responses[0]
    return int(row.base_offset) if row.error_code == 0 else -int(row.error_code)


def end(member: Member, topic: str = "t", index: int = 0) -> int:
    partition = member.node.replicas.find(topic, index)
    return -1 if partition is None or partition.log is None else partition.log.log_end_offset


def content(member: Member, topic: str = "t", index: int = 0) -> bytes:
    """The bytes of the whole log."""
    log = find(member, topic, index).log
    assert log is not None
    found = b""
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        result = log.read(offset, 1 << 20, log.log_end_offset, True)
        records, offset = result.records, result.end_offset
        assert isinstance(records, FileRecords) and isinstance(records.file, File)
        found += records.file.read(records.position, records.size)
    return found


def in_sync(cluster: Cluster, count: int, topic: str = "t", index: int = 0) -> bool:
    return all(len(find(m, topic, index).in_sync_replicas) == count for m in cluster.up() if has(m, topic, index))


def started(**settings: str) -> Cluster:
    cluster = Cluster(None, **settings).start()
    assert cluster[1].create("t", 3) == errors.NONE
    cluster.run_until(lambda: all(has(member, "t", 2) for member in cluster.up()))
    return cluster


def test_what_is_acknowledged_by_all_is_the_same_bytes_everywhere() -> None:
    cluster = started()
    assert [produce(cluster, 3) for _ in range(4)] == [0, 3, 6, 9]
    assert [end(member) for member in cluster.up()] == [12, 12, 12]
    assert len({content(member) for member in cluster.up()}) == 1
    took = cluster.run_until(lambda: all(find(m).high_watermark.offset == 12 for m in cluster.up()))
    assert took <= 600, "the high watermark comes with the next answer"


def test_a_new_topic_does_not_wait_for_long_polls_that_are_on_their_way() -> None:
    cluster = started()
    produce(cluster)
    cluster.run(1100)
    assert cluster[1].create("u") == errors.NONE
    started_ms = cluster.now_ms
    assert produce(cluster, topic="u") == 0
    assert cluster.now_ms - started_ms < 100


def test_an_idle_cluster_sends_two_fetches_a_second_that_name_nothing() -> None:
    cluster = started()
    produce(cluster)
    cluster.run(2000)
    fetchers = [fetcher for member in cluster.up() for fetcher in member.node.fetchers.all()]
    before = [fetcher.request_number for fetcher in fetchers]
    cluster.run(10_000)
    sent = [fetcher.request_number - number for fetcher, number in zip(fetchers, before, strict=True)]
    assert all(15 <= count <= 22 for count in sent), sent
    assert not any(fetcher.changes for fetcher in fetchers)


def test_after_the_leader_dies_the_others_go_on_and_it_comes_back_equal() -> None:
    cluster = started()
    produce(cluster, 5)
    dead = leader_of(cluster)
    dead.kill()
    cluster.run_until(lambda: any(find(m).is_leader for m in cluster.up()))
    assert produce(cluster, 2) == 5
    dead.start()
    cluster.run_until(lambda: dead.node.is_ready and end(dead) == 7)
    assert len({content(member) for member in cluster.up()}) == 1
    cluster.run_until(lambda: in_sync(cluster, 3), 60_000)


def test_records_that_only_the_dead_leader_had_are_cut_when_it_comes_back() -> None:
    cluster = started()
    produce(cluster, 2)
    old = leader_of(cluster)
    cluster.cut_off(old)
    cluster.run(700)  # what was asked before is answered still
    old.send(produce_request("t", 0, batch(cluster.now_ms, 4), 1), 9)
    assert end(old) == 6
    cluster.run_until(lambda: any(find(m).is_leader for m in cluster.up() if m is not old), 60_000)
    new = next(m for m in cluster.up() if m is not old and find(m).is_leader)
    answer = new.ask(produce_request("t", 0, batch(cluster.now_ms, 1, b"other"), ALL), 9)
    assert answer.responses[0].partition_responses[0].base_offset == 2
    cluster.heal()
    cluster.run_until(lambda: end(old) == 3, 60_000)
    assert len({content(member) for member in cluster.up()}) == 1


def test_a_deleted_topic_is_fetched_by_nobody_and_one_of_the_same_name_begins_empty() -> None:
    cluster = started()
    produce(cluster, 3)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=5000)
    assert cluster[1].ask(request, 6).responses[0].error_code == errors.NONE
    cluster.run_until(lambda: not any(has(member, "t") for member in cluster.up()))
    assert [len(member.node.fetchers) for member in cluster.up()] == [0, 0, 0]
    assert [member.node.fetchers.all() for member in cluster.up()] == [[], [], []]
    assert cluster[1].create("t") == errors.NONE
    assert produce(cluster, 1) == 0
    assert [end(member) for member in cluster.up()] == [1, 1, 1]


def reassign(cluster: Cluster, replicas: list[int], index: int = 0) -> int:
    partition = ReassignablePartition(partition_index=index, replicas=replicas)
    topics = [ReassignableTopic(name="t", partitions=[partition])]
    response = cluster[1].ask(AlterPartitionReassignmentsRequest(topics=topics, timeout_ms=5000), 0)
    assert response.error_code == errors.NONE
    return int(response.responses[0].partitions[0].error_code)


def test_a_reassigned_partition_is_copied_to_its_new_replica_and_removed_from_the_old_one() -> None:
    cluster = Cluster({1: "broker,controller", 2: "broker", 3: "broker", 4: "broker"}).start()
    assert cluster[1].create("t", 1, 3) == errors.NONE
    cluster.run_until(lambda: sum(has(member, "t") for member in cluster.up()) == 3)
    assert produce(cluster, 6) == 0
    leader = leader_of(cluster).node_id
    holders = [member.node_id for member in cluster.up() if has(member, "t")]
    gone = next(node_id for node_id in holders if node_id != leader)
    new = next(member for member in cluster.up() if not has(member, "t"))
    wanted = [leader, new.node_id, *[n for n in holders if n not in (leader, gone)]]
    assert reassign(cluster, wanted) == errors.NONE
    cluster.run_until(lambda: end(new) == 6 and not has(cluster[gone], "t"), 60_000)
    assert content(new) == content(cluster[leader])
    assert len(cluster[gone].node.fetchers) == 0
    assert [name for name in cluster[gone].disk.list("/data") if name.startswith("t-0") and "-delete" not in name] == []
    cluster.run(100)
    assert produce(cluster, 1) == 6


def test_a_directory_that_fails_at_a_follower_costs_that_replica_and_no_other() -> None:
    cluster = started(**{"log.dirs": "/data,/data2"})
    for index in range(3):
        assert produce(cluster, 1, index=index) == 0
    follower, index = next(
        (member, index)
        for member in cluster.up()
        for index in range(3)
        if not find(member, "t", index).is_leader and directory_of(member, index) == "/data2"
    )
    leader = leader_of(cluster, "t", index)
    follower.disk.fail("append", f"/data2/t-{index}/", errno.EIO)
    waiting = leader.send(produce_request("t", index, batch(cluster.now_ms), ALL), 9)
    cluster.run_until(lambda: len(find(leader, "t", index).in_sync_replicas) == 2)
    assert not find(follower, "t", index).is_online()
    assert follower.node.fetchers.follower(find(follower, "t", index).topic_id, index) is None
    for other in range(3):
        if other != index:
            assert produce(cluster, 1, index=other) == 1
    # It was in sync a moment ago, but it does not fetch any more: nobody waits for it to come back.
    assert cluster.run_until(lambda: waiting.reply.done) < 100
    assert waiting.response.responses[0].partition_responses[0].error_code == errors.NONE
    assert produce(cluster, 1, index=index) == 2


def directory_of(member: Member, index: int) -> str:
    log = find(member, "t", index).log
    assert log is not None
    return log.log_directory.path


def test_with_flush_messages_what_all_acknowledge_is_on_the_medium_of_all() -> None:
    cluster = started(**{"log.flush.interval.messages": "1"})
    for _ in range(5):
        offset = produce(cluster, 2)
        for member in cluster.up():
            log = find(member).log
            assert log is not None and log.recovery_point >= offset + 2
