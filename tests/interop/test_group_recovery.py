"""Offsets change hands: Moldau opens what Apache Kafka left behind and goes on, and Kafka takes it back."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.interop.conftest import require_kafka
from tests.interop.group_offsets import commit, fetch, find_coordinator
from tests.interop.kafka_oracle import KafkaNode, run_tool
from tests.interop.nodes import MoldauNode, Node
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.pace import moment_ms, patience

TOPIC = "moved"
SETTINGS = {"transaction.state.log.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}
GROUPS = ["plain", "many", "expiring", "committed", "aborted", "open", "mixed", "deleted", "classic", "modern"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    require_kafka()
    return tmp_path / "node"


def until(question: Any, seconds: float = 20) -> Any:
    """Asks again until the answer has no error."""
    deadline = time.monotonic() + patience(seconds)
    while True:
        answer = question()
        if answer.error_code == 0:
            return answer
        assert time.monotonic() < deadline, answer
        time.sleep(0.05)


class Transaction:
    """One transaction with offsets of one group, by hand."""

    def __init__(self, peer: Peer, name: str, group: str) -> None:
        self.peer, self.name, self.group = peer, name, group
        until(lambda: peer.ask(FindCoordinatorRequest(key=name, key_type=1), 3))
        started = until(lambda: peer.ask(InitProducerIdRequest(name, 600_000), 4))
        self.producer_id, self.epoch = started.producer_id, started.producer_epoch
        until(lambda: peer.ask(AddOffsetsToTxnRequest(name, self.producer_id, self.epoch, group), 3))

    def commit_offset(self, partition: int, offset: int) -> None:
        topics = [TxnOffsetCommitRequestTopic(TOPIC, [TxnOffsetCommitRequestPartition(partition, offset, -1, "txn")])]
        request = TxnOffsetCommitRequest(self.name, self.group, self.producer_id, self.epoch, topics=topics)
        assert self.peer.ask(request, 3).topics[0].partitions[0].error_code == 0

    def end(self, committed: bool) -> None:
        until(lambda: self.peer.ask(EndTxnRequest(self.name, self.producer_id, self.epoch, committed), 3))


def write_everything(peer: Peer) -> None:
    """Offsets of every kind that Kafka knows."""
    peer.create(TOPIC, 3)
    for group in GROUPS:
        find_coordinator(peer, group)
    commit(peer, "plain", {TOPIC: [(0, 5, 0, "text ü"), (1, 7, -1, None)]}, 10)
    commit(peer, "plain", {TOPIC: [(0, 6, 1, "")]}, 9)
    commit(peer, "expiring", {TOPIC: [(2, 8, 0, "old")]}, 2, retention_time_ms=86_400_000)
    for offset in range(50):
        commit(peer, "many", {TOPIC: [(offset % 3, offset, 0, str(offset))]})
    commit(peer, "deleted", {TOPIC: [(0, 1, 0, "")]})
    peer.ask(DeleteGroupsRequest(["deleted"]), 2)
    for group, ending in (("committed", True), ("aborted", False)):
        transaction = Transaction(peer, f"txn-{group}", group)
        transaction.commit_offset(0, 40)
        transaction.commit_offset(1, 41)
        transaction.end(ending)
    mixed = Transaction(peer, "txn-mixed", "mixed")
    mixed.commit_offset(0, 50)
    commit(peer, "mixed", {TOPIC: [(0, 60, 0, "later")]})
    mixed.commit_offset(1, 51)
    mixed.end(True)
    commit(peer, "open", {TOPIC: [(0, 1, 0, "")]})
    Transaction(peer, "txn-open", "open").commit_offset(0, 2)


def consume(node: Node, group: str, protocol: str) -> None:
    """Kafka's own consumer joins, commits and leaves."""
    run_tool(
        "console-consumer", "--bootstrap-server", node.bootstrap, "--topic", TOPIC, "--group", group,
        "--command-property", f"group.protocol={protocol}", "--from-beginning", "--timeout-ms", str(moment_ms(6_000)),
    )  # fmt: skip


