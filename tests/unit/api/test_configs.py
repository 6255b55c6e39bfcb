"""DescribeConfigs, ListConfigResources and the part of the alter requests that a broker answers itself."""

import json
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.api import configs as api
from moldau.api.configs import ConfigContext, describe_configs, list_config_resources
from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.describe import describe_new_topic
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.config.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import TopicImage
from moldau.protocol.errors import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    INVALID_TOPIC_EXCEPTION,
    NONE,
    NOT_CONTROLLER,
    UNKNOWN_TOPIC_OR_PARTITION,
    UNSUPPORTED_VERSION,
    KafkaError,
)
from moldau.protocol.messages import alter_configs_request as plain_request
from moldau.protocol.messages import incremental_alter_configs_request as incremental_request
from moldau.protocol.messages import incremental_alter_configs_response as incremental_response
from moldau.protocol.messages.describe_configs_request import DescribeConfigsRequest, DescribeConfigsResource
from moldau.protocol.messages.describe_configs_response import DescribeConfigsResponse, DescribeConfigsResult
from moldau.protocol.messages.list_config_resources_request import ListConfigResourcesRequest
from moldau.protocol.primitives import Reader, Writer

DATA = Path(__file__).parents[2] / "data"
NO_APPEND = "Config value append is not allowed for config key: max.connections"
OTHER_BROKER = "Unexpected broker id, expected 1, but received 9"
LOGGER = "moldau.test.api.configs"


@pytest.fixture
def context() -> ConfigContext:
    captured = json.loads((DATA / "describe-configs-changed.json").read_text())
    broker = DynamicBrokerConfig(BrokerConfig(captured["static"], warn=False))
    dynamic = captured["dynamic"]
    broker.update_default(dynamic["default"])
    broker.update_broker(dynamic["broker"])
    image = MetadataImage()
    image.topics_by_name["t"] = TopicImage("t", b"\1" * 16, {})
    image.configs = {
        (TOPIC, "t"): dynamic["topic"],
        (BROKER, "1"): dynamic["broker"],
        (BROKER, ""): dynamic["default"],
        (GROUP, "g"): dynamic["group"],
        (CLIENT_METRICS, "m"): dynamic["client_metrics"],
    }
    logging.getLogger(LOGGER)
    return ConfigContext(1, image, broker)


def describe(
    context: ConfigContext, kind: int, name: str, keys: list[str] | None = None, details: bool = False
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys)
    request = DescribeConfigsRequest([resource], include_synonyms=details, include_documentation=details)
    (result,) = describe_configs(request, context).results
    return result


def test_the_whole_answer_equals_the_real_brokers_answer_and_survives_the_wire(context: ConfigContext) -> None:
    """All kinds of resources in one request, encoded and decoded in the highest version."""
    captured = json.loads((DATA / "describe-configs-changed.json").read_text())
    resources = [
        DescribeConfigsResource(resource_type=real["type"], resource_name=real["name"], configuration_keys=None)
        for real in captured["results"]
    ]
    writer = Writer()
    describe_configs(DescribeConfigsRequest(resources, True, True), context).encode(writer, 4)
    data = writer.to_bytes()
    decoded = DescribeConfigsResponse.decode(Reader(data, 0, len(data)), 4)
    for mine, real in zip(decoded.results, captured["results"], strict=True):
        assert (mine.error_code, mine.error_message) == (real["error"], real["message"])
        shown = [
            {
                "name": line.name,
                "value": line.value,
                "read_only": line.read_only,
                "source": line.config_source,
                "sensitive": line.is_sensitive,
                "synonyms": [[synonym.name, synonym.value, synonym.source] for synonym in line.synonyms],
                "type": line.config_type,
                "documented": line.documentation is not None,
            }
            for line in mine.configs
        ]
        assert shown == real["configs"]


