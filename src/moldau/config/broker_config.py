"""The configuration of one node: every value typed, and the values checked against each other.

A `BrokerConfig` never changes; a dynamic change makes a new one (`config/dynamic.py`). Keys nobody knows are kept and
warned about, because plug-ins and newer files have them. Kafka keeps the same in `KafkaConfig`.
"""

import logging
from typing import Final

from moldau.config.broker_keys import BROKER_KEYS
from moldau.config.definitions import (
    ConfigError,
    ConfigKey,
    FailedRequirement,
    Value,
)
from moldau.config.group_keys import BOUNDED_GROUP_KEYS
from moldau.config.listeners import (
    Endpoint,
    Voter,
    is_loopback,
    listener_name,
    parse_bootstrap_servers,
    parse_connection_overrides,
    parse_listeners,
    parse_protocol_map,
    parse_voters,
)
from moldau.config.own_keys import OWN_KEYS
from moldau.config.quota_keys import BROKER_QUOTA_KEYS
from moldau.config.topic_keys import BROKER_UNITS, RETENTION, ROLL, ROLL_JITTER

REPLICA_SELECTORS = (
    "org.apache.kafka.common.replica.LeaderSelector",
    "org.apache.kafka.common.replica.RackAwareReplicaSelector",
)
LISTENER_PREFIX: Final = "listener.name."
SASL_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")

_logger = logging.getLogger("moldau.config")

# Read by the authorizer from the same file.
AUTHORIZER_KEYS: Final = ("super.users", "allow.everyone.if.no.acl.found")
# How the names of settings begin that others read from the same file: ZooKeeper's clients, Confluent's server, and the
# plug-ins for remote storage. Nobody reads them here.
PREFIXES_OF_OTHERS: Final = ("zookeeper.", "confluent.", "rlmm.", "rsm.")


def single_node_values(
    node_id: int = 1, host: str = "127.0.0.1", port: int = 9092, controller_port: int = 9093
) -> dict[str, str]:
    """The values of a node that is broker and controller of a cluster of its own."""
    return {
        "process.roles": "broker,controller",
        "node.id": str(node_id),
        "listeners": f"PLAINTEXT://{host}:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": f"127.0.0.1:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
    }


def split_listener_key(name: str) -> tuple[str, str] | None:
    """(listener, key) of `listener.name.<listener>.<key>`, or None."""
    if not name.startswith(LISTENER_PREFIX):
        return None
    listener, dot, key = name[len(LISTENER_PREFIX) :].partition(".")
    return (listener, key) if dot and listener and key else None


def split_mechanism_key(key: str) -> tuple[str, str]:
    """(mechanism, key) of what follows a listener's prefix; the mechanism is empty where the key is for all of them."""
    for mechanism in SASL_MECHANISMS:
        prefix = f"{mechanism.lower()}."
        if key.startswith(prefix):
            return mechanism, key[len(prefix) :]
    return "", key


def find_broker_key(name: str) -> ConfigKey | None:
    """The row of a broker key, of a replication throttle, of an own key, or of the key behind the prefix of a listener
    and of one of its SASL mechanisms."""
    prefixed = split_listener_key(name)
    bare = split_mechanism_key(prefixed[1])[1] if prefixed else name
    return BROKER_KEYS.get(bare) or BROKER_QUOTA_KEYS.get(name) or OWN_KEYS.get(name)


