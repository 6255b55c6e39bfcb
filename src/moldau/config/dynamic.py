"""Configs that change while the node runs: a broker's effective values, and what an alter request may set.

The properties file is weakest, then the default of all brokers (resource name ""), then the broker's own. The
`validate_` functions take the configs a resource would have after the change and raise `KafkaError` in Kafka's words.
"""

import logging
from collections.abc import Callable
from typing import Final

from moldau.config.broker_config import BrokerConfig, find_broker_key, split_listener_key, split_mechanism_key
from moldau.config.broker_keys import (
    BROKER_KEYS,
    CLUSTER_WIDE_LISTENER_KEYS,
    PER_LISTENER_SECURITY_KEYS,
    THREAD_COUNT_KEYS,
)
from moldau.config.client_metrics_keys import CLIENT_METRICS_KEYS, INTERVAL_MS_MAX, INTERVAL_MS_MIN, parse_match
from moldau.config.definitions import PER_BROKER, READ_ONLY, ConfigError, FailedRequirement
from moldau.config.group_keys import BOUNDED_GROUP_KEYS, DEAD_LETTER_TOPIC_KEY, GROUP_KEYS
from moldau.config.listeners import parse_connection_overrides, parse_protocol_map
from moldau.config.topic_keys import FLUSH, RETENTION, ROLL, ROLL_JITTER, TOPIC_KEYS
from moldau.config.unserved import check_served, may_promise_safety, unserved_changes, unserved_settings
from moldau.protocol.errors import INVALID_CONFIG, INVALID_REQUEST, KafkaError

_logger = logging.getLogger("moldau.config")

# A dynamic value of one key replaces the static values of the others that say the same in another unit.
_FAMILIES: Final = (RETENTION, ROLL, ROLL_JITTER, FLUSH)


def validate_topic_configs(configs: dict[str, str | None], remote_storage: bool = False) -> None:
    """Checks all configs a topic would have; a null value is refused, as when a topic is created with one."""
    nulls = [name for name, value in configs.items() if value is None]
    if nulls:
        raise KafkaError(INVALID_CONFIG, "Null value not supported for topic configs: " + ",".join(sorted(nulls)))
    for name in sorted(configs):
        if name not in TOPIC_KEYS:
            raise KafkaError(INVALID_CONFIG, f"Unknown topic config name: {name}")
    try:
        values = TOPIC_KEYS.check(_without_nulls(configs))
    except ConfigError as error:
        raise KafkaError(INVALID_CONFIG, error.message) from None
    shortest, longest = values.get("min.compaction.lag.ms", 0), values.get("max.compaction.lag.ms")
    if isinstance(shortest, int) and isinstance(longest, int) and shortest > longest:
        raise KafkaError(
            INVALID_CONFIG,
            f"conflict topic config setting min.compaction.lag.ms ({shortest}) > max.compaction.lag.ms ({longest})",
        )
    if values.get("remote.storage.enable") is True and not remote_storage:
        raise KafkaError(
            INVALID_CONFIG,
            "Tiered Storage functionality is disabled in the broker. "
            "Topic cannot be configured with remote log storage.",
        )


def validate_group_configs(configs: dict[str, str | None], broker: BrokerConfig | None = None) -> None:
    """Checks all configs a group would have, also against the bounds the broker sets."""
    for name in sorted(configs):
        if name not in GROUP_KEYS:
            raise KafkaError(INVALID_CONFIG, f"Unknown group config name: {name}")
    try:
        values = GROUP_KEYS.check(_without_nulls(configs))
        for name in BOUNDED_GROUP_KEYS:
            kind, _, rest = name.partition(".")
            value = values.get(name)
            low, high = f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
            if isinstance(value, int) and value < _broker_number(broker, low):
                raise ConfigError(f"{name} must be greater than or equal to {low}")
            if isinstance(value, int) and value > _broker_number(broker, high):
                raise ConfigError(f"{name} must be less than or equal to {high}")
        standby, most = values.get("streams.num.standby.replicas"), "group.streams.max.standby.replicas"
        if isinstance(standby, int) and standby > _broker_number(broker, most):
            raise ConfigError(f"streams.num.standby.replicas must be less than or equal to {most}")
        for kind in ("consumer", "share", "streams"):
            heartbeat, session = f"{kind}.heartbeat.interval.ms", f"{kind}.session.timeout.ms"
            heartbeat_ms = values.get(heartbeat, _broker_number(broker, f"group.{heartbeat}"))
            session_ms = values.get(session, _broker_number(broker, f"group.{session}"))
            if isinstance(heartbeat_ms, int) and isinstance(session_ms, int) and heartbeat_ms >= session_ms:
                raise ConfigError(f"{session} must be greater than {heartbeat}")
    except ConfigError as error:
        raise KafkaError(INVALID_CONFIG, error.message) from None


