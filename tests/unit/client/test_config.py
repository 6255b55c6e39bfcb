"""The client's settings and addresses."""

from __future__ import annotations

import pytest

from moldau.client import config as settings
from moldau.client import errors
from moldau.client.config import CONSUMER, PRODUCER, ClientConfig, duration_ms, parse_addresses
from moldau.client.errors import ConfigError


def test_names_may_be_written_with_dots_or_underscores() -> None:
    read = ClientConfig(settings.PRODUCER, {"linger_ms": "20", "batch.size": 100, "enable_idempotence": "false"})
    assert (read.get_int("linger.ms"), read.get_int("batch.size")) == (20, 100)
    assert not read.get_bool("enable.idempotence")
    assert read.get_int("retries") == 2147483647


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("linger.msec", 1, "Did you mean linger.ms?"),
        ("linger.ms", "soon", "whole number"),
        ("linger.ms", -1, "from 0"),
        ("acks", "2", "one of all, -1, 0, 1"),
        ("enable.idempotence", "maybe", "true or false"),
    ],
)
def test_a_setting_that_is_wrong_is_refused_with_what_would_be_right(name: str, value: object, text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ClientConfig(settings.PRODUCER, {name: value})
    assert text in caught.value.message


def test_addresses_may_be_several_and_of_both_kinds() -> None:
    assert parse_addresses("a:1, [::1]:9092,") == [("a", 1), ("::1", 9092)]


@pytest.mark.parametrize("text", ["", "host", "host:", "host:x", "host:70000", ":9092"])
def test_an_address_without_host_or_port_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        parse_addresses(text)


def test_error_classes_have_the_names_of_kafka() -> None:
    error = errors.error_for(36)
    assert isinstance(error, errors.TopicExistsError) and type(error).__name__ == "TopicExistsError"
    assert not error.retriable and errors.error_for(6).retriable and errors.error_for(90).fatal
    assert isinstance(errors.error_for(7), errors.RequestTimeoutError)
    with pytest.raises(AttributeError):
        errors.NoSuchThing  # noqa: B018


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compression.gzip.level", 0),
        ("compression.zstd.level", 23),
        ("auto.offset.reset", "by_duration:1h"),
        ("metadata.recovery.strategy", "perhaps"),
        ("max.poll.records", 0),
    ],
)
def test_values_that_kafka_refuses_are_refused(name: str, value: object) -> None:
    table = CONSUMER if name in CONSUMER else PRODUCER
    with pytest.raises(ConfigError, match=name.replace(".", r"\.")):
        ClientConfig(table, {name: value})


def test_case_does_not_matter_where_it_does_not_in_kafka() -> None:
    config = ClientConfig(PRODUCER, {"security_protocol": "plaintext", "metadata.recovery.strategy": "REBOOTSTRAP"})
    assert config.get_text("security.protocol") == "PLAINTEXT"
    assert config.get_text("metadata.recovery.strategy") == "rebootstrap"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1H", 3_600_000), ("P1DT2H3M4.5S", 93_784_500), ("P2D", 172_800_000), ("P", None), ("PT", None), ("1h", None)],
)
def test_durations_are_read_as_iso_8601(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


def test_settings_of_what_is_not_there_are_said_to_be_so() -> None:
    with pytest.raises(ConfigError, match=r"not support Kafka's setting ssl\.engine\.factory\.class"):
        ClientConfig(PRODUCER, {"ssl.engine.factory.class": "x"})


def test_a_configuration_in_the_first_place_is_understood() -> None:
    """As other clients have it: Producer({"bootstrap.servers": ...})."""
    read = settings.read(settings.PRODUCER, {"bootstrap.servers": "a:1", "linger.ms": 7}, None, {"acks": "1"})
    assert (read.get_text("bootstrap.servers"), read.get_int("linger.ms"), read.get_text("acks")) == ("a:1", 7, "1")


def test_addresses_that_are_nearly_right_are_explained() -> None:
    with pytest.raises(ConfigError, match=r"an IPv6 address stands in brackets, as in \[::1\]:41092"):
        parse_addresses("::1:41092")
    with pytest.raises(ConfigError, match="leave out what is before host:port"):
        parse_addresses("PLAINTEXT://localhost:9092")
