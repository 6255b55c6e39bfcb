"""Keys of an issuer, fetched over HTTP: a new one counts, a withdrawn one does not, an outage harms nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Producer
from moldau.client.errors import ClientError
from tests.interop.conftest import AGAINST_KAFKA, running
from tests.interop.nodes import HOST, MoldauNode, free_ports
from tests.interop.sasl_moldau import AUDIENCE, ISSUER, KEY_ID, Issuer
from tests.interop.token_server import CLIENT_ID, CLIENT_SECRET, TokenServer
from tests.pace import patience_ms, wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(AGAINST_KAFKA, reason="looks at Moldau's own log"),
]

REFRESH_MS = 300
KEYS = "listener.name.tokens.oauthbearer.sasl.oauthbearer"


class Bearers(MoldauNode):
    """One listener for bearer tokens of one issuer, whose URL alone is allowed."""

    def __init__(self, folder: Path, server: TokenServer, allowed: str | None = None) -> None:
        self.server = server
        self.allowed = server.keys_url if allowed is None else allowed
        super().__init__(folder)

    def write_properties(self, overrides: dict[str, str]) -> None:
        own = f"TOKENS://{HOST}:{self.port},INNER://{HOST}:{free_ports(1)[0]}"
        settings = {
            "listeners": f"{own},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": own,
            "inter.broker.listener.name": "INNER",
            "listener.security.protocol.map": "TOKENS:SASL_PLAINTEXT,INNER:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{KEYS}.jwks.endpoint.url": self.server.keys_url,
            f"{KEYS}.jwks.endpoint.refresh.ms": str(REFRESH_MS),
            f"{KEYS}.expected.issuer": ISSUER,
            f"{KEYS}.expected.audience": AUDIENCE,
        }
        super().write_properties(settings | overrides)

    def environment(self) -> dict[str, str]:
        allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={self.allowed}"
        return {**super().environment(), "KAFKA_OPTS": allowed}


@pytest.fixture
def server() -> Iterator[TokenServer]:
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    made = TokenServer()
    made.start()
    yield made
    made.stop()


@pytest.fixture
def node(server: TokenServer, tmp_path: Path) -> Iterator[Bearers]:
    made = Bearers(tmp_path / "node", server)
    yield from running(made)
    assert "Traceback" not in made.output() and CLIENT_SECRET not in made.output()


def by_token(token: Any) -> dict[str, Any]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.provider": token if callable(token) else lambda: token,
    }


def gets_in(node: Bearers, token: str) -> bool:
    with Admin(node.bootstrap, config={**by_token(token), "default.api.timeout.ms": patience_ms(10_000)}) as admin:
        try:
            admin.list_topics()
        except ClientError as error:
            assert "invalid_token" in str(error), error
            return False
    return True


def test_keys_are_rotated_while_a_client_works(node: Bearers, server: TokenServer, topic: str) -> None:
    """A key that is new is found when it is needed; one that the issuer has withdrawn opens nothing any more."""
    wait_until(lambda: gets_in(node, server.token()), 20, node.output)
    old, before = server.token(), server.issuer
    with Producer(node.bootstrap, config=by_token(server.token)) as producer:
        producer.send(topic, b"before").result(patience_ms(20_000))
        server.issuer = Issuer()
        wait_until(lambda: gets_in(node, server.token()), 20, node.output)
        producer.send(topic, b"after").result(patience_ms(20_000))
    assert not gets_in(node, old), "the key that signed it has been withdrawn"
    assert not gets_in(node, before.token(header={"kid": KEY_ID}))


def test_an_issuer_that_is_down_harms_nobody_whose_key_is_known(node: Bearers, server: TokenServer) -> None:
    wait_until(lambda: gets_in(node, server.token()), 20, node.output)
    server.stop()
    sentence = "the keys for OAUTHBEARER are not refreshed: "
    wait_until(lambda: sentence in node.output(), 20, node.output)
    assert gets_in(node, server.token()), "the keys that were fetched still count"
    stranger = Issuer()
    assert not gets_in(node, stranger.token())
    server.issuer = stranger
    server.start()
    wait_until(lambda: gets_in(node, server.token()), 40, node.output)


def test_real_clients_with_an_id_and_a_secret(
    node: Bearers, server: TokenServer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ask the issuer's token endpoint themselves: ours, and librdkafka with OIDC."""
    wait_until(lambda: gets_in(node, server.token()), 20, node.output)
    monkeypatch.setenv("KAFKA_OPTS", f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={server.token_url}")
    ours = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": server.token_url,
        "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
    }
    with Producer(node.bootstrap, config=ours) as producer:
        assert producer.send(topic, b"x").result(patience_ms(20_000)).offset == 0
    wrong = {**ours, "sasl.oauthbearer.client.credentials.client.secret": "guessed"}
    with Admin(node.bootstrap, config=wrong) as admin, pytest.raises(ClientError, match="status 401") as caught:
        admin.list_topics(timeout_ms=patience_ms(20_000))
    assert "guessed" not in str(caught.value)
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    theirs = {
        "bootstrap.servers": node.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": CLIENT_ID,
        "sasl.oauthbearer.client.secret": CLIENT_SECRET,
        "sasl.oauthbearer.token.endpoint.url": server.token_url,
    }
    delivered: list[Any] = []
    producer = confluent_kafka.Producer(theirs)
    producer.produce(topic, b"y", callback=lambda error, message: delivered.append((error, message.offset())))
    producer.flush(patience_ms(20_000) / 1000)
    assert delivered == [(None, 1)]


def test_a_url_that_was_not_allowed_keeps_the_node_from_starting(server: TokenServer, tmp_path: Path) -> None:
    made = Bearers(tmp_path / "node", server, allowed="http://127.0.0.1:1/other")
    made.format()
    made.start_process()
    assert made.process is not None
    try:
        assert made.process.wait(patience_ms(20_000) / 1000) != 0
    finally:
        made.kill()
    assert server.keys_url in made.output() and "allowed" in made.output()
    assert server.asked == 0
