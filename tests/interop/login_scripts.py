"""What a peer says to frames before a login, as short scripts that run against any broker with secured listeners."""

from __future__ import annotations

import base64
import hashlib
import hmac
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.create_delegation_token_request import CreateDelegationTokenRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from tests.interop.nodes import HOST
from tests.interop.secured import PLAIN_USER, SCRAM_USER
from tests.interop.wire import CLOSED, Wire

NONCE = "fyko+d2lbbFgONRv9qkxdawL"
HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
Ports = dict[str, int]


class Talk(Wire):
    """A connection whose answers are put down in a form that can be compared."""

    def say(self, request: Any, version: int) -> Any:
        try:
            return self.shown(self.ask(request, version))
        except ConnectionError:
            return CLOSED

    def shown(self, answer: Any) -> Any:
        if answer is CLOSED:
            return CLOSED
        if hasattr(answer, "mechanisms"):
            return answer.error_code, sorted(answer.mechanisms)
        if hasattr(answer, "auth_bytes"):
            return answer.error_code, answer.error_message, answer.session_lifetime_ms > 0
        return getattr(answer, "error_code", 0)

    def raw(self, frame: bytes) -> Any:
        try:
            self.send_frame(frame)
            answer = self.receive_frame()
        except ConnectionError:
            return CLOSED
        return CLOSED if answer is None else answer

    def is_closed(self) -> bool:
        """Whether the other side has closed, within a moment."""
        try:
            return self.receive_frame() is None
        except TimeoutError:
            return False

    def plain(self, token: bytes, version: int = 2) -> Any:
        return self.say(SaslAuthenticateRequest(token), version)

    def log_in(self) -> Any:
        self.say(SaslHandshakeRequest("PLAIN"), 1)
        return self.plain(plain_token())

    def scram(self, mechanism: str, change: Callable[[str], str] = str, **options: Any) -> list[Any]:
        """A whole exchange; `change` may spoil the final message."""
        user = options.get("user", SCRAM_USER)
        name = options.get("name", user.name)
        header = options.get("header", "n,,")
        bare = f"n={name},r={NONCE}{options.get('extension', '')}"
        seen = [self.say(SaslHandshakeRequest(mechanism), 1)]
        answer = self.ask(SaslAuthenticateRequest((header + bare).encode()), 2)
        seen.append(self.shown(answer))
        if answer is CLOSED or answer.error_code:
            return seen
        final = change(final_message(mechanism, user.password, bare, answer.auth_bytes.decode(), header))
        answer = self.ask(SaslAuthenticateRequest(final.encode()), 2)
        return [*seen, self.shown(answer)]


def plain_token(user: str = PLAIN_USER.name, password: str = PLAIN_USER.password, authzid: str = "") -> bytes:
    return f"{authzid}\0{user}\0{password}".encode()


def final_message(mechanism: str, password: str, first_bare: str, server_first: str, header: str = "n,,") -> str:
    digest = HASHES[mechanism]
    fields = dict(item.split("=", 1) for item in server_first.split(","))
    salted = hashlib.pbkdf2_hmac(digest, password.encode(), base64.b64decode(fields["s"]), int(fields["i"]))
    client_key = hmac.digest(salted, b"Client Key", digest)
    without_proof = f"c={base64.b64encode(header.encode()).decode()},r={fields['r']}"
    message = f"{first_bare},{server_first},{without_proof}".encode()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), message, digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{without_proof},p={base64.b64encode(proof).decode()}"


def versions(talk: Talk, version: int = 3, name: str = "wire") -> Any:
    if version > 4:
        answer = talk.raw(struct.pack(">hhihb", 18, version, 1, -1, 0))
        return CLOSED if answer is CLOSED else answer[4:6]
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1") if version >= 3 else None
    return talk.say(request or ApiVersionsRequest(), version)


# Each is a name and what it does on a connection to SASL_PLAINTEXT; the result is compared.
Script = Callable[[Talk], Any]


