"""Moldau and Apache Kafka answer fetches, fetch sessions, offset questions and epoch questions alike."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from moldau.protocol.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from moldau.protocol.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.interop.batches import batch, now_ms
from tests.interop.conftest import Same
from tests.interop.nodes import RECENT_MS
from tests.interop.peers import Peer
from tests.interop.wire import CLOSED, plain, records_of
from tests.pace import patience, patience_ms

HIDDEN = {"port"}


def fetch(peer: Peer, topic: str, offset: int, **fields: Any) -> Any:
    answer = peer.fetch(topic, offset, **fields)
    return answer if answer == CLOSED else plain(answer, HIDDEN)


def fill(peer: Peer, topic: str, batches: int = 5, records: int = 2, size: int = 10) -> None:
    for _ in range(batches):
        answer = peer.produce(topic, batch([b"x" * size] * records))
        assert answer.error_code == 0


@pytest.mark.parametrize("version", range(4, 19))
def test_records_are_fetched_in_every_version(same: Same, topic: str, version: int) -> None:
    """A whole batch is given, also when the offset lies inside it; the end gives nothing."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic)
        return [fetch(peer, topic, offset, version=version) for offset in (0, 3, 9, 10)]

    answers = same(scenario)
    assert [answer["high_watermark"] for answer in answers] == [10, 10, 10, 10]


def test_the_bytes_are_the_same(same: Same, topic: str) -> None:
    now = now_ms()

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        for attributes in (0, 0, 0):
            peer.produce(
                topic, batch([b"a", None, b""], key=b"k", attributes=attributes, timestamp=now, timestamp_step=7)
            )
        return records_of(peer.fetch(topic, 4).records)

    assert len(same(scenario)) > 100


@pytest.mark.parametrize("version", [4, 11, 12, 16])
@pytest.mark.parametrize("offset", [11, 1000, -1, -2, 2])
def test_offsets_out_of_range(same: Same, topic: str, version: int, offset: int) -> None:
    """Above the end and below the start, where records were deleted."""
    from tests.interop.test_same_topics import delete_records

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic)
        delete_records(peer, topic, 0, 4)
        return fetch(peer, topic, offset, version=version)

    assert same(scenario)["error_code"] == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("version", [4, 7, 12])
