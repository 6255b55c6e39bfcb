"""Coordinators are found; offsets committed, fetched, deleted; groups listed, described, deleted: in all versions."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.api.coordinators import as_client_sees
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.delete_groups_request import DeleteGroupsRequest
from moldau.protocol.messages.describe_groups_request import DescribeGroupsRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_delete_request import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.unit.node.world import NodeWorld

MISSING_ID = b"m" * 16


@pytest.fixture(scope="module")
def world() -> NodeWorld:
    """A node with the topic `t`, two partitions, and coordinators for all groups."""
    world = NodeWorld(offsets_topic_replication_factor="1", offsets_topic_num_partitions="7").start()
    world.create("t", 2)
    world.ask(FindCoordinatorRequest(coordinator_keys=["g"]), 4)
    world.run(200)
    return world


def id_of(world: NodeWorld, topic: str) -> bytes:
    return world.describe(topic).topic_id if topic == "t" else MISSING_ID


def commit(world: NodeWorld, group: str, version: int, *rows: tuple[str, int, int]) -> dict[tuple[str, int], int]:
    """Error codes by topic and partition; rows are topic, partition, offset."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for topic, index, offset in rows:
        row = topics.setdefault(topic, OffsetCommitRequestTopic(topic, id_of(world, topic)))
        row.partitions.append(OffsetCommitRequestPartition(index, offset, 3, f"at {offset}"))
    answer = world.ask(OffsetCommitRequest(group, topics=list(topics.values())), version)
    names = {id_of(world, topic): topic for topic in topics}
    return {
        (topic.name if version < 10 else names[topic.topic_id], row.partition_index): row.error_code
        for topic in answer.topics
        for row in topic.partitions
    }


def fetch(world: NodeWorld, group: str, version: int, topics: dict[str, list[int]] | None) -> dict[Any, Any]:
    """Offset and error by topic (or its id) and partition."""
    if version < 8:
        old = None if topics is None else [OffsetFetchRequestTopic(name, rows) for name, rows in topics.items()]
        response = world.ask(OffsetFetchRequest(group, old), version)
        code, found = response.error_code, response.topics
    else:
        new = None
        if topics is not None:
            new = [OffsetFetchRequestTopics(name, id_of(world, name), rows) for name, rows in topics.items()]
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=new)])
        (answer,) = world.ask(request, version).groups
        code, found = answer.error_code, answer.topics
    assert code == 0
    return {
        (topic.name if version < 10 else topic.topic_id, row.partition_index): (row.committed_offset, row.error_code)
        for topic in found
        for row in topic.partitions
    }


@pytest.mark.parametrize("version", range(7))
def test_a_coordinator_is_found(world: NodeWorld, version: int) -> None:
    if version < 4:
        answer = world.ask(FindCoordinatorRequest(key="g"), version)
        assert (answer.error_code, answer.node_id, answer.host, answer.port) == (0, 1, "127.0.0.1", 9092)
        return
    answer = world.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), version)
    assert [(row.key, row.error_code, row.node_id, row.port) for row in answer.coordinators] == [
        ("g", 0, 1, 9092),
        ("h", 0, 1, 9092),
    ]


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("key_type", [1, 2, 3])
def test_there_are_no_coordinators_of_other_kinds(world: NodeWorld, version: int, key_type: int) -> None:
    request = FindCoordinatorRequest(key="x", key_type=key_type)
    if version >= 4:
        request = FindCoordinatorRequest(coordinator_keys=["x"], key_type=key_type)
    answer = world.ask(request, version)
    row = answer.coordinators[0] if version >= 4 else answer
    # What has no topic id and partition in it is no share partition.
    assert row.error_code == (errors.COORDINATOR_NOT_AVAILABLE if key_type == 1 else errors.INVALID_REQUEST)
    assert (row.node_id, row.port) == (-1, -1)


@pytest.mark.parametrize("version", range(2, 11))
def test_offsets_are_committed(world: NodeWorld, version: int) -> None:
    group = f"commit-{version}"
    codes = commit(world, group, version, ("t", 0, 5), ("missing", 0, 1), ("t", 7, 1), ("t", 1, 6))
    unknown = errors.UNKNOWN_TOPIC_ID if version >= 10 else errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == {
        ("t", 0): 0,
        ("t", 1): 0,
        ("t", 7): errors.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): unknown,
    }
    assert fetch(world, group, 9, None) == {("t", 0): (5, 0), ("t", 1): (6, 0)}