class BrokerConfig:
    """Typed values of all broker keys, given or default; raises ConfigError when they cannot work."""

    def __init__(self, values: dict[str, str], warn: bool = True) -> None:
        self.values = _with_one_node_id(values)
        self.log_defaults: object = None  # kept here by `log_config_for`: the LogConfig of topics without overrides
        self._parsed: dict[str, Value] = BROKER_KEYS.check(self.values)
        self._parsed.update(BROKER_QUOTA_KEYS.check(self.values))
        self._parsed.update(OWN_KEYS.check(self.values))
        self.unknown = [name for name in self.values if find_broker_key(name) is None]
        for key in BROKER_KEYS.rows():
            if key.required and self._parsed.get(key.name) is None:
                raise ConfigError(f'Missing required configuration "{key.name}" which has no default value.')
        self._read_roles_and_listeners()
        self._check_listeners()
        _check_requirements(self)
        if warn:
            self._warn()

    # Reading values

    def get(self, name: str) -> Value:
        """The typed value, given or default. KeyError when there is no such key."""
        if name not in self._parsed:
            key = find_broker_key(name)
            if key is None:
                raise KeyError(name)
            text = self.values.get(name, None if split_listener_key(name) else key.default)
            self._parsed[name] = key.parse(text)
        return self._parsed[name]

    def get_int(self, name: str) -> int:
        value = self.get(name)
        if not isinstance(value, int):
            raise ConfigError(f"{name} has no number")
        return value

    def get_int_or_none(self, name: str) -> int | None:
        value = self.get(name)
        return value if isinstance(value, int) else None

    def get_float(self, name: str) -> float:
        value = self.get(name)
        if not isinstance(value, (int, float)):
            raise ConfigError(f"{name} has no number")
        return float(value)

    def get_bool(self, name: str) -> bool:
        return self.get(name) is True

    def get_str(self, name: str) -> str:
        """The text of a string, class or password key; empty when it has none."""
        value = self.get(name)
        return value if isinstance(value, str) else ""

    def get_str_or_none(self, name: str) -> str | None:
        value = self.get(name)
        return value if isinstance(value, str) else None

    def get_list(self, name: str) -> list[str]:
        value = self.get(name)
        return list(value) if isinstance(value, list) else []

    def is_given(self, name: str) -> bool:
        return name in self.values

    def get_for_listener(self, listener: str, name: str) -> Value:
        """The value a listener uses: listener.name.<listener>.<key> where it is given, the key itself otherwise."""
        prefixed = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
        if prefixed in self.values:
            return BROKER_KEYS[name].parse(self.values[prefixed])
        return self.get(name)

    def get_for_mechanism(self, listener: str, mechanism: str, name: str) -> Value:
        """The value that a SASL mechanism of a listener uses: its own, the listener's, or that of all."""
        prefixed = f"{LISTENER_PREFIX}{listener.lower()}.{mechanism.lower()}.{name}"
        if prefixed in self.values:
            return BROKER_KEYS[name].parse(self.values[prefixed])
        return self.get_for_listener(listener, name)

    # Values that several keys make together

    @property
    def log_dirs(self) -> list[str]:
        return self.get_list("log.dirs") or self.get_list("log.dir")

    @property
    def metadata_log_dir(self) -> str:
        return self.get_str("metadata.log.dir") or self.log_dirs[0]

    @property
    def rack(self) -> str | None:
        return self.get_str_or_none("broker.rack")

    @property
    def log_retention_ms(self) -> int:
        retention_ms = self.scaled(RETENTION)
        return -1 if retention_ms < 0 else retention_ms

    @property
    def log_roll_ms(self) -> int:
        return self.scaled(ROLL)

    @property
    def log_roll_jitter_ms(self) -> int:
        return self.scaled(ROLL_JITTER)

    def scaled(self, names: tuple[str, ...]) -> int:
        """The first of several keys that has a value, in milliseconds."""
        for name in names:
            value = self.get_int_or_none(name)
            if value is not None:
                return value * BROKER_UNITS.get(name, 1)
        raise ConfigError(f"none of {', '.join(names)} has a value")

    def advertised(self) -> list[Endpoint]:
        """What clients are told, without the controller's listeners; a port of 0 is filled in once it is bound."""
        return [
            endpoint for endpoint in self.advertised_listeners if endpoint.name not in self.controller_listener_names
        ]

    @property
    def is_alone(self) -> bool:
        """Whether no other node can be part of the quorum or look for it."""
        if not self.is_controller:
            return False
        if self.voters:
            return [voter.id for voter in self.voters] == [self.node_id]
        return all(is_loopback(host) for host, _ in self.bootstrap_servers)

    def broker_listeners(self) -> list[Endpoint]:
        return [endpoint for endpoint in self.listeners if endpoint.name not in self.controller_listener_names]

    def controller_listeners(self) -> list[Endpoint]:
        return [endpoint for endpoint in self.listeners if endpoint.name in self.controller_listener_names]

    # Roles and listeners

    def _read_roles_and_listeners(self) -> None:
        self.node_id = self.get_int("node.id")
        self.process_roles = self.get_list("process.roles")
        self.is_broker = "broker" in self.process_roles
        self.is_controller = "controller" in self.process_roles
        self.controller_listener_names = [name.upper() for name in self.get_list("controller.listener.names")]
        self.security_protocols = self._security_protocols()
        self.listeners = parse_listeners(self.get_list("listeners"), self.security_protocols, distinct_ports=True)
        advertised = self.get_list("advertised.listeners")
        self.advertised_listeners = self.listeners
        if advertised:
            self.advertised_listeners = parse_listeners(advertised, self.security_protocols, distinct_ports=False)
        self.inter_broker_listener_name = self._inter_broker_listener_name()
        self.voters: list[Voter] = parse_voters(self.get_list("controller.quorum.voters"))
        servers = self.get_list("controller.quorum.bootstrap.servers")
        self.bootstrap_servers = parse_bootstrap_servers(servers, "controller.quorum.bootstrap.servers")
        if not self.voters and not self.bootstrap_servers:
            raise ConfigError(
                "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of bootstrap "
                "controllers or controller.quorum.voters must contain a parseable set of controllers."
            )

    def _security_protocols(self) -> dict[str, str]:
        """The map as given; the default one also knows the controller's listeners while nothing is encrypted."""
        protocols = parse_protocol_map(self.get_str("listener.security.protocol.map"))
        if self.is_given("listener.security.protocol.map"):
            return protocols
        names = [listener_name(text) for text in self.get_list("listeners")] + self.controller_listener_names
        if all(protocols.get(name, "PLAINTEXT") == "PLAINTEXT" for name in names):
            for name in self.controller_listener_names:
                protocols.setdefault(name, "PLAINTEXT")
        return protocols

    def _inter_broker_listener_name(self) -> str:
        name = self.get_str_or_none("inter.broker.listener.name")
        if name is None:
            return self.get_str("security.inter.broker.protocol")
        if self.is_given("security.inter.broker.protocol"):
            raise ConfigError(
                "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set."
            )
        if name.upper() not in self.security_protocols:
            raise ConfigError(
                f"Listener with name {name.upper()} defined in inter.broker.listener.name not found in "
                "listener.security.protocol.map."
            )
        return name.upper()

    def _check_listeners(self) -> None:
        names = [endpoint.name for endpoint in self.listeners]
        controllers = self.controller_listener_names
        voter_ids = ", ".join(str(voter.id) for voter in self.voters)
        is_voter = any(voter.id == self.node_id for voter in self.voters)
        if not self.is_controller:
            _require(
                not (self.voters and is_voter),
                f"If process.roles contains just the 'broker' role, the node id {self.node_id} must not be included in "
                f"the set of voters controller.quorum.voters=Set({voter_ids})",
            )
            _require(
                not any(name in controllers for name in names),
                "controller.listener.names must not contain a value appearing in the 'listeners' configuration when "
                "running KRaft with just the broker role",
            )
            _require(
                bool(controllers),
                "controller.listener.names must contain at least one value when running KRaft with just the "
                "broker role",
            )
        else:
            self._check_controller_listeners(names, is_voter, voter_ids)
        if self.is_broker:
            self._check_advertised(names)
        for name in self.early_start_listeners:
            _require(
                name in names or name in controllers,
                f"early.start.listeners contains {name}, which is neither in listeners nor in "
                "controller.listener.names",
            )

    @property
    def early_start_listeners(self) -> list[str]:
        """Those that open before the authorizer has its ACLs: controllers need each other for that."""
        if not self.is_given("early.start.listeners"):
            return self.controller_listener_names
        return [name.upper() for name in self.get_list("early.start.listeners")]

    def _check_controller_listeners(self, names: list[str], is_voter: bool, voter_ids: str) -> None:
        _require(
            is_voter or not self.voters,
            f"If process.roles contains the 'controller' role, the node id {self.node_id} must be included in the set "
            f"of voters controller.quorum.voters=Set({voter_ids})",
        )
        if not self.is_broker:
            _require(
                all(name in self.controller_listener_names for name in names),
                "The listeners config must only contain KRaft controller listeners from controller.listener.names when "
                "process.roles=controller",
            )
        _require(
            any(name in self.controller_listener_names for name in names),
            "controller.listener.names must contain at least one value appearing in the 'listeners' configuration when "
            "running the KRaft controller role",
        )
        _require(
            all(name in names for name in self.controller_listener_names),
            "controller.listener.names must only contain values appearing in the 'listeners' configuration when "
            "running the KRaft controller role",
        )

    def _check_advertised(self, names: list[str]) -> None:
        advertised = [endpoint.name for endpoint in self.advertised()]
        _require(
            bool(advertised),
            "There must be at least one broker advertised listener. Perhaps all listeners appear in "
            "controller.listener.names?",
        )
        _require(
            self.inter_broker_listener_name in advertised,
            "inter.broker.listener.name must be a listener name defined in advertised.listeners. The valid options "
            f"based on currently configured listeners are {','.join(advertised)}",
        )
        _require(
            all(name in names for name in advertised),
            "advertised.listeners listener names must be equal to or a subset of the ones defined in listeners. Found "
            f"{','.join(advertised)}. The valid options based on the current configuration are {','.join(names)}",
        )
        _require(
            all(endpoint.host != "0.0.0.0" for endpoint in self.advertised_listeners),
            "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address.",
        )

    def _warn(self) -> None:
        for name in self.unknown:
            if name not in AUTHORIZER_KEYS and not name.startswith(PREFIXES_OF_OTHERS):
                _logger.warning("config %s is not known and has no effect", name)
        heartbeat_ms = self.get_int("broker.heartbeat.interval.ms")
        session_ms = self.get_int("broker.session.timeout.ms")
        if heartbeat_ms * 2 > session_ms:
            _logger.error(
                "broker.heartbeat.interval.ms (%d) is more than half of broker.session.timeout.ms (%d): brokers will "
                "be fenced after one late heartbeat; lower the first or raise the second",
                heartbeat_ms,
                session_ms,
            )


