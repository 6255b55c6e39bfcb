"""Describes configs: each key's value, where it comes from and what else would supply it.

The synonyms of a value go from strongest to weakest and begin at the key asked for; what stands before it (a stronger
key of another name) is left out, which is why a retention given in hours is not listed under retention.ms. Kafka keeps
the same in `ConfigHelper`.
"""

from typing import Final

from moldau.config.broker_config import find_broker_key, split_listener_key
from moldau.config.broker_keys import BROKER_KEYS
from moldau.config.client_metrics_keys import CLIENT_METRICS_KEYS
from moldau.config.definitions import READ_ONLY, UNKNOWN, ConfigError, ConfigKey
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.config.group_keys import GROUP_KEYS
from moldau.config.log_config import TopicValues
from moldau.config.own_keys import OWN_KEYS
from moldau.config.resources import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_CLIENT_METRICS_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_GROUP_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
)
from moldau.config.topic_keys import FLUSH, RETENTION, ROLL, ROLL_JITTER, TOPIC_KEYS

_FAMILIES: Final = {name: family for family in (RETENTION, ROLL, ROLL_JITTER, FLUSH) for name in family}


class Synonym:
    """A place that supplies, or would supply, a value."""

    def __init__(self, name: str, value: str | None, source: int) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribedConfig:
    """One line of a response to DescribeConfigs."""

    def __init__(
        self,
        name: str,
        value: str | None,
        synonyms: list[Synonym],
        *,
        type: int = UNKNOWN,
        read_only: bool = False,
        sensitive: bool = False,
        documentation: str | None = None,
        source: int = DEFAULT_CONFIG,
    ) -> None:
        self.name = name
        self.value = None if sensitive else value
        self.source = synonyms[0].source if synonyms else source
        self.read_only = read_only
        self.sensitive = sensitive
        self.synonyms = synonyms
        self.type = type
        self.documentation = documentation


def describe_topic(overrides: dict[str, str], broker: DynamicBrokerConfig) -> list[DescribedConfig]:
    """Every key of a topic with `overrides`, as this broker applies it."""
    values = TopicValues(overrides, broker.current)
    described = []
    for name in _listed(TOPIC_KEYS.rows(), overrides):
        key = TOPIC_KEYS.get(name)
        if key is None:
            described.append(_unknown(name, DYNAMIC_TOPIC_CONFIG))
            continue
        value = key.show(values.get(name))
        synonyms = broker_synonyms(key.synonyms[0], broker) if key.synonyms else []
        if name in overrides:
            synonyms.insert(0, Synonym(name, value, DYNAMIC_TOPIC_CONFIG))
        described.append(DescribedConfig(name, value, synonyms, type=key.type, documentation=key.documentation))
    return described


def describe_new_topic(overrides: dict[str, str], broker: DynamicBrokerConfig) -> list[DescribedConfig]:
    """As the response to CreateTopics has them: overrides as written, and the source is where the value really is
    from."""
    values = TopicValues(overrides, broker.current)
    described = []
    for name in _listed(TOPIC_KEYS.rows(), overrides):
        key = TOPIC_KEYS[name]
        if name in overrides:
            value, source = overrides.get(name), DYNAMIC_TOPIC_CONFIG
        else:
            value, source = key.show(values.get(name)), _strongest_source(key.synonyms, broker)
        described.append(DescribedConfig(name, value, [Synonym(name, value, source)], type=key.type))
    return described


def describe_broker(broker: DynamicBrokerConfig) -> list[DescribedConfig]:
    """Every key of a broker, and whatever else its file or a change has set."""
    return [_describe_broker_key(name, broker) for name in _listed(BROKER_KEYS.rows(), broker.current.values)]


def describe_broker_default(broker: DynamicBrokerConfig) -> list[DescribedConfig]:
    """The dynamic defaults of all brokers; nothing that is not set."""
    described = []
    for name, text in sorted(broker.default_values.items()):
        key = find_broker_key(name)
        if key is None:
            described.append(_unknown(name, DYNAMIC_DEFAULT_BROKER_CONFIG, read_only=True))
            continue
        value = _shown(key, text)
        synonyms = [Synonym(name, None if key.sensitive else text, DYNAMIC_DEFAULT_BROKER_CONFIG)]
        described.append(_broker_line(name, key, value, synonyms))
    return described


