"""Moldau's share coordinator and Apache Kafka's answer brokers alike: states made, read, written, deleted."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol.errors import COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR
from moldau.protocol.messages import delete_share_group_state_request as delete_request
from moldau.protocol.messages import initialize_share_group_state_request as initialize_request
from moldau.protocol.messages import read_share_group_state_request as read_request
from moldau.protocol.messages import read_share_group_state_summary_request as summary_request
from moldau.protocol.messages import write_share_group_state_request as write_request
from moldau.protocol.uuids import ZERO_UUID
from tests.interop.conftest import Same
from tests.interop.group_offsets import new_group
from tests.interop.peers import Peer
from tests.interop.share_groups import find_share_coordinator
from tests.interop.wire import plain
from tests.pace import patience

PATIENCE_S = patience(60)
UNKNOWN = b"\x07" * 16
Batches = list[tuple[int, int, int, int]]


class States:
    """The five requests, for one partition each."""

    def __init__(self, peer: Peer, group: str, topic_id: bytes, partition: int = 0) -> None:
        self.peer = peer
        self.group = group
        self.topic_id = topic_id
        self.partition = partition

    def initialize(self, epoch: int, offset: int) -> Any:
        row = initialize_request.PartitionData(self.partition, epoch, offset)
        topics = [initialize_request.InitializeStateData(self.topic_id, [row])]
        return plain(self.peer.ask(initialize_request.InitializeShareGroupStateRequest(self.group, topics), 0))

    def read(self, leader_epoch: int) -> Any:
        row = read_request.PartitionData(self.partition, leader_epoch)
        topics = [read_request.ReadStateData(self.topic_id, [row])]
        return plain(self.peer.ask(read_request.ReadShareGroupStateRequest(self.group, topics), 0))

    def write(
        self, epoch: int, leader_epoch: int, start: int, batches: Batches, complete: int = -1, version: int = 1
    ) -> Any:
        rows = [write_request.StateBatch(*batch) for batch in batches]
        row = write_request.PartitionData(self.partition, epoch, leader_epoch, start, complete, rows)
        topics = [write_request.WriteStateData(self.topic_id, [row])]
        return plain(self.peer.ask(write_request.WriteShareGroupStateRequest(self.group, topics), version))

    def summary(self, leader_epoch: int = -1, version: int = 1) -> Any:
        row = summary_request.PartitionData(self.partition, leader_epoch)
        topics = [summary_request.ReadStateSummaryData(self.topic_id, [row])]
        return plain(self.peer.ask(summary_request.ReadShareGroupStateSummaryRequest(self.group, topics), version))

    def delete(self) -> Any:
        topics = [delete_request.DeleteStateData(self.topic_id, [delete_request.PartitionData(self.partition)])]
        return plain(self.peer.ask(delete_request.DeleteShareGroupStateRequest(self.group, topics), 0))

    def wait_for_coordinator(self) -> None:
        """Each share partition has one of its own, which may still be loading what it has."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            codes = [row["error_code"] for topic in self.summary()["results"] for row in topic["partitions"]]
            if not set(codes) & {COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR}:
                return
            time.sleep(0.1)

    def everything(self) -> list[Any]:
        self.wait_for_coordinator()
        return [self.initialize(1, 0), self.read(0), self.write(1, 0, 0, []), self.summary(), self.delete()]


@pytest.fixture
def group() -> str:
    return new_group()


def states(peer: Peer, group: str, topic: str) -> States:
    peer.create(topic, 2)
    topic_id = peer.topic_id(topic)
    find_share_coordinator(peer, group, topic_id)
    found = States(peer, group, topic_id)
    found.wait_for_coordinator()
    return found


def test_names_that_make_no_sense(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        topic_id = states(peer, group, topic).topic_id
        seen = []
        for name, wrong, partition in (
            (group, ZERO_UUID, 0),
            (group, topic_id, -1),
            (group, UNKNOWN, 0),
            (group, topic_id, 7),
            ("", topic_id, 0),
        ):
            seen.append(States(peer, name, wrong, partition).everything())
        return seen

    same(scenario)


def test_requests_that_are_empty(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        topic_id = states(peer, group, topic).topic_id
        seen = []
        for topics in ([], [topic_id]):
            requests = [
                initialize_request.InitializeShareGroupStateRequest(
                    group, [initialize_request.InitializeStateData(one, []) for one in topics]
                ),
                read_request.ReadShareGroupStateRequest(group, [read_request.ReadStateData(one, []) for one in topics]),
                write_request.WriteShareGroupStateRequest(
                    group, [write_request.WriteStateData(one, []) for one in topics]
                ),
                summary_request.ReadShareGroupStateSummaryRequest(
                    group, [summary_request.ReadStateSummaryData(one, []) for one in topics]
                ),
                delete_request.DeleteShareGroupStateRequest(
                    group, [delete_request.DeleteStateData(one, []) for one in topics]
                ),
            ]
            seen.append([plain(peer.ask(request, 0)) for request in requests])
        return seen

    same(scenario)


def test_a_state_that_was_never_made(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        one = states(peer, group, topic)
        return [one.read(0), one.write(0, 0, 0, []), one.summary(), one.summary(version=0), one.delete()]

    same(scenario)


def test_a_state_lives_and_dies(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        one = states(peer, group, topic)
        seen = [one.initialize(3, -1), one.read(0), one.summary()]
        seen.append(one.write(3, 0, 10, [(10, 19, 0, 1), (20, 29, 2, 1)], 10))
        seen += [one.read(0), one.summary(), one.summary(version=0)]
        seen.append(one.write(3, 0, 15, [(12, 17, 0, 2), (25, 40, 4, 5)], -1))
        seen += [one.read(0), one.summary()]
        seen.append(one.write(3, 0, -1, [(41, 45, 0, 1)], 3, version=0))
        seen += [one.read(0), one.summary()]
        seen += [one.delete(), one.read(0), one.summary(), one.delete()]
        return seen

    same(scenario)


def test_epochs_fence(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        one = states(peer, group, topic)
        seen = [one.initialize(5, 10), one.initialize(4, 11), one.initialize(5, 12), one.initialize(-1, 13)]
        seen += [one.summary(), one.initialize(6, 14), one.summary()]
        seen += [one.read(3), one.read(2), one.read(-1), one.read(3), one.summary()]
        seen += [one.write(6, 2, 14, []), one.write(6, 3, 15, []), one.write(5, 3, 16, []), one.write(6, 4, 17, [])]
        # A state epoch that is ahead, and a state that is made again without an offset, are in docs/differences.md.
        seen += [one.write(-1, -1, 18, []), one.write(6, 9, 19, []), one.write(6, 3, 20, []), one.summary()]
        seen += [one.initialize(7, 21), one.read(0), one.summary()]
        return seen

    same(scenario)


def test_partitions_are_answered_each_by_itself(same: Same, group: str, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        one = states(peer, group, topic)
        one.initialize(1, 5)
        rows = [read_request.PartitionData(index, 0) for index in (0, 1, 7)]
        topics = [
            read_request.ReadStateData(one.topic_id, rows),
            read_request.ReadStateData(UNKNOWN, [read_request.PartitionData(0, 0)]),
        ]
        answer = plain(peer.ask(read_request.ReadShareGroupStateRequest(group, topics), 0))
        return sorted(
            (len(topic["partitions"]), sorted(topic["partitions"], key=lambda row: row["partition"]))
            for topic in answer["results"]
        )

    same(scenario)