def check_dead_letter_prefix(name: str | None, broker: BrokerConfig) -> None:
    """When a group's topic is set, and not when the first dead letter cannot be written."""
    prefix = broker.get_str("errors.deadletterqueue.topic.name.prefix")
    if name is not None and name.strip() and not name.strip().startswith(prefix):
        reason = "which errors.deadletterqueue.topic.name.prefix asks for"
        raise KafkaError(INVALID_CONFIG, f"{DEAD_LETTER_TOPIC_KEY} must begin with '{prefix}', {reason}")


def validate_client_metrics_configs(configs: dict[str, str | None]) -> None:
    """Checks all configs a client metrics subscription would have."""
    for name in sorted(configs):
        if name not in CLIENT_METRICS_KEYS:
            raise KafkaError(INVALID_REQUEST, f"Unknown client metrics configuration: {name}")
    try:
        values = CLIENT_METRICS_KEYS.check(_without_nulls(configs))
        match = values.get("match")
        if isinstance(match, list):
            parse_match(match)
    except ConfigError as error:
        raise KafkaError(INVALID_CONFIG, error.message) from None
    interval_ms = values.get("interval.ms")
    if isinstance(interval_ms, int) and not INTERVAL_MS_MIN <= interval_ms <= INTERVAL_MS_MAX:
        raise KafkaError(
            INVALID_REQUEST,
            f"Invalid value {interval_ms} for interval.ms, interval must be between "
            f"{INTERVAL_MS_MIN} and {INTERVAL_MS_MAX} (1 hour)",
        )


def validate_broker_configs(
    configs: dict[str, str | None],
    per_broker: bool,
    current: BrokerConfig | None = None,
    check: Callable[[BrokerConfig], None] | None = None,
) -> None:
    """Checks all dynamic configs a broker or the default of all would have; `current` adds checks against it, and
    `check` what only the running process can tell."""
    given = _without_nulls(configs)
    try:
        _refuse("Cannot update these configs dynamically", [name for name in given if _is_read_only(name)])
        _refuse(
            "These security configs can be dynamically updated only per-listener using the listener prefix",
            [name for name in given if name in PER_LISTENER_SECURITY_KEYS],
        )
        _check_broker_values(given)
        if not per_broker:
            _refuse(
                "Cannot update these configs at default cluster level, broker id must be specified",
                [name for name in given if _is_per_broker(name)],
            )
        if "listener.security.protocol.map" in given:
            parse_protocol_map(given["listener.security.protocol.map"])
        if current is not None:
            _check_thread_counts(given, current)
            proposed = BrokerConfig(_overlay(current.values, given), warn=False)
            _check_local_retention(proposed)
            _check_connection_limits(proposed, current)
            _check_logins_stay(given, current)
            check_served(proposed)
            _refuse_sentences(unserved_changes(proposed, current))
            if check is not None:
                check(proposed)
    except FailedRequirement as error:
        raise KafkaError(INVALID_REQUEST, "requirement failed: " + error.message) from None
    except ConfigError as error:
        raise KafkaError(INVALID_REQUEST, error.message) from None


class DynamicBrokerConfig:
    """A broker's effective configuration; `current` is replaced whenever one of its layers changes."""

    def __init__(self, static: BrokerConfig) -> None:
        self.static = static
        self.default_values: dict[str, str] = {}
        self.broker_values: dict[str, str] = {}
        self.current = static
        self.check: Callable[[BrokerConfig], None] | None = None
        """Raises ConfigError for what the running process cannot take, such as certificates that cannot be read."""

    def update_default(self, configs: dict[str, str]) -> None:
        """Takes the dynamic default of all brokers as it now is."""
        self.default_values = dict(configs)
        self._rebuild()

    def update_broker(self, configs: dict[str, str]) -> None:
        """Takes this broker's own dynamic configs as they now are."""
        self.broker_values = dict(configs)
        self._rebuild()

    def validate(self, configs: dict[str, str | None], per_broker: bool) -> None:
        """Raises KafkaError unless `configs` could become the dynamic configs of this broker, or of all brokers."""
        validate_broker_configs(configs, per_broker, self.current, self.check)

    def _rebuild(self) -> None:
        try:
            proposed = BrokerConfig(self._merged(with_promises=True), warn=False)
            sentences = unserved_settings(proposed) + unserved_changes(proposed, self.static)
            if sentences:
                _logger.error("dynamic configs of listeners are ignored: %s", " ".join(sentences))
                proposed = BrokerConfig(self._merged(with_promises=False), warn=False)
            self.current = proposed
        except ConfigError as error:
            _logger.error("dynamic broker configs do not fit together and are left as they were: %s", error.message)

    def _merged(self, with_promises: bool) -> dict[str, str]:
        values = self.static.values
        for layer in (self.default_values, self.broker_values):
            usable = {name: text for name, text in layer.items() if self._is_usable(name, text)}
            values = _overlay(values, {k: v for k, v in usable.items() if with_promises or not may_promise_safety(k)})
        return values

    def _is_usable(self, name: str, text: str) -> bool:
        """A stored value may come from another version or from a controller that checks less."""
        key = find_broker_key(name)
        if _is_read_only(name):
            _logger.warning("dynamic config %s is ignored: it can only be set in the properties file", name)
            return False
        try:
            if key is not None:
                key.parse(text)
        except ConfigError as error:
            _logger.error("dynamic config %s is ignored: %s", name, error.message)
            return False
        return True


