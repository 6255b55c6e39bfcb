"""What a listener offers that has nothing but a key store: nothing old, nothing weak, nothing that is not asked for.

The questions are those that scanners ask (versions, suites, renegotiation, compression, tickets, early data), put with
`openssl` and Python's `ssl` so that they are asked in every run.
"""

from __future__ import annotations

import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.interop.conftest import AGAINST_KAFKA, running
from tests.interop.nodes import HOST, MoldauNode
from tests.pace import patience

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(AGAINST_KAFKA, reason="is about Moldau's own defaults"),
]
SECONDS = patience(20)
TLS_1_2 = re.compile(r"ECDHE-(ECDSA|RSA)-(AES(128|256)-GCM-SHA(256|384)|CHACHA20-POLY1305|AES(128|256)-CCM8?)")
HELLOS = {"TLS 1.1": 0x0302, "TLS 1.0": 0x0301, "SSL 3": 0x0300}


class Defaults(MoldauNode):
    """No setting about TLS but the store; with a key of each kind, one after the other."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.authority = Authority(folder / "authority")
        self.own = self.authority.sign("server", kind=kind)
        super().__init__(folder)

    def write_properties(self, overrides: dict[str, str]) -> None:
        settings = {
            "listeners": f"SSL://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"SSL://{HOST}:{self.port}",
            "inter.broker.listener.name": "SSL",
            "listener.security.protocol.map": "SSL:SSL,CONTROLLER:PLAINTEXT",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.own.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.certificate),
        }
        super().write_properties(settings | overrides)


@pytest.fixture(scope="module", params=["ec", "rsa:2048"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Defaults]:
    yield from running(Defaults(tmp_path_factory.mktemp("defaults"), request.param))


def context(node: Defaults) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(node.authority.certificate))


def suite_with(node: Defaults, name: str) -> str | None:
    """The suite that is agreed on when a client of TLS 1.2 offers that one alone; None when there is no agreement."""
    given = context(node)
    given.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        given.set_ciphers(f"{name}:@SECLEVEL=0")
    except ssl.SSLError:
        return None
    plain = socket.create_connection((HOST, node.port), SECONDS)
    try:
        with given.wrap_socket(plain, server_hostname=HOST) as secured:
            return (secured.cipher() or ("",))[0]
    except (ssl.SSLError, ConnectionError):
        return None


def s_client(node: Defaults, *options: str, text: str = "Q\n") -> str:
    command = ["openssl", "s_client", "-connect", f"{HOST}:{node.port}", "-CAfile", str(node.authority.certificate)]
    done = subprocess.run([*command, *options], input=text, capture_output=True, text=True, timeout=SECONDS)
    return done.stdout + done.stderr


def test_of_tls_1_2_only_suites_with_forward_secrecy_and_authenticated_encryption(node: Defaults) -> None:
    """All that OpenSSL knows are tried, one by one: those without encryption and without a certificate, too."""
    listed = subprocess.run(["openssl", "ciphers", "-tls1_2", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"], capture_output=True)
    names = listed.stdout.decode().strip().split(":")
    agreed = {name for name in names if not name.startswith("TLS_") and suite_with(node, name) is not None}
    assert agreed, "TLS 1.2 is there"
    assert not [name for name in agreed if TLS_1_2.fullmatch(name) is None]


def test_tls_1_3_is_what_a_client_gets_that_has_it(node: Defaults) -> None:
    plain = socket.create_connection((HOST, node.port), SECONDS)
    with context(node).wrap_socket(plain, server_hostname=HOST) as secured:
        assert secured.version() == "TLSv1.3"
        assert (secured.cipher() or ("",))[0] in ("TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
        assert secured.compression() is None


def client_hello(version: int) -> bytes:
    """One of an old version, as its clients sent it: no extensions, the suites of its time."""
    suites = b"".join(code.to_bytes(2, "big") for code in (0xC014, 0xC00A, 0x0039, 0x0035, 0x002F, 0x000A, 0x0005))
    body = version.to_bytes(2, "big") + bytes(range(32)) + b"\0" + len(suites).to_bytes(2, "big") + suites + b"\1\0"
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\0" + len(message).to_bytes(2, "big") + message


@pytest.mark.parametrize("name", HELLOS)
def test_nothing_older_than_tls_1_2(node: Defaults, name: str) -> None:
    """Answered with an alert, or not at all; never with a ServerHello."""
    with socket.create_connection((HOST, node.port), SECONDS) as plain:
        plain.sendall(client_hello(HELLOS[name]))
        answer = plain.recv(1000)
    assert answer == b"" or (answer[0] == 0x15 and answer[5] == 2), answer.hex()


def test_ssl_2_is_no_tls(node: Defaults) -> None:
    with socket.create_connection((HOST, node.port), SECONDS) as plain:
        plain.sendall(
            b"\x80\x2e\x01\0\x02\0\x15\0\0\0\x10\x01\0\x80\x02\0\x80\x03\0\x80\x04\0\x80\x05\0\x80" + bytes(24)
        )
        try:
            answer = plain.recv(1000)
        except ConnectionError:
            answer = b""
    assert answer == b"" or answer[0] == 0x15, answer.hex()


def test_nothing_is_compressed_and_no_ticket_is_given(node: Defaults) -> None:
    shown = s_client(node, "-tls1_2", text="")
    assert "Secure Renegotiation IS supported" in shown, "so that nobody can put a handshake in front of another"
    assert "Compression: NONE" in shown
    assert "TLS session ticket" not in shown
    early = s_client(node, "-tls1_3")
    assert "Max Early Data: 0" in early or "Max Early Data" not in early
    assert "New Session Ticket arrived" not in early


def test_who_asks_for_a_renegotiation_is_refused(node: Defaults) -> None:
    """`R` makes openssl's client ask for one."""
    shown = s_client(node, "-tls1_2", text="R\nQ\n")
    assert "RENEGOTIATING" in shown
    assert "no renegotiation" in shown or "verify return:1" not in shown.split("RENEGOTIATING", 1)[1], shown


def test_weak_signatures_are_not_taken(node: Defaults) -> None:
    offered = ("-sigalgs", "ECDSA+SHA1:RSA+SHA1", "-cipher", "ALL:@SECLEVEL=0")
    assert "Cipher is (NONE)" in s_client(node, "-tls1_2", *offered)