@pytest.mark.parametrize("version", range(1, 11))
def test_offsets_are_fetched(world: NodeWorld, version: int) -> None:
    group = f"fetch-{version}"
    commit(world, group, 9, ("t", 0, 5))
    name: Any = "t" if version < 10 else id_of(world, "t")
    missing: Any = "missing" if version < 10 else MISSING_ID
    code = errors.UNKNOWN_TOPIC_ID if version >= 10 else 0
    expected = {(name, 0): (5, 0), (name, 1): (-1, 0), (missing, 0): (-1, code)}
    assert fetch(world, group, version, {"t": [0, 1], "missing": [0]}) == expected
    if version >= 2:
        assert fetch(world, group, version, None) == {(name, 0): (5, 0)}
    assert fetch(world, "nobody", version, {"t": [0]}) == {(name, 0): (-1, 0)}


def test_groups_of_several_coordinators_are_fetched_at_once(world: NodeWorld) -> None:
    groups = [f"many-{number}" for number in range(20)]
    for number, group in enumerate(groups):
        commit(world, group, 9, ("t", 0, number))
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group, topics=None) for group in groups])
    answer = world.ask(request, 9)
    assert [row.group_id for row in answer.groups] == groups
    assert [row.topics[0].partitions[0].committed_offset for row in answer.groups] == list(range(20))


def test_offsets_are_deleted(world: NodeWorld) -> None:
    commit(world, "delete", 9, ("t", 0, 5), ("t", 1, 6))
    partitions = [OffsetDeleteRequestPartition(index) for index in (0, 9)]
    rows = [OffsetDeleteRequestTopic("t", partitions), OffsetDeleteRequestTopic("missing", partitions[:1])]
    answer = world.ask(OffsetDeleteRequest("delete", rows), 0)
    codes = {(topic.name, row.partition_index): row.error_code for topic in answer.topics for row in topic.partitions}
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code == 0 and codes == {("t", 0): 0, ("t", 9): unknown, ("missing", 0): unknown}
    assert fetch(world, "delete", 9, None) == {("t", 1): (6, 0)}
    assert world.ask(OffsetDeleteRequest("nobody", rows), 0).error_code == errors.GROUP_ID_NOT_FOUND


@pytest.mark.parametrize("version", range(6))
def test_groups_are_listed(world: NodeWorld, version: int) -> None:
    commit(world, "listed", 9, ("t", 0, 5))

    def names(**filters: Any) -> list[str]:
        answer = world.ask(ListGroupsRequest(**filters), version)
        assert answer.error_code == 0
        return [row.group_id for row in answer.groups if row.group_id == "listed"]

    assert names() == ["listed"]
    if version >= 4:
        assert names(states_filter=["EMPTY"]) == ["listed"] and names(states_filter=["Stable"]) == []
    if version >= 5:
        assert names(types_filter=["Classic"]) == ["listed"] and names(types_filter=["consumer"]) == []


@pytest.mark.parametrize("version", range(7))
def test_groups_are_described(world: NodeWorld, version: int) -> None:
    commit(world, "described", 9, ("t", 0, 5))
    request = DescribeGroupsRequest(["described", "nobody"], version >= 3)
    rows = {row.group_id: row for row in world.ask(request, version).groups}
    assert (rows["described"].group_state, rows["described"].error_code) == ("Empty", 0)
    code = errors.GROUP_ID_NOT_FOUND if version >= 6 else 0
    assert (rows["nobody"].group_state, rows["nobody"].error_code) == ("Dead", code)


@pytest.mark.parametrize("version", range(3))
def test_groups_are_deleted(world: NodeWorld, version: int) -> None:
    commit(world, "deleted", 9, ("t", 0, 5))
    answer = world.ask(DeleteGroupsRequest(["deleted", "nobody", "deleted"]), version)
    codes = {row.group_id: row.error_code for row in answer.results}
    assert codes == {"deleted": 0, "nobody": errors.GROUP_ID_NOT_FOUND} and len(answer.results) == 2
    assert fetch(world, "deleted", 9, None) == {}


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        (errors.NOT_ENOUGH_REPLICAS, errors.COORDINATOR_NOT_AVAILABLE),
        (errors.REQUEST_TIMED_OUT, errors.COORDINATOR_NOT_AVAILABLE),
        (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.COORDINATOR_NOT_AVAILABLE),
        (errors.NOT_LEADER_OR_FOLLOWER, errors.NOT_COORDINATOR),
        (errors.KAFKA_STORAGE_ERROR, errors.NOT_COORDINATOR),
        (errors.MESSAGE_TOO_LARGE, errors.UNKNOWN_SERVER_ERROR),
        (errors.RECORD_LIST_TOO_LARGE, errors.UNKNOWN_SERVER_ERROR),
        (errors.UNKNOWN_MEMBER_ID, errors.UNKNOWN_MEMBER_ID),
    ],
)
def test_errors_of_the_log_mean_something_else_to_clients(said: int, meant: int) -> None:
    assert as_client_sees(KafkaError(said)).code == meant
