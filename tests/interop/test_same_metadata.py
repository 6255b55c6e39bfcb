"""Moldau and Apache Kafka describe topics and the cluster alike."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.describe_cluster_request import DescribeClusterRequest
from moldau.protocol.messages.describe_topic_partitions_request import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from tests.interop.conftest import Same
from tests.interop.peers import Peer
from tests.interop.wire import plain
from tests.pace import patience, patience_ms

HIDDEN = {"port", "cluster_id", "controller_id"}


def metadata(peer: Peer, version: int, **fields: Any) -> Any:
    """The answer without what other tests created; the names of topics that exist in both are kept."""
    return plain(peer.ask(MetadataRequest(**fields), version), HIDDEN)


def by_name(*names: str) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


@pytest.mark.parametrize("version", range(14))
def test_a_topic_that_is_there(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 3)
        return metadata(peer, version, topics=by_name(topic))

    answer = same(scenario)
    assert [row["partition_index"] for row in answer["topics"][0]["partitions"]] == [0, 1, 2]


@pytest.mark.parametrize("version", range(4, 14))
def test_a_missing_topic(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        return metadata(peer, version, topics=by_name(topic), allow_auto_topic_creation=False)

    assert same(scenario)["topics"][0]["error_code"] == errors.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("version", [0, 1, 3, 4, 9, 12, 13])
def test_a_missing_topic_is_created(same: Same, topic: str, version: int) -> None:
    """The first answer says that it is not there; a later one has a leader."""

    def scenario(peer: Peer) -> Any:
        first = metadata(peer, version, topics=by_name(topic))
        peer.wait_for_topic(topic)
        return first, metadata(peer, version, topics=by_name(topic))

    first, later = same(scenario)
    assert first["topics"][0]["error_code"] == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert later["topics"][0]["error_code"] == 0


@pytest.mark.parametrize("auto_create", [False, True])
@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ü", "x" * 250, "x" * 249, "a/b", "__consumer_offsets_not"])
def test_names_that_cannot_be_topics(same: Same, name: str, auto_create: bool) -> None:
    def scenario(peer: Peer) -> Any:
        return metadata(peer, 12, topics=by_name(name), allow_auto_topic_creation=auto_create)

    same(scenario)


def test_topics_are_found_by_id(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        by_id = [MetadataRequestTopic(topic_id=peer.topic_id(topic), name=None)]
        unknown = [MetadataRequestTopic(topic_id=b"\1" * 16, name=None)]
        return [metadata(peer, version, topics=asked) for version in (12, 13) for asked in (by_id, unknown)]

    found, unknown, _, _ = same(scenario)
    assert found["topics"][0]["name"] == topic
    assert unknown["topics"][0]["error_code"] == errors.UNKNOWN_TOPIC_ID


def test_requests_that_contradict_themselves(same: Same, topic: str) -> None:
    """A topic asked for by name and id at once, or twice."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        identifier = peer.topic_id(topic)
        both = MetadataRequestTopic(topic_id=identifier, name=topic)
        named = MetadataRequestTopic(name=topic)
        asked = MetadataRequestTopic(topic_id=identifier, name=None)
        answers = []
        for rows in ([both], [named, named], [named, asked]):
            answers.append(metadata(peer, 12, topics=rows))
        return answers

    same(scenario)


@pytest.mark.parametrize("version", range(14))
def test_no_topics_gives_brokers_alone(same: Same, version: int) -> None:
    """An empty list means none from version 1 on; in version 0 it means all."""

    def scenario(peer: Peer) -> Any:
        answer = metadata(peer, version, topics=[])
        if version == 0:
            answer["topics"] = len(answer["topics"]) > 0
        return answer

    assert len(same(scenario)["brokers"]) == 1


@pytest.mark.parametrize("version", [1, 7, 9, 13])
def test_null_topics_gives_all(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic, 2)
        answer = metadata(peer, version, topics=None)
        answer["topics"] = [row for row in answer["topics"] if row["name"] == topic]
        return answer

    assert len(same(scenario)["topics"]) == 1


