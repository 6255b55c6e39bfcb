"""The settings of one log, and how a broker's values change while it runs."""

import logging

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.config.log_config import LogConfig, log_config_for
from moldau.protocol.errors import KafkaError


def broker(**values: str) -> DynamicBrokerConfig:
    given = {name.replace("_", "."): value for name, value in values.items()}
    return DynamicBrokerConfig(BrokerConfig({**single_node_values(), "log.dirs": "/data", **given}))


def settings(config: LogConfig) -> dict[str, object]:
    return {name: getattr(config, name) for name in dir(config) if not name.startswith("_")}


def test_without_any_setting_a_log_has_the_defaults_of_the_class() -> None:
    """Constructor, defaults of the topic keys and defaults of the broker keys say the same."""
    assert settings(log_config_for({})) == settings(LogConfig())
    assert settings(log_config_for({}, broker().current)) == settings(LogConfig())


def test_topics_without_overrides_share_one_object_per_broker_config() -> None:
    """Thousands of plain topics cost one LogConfig, and a dynamic change makes a new one."""
    config = broker()
    first = log_config_for({}, config.current)
    assert log_config_for({}, config.current) is first
    config.update_default({"log.retention.ms": "9"})
    assert log_config_for({}, config.current).retention_ms == 9
    assert first.retention_ms == 604800000


def test_a_topics_own_value_goes_before_the_brokers() -> None:
    """Overrides win key by key."""
    config = log_config_for(
        {"retention.ms": "5", "cleanup.policy": "compact", "preallocate": "true", "internal.segment.bytes": "100"},
        broker(log_retention_hours="1", log_segment_delete_delay_ms="7", log_cleanup_policy="delete").current,
    )
    assert config.retention_ms == 5
    assert (config.compact, config.delete) == (True, False)
    assert config.file_delete_delay_ms == 7
    assert config.preallocate
    assert config.segment_bytes == 100


def test_broker_values_in_other_units_reach_the_log_in_milliseconds() -> None:
    """Hours and minutes of the properties file are scaled, and a negative retention is for ever."""
    config = log_config_for(
        {}, broker(log_retention_minutes="2", log_roll_hours="3", log_roll_jitter_hours="1").current
    )
    assert (config.retention_ms, config.segment_ms, config.segment_jitter_ms) == (120000, 10800000, 3600000)
    assert log_config_for({}, broker(log_retention_hours="-1").current).retention_ms == -1


def test_an_empty_cleanup_policy_neither_deletes_nor_compacts() -> None:
    """Nothing happens to old records of such a topic."""
    config = log_config_for({"cleanup.policy": ""})
    assert (config.compact, config.delete) == (False, False)


def test_a_brokers_own_dynamic_value_beats_the_default_which_beats_the_file() -> None:
    """Taking a layer away uncovers the one below."""
    config = broker(num_io_threads="4")
    config.update_default({"num.io.threads": "6", "log.retention.ms": "50"})
    config.update_broker({"num.io.threads": "5"})
    assert config.current.get_int("num.io.threads") == 5
    assert config.current.log_retention_ms == 50
    config.update_broker({})
    assert config.current.get_int("num.io.threads") == 6
    config.update_default({})
    assert config.current.get_int("num.io.threads") == 4
    assert config.current.log_retention_ms == 604800000


def test_a_dynamic_time_replaces_the_files_time_in_another_unit() -> None:
    """A retention of the file in hours does not shine through a dynamic one in milliseconds."""
    config = broker(log_retention_hours="5")
    config.update_broker({"log.retention.ms": "99"})
    assert config.current.log_retention_ms == 99
    assert config.current.get_int("log.retention.hours") == 168


def test_stored_values_that_cannot_be_used_are_left_out_with_a_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A bad or read-only value in the metadata must not stop a broker."""
    config = broker()
    with caplog.at_level(logging.WARNING, logger="moldau.config"):
        config.update_default({"log.retention.ms": "soon", "node.id": "9", "max.connections": "3"})
    assert config.current.get_int("max.connections") == 3
    assert config.current.node_id == 1
    assert len(caplog.records) == 2


def test_a_change_is_checked_against_the_values_that_hold_now() -> None:
    """Thread counts may at most double."""
    config = broker(num_io_threads="2")
    config.validate({"num.io.threads": "4"}, per_broker=True)
    with pytest.raises(KafkaError, match="should not be greater than double the current value 2"):
        config.validate({"num.io.threads": "5"}, per_broker=True)


@pytest.mark.parametrize(
    "name", ["max.connections", "listener.name.plaintext.max.connections", "max.connection.creation.rate"]
)
def test_a_running_listener_cannot_be_limited_to_nobody(name: str) -> None:
    config = broker()
    with pytest.raises(KafkaError, match=r"Invalid max\.connection[a-z.]* 0"):
        config.validate({name: "0"}, per_broker=True)
    config.validate({name: "1"}, per_broker=True)
