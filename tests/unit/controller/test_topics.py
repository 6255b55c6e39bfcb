"""Creating, deleting and growing topics: records, answers and Kafka's words."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.create_partitions_request import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.stored.metadata_records import ConfigRecord, PartitionRecord
from tests.unit.controller.world import World, directory


def world(brokers: int = 3) -> World:
    made = World()
    made.add_brokers(*range(1, brokers + 1))
    return made


def test_a_topic_is_its_record_then_its_configs_then_its_partitions() -> None:
    """The order of a real metadata log."""
    w = world(1)
    result = w.create("orders", 2, 1, configs={"cleanup.policy": "compact", "min.insync.replicas": "2"})
    assert (result.error_code, result.num_partitions, result.replication_factor) == (0, 2, 1)
    names = ["TopicRecord", "ConfigRecord", "ConfigRecord", "ClearElrRecord", "PartitionRecord", "PartitionRecord"]
    assert w.record_names() == names
    record = w.records[4][0]
    assert isinstance(record, PartitionRecord)
    assert (record.replicas, record.isr, record.leader, record.leader_epoch) == ([1], [1], 1, 0)
    assert record.directories == [directory(1)]
    assert w.image.topics_by_name["orders"].topic_id == result.topic_id


def test_the_answer_describes_the_settings_of_the_new_topic() -> None:
    w = world(1)
    configs = {row.name: row for row in w.create("orders", 1, 1, configs={"retention.ms": "5"}).configs}
    assert configs["retention.ms"].value == "5"
    assert configs["retention.ms"].config_source == 1
    assert configs["cleanup.policy"].value == "delete"


def test_defaults_come_from_the_configuration() -> None:
    w = World(num_partitions="4")
    w.add_brokers(1)
    result = w.create("t")
    assert (result.num_partitions, result.replication_factor) == (4, 1)


def test_validate_only_answers_and_writes_nothing() -> None:
    w = world()
    assert w.create("t", 1, 1, validate_only=True).error_code == 0
    assert w.records == []


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ({"name": "bad name!"}, errors.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: 'bad name!' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"),  # noqa: E501
        ({"name": "."}, errors.INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '.' is not allowed"),
        ({"name": "with_dot"}, errors.INVALID_TOPIC_EXCEPTION, "Topic 'with_dot' collides with existing topic: with.dot"),  # noqa: E501
        ({"name": "with.dot"}, errors.TOPIC_ALREADY_EXISTS, "Topic 'with.dot' already exists."),
        ({"name": "t", "partitions": 1, "factor": 4}, errors.INVALID_REPLICATION_FACTOR, "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be reached because only 3 broker(s) are registered or some brokers have all their log directories cordoned."),  # noqa: E501
        ({"name": "t", "partitions": 0}, errors.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value."),  # noqa: E501
        ({"name": "t", "factor": 0}, errors.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0, or -1 to use the default value."),  # noqa: E501
        ({"name": "t", "configs": {"no.such.config": "1"}}, errors.INVALID_CONFIG, "Unknown topic config name: no.such.config"),  # noqa: E501
        ({"name": "t", "configs": {"retention.ms": "abc"}}, errors.INVALID_CONFIG, "Invalid value abc for configuration retention.ms: Not a number of type LONG"),  # noqa: E501
        ({"name": "t", "configs": {"retention.ms": None}}, errors.INVALID_CONFIG, "Null value not supported for topic configs: retention.ms"),  # noqa: E501
        ({"name": "t", "assignments": [[1, 9]]}, errors.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes broker 9, but no such broker is registered."),  # noqa: E501
        ({"name": "t", "assignments": [[1, 1]]}, errors.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes the broker 1 more than once."),  # noqa: E501
        ({"name": "t", "assignments": [[1, 2], [3]]}, errors.INVALID_REPLICA_ASSIGNMENT, "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with previous partitions, which have 2 replica(s)."),  # noqa: E501
        ({"name": "t", "assignments": [[1]], "factor": 1}, errors.INVALID_REQUEST, "A manual partition assignment was specified, but replication factor was not set to -1."),  # noqa: E501
        ({"name": "__cluster_metadata"}, errors.INVALID_REQUEST, "Creation of internal topic __cluster_metadata is prohibited."),  # noqa: E501
    ],
)  # fmt: skip
def test_a_topic_that_cannot_be_is_refused_in_kafkas_words(arguments: dict[str, Any], code: int, message: str) -> None:
    w = world()
    w.create("with.dot")
    result = w.create(**arguments)
    assert (result.error_code, result.error_message) == (code, message)
    assert w.records == []


def test_a_name_that_is_twice_in_a_request_is_refused_once() -> None:
    w = world()
    request = CreateTopicsRequest([CreatableTopic("a", 1, 1), CreatableTopic("a", 1, 1), CreatableTopic("b", 1, 1)])
    topics = w.run(w.controller.create_topics(request, 0)).topics
    assert [(t.name, t.error_code) for t in topics] == [("a", errors.INVALID_REQUEST), ("b", 0)]


def test_a_fenced_broker_counts_for_placement_but_is_not_in_the_isr() -> None:
    """As measured: replication factor 3 works with two of three brokers up."""
    w = world()
    w.now_ms += 20_000
    for broker_id in (1, 2):
        w.heartbeat(broker_id)
    w.run(w.controller.fence_stale_brokers(w.now_ms))
    assert w.image.brokers[3].fenced
    assert w.create("t", 2, 3).error_code == 0
    for index in (0, 1):
        partition = w.partition("t", index)
        assert partition.replicas[2] == 3
        assert 3 not in partition.isr


def test_topics_are_deleted_by_name_and_by_id_and_their_configs_go_with_them() -> None:
    w = world(1)
    w.create("a", configs={"retention.ms": "1"})
    b = w.create("b").topic_id
    request = DeleteTopicsRequest([DeleteTopicState("a"), DeleteTopicState(None, b)])
    responses = w.run(w.controller.delete_topics(request, 0)).responses
    assert [(r.name, r.error_code) for r in responses] == [("a", 0), ("b", 0)]
    assert w.record_names() == ["RemoveTopicRecord", "RemoveTopicRecord"]
    assert not w.image.topics_by_id
    assert (2, "a") not in w.image.configs


def test_deleting_what_is_not_there_tells_how_it_was_named() -> None:
    w = world(1)
    request = DeleteTopicsRequest([DeleteTopicState("a"), DeleteTopicState(None, b"x" * 16), DeleteTopicState()])
    codes = [r.error_code for r in w.run(w.controller.delete_topics(request, 0)).responses]
    assert codes == [errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_ID, errors.INVALID_REQUEST]


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (2, "The topic orders currently has 4 partition(s); 2 would not be an increase."),
        (4, "Topic already has 4 partition(s)."),
    ],
)
def test_partitions_only_grow(count: int, message: str) -> None:
    w = world()
    w.create("orders", 4, 1)
    request = CreatePartitionsRequest([CreatePartitionsTopic("orders", count, None)])
    result = w.run(w.controller.create_partitions(request, 0)).results[0]
    assert (result.error_code, result.error_message) == (errors.INVALID_PARTITIONS, message)


def test_added_partitions_follow_the_numbers_and_the_replication_factor_of_the_topic() -> None:
    w = world()
    w.create("orders", 2, 3)
    request = CreatePartitionsRequest([CreatePartitionsTopic("orders", 4, None)])
    assert w.run(w.controller.create_partitions(request, 0)).results[0].error_code == 0
    assert sorted(w.image.topics_by_name["orders"].partitions) == [0, 1, 2, 3]
    assert len(w.partition("orders", 3).replicas) == 3


def test_added_partitions_can_be_placed_by_hand() -> None:
    w = world()
    w.create("orders", 1, 2)
    topic = CreatePartitionsTopic("orders", 2, [CreatePartitionsAssignment([3, 1])])
    assert w.run(w.controller.create_partitions(CreatePartitionsRequest([topic]), 0)).results[0].error_code == 0
    assert w.partition("orders", 1).replicas == (3, 1)


def test_topic_settings_are_config_records_of_the_topic() -> None:
    w = world(1)
    w.create("t", configs={"retention.ms": "7"})
    assert [r for r, _ in w.records if isinstance(r, ConfigRecord)] == [ConfigRecord(2, "t", "retention.ms", "7")]