def _repeat(count: int, script: Script) -> Script:
    return lambda talk: [script(talk) for _ in range(count)]


def _after_login(*requests: tuple[Any, int]) -> Script:
    return lambda talk: [talk.log_in(), *(talk.say(request, version) for request, version in requests)]


def _after_handshake(*frames: Any, mechanism: str = "PLAIN", version: int = 1) -> Script:
    def script(talk: Talk) -> Any:
        seen = [talk.say(SaslHandshakeRequest(mechanism), version)]
        for frame in frames:
            seen.append(talk.raw(frame) if isinstance(frame, bytes) else talk.say(*frame))
        return seen

    return script


def _v0(token: bytes) -> Script:
    """Handshake version 0, then bare tokens; what follows is an ordinary request."""

    def script(talk: Talk) -> Any:
        seen: list[Any] = [talk.say(SaslHandshakeRequest("PLAIN"), 0)]
        answer = talk.raw(token)
        seen.append(answer)
        if answer == b"":
            seen.append(talk.say(MetadataRequest(topics=[]), 5))
        return seen

    return script


def _plain(token: bytes, version: int = 2) -> Script:
    return _after_handshake((SaslAuthenticateRequest(token), version))


def _oversized(size: int) -> Script:
    def script(talk: Talk) -> Any:
        talk.socket.sendall(struct.pack(">i", size) + b"\0" * 64)
        return talk.is_closed()

    return script


