"""What an alter request may set, and the words of a refusal: compared with answers captured from a real broker."""

import json
from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.dynamic import (
    DynamicBrokerConfig,
    validate_broker_configs,
    validate_client_metrics_configs,
    validate_group_configs,
    validate_topic_configs,
)
from moldau.config.resources import BROKER, CLIENT_METRICS, GROUP, TOPIC, check_altered_resource, check_topic_name
from moldau.protocol.errors import INVALID_CONFIG, INVALID_REQUEST, INVALID_TOPIC_EXCEPTION, KafkaError

ANSWERS = json.loads((Path(__file__).parents[2] / "data" / "alter-configs-answers.json").read_text())
CURRENT = BrokerConfig({**single_node_values(), "log.dirs": "/data"})


def answer(resource_type: int, name: str, configs: dict[str, str | None]) -> tuple[int, str | None]:
    try:
        if resource_type == TOPIC:
            validate_topic_configs(configs)
        elif resource_type == BROKER:
            validate_broker_configs(configs, name != "", CURRENT)
        elif resource_type == GROUP:
            validate_group_configs(configs, CURRENT)
        elif resource_type == CLIENT_METRICS:
            validate_client_metrics_configs(configs)
    except KafkaError as error:
        return error.code, error.message
    return 0, None


def test_every_captured_change_is_answered_as_the_real_broker_answers_it() -> None:
    """Code and text agree for some two hundred good and bad values of every kind of resource."""
    assert len(ANSWERS) > 200
    for resource_type, name, configs, code, message in ANSWERS:
        assert (resource_type, configs, *answer(resource_type, name, configs)) == (
            resource_type,
            configs,
            code,
            message,
        )


def test_lags_of_compaction_must_not_contradict_each_other() -> None:
    """The shortest time before compaction must not exceed the longest."""
    configs: dict[str, str | None] = {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"}
    wanted = "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)"
    assert answer(TOPIC, "t", configs) == (INVALID_CONFIG, wanted)


def test_unknown_names_are_told_before_bad_values() -> None:
    """A name nobody knows is the first thing said about a topic's configs."""
    assert answer(TOPIC, "t", {"retention.ms": "x", "zzz": "1"}) == (INVALID_CONFIG, "Unknown topic config name: zzz")


def test_a_group_may_not_set_a_heartbeat_as_long_as_its_session() -> None:
    """Bounds that leave room for it do not make the combination right."""
    roomy = BrokerConfig({**CURRENT.values, "group.consumer.min.session.timeout.ms": "6000"})
    with pytest.raises(
        KafkaError, match=r"^consumer.session.timeout.ms must be greater than consumer.heartbeat.interval.ms$"
    ):
        validate_group_configs({"consumer.session.timeout.ms": "7000", "consumer.heartbeat.interval.ms": "7000"}, roomy)


@pytest.mark.parametrize(
    ("resource_type", "name", "code", "message"),
    [
        (TOPIC, "", INVALID_REQUEST, "Default topic resources are not allowed."),
        (GROUP, "", INVALID_REQUEST, "Default group resources are not allowed."),
        (CLIENT_METRICS, "", INVALID_REQUEST, "Subscription name can't be empty"),
        (BROKER, "x", INVALID_REQUEST, "Unable to parse broker name as a base 10 number."),
        (BROKER, "-1", INVALID_REQUEST, "Invalid negative broker ID."),
        (7, "x", INVALID_REQUEST, "Unknown resource type 7"),
        (TOPIC, "..", INVALID_TOPIC_EXCEPTION, "Topic name is invalid: '..' is not allowed"),
    ],
)
def test_a_resource_that_cannot_exist_is_refused(resource_type: int, name: str, code: int, message: str) -> None:
    """The controller's words for names that no resource can have."""
    with pytest.raises(KafkaError) as caught:
        check_altered_resource(resource_type, name)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_names_of_resources_that_can_exist_pass() -> None:
    """Brokers have numbers or none, topics have up to 249 plain characters."""
    for resource_type, name in [
        (TOPIC, "a.b_c-D9"),
        (BROKER, ""),
        (BROKER, "0"),
        (GROUP, "any name"),
        (CLIENT_METRICS, "m"),
    ]:
        check_altered_resource(resource_type, name)
    check_topic_name("x" * 249)
    with pytest.raises(KafkaError, match="longer than the max allowed length 249"):
        check_topic_name("x" * 250)


ADD_TLS = {
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093,OUTSIDE://127.0.0.1:9094",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,OUTSIDE:SSL",
}


@pytest.mark.parametrize(
    ("configs", "complaint"),
    [
        (ADD_TLS, "listener OUTSIDE has the security protocol SSL"),
        ({"listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT"}, "listener PLAINTEXT has"),
        ({"listener.name.plaintext.ssl.client.auth": "required"}, "ssl.client.auth is required"),
    ],
)
def test_a_change_that_promises_safety_which_is_not_there_is_refused(configs: dict[str, str], complaint: str) -> None:
    broker = DynamicBrokerConfig(BrokerConfig(single_node_values()))
    with pytest.raises(KafkaError, match=complaint) as caught:
        broker.validate(dict(configs), per_broker=True)
    assert caught.value.code == INVALID_REQUEST


def test_such_a_change_that_somebody_else_has_stored_is_not_taken(caplog: pytest.LogCaptureFixture) -> None:
    """A node would otherwise advertise a listener that it does not have. Whatever else was stored holds."""
    broker = DynamicBrokerConfig(BrokerConfig(single_node_values()))
    broker.update_broker({**ADD_TLS, "num.replica.fetchers": "2"})
    assert [endpoint.name for endpoint in broker.current.listeners] == ["PLAINTEXT", "CONTROLLER"]
    assert broker.current.get_int("num.replica.fetchers") == 2
    assert "listener OUTSIDE has the security protocol SSL" in caplog.text
