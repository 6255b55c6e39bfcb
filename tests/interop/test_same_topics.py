"""Moldau and Apache Kafka create, grow and delete topics and records alike, and refuse for the same reasons."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.messages.delete_records_request import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.uuids import ZERO_UUID
from tests.interop.batches import batch
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.pace import patience, patience_ms


def create(peer: Peer, *topics: CreatableTopic, version: int = 7, validate_only: bool = False) -> Any:
    request = CreateTopicsRequest(topics=list(topics), timeout_ms=patience_ms(10_000), validate_only=validate_only)
    return sort_configs(plain(peer.ask(request, version)))


def sort_configs(answer: Any) -> Any:
    """The described configs of a new topic have no order that means anything."""
    for row in answer["topics"]:
        if row["configs"]:
            row["configs"] = sorted(row["configs"], key=lambda entry: str(entry["name"]))
    answer["topics"] = sorted(answer["topics"], key=lambda row: str(row["name"]))
    return answer


def new(name: str, partitions: int = 1, replicas: int = 1, **fields: Any) -> CreatableTopic:
    return CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas, **fields)


def config(name: str, value: str | None) -> CreatableTopicConfig:
    return CreatableTopicConfig(name, value)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created(same: Same, topic: str, version: int) -> None:
    """The answer tells partitions, replicas and every config with its source."""

    def scenario(peer: Peer) -> Any:
        return create(peer, new(topic, 3, configs=[config("retention.ms", "1234")]), version=version)

    answer = same(scenario)
    assert answer["topics"][0]["error_code"] == 0
    assert version < 5 or len(answer["topics"][0]["configs"]) > 20


@pytest.mark.parametrize("version", range(4, 8))
def test_defaults_are_taken_from_the_broker(same: Same, topic: str, version: int) -> None:
    assert same(lambda peer: create(peer, new(topic, -1, -1), version=version))["topics"][0]["error_code"] == 0


def test_validating_creates_nothing(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        return create(peer, new(topic, 2), validate_only=True), peer.metadata(topic).error_code

    _, later = same(scenario)
    assert later == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "x" * 250, "a/b", "ü", "tab\t", "__cluster_metadata"])
def test_bad_names(same: Same, name: str) -> None:
    assert same(lambda peer: create(peer, new(name)))["topics"][0]["error_code"] != 0


def test_names_that_collide(same: Same, topic: str) -> None:
    """A dot and an underscore are the same in metric names."""

    def scenario(peer: Peer) -> Any:
        return create(peer, new(f"{topic}.x")), create(peer, new(f"{topic}_x")), create(peer, new(f"{topic}.x"))

    first, second, third = same(scenario)
    codes = [answer["topics"][0]["error_code"] for answer in (first, second, third)]
    assert codes == [0, errors.INVALID_TOPIC_EXCEPTION, errors.TOPIC_ALREADY_EXISTS]


@pytest.mark.parametrize(
    ("partitions", "replicas"), [(0, 1), (-2, 1), (1, 0), (1, -2), (1, 2), (1, 32767), (0, 0), (10_001, 1), (-1, 3)]
)
def test_bad_counts(same: Same, topic: str, partitions: int, replicas: int) -> None:
    assert same(lambda peer: create(peer, new(topic, partitions, replicas)))["topics"][0]["error_code"] != 0


@pytest.mark.parametrize(
    "assignments",
    [
        [(0, [1]), (1, [1])],
        [(0, [9])],
        [(0, [])],
        [(0, [1, 1])],
        [(1, [1])],
        [(0, [1]), (0, [1])],
        [(-1, [1])],
        [(0, [1]), (2, [1])],
        [(0, [-1])],
        [(0, [1]), (1, [1, 2])],
    ],
)
def test_manual_assignments(same: Same, topic: str, assignments: list[tuple[int, list[int]]]) -> None:
    def scenario(peer: Peer) -> Any:
        rows = [CreatableReplicaAssignment(partition, brokers) for partition, brokers in assignments]
        return create(peer, new(topic, -1, -1, assignments=rows))

    same(scenario)


def test_an_assignment_and_a_count_contradict_each_other(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        rows = [CreatableReplicaAssignment(0, [1])]
        return [
            create(peer, new(f"{topic}-a", 1, -1, assignments=rows)),
            create(peer, new(f"{topic}-b", -1, 1, assignments=rows)),
            create(peer, new(f"{topic}-c", 1, 1, assignments=rows)),
        ]

    same(scenario)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("no.such.config", "1"),
        ("", "1"),
        ("retention.ms", "abc"),
        ("retention.ms", ""),
        ("retention.ms", None),
        ("retention.ms", "-2"),
        ("retention.ms", "-1"),
        ("retention.ms", " 7 "),
        ("cleanup.policy", "shred"),
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact,delete"),
        ("cleanup.policy", "none"),
        ("compression.type", "brotli"),
        ("compression.type", "zstd"),
        ("compression.gzip.level", "10"),
        ("compression.lz4.level", "0"),
        ("compression.zstd.level", "-200000"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", "99999999999"),
        ("min.insync.replicas", "0"),
        ("min.insync.replicas", "2"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("preallocate", "maybe"),
        ("preallocate", "TRUE"),
        ("segment.bytes", "10"),
        ("segment.ms", "0"),
        ("segment.index.bytes", "3"),
        ("message.timestamp.type", "Whenever"),
        ("message.timestamp.before.max.ms", "-1"),
        ("unclean.leader.election.enable", "yes"),
        ("leader.replication.throttled.replicas", "x:y"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,1:1"),
        ("min.compaction.lag.ms", "9223372036854775808"),
        ("remote.storage.enable", "true"),
        ("local.retention.ms", "9"),
    ],
)
def test_configs_of_a_new_topic_are_checked(same: Same, topic: str, name: str, value: str | None) -> None:
    same(lambda peer: create(peer, new(topic, configs=[config(name, value)])))


def test_configs_that_contradict_each_other(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        lag = [config("min.compaction.lag.ms", "10"), config("max.compaction.lag.ms", "5")]
        twice = [config("retention.ms", "1"), config("retention.ms", "2")]
        return create(peer, new(f"{topic}-a", configs=lag)), create(peer, new(f"{topic}-b", configs=twice))

    same(scenario)


def test_many_topics_in_one_request(same: Same, topic: str) -> None:
    """Each topic succeeds or fails alone; a name given twice fails."""

    def scenario(peer: Peer) -> Any:
        return [
            create(peer, new(f"{topic}-1"), new(f"{topic}-2", 0), new("bad name"), new(f"{topic}-3", 2)),
            create(peer, new(f"{topic}-4"), new(f"{topic}-4"), new(f"{topic}-5")),
            create(peer),
        ]

    same(scenario)


def delete(peer: Peer, names: list[str], version: int = 5) -> Any:
    if version >= 6:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=name) for name in names], timeout_ms=patience_ms(10_000)
        )
    else:
        request = DeleteTopicsRequest(topic_names=names, timeout_ms=patience_ms(10_000))
    answer = plain(peer.ask(request, version))
    answer["responses"] = sorted(answer["responses"], key=lambda row: (str(row["name"]), row["error_code"]))
    return answer


@pytest.mark.parametrize("version", range(1, 7))
def test_topics_are_deleted(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return delete(peer, [topic], version), delete(peer, [topic], version), delete(peer, [], version)

    first, second, _ = same(scenario)
    assert first["responses"][0]["error_code"] == 0
    assert second["responses"][0]["error_code"] == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_deleting_what_cannot_be_deleted(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [
            delete(peer, ["bad name", "", "missing"]),
            delete(peer, [topic, topic]),
            delete(peer, ["__cluster_metadata"]),
            peer.metadata(topic).error_code,
        ]

    same(scenario)


def test_topics_are_deleted_by_id(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        identifier = peer.topic_id(topic)
        answers = []
        for states in (
            [DeleteTopicState(name=None, topic_id=b"\7" * 16)],
            [DeleteTopicState(name=None, topic_id=ZERO_UUID)],
            [DeleteTopicState(name=topic, topic_id=identifier)],
            [DeleteTopicState(name=topic), DeleteTopicState(name=None, topic_id=identifier)],
            [DeleteTopicState(name=None, topic_id=identifier)],
            [DeleteTopicState(name=None, topic_id=identifier)],
        ):
            answer = plain(peer.ask(DeleteTopicsRequest(topics=states, timeout_ms=patience_ms(10_000)), 6))
            answer["responses"] = sorted(answer["responses"], key=repr)
            answers.append(answer)
        return answers

    same(scenario)


def test_a_topic_may_come_back_with_another_id(same: Same, topic: str) -> None:
    """What was written before is not there afterwards."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        first = peer.topic_id(topic)
        peer.produce(topic, batch([b"a", b"b"]))
        delete(peer, [topic])
        deadline = time.monotonic() + patience(10)
        while peer.metadata(topic).error_code == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        peer.create(topic)
        answer = peer.produce(topic, batch([b"c"]))
        return peer.topic_id(topic) != first, answer.error_code, answer.base_offset

    assert same(scenario) == (True, 0, 0)