def describe_group(overrides: dict[str, str], broker: DynamicBrokerConfig) -> list[DescribedConfig]:
    """Every key of a group with `overrides`."""
    described = []
    for name in _listed(GROUP_KEYS.rows(), overrides):
        key = GROUP_KEYS.get(name)
        if key is None:
            described.append(_unknown(name, DYNAMIC_GROUP_CONFIG))
            continue
        if key.synonyms:
            synonyms = broker_synonyms(key.synonyms[0], broker)
            value = key.show(broker.current.get(key.synonyms[0]))
        else:
            synonyms = [Synonym(name, key.default, DEFAULT_CONFIG)]
            value = key.default
        if name in overrides:
            value = _shown(key, overrides[name])
            synonyms.insert(0, Synonym(name, value, DYNAMIC_GROUP_CONFIG))
        described.append(DescribedConfig(name, value, synonyms, type=key.type, documentation=key.documentation))
    return described


def describe_client_metrics(overrides: dict[str, str]) -> list[DescribedConfig]:
    """Every key of a client metrics subscription with `overrides`."""
    described = []
    for name in _listed(CLIENT_METRICS_KEYS.rows(), overrides):
        key = CLIENT_METRICS_KEYS.get(name)
        if key is None:
            described.append(_unknown(name, DYNAMIC_CLIENT_METRICS_CONFIG))
            continue
        value = _shown(key, overrides.get(name, key.default))
        synonyms = [Synonym(name, value, DYNAMIC_CLIENT_METRICS_CONFIG)] if name in overrides else []
        described.append(DescribedConfig(name, value, synonyms, type=key.type, documentation=key.documentation))
    return described


def _strongest_source(names: tuple[str, ...], broker: DynamicBrokerConfig) -> int:
    for layer, source in _layers(broker):
        if any(name in layer for name in names):
            return source
    return DEFAULT_CONFIG


def _layers(broker: DynamicBrokerConfig) -> tuple[tuple[dict[str, str], int], ...]:
    return (
        (broker.broker_values, DYNAMIC_BROKER_CONFIG),
        (broker.default_values, DYNAMIC_DEFAULT_BROKER_CONFIG),
        (broker.static.values, STATIC_BROKER_CONFIG),
    )


def broker_synonyms(name: str, broker: DynamicBrokerConfig) -> list[Synonym]:
    """All places a broker key's value comes from or would come from."""
    prefixed = split_listener_key(name)
    names = (name, prefixed[1]) if prefixed else _FAMILIES.get(name, (name,))
    found = []
    for layer, source in _layers(broker):
        for each in names:
            if each in layer:
                key = find_broker_key(each)
                hidden = key is None or key.sensitive
                found.append(Synonym(each, None if hidden else layer[each], source))
    for each in names:
        key = BROKER_KEYS.get(each) or OWN_KEYS.get(each)
        if key is not None and key.default is not None:
            found.append(Synonym(each, key.default, DEFAULT_CONFIG))
    while found and found[0].name != name:
        del found[0]
    return found


def _describe_broker_key(name: str, broker: DynamicBrokerConfig) -> DescribedConfig:
    key = find_broker_key(name)
    synonyms = broker_synonyms(name, broker)
    if key is None:
        return DescribedConfig(name, None, synonyms, read_only=True, sensitive=True)
    return _broker_line(name, key, key.show(broker.current.get(name)), synonyms)


def _broker_line(name: str, key: ConfigKey, value: str | None, synonyms: list[Synonym]) -> DescribedConfig:
    return DescribedConfig(
        name,
        value,
        synonyms,
        type=key.type,
        # A key with a listener's prefix can be altered and is nevertheless listed as read-only.
        read_only=key.dynamic == READ_ONLY or key.name != name,
        sensitive=key.sensitive,
        documentation=key.documentation if name in BROKER_KEYS or name in OWN_KEYS else None,
    )


def _listed(keys: list[ConfigKey], given: dict[str, str]) -> list[str]:
    return sorted({key.name for key in keys if not key.internal} | set(given))


def _shown(key: ConfigKey, text: str | None) -> str | None:
    try:
        return key.show(key.parse(text))
    except ConfigError:
        return text


def _unknown(name: str, source: int, read_only: bool = False) -> DescribedConfig:
    """Nobody knows what a stored value of an unknown key says, so it is kept to ourselves."""
    return DescribedConfig(name, None, [Synonym(name, None, source)], read_only=read_only, sensitive=True)
