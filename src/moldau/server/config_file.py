"""Gathers a node's configuration: properties file or built-in default, then KAFKA_ environment, then --override.

The environment follows the rule of Kafka's container image: KAFKA_NODE_ID is node.id, a double underscore stands for
an underscore and a triple one for a dash.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.definitions import ConfigError
from moldau.config.properties import parse_properties

# Variables that steer the JVM, the scripts and the image of Kafka, not the broker.
_NOT_CONFIGS: Final = frozenset(
    {
        "KAFKA_CLUSTER_ID",
        "KAFKA_DEBUG",
        "KAFKA_GC_LOG_OPTS",
        "KAFKA_HEAP_OPTS",
        "KAFKA_HOME",
        "KAFKA_JMX_HOSTNAME",
        "KAFKA_JMX_OPTS",
        "KAFKA_JMX_PORT",
        "KAFKA_OPTS",
        "KAFKA_VERSION",
    }
)
_NOT_CONFIG_PREFIXES: Final = ("KAFKA_JVM_", "KAFKA_LOG4J", "KAFKA_TOOLS_")

DEFAULT_DATA_DIRECTORY: Final = "./moldau-data"


def built_in_values() -> dict[str, str]:
    """A broker and controller in one node, for a start without any file."""
    return {
        **single_node_values(),
        "listeners": "PLAINTEXT://:9092,CONTROLLER://127.0.0.1:9093",
        "advertised.listeners": "PLAINTEXT://localhost:9092",
        "log.dirs": DEFAULT_DATA_DIRECTORY,
    }


def load_config(
    path: str | None = None, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> BrokerConfig:
    """The checked configuration of this node; ConfigError says what to change."""
    return BrokerConfig(read_values(path, overrides, environment))


def read_values(
    path: str | None = None, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> dict[str, str]:
    """All given values as text, the strongest source last; `environment` is the process's own unless handed in."""
    changes = environment_values(os.environ if environment is None else environment)
    changes.update(parse_overrides(overrides))
    if path is not None:
        return {**read_properties(path), **changes}
    values = built_in_values()
    if "listeners" in changes and "advertised.listeners" not in changes:
        del values["advertised.listeners"]  # it names the port of the built-in listeners
    if "controller.quorum.voters" in changes and "controller.quorum.bootstrap.servers" not in changes:
        del values["controller.quorum.bootstrap.servers"]
    return {**values, **changes}


def read_properties(path: str) -> dict[str, str]:
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ConfigError(f"cannot read the properties file {path}: {error.strerror}") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")  # what Java takes such a file for
    try:
        return parse_properties(text)
    except ValueError as error:
        raise ConfigError(f"the properties file {path} has a {error}") from None


def environment_values(environment: Mapping[str, str]) -> dict[str, str]:
    """The configs among the environment variables."""
    values: dict[str, str] = {}
    for variable in sorted(environment):
        if not variable.startswith("KAFKA_") or variable == "KAFKA_" or variable in _NOT_CONFIGS:
            continue
        if not variable.startswith(_NOT_CONFIG_PREFIXES):
            values[variable_to_key(variable)] = environment[variable]
    return values


def variable_to_key(variable: str) -> str:
    """KAFKA_LOG_DIRS -> log.dirs, KAFKA_A__B___C -> a_b-c."""
    name = variable.removeprefix("KAFKA_").lower()
    return name.replace("_", ".").replace("...", "-").replace("..", "_")


def parse_overrides(overrides: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key.strip():
            raise ConfigError(f"--override takes key=value, not '{override}'")
        values[key.strip()] = value.strip()
    return values
