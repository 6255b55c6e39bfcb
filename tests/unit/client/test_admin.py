"""The admin client: one outcome per item."""

from __future__ import annotations

import pytest

from moldau.client.admin import BROKER, SET, TOPIC, Admin, ConfigChange, ConfigResource, NewTopic
from moldau.client.errors import ClosedError, TopicExistsError
from moldau.client.wiring import wired
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest
from moldau.protocol.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from moldau.protocol.messages.incremental_alter_configs_request import IncrementalAlterConfigsRequest
from moldau.protocol.messages.incremental_alter_configs_response import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsResponse,
)
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.primitives import Message
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata

AWAY = ("away", 9093)


def set_up() -> tuple[Admin, ScriptedBroker, ScriptedBroker]:
    home, away = ScriptedBroker(), ScriptedBroker()
    for broker in (home, away):
        broker.on(MetadataRequest, metadata({"a": [1, 2], "b": [1]}, {1: HOME, 2: AWAY}))
    return Admin("broker:9092", config=wired(network=FakeNetwork({HOME: home, AWAY: away}))), home, away


def test_topics_are_listed_and_described() -> None:
    admin, _, _ = set_up()
    assert [(topic.name, len(topic.partitions)) for topic in admin.list_topics()] == [("a", 2), ("b", 1)]
    found = admin.describe_topics(["a", "nope"])
    assert found["a"].get().partitions[1].leader == 2
    error = found["nope"].error
    assert error is not None and error.name == "UNKNOWN_TOPIC_OR_PARTITION"


def test_creating_two_topics_of_which_one_exists_gives_two_outcomes() -> None:
    admin, home, _ = set_up()

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, CreateTopicsRequest)
        assert request.topics[0].configs[0].name == "retention.ms" and not request.validate_only
        return CreateTopicsResponse(
            topics=[
                CreatableTopicResult(name="new", num_partitions=3, replication_factor=1, error_message=None),
                CreatableTopicResult(name="a", error_code=36, error_message="Topic 'a' already exists."),
            ]
        )

    home.on(CreateTopicsRequest, handle)
    found = admin.create_topics([NewTopic("new", 3, 1, {"retention.ms": "1"}), NewTopic("a")])
    assert found["new"].get().partitions == 3
    with pytest.raises(TopicExistsError, match="already exists"):
        found["a"].get()


def test_a_missing_controller_is_waited_for() -> None:
    admin, home, _ = set_up()
    codes = [41, 41, 0]

    def handle(request: Message, version: int) -> object:
        return DeleteTopicsResponse(responses=[DeletableTopicResult(name="a", error_code=codes.pop(0))])

    home.on(DeleteTopicsRequest, handle)
    assert admin.delete_topics(["a"])["a"].error is None and codes == []


def configs_handler(asked: list[str]) -> object:
    def handle(request: Message, version: int) -> object:
        assert isinstance(request, DescribeConfigsRequest)
        asked.extend(row.resource_name for row in request.resources)
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(
                    resource_type=row.resource_type,
                    resource_name=row.resource_name,
                    configs=[DescribeConfigsResourceResult(name="x", value="1", config_source=5)],
                )
                for row in request.resources
            ]
        )

    return handle


def test_configs_of_a_broker_are_asked_of_that_broker() -> None:
    admin, home, away = set_up()
    at_home: list[str] = []
    at_away: list[str] = []
    home.on(DescribeConfigsRequest, configs_handler(at_home))  # type: ignore[arg-type]
    away.on(DescribeConfigsRequest, configs_handler(at_away))  # type: ignore[arg-type]
    resources = [ConfigResource(BROKER, "1"), ConfigResource(BROKER, "2")]
    found = admin.describe_configs(resources)
    assert found[resources[1]].get()[0].is_default
    assert (at_home, at_away) == (["1"], ["2"])


def test_altering_configs_reports_per_resource() -> None:
    admin, home, away = set_up()

    def handle(request: Message, version: int) -> object:
        assert isinstance(request, IncrementalAlterConfigsRequest)
        assert request.resources[0].configs[0].config_operation == SET
        return IncrementalAlterConfigsResponse(
            responses=[
                AlterConfigsResourceResponse(resource_type=TOPIC, resource_name="a", error_message=None),
                AlterConfigsResourceResponse(
                    resource_type=TOPIC, resource_name="b", error_code=40, error_message="Unknown topic config name: z"
                ),
            ]
        )

    home.on(IncrementalAlterConfigsRequest, handle)
    away.on(IncrementalAlterConfigsRequest, handle)
    change = [ConfigChange("z", "1")]
    found = admin.incremental_alter_configs({ConfigResource(TOPIC, "a"): change, ConfigResource(TOPIC, "b"): change})
    assert found[ConfigResource(TOPIC, "a")].error is None
    error = found[ConfigResource(TOPIC, "b")].error
    assert error is not None and error.message == "Unknown topic config name: z"


def test_a_closed_admin_client_says_so() -> None:
    admin, _, _ = set_up()
    admin.close()
    with pytest.raises(ClosedError):
        admin.list_topics()
