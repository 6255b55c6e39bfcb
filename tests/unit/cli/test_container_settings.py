"""What the environment of a container becomes, by the rules of apache/kafka and confluentinc/cp-kafka."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from moldau.cli.container.settings import (
    Refused,
    Settings,
    is_alone,
    listen_everywhere,
    log_level_of,
    properties_text,
    settings_of,
)
from moldau.config.broker_config import BrokerConfig
from moldau.config.properties import parse_properties

# What the containers of testcontainers set: Java (both), Go, Python with KRaft and without.
JAVA = {
    "CLUSTER_ID": "4L6g3nShT-eMCtK--X86sw",
    "KAFKA_LISTENERS": "PLAINTEXT://:9092,BROKER://:9093,CONTROLLER://:9094",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
    "KAFKA_CONTROLLER_QUORUM_VOTERS": "1@localhost:9094",
    "KAFKA_NODE_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
    "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://a1b2c3:9093",
}
GO = {
    **JAVA,
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094",
    "KAFKA_REST_BOOTSTRAP_SERVERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092,CONTROLLER://0.0.0.0:9094",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://a1b2c3:9092",
}
WITH_ZOOKEEPER = {
    "KAFKA_LISTENERS": "PLAINTEXT://0.0.0.0:9093,BROKER://0.0.0.0:9092",
    "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
    "KAFKA_BROKER_ID": "1",
    "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
    "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
    "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://localhost:32768,BROKER://10.0.0.7:9092",
}


def configure(
    environment: Mapping[str, str],
    is_confluent: bool = False,
    mounted: Mapping[str, str] | None = None,
    secrets: Mapping[str, str] | None = None,
) -> Settings:
    return settings_of(environment, is_confluent, "/data", "/secrets", mounted, (secrets or {}).get)


@pytest.mark.parametrize("environment", [JAVA, GO, WITH_ZOOKEEPER], ids=["java", "go", "zookeeper"])
@pytest.mark.parametrize("is_confluent", [False, True])
def test_a_node_starts_from_what_testcontainers_set(environment: dict[str, str], is_confluent: bool) -> None:
    config = BrokerConfig(configure(environment, is_confluent).values, warn=False)
    assert (config.is_broker, config.is_controller, config.node_id) == (True, True, 1)
    assert {endpoint.name for endpoint in config.listeners} == {"PLAINTEXT", "BROKER", "CONTROLLER"}
    assert config.inter_broker_listener_name == "BROKER"
    assert config.log_dirs == ["/data"]
    assert config.advertised_listeners[0].port == 32768


def test_underscores_are_dots_doubled_underscores_and_tripled_dashes() -> None:
    values = configure(
        {"KAFKA_A_B": "1", "KAFKA_A__B": "2", "KAFKA_A___B": "3", "KAFKA_KAFKA_X": "4", "OTHER": "5"}
    ).values
    assert (values["a.b"], values["a_b"], values["a-b"], values["kafka.x"]) == ("1", "2", "3", "4")
    assert "other" not in values


def test_what_steers_the_jvm_and_the_scripts_is_no_setting() -> None:
    names = "HEAP_OPTS JMX_OPTS OPTS LOG4J_LOGGERS LOG4J_ROOT_LOGLEVEL DATA_DIRS CUB_ZK_TIMEOUT REST_HOST_NAME VERSION"
    assert configure({f"KAFKA_{name}": "x" for name in names.split()}).values == configure({}).values


def test_links_to_a_kubernetes_service_called_kafka_do_no_harm() -> None:
    links = {
        "KAFKA_PORT": "tcp://10.0.0.1:9092",
        "KAFKA_PORT_9092_TCP": "tcp://10.0.0.1:9092",
        "KAFKA_SERVICE_HOST": "10.0.0.1",
        "KAFKA_SERVICE_PORT": "9092",
    }
    assert configure(links, is_confluent=True).values == configure({}, is_confluent=True).values
    with pytest.raises(Refused, match=r"port is deprecated\. Please use KAFKA_ADVERTISED_LISTENERS instead"):
        configure({"KAFKA_PORT": "9092"}, is_confluent=True)


def test_nothing_set_is_a_broker_and_controller_in_one() -> None:
    config = BrokerConfig(configure({}).values, warn=False)
    assert (config.is_broker, config.is_controller, config.node_id) == (True, True, 1)
    assert [(each.name, each.host, each.port) for each in config.listeners] == [
        ("PLAINTEXT", "", 9092),
        ("CONTROLLER", "localhost", 9093),
    ]
    assert [(each.host, each.port) for each in config.advertised_listeners] == [("localhost", 9092)]
    assert config.get_int("offsets.topic.replication.factor") == 1


def test_one_setting_does_not_take_the_others_away() -> None:
    """apache/kafka drops its defaults as soon as anything is set, and ends for want of process.roles."""
    values = configure({"KAFKA_NUM_PARTITIONS": "7", "KAFKA_BROKER_ID": "4"}).values
    assert (values["num.partitions"], values["process.roles"], values["node.id"]) == ("7", "broker,controller", "4")
    BrokerConfig(values, warn=False)


def test_the_controllers_port_keeps_clear_of_those_of_clients() -> None:
    values = configure({"KAFKA_LISTENERS": "PLAINTEXT://:9093,INSIDE://:29093"}).values
    assert values["listeners"] == "PLAINTEXT://:9093,INSIDE://:29093,CONTROLLER://localhost:29094"
    assert values["controller.quorum.bootstrap.servers"] == "localhost:29094"


def test_listeners_come_from_the_advertised_ones() -> None:
    assert listen_everywhere("A://kafka:9092, B://[fe80::1]:9094") == "A://0.0.0.0:9092,B://0.0.0.0:9094"
    values = configure({"KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://kafka.example:19092"}).values
    assert values["listeners"] == "PLAINTEXT://0.0.0.0:19092,CONTROLLER://localhost:9093"
    BrokerConfig(values, warn=False)


def test_a_mounted_file_gives_way_to_the_environment() -> None:
    mounted = {"process.roles": "broker", "node.id": "3", "num.partitions": "2"}
    values = configure({"KAFKA_NUM_PARTITIONS": "5", "KAFKA_LOG_DIRS": "/elsewhere"}, mounted=mounted).values
    assert values == {**mounted, "num.partitions": "5", "log.dirs": "/elsewhere"}


@pytest.mark.parametrize("is_confluent", [False, True])
@pytest.mark.parametrize("missing", [None, "", "  "])
def test_a_cluster_without_an_id_is_refused(is_confluent: bool, missing: str | None) -> None:
    environment = {**JAVA, "CLUSTER_ID": missing} if missing is not None else dict(JAVA)
    if missing is None:
        del environment["CLUSTER_ID"]
    with pytest.raises(Refused, match="CLUSTER_ID environment variable not set"):
        configure(environment, is_confluent)  # type: ignore[arg-type]


def test_a_controller_has_nothing_to_advertise() -> None:
    environment = {"CLUSTER_ID": "x", "KAFKA_PROCESS_ROLES": "controller", "KAFKA_NODE_ID": "1"}
    with pytest.raises(Refused, match="KAFKA_ADVERTISED_LISTENERS is not supported on a KRaft controller"):
        configure({**environment, "KAFKA_ADVERTISED_LISTENERS": "PLAINTEXT://x:1"})
    values = configure({**environment, "KAFKA_ADVERTISED_LISTENERS": ""}, is_confluent=True).values
    assert "advertised.listeners" not in values


def test_a_broker_of_confluents_image_says_what_it_advertises() -> None:
    environment = {name: text for name, text in JAVA.items() if name != "KAFKA_ADVERTISED_LISTENERS"}
    with pytest.raises(Refused, match="KAFKA_ADVERTISED_LISTENERS environment variable not set"):
        configure(environment, is_confluent=True)
    assert "advertised.listeners" not in configure(environment).values


def test_a_lone_broker_needs_no_zookeeper_and_several_are_refused() -> None:
    found = configure(WITH_ZOOKEEPER, is_confluent=True)
    assert found.values["listeners"].endswith(",CONTROLLER://localhost:29093")
    assert found.values["listener.security.protocol.map"].startswith("CONTROLLER:PLAINTEXT,")
    assert found.notes == ["ZooKeeper is not needed: this broker is its own controller."]
    for other in ({"KAFKA_BROKER_ID": "2"}, {"KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "3"}):
        with pytest.raises(Refused, match="there is no ZooKeeper mode any more"):
            configure({**WITH_ZOOKEEPER, **other}, is_confluent=True)


def test_a_quorum_is_made_up_for_a_lone_node_alone() -> None:
    alone = {name: text for name, text in JAVA.items() if name != "KAFKA_CONTROLLER_QUORUM_VOTERS"}
    assert configure(alone).values["controller.quorum.bootstrap.servers"] == "localhost:9094"
    several = configure({**alone, "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "3"}).values
    assert "controller.quorum.bootstrap.servers" not in several
    assert not is_alone({"offsets.topic.replication.factor": "1", "node.id": "2"})


def test_names_of_another_image_are_told() -> None:
    found = configure({"KAFKA_CFG_NUM_PARTITIONS": "3"})
    assert "cfg.num.partitions" not in found.values
    (note,) = found.notes
    assert note.startswith(
        "KAFKA_CFG_NUM_PARTITIONS: another image's way to name settings; write KAFKA_NUM_PARTITIONS."
    )


def test_key_stores_are_named_by_files_and_their_passwords_read_from_others() -> None:
    environment = {
        **JAVA,
        "KAFKA_ADVERTISED_LISTENERS": "SSL://localhost:9092",
        "KAFKA_SSL_KEYSTORE_FILENAME": "broker.p12",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "store",
        "KAFKA_SSL_KEY_CREDENTIALS": "key",
    }
    secrets = {"/secrets/broker.p12": "…", "/secrets/store": "one\n", "/secrets/key": "two"}
    values = configure(environment, secrets=secrets).values
    assert values["ssl.keystore.location"] == "/secrets/broker.p12"
    assert (values["ssl.keystore.password"], values["ssl.key.password"]) == ("one", "two")
    assert not [key for key in values if key.endswith(("filename", "credentials"))]
    with pytest.raises(Refused, match="/secrets/key file does not exist"):
        configure(environment, secrets={"/secrets/broker.p12": "…", "/secrets/store": "one"})
    with pytest.raises(Refused, match="KAFKA_SSL_TRUSTSTORE_FILENAME environment variable not set"):
        configure({**environment, "KAFKA_SSL_CLIENT_AUTH": "required"}, secrets=secrets)


def test_the_file_reads_back_as_what_was_meant() -> None:
    values = {"a": "x=y:z #!", "b": " two\nlines\t", "c": "back\\slash", "d": ""}
    assert parse_properties(properties_text(values)) == values
    assert "listeners=PLAINTEXT://:9092\n" in properties_text({"listeners": "PLAINTEXT://:9092"})


def test_the_level_of_the_log() -> None:
    assert log_level_of({}) == "INFO"
    assert log_level_of({"KAFKA_LOG4J_ROOT_LOGLEVEL": "warn"}) == "WARNING"
    assert log_level_of({"KAFKA_LOG4J_ROOT_LOGLEVEL": "ERROR", "MOLDAU_LOG_LEVEL": "debug"}) == "DEBUG"
    assert log_level_of({"KAFKA_LOG4J_ROOT_LOGLEVEL": "LOUD"}) == "INFO"
