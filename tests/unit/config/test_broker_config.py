"""A node's configuration: roles, listeners, and values that must fit together, in the real broker's words."""

import logging

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.definitions import ConfigError
from moldau.config.listeners import Endpoint

BASE = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
    "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}
BROKER_ONLY = {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9092"}
CONTROLLER_ONLY = {"process.roles": "controller", "listeners": "CONTROLLER://127.0.0.1:9093"}


def build(**changes: str | None) -> BrokerConfig:
    return build_with({name.replace("_", "."): value for name, value in changes.items()})


def build_with(changes: dict[str, str | None]) -> BrokerConfig:
    values: dict[str, str | None] = {**BASE, **changes}
    return BrokerConfig({name: value for name, value in values.items() if value is not None})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"process.roles": None}, 'Missing required configuration "process.roles" which has no default value.'),
        ({"node.id": None}, 'Missing required configuration "node.id" which has no default value.'),
        (
            {"controller.listener.names": None},
            'Missing required configuration "controller.listener.names" which has no',
        ),
        ({"broker.id": "2"}, "You must set `node.id` to the same value as `broker.id`."),
        (
            {"process.roles": "foo"},
            "Invalid value foo for configuration process.roles: String must be one of: broker, c",
        ),
        (
            {"process.roles": ""},
            "Configuration 'process.roles' must not be empty. Valid values include: [broker, contro",
        ),
        ({"node.id": "-1"}, "Invalid value -1 for configuration node.id: Value must be at least 0"),
        (
            {"controller.quorum.bootstrap.servers": None},
            "If using process.roles, either controller.quorum.bootstrap.ser",
        ),
        ({"controller.quorum.bootstrap.servers": "bad"}, "Failed to parse host name from bad for the configuration"),
        ({"controller.quorum.voters": "bad"}, "Invalid configuration value for controller.quorum.voters. Each entry"),
        (
            {"controller.quorum.voters": "2@h:1"},
            "If process.roles contains the 'controller' role, the node id 1 must be",
        ),
        (
            {**BROKER_ONLY, "controller.quorum.voters": "1@h:1"},
            "If process.roles contains just the 'broker' role, the n",
        ),
        (
            {"process.roles": "broker"},
            "controller.listener.names must not contain a value appearing in the 'listeners'",
        ),
        (
            {"process.roles": "controller"},
            "The listeners config must only contain KRaft controller listeners from cont",
        ),
        (
            {"listeners": "PLAINTEXT://127.0.0.1:9092"},
            "controller.listener.names must contain at least one value appea",
        ),
        ({"listeners": "foo"}, "Unable to parse a listener name from foo"),
        ({"listeners": ""}, "Configuration 'listeners' must not be empty. Valid values include: any non-empty value"),
        (
            {"listeners": "PLAINTEXT://a:1,PLAINTEXT://a:2,CONTROLLER://a:3"},
            "Error creating broker listeners from '[PLAINTEXT://a:1, PLAINTEXT://a:2, CONTROLLER://a:3]': Each listen",
        ),
        (
            {"listeners": "PLAINTEXT://a:1,CONTROLLER://a:1"},
            "Error creating broker listeners from '[PLAINTEXT://a:1, CO",
        ),
        (
            {"listeners": "FOO://a:1,CONTROLLER://a:2"},
            "Error creating broker listeners from '[FOO://a:1, CONTROLLER://",
        ),
        (
            {"listeners": "PLAINTEXT://a,CONTROLLER://a:2"},
            "Error creating broker listeners from '[PLAINTEXT://a, CONTRO",
        ),
        (
            {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "advertised.listeners cannot use the nonroutable meta-addre",
        ),
        (
            {"advertised.listeners": "SSL://a:1"},
            "inter.broker.listener.name must be a listener name defined in advertis",
        ),
        (
            {"advertised.listeners": "CONTROLLER://a:1"},
            "There must be at least one broker advertised listener. Perhaps",
        ),
        (
            {"inter.broker.listener.name": "FOO"},
            "Listener with name FOO defined in inter.broker.listener.name not found",
        ),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "Only one of inter.broker.listener.name and security.inter.broker.protocol should be set.",
        ),
        (
            {"listener.security.protocol.map": "PLAINTEXT:FOO"},
            "Invalid security protocol `FOO` defined in listener.secu",
        ),
        ({"log.dirs": ""}, "Configuration 'log.dirs' must not be empty. Valid values include: any non-empty value"),
        ({"log.retention.hours": "0"}, "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be greater than or equal to 1"),
        (
            {"replica.fetch.wait.max.ms": "50000"},
            "replica.socket.timeout.ms should always be at least replica.fetch.wa",
        ),
        (
            {"replica.lag.time.max.ms": "100"},
            "replica.fetch.wait.max.ms should always be less than or equal to replica",
        ),
        (
            {"group.consumer.heartbeat.interval.ms": "50000"},
            "group.consumer.heartbeat.interval.ms must be less than or e",
        ),
        (
            {"queued.max.request.bytes": "5"},
            "queued.max.request.bytes must be larger or equal to socket.request.max.by",
        ),
        (
            {"max.connections.per.ip": "0"},
            "max.connections.per.ip can be set to zero only if max.connections.per.ip.ov",
        ),
        ({"offsets.topic.compression.codec": "9"}, "Unknown compression type id: 9"),
        (
            {"cordoned.log.dirs": "/x"},
            "All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Missing",
        ),
    ],
)
def test_what_cannot_work_is_refused_with_a_sentence(changes: dict[str, str | None], message: str) -> None:
    """Each refusal begins with the words the real broker uses."""
    with pytest.raises(ConfigError) as caught:
        build_with(changes)
    assert caught.value.message.startswith(message)