def everything(peer: Peer) -> dict[str, Any]:
    """What a client sees of all groups."""
    for group in GROUPS:
        find_coordinator(peer, group)
    seen: dict[str, Any] = {}
    for group in GROUPS:
        partitions = {TOPIC: [0, 1, 2]}
        seen[group] = plain([fetch(peer, group, partitions), fetch(peer, group, partitions, stable=True)])
    listed = plain(peer.ask(ListGroupsRequest(), 5))["groups"]
    seen["listed"] = sorted(listed, key=lambda row: str(row["group_id"]))
    return seen


def started(node: Node) -> Peer:
    node.start()
    return Peer(node)


def successor(node: Node, kind: type[Node]) -> Node:
    """The other software on the same data and settings."""
    other = kind.__new__(kind)
    other.__dict__.update(node.__dict__)
    other.log_file = node.folder / f"{kind.name}.log"
    return other


def test_moldau_goes_on_where_kafka_ended(folder: Path) -> None:
    kafka = KafkaNode(folder, SETTINGS)
    kafka.format()
    peer = started(kafka)
    write_everything(peer)
    consume(kafka, "classic", "classic")
    consume(kafka, "modern", "consumer")
    before = everything(peer)
    assert {row["group_id"]: row["group_type"] for row in before["listed"]}["modern"] == "consumer"
    assert before["open"][1]["groups"][0]["topics"][0]["partitions"][0]["error_code"] == errors.UNSTABLE_OFFSET_COMMIT
    peer.close()
    kafka.stop()

    moldau = successor(kafka, MoldauNode)
    peer = started(moldau)
    assert everything(peer) == before
    commit(peer, "plain", {TOPIC: [(0, 100, 0, "moldau")]}, 10)
    commit(peer, "new", {TOPIC: [(2, 101, 0, "moldau")]}, 9)
    peer.ask(DeleteGroupsRequest(["many"]), 2)
    after = everything(peer)
    peer.close()
    assert moldau.stop() == 0

    kafka_again = successor(moldau, KafkaNode)
    peer = started(kafka_again)
    assert everything(peer) == after
    assert plain(fetch(peer, "new", {TOPIC: [2]}))["groups"][0]["topics"][0]["partitions"][0]["committed_offset"] == 101
    peer.close()
    kafka_again.stop()


def test_kafka_reads_the_offsets_log_of_moldau(folder: Path) -> None:
    """The real kafka-dump-log decodes every record."""
    moldau = MoldauNode(folder, {"offsets.topic.num.partitions": "1"})
    moldau.format()
    peer = started(moldau)
    peer.create(TOPIC, 2)
    find_coordinator(peer, "plain")
    commit(peer, "plain", {TOPIC: [(0, 5, 0, "text ü"), (1, 7, -1, None)]}, 10)
    commit(peer, "plain", {TOPIC: [(0, 8, 0, "old")]}, 2, retention_time_ms=86_400_000)
    peer.ask(DeleteGroupsRequest(["plain"]), 2)
    peer.close()
    assert moldau.stop() == 0
    log = next((moldau.data / "__consumer_offsets-0").glob("*.log"))
    shown = run_tool("dump-log", "--offsets-decoder", "--files", str(log)).stdout
    records = [line for line in shown.splitlines() if line.startswith("|")]
    assert len(records) == 6, shown
    assert '"offset":5' in records[0] and '"metadata":"text ü"' in records[0] and '"version":"4"' in records[0]
    assert '"offset":8' in records[2] and '"expireTimestamp":' in records[2] and '"version":"1"' in records[2]
    assert all('"group":"plain"' in line for line in records) and "isvalid: true" in shown
    assert sum("payload: <DELETE>" in line for line in records) == 3, shown
