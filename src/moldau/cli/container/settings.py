"""From the environment of a container to the node's properties, by the rules of apache/kafka and confluentinc/cp-kafka.

KAFKA_LISTENERS is `listeners`, a double underscore an underscore, a triple one a dash (`server/config_file.py`). Where
the originals end with an error and only one thing can be meant, that is done instead: a node that is evidently alone
needs neither process.roles nor voters, and a ZooKeeper that somebody started for it is left aside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from moldau.config.broker_config import single_node_values
from moldau.server.config_file import FOR_ONE_MACHINE, environment_values

CLIENT_PORT = 9092
CONTROLLER_PORTS = (9093, 29093, 29094, 29095, 29096)
LONE_IDS = ("", "0", "1")
_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"
# Names of files below the secrets' directory: the settings are made of them.
_SECRET_VARIABLES = (
    "KAFKA_SSL_KEYSTORE_FILENAME",
    "KAFKA_SSL_KEYSTORE_CREDENTIALS",
    "KAFKA_SSL_KEY_CREDENTIALS",
    "KAFKA_SSL_TRUSTSTORE_FILENAME",
    "KAFKA_SSL_TRUSTSTORE_CREDENTIALS",
)
_GONE = ("ADVERTISED_PORT", "ADVERTISED_HOST", "HOST", "PORT")
LOG_LEVELS = {"TRACE": "DEBUG", "WARN": "WARNING", "FATAL": "CRITICAL", "OFF": "CRITICAL", "ALL": "DEBUG"}


class Refused(Exception):
    """The environment cannot work; the text says what to change."""


@dataclass(slots=True)
class Settings:
    """The node's properties, and what the user should know about how they came about."""

    values: dict[str, str]
    notes: list[str] = field(default_factory=list)


def settings_of(
    environment: Mapping[str, str],
    is_confluent: bool,
    data_directory: str,
    secrets_directory: str,
    mounted: Mapping[str, str] | None = None,
    read_secret: Callable[[str], str | None] = lambda path: None,
) -> Settings:
    """All properties of the node; `mounted` is a file of the user, over which the environment wins."""
    given = {name: text for name, text in environment.items() if name.startswith("KAFKA_")}
    cluster_id = environment.get("CLUSTER_ID", "").strip()
    notes: list[str] = []
    if is_confluent:
        _check_gone(environment_values(given))
    for name in ("KAFKA_ADVERTISED_LISTENERS", "KAFKA_LISTENERS", "KAFKA_PROCESS_ROLES", "KAFKA_LOG_DIRS"):
        if not given.get(name, "x").strip():
            del given[name]  # set and empty, as images do for what may be given when they are built
    _check_roles(given, cluster_id, is_confluent)
    given.update(_secrets(given, secrets_directory, read_secret))
    values = {**(mounted or {}), **environment_values(_without_secret_names(given))}
    _note_other_names(given, notes)
    if "listeners" not in values and "advertised.listeners" in values:
        values["listeners"] = listen_everywhere(values["advertised.listeners"])
    if "process.roles" not in values:
        _check_zookeeper(values, notes)
        _complete_lone_node(values)
    elif _has_no_quorum(values):
        _complete_quorum(values, notes)
    if "log.dirs" not in values and "log.dir" not in values:
        values["log.dirs"] = data_directory
    return Settings(dict(sorted(values.items())), notes)


def log_level_of(environment: Mapping[str, str]) -> str:
    """MOLDAU_LOG_LEVEL, else what log4j's root logger would have, else INFO as in the originals."""
    wanted = environment.get("MOLDAU_LOG_LEVEL") or environment.get("KAFKA_LOG4J_ROOT_LOGLEVEL") or "INFO"
    level = LOG_LEVELS.get(wanted.strip().upper(), wanted.strip().upper())
    return level if level in ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL") else "INFO"


def listen_everywhere(advertised: str) -> str:
    """The same names and ports on every address of the container."""
    listeners = []
    for text in advertised.split(","):
        name, _, address = text.strip().partition("://")
        listeners.append(f"{name}://0.0.0.0:{address.rpartition(':')[2]}")
    return ",".join(listeners)