def grow(peer: Peer, topic: str, count: int, assignments: list[list[int]] | None = None, version: int = 3) -> Any:
    rows = None if assignments is None else [CreatePartitionsAssignment(brokers) for brokers in assignments]
    asked = CreatePartitionsTopic(name=topic, count=count, assignments=rows)
    return plain(peer.ask(CreatePartitionsRequest(topics=[asked], timeout_ms=patience_ms(10_000)), version))


@pytest.mark.parametrize("version", range(4))
def test_partitions_are_added(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        answer = grow(peer, topic, 3, version=version)
        peer.wait_for_topic(topic, 3)
        return answer

    assert same(scenario)["results"][0]["error_code"] == 0


@pytest.mark.parametrize(
    ("count", "assignments"),
    [
        (2, None),
        (1, None),
        (0, None),
        (-1, None),
        (3, [[1]]),
        (3, []),
        (4, [[1]]),
        (3, [[1], [1]]),
        (3, [[9]]),
        (3, [[1, 1]]),
        (3, [[]]),
        (4, [[1], [1, 2]]),
        (3, [[1, 2]]),
    ],
)
def test_adding_partitions_that_cannot_be(
    same: Same, topic: str, count: int, assignments: list[list[int]] | None
) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        return grow(peer, topic, count, assignments)

    same(scenario)


def test_adding_partitions_to_topics_that_are_not_there(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        twice = [CreatePartitionsTopic(name=topic, count=2), CreatePartitionsTopic(name=topic, count=3)]
        answers = [grow(peer, name, 2) for name in ("missing", "bad name", "")]
        answers.append(plain(peer.ask(CreatePartitionsRequest(topics=twice, timeout_ms=patience_ms(10_000)), 3)))
        only = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=topic, count=5)], timeout_ms=patience_ms(10_000), validate_only=True
        )
        answers.append(plain(peer.ask(only, 3)))
        answers.append(len(peer.metadata(topic).partitions))
        return answers

    assert same(scenario)[-1] == 1


