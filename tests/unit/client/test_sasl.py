"""Logins as the RFCs show them, brokers that are not who they should be, and lines of JAAS."""

from __future__ import annotations

import pytest

from moldau.client.connection.jaas import jaas_options
from moldau.client.connection.sasl import Login, PlainLogin, ScramLogin, login_maker
from moldau.client.connection.wire import Call, Connection
from moldau.client.errors import ClientError, ConfigError
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from moldau.protocol.primitives import Message, Writer

# RFC 7677, section 3
NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def scram() -> ScramLogin:
    return ScramLogin("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_scram_says_what_the_rfc_says() -> None:
    login = scram()
    assert login.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert login.next(SERVER_FIRST) == CLIENT_FINAL
    assert login.next(SERVER_FINAL) is None


def test_names_are_escaped_and_passwords_are_not() -> None:
    assert ScramLogin("SCRAM-SHA-512", "a,b=c", "x", "n").first() == b"n,,n=a=2Cb=3Dc,r=n"
    assert PlainLogin("alice", "a,b=c").first() == b"\0alice\0a,b=c"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (SERVER_FIRST.replace(b"rOpr", b"rOpx"), "nonce does not begin with ours"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce does not begin with ours"),
        (SERVER_FIRST.replace(b"i=4096", b"i=1"), "1 iterations"),
        (SERVER_FIRST.replace(b"i=4096", b"i=1000000000"), "1000000000 iterations"),
        (b"e=unknown-user", "unknown-user"),
        (b"nonsense", "not a SCRAM message"),
        (b"\xff\xfe", "not a SCRAM message"),
        (SERVER_FIRST.replace(b"s=W22Z", b"s=!!!!"), "not a SCRAM message"),
    ],
)
def test_a_broker_that_does_not_keep_to_scram_is_refused(answer: bytes, reason: str) -> None:
    login = scram()
    login.first()
    with pytest.raises(ClientError, match=reason) as caught:
        login.next(answer)
    assert caught.value.name == "SASL_AUTHENTICATION_FAILED" and not caught.value.retriable


def test_a_broker_that_does_not_know_the_password_is_refused() -> None:
    login = scram()
    login.first()
    login.next(SERVER_FIRST)
    with pytest.raises(ClientError, match="does not know the password"):
        login.next(b"v=" + b"A" * 43 + b"=")


def test_jaas_lines() -> None:
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    expected = {"username": "alice", "password": 'se"c;ret'}
    assert jaas_options(f'{module} required username="alice" password="se\\"c;ret";') == expected
    assert jaas_options(f"{module}  required\n  username='alice'\n  password=secret ;\n") == {
        "username": "alice",
        "password": "secret",
    }
    assert jaas_options(f"{module} required;") == {}
    for wrong in ("", "alice", f'{module} required username="alice"', f'{module} required username="alice;'):
        with pytest.raises(ConfigError, match="with the semicolon"):
            jaas_options(wrong)


def test_what_is_missing_for_a_login_is_said() -> None:
    with pytest.raises(ConfigError, match=r"cannot log in with sasl\.mechanism=GSSAPI"):
        login_maker("GSSAPI", None, None, None)
    with pytest.raises(ConfigError, match="needs a name and a password"):
        login_maker("PLAIN", "alice", None, None)
    made = login_maker("SCRAM-SHA-512", None, None, 'M required username="u" password="p";')
    assert made().mechanism == "SCRAM-SHA-512" and made() is not made(), "each connection has a dialogue of its own"


# A connection that logs in


class Broker:
    """Answers what the connection asks, in the versions that it chooses."""

    def __init__(self, login: Login) -> None:
        self.connection = Connection("broker:9092", "me", lambda: login)
        self.connection.start(0, 30_000)
        rows = [ApiVersion(api_key=key, min_version=0, max_version=high) for key, high in ((3, 12), (17, 1), (36, 2))]
        self.asked()
        self.answer(ApiVersionsResponse(api_keys=rows), 4, 0)

    def asked(self) -> list[tuple[int, int]]:
        """Key and correlation id of the requests since the last time."""
        data = self.connection.take_outgoing()
        found = []
        while data:
            size = int.from_bytes(data[:4], "big")
            found.append((int.from_bytes(data[4:6], "big"), int.from_bytes(data[8:12], "big")))
            data = data[4 + size :]
        return found

    def answer(self, answer: Message, version: int, correlation_id: int, flexible: bool = False) -> None:
        writer = Writer()
        writer.int32(correlation_id)
        if flexible:
            writer.int8(0)
        answer.encode(writer, version)
        body = b"".join(part for part in writer.finish() if isinstance(part, bytes))
        self.connection.receive(len(body).to_bytes(4, "big") + body)

    def handshake(self, correlation_id: int) -> None:
        self.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1, correlation_id)

    def authenticated(self, correlation_id: int, lifetime_ms: int = 0) -> None:
        self.answer(SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms), 2, correlation_id, flexible=True)


def metadata() -> Call[MetadataResponse]:
    return Call(MetadataRequest(topics=[]), MetadataResponse, 5_000)


def test_calls_wait_for_the_login() -> None:
    broker = Broker(PlainLogin("alice", "secret"))
    call = metadata()
    broker.connection.submit(call, 1)
    assert broker.asked() == [(17, 1)] and not broker.connection.negotiated
    broker.handshake(1)
    assert broker.asked() == [(36, 2)]
    broker.authenticated(2)
    assert broker.connection.negotiated and broker.asked() == [(3, 3)]


def test_a_refused_login_ends_the_connection_and_its_calls() -> None:
    broker = Broker(PlainLogin("alice", "wrong"))
    call = metadata()
    broker.connection.submit(call, 1)
    broker.handshake(1)
    refused = SaslAuthenticateResponse(
        error_code=58, error_message="Authentication failed: Invalid username or password"
    )
    broker.answer(refused, 2, 2, flexible=True)
    assert broker.connection.closed and call.error is not None
    assert "Invalid username or password" in call.error.message and not call.error.retriable
    assert broker.connection.refusal is call.error


def test_a_mechanism_that_the_broker_does_not_have() -> None:
    broker = Broker(PlainLogin("alice", "secret"))
    call = metadata()
    broker.connection.submit(call, 1)
    broker.answer(SaslHandshakeResponse(error_code=33, mechanisms=["SCRAM-SHA-512"]), 1, 1)
    assert call.error is not None and "does not take PLAIN: it offers SCRAM-SHA-512" in call.error.message


def test_a_session_is_renewed_behind_what_is_on_its_way() -> None:
    broker = Broker(PlainLogin("alice", "secret"))
    broker.handshake(1)
    broker.authenticated(2, lifetime_ms=1_000)
    early, late, last = metadata(), metadata(), metadata()
    broker.asked()
    broker.connection.submit(early, 800)
    assert broker.asked() == [(3, 3)]
    broker.connection.submit(late, 860)
    assert broker.asked() == [(17, 4)], "the session is nearly over: who we are is said again first"
    broker.answer(MetadataResponse(), 12, 3, flexible=True)
    assert early.done and early.error is None, "an answer of before is understood meanwhile"
    broker.handshake(4)
    broker.connection.submit(last, 870)
    assert broker.asked() == [(36, 5)]
    broker.authenticated(5, lifetime_ms=1_000)
    assert broker.asked() == [(3, 6), (3, 7)]
    broker.connection.submit(metadata(), 1_500)
    assert broker.asked() == [(3, 8)], "the new session counts from the login"
