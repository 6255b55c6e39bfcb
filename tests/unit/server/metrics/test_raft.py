"""What nodes tell of the quorum, in Kafka's words."""

from __future__ import annotations

from moldau.metrics.recent_times import WINDOW_MS, RecentTimes
from moldau.metrics.traffic import Traffic
from moldau.server.metrics.collect import Sources
from moldau.server.metrics.metric import CONFLUENT
from tests.unit.node.cluster import BOTH, Cluster
from tests.unit.server.metrics.pages import page_of

RAFT = "kafka_server_raftmetrics"


def test_leader_follower_and_observer() -> None:
    cluster = Cluster({1: BOTH, 2: BOTH, 3: BOTH, 4: "broker"}).start()
    cluster.run(1000)
    leader = cluster.active()
    page = page_of(leader.node, cluster.now_ms)
    assert page[f"{RAFT}_current_state", "current_state=leader"] == 1
    assert page[f"{RAFT}_current_leader"] == page[f"{RAFT}_current_vote"] == leader.node_id
    assert page[f"{RAFT}_current_epoch"] == leader.node.metadata.raft.epoch > 0
    assert page[f"{RAFT}_log_end_offset"] >= page[f"{RAFT}_high_watermark"] > 10
    assert page[f"{RAFT}_number_of_voters"] == 3 and page[f"{RAFT}_number_of_observers"] == 1
    assert page[f"{RAFT}_uncommitted_voter_change"] == page[f"{RAFT}_number_unknown_voter_connections"] == 0
    assert page[f"{RAFT}_commit_latency_max"] >= page[f"{RAFT}_commit_latency_avg"] > 0
    assert page[f"{RAFT}_election_latency_max"] > 0
    follower = next(member for member in cluster.up() if member is not leader and member.node_id != 4)
    page = page_of(follower.node, cluster.now_ms)
    assert page[f"{RAFT}_current_state", "current_state=follower"] == 1
    assert page[f"{RAFT}_current_leader"] == leader.node_id
    assert not page.rows(f"{RAFT}_number_of_observers")
    page = page_of(cluster[4].node, cluster.now_ms, CONFLUENT)
    latency = page["kafka_server_raft_metrics_commit_latency_max"]
    assert latency != latency, "it commits nothing"
    assert page["kafka_server_raft_metrics_current_state", "current_state=observer"] == 1
    assert page["kafka_server_raft_metrics_current_vote"] == -1


def test_rates_are_of_the_time_between_scrapes() -> None:
    cluster = Cluster().start()
    leader = cluster.active()
    follower = next(member for member in cluster.up() if member is not leader)
    sources = {member: Sources(member.node) for member in (leader, follower)}
    for member, source in sources.items():
        assert page_of(member.node, cluster.now_ms, sources=source)[f"{RAFT}_append_records_rate"] == 0
    before = {member: member.node.metadata.raft for member in sources}
    appended, fetched = before[leader].appended_records, before[follower].fetched_records
    cluster[1].create("t", partitions=50, replicas=1)
    cluster.run(20_000)
    seconds = (cluster.now_ms - 1_700_000_000_000) / 1000
    page = page_of(leader.node, cluster.now_ms, sources=sources[leader])
    assert (
        page[f"{RAFT}_append_records_rate"] * seconds >= leader.node.metadata.raft.appended_records - appended - 1 > 50
    )
    page = page_of(follower.node, cluster.now_ms, sources=sources[follower])
    assert (
        page[f"{RAFT}_fetch_records_rate"] * seconds >= follower.node.metadata.raft.fetched_records - fetched - 1 > 50
    )


def test_connections_between_nodes_of_the_quorum() -> None:
    cluster = Cluster().start()
    asking, fetching, other = Traffic(), Traffic(), Traffic()
    asking.bytes_out, fetching.bytes_in, other.bytes_out = 10, 500, 9999
    asking.requests, fetching.requests, fetching.responses = 1, 7, 6
    outboxes = [{"raft": asking, "replication": other}, {"raft-fetch": fetching}]
    page = page_of(cluster[1].node, cluster.now_ms, outboxes=outboxes)
    prefix = "kafka_server_raftchannelmetrics"
    told = [
        page[f"{prefix}_{name}_total"]
        for name in ("outgoing_byte", "incoming_byte", "request", "response", "network_io")
    ]
    assert told == [10, 500, 8, 6, 14]


def test_times_are_those_of_the_last_minute() -> None:
    times = RecentTimes()
    assert times.average_and_max(1000) is None
    times.record(10, 100_000)
    times.record(30, 100_000)
    assert times.average_and_max(100_000 + WINDOW_MS - 1) == (20, 30)
    times.record(5, 100_000 + WINDOW_MS)
    assert times.average_and_max(100_000 + WINDOW_MS) == (15, 30)
    assert times.average_and_max(100_000 + 2 * WINDOW_MS) == (5, 5)
    assert times.average_and_max(100_000 + 9 * WINDOW_MS) is None
    assert times.count == 3
