"""Where a client's bearer tokens come from, and what it says when there is none."""

from __future__ import annotations

import http.server
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client.config import ADMIN, ClientConfig
from moldau.client.connection.bearer import read_bearer_source
from moldau.client.connection.security import read_security
from moldau.client.connection.wire import Call, Connection
from moldau.client.errors import ClientError, ConfigError
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Writer
from moldau.security.bearer_tokens import UnsecuredValidator, unsecured_token

SECRET = "secret-1"
URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
FILES = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.files="


def settings(**more: Any) -> ClientConfig:
    given = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **more}
    return ClientConfig(ADMIN, given)


class Endpoint(http.server.BaseHTTPRequestHandler):
    asked: list[tuple[str, bytes]] = []
    status = 200

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        Endpoint.asked.append((self.headers["Authorization"], body))
        self.send_response(Endpoint.status)
        self.end_headers()
        token = unsecured_token({"unsecuredLoginStringClaim_sub": "anna"}, time.time_ns() // 1_000_000)
        self.wfile.write(json.dumps({"access_token": token, "note": SECRET}).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Endpoint.asked, Endpoint.status = [], 200
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/token"
        monkeypatch.setenv("KAFKA_OPTS", URLS + address)
        yield address
        server.shutdown()


def credentials(url: str) -> dict[str, str]:
    return {
        "sasl.oauthbearer.token.endpoint.url": url,
        "sasl.oauthbearer.client.credentials.client.id": "me",
        "sasl.oauthbearer.client.credentials.client.secret": SECRET,
        "sasl.oauthbearer.scope": "a b",
    }


def test_a_token_endpoint_is_asked_once_while_its_token_is_good(url: str) -> None:
    source = read_bearer_source(settings(**credentials(url)))
    token = source.token()
    assert UnsecuredValidator({}).validate(token, time.time_ns() // 1_000_000).principal_name == "anna"
    assert source.token() == token and len(Endpoint.asked) == 1
    assert Endpoint.asked[0] == ("Basic bWU6c2VjcmV0LTE=", b"grant_type=client_credentials&scope=a+b")


def test_an_endpoint_that_refuses(url: str) -> None:
    Endpoint.status = 401
    with pytest.raises(ClientError, match="responds with status 401") as caught:
        read_bearer_source(settings(**credentials(url))).token()
    assert SECRET not in str(caught.value) and not caught.value.retriable


def test_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "token"
    path.write_text("opaque.token\n")
    given = {"sasl.oauthbearer.token.endpoint.url": f"file:{path}"}
    with pytest.raises(ConfigError, match="names a file that is not allowed"):
        read_bearer_source(settings(**given))
    monkeypatch.setenv("KAFKA_OPTS", f"{FILES}{path}")
    source = read_bearer_source(settings(**given))
    assert source.token() == "opaque.token"
    path.write_text("another")
    assert source.token() == "another", "who does not say when it ends is read each time"
    path.unlink()
    with pytest.raises(ClientError, match="cannot be read"):
        source.token()


def test_a_function_of_the_program() -> None:
    made = []

    def provide() -> str:
        made.append(unsecured_token({"unsecuredLoginLifetimeSeconds": "100"}, time.time_ns() // 1_000_000))
        return made[-1]

    source = read_bearer_source(settings(**{"sasl.oauthbearer.token.provider": provide}))
    assert source.token() == source.token() == made[0]
    jaas = 'x.M required extension_logicalCluster="l";'
    more = {"sasl.oauthbearer.token.provider": provide, "sasl.jaas.config": jaas}
    assert read_bearer_source(settings(**more)).extensions == {"logicalCluster": "l"}
    for wrong in (lambda: None, lambda: ""):
        with pytest.raises(ClientError, match="has to return the token as text"):
            read_bearer_source(settings(**{"sasl.oauthbearer.token.provider": wrong})).token()
    with pytest.raises(ConfigError, match="has to be a function"):
        settings(**{"sasl.oauthbearer.token.provider": "text"})


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_OPTS", raising=False)
    with pytest.raises(ConfigError, match="needs tokens"):
        read_security(settings())
    with pytest.raises(ConfigError, match="names a URL that is not allowed"):
        read_security(settings(**credentials("https://issuer/token")))
    monkeypatch.setenv("KAFKA_OPTS", f"{URLS}https://issuer/token")
    with pytest.raises(ConfigError, match=r"credentials\.client\.id"):
        read_security(settings(**{"sasl.oauthbearer.token.endpoint.url": "https://issuer/token"}))
    jaas = 'x.M required unsecuredLoginStringClaim_sub="anna";'
    login = read_security(settings(**{"sasl.jaas.config": jaas})).new_login()
    assert login is not None and login.first().startswith(b"n,,\x01auth=Bearer ey")


def test_a_connection_without_a_token_fails_with_the_reason() -> None:
    def provide() -> str:
        raise OSError(SECRET)

    security = read_security(settings(**{"sasl.oauthbearer.token.provider": provide}))
    connection = Connection("broker:1", "me", security.new_login)
    call: Call[MetadataResponse] = Call(MetadataRequest(), MetadataResponse, 1000)
    connection.submit(call, 0)
    connection.start(0, 1000)
    connection.take_outgoing()
    writer = Writer()
    writer.int32(0)
    writer.int32(0)
    ApiVersionsResponse(api_keys=[ApiVersion(3, 0, 12), ApiVersion(17, 0, 1), ApiVersion(36, 0, 2)]).encode(writer, 4)
    writer.set_int32(0, writer.size - 4)
    connection.receive(writer.to_bytes())
    assert connection.closed and call.done
    with pytest.raises(ClientError, match="the token provider raised OSError") as caught:
        call.response()
    assert SECRET not in str(caught.value)
