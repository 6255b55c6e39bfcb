"""The metadata quorum as this node sees it, and its connections: the names of Kafka's raft-metrics."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.metrics.traffic import Traffic
from moldau.node.node import Node
from moldau.node.quorum_peers import ASKING, FETCHING
from moldau.protocol.uuids import uuid_to_text
from moldau.raft.replica import Raft
from moldau.raft.roles import Candidate, Follower, Leader, Prospective, Unattached
from moldau.raft.state import NO_NODE, NO_REPLICA
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric
from moldau.server.metrics.rates import Rates
from moldau.server.metrics.spread import average_metrics

RAFT = "kafka_server_raftmetrics"
CHANNEL = "kafka_server_raftchannelmetrics"


def raft_metrics(node: Node, rates: Rates, now_ms: int, now_s: float) -> list[Metric]:
    raft = node.metadata.raft
    role = raft.role
    voted = raft.local if isinstance(role, Leader | Candidate) else role.voted
    state = Metric(f"{RAFT}_current_state", GAUGE, "1 with the role that this node has in the quorum")
    state.values[(("current_state", state_of(raft)),)] = 1
    directory = Metric(f"{RAFT}_current_vote_directory_id", GAUGE, "1 with the directory that this node voted for")
    directory.values[(("current_vote_directory_id", uuid_to_text(voted.directory_id)),)] = 1
    unknown = sum(raft.address_of(voter_id) is None for voter_id in raft.voters.ids())
    gauges = [
        ("current_leader", "The node that leads the quorum; -1 while none is known", raft.leader_id),
        (
            "current_vote",
            "The node that got this one's vote; -1 for none",
            voted.id if voted != NO_REPLICA else NO_NODE,
        ),
        ("current_epoch", "The epoch of the quorum", raft.epoch),
        ("high_watermark", "What is committed of the metadata log", raft.high_watermark),
        ("log_end_offset", "Where this node's copy of the metadata log ends", raft.log.end_offset()),
        ("log_end_epoch", "The epoch of its last record", raft.log.last_epoch()),
        ("number_of_voters", "Voters of the quorum", len(raft.voters.ids())),
        ("number_unknown_voter_connections", "Voters whose address is not known", unknown),
    ]
    if isinstance(role, Leader):
        gauges += [
            ("number_of_observers", "Nodes that follow the quorum without a vote", len(role.observers)),
            ("uncommitted_voter_change", "1 while a change of the voters is under way", int(role.change is not None)),
        ]
    metrics = [Metric(f"{RAFT}_{stem}", GAUGE, about, value) for stem, about, value in gauges]
    for stem, about, total in (
        ("fetch_records_rate", "Records a second that this node fetched from the leader", raft.fetched_records),
        ("append_records_rate", "Records a second that this node appended as the leader", raft.appended_records),
    ):
        metrics.append(Metric(f"{RAFT}_{stem}", GAUGE, about, rates.rate(stem, (), total, now_s)))
    metadata = node.metadata
    return [
        state,
        directory,
        *metrics,
        *average_metrics(f"{RAFT}_commit_latency", "Time from append to commit, in ms", metadata.commit_times, now_ms),
        *average_metrics(
            f"{RAFT}_election_latency", "Time that elections took, in ms", metadata.election_times, now_ms
        ),
    ]


def state_of(raft: Raft) -> str:
    """In Kafka's words."""
    role = raft.role
    if isinstance(role, Follower | Unattached) and not raft.voters.is_voter(raft.local):
        return "observer"
    if isinstance(role, Unattached | Prospective) and role.voted != NO_REPLICA:
        return f"{role.name}-voted"
    return role.name


def raft_channel_metrics(outboxes: Iterable[dict[str, Traffic]], rates: Rates, now_s: float) -> list[Metric]:
    """Of the connections that this node opened to others of the quorum."""
    found = Traffic()
    for traffic in outboxes:
        for purpose in (ASKING, FETCHING):
            if purpose in traffic:
                found.add(traffic[purpose])
    metrics = []
    for stem, about, total in (
        ("incoming_byte", "Bytes received", found.bytes_in),
        ("outgoing_byte", "Bytes sent", found.bytes_out),
        ("request", "Requests sent", found.requests),
        ("response", "Responses received", found.responses),
        ("network_io", "Requests sent and responses received", found.requests + found.responses),
    ):
        metrics.append(Metric(f"{CHANNEL}_{stem}_total", COUNTER, f"{about}, between nodes of the quorum", total))
        rate = rates.rate(CHANNEL, (("of", stem),), total, now_s)
        metrics.append(Metric(f"{CHANNEL}_{stem}_rate", GAUGE, f"{about} a second, between nodes of the quorum", rate))
    return metrics
