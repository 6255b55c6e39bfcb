"""Settings of logins: what a listener offers, and sentences for what cannot work."""

from __future__ import annotations

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.config.definitions import ConfigError
from moldau.config.dynamic import validate_broker_configs
from moldau.config.unserved import check_served, without_effect
from moldau.protocol.errors import KafkaError
from moldau.security.sasl_settings import (
    check_logins,
    controller_credentials,
    inter_broker_credentials,
    read_bearer,
    read_listener,
)
from moldau.server.logins import check_sources

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
BEARER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
JAAS = "listener.name.clients.plain.sasl.jaas.config"


def config(**changes: str | None) -> BrokerConfig:
    values: dict[str, str | None] = {
        **single_node_values(),
        "log.dirs": "/x",
        "listeners": "INTERNAL://127.0.0.1:1,CLIENTS://127.0.0.1:2,CONTROLLER://127.0.0.1:3",
        "listener.security.protocol.map": "INTERNAL:PLAINTEXT,CLIENTS:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "INTERNAL",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        JAAS: f'{PLAIN} user_alice="secret-1";',
    }
    values.update({name.replace("__", "-").replace("_", "."): text for name, text in changes.items()})
    return BrokerConfig({name: text for name, text in values.items() if text is not None})


def test_a_listener_with_its_own_settings() -> None:
    given = config(
        listener_name_clients_scram__sha__256_connections_max_reauth_ms="700",
        connections_max_reauth_ms="900",
        listener_name_clients_sasl_server_max_receive_size="1000",
        connection_failed_authentication_delay_ms="5",
        moldau_login_timeout_ms="77",
    )
    check_served(given)
    check_logins(given)
    logins = read_listener(given, "CLIENTS")
    assert list(logins.mechanisms) == ["PLAIN", "SCRAM-SHA-256"]
    assert logins.mechanisms["PLAIN"].max_reauth_ms == 900
    assert logins.mechanisms["SCRAM-SHA-256"].max_reauth_ms == 700
    assert logins.mechanisms["PLAIN"].options == {"user_alice": "secret-1"}
    assert (logins.receive_bytes_max, logins.failure_delay_ms, logins.timeout_ms) == (1000, 5, 77)
    assert without_effect(given, given.values) == []
    assert not given.unknown


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sasl.enabled.mechanisms": "PLAIN,GSSAPI"}, "no logins with Kerberos"),
        ({"sasl.enabled.mechanisms": None}, "does not serve GSSAPI"),
        ({"listener.name.clients.sasl.enabled.mechanisms": "SCRAM-SHA-1"}, "does not serve SCRAM-SHA-1"),
        ({JAAS: None}, "has no users: set listener.name.clients.plain.sasl.jaas.config"),
        ({JAAS: "nonsense secret-1"}, "cannot be read"),
        ({JAAS: 'com.evil.Module required user_a="secret-1";'}, "classes cannot be loaded here"),
        ({JAAS: f'{SCRAM} user_a="secret-1";'}, "it can only be .*PlainLoginModule"),
        ({"listener.name.clients.plain.sasl.server.callback.handler.class": "org.apache.kafka.X"}, "Leave it out"),
        ({"connection.failed.authentication.delay.ms": "600000"}, "less than connections.max.idle.ms"),
        ({"sasl.jaas.config": f'{PLAIN} user_a="secret-1";', JAAS: None}, "has no users"),
        (
            {"inter.broker.listener.name": "CLIENTS", "sasl.mechanism.inter.broker.protocol": "PLAIN"},
            "no name and password for listener CLIENTS",
        ),
        ({"inter.broker.listener.name": "CLIENTS"}, "sasl.mechanism.inter.broker.protocol is GSSAPI"),
        (
            {"inter.broker.listener.name": "CLIENTS", "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512"},
            "has to be in sasl.enabled.mechanisms of listener CLIENTS",
        ),
    ],
)
def test_what_cannot_work_is_told_at_the_start(changes: dict[str, str | None], sentence: str) -> None:
    given = config(**changes)
    with pytest.raises(ConfigError, match=sentence) as caught:
        check_served(given)
        check_logins(given)
    assert "secret-1" not in caught.value.message


