"""First contact, metadata, leaders, and trying again."""

from __future__ import annotations

import pytest

from moldau.client import config as settings
from moldau.client.cluster import Cluster
from moldau.client.errors import ClientError, NoBrokerError, ProtocolError, UnknownTopicOrPartitionError
from moldau.client.offsets import EARLIEST, LATEST, list_offsets
from moldau.client.results import TopicPartition
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import DISCONNECT, HOME, SILENCE, FakeNetwork, ScriptedBroker, metadata

AWAY = ("other", 9093)


def new_cluster(network: FakeNetwork, bootstrap: str = "broker:9092", **more: object) -> Cluster:
    config = settings.ClientConfig(settings.ADMIN, {"bootstrap.servers": bootstrap})
    return Cluster(config, network, **more)  # type: ignore[arg-type]


def one_broker(topics: dict[str, int | list[int]]) -> tuple[FakeNetwork, ScriptedBroker]:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata(topics))
    return FakeNetwork({HOME: broker}), broker


def test_metadata_tells_brokers_topics_and_leaders() -> None:
    network, _ = one_broker({"orders": [1, 1]})
    cluster = new_cluster(network)
    cluster.refresh(None, 1000)
    assert cluster.cluster_id == "test-cluster" and list(cluster.brokers) == [1]
    leader = cluster.leader(TopicPartition("orders", 1))
    assert leader is not None and (leader.leader, leader.leader_epoch) == (1, 7)
    assert cluster.leader(TopicPartition("orders", 2)) is None


def test_the_next_bootstrap_server_is_asked_when_the_first_is_down() -> None:
    network, _ = one_broker({})
    cluster = new_cluster(network, "nowhere:1,broker:9092")
    cluster.refresh(None, 1000)
    assert list(cluster.brokers) == [1]


def test_no_broker_at_all_fails_at_once_when_first_contact_may_take_no_time() -> None:
    network = FakeNetwork({})
    cluster = new_cluster(network, first_contact_ms=0)
    with pytest.raises(NoBrokerError, match="broker:9092: Connection refused"):
        cluster.refresh(None, 60_000)
    assert network.clock_ms < 2_000


def test_no_broker_at_all_is_tried_again_until_the_timeout_by_default() -> None:
    network = FakeNetwork({})
    with pytest.raises(NoBrokerError):
        new_cluster(network).refresh(None, 60_000)
    assert network.clock_ms > 50_000


def test_a_broker_that_comes_up_late_is_found() -> None:
    network, broker = one_broker({})
    broker.up = False
    tries = []
    real_poll = network.poll

    def poll(timeout_ms: int) -> None:
        tries.append(timeout_ms)
        broker.up = len(tries) > 5
        real_poll(timeout_ms)

    network.poll = poll  # type: ignore[method-assign]
    cluster = new_cluster(network)
    cluster.refresh(None, 60_000)
    assert list(cluster.brokers) == [1]


def test_something_that_is_not_kafka_is_not_asked_again() -> None:
    network, broker = one_broker({})
    broker.answer = lambda data: b"HTTP/1.1 400 Bad Request"  # type: ignore[method-assign]
    with pytest.raises(ProtocolError):
        new_cluster(network).refresh(None, 60_000)
    assert network.clock_ms < 2_000


def test_a_topic_that_does_not_exist_is_believed_to_be_missing_soon() -> None:
    network, broker = one_broker({})
    with pytest.raises(UnknownTopicOrPartitionError, match="Topic nope does not exist"):
        new_cluster(network).topic("nope", 60_000)
    assert network.clock_ms < 2_000
    asked = [request for _, request in broker.seen if isinstance(request, MetadataRequest)]
    assert len(asked) == 3 and not any(request.allow_auto_topic_creation for request in asked)


def test_a_topic_that_appears_while_it_is_created_is_waited_for() -> None:
    topics: dict[str, int | list[int]] = {"new": 3}
    network, broker = one_broker(topics)
    answer = metadata(topics)
    count = 0

    def handle(request: Message, version: int) -> object:
        nonlocal count
        count += 1
        if count > 8:
            topics["new"] = [1]
        return answer(request, version)

    broker.on(MetadataRequest, handle)
    assert list(new_cluster(network, auto_create_topics=True).topic("new", 60_000).partitions) == [0]


def test_a_broker_that_never_answers_costs_the_request_timeout_and_not_more() -> None:
    network, broker = one_broker({})
    broker.on(MetadataRequest, lambda request, version: SILENCE)
    with pytest.raises(ClientError):
        new_cluster(network).refresh(None, 5_000)
    assert 5_000 <= network.clock_ms - 1_000 < 7_000


def offsets_handler(errors: list[int]) -> object:
    def handle(request: Message, version: int) -> object:
        assert isinstance(request, ListOffsetsRequest)
        error = errors.pop(0) if errors else 0
        if error == -99:
            return DISCONNECT
        return ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResponse(
                    name=topic.name,
                    partitions=[
                        ListOffsetsPartitionResponse(
                            partition_index=row.partition_index,
                            error_code=error,
                            offset=0 if row.timestamp == EARLIEST else 42,
                        )
                        for row in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    return handle


@pytest.mark.parametrize("trouble", [[6], [6, 5, 75], [-99, 3], [78] * 6])
def test_leaders_are_asked_again_after_retriable_errors(trouble: list[int]) -> None:
    network, broker = one_broker({"orders": [1, 1]})
    broker.on(ListOffsetsRequest, offsets_handler(trouble))  # type: ignore[arg-type]
    both = {TopicPartition("orders", 0): EARLIEST, TopicPartition("orders", 1): LATEST}
    found = list_offsets(new_cluster(network), both, 60_000)
    assert [outcome.get().offset for _, outcome in sorted(found.items())] == [0, 42]


def test_an_error_of_one_partition_does_not_hide_the_other() -> None:
    network, broker = one_broker({"orders": [1]})
    broker.on(ListOffsetsRequest, offsets_handler([]))  # type: ignore[arg-type]
    found = list_offsets(
        new_cluster(network), {TopicPartition("orders", 0): LATEST, TopicPartition("orders", 9): LATEST}, 60_000
    )
    assert found[TopicPartition("orders", 0)].get().offset == 42
    error = found[TopicPartition("orders", 9)].error
    assert error is not None and "no partition 9" in error.message


def test_a_final_error_is_not_tried_again() -> None:
    network, broker = one_broker({"orders": [1]})
    broker.on(ListOffsetsRequest, offsets_handler([29] * 9))  # type: ignore[arg-type]
    found = list_offsets(new_cluster(network), {TopicPartition("orders", 0): LATEST}, 60_000)
    error = found[TopicPartition("orders", 0)].error
    assert error is not None and error.name == "TOPIC_AUTHORIZATION_FAILED" and not error.retriable
    assert sum(isinstance(request, ListOffsetsRequest) for _, request in broker.seen) == 1
