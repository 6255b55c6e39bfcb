"""confluent-kafka (librdkafka) against the secured Apache Kafka: each of its listeners lets in whom it should."""

from __future__ import annotations

import time
from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.interop.nodes import HOST
from tests.interop.secured import ESCAPED_USER, PLAIN_USER, REAUTH_MS, SCRAM_USER, SecuredKafka, User
from tests.interop.wire import Wire
from tests.pace import patience

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")

SECONDS = patience(20)
LOGINS = [
    ("PLAIN", PLAIN_USER),
    ("SCRAM-SHA-256", SCRAM_USER),
    ("SCRAM-SHA-512", SCRAM_USER),
    ("SCRAM-SHA-256", ESCAPED_USER),
    ("SCRAM-SHA-512", ESCAPED_USER),
]


def settings(secured: SecuredKafka, listener: str, mechanism: str = "PLAIN", user: User = PLAIN_USER) -> dict[str, Any]:
    """What a client needs for one listener."""
    protocol = {"MTLS": "SSL", "REAUTH": "SASL_PLAINTEXT"}.get(listener, listener)
    chosen = {"bootstrap.servers": secured.bootstrap_of(listener), "security.protocol": protocol}
    if "SSL" in protocol:
        chosen["ssl.ca.location"] = str(secured.certificates.ca)
    if "SASL" in protocol:
        chosen |= {"sasl.mechanism": mechanism, "sasl.username": user.name, "sasl.password": user.password}
    return chosen


def client_key(secured: SecuredKafka) -> dict[str, str]:
    made = secured.certificates
    return {
        "ssl.certificate.location": str(made.client_certificate),
        "ssl.key.location": str(made.client_key_encrypted),
        "ssl.key.password": made.password,
    }


def brokers(chosen: dict[str, Any]) -> list[str]:
    """Where the brokers are, as the listener tells a client that it lets in."""
    found = admin_module.AdminClient(chosen).list_topics(timeout=SECONDS).brokers.values()
    return [f"{broker.host}:{broker.port}" for broker in found]


def check_refused(chosen: dict[str, Any], because: str) -> None:
    """Waits for the error that says so; a client goes on trying."""
    met: list[str] = []
    client = admin_module.AdminClient({**chosen, "error_cb": lambda error: met.append(error.str()), "log_level": 0})
    deadline = time.monotonic() + SECONDS
    while not any(because in error for error in met):
        assert time.monotonic() < deadline, f"{chosen} is not refused: {met[:5]}"
        client.poll(0.05)


def test_each_listener_lets_in_whom_it_should(secured: SecuredKafka) -> None:
    """Certificates, passwords and names are taken as they are; a wrong password, no certificate, another CA are not."""
    taken = [
        settings(secured, "SSL"),
        settings(secured, "MTLS") | client_key(secured),
        settings(secured, "REAUTH"),
        *(settings(secured, listener, *login) for listener in ("SASL_PLAINTEXT", "SASL_SSL") for login in LOGINS),
    ]
    for chosen in taken:
        assert brokers(chosen) == [chosen["bootstrap.servers"]], chosen

    for listener in ("SASL_PLAINTEXT", "SASL_SSL"):
        for mechanism, user in LOGINS:
            wrong = User(user.name, "wrong")
            check_refused(settings(secured, listener, mechanism, wrong), "Authentication failed")
    check_refused(settings(secured, "MTLS"), "bad certificate")
    unknown = {"ssl.ca.location": str(secured.certificates.other_ca)}
    check_refused(settings(secured, "SSL") | unknown, "certificate verify failed")


@pytest.mark.parametrize(("listener", "lifetime_ms"), [("REAUTH", REAUTH_MS), ("SASL_PLAINTEXT", 0)])
def test_only_one_listener_asks_to_authenticate_again(secured: SecuredKafka, listener: str, lifetime_ms: int) -> None:
    """The session's lifetime is in the answer; zero is for ever."""
    with Wire(HOST, secured.ports[listener]) as wire:
        wire.ask(SaslHandshakeRequest("PLAIN"), 1)
        answer = wire.ask(SaslAuthenticateRequest(f"\0{PLAIN_USER.name}\0{PLAIN_USER.password}".encode()), 2)
    assert (answer.error_code, answer.session_lifetime_ms) == (errors.NONE, lifetime_ms)