def _without_nulls(configs: dict[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in configs.items() if value is not None}


def _broker_number(broker: BrokerConfig | None, name: str) -> int:
    value = broker.get(name) if broker is not None else BROKER_KEYS[name].parse(BROKER_KEYS[name].default)
    assert isinstance(value, int), name
    return value


def _is_read_only(name: str) -> bool:
    key = BROKER_KEYS.get(name)
    return key is not None and key.dynamic == READ_ONLY


def _is_per_broker(name: str) -> bool:
    prefixed = split_listener_key(name)
    if prefixed is not None:
        return prefixed[1] not in CLUSTER_WIDE_LISTENER_KEYS
    key = BROKER_KEYS.get(name)
    return key is not None and key.dynamic == PER_BROKER


def _refuse(reason: str, names: list[str]) -> None:
    if names:
        raise ConfigError(f"{reason}: [{', '.join(sorted(names))}]")


def _refuse_sentences(sentences: list[str]) -> None:
    if sentences:
        raise ConfigError("\n".join(sentences))


def _check_broker_values(given: dict[str, str]) -> None:
    for name, text in given.items():
        key = find_broker_key(name)
        if key is not None:
            key.parse(text)
    if "max.connections.per.ip.overrides" in given:
        parse_connection_overrides(given["max.connections.per.ip.overrides"])


def _check_thread_counts(given: dict[str, str], current: BrokerConfig) -> None:
    for name in THREAD_COUNT_KEYS:
        if name not in given:
            continue
        old, new = current.get_int(name), int(given[name])
        reason = None
        if new > old * 2:
            reason = f"value should not be greater than double the current value {old}"
        elif new < old // 2:
            reason = f"value should be at least half the current value {old}"
        if reason is not None:
            raise _nested(f"Dynamic thread count update validation failed for {name}={new}, {reason}")
    if "log.cleaner.threads" in given:
        old, new = current.get_int("log.cleaner.threads"), int(given["log.cleaner.threads"])
        if new > old * 2:
            raise _nested(f"Log cleaner threads cannot be increased to more than double the current value {old}")
        if new < old // 2 or new < 1:
            raise _nested(f"Log cleaner threads cannot be reduced to less than half the current value {old}")


def _check_logins_stay(given: dict[str, str], current: BrokerConfig) -> None:
    """What a listener asks of its clients is read when the node starts, and must not be taken without effect."""
    changed = []
    for name, text in given.items():
        prefixed = split_listener_key(name)
        if prefixed is None:
            continue
        bare = split_mechanism_key(prefixed[1])[1]
        is_login = bare.startswith("sasl.") or bare == "connections.max.reauth.ms"
        protocol = current.security_protocols.get(prefixed[0].upper(), "")
        if is_login and protocol.startswith("SASL_") and current.values.get(name) != text:
            changed.append(name)
    if changed:
        raise ConfigError(
            "Configs cannot be updated dynamically for existing listeners, restart the broker with them in its "
            f"properties: {', '.join(changed)}"
        )


def _check_connection_limits(proposed: BrokerConfig, current: BrokerConfig) -> None:
    """A listener that runs lets somebody in. In the properties file the limits of the broker may be 0."""
    for endpoint in proposed.listeners:
        for name in ("max.connections", "max.connection.creation.rate"):
            value = proposed.get_for_listener(endpoint.name, name)
            if value == 0 and value != current.get_for_listener(endpoint.name, name):
                raise _nested(f"Invalid {name} {value}")


def _check_local_retention(proposed: BrokerConfig) -> None:
    pairs = (
        ("log.local.retention.ms", "log.retention.ms", proposed.log_retention_ms),
        ("log.local.retention.bytes", "log.retention.bytes", proposed.get_int("log.retention.bytes")),
    )
    for local_name, name, total in pairs:
        local = proposed.get_int(local_name)
        if total != -1 and local != -2 and (local == -1 or local > total):
            raise _nested(
                f"Invalid value {local} for configuration {local_name}: "
                f"Value must not be more than {name} property value: {total}"
            )


def _nested(message: str) -> ConfigError:
    """Kafka wraps the objection of a running component, and its tools show the wrapping."""
    wrapped = f"org.apache.kafka.common.config.ConfigException: {message}"
    return ConfigError(f"Invalid value {wrapped} for configuration Invalid dynamic configuration")


def _overlay(values: dict[str, str], changes: dict[str, str]) -> dict[str, str]:
    merged = dict(values)
    for name in changes:
        for family in _FAMILIES:
            if name in family:
                for other in family:
                    merged.pop(other, None)
    merged.update(changes)
    return merged