SCRIPTS: dict[str, Script] = {
    "versions then handshake": lambda t: [versions(t), t.say(SaslHandshakeRequest("PLAIN"), 1)],
    "versions twice": _repeat(2, versions),
    "versions of an unknown version, again and again": lambda t: [
        versions(t, 9),
        versions(t, 8),
        versions(t),
        t.log_in(),
    ],
    "versions with a bad name": lambda t: [versions(t, 3, "-bad"), versions(t, 3, "good"), t.log_in()],
    "versions of every version": lambda t: [versions(t, 0), t.log_in()],
    "metadata first": lambda t: t.say(MetadataRequest(topics=[]), 5),
    "authenticate first": lambda t: t.say(SaslAuthenticateRequest(plain_token()), 2),
    "unknown key": lambda t: t.raw(struct.pack(">hhih", 999, 0, 1, -1)),
    "a handshake of an unknown version": lambda t: t.raw(struct.pack(">hhihh", 17, 7, 1, -1, 0)),
    "rubbish": lambda t: t.raw(b"GET / HTTP/1.1\r\n\r\n"),
    "empty frame": lambda t: t.raw(b""),
    "short frame": lambda t: t.raw(b"\0\x11"),
    "too large": _oversized(524289),
    "negative size": _oversized(-1),
    "http": _oversized(0x47455420),
    "tls hello": _oversized(0x16030100),
    "unknown mechanism": lambda t: [t.say(SaslHandshakeRequest("SCRAM-SHA-1"), 1), t.is_closed()],
    "mechanism in small letters": lambda t: [t.say(SaslHandshakeRequest("plain"), 1), t.is_closed()],
    "mechanism not enabled, version 0": lambda t: [t.say(SaslHandshakeRequest("GSSAPI"), 0), t.is_closed()],
    "handshake twice": lambda t: [t.say(SaslHandshakeRequest("PLAIN"), 1), t.say(SaslHandshakeRequest("PLAIN"), 1)],
    "metadata instead of a token": _after_handshake((MetadataRequest(topics=[]), 9)),
    "produce instead of a token": _after_handshake((ProduceRequest(acks=1, timeout_ms=1000), 9)),
    "versions instead of a token": _after_handshake((ApiVersionsRequest(), 0)),
    "token instead of a request": _after_handshake(plain_token()),
    "plain": lambda t: [t.log_in(), t.say(MetadataRequest(topics=[]), 9)],
    "plain, version 0": _plain(plain_token(), 0),
    "plain, version 1": _plain(plain_token(), 1),
    "plain, wrong password": _plain(plain_token(password="wrong")),
    "plain, unknown user": _plain(plain_token("nobody")),
    "plain, no user": _plain(plain_token("")),
    "plain, no password": _plain(plain_token(password="")),
    "plain, own authzid": _plain(plain_token(authzid=PLAIN_USER.name)),
    "plain, other authzid": _plain(plain_token(authzid="admin")),
    "plain, other authzid and wrong password": _plain(plain_token(password="x", authzid="admin")),
    "plain, four parts": _plain(plain_token() + b"\0"),
    "plain, six parts": _plain(plain_token() + b"\0\0\0"),
    "plain, two parts": _plain(b"alice\0alice-secret"),
    "plain, one part": _plain(b"alice"),
    "plain, nothing": _plain(b""),
    "plain, not utf-8": _plain(b"\0\xff\xfe\0\xff"),
    "plain, version 0 of the handshake": _v0(plain_token()),
    "plain, version 0 of the handshake, wrong": _v0(plain_token(password="wrong")),
    "plain, version 0 of the handshake, empty": _v0(b""),
    "after the login: handshake": _after_login((SaslHandshakeRequest("PLAIN"), 1), (MetadataRequest(topics=[]), 9)),
    "after the login: authenticate": _after_login((SaslAuthenticateRequest(plain_token()), 2)),
    "after the login: versions": _after_login((ApiVersionsRequest(), 0), (ApiVersionsRequest(), 0)),
    "after the login: no tokens": _after_login((CreateDelegationTokenRequest(), 2)),
}
for _mechanism in HASHES:
    SCRIPTS |= {
        f"{_mechanism}": lambda t, m=_mechanism: t.scram(m),  # type: ignore[misc]
        f"{_mechanism}, wrong proof": lambda t, m=_mechanism: t.scram(m, user=SCRAM_USER._replace(password="x")),  # type: ignore[misc]
        f"{_mechanism}, own authzid": lambda t, m=_mechanism: t.scram(m, header=f"n,a={SCRAM_USER.name},"),  # type: ignore[misc]
        f"{_mechanism}, other authzid": lambda t, m=_mechanism: t.scram(m, header="n,a=admin,"),  # type: ignore[misc]
        f"{_mechanism}, channel binding": lambda t, m=_mechanism: t.scram(m, header="p=tls-unique,,"),  # type: ignore[misc]
        f"{_mechanism}, could bind": lambda t, m=_mechanism: t.scram(m, header="y,,"),  # type: ignore[misc]
        f"{_mechanism}, unknown extension": lambda t, m=_mechanism: t.scram(m, extension=",x=y"),  # type: ignore[misc]
        f"{_mechanism}, token that is none": lambda t, m=_mechanism: t.scram(m, extension=",tokenauth=false"),  # type: ignore[misc]
        f"{_mechanism}, other nonce": lambda t, m=_mechanism: t.scram(
            m, lambda text: text.replace(",r=fyko", ",r=fykO")
        ),  # type: ignore[misc]
        f"{_mechanism}, shorter nonce": lambda t, m=_mechanism: t.scram(
            m, lambda text: text.replace(f",r={NONCE}", ",r=")
        ),  # type: ignore[misc]
        f"{_mechanism}, other channel data": lambda t, m=_mechanism: t.scram(
            m, lambda text: text.replace("c=biws", "c=eSws")
        ),  # type: ignore[misc]
        f"{_mechanism}, extra in final": lambda t, m=_mechanism: t.scram(
            m, lambda text: text.replace(",p=", ",x=1,p=")
        ),  # type: ignore[misc]
        f"{_mechanism}, no proof": lambda t, m=_mechanism: t.scram(m, lambda text: text.partition(",p=")[0]),  # type: ignore[misc]
        f"{_mechanism}, short proof": lambda t, m=_mechanism: t.scram(
            m, lambda text: text.partition(",p=")[0] + ",p=AAAA"
        ),  # type: ignore[misc]
        f"{_mechanism}, bad name": lambda t, m=_mechanism: t.scram(m, name="a=b"),  # type: ignore[misc]
        f"{_mechanism}, no nonce": _after_handshake((SaslAuthenticateRequest(b"n,,n=scram"), 2), mechanism=_mechanism),
        f"{_mechanism}, nothing": _after_handshake((SaslAuthenticateRequest(b""), 2), mechanism=_mechanism),
        f"{_mechanism}, rubbish": _after_handshake((SaslAuthenticateRequest(b"\xff\0\1"), 2), mechanism=_mechanism),
    }


