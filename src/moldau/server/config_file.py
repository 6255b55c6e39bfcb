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
from moldau.config.listeners import SECURITY_PROTOCOLS as PROTOCOLS
from moldau.config.properties import parse_properties

# Variables that steer the JVM, the scripts and the image of Kafka, not the broker.
_NOT_CONFIGS: Final = frozenset(
    {
        "KAFKA_CLUSTER_ID",
        "KAFKA_DATA_DIRS",
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
# With a service of the name kafka Kubernetes sets KAFKA_PORT and KAFKA_SERVICE_HOST in every container beside it.
_NOT_CONFIG_PREFIXES: Final = (
    "KAFKA_CUB_",
    "KAFKA_JVM_",
    "KAFKA_LOG4J",
    "KAFKA_PORT_",
    "KAFKA_REST_",
    "KAFKA_SERVICE_",
    "KAFKA_TOOLS_",
)

DEFAULT_PORT: Final = 9092
DEFAULT_DATA_DIRECTORY: Final = "./moldau-data"
# Who starts a node or a cluster by hand sees every member join: the first one of a group need not wait for the others.
FOR_ONE_MACHINE: Final = {"group.initial.rebalance.delay.ms": "0"}
WRITTEN_BY_UP: Final = "# Written by `moldau up` at every start: change settings with its --override."


def built_in_values(port: int = DEFAULT_PORT, data_directory: str = DEFAULT_DATA_DIRECTORY) -> dict[str, str]:
    """A broker and controller in one node, for a start without any file; the controller has the next port."""
    controller_port = port + 1 if port else 0
    return {
        **single_node_values(port=port, controller_port=controller_port),
        "listeners": f"PLAINTEXT://:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://localhost:{port}",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT," + ",".join(f"{each}:{each}" for each in PROTOCOLS),
        "log.dirs": data_directory,
        **FOR_ONE_MACHINE,
    }


def load_config(
    path: str | None = None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    built_in: Mapping[str, str] | None = None,
) -> BrokerConfig:
    """The checked configuration of this node; ConfigError says what to change."""
    return BrokerConfig(read_values(path, overrides, environment, built_in))


def read_values(
    path: str | None = None,
    overrides: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    built_in: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """All given values as text, the strongest source last; `environment` is the process's own unless handed in, and
    `built_in` is what holds without a file."""
    changes = environment_values(os.environ if environment is None else environment)
    changes.update(parse_overrides(overrides))
    if path is not None:
        return {**read_properties(path), **changes}
    values = dict(built_in_values() if built_in is None else built_in)
    if "listeners" in changes:
        if "advertised.listeners" not in changes:
            del values["advertised.listeners"]  # it names the port of the built-in listeners
        values["inter.broker.listener.name"] = _first_for_clients(changes["listeners"])
    if "controller.quorum.voters" in changes and "controller.quorum.bootstrap.servers" not in changes:
        del values["controller.quorum.bootstrap.servers"]
    return {**values, **changes}


def _first_for_clients(listeners: str) -> str:
    names = [text.partition(":")[0].strip().upper() for text in listeners.split(",")]
    return next((name for name in names if name in PROTOCOLS), "PLAINTEXT")


def given_names(
    path: str | None = None, overrides: Sequence[str] = (), environment: Mapping[str, str] | None = None
) -> list[str]:
    """The settings that somebody chose: not the built-in ones, nor those that `moldau up` writes for its nodes."""
    names = [*environment_values(os.environ if environment is None else environment), *parse_overrides(overrides)]
    if path is not None and not Path(path).read_bytes().startswith(WRITTEN_BY_UP.encode()):
        names += read_properties(path)
    return list(dict.fromkeys(names))


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
        if not variable.startswith(_NOT_CONFIG_PREFIXES) and not _is_service_link(variable, environment[variable]):
            values[variable_to_key(variable)] = environment[variable]
    return values


def _is_service_link(variable: str, value: str) -> bool:
    return variable == "KAFKA_PORT" and value.startswith("tcp://")


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