@pytest.mark.parametrize(
    ("kind", "name", "code", "message"),
    [
        (TOPIC, "nope", UNKNOWN_TOPIC_OR_PARTITION, ""),
        (TOPIC, "", INVALID_TOPIC_EXCEPTION, "Topic name is invalid: the empty string is not allowed"),
        (BROKER, "9", INVALID_REQUEST, "Unexpected broker id, expected 1 or empty string, but received 9"),
        (BROKER, "x", INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (BROKER_LOGGER, "", INVALID_REQUEST, "Broker id must not be empty"),
        (BROKER_LOGGER, "2", INVALID_REQUEST, "Unexpected broker id, expected 1 but received 2"),
        (CLIENT_METRICS, "", INVALID_REQUEST, "Client metrics subscription name must not be empty"),
        (GROUP, "", INVALID_REQUEST, "Group name must not be empty"),
        (7, "x", INVALID_REQUEST, "Unknown resource type 7"),
    ],
)
def test_what_cannot_be_described_is_refused_in_the_real_brokers_words(
    context: ConfigContext, kind: int, name: str, code: int, message: str
) -> None:
    """The answer has the code and the sentence, and no configs."""
    result = describe(context, kind, name)
    assert (result.error_code, result.error_message, result.configs) == (code, message, [])


def test_only_the_keys_asked_for_are_described_and_unknown_ones_are_left_out(context: ConfigContext) -> None:
    """Null and an empty list both mean all keys."""
    assert [line.name for line in describe(context, TOPIC, "t", ["retention.ms", "nope"]).configs] == ["retention.ms"]
    assert len(describe(context, TOPIC, "t", []).configs) == len(describe(context, TOPIC, "t").configs) == 33


def test_synonyms_and_documentation_come_only_when_asked_for(context: ConfigContext) -> None:
    """They are most of the bytes of an answer."""
    (line,) = describe(context, TOPIC, "t", ["retention.ms"]).configs
    assert (line.synonyms, line.documentation) == ([], None)
    (line,) = describe(context, TOPIC, "t", ["retention.ms"], details=True).configs
    assert len(line.synonyms) == 4
    assert line.documentation


def test_a_group_or_subscription_nobody_configured_shows_defaults(context: ConfigContext) -> None:
    """Such names need not exist."""
    assert describe(context, GROUP, "other", ["consumer.session.timeout.ms"]).configs[0].value == "50000"
    assert describe(context, CLIENT_METRICS, "other", ["interval.ms"]).configs[0].value == "300000"


def test_loggers_are_described_with_their_levels(context: ConfigContext) -> None:
    """A level has its own source and no synonyms."""
    (line,) = describe(context, BROKER_LOGGER, "1", [LOGGER], details=True).configs
    assert (line.config_source, line.read_only, line.synonyms, line.documentation) == (6, False, [], None)


def test_resources_are_listed_by_kind(context: ConfigContext) -> None:
    """No kinds means all; an unknown kind is an error of its own."""
    listed = list_config_resources(ListConfigResourcesRequest(), context).config_resources
    assert [(each.resource_type, each.resource_name) for each in listed] == [
        (GROUP, "g"),
        (CLIENT_METRICS, "m"),
        (TOPIC, "t"),
    ]
    listed = list_config_resources(ListConfigResourcesRequest([TOPIC]), context).config_resources
    assert [(each.resource_type, each.resource_name) for each in listed] == [(TOPIC, "t")]
    assert list_config_resources(ListConfigResourcesRequest([7]), context).error_code == UNSUPPORTED_VERSION


def test_a_new_topic_is_described_with_its_real_sources(context: ConfigContext) -> None:
    """Unlike in DescribeConfigs, a value given in hours counts as coming from the file."""
    lines = {
        line.name: (line.value, line.source) for line in describe_new_topic({"retention.ms": " 9"}, context.broker)
    }
    assert lines["retention.ms"] == (" 9", 1)
    assert lines["segment.ms"] == ("10800000", 4)
    assert lines["flush.ms"] == ("99", 4)
    assert lines["max.message.bytes"] == ("2000000", 2)
    assert lines["delete.retention.ms"] == ("5", 3)
    assert lines["retention.bytes"] == ("-1", 5)
    assert len(lines) == 33


class FakeController:
    """Stands for the active controller and remembers what reached it."""

    def __init__(self, failure: KafkaError | None = None) -> None:
        self.failure = failure
        self.seen: list[tuple[int, str]] = []

    def submit(self, verb: Any, done: Any, now_ms: int) -> None:
        done(self.failure if self.failure is not None else verb(self), now_ms)

    def ask_until(self, deadline_ms: int, api_key: int, request: Any, done: Any, now_ms: int, verb: Any) -> None:
        """The same through a broker's listener: here is the active controller."""
        self.submit(verb, done, now_ms)

    def incremental_alter_configs(
        self, request: Any, now_ms: int
    ) -> incremental_response.IncrementalAlterConfigsResponse:
        self.seen = [(each.resource_type, each.resource_name) for each in request.resources]
        rows = [incremental_response.AlterConfigsResourceResponse(0, None, *each) for each in self.seen]
        return incremental_response.IncrementalAlterConfigsResponse(responses=rows)

    alter_configs = incremental_alter_configs


class FakeCall:
    """A call on a broker's listener whose answer is kept."""

    def __init__(self, context: ConfigContext, controller: FakeController) -> None:
        self.node = SimpleNamespace(
            rights=None,
            node_id=context.node_id,
            image=context.image,
            dynamic=context.broker,
            metadata=controller,
            forwarding=controller,
        )
        self.context = SimpleNamespace(is_controller_listener=context.on_controller_listener, is_forwarded=False)
        self.reply = SimpleNamespace(done=False)
        self.now_ms = 0
        self.rows: list[tuple[int, str | None, int, str]] = []

    def respond(self, response: Any) -> None:
        self.rows = [
            (row.error_code, row.error_message, row.resource_type, row.resource_name) for row in response.responses
        ]


def alter(
    context: ConfigContext,
    *resources: tuple[int, str, list[tuple[str, int, str | None]]],
    controller: FakeController | None = None,
    validate_only: bool = False,
) -> list[tuple[int, str | None, int, str]]:
    request = incremental_request.IncrementalAlterConfigsRequest(validate_only=validate_only)
    for kind, name, changes in resources:
        configs = [incremental_request.AlterableConfig(*change) for change in changes]
        request.resources.append(incremental_request.AlterConfigsResource(kind, name, configs))
    call: Any = FakeCall(context, controller or FakeController())
    api.handle_incremental_alter_configs(call, request)
    rows: list[tuple[int, str | None, int, str]] = call.rows
    return rows


@pytest.mark.parametrize(
    ("kind", "name", "changes", "code", "message"),
    [
        (TOPIC, "t", [("retention.ms", 0, None)], INVALID_REQUEST, "Null value not supported for : retention.ms"),
        (TOPIC, "t", [("a", 0, "1"), ("a", 1, None)], INVALID_REQUEST, "Error due to duplicate config keys"),
        (BROKER, "9", [("max.connections", 0, "1")], INVALID_REQUEST, OTHER_BROKER),
        (BROKER, "x", [("max.connections", 0, "1")], INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (BROKER, "1", [("node.id", 0, "1")], INVALID_REQUEST, "Cannot update these configs dynamically: [node.id]"),
        (BROKER, "1", [("max.connections", 2, "1")], INVALID_CONFIG, NO_APPEND),
        (BROKER, "1", [("unknown", 2, "1")], INVALID_CONFIG, "Unknown config name: unknown"),
        (BROKER_LOGGER, "2", [("root", 0, "INFO")], INVALID_REQUEST, "Unexpected node id. Expected 1, but received 2"),
        (BROKER_LOGGER, "", [("root", 0, "INFO")], INVALID_REQUEST, "Node id must be an integer, but it is: "),
        (BROKER_LOGGER, "1", [("nope", 0, "INFO")], INVALID_CONFIG, "Logger nope does not exist!"),
    ],
)
def test_what_the_broker_can_refuse_never_reaches_the_controller(
    context: ConfigContext,
    kind: int,
    name: str,
    changes: list[tuple[str, int, str | None]],
    code: int,
    message: str,
) -> None:
    """The refusal is in the real broker's words."""
    controller = FakeController()
    assert alter(context, (kind, name, changes), controller=controller) == [(code, message, kind, name)]
    assert controller.seen == []


def test_the_rest_is_forwarded_and_the_answer_keeps_the_order_of_the_request(context: ConfigContext) -> None:
    """Refused, own and forwarded resources of one request are answered together."""
    controller = FakeController()
    rows = alter(
        context,
        (TOPIC, "t", [("retention.ms", 0, "5")]),
        (BROKER, "1", [("node.id", 0, "5")]),
        (GROUP, "g", [("x", 1, None)]),
        (BROKER, "", [("log.cleanup.policy", 2, "compact")]),
        controller=controller,
    )
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (NONE, TOPIC, "t"),
        (INVALID_REQUEST, BROKER, "1"),
        (NONE, GROUP, "g"),
        (NONE, BROKER, ""),
    ]
    assert controller.seen == [(TOPIC, "t"), (GROUP, "g"), (BROKER, "")]


def test_a_resource_named_twice_is_refused_twice(context: ConfigContext) -> None:
    """Nobody could say which of the two should hold."""
    rows = alter(context, (TOPIC, "t", []), (TOPIC, "t", []))
    assert rows == [(INVALID_REQUEST, "Each resource must appear at most once.", TOPIC, "t")] * 2


def test_a_failing_controller_answers_everything_that_was_forwarded(context: ConfigContext) -> None:
    """Clients see its error for each resource."""
    failing = FakeController(KafkaError(NOT_CONTROLLER, "moved"))
    assert alter(context, (TOPIC, "t", []), controller=failing) == [(NOT_CONTROLLER, "moved", TOPIC, "t")]


def test_a_level_changes_unless_the_request_only_validates(context: ConfigContext) -> None:
    """Changes are checked first, all or none are made."""
    logger = logging.getLogger(LOGGER)
    assert alter(context, (BROKER_LOGGER, "1", [(LOGGER, 0, "ERROR")]), validate_only=True)[0][0] == NONE
    assert logger.level == logging.NOTSET
    assert alter(context, (BROKER_LOGGER, "1", [(LOGGER, 0, "ERROR"), ("nope", 0, "INFO")]))[0][0] == INVALID_CONFIG
    assert logger.level == logging.NOTSET
    assert alter(context, (BROKER_LOGGER, "1", [(LOGGER, 0, "ERROR")]))[0][0] == NONE
    assert logger.level == logging.ERROR
    assert alter(context, (BROKER_LOGGER, "1", [(LOGGER, 1, None)]))[0][0] == NONE
    assert logger.level == logging.NOTSET


def test_the_older_request_knows_no_loggers_and_checks_broker_configs_as_a_whole(context: ConfigContext) -> None:
    """It replaces everything, so what is stored does not count."""
    request = plain_request.AlterConfigsRequest()
    for kind, name, key in [(BROKER_LOGGER, "1", "root"), (BROKER, "1", "node.id"), (BROKER, "", "max.connections")]:
        request.resources.append(
            plain_request.AlterConfigsResource(kind, name, [plain_request.AlterableConfig(key, "7")])
        )
    call: Any = FakeCall(context, FakeController())
    api.handle_alter_configs(call, request)
    assert call.rows == [
        (INVALID_REQUEST, "Unknown resource type 8", BROKER_LOGGER, "1"),
        (INVALID_REQUEST, "Cannot update these configs dynamically: [node.id]", BROKER, "1"),
        (NONE, None, BROKER, ""),
    ]


def test_on_the_controllers_listener_broker_configs_are_left_to_the_controller(context: ConfigContext) -> None:
    """A controller may alter a broker it is not."""
    context.on_controller_listener = True
    assert alter(context, (BROKER, "9", [("max.connections", 0, "1")]))[0][0] == NONE


def test_a_description_of_a_fresh_node_needs_no_metadata() -> None:
    """A node that has just started can already describe itself."""
    broker = DynamicBrokerConfig(BrokerConfig({**single_node_values(), "log.dirs": "/data"}))
    result = describe(ConfigContext(1, MetadataImage(), broker), BROKER, "1", ["node.id"])
    assert [(line.name, line.value) for line in result.configs] == [("node.id", "1")]


def test_topics_described_together_are_described_as_each_alone(context: ConfigContext) -> None:
    """Topics with the same overrides share their lines; nobody gets those of another."""
    settings: list[dict[str, str]] = [{}, {"retention.ms": "1"}, {}, {"retention.ms": "2"}, {"retention.ms": "1"}]
    for number, overrides in enumerate(settings):
        name = f"together-{number}"
        context.image.topics_by_name[name] = TopicImage(name, bytes([number]) * 16, {})
        if overrides:
            context.image.configs[TOPIC, name] = overrides
    resources = [DescribeConfigsResource(TOPIC, f"together-{number}", None) for number in range(len(settings))]
    resources.append(DescribeConfigsResource(TOPIC, "together-5", ["retention.ms"]))
    context.image.topics_by_name["together-5"] = TopicImage("together-5", bytes(16), {})

    def encoded(asked: list[DescribeConfigsResource], version: int) -> list[bytes]:
        request = DescribeConfigsRequest(asked, include_synonyms=True, include_documentation=version >= 3)
        writers = []
        for result in describe_configs(request, context).results:
            writers.append(Writer())
            result.encode(writers[-1], version)
        return [writer.to_bytes() for writer in writers]

    for version in (1, 2, 3, 4):
        assert encoded(resources, version) == [encoded([resource], version)[0] for resource in resources]
