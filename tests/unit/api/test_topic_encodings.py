"""Metadata responses from what was encoded before are, byte for byte, those that are made anew for every request."""

from __future__ import annotations

import random
from typing import Any

import pytest

from moldau.api import metadata
from moldau.api.call import Call
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from moldau.node import topic_encodings
from moldau.node.context import ClientContext
from moldau.node.topic_encodings import TopicEncodings
from moldau.node.topic_names import is_internal
from moldau.protocol.messages.describe_topic_partitions_request import DescribeTopicPartitionsRequest
from moldau.protocol.messages.describe_topic_partitions_response import (
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseTopic,
)
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from moldau.protocol.stored import metadata_records as r
from moldau.quota.client_quotas import ClientQuotas

VERSIONS = range(MetadataResponse.LOWEST_VERSION, MetadataResponse.HIGHEST_VERSION + 1)
LISTENERS = ("INSIDE", "OUTSIDE")
BROKERS = range(1, 6)


class FakeNode:
    """As much of a node as Metadata asks for."""

    def __init__(self) -> None:
        self.image = MetadataImage()
        self.cluster_id = "a-cluster"
        self.topic_encodings = TopicEncodings()
        self.quotas = ClientQuotas()
        self.rights = None

    @property
    def config(self) -> FakeNode:
        return self

    def get_int(self, name: str) -> int:
        return 2000

    def any_live_broker(self) -> int:
        live = self.image.active_brokers()
        return live[0] if live else -1

    def apply(self, *records: Any) -> None:
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply(self.image.offset + len(records), 1, 1)


def call_of(node: Any, listener: str, version: int) -> Call:
    return Call(
        node,
        ClientContext(listener, "here:1", False),
        api_key=3,
        version=version,
        correlation_id=7,
        client_id="me",
        flexible_response_header=version >= 9,
        now_ms=1,
    )


def ask(node: Any, listener: str, version: int, request: MetadataRequest) -> bytes:
    call = call_of(node, listener, version)
    metadata.handle_metadata(call, request)
    assert call.reply.parts is not None
    return b"".join(part for part in call.reply.parts if isinstance(part, bytes))


def ask_all(node: Any, listener: str = "INSIDE", version: int = 12) -> bytes:
    return ask(node, listener, version, all_topics(version))


def all_topics(version: int) -> MetadataRequest:
    return MetadataRequest(topics=[] if version == 0 else None)


def made_anew(node: FakeNode, listener: str, version: int, request: MetadataRequest) -> bytes:
    """The response without anything that was encoded before."""
    call = call_of(node, listener, version)
    image = node.image
    response = MetadataResponse(
        brokers=metadata.list_brokers(image, listener),
        cluster_id=node.cluster_id,
        controller_id=node.any_live_broker(),
    )
    for topic in image.topics_by_name.values():
        if request.topics and topic.name not in [one.name for one in request.topics]:
            continue
        described = MetadataResponseTopic(0, topic.name, topic.topic_id, is_internal(topic.name))
        for index in sorted(topic.partitions):
            described.partitions.append(metadata.describe_partition(call, image, index, topic.partitions[index]))
        if request.include_topic_authorized_operations:
            described.topic_authorized_operations = metadata.ALL_TOPIC_OPERATIONS
        response.topics.append(described)
    call.respond(response)
    assert call.reply.parts is not None
    return b"".join(part for part in call.reply.parts if isinstance(part, bytes))


def describe_partitions(node: Any, listener: str) -> bytes:
    call = call_of(node, listener, 0)
    metadata.handle_describe_topic_partitions(call, DescribeTopicPartitionsRequest(response_partition_limit=2000))
    assert call.reply.parts is not None
    return b"".join(part for part in call.reply.parts if isinstance(part, bytes))


def partitions_described_anew(node: FakeNode, listener: str) -> bytes:
    call = call_of(node, listener, 0)
    response = DescribeTopicPartitionsResponse()
    for name, topic in sorted(node.image.topics_by_name.items()):
        described = DescribeTopicPartitionsResponseTopic(0, name, topic.topic_id, is_internal(name))
        described.topic_authorized_operations = metadata.ALL_TOPIC_OPERATIONS
        for index, partition in sorted(topic.partitions.items()):
            described.partitions.append(metadata.describe_row(node.image, listener, index, partition))
        response.topics.append(described)
    call.respond(response)
    assert call.reply.parts is not None
    return b"".join(part for part in call.reply.parts if isinstance(part, bytes))


def broker_record(broker_id: int, rng: random.Random, epoch: int) -> r.RegisterBrokerRecord:
    listeners = LISTENERS if rng.random() < 0.8 else LISTENERS[:1]
    return r.RegisterBrokerRecord(
        broker_id,
        incarnation_id=bytes([broker_id]) * 16,
        broker_epoch=epoch,
        end_points=[r.BrokerEndpoint(name, f"host-{broker_id}", 9000 + broker_id, 0) for name in listeners],
        rack=rng.choice([None, "r1"]),
        fenced=rng.random() < 0.3,
        log_dirs=[bytes([broker_id, number]) * 8 for number in range(rng.randrange(3))],
    )


def partition_record(topic_id: bytes, index: int, rng: random.Random) -> r.PartitionRecord:
    replicas = rng.sample(list(BROKERS), rng.randrange(1, 4))
    directories = [
        rng.choice([UNASSIGNED_DIRECTORY, LOST_DIRECTORY, bytes([replica, 0]) * 8, bytes([replica, 1]) * 8])
        for replica in replicas
    ]
    return r.PartitionRecord(
        index,
        topic_id,
        replicas,
        isr=rng.sample(replicas, rng.randrange(0, len(replicas) + 1)),
        leader=rng.choice([*replicas, -1]),
        leader_epoch=rng.randrange(3),
        eligible_leader_replicas=rng.sample(replicas, rng.randrange(0, len(replicas) + 1)),
        last_known_elr=rng.choice([None, replicas[:1]]),
        directories=directories,
    )


