"""Share consumers of others against Moldau: Kafka's console tools and librdkafka, in one group on one topic."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from tests.interop.conftest import require_kafka
from tests.interop.group_offsets import find_coordinator, new_group
from tests.interop.kafka_oracle import TOOL_CLASSES, KafkaNode, java_command, run_tool
from tests.interop.nodes import MoldauNode, Node
from tests.interop.peers import Peer
from tests.interop.share_groups import WAIT_MS, configure, join
from tests.interop.test_group_recovery import successor
from tests.pace import moment_ms, patience
from tests.unit.share.member import Member, acquired, codes

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

SECONDS = patience(60)
ACCEPT, RELEASE, REJECT = 1, 2, 3


@pytest.fixture
def peer(moldau_server: Node) -> Iterator[Peer]:
    peer = Peer(moldau_server)
    yield peer
    peer.close()


def share_consumer(node: Node, group: str, mode: str) -> Any:
    if not hasattr(confluent_kafka, "ShareConsumer"):
        pytest.skip("confluent-kafka is older than 2.15")
    settings = {"bootstrap.servers": node.bootstrap, "group.id": group, "share.acknowledgement.mode": mode}
    return confluent_kafka.ShareConsumer(settings)


def produce(node: Node, topic: str, first: int, count: int) -> None:
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for number in range(first, first + count):
            producer.send(topic, b"%d" % number, partition=number % 2)
        producer.flush()


def test_consumers_of_three_kinds_share_a_topic(peer: Peer, topic: str, kafka_tools: None) -> None:
    """Every record is accepted by one of them; what is released comes again, what is rejected does not."""
    node, group = peer.node, new_group()
    peer.create(topic, 2)
    find_coordinator(peer, group)
    assert configure(peer, group, share_auto_offset_reset="earliest") == [0]
    arguments = ("--bootstrap-server", node.bootstrap, "--topic", topic, "--group", group)
    command = java_command(TOOL_CLASSES["console-share-consumer"], *arguments)
    implicit, explicit = share_consumer(node, group, "implicit"), share_consumer(node, group, "explicit")
    accepted: list[int] = []
    rejected: list[int] = []
    released: dict[int, int] = {}
    console = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    by_console: list[int] = []
    listener = threading.Thread(target=lambda: by_console.extend(map(int, console.stdout or ())), daemon=True)
    listener.start()
    try:
        implicit.subscribe([topic])
        explicit.subscribe([topic])
        sent, seen = 0, 0
        deadline = time.monotonic() + SECONDS
        # A JVM takes its time to join.
        while (seen < 300 or not released or not by_console) and time.monotonic() < deadline:
            produce(node, topic, sent, 20)
            sent += 20
            if sent % 40 == 0:  # they take turns: who asks first gets what there is
                accepted += [int(message.value()) for message in implicit.poll(0.3) if message.error() is None]
            for message in explicit.poll(0.3):
                if message.error() is not None:
                    continue
                number = int(message.value())
                if number // 2 % 10 == 3:
                    explicit.acknowledge(message, confluent_kafka.AcknowledgeType.REJECT)
                    rejected.append(number)
                elif number // 2 % 10 == 5 and number not in released:
                    explicit.acknowledge(message, confluent_kafka.AcknowledgeType.RELEASE)
                    released[number] = sent
                else:
                    explicit.acknowledge(message)
                    accepted.append(number)
            seen = len(accepted)
        for _ in range(10):
            accepted += [int(message.value()) for message in implicit.poll(0.5) if message.error() is None]
            for message in explicit.poll(0.5):
                explicit.acknowledge(message)
                accepted.append(int(message.value()))
        implicit.commit_sync()
        explicit.commit_sync()
    finally:
        implicit.close()
        explicit.close()
        console.terminate()
        console.wait(patience(30))
        listener.join(patience(30))
    assert accepted and by_console and released, (len(accepted), len(by_console), released)
    done = [*accepted, *rejected, *by_console]
    assert set(done) == set(range(sent)), "none is forgotten"
    assert len(accepted) == len(set(accepted)) and not set(accepted) & set(by_console), "none is accepted twice"


def test_the_groups_tool_shows_and_resets(peer: Peer, topic: str, kafka_tools: None) -> None:
    node, group = peer.node, new_group()
    peer.create(topic)
    find_coordinator(peer, group)
    assert configure(peer, group, share_auto_offset_reset="earliest") == [0]
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number)
        producer.flush()
    member = Member(peer.ask, group)
    member.wait_ms = WAIT_MS
    join(member, topic, 1)
    place = (peer.topic_id(topic), 0)
    assert acquired(member.fetch(place))
    member.acknowledge({place: [(0, 3, [ACCEPT])]})
    common = ("--bootstrap-server", node.bootstrap, "--group", group)
    shown = run_tool("share-groups", *common, "--describe")
    row = next(line.split() for line in shown.stdout.splitlines() if topic in line)
    assert row[:5] == [group, topic, "0", "0", "6"], shown.stdout
    member.fetch(epoch=-1)
    member.leave()
    reset = run_tool("share-groups", *common, "--reset-offsets", "--to-earliest", "--all-topics", "--execute")
    assert reset.returncode == 0, reset.stdout + reset.stderr
    join(member, topic, 1)
    assert acquired(member.fetch(place, epoch=0))[0][:2] == (0, 0)
    member.fetch(epoch=-1)
    member.leave()
    deleted = run_tool("share-groups", *common, "--delete")
    assert "successful" in deleted.stdout, deleted.stdout + deleted.stderr


# One directory, two brokers


@pytest.mark.parametrize("first", [KafkaNode, MoldauNode])
def test_a_directory_changes_hands_in_the_middle_of_a_group(tmp_path: Path, first: type[Node]) -> None:
    """What one broker stored of records in flight, the other goes on with, and the first again."""
    require_kafka()
    second = MoldauNode if first is KafkaNode else KafkaNode
    node = first(tmp_path / "node", {"share.coordinator.state.topic.num.partitions": "3"})
    node.format()
    group, topic = "unfinished", "work"
    expected = [(0, 0, 19, 1)]
    said = [
        [(0, 4, [ACCEPT]), (5, 6, [RELEASE]), (10, 11, [REJECT]), (15, 15, [ACCEPT])],
        [(5, 5, [ACCEPT]), (7, 8, [RELEASE]), (16, 19, [ACCEPT])],
        [(6, 9, [ACCEPT]), (12, 14, [ACCEPT])],
    ]
    found = []
    try:
        for number, kind in enumerate((first, second, first)):
            node = node if number == 0 else successor(node, kind)
            node.start()
            peer = Peer(node)
            place = begin(peer, group, topic) if number == 0 else (peer.topic_id(topic), 0)
            find_coordinator(peer, "any")
            member = Member(peer.ask, group, f"m{number}")
            member.wait_ms = WAIT_MS
            join(member, topic, 1)
            found.append(fetch_all(member, place))
            assert codes(member.acknowledge({place: said[number]})) == [(0, 0)]
            peer.close()
            assert node.stop() == 0 or isinstance(node, KafkaNode), node.output()[-2000:]
    finally:
        node.kill()
    assert found[0] == expected
    # Counts of what was released, or given back when the member was lost, are stored; gaps begin anew.
    offsets = [sorted(offset for _, low, high, _ in rows for offset in range(low, high + 1)) for rows in found]
    assert offsets[1] == [5, 6, 7, 8, 9, 12, 13, 14, 16, 17, 18, 19]
    assert offsets[2] == [6, 7, 8, 9, 12, 13, 14]
    counts = {offset: count for _, low, high, count in found[2] for offset in range(low, high + 1)}
    assert counts[7] >= 2 and max(counts.values()) <= 3


def begin(peer: Peer, group: str, topic: str) -> tuple[bytes, int]:
    peer.create(topic)
    find_coordinator(peer, group)
    assert configure(peer, group, share_auto_offset_reset="earliest") == [0]
    with Producer(bootstrap_servers=peer.node.bootstrap) as producer:
        for number in range(20):
            producer.send(topic, b"%d" % number)
        producer.flush()
    return peer.topic_id(topic), 0


def fetch_all(member: Member, place: tuple[bytes, int]) -> list[tuple[int, int, int, int]]:
    """Neighbours with one count are one row."""
    rows = acquired(member.fetch(place))
    for _ in range(5):
        rows += acquired(member.fetch(max_wait_ms=moment_ms(300)))
    rows.sort()
    merged = [rows[0]]
    for row in rows[1:]:
        before = merged[-1]
        if before[2] + 1 == row[1] and before[3] == row[3]:
            merged[-1] = (before[0], before[1], row[2], row[3])
        else:
            merged.append(row)
    return merged
