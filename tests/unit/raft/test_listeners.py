"""A quorum with two controller listeners, as while one is replaced by the other: each is told what it can talk to."""

from __future__ import annotations

import random

from moldau.raft import messages as m
from moldau.raft.core import RaftConfig
from moldau.raft.replica import Raft
from moldau.raft.state import ReplicaKey
from moldau.raft.voters import Voter, VoterHistory, VoterSet
from tests.unit.raft.memory_log import MemoryLog

ZERO = bytes(16)
Endpoints = tuple[tuple[str, str, int], ...]


def endpoints_of(node_id: int) -> Endpoints:
    return (("OLD", f"node{node_id}", 9090), ("NEW", f"node{node_id}", 9190))


def replica(node_id: int, listener: str, endpoints: Endpoints | None = None) -> Raft:
    """One of three static voters, whose settings name the others' addresses on the listener that it talks to."""
    port = 9090 if listener == "OLD" else 9190
    voters = VoterSet([Voter(ReplicaKey(i, ZERO), ((listener, f"node{i}", port),)) for i in (1, 2, 3)])
    own = endpoints_of(node_id) if endpoints is None else endpoints
    key, history = ReplicaKey(node_id, ZERO), VoterHistory(voters, 0)
    raft = Raft(RaftConfig(), key, MemoryLog(), history, random.Random(1), own, listener_name=listener)
    raft.start(None, 0)
    raft.take_ready()
    return raft


def introduce(raft: Raft, leader_id: int, endpoints: Endpoints) -> None:
    raft.on_request(m.BeginEpochRequest(5, leader_id, ReplicaKey(2, ZERO), endpoints), "token", 0)
    raft.take_ready()


def test_who_talks_to_the_new_listener_goes_there_whichever_is_first_of_its_own() -> None:
    raft = replica(2, "NEW")
    assert raft.address_of(3) == ("node3", 9190)
    introduce(raft, 3, endpoints_of(3))
    assert raft.address_of(3) == ("node3", 9190)
    assert raft.address_of(2) == ("node2", 9190)


def test_who_came_by_a_listener_is_told_the_leader_on_the_same() -> None:
    raft = replica(2, "OLD")
    introduce(raft, 3, endpoints_of(3))
    assert raft.address_for(3, "OLD") == ("node3", 9090)
    assert raft.address_for(3, "NEW") == ("node3", 9190)
    assert raft.address_for(2, "NEW") == ("node2", 9190)


def test_nobody_is_sent_to_a_listener_it_cannot_talk_to() -> None:
    raft = replica(2, "NEW")
    introduce(raft, 3, endpoints_of(3)[:1])
    assert raft.address_of(3) == ("node3", 9190), "the address in its own settings"
    assert raft.address_for(3, "OLD") == ("node3", 9090)
    assert raft.address_for(1, "OLD") is None


def test_a_broker_talks_to_the_listener_of_its_settings() -> None:
    raft = replica(4, "NEW", endpoints=())
    dynamic = VoterSet([Voter(ReplicaKey(i, ZERO), endpoints_of(i)) for i in (1, 2, 3)])
    raft.voter_history.add_voters(0, dynamic)
    assert raft.address_of(1) == ("node1", 9190)