def test_topics_and_partitions_that_are_not_there(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [
            fetch(peer, "missing", 0, version=version),
            fetch(peer, topic, 0, partition=1, version=version),
            fetch(peer, topic, 0, partition=-1, version=version),
        ]

    same(scenario)


@pytest.mark.parametrize("version", [13, 15, 18])
def test_topic_ids_that_are_not_known(same: Same, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        answers = []
        for identifier in (b"\5" * 16, bytes(16)):
            asked = FetchTopic(topic_id=identifier, partitions=[FetchPartition(partition=0, partition_max_bytes=1000)])
            answers.append(plain(peer.ask(FetchRequest(max_wait_ms=10, min_bytes=1, topics=[asked]), version)))
        return answers

    same(scenario)


def test_sizes_are_limited_but_one_batch_always_comes(same: Same, topic: str) -> None:
    """partition_max_bytes and max_bytes cut; the first batch is given whole whatever its size."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, batches=4, records=1, size=1000)
        one = len(records_of(peer.fetch(topic, 3).records))
        answers = []
        for partition_limit, limit in (
            (1, 10**6),
            (one * 2, 10**6),
            (one * 2 + 5, 10**6),
            (10**6, 1),
            (10**6, one * 3),
            (0, 0),
        ):
            answer = peer.fetch(topic, 0, max_bytes=limit, partition_max_bytes=partition_limit)
            # Kafka cuts the last batch wherever the limit falls, and readers throw that piece away; we do not send it.
            answers.append(len(records_of(answer.records)) // one)
        return one, answers

    same(scenario)


def test_the_limit_counts_over_partitions(same: Same, topic: str) -> None:
    """A batch that is too large is given only for the first partition that has any."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        for partition in (1, 2):
            peer.produce(topic, batch([b"x" * 1000]), partition=partition)
        answers = []
        for order in ([0, 1, 2], [2, 1, 0]):
            for limit in (1, 1100, 2500):
                request = peer.fetch_request(topic, [(p, 0) for p in order], 12, max_bytes=limit)
                answer = peer.ask(request, 12)
                rows = answer.responses[0].partitions
                answers.append([(row.partition_index, len(records_of(row.records))) for row in rows])
        return answers

    same(scenario)


def test_a_fetch_waits_for_enough_bytes(same: Same, topic: str) -> None:
    """For all of max_wait and not much longer; and not until it is over when there is enough."""
    long_ms = patience_ms(1500)

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 1)
        waited = []
        for wait_ms, least in ((long_ms, 1), (1500, 100_000), (0, 100_000), (long_ms, 0)):
            start = time.monotonic()
            peer.fetch(topic, 0, max_wait_ms=wait_ms, min_bytes=least)
            took_ms = (time.monotonic() - start) * 1000
            assert took_ms < wait_ms + long_ms
            waited.append(0 < wait_ms <= took_ms + 100)
        return waited

    assert same(scenario) == [False, True, False, False]


def test_a_waiting_fetch_is_woken_by_a_write(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        with peer.connect() as wire:
            wire.send(peer.fetch_request(topic, [(0, 0)], 12, max_wait_ms=patience_ms(10_000)), 12)
            time.sleep(0.2)
            start = time.monotonic()
            peer.produce(topic, batch([b"now"]))
            answer = wire.receive(1, 12)
            assert time.monotonic() - start < patience(2)
        return plain(answer.responses[0].partitions[0])

    same(scenario)


def test_an_error_does_not_wait(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        start = time.monotonic()
        answer = fetch(peer, topic, 1000, max_wait_ms=patience_ms(8000), min_bytes=1)
        return answer, time.monotonic() - start < patience(4)

    assert same(scenario)[1]


@pytest.mark.parametrize("epoch", [-1, 0, 1, 7])
def test_leader_epochs_are_checked(same: Same, topic: str, epoch: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 1)
        return [fetch(peer, topic, 0, version=version, partition_current_leader_epoch=epoch) for version in (9, 12)]

    same(scenario)


@pytest.mark.parametrize(("epoch", "offset"), [(0, 2), (0, 9), (1, 2), (5, 9), (-1, 2)])
def test_diverging_epochs_are_told(same: Same, topic: str, epoch: int, offset: int) -> None:
    """KIP-595: a reader that gives the epoch of its last record learns where its log and the leader's part."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 2)
        return fetch(peer, topic, offset, version=12, partition_last_fetched_epoch=epoch)

    same(scenario)


@pytest.mark.parametrize("isolation", [0, 1])
def test_isolation_levels(same: Same, topic: str, isolation: int) -> None:
    """Read committed tells the last stable offset and an empty list of aborted transactions."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic)
        return [fetch(peer, topic, 0, version=version, isolation_level=isolation) for version in (4, 11, 12)]

    same(scenario)


def test_a_fetch_as_a_replica_that_is_none(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 1)
        answers = [fetch(peer, topic, 0, version=12, replica_id=replica) for replica in (5, 1, -2)]
        state = ReplicaState(replica_id=5, replica_epoch=1)
        answers.append(fetch(peer, topic, 0, version=15, replica_state=state))
        return answers

    same(scenario)


def test_a_cluster_id_in_the_request_is_ignored(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return fetch(peer, topic, 0, version=12, cluster_id="another")

    same(scenario)


class Session:
    """A fetch session: remembers its id and epoch as a client does."""

    def __init__(self, peer: Peer, topic: str, version: int = 12) -> None:
        self.peer = peer
        self.topic = topic
        self.version = version
        self.id = 0

    def ask(self, epoch: int, offsets: list[tuple[int, int]], forgotten: list[int] | None = None, **fields: Any) -> Any:
        request = self.peer.fetch_request(
            self.topic,
            offsets,
            self.version,
            session_id=fields.pop("session_id", self.id),
            session_epoch=epoch,
            **fields,
        )
        if not offsets:
            request.topics = []
        if forgotten:
            request.forgotten_topics_data = [ForgottenTopic(topic=self.topic, partitions=forgotten)]
            if self.version >= 13:
                request.forgotten_topics_data = [
                    ForgottenTopic(topic_id=self.peer.topic_id(self.topic), partitions=forgotten)
                ]
        answer = self.peer.ask(request, self.version)
        if epoch == 0 and answer.session_id:
            self.id = answer.session_id
        result = plain(answer, HIDDEN)
        result["session_id"] = "<mine>" if answer.session_id and answer.session_id == self.id else answer.session_id
        return result


@pytest.mark.parametrize("version", [7, 12, 13, 17])
def test_a_session_tells_only_what_changed(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        session = Session(peer, topic, version)
        answers = [session.ask(0, [(0, 0), (1, 0), (2, 0)]), session.ask(1, [])]
        peer.produce(topic, batch([b"a"]), partition=1)
        answers += [session.ask(2, []), session.ask(3, []), session.ask(4, [(1, 1)]), session.ask(5, [])]
        answers += [session.ask(6, [], forgotten=[1])]
        peer.produce(topic, batch([b"b"]), partition=1)
        answers += [session.ask(7, []), session.ask(8, [(1, 0)]), session.ask(9, [(0, 1000)]), session.ask(10, [])]
        return answers

    answers = same(scenario)
    assert answers[0]["session_id"] == "<mine>"
    assert answers[1]["responses"] == []
    assert answers[2]["responses"][0]["partitions"][0]["partition_index"] == 1


def test_sessions_that_are_not_there(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        session = Session(peer, topic)
        answers = [session.ask(1, [(0, 0)], session_id=12_345), session.ask(1, [(0, 0)], session_id=0)]
        answers += [session.ask(-1, [(0, 0)], session_id=12_345), session.ask(0, [(0, 0)], session_id=12_345)]
        return answers

    same(scenario)


def test_epochs_of_a_session_are_checked(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        session = Session(peer, topic)
        answers = [
            session.ask(0, [(0, 0)]),
            session.ask(2, []),
            session.ask(1, []),
            session.ask(1, []),
            session.ask(2, []),
        ]
        answers += [session.ask(-1, [(0, 0)]), session.ask(3, []), session.ask(0, [])]
        return answers

    codes = [answer["error_code"] for answer in same(scenario)]
    assert codes[1] == errors.INVALID_FETCH_SESSION_EPOCH


def test_a_session_keeps_telling_errors(same: Same, topic: str) -> None:
    """A partition in error is told again each time until it is well."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        session = Session(peer, topic)
        return [session.ask(0, [(0, 0), (7, 0)]), session.ask(1, []), session.ask(2, [(0, 500)]), session.ask(3, [])]

    same(scenario)


def test_an_empty_fetch(same: Same) -> None:
    def scenario(peer: Peer) -> Any:
        return plain(peer.ask(FetchRequest(max_wait_ms=10, min_bytes=1, topics=[]), 12))

    same(scenario)


def list_offsets(peer: Peer, topic: str, timestamp: int, version: int, **fields: Any) -> Any:
    row = ListOffsetsPartition(
        partition_index=fields.pop("partition", 0),
        timestamp=timestamp,
        current_leader_epoch=fields.pop("current_leader_epoch", -1),
    )
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(topic, [row])], **fields)
    answer = peer.ask(request, version)
    return answer if answer == CLOSED else plain(answer.topics[0].partitions[0])


@pytest.mark.parametrize("version", range(1, 12))
def test_offsets_are_found_for_every_special_time(same: Same, topic: str, version: int) -> None:
    """Earliest, latest, by time, largest time, and the newer ones where the version knows them."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        for step in (0, 300, 100, 200):
            peer.produce(topic, batch([b"a", b"b"], timestamp=RECENT_MS + step, timestamp_step=5))
        times = [
            -2,
            -1,
            0,
            RECENT_MS + 5,
            RECENT_MS + 101,
            RECENT_MS + 300,
            RECENT_MS + 306,
            -3,
            -4,
            -5,
            -6,
            -7,
        ]
        return [list_offsets(peer, topic, timestamp, version) for timestamp in times]

    answers = same(scenario)
    assert [answer["offset"] for answer in answers[:3]] == [0, 8, 0]


def test_offsets_of_an_empty_log(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [list_offsets(peer, topic, timestamp, 9) for timestamp in (-2, -1, -3, -4, -5, 0, 5)]

    same(scenario)


def test_offsets_of_partitions_that_are_not_there(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answers = []
        for version in (1, 4, 6, 9):
            answers.append(list_offsets(peer, "missing", -1, version))
            answers.append(list_offsets(peer, topic, -1, version, partition=3))
        return answers

    same(scenario)


@pytest.mark.parametrize("epoch", [-1, 0, 1])
def test_offsets_with_a_leader_epoch(same: Same, topic: str, epoch: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 1)
        return [list_offsets(peer, topic, time, 6, current_leader_epoch=epoch) for time in (-1, -2)]

    same(scenario)


def test_offsets_for_readers_of_committed_records_and_for_replicas(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 2)
        return [
            list_offsets(peer, topic, -1, 6, isolation_level=1),
            list_offsets(peer, topic, -1, 6, replica_id=1),
            list_offsets(peer, topic, -1, 6, replica_id=7),
            list_offsets(peer, topic, -1, 6, replica_id=-2),
        ]

    same(scenario)


def test_the_same_partition_twice(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        rows = [ListOffsetsPartition(partition_index=0, timestamp=time) for time in (-1, -2)]
        return plain(peer.ask(ListOffsetsRequest(topics=[ListOffsetsTopic(topic, rows)]), 7))

    same(scenario)


@pytest.mark.parametrize("version", [2, 3, 4])
def test_ends_of_epochs(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fill(peer, topic, 2)
        answers = []
        for name, partition, current, epoch in (
            (topic, 0, -1, 0),
            (topic, 0, -1, 1),
            (topic, 0, -1, -1),
            (topic, 0, 0, 0),
            (topic, 0, 5, 0),
            (topic, 1, -1, 0),
            ("missing", 0, -1, 0),
        ):
            row = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
            request = OffsetForLeaderEpochRequest(replica_id=-2, topics=[OffsetForLeaderTopic(name, [row])])
            answers.append(plain(peer.ask(request, version)))
        return answers

    same(scenario)