def test_as_whom_a_node_logs_in() -> None:
    assert inter_broker_credentials(config()) is None and controller_credentials(config()) is None
    protocols = "INTERNAL:SASL_PLAINTEXT,CLIENTS:PLAINTEXT,CONTROLLER:SASL_PLAINTEXT"
    entries = {
        "listener.name.internal.scram-sha-512.sasl.jaas.config": f'{SCRAM} username="node" password="secret-1";',
        "listener.name.controller.plain.sasl.jaas.config": f'{PLAIN} username="n" password="p" user_n="p";',
    }
    given = config(
        **{"listener.security.protocol.map": protocols, "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512"},
        **{"sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512", "sasl.mechanism.controller.protocol": "PLAIN"},
        **{"listener.name.internal.sasl.enabled.mechanisms": "SCRAM-SHA-512"},
        **entries,
    )
    check_logins(given)
    inter_broker, controller = inter_broker_credentials(given), controller_credentials(given)
    assert inter_broker is not None and controller is not None
    assert (inter_broker.mechanism, inter_broker.options["username"]) == ("SCRAM-SHA-512", "node")
    assert (controller.mechanism, controller.options["username"]) == ("PLAIN", "n")
    assert "secret-1" not in repr(inter_broker)


def test_logins_do_not_change_while_a_node_runs() -> None:
    """What would be taken and have no effect is refused; what stays the same is not."""
    current = config()
    for name in (JAAS, "listener.name.clients.sasl.enabled.mechanisms"):
        with pytest.raises(KafkaError, match="restart the broker") as caught:
            validate_broker_configs({name: f'{PLAIN} user_bob="secret-1";'}, True, current)
        assert "secret-1" not in str(caught.value)
    validate_broker_configs({JAAS: current.values[JAAS]}, True, current)
    validate_broker_configs({"listener.name.internal.sasl.enabled.mechanisms": "PLAIN"}, True, current)


BEARER_PREFIX = "listener.name.clients.oauthbearer."
UNSECURED = (
    "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
)


def bearer_config(**changes: str) -> BrokerConfig:
    return config(**{"sasl.enabled.mechanisms": "OAUTHBEARER", **changes})


def test_bearer_tokens_are_checked_unless_somebody_asks_for_the_opposite() -> None:
    """CVE-2026-33557: forged tokens must fail with default settings."""
    with pytest.raises(ConfigError, match="nobody could check tokens"):
        check_logins(bearer_config())
    url = {f"{BEARER_PREFIX}sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys"}
    given = bearer_config(**url, **{f"{BEARER_PREFIX}sasl.oauthbearer.expected.audience": "us,them"})
    check_logins(given)
    found = read_bearer(given, "CLIENTS")
    assert (found.jwks_url, found.secured.audiences) == ("https://issuer/keys", {"us", "them"})
    assert (found.secured.issuer, found.secured.skew_s, found.refresh_ms) == (None, 30, 3_600_000)
    asked = bearer_config(**{f"{BEARER_PREFIX}sasl.server.callback.handler.class": UNSECURED})
    check_logins(asked)
    assert read_bearer(asked, "CLIENTS").jwks_url is None
    other = {f"{BEARER_PREFIX}sasl.server.callback.handler.class": "org.apache.kafka.Other"}
    with pytest.raises(ConfigError, match="classes cannot be loaded"):
        check_logins(bearer_config(**url, **other))


def test_where_keys_and_tokens_may_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    given = bearer_config(**{f"{BEARER_PREFIX}sasl.oauthbearer.jwks.endpoint.url": "https://issuer/keys"})
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    with pytest.raises(ConfigError, match="not allowed: start with KAFKA_OPTS=-D"):
        check_sources(given)
    monkeypatch.setenv("KAFKA_OPTS", "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://issuer/keys")
    check_sources(given)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match="needs the library cryptography"):
        check_sources(given)
