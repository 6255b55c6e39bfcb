"""Who is not trusted, by whom and why: the same sentences every time, in the log of the node and at the other side.

A certificate that has expired, one for another host, one of another authority, and one whose authority was taken out
of the trust store while the node runs; of clients, and between nodes.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.client import Admin
from moldau.client.errors import ClientError
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from tests.certificates import Authority, Signed
from tests.interop.conftest import AGAINST_KAFKA, stop_cleanly
from tests.interop.nodes import HOST, MoldauNode, free_ports
from tests.interop.wire import Wire
from tests.pace import patience_ms, wait_until

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(AGAINST_KAFKA, reason="looks at Moldau's own log"),
]

FAILED = "Failed authentication with /127.0.0.1 (channelId="
NOT_REACHED = "failed authentication due to: SSL handshake failed: "


class Guarded(MoldauNode):
    """Asks for certificates on every listener, and trusts two authorities; its own certificate has no host name."""

    def __init__(self, folder: Path) -> None:
        self.authority, self.second = Authority(folder / "first"), Authority(folder / "second", "second")
        self.own = self.authority.sign("server", names="IP:127.0.0.1")
        self.trusted = folder / "trusted.pem"
        self.trust(self.authority, self.second)
        super().__init__(folder)

    def trust(self, *authorities: Authority) -> None:
        """Replaced in one step."""
        fresh = self.trusted.with_suffix(".new")
        fresh.write_bytes(b"".join(each.certificate.read_bytes() for each in authorities))
        os.replace(fresh, self.trusted)

    def write_properties(self, overrides: dict[str, str]) -> None:
        settings = {
            "listeners": f"CLIENTS://{HOST}:{self.port},CONTROLLER://{HOST}:{self.controller_port}",
            "advertised.listeners": f"CLIENTS://{HOST}:{self.port}",
            "inter.broker.listener.name": "CLIENTS",
            "listener.security.protocol.map": "CLIENTS:SSL,CONTROLLER:SSL",
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.own.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }
        super().write_properties(settings | overrides)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "MOLDAU_LOG_LEVEL": "INFO"}

    def await_line(self, *parts: str, behind: int = 0) -> None:
        def is_there() -> bool:
            return any(all(part in line for part in parts) for line in self.output()[behind:].splitlines())

        wait_until(is_there, 20, lambda: f"{parts} is not in\n{self.output()[-3000:]}", 0.05)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Guarded]:
    started = Guarded(tmp_path / "guarded")
    started.format()
    started.start()
    yield started
    stop_cleanly(started)
    assert "Traceback" not in started.output()


def settings(own: Signed, trusted: Path) -> dict[str, object]:
    return {
        "security.protocol": "SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(trusted),
        "default.api.timeout.ms": patience_ms(1000),
    }


def refusal(bootstrap: str, given: dict[str, object]) -> str:
    with Admin(bootstrap, config=given) as admin, pytest.raises(ClientError) as caught:
        admin.list_topics()
    return str(caught.value)


def test_clients_that_come_wrongly(node: Guarded, tmp_path: Path) -> None:
    stranger = Authority(tmp_path / "stranger", "stranger")
    good = node.authority.sign("client")
    trusting = node.authority.certificate
    cases = [
        # who comes, where to, what it is told, what the node's log says
        (
            settings(node.authority.sign("expired", days=-1), trusting),
            node.bootstrap,
            "has ended the TLS connection",
            "the certificate is not trusted: certificate has expired",
        ),
        (
            settings(stranger.sign("client"), trusting),
            node.bootstrap,
            "has ended the TLS connection",
            "the certificate is not trusted: ",
        ),
        (
            settings(good, stranger.certificate),
            node.bootstrap,
            "is not trusted: self-signed certificate in certificate chain",
            "alert unknown ca",
        ),
        (
            settings(good, trusting),
            f"localhost:{node.port}",
            "is not trusted: Hostname mismatch, certificate is not valid for 'localhost'",
            "alert",
        ),
    ]
    for given, bootstrap, told, logged in cases:
        behind = len(node.output())
        assert told in refusal(bootstrap, given)
        node.await_line(FAILED, "(SSL handshake failed)", logged, behind=behind)
    with Admin(node.bootstrap, config=settings(good, trusting)) as admin:
        assert admin.list_topics() == []


def test_an_authority_that_is_taken_out_of_the_trust_store(node: Guarded) -> None:
    """Its clients do not get in any more; who is in stays until it goes, and all others are unharmed."""
    removed, kept = node.second.sign("removed"), node.authority.sign("kept")
    trusting = node.authority.certificate
    with Admin(node.bootstrap, config=settings(removed, trusting)) as admin:
        assert admin.list_topics() == []
        context = ssl.create_default_context(cafile=str(trusting))
        context.load_cert_chain(removed.pem)
        with Wire(HOST, node.port) as before:
            before.socket = context.wrap_socket(before.socket, server_hostname=HOST)
            assert before.ask(ApiVersionsRequest(), 0).error_code == 0
            node.trust(node.authority)
            node.await_line("listener CLIENTS uses new certificates")
            behind = len(node.output())
            assert "has ended the TLS connection" in refusal(node.bootstrap, settings(removed, trusting))
            node.await_line(FAILED, "(SSL handshake failed): the certificate is not trusted: ", behind=behind)
            assert before.ask(ApiVersionsRequest(), 0).error_code == 0, "who is in stays"
    with Admin(node.bootstrap, config=settings(kept, trusting)) as admin:
        assert admin.list_topics() == []


class Second(MoldauNode):
    """A broker that wants to join the guarded node."""

    def __init__(self, folder: Path, first: Guarded, own: Signed, trusted: Path, host: str = HOST) -> None:
        self.first, self.own, self.trusted, self.named = first, own, trusted, host
        super().__init__(folder)
        self.cluster_id = first.cluster_id

    def write_properties(self, overrides: dict[str, str]) -> None:
        port = free_ports(1)[0]
        joined = {
            "process.roles": "broker",
            "node.id": "2",
            "controller.quorum.voters": f"1@{self.named}:{self.first.controller_port}",
            "listeners": f"CLIENTS://{HOST}:{port}",
            "advertised.listeners": f"CLIENTS://{HOST}:{port}",
            "inter.broker.listener.name": "CLIENTS",
            "listener.security.protocol.map": "CLIENTS:SSL,CONTROLLER:SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.own.pem),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
        }
        super().write_properties(joined | overrides)

    def environment(self) -> dict[str, str]:
        return {**super().environment(), "MOLDAU_LOG_LEVEL": "INFO"}

    def await_line(self, *parts: str) -> None:
        def is_there() -> bool:
            return any(all(part in line for part in parts) for line in self.output().splitlines())

        wait_until(is_there, 30, lambda: f"{parts} is not in\n{self.output()[-3000:]}", 0.05)


def both(folder: Path, *authorities: Authority) -> Path:
    path = folder / "both.pem"
    path.write_bytes(b"".join(each.certificate.read_bytes() for each in authorities))
    return path


@pytest.mark.parametrize("case", ["another authority", "another host", "not trusted by the new one"])
def test_a_broker_that_comes_wrongly_is_told_and_so_is_who_runs_the_cluster(
    node: Guarded, tmp_path: Path, case: str
) -> None:
    stranger = Authority(tmp_path / "stranger", "stranger")
    here, there = {
        "another authority": ("the certificate is not trusted: ", "alert unknown ca"),
        "another host": ("alert", "Hostname mismatch, certificate is not valid for 'localhost'"),
        "not trusted by the new one": ("alert unknown ca", "the certificate is not trusted: "),
    }[case]
    own = node.authority.sign("second") if case == "another host" else stranger.sign("second")
    trusted = stranger.certificate
    if case != "not trusted by the new one":
        trusted = both(tmp_path, stranger, node.authority)
    host = "localhost" if case == "another host" else HOST
    broker = Second(tmp_path / "joining", node, own, trusted, host)
    broker.format()
    behind = len(node.output())
    broker.start_process()
    try:
        broker.await_line("Connection to", NOT_REACHED, there)
        node.await_line(FAILED, "(SSL handshake failed)", here, behind=behind)
    finally:
        broker.kill()


def test_a_broker_whose_certificate_has_expired_does_not_start(node: Guarded, tmp_path: Path) -> None:
    broker = Second(tmp_path / "late", node, node.authority.sign("late", days=-1), node.authority.certificate)
    broker.format()
    broker.start_process()
    assert broker.process is not None
    assert broker.process.wait(patience_ms(20_000) / 1000) != 0
    assert "brokers could not connect to each other with these key and trust stores" in broker.output()
    assert "certificate has expired" in broker.output()
    broker.process = None
