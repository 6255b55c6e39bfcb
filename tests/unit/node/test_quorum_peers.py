"""Requests of the quorum through the outbox: addresses, channels, answers, failures."""

from __future__ import annotations

from moldau.node import outbox as reasons
from moldau.node.outbox import Channel, NoResponse, OnResponse, Outbox
from moldau.node.quorum_peers import QuorumPeers
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import ZERO_UUID
from moldau.raft import messages as m
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.ready import Outbound
from moldau.raft.state import ReplicaKey
from moldau.raft.wire import reply_to_wire


class Sent(Channel):
    def __init__(self, purpose: str, host: str, port: int) -> None:
        self.name = f"{purpose} {host}:{port}"
        self.sent: list[tuple[int, int, Message, int]] = []
        self.answered: list[OnResponse] = []
        self.closed = False

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        self.sent.append((api_key, version, request, timeout_ms))
        self.answered.append(answered)

    def close(self) -> None:
        self.closed = True


class Wires(Outbox):
    def __init__(self) -> None:
        self.channels: list[Sent] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        self.channels.append(Sent(purpose, host, port))
        return self.channels[-1]


class Setting:
    def __init__(self) -> None:
        self.wires = Wires()
        self.addresses: dict[int, tuple[str, int]] = {2: ("two", 9093)}
        self.replies: list[tuple[Outbound, m.Reply, int]] = []
        self.failures: list[tuple[Outbound, int, int]] = []
        self.peers = QuorumPeers(
            self.wires,
            self.addresses.get,
            "cluster",
            2000,
            lambda outbound, reply, now_ms: self.replies.append((outbound, reply, now_ms)),
            lambda outbound, now_ms, reason: self.failures.append((outbound, now_ms, reason)),
        )


def fetch(destination: int = 2) -> Outbound:
    return Outbound(destination, m.FetchRequest(1, ReplicaKey(1, ZERO_UUID), 5, 1, 500, 1000, 4))


def vote(destination: int = 2) -> Outbound:
    me, you = ReplicaKey(1, ZERO_UUID), ReplicaKey(destination, ZERO_UUID)
    return Outbound(destination, m.VoteRequest(1, me, you, OffsetAndEpoch(5, 1), True))


def test_a_fetch_goes_to_the_address_of_its_voter_and_the_answer_names_the_leader() -> None:
    """The timeout of a long poll is the request's and the wait; the leader's address comes from NodeEndpoints."""
    setting = Setting()
    asked = fetch()
    setting.peers.send(asked, 0)
    (channel,) = setting.wires.channels
    assert channel.name == "raft-fetch two:9093"
    api_key, version, _, timeout_ms = channel.sent[0]
    assert (api_key, version, timeout_ms) == (1, 18, 2500)
    answer = m.FetchReply(6, 3, 7, leader_address=("three", 9093))
    channel.answered[0](reply_to_wire(answer), 77)
    ((outbound, reply, now_ms),) = setting.replies
    assert outbound is asked and now_ms == 77
    assert (reply.error, reply.leader_id, reply.epoch, reply.leader_address) == (6, 3, 7, ("three", 9093))


def test_a_vote_does_not_wait_behind_a_fetch() -> None:
    setting = Setting()
    setting.peers.send(fetch(), 0)
    setting.peers.send(vote(), 0)
    assert [channel.name for channel in setting.wires.channels] == ["raft-fetch two:9093", "raft two:9093"]
    assert not any(channel.closed for channel in setting.wires.channels)


def test_a_request_that_was_given_up_is_abandoned_with_its_connection() -> None:
    """Its late answer must not be taken for the answer of the next one."""
    setting = Setting()
    setting.peers.send(fetch(), 0)
    setting.peers.send(fetch(), 100)
    first, second = setting.wires.channels
    assert first.closed and not second.closed
    first.answered[0](NoResponse(reasons.CLOSED), 101)
    assert setting.failures == []


def test_an_answered_channel_is_used_again() -> None:
    setting = Setting()
    setting.peers.send(fetch(), 0)
    setting.wires.channels[0].answered[0](reply_to_wire(m.FetchReply(0, 2, 1)), 1)
    setting.peers.send(fetch(), 2)
    assert len(setting.wires.channels) == 1


def test_a_voter_that_moved_is_asked_at_its_new_address() -> None:
    setting = Setting()
    setting.peers.send(vote(), 0)
    setting.addresses[2] = ("elsewhere", 9094)
    setting.peers.send(vote(), 1)
    assert setting.wires.channels[0].closed
    assert setting.wires.channels[1].name == "raft elsewhere:9094"


def test_failures_come_back_with_their_reason() -> None:
    setting = Setting()
    asked = fetch()
    setting.peers.send(asked, 0)
    setting.wires.channels[0].answered[0](NoResponse(reasons.REFUSED), 5)
    assert setting.failures == [(asked, 5, m.REFUSED)]


def test_an_unknown_node_is_unreachable() -> None:
    setting = Setting()
    asked = fetch(9)
    setting.peers.send(asked, 3)
    assert setting.failures == [(asked, 3, m.UNREACHABLE)] and not setting.wires.channels


def test_an_answer_without_the_partition_is_a_failure() -> None:
    """Such as the one for a wrong cluster id, which is an error as a whole."""
    setting = Setting()
    setting.peers.send(fetch(), 0)
    setting.wires.channels[0].answered[0](FetchResponse(error_code=104), 5)
    assert [reason for _, _, reason in setting.failures] == [m.TIMED_OUT]


def test_the_reasons_have_the_same_numbers_in_raft() -> None:
    assert (m.REFUSED, m.CLOSED, m.TIMED_OUT, m.UNREACHABLE) == (
        reasons.REFUSED,
        reasons.CLOSED,
        reasons.TIMED_OUT,
        reasons.UNREACHABLE,
    )


def test_after_close_nothing_comes_back() -> None:
    setting = Setting()
    setting.peers.send(fetch(), 0)
    setting.peers.close()
    assert setting.wires.channels[0].closed
    setting.wires.channels[0].answered[0](NoResponse(reasons.CLOSED), 1)
    assert setting.failures == []
