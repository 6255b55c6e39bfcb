"""Moldau and Apache Kafka refuse and slow down the same changes of topics under a quota, and do all of them in the end.

Tokens come back with time: how long a client is told to wait is held against what is owed at most, and against that
less the time that the test took.
"""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.alter_client_quotas_request import (
    AlterClientQuotasRequest,
    EntityData,
    EntryData,
    OpData,
)
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest, CreatePartitionsTopic
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.describe_client_quotas_request import ComponentData, DescribeClientQuotasRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.primitives import Message
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.pace import moment, patience, patience_ms

SECONDS = patience(20)
SETTLE_S = 0.5
ROUNDING_MS = 5
THROTTLED = errors.THROTTLING_QUOTA_EXCEEDED


def limit(peer: Peer, client_id: str, rate: float | None) -> None:
    """Sets or removes the quota of a client id, and waits until it holds."""
    op = OpData("controller_mutation_rate", rate or 0.0, rate is None)
    request = AlterClientQuotasRequest([EntryData([EntityData("client-id", client_id)], [op])])
    assert [row.error_code for row in peer.ask(request, 1).entries] == [0]
    wanted = DescribeClientQuotasRequest([ComponentData("client-id", 0, client_id)])
    deadline = time.monotonic() + SECONDS
    while bool(peer.ask(wanted, 1).entries) != (rate is not None):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    time.sleep(moment(SETTLE_S))  # the controller applies it on its own


class Client:
    """Asks as one client id, each time on a connection of its own: one that has to wait is not read from."""

    def __init__(self, peer: Peer, client_id: str) -> None:
        self.peer = peer
        self.client_id = client_id
        self.began_s = time.monotonic()

    def ask(self, request: Message, version: int) -> Any:
        with self.peer.connect() as wire:
            return wire.ask(request, version, self.client_id)

    def create(self, *topics: tuple[str, int], version: int, validate_only: bool = False) -> Any:
        rows = [CreatableTopic(name=name, num_partitions=count, replication_factor=1) for name, count in topics]
        request = CreateTopicsRequest(topics=rows, timeout_ms=patience_ms(10_000), validate_only=validate_only)
        return self.ask(request, version)

    def grow(self, *topics: tuple[str, int], version: int) -> Any:
        rows = [CreatePartitionsTopic(name=name, count=count, assignments=None) for name, count in topics]
        return self.ask(CreatePartitionsRequest(topics=rows, timeout_ms=patience_ms(10_000)), version)

    def delete(self, *names: str, version: int) -> Any:
        if version >= 6:
            topics = [DeleteTopicState(name=name) for name in names]
            return self.ask(DeleteTopicsRequest(topics=topics, timeout_ms=patience_ms(10_000)), version)
        return self.ask(DeleteTopicsRequest(topic_names=list(names), timeout_ms=patience_ms(10_000)), version)

    def told(self, answer: Any, rows: list[Any], owed_ms: int) -> list[tuple[str, int, str | None]]:
        """Errors by topic. The time to wait is what is owed, less what came back since the test began."""
        elapsed_ms = (time.monotonic() - self.began_s) * 1000
        waited = answer.throttle_time_ms
        assert owed_ms - elapsed_ms - ROUNDING_MS <= waited <= owed_ms + ROUNDING_MS, (self.peer.node.name, waited)
        return sorted((row.name, row.error_code, getattr(row, "error_message", None)) for row in rows)


def test_errors_and_times_are_the_same(same: Same, topic: str) -> None:
    """Half a partition a second; a bucket of eleven windows holds 5.5."""
    a, b, c, auto = (f"{topic}-{letter}" for letter in "abcd")

    def scenario(peer: Peer) -> Any:
        limit(peer, topic, 0.5)
        client = Client(peer, topic)
        told: list[Any] = []
        answer = client.create((a, 10), version=7)
        told.append(client.told(answer, answer.topics, 0))
        # 4.5 are owed.
        answer = client.create((b, 3), version=7)
        told.append(client.told(answer, answer.topics, 9000))
        answer = client.create((b, 3), version=7, validate_only=True)
        told.append(client.told(answer, answer.topics, 9000))
        answer = client.grow((a, 12), version=3)
        told.append(client.told(answer, answer.results, 9000))
        answer = client.delete(a, version=6)
        told.append(client.told(answer, answer.responses, 9000))
        # Other reasons come first.
        answer = client.create((a, 10), version=7)
        told.append(client.told(answer, answer.topics, 0))
        # Older versions get what they ask for, and owe for it.
        answer = client.create((c, 2), version=5)
        told.append(client.told(answer, answer.topics, 13_000))
        answer = client.grow((c, 4), version=2)
        told.append(client.told(answer, answer.results, 17_000))
        answer = client.delete(c, version=4)
        told.append(client.told(answer, answer.responses, 25_000))
        # A topic that a client makes the broker create is the client's.
        request = MetadataRequest(topics=[MetadataRequestTopic(name=auto)], allow_auto_topic_creation=True)
        told.append(client.ask(request, 12).topics[0].error_code)
        time.sleep(moment(SETTLE_S))
        told.append(peer.metadata(auto).error_code)
        # Nobody else has to wait.
        other = Client(peer, f"{topic}-other")
        answer = other.create((b, 3), version=7)
        told.append(other.told(answer, answer.topics, 0))
        limit(peer, topic, None)
        answer = client.delete(a, b, version=6)
        told.append(client.told(answer, answer.responses, 0))
        return told

    told = same(scenario)
    codes = [[row[1] for row in rows] if isinstance(rows, list) else rows for rows in told]
    refused = [[THROTTLED]] * 4
    assert codes[:6] == [[0], *refused, [errors.TOPIC_ALREADY_EXISTS]]
    assert codes[6:9] == [[0], [0], [0]]
    assert codes[9:11] == [errors.UNKNOWN_TOPIC_OR_PARTITION] * 2
    assert codes[11:] == [[0], [0, 0]]


@pytest.mark.parametrize(("version", "refused"), [(7, 1), (5, 0)])
def test_of_several_topics_in_a_request_the_later_ones_are_refused(
    same: Same, topic: str, version: int, refused: int
) -> None:
    def scenario(peer: Peer) -> Any:
        limit(peer, topic, 2)
        client = Client(peer, topic)
        answer = client.create((f"{topic}-1", 30), (f"{topic}-2", 30), version=version)
        owed_ms = 4000 if refused else 19_000
        told = client.told(answer, answer.topics, owed_ms)
        limit(peer, topic, None)
        client.delete(f"{topic}-1", f"{topic}-2", version=6)
        return sorted((code, message) for _, code, message in told)

    assert [code for code, _ in same(scenario)] == [0] * (2 - refused) + [THROTTLED] * refused


def test_fifty_topics_in_a_loop_are_all_created(same: Same, topic: str) -> None:
    """The client that waits as long as it is told loses nothing, on either side. How often it has to wait depends on
    how long the rest takes."""
    names = [f"{topic}-{number}" for number in range(50)]

    def scenario(peer: Peer) -> Any:
        limit(peer, topic, 12)
        client = Client(peer, topic)
        for name in names:
            while True:
                answer = client.create((name, 4), version=7)
                if answer.topics[0].error_code != THROTTLED:
                    break
                assert answer.throttle_time_ms > 0
                time.sleep(answer.throttle_time_ms / 1000)
            assert answer.topics[0].error_code == 0, answer
        limit(peer, topic, None)
        found = [len(peer.metadata(name).partitions) for name in names]
        client.delete(*names, version=6)
        return found

    assert same(scenario) == [4] * 50