def run(name: str, port: int) -> Any:
    with Talk(HOST, port) as talk:
        return SCRIPTS[name](talk)


# On REAUTH, whose sessions last for a limited time.


def _again(mechanism: str, token: bytes) -> Script:
    def script(talk: Talk) -> Any:
        seen = [talk.log_in()]
        seen.append(talk.say(SaslHandshakeRequest(mechanism), 1))
        seen.append(talk.plain(token))
        seen.append(talk.say(MetadataRequest(topics=[]), 9))
        return seen

    return script


def _too_soon(talk: Talk) -> Any:
    first = _again("PLAIN", plain_token())(talk)
    return [*first, talk.say(SaslHandshakeRequest("PLAIN"), 1), talk.say(MetadataRequest(topics=[]), 9)]


def _expired(talk: Talk) -> Any:
    seen = [talk.log_in()]
    time.sleep(3.3)
    return [*seen, talk.say(MetadataRequest(topics=[]), 9)]


def _late(talk: Talk) -> Any:
    seen = [talk.log_in()]
    time.sleep(3.3)
    return [*seen, talk.log_in(), talk.say(MetadataRequest(topics=[]), 9)]


def _request_between(talk: Talk) -> Any:
    seen = [talk.log_in(), talk.say(SaslHandshakeRequest("PLAIN"), 1)]
    return [*seen, talk.say(MetadataRequest(topics=[]), 9)]


def _scram_again(talk: Talk) -> Any:
    seen = talk.scram("SCRAM-SHA-256")
    return [*seen, *talk.scram("SCRAM-SHA-256"), talk.say(MetadataRequest(topics=[]), 9)]


def _scram_again_wrong(talk: Talk) -> Any:
    seen = talk.scram("SCRAM-SHA-256")
    return [*seen, *talk.scram("SCRAM-SHA-256", user=SCRAM_USER._replace(password="x"))]


REAUTH_SCRIPTS: dict[str, Script] = {
    "again": _again("PLAIN", plain_token()),
    "again, wrong password": _again("PLAIN", plain_token(password="wrong")),
    "again, other user": _again("PLAIN", plain_token("bob", "bob-secret")),
    "again, other mechanism": _again("SCRAM-SHA-256", f"n,,n={SCRAM_USER.name},r={NONCE}".encode()),
    "again, mechanism not there": _again("GSSAPI", b""),
    "again too soon": _too_soon,
    "expired": _expired,
    "expired, then again": _late,
    "a request between": _request_between,
    "authenticate without handshake": _after_login((SaslAuthenticateRequest(plain_token()), 2)),
    "scram again": _scram_again,
    "scram again, wrong": _scram_again_wrong,
    "version 0 of authenticate": lambda t: [t.say(SaslHandshakeRequest("PLAIN"), 1), t.plain(plain_token(), 0)],
}


def run_again(name: str, port: int) -> Any:
    with Talk(HOST, port) as talk:
        return REAUTH_SCRIPTS[name](talk)


def delay_of_failure(port: int) -> tuple[float, Any]:
    """How long a refusal takes, and what comes behind it."""
    with Talk(HOST, port) as talk:
        talk.say(SaslHandshakeRequest("PLAIN"), 1)
        begin = time.monotonic()
        answer = talk.plain(plain_token(password="wrong"))
        return time.monotonic() - begin, [answer, talk.is_closed()]


def connect(port: int) -> socket.socket:
    return socket.create_connection((HOST, port), 10)