def test_a_combined_node_knows_its_roles_and_listeners() -> None:
    """Controller listeners are kept apart from what brokers and clients use."""
    config = build()
    assert config.is_broker
    assert config.is_controller
    assert config.node_id == 1
    assert config.values["broker.id"] == "1"
    assert config.broker_listeners() == [Endpoint("PLAINTEXT", "PLAINTEXT", "127.0.0.1", 9092)]
    assert config.controller_listeners() == [Endpoint("CONTROLLER", "PLAINTEXT", "127.0.0.1", 9093)]
    assert config.advertised() == config.broker_listeners()
    assert config.inter_broker_listener_name == "PLAINTEXT"
    assert config.bootstrap_servers == [("127.0.0.1", 9093)]


def test_one_role_alone_works() -> None:
    """A broker without controller and a controller without broker both start."""
    assert not build_with(dict(BROKER_ONLY)).is_controller
    assert not build_with(dict(CONTROLLER_ONLY)).is_broker


def test_broker_id_is_the_older_name_of_node_id() -> None:
    """A file that only has broker.id gives the node its number."""
    assert build_with({"node.id": None, "broker.id": "7"}).node_id == 7


def test_two_listeners_share_a_port_only_as_ipv4_and_ipv6() -> None:
    """The same port is fine once on each family, and port 0 any number of times."""
    config = build_with(
        {
            "listeners": "PLAINTEXT://127.0.0.1:1,SIX://[::1]:1,CONTROLLER://127.0.0.1:2",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SIX:PLAINTEXT,CONTROLLER:PLAINTEXT",
        }
    )
    assert config.listeners[1].host == "::1"
    build_with({"listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"})


def test_the_default_protocol_map_covers_controllers_only_while_all_is_plaintext() -> None:
    """With an encrypted listener the controller's protocol must be stated."""
    assert build().security_protocols["CONTROLLER"] == "PLAINTEXT"
    with pytest.raises(ConfigError, match="No security protocol defined for listener CONTROLLER"):
        build(listeners="PLAINTEXT://a:1,SSL://a:2,CONTROLLER://a:3")


def test_times_in_other_units_are_scaled_and_the_finest_unit_wins() -> None:
    """Minutes beat hours, milliseconds beat both, and every negative retention is for ever."""
    assert build().log_retention_ms == 604800000
    assert build(log_retention_hours="5").log_retention_ms == 18000000
    assert build(log_retention_hours="5", log_retention_minutes="2").log_retention_ms == 120000
    assert build(log_retention_minutes="2", log_retention_ms="3").log_retention_ms == 3
    assert build(log_retention_ms="-7").log_retention_ms == -1
    assert build(log_roll_hours="3").log_roll_ms == 10800000


def test_typed_getters_give_defaults_and_given_values() -> None:
    """Every key has a value of its type without being given."""
    config = build(num_partitions="4", auto_create_topics_enable="false", log_dirs="/a, /b")
    assert config.get_int("num.partitions") == 4
    assert config.get_bool("auto.create.topics.enable") is False
    assert config.get_list("sasl.enabled.mechanisms") == ["GSSAPI"]
    assert config.get_float("log.cleaner.io.buffer.load.factor") == 0.9
    assert config.get_str_or_none("broker.rack") is None
    assert config.get_int_or_none("log.retention.ms") is None
    assert config.log_dirs == ["/a", "/b"]
    assert config.metadata_log_dir == "/a"
    with pytest.raises(KeyError):
        config.get("no.such.key")


def test_a_listeners_own_value_goes_before_the_general_one() -> None:
    """listener.name.<listener>.<key> holds for that listener only."""
    config = build_with({"listener.name.plaintext.max.connections": "5", "max.connections": "9"})
    assert config.get_for_listener("PLAINTEXT", "max.connections") == 5
    assert config.get_for_listener("CONTROLLER", "max.connections") == 9


def test_unknown_keys_are_kept_and_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    """A key nobody knows does not stop the node; one that others read is named once at the start instead."""
    with caplog.at_level(logging.WARNING, logger="moldau.config"):
        config = build_with({"my.own": "1", "super.users": "User:a", "zookeeper.connect": "localhost:2181"})
    assert config.unknown == ["my.own", "super.users", "zookeeper.connect"]
    assert [record.getMessage() for record in caplog.records] == ["config my.own is not known and has no effect"]


def test_the_values_of_a_single_node_are_valid() -> None:
    """What an embedded node starts with passes every check."""
    config = BrokerConfig(single_node_values(node_id=5, port=0, controller_port=0))
    assert config.node_id == 5


def test_listeners_that_start_early_are_the_controllers_unless_others_are_named() -> None:
    assert build_with({}).early_start_listeners == build_with({}).controller_listener_names
    assert build_with({"early.start.listeners": ""}).early_start_listeners == []
    named = build_with({"early.start.listeners": "plaintext"})
    assert named.early_start_listeners == ["PLAINTEXT"]
    with pytest.raises(ConfigError, match=r"early\.start\.listeners contains OTHER"):
        build_with({"early.start.listeners": "OTHER"})