def properties_text(values: Mapping[str, str]) -> str:
    """A properties file with values as they are: others look for them, and change them, with grep and sed."""
    lines = ["# Written from the environment when the container started."]
    for key, value in values.items():
        escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        lines.append(f"{key}=" + ("\\" if escaped.startswith(" ") else "") + escaped)
    return "\n".join(lines) + "\n"


# What cannot work


def _check_gone(values: Mapping[str, str]) -> None:
    for name in _GONE:
        key = name.lower().replace("_", ".")
        if values.get(key):
            raise Refused(f"{key} is deprecated. Please use KAFKA_ADVERTISED_LISTENERS instead.")


def _check_roles(given: dict[str, str], cluster_id: str, is_confluent: bool) -> None:
    roles = [role.strip() for role in given.get("KAFKA_PROCESS_ROLES", "").split(",") if role.strip()]
    if not roles:
        return
    if not cluster_id:
        raise Refused(
            "CLUSTER_ID environment variable not set: every node of a cluster needs the same one. "
            "`moldau storage random-uuid` makes one."
        )
    if roles == ["controller"]:
        if "KAFKA_ADVERTISED_LISTENERS" in given:
            raise Refused("KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller.")
    elif is_confluent and "KAFKA_ADVERTISED_LISTENERS" not in given:
        raise Refused(
            "KAFKA_ADVERTISED_LISTENERS environment variable not set: it is what clients are told to connect to, "
            "for example PLAINTEXT://localhost:9092."
        )


def _check_zookeeper(values: dict[str, str], notes: list[str]) -> None:
    """A broker that has a ZooKeeper of its own gets along without; several brokers that share one do not."""
    if not values.get("zookeeper.connect"):
        return
    if not is_alone(values):
        raise Refused(
            "KAFKA_ZOOKEEPER_CONNECT is set and KAFKA_PROCESS_ROLES is not, but there is no ZooKeeper mode any more. "
            "Set KAFKA_PROCESS_ROLES, KAFKA_NODE_ID, KAFKA_CONTROLLER_QUORUM_VOTERS, KAFKA_CONTROLLER_LISTENER_NAMES "
            "and CLUSTER_ID on every node. A single broker starts without, with "
            "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR=1 and KAFKA_BROKER_ID 0 or 1."
        )
    notes.append("ZooKeeper is not needed: this broker is its own controller.")


def is_alone(values: Mapping[str, str]) -> bool:
    """Whether nobody can mean this broker to be one of several."""
    node_id = values.get("node.id", values.get("broker.id", ""))
    return node_id in LONE_IDS and values.get("offsets.topic.replication.factor") == "1"


def _note_other_names(given: Mapping[str, str], notes: list[str]) -> None:
    other = sorted(name for name in given if name.startswith("KAFKA_CFG_"))
    if other:
        right = f"KAFKA_{other[0].removeprefix('KAFKA_CFG_')}"
        notes.append(f"{', '.join(other)}: another image's way to name settings; write {right}. They have no effect.")


# What is filled in


def _complete_lone_node(values: dict[str, str]) -> None:
    """A broker and controller in one, and whatever was given of it."""
    values.setdefault("listeners", f"PLAINTEXT://:{CLIENT_PORT}")
    if "advertised.listeners" not in values and values["listeners"] == f"PLAINTEXT://:{CLIENT_PORT}":
        values["advertised.listeners"] = f"PLAINTEXT://localhost:{CLIENT_PORT}"
    controller = values.setdefault("controller.listener.names", "CONTROLLER").split(",")[0].strip()
    names = _listener_ports(values["listeners"])
    if controller.upper() not in names:
        port = next(port for port in CONTROLLER_PORTS if port not in names.values())
        values["listeners"] += f",{controller}://localhost:{port}"
        names[controller.upper()] = port
    protocols = values.setdefault("listener.security.protocol.map", _PROTOCOLS)
    if controller.upper() not in [entry.partition(":")[0].strip().upper() for entry in protocols.split(",")]:
        values["listener.security.protocol.map"] = f"{controller}:PLAINTEXT,{protocols}"
    if "inter.broker.listener.name" not in values and "security.inter.broker.protocol" not in values:
        values["inter.broker.listener.name"] = next(name for name in names if name != controller.upper())
    if "controller.quorum.voters" not in values:
        values.setdefault("controller.quorum.bootstrap.servers", f"localhost:{names[controller.upper()]}")
    if "node.id" not in values and "broker.id" in values:
        values["node.id"] = values["broker.id"]
    built_in = {**single_node_values(), **FOR_ONE_MACHINE}
    for key in ("controller.quorum.bootstrap.servers", "listeners", "inter.broker.listener.name"):
        del built_in[key]
    for key, value in built_in.items():
        values.setdefault(key, value)


