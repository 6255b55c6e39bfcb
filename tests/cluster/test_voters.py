"""The voters of a running cluster change: a static quorum becomes a dynamic one, voters leave and come back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from moldau.protocol import errors
from moldau.protocol.messages import add_raft_voter_request as add
from moldau.protocol.messages import describe_quorum_request as describe
from moldau.protocol.messages import update_features_request as features
from moldau.protocol.messages.describe_quorum_response import (
    DescribeQuorumResponse,
    Node,
    PartitionData,
    ReplicaState,
)
from moldau.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from moldau.protocol.primitives import Message
from tests.cluster.cluster_nodes import QUICK, Cluster, wait_for
from tests.cluster.conftest import TOPIC, create_topic
from tests.cluster.proxy import HOST
from tests.cluster.stuck_node import StuckNode
from tests.interop.wire import Wire
from tests.pace import patience, patience_ms

FETCH_TIMEOUT_S = patience(10)
"""Of the nodes that show that it is not needed: far more than a succession takes on the slowest machine."""


def test_voters_are_removed_and_added_and_the_leader_can_go(cluster: Cluster) -> None:
    """Asked of a broker that does not lead the quorum, which passes it on."""
    before = quorum(cluster, 1)
    leader = before.leader_id
    asked, other = sorted({1, 2, 3} - {leader})
    raised = features.UpdateFeaturesRequest(
        patience_ms(5000), [features.FeatureUpdateKey("kraft.version", 1, upgrade_type=1)]
    )
    wait_for(lambda: ask(cluster, asked, raised, 2).error_code == errors.NONE, 10, "kraft.version is 1", pause_s=0.2)
    nodes = described(cluster, asked).nodes
    voters = {voter.replica_id: voter for voter in quorum(cluster, asked).current_voters}

    change(cluster, asked, removal(voters[other]))
    await_voters(cluster, asked, {leader, asked})
    change(cluster, asked, addition(voters[other], nodes))
    await_voters(cluster, asked, {1, 2, 3})

    change(cluster, asked, removal(voters[leader]))
    await_voters(cluster, asked, {asked, other})
    assert quorum(cluster, asked).leader_id != leader
    change(cluster, asked, addition(voters[leader], nodes))
    await_voters(cluster, asked, {1, 2, 3})
    cluster.await_full_isr(TOPIC)


def test_a_killed_leader_of_the_quorum_is_succeeded_without_a_timeout(tmp_path: Path) -> None:
    """A dead process is not waited for: the others know at once, and not when their fetch timeout is over."""
    timeout = {"controller.quorum.fetch.timeout.ms": str(round(FETCH_TIMEOUT_S * 1000))}
    with Cluster(tmp_path, 3, {**QUICK, **timeout}, StuckNode) as cluster:
        cluster.start()
        create_topic(cluster)
        leader = quorum(cluster, 1).leader_id
        assert kill_leader(cluster, leader, 1 if leader != 1 else 2) < FETCH_TIMEOUT_S
        cluster.start(leader)
        cluster.await_full_isr(TOPIC)


def kill_leader(cluster: Cluster, leader: int, survivor: int) -> float:
    """How long it took until a survivor told of another one."""
    epoch = quorum(cluster, survivor).leader_epoch
    began = time.monotonic()
    cluster.kill(leader)
    wait_for(lambda: quorum(cluster, survivor).leader_epoch > epoch, 30, "there is a new leader")
    return time.monotonic() - began


def ask(cluster: Cluster, node_id: int, request: Message, version: int) -> Any:
    with Wire(HOST, cluster.nodes[node_id].port) as wire:
        return wire.ask(request, version)


def described(cluster: Cluster, node_id: int) -> DescribeQuorumResponse:
    topic = describe.TopicData("__cluster_metadata", [describe.PartitionData(0)])
    answer: DescribeQuorumResponse = ask(cluster, node_id, describe.DescribeQuorumRequest([topic]), 2)
    return answer


def quorum(cluster: Cluster, node_id: int) -> PartitionData:
    answer = described(cluster, node_id)
    return answer.topics[0].partitions[0] if answer.topics else PartitionData(leader_epoch=-1)


def removal(voter: ReplicaState) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(None, voter.replica_id, voter.replica_directory_id)


def addition(voter: ReplicaState, nodes: list[Node]) -> add.AddRaftVoterRequest:
    (node,) = [node for node in nodes if node.node_id == voter.replica_id]
    listeners = [add.Listener(listener.name, listener.host, listener.port) for listener in node.listeners]
    return add.AddRaftVoterRequest(None, patience_ms(5000), voter.replica_id, voter.replica_directory_id, listeners)


def change(cluster: Cluster, node_id: int, request: Message) -> None:
    """What may be tried again is: another change may be under way, or the new voter not have caught up."""
    seen: list[Any] = []

    def is_done() -> bool:
        seen.append(ask(cluster, node_id, request, 0))
        return bool(seen[-1].error_code == errors.NONE)

    wait_for(is_done, 15, f"{type(request).__name__} succeeds", lambda: f"{seen}\n{cluster.outputs()}", 0.2)


def await_voters(cluster: Cluster, node_id: int, wanted: set[int]) -> None:
    def is_so() -> bool:
        return {voter.replica_id for voter in quorum(cluster, node_id).current_voters} == wanted

    wait_for(is_so, 15, f"the voters are {wanted}", cluster.outputs, 0.1)