def _with_one_node_id(values: dict[str, str]) -> dict[str, str]:
    """node.id and its older name broker.id say the same; both are listed when one is given."""
    values = dict(values)
    node_id, broker_id = values.get("node.id"), values.get("broker.id")
    if node_id is not None and broker_id is not None and node_id.strip() != broker_id.strip():
        raise ConfigError("You must set `node.id` to the same value as `broker.id`.")
    if node_id is not None:
        values["broker.id"] = node_id
    elif broker_id is not None:
        values["node.id"] = broker_id
    return values


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise FailedRequirement(message)


def _check_requirements(config: BrokerConfig) -> None:
    """What must hold between values, in Kafka's order and words."""
    number = config.get_int
    _require(config.log_roll_ms >= 1, "log.roll.ms must be greater than or equal to 1")
    _require(config.log_roll_jitter_ms >= 0, "log.roll.jitter.ms must be greater than or equal to 0")
    _require(config.log_retention_ms != 0, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1")
    _require(bool(config.log_dirs), "At least one log directory must be defined via log.dirs or log.dir.")
    cordoned = config.get_list("cordoned.log.dirs")
    missing = [path for path in cordoned if path != "*" and path not in config.log_dirs]
    _require(
        not missing,
        "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing entries : "
        + ", ".join(missing),
    )
    threads = max(1, number("log.cleaner.threads"))
    _require(
        number("log.cleaner.dedupe.buffer.size") // threads > 1024 * 1024,
        "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
    )
    _require(
        number("replica.fetch.wait.max.ms") <= number("replica.socket.timeout.ms"),
        "replica.socket.timeout.ms should always be at least replica.fetch.wait.max.ms to prevent unnecessary socket "
        "timeouts",
    )
    _require(
        number("replica.fetch.wait.max.ms") <= number("replica.lag.time.max.ms"),
        "replica.fetch.wait.max.ms should always be less than or equal to replica.lag.time.max.ms to prevent frequent "
        "changes in ISR",
    )
    selector = config.get_str_or_none("replica.selector.class")
    _require(
        selector is None or selector in REPLICA_SELECTORS,
        f"replica.selector.class is {selector}, but classes cannot be loaded here: it can be one of "
        + " and ".join(REPLICA_SELECTORS),
    )
    queued = number("queued.max.request.bytes")
    _require(
        queued <= 0 or queued >= number("socket.request.max.bytes"),
        "queued.max.request.bytes must be larger or equal to socket.request.max.bytes",
    )
    overrides = parse_connection_overrides(config.get_str("max.connections.per.ip.overrides"))
    _require(
        number("max.connections.per.ip") > 0 or bool(overrides),
        "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set.",
    )
    for name in ("offsets.topic.compression.codec", "share.coordinator.state.topic.compression.codec"):
        if number(name) not in (0, 1, 2, 3, 4):
            raise ConfigError(f"Unknown compression type id: {number(name)}")
    _check_group_bounds(config)


def _check_group_bounds(config: BrokerConfig) -> None:
    for group_key in BOUNDED_GROUP_KEYS:
        kind, _, rest = group_key.partition(".")
        name, low, high = f"group.{group_key}", f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
        if config.get_int(high) < config.get_int(low):
            raise ConfigError(f"{high} must be greater than or equal to {low}")
        if config.get_int(name) < config.get_int(low):
            raise ConfigError(f"{name} must be greater than or equal to {low}")
        if config.get_int(name) > config.get_int(high):
            raise ConfigError(f"{name} must be less than or equal to {high}")
    for kind in ("consumer", "share", "streams"):
        heartbeat, session = f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms"
        if config.get_int(heartbeat) >= config.get_int(session):
            raise ConfigError(f"{heartbeat} must be less than {session}")
    if config.get_int("group.streams.num.standby.replicas") > config.get_int("group.streams.max.standby.replicas"):
        raise ConfigError(
            "group.streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas"
        )