def _has_no_quorum(values: Mapping[str, str]) -> bool:
    return not values.get("controller.quorum.voters") and not values.get("controller.quorum.bootstrap.servers")


def _complete_quorum(values: dict[str, str], notes: list[str]) -> None:
    roles = {role.strip() for role in values["process.roles"].split(",")}
    controller = values.get("controller.listener.names", "").split(",")[0].strip().upper()
    port = _listener_ports(values.get("listeners", "")).get(controller)
    if roles == {"broker", "controller"} and port and is_alone(values):
        values["controller.quorum.bootstrap.servers"] = f"localhost:{port}"
        notes.append("No quorum is named: this node is the only controller of its cluster.")


def _listener_ports(listeners: str) -> dict[str, int]:
    """Names in capitals -> ports; what is malformed is told by whoever checks the configuration."""
    ports = {}
    for text in listeners.split(","):
        name, _, address = text.strip().partition("://")
        port = address.rpartition(":")[2]
        ports[name.upper()] = int(port) if port.isdecimal() else 0
    return ports


# Keys and passwords in files


def _secrets(given: Mapping[str, str], directory: str, read_secret: Callable[[str], str | None]) -> dict[str, str]:
    """Places and passwords of the key and trust stores, as the originals derive them from the names of files."""
    if "SSL://" not in given.get("KAFKA_ADVERTISED_LISTENERS", ""):
        return {}
    stores = ["KEYSTORE"]
    if given.get("KAFKA_SSL_CLIENT_AUTH", "") in ("required", "requested"):
        stores.append("TRUSTSTORE")
    found = {}
    for store in stores:
        if f"KAFKA_SSL_{store}_LOCATION" in given and f"KAFKA_SSL_{store}_FILENAME" not in given:
            continue  # named directly
        path = _secret_path(given, f"KAFKA_SSL_{store}_FILENAME", directory, read_secret)
        found[f"KAFKA_SSL_{store}_LOCATION"] = path
        found[f"KAFKA_SSL_{store}_PASSWORD"] = _password(
            given, f"KAFKA_SSL_{store}_CREDENTIALS", directory, read_secret
        )
    if "KAFKA_SSL_KEYSTORE_LOCATION" in found:
        found["KAFKA_SSL_KEY_PASSWORD"] = _password(given, "KAFKA_SSL_KEY_CREDENTIALS", directory, read_secret)
    return found


def _secret_path(given: Mapping[str, str], name: str, directory: str, read_secret: Callable[[str], str | None]) -> str:
    if not given.get(name):
        raise Refused(f"{name} environment variable not set: an SSL listener needs it.")
    path = f"{directory}/{given[name]}"
    if read_secret(path) is None:
        raise Refused(f"{path} file does not exist, or cannot be read; {name} names it.")
    return path


def _password(given: Mapping[str, str], name: str, directory: str, read_secret: Callable[[str], str | None]) -> str:
    return (read_secret(_secret_path(given, name, directory, read_secret)) or "").rstrip("\r\n")


def _without_secret_names(given: Mapping[str, str]) -> dict[str, str]:
    return {
        name: text
        for name, text in given.items()
        if name not in _SECRET_VARIABLES and not name.startswith("KAFKA_CFG_")
    }