def topic_records(number: int, rng: random.Random) -> list[Any]:
    topic_id = number.to_bytes(16, "big")
    name = "__consumer_offsets" if number == 1 else f"topic-{number}"
    partitions = [partition_record(topic_id, index, rng) for index in range(rng.choice([1, 2, 3, 12, 130]))]
    rng.shuffle(partitions)
    return [r.TopicRecord(name, topic_id), *partitions]


def change(node: FakeNode, rng: random.Random, numbers: list[int]) -> None:
    """Something happens in the cluster: a topic comes, changes or goes, or a broker does."""
    kind = rng.choice(["create", "change", "delete", "broker", "nothing"])
    existing = [number for number in numbers if number.to_bytes(16, "big") in node.image.topics_by_id]
    if kind == "create" or not existing:
        numbers.append(len(numbers) + 1)
        node.apply(*topic_records(numbers[-1], rng))
    elif kind == "change":
        topic_id = rng.choice(existing).to_bytes(16, "big")
        node.apply(r.PartitionChangeRecord(0, topic_id, leader=rng.choice([*BROKERS, -1]), isr=[rng.choice(BROKERS)]))
    elif kind == "delete":
        node.apply(r.RemoveTopicRecord(rng.choice(existing).to_bytes(16, "big")))
    elif kind == "broker":
        node.apply(broker_record(rng.choice(BROKERS), rng, node.image.offset + 1))
    else:
        node.apply(r.NoOpRecord())


@pytest.mark.parametrize("seed", range(3))
def test_responses_are_those_that_are_made_anew(seed: int) -> None:
    rng = random.Random(seed)
    node = FakeNode()
    node.apply(*[broker_record(broker_id, rng, 1) for broker_id in BROKERS])
    numbers: list[int] = []
    for _ in range(25):
        change(node, rng, numbers)
        if sum(len(topic.partitions) for topic in node.image.topics_by_id.values()) <= 2000:
            assert describe_partitions(node, "OUTSIDE") == partitions_described_anew(node, "OUTSIDE")
        for version in VERSIONS:
            listener = rng.choice(LISTENERS)
            request = all_topics(version)
            if version >= 8 and rng.random() < 0.5:
                request.include_topic_authorized_operations = True
            assert ask(node, listener, version, request) == made_anew(node, listener, version, request)
            if node.image.topics_by_name:
                name = rng.choice(list(node.image.topics_by_name))
                request.topics = [MetadataRequestTopic(name=name)]
                assert ask(node, listener, version, request) == made_anew(node, listener, version, request)


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the topics that are encoded from now on."""
    names: list[str] = []
    encode_topic = metadata.encode_topic

    def count(call: Any, image: Any, topic: Any, view: Any, with_operations: bool) -> Any:
        names.append(topic.name)
        return encode_topic(call, image, topic, view, with_operations)

    monkeypatch.setattr(metadata, "encode_topic", count)
    return names


def small_cluster(topics: int) -> FakeNode:
    node, rng = FakeNode(), random.Random(1)
    node.apply(*[broker_record(broker_id, rng, 1) for broker_id in BROKERS])
    for number in range(2, 2 + topics):
        node.apply(*topic_records(number, rng))
    return node


def test_only_what_changed_is_encoded_again(monkeypatch: pytest.MonkeyPatch) -> None:
    node = small_cluster(20)
    names = counted(monkeypatch)
    ask_all(node)
    assert len(names) == 20
    names.clear()
    node.apply(r.NoOpRecord())
    ask_all(node)
    assert names == []
    node.apply(r.PartitionChangeRecord(0, (5).to_bytes(16, "big"), leader=3))
    ask_all(node)
    assert names == ["topic-5"]
    names.clear()
    node.apply(r.FenceBrokerRecord(2, 1) if not node.image.brokers[2].fenced else r.UnfenceBrokerRecord(2, 1))
    ask_all(node)
    assert len(names) == 20


def test_a_broker_that_changes_in_what_no_row_shows_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    node = small_cluster(5)
    ask_all(node)
    names = counted(monkeypatch)
    node.apply(r.BrokerRegistrationChangeRecord(1, 1, in_controlled_shutdown=1))
    ask_all(node)
    assert names == []


def test_topics_that_come_and_go_leave_nothing_behind() -> None:
    node = small_cluster(3)
    ask_all(node)
    size = node.topic_encodings.size_bytes
    rng = random.Random(2)
    for number in range(100, 400):
        node.apply(*topic_records(number, rng))
        request = MetadataRequest(topics=[MetadataRequestTopic(name=f"topic-{number}")])
        ask(node, "INSIDE", 12, request)
        node.apply(r.RemoveTopicRecord(number.to_bytes(16, "big")))
    ask_all(node)
    assert node.topic_encodings.size_bytes == size


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    node = small_cluster(8)
    for version in VERSIONS:
        for listener in LISTENERS:
            ask_all(node, listener, version)
    assert len(node.topic_encodings._views) == topic_encodings.VIEWS_MAX
    monkeypatch.setattr(topic_encodings, "BYTES_MAX", 1000)
    for version in VERSIONS:
        request = all_topics(version)
        assert ask(node, "INSIDE", version, request) == made_anew(node, "INSIDE", version, request)
        assert node.topic_encodings.size_bytes <= 1000
