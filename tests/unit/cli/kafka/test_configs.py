"""kafka-configs: what it prints and refuses, against a scripted admin client."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.cli.kafka import configs
from moldau.cli.kafka.configs_quotas import java_double
from moldau.cli.kafka.frame import guard
from moldau.client.admin import ConfigEntry, QuotaEntity
from moldau.client.connection.cluster import TopicMetadata
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

SERVER = ["--bootstrap-server", "localhost:9092"]


def run(admin: FakeAdmin, *arguments: str) -> int:
    return guard(lambda: configs.main([*SERVER, *arguments], connect=admin.connect))


def altered(resources: dict[Any, Any]) -> dict[Any, Outcome[None]]:
    return {item: Outcome() for item in resources}


def test_describe_shows_own_configs_and_all_with_where_they_come_from(capsys: pytest.CaptureFixture[str]) -> None:
    entries = [
        ConfigEntry("b", "1", 1, False, False, [("b", "1", 1), ("log.b", None, 5)], None),
        ConfigEntry("a", None, 5, False, True, [], None),
    ]
    admin = FakeAdmin(
        list_topics=[TopicMetadata("t", bytes(16), False, {})],
        describe_configs=lambda resources, include_synonyms: {item: Outcome(entries) for item in resources},
    )
    own = "  b=1 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:b=1, DEFAULT_CONFIG:log.b=null}\n"
    assert run(admin, "--describe", "--entity-type", "topics", "--entity-name", "t") == 0
    assert capsys.readouterr().out == "Dynamic configs for topic t are:\n" + own
    assert run(admin, "--describe", "--topic", "t", "--all") == 0
    assert capsys.readouterr().out == f"All configs for topic t are:\n  a=null sensitive=true synonyms={{}}\n{own}"
    assert run(admin, "--describe", "--topic", "nope") == 0
    assert capsys.readouterr().out == "The topic 'nope' doesn't exist and doesn't have dynamic config.\n"


def test_alter_takes_lists_in_brackets(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(incremental_alter_configs=altered)
    line = ["--alter", "--topic", "t", "--add-config", "a=1,b=[x,y],c=", "--delete-config", "d,e"]
    assert run(admin, *line) == 0
    assert capsys.readouterr().out == "Completed updating config for topic t.\n"
    (changes,) = admin.calls[0][1][0].values()
    assert changes == [("d", None, 1), ("e", None, 1), ("a", "1", 0), ("b", "x,y", 0), ("c", "", 0)]


def test_the_default_of_brokers_has_no_name(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(incremental_alter_configs=altered)
    assert run(admin, "--alter", "--entity-type", "brokers", "--entity-default", "--add-config", "a=1") == 0
    assert capsys.readouterr().out == "Completed updating default config for brokers in the cluster.\n"
    assert list(admin.calls[0][1][0]) == [(4, "")]


def test_what_a_broker_refuses_comes_with_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    refusal = error_for(errors.INVALID_CONFIG, "Unknown topic config name: x")
    admin = FakeAdmin(incremental_alter_configs=lambda changes: {item: Outcome(error=refusal) for item in changes})
    assert run(admin, "--alter", "--topic", "t", "--add-config", "x=1") == 1
    exception = "org.apache.kafka.common.errors.InvalidConfigurationException: Unknown topic config name: x"
    assert capsys.readouterr().err == (
        "Error while executing config command with args "
        "'--bootstrap-server localhost:9092 --alter --topic t --add-config x=1'\n"
        f"java.util.concurrent.ExecutionException: {exception}\nCaused by: {exception}\n"
    )


def test_quotas_of_users_and_clients(capsys: pytest.CaptureFixture[str]) -> None:
    whom = QuotaEntity.of({"user": "alice", "client-id": None})
    admin = FakeAdmin(
        describe_client_quotas={whom: {"producer_byte_rate": 1024.0, "consumer_byte_rate": 2e7}},
        alter_client_quotas=altered,
    )
    assert run(admin, "--describe", "--entity-type", "users", "--entity-type", "clients") == 0
    shown = "consumer_byte_rate=2.0E7, producer_byte_rate=1024.0"
    expected = f"Quota configs for user-principal 'alice', the default client-id are {shown}\n"
    assert capsys.readouterr().out == expected
    assert run(admin, "--alter", "--user", "alice", "--client-defaults", "--add-config", "producer_byte_rate=5") == 0
    assert admin.calls[-1][1] == ({whom: {"producer_byte_rate": 5.0}},)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--describe", "At least one entity type must be specified"),
        ("--describe --broker x", "The entity name for brokers must be a valid integer broker id, but it is: x"),
        ("--alter --topic t --add-config a?=1", "Invalid character found for config key: a?"),
        (
            "--alter --user alice --add-config no_such_quota=1",
            (
                "Only quota and SCRAM credential configs can be added for 'users' using --bootstrap-server. "
                "Unexpected config names: Set(no_such_quota)"
            ),
        ),
        (
            "--alter --ip not.a.host.invalid --add-config connection_creation_rate=1",
            "The entity name for ips must be a valid IP or resolvable host, but it is: not.a.host.invalid",
        ),
        (
            "--alter --entity-type users --entity-type clients --entity-name a --add-config producer_byte_rate=7",
            "An entity name must be specified for every entity type",
        ),
        (
            "--alter --user alice --add-config SCRAM-SHA-256=[iterations=100,password=x]",
            "Iterations 100 is less than the minimum 4096 required for SCRAM-SHA-256",
        ),
        ("--alter --user a --add-config SCRAM-SHA-256=[iterations=,password=x]", 'For input string: ""'),
        ("--alter --user a --add-config SCRAM-SHA-256=[iterations=-,password=x]", 'For input string: "-"'),
    ],
)
def test_errors_of_the_user_are_one_sentence(arguments: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), *arguments.split()) == 1
    assert capsys.readouterr().err == said + "\n"


@pytest.mark.parametrize(
    ("credential", "said"),
    [("iterations=16385,password=x", "Too many iterations"), ("password=", "Password must not be empty")],
)
def test_credentials_that_no_broker_takes(credential: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), "--alter", "--user", "a", "--add-config", f"SCRAM-SHA-256=[{credential}]") == 1
    assert f"ExecutionException: org.apache.kafka.common.errors.UnacceptableCredentialException: {said}\n" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.0"), (0.5, "0.5"), (9999999.0, "9999999.0"), (1.5e7, "1.5E7"), (1e-4, "1.0E-4")]
)
def test_numbers_look_as_java_writes_them(value: float, text: str) -> None:
    assert java_double(value) == text
