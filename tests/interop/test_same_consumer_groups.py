"""Moldau and Apache Kafka treat the members of consumer groups alike: the scripts are true of both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from moldau.protocol.messages.consumer_group_heartbeat_request import ConsumerGroupHeartbeatRequest
from tests.interop.conftest import Same, new_node, require_kafka, stop_cleanly
from tests.interop.consumer_group_scripts import play_live, script
from tests.interop.group_offsets import commit, find_coordinator, new_group, stored_records
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.scripts import consumer_groups

SCRIPTS = [
    path
    for path in sorted(Path(consumer_groups.__file__).parent.glob("*.txt"))
    if "Apache Kafka does the same." in path.read_text()
]

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    require_kafka()
    node = KafkaNode(tmp_path_factory.mktemp("kafka-consumer-groups"), SETTINGS)
    node.format()
    node.start()
    peer = Peer(node)
    yield peer
    peer.close()
    stop_cleanly(node)


@pytest.fixture(scope="module")
def moldau(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Peer]:
    node = new_node(tmp_path_factory.mktemp("moldau-consumer-groups"), SETTINGS)
    node.start()
    peer = Peer(node)
    yield peer
    peer.close()
    stop_cleanly(node)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_true_of_apache_kafka(kafka: Peer, path: Path) -> None:
    assert play_live(kafka, path.stem, script(path)) == script(path)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_the_scripts_are_true_of_a_running_moldau(moldau: Peer, path: Path) -> None:
    assert play_live(moldau, path.stem, script(path)) == script(path)


# Descriptions, versions, records


def join(peer: Peer, group: str, member: str, topic: str, version: int = 1) -> Any:
    request = ConsumerGroupHeartbeatRequest(
        group_id=group,
        member_id=member,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    return peer.ask(request, version, "a client")


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("operations", [False, True])
def test_groups_are_described(same: Same, topic: str, version: int, operations: bool) -> None:
    """One that is there, one that is not, one of another kind, one without a name."""
    group, simple = new_group(), new_group()

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        find_coordinator(peer, group)
        find_coordinator(peer, simple)
        commit(peer, simple, {topic: [(0, 1, -1, "")]})
        join(peer, group, "m1", topic)
        request = ConsumerGroupDescribeRequest([group, "nowhere", simple, "", group], operations)
        answer = plain(peer.ask(request, version), {"topic_id"})
        return sorted(answer["groups"], key=str)

    same(scenario)


@pytest.mark.parametrize("version", [0, 1])
def test_heartbeats_are_answered_alike(same: Same, topic: str, version: int) -> None:
    group = new_group()

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        find_coordinator(peer, group)
        seen = [plain(join(peer, group, "m1", topic, version), {"topic_id"})]
        for epoch in (2, 7, -1, 2):
            request = ConsumerGroupHeartbeatRequest(group_id=group, member_id="m1", member_epoch=epoch)
            seen.append(plain(peer.ask(request, version)))
        return seen

    same(scenario)


def test_the_records_are_the_same_byte_for_byte(same: Same, topic: str) -> None:
    """But for topic ids, the hash that depends on them, and times."""
    group = new_group()

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        find_coordinator(peer, group)
        join(peer, group, "m1", topic)
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id="m1", member_epoch=2, rack_id="rack", server_assignor="range"
        )
        peer.ask(request, 1, "a client")
        peer.ask(ConsumerGroupHeartbeatRequest(group_id=group, member_id="m1", member_epoch=-1), 1)
        hidden = {"topic_id", "metadata_hash", "assignment_timestamp"}
        return [(plain(key), plain(value, hidden), batch) for key, value, batch in stored_records(peer, group)]

    same(scenario)