def delete_records(peer: Peer, topic: str, partition: int, offset: int, version: int = 2) -> Any:
    rows = [DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition, offset)])]
    return plain(peer.ask(DeleteRecordsRequest(topics=rows, timeout_ms=patience_ms(10_000)), version))


@pytest.mark.parametrize("version", range(3))
def test_records_are_deleted(same: Same, topic: str, version: int) -> None:
    """The start moves up, never down; -1 stands for the high watermark."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        for _ in range(5):
            peer.produce(topic, batch([b"a", b"b"]))
        answers = [delete_records(peer, topic, 0, offset, version) for offset in (3, 2, 11, -2, 3, -1, 10, 9)]
        answers.append(plain(peer.produce(topic, batch([b"c"]))))
        answers.append(plain(peer.fetch(topic, 3)))
        return answers

    same(scenario)


def test_deleting_records_of_partitions_that_are_not_there(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        return [
            delete_records(peer, topic, 1, 0),
            delete_records(peer, topic, -1, 0),
            delete_records(peer, "missing", 0, 0),
            delete_records(peer, topic, 0, 0),
        ]

    same(scenario)


def test_records_of_a_compacted_topic_are_not_deleted(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, cleanup_policy="compact")
        peer.produce(topic, batch([b"a"], key=b"k"))
        return delete_records(peer, topic, 0, 1)

    assert same(scenario)["topics"][0]["partitions"][0]["error_code"] == errors.POLICY_VIOLATION