@pytest.mark.parametrize("version", [8, 9, 10, 12])
def test_authorized_operations_are_told_when_asked_for(same: Same, topic: str, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        fields: dict[str, Any] = {"include_topic_authorized_operations": True}
        if version <= 10:
            fields["include_cluster_authorized_operations"] = True
        return metadata(peer, version, topics=by_name(topic), **fields)

    same(scenario)


def test_a_deleted_topic_is_gone(same: Same, topic: str) -> None:
    from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        identifier = peer.topic_id(topic)
        peer.ask(DeleteTopicsRequest(topic_names=[topic], timeout_ms=patience_ms(10_000)), 5)
        deadline = time.monotonic() + patience(10)
        while peer.metadata(topic).error_code == 0 and time.monotonic() < deadline:
            time.sleep(0.02)
        by_id = [MetadataRequestTopic(topic_id=identifier, name=None)]
        return metadata(peer, 12, topics=by_name(topic), allow_auto_topic_creation=False), metadata(
            peer, 12, topics=by_id
        )

    same(scenario)


def describe(peer: Peer, names: list[str], limit: int = 2000, cursor: Cursor | None = None) -> Any:
    asked = [TopicRequest(name=name) for name in names]
    request = DescribeTopicPartitionsRequest(topics=asked, response_partition_limit=limit, cursor=cursor)
    return plain(peer.ask(request, 0))


def test_topic_partitions_are_described_page_by_page(same: Same, topic: str) -> None:
    """The limit counts partitions over all topics; the cursor says where the next page begins."""
    names = [f"{topic}-{letter}" for letter in "cab"]

    def scenario(peer: Peer) -> Any:
        for name in names:
            peer.create(name, 3)
        pages = [describe(peer, names, limit) for limit in (9, 2, 3, 4, 0, -1)]
        cursors = [
            Cursor(names[2], 1),
            Cursor(names[1], 2),
            Cursor(names[0], 2),
            Cursor(names[0], 3),
            Cursor(names[0], 9),
            Cursor(f"{topic}-bb", 0),
            Cursor(f"{topic}-zz", 0),
        ]
        pages += [describe(peer, names, 4, cursor) for cursor in cursors]
        pages.append(describe(peer, names, 4, Cursor(names[0], -1)))
        return pages

    pages = same(scenario)
    assert pages[0]["next_cursor"] is None
    assert pages[1]["next_cursor"] == {"topic_name": f"{topic}-a", "partition_index": 2}


@pytest.mark.parametrize("names", [[], ["missing-here"], ["bad name"], ["missing-here", "missing-here"]])
def test_topic_partitions_of_topics_that_are_not_there(same: Same, names: list[str]) -> None:
    def scenario(peer: Peer) -> Any:
        answer = describe(peer, names)
        if not names:
            answer["topics"] = len(answer["topics"]) > 0
        return answer

    same(scenario)


@pytest.mark.parametrize("version", range(3))
def test_the_cluster_is_described(same: Same, version: int) -> None:
    def scenario(peer: Peer) -> Any:
        answers = []
        for operations in (False, True):
            for endpoint_type in (1, 2, 3) if version >= 1 else (1,):
                request = DescribeClusterRequest(
                    include_cluster_authorized_operations=operations, endpoint_type=endpoint_type
                )
                answers.append(plain(peer.ask(request, version), HIDDEN))
        if version >= 1:
            to_controller = DescribeClusterRequest(endpoint_type=2)
            answers.append(plain(peer.ask(to_controller, version, controller=True), HIDDEN))
            to_controller = DescribeClusterRequest(endpoint_type=1)
            answers.append(plain(peer.ask(to_controller, version, controller=True), HIDDEN))
        if version >= 2:
            fenced = DescribeClusterRequest(include_fenced_brokers=True)
            answers.append(plain(peer.ask(fenced, version), HIDDEN))
        return answers

    same(scenario)
