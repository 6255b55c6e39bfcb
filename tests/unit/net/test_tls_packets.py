"""What a connection over TLS sends in one go leaves in full packets, and nothing of it is kept back at the end."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.net.tls import MSG_MORE, PIECE_BYTES, TlsMisuse, TlsSocket
from moldau.net.tls_contexts import client_context, read_stores, server_context
from tests.certificates import Authority
from tests.pace import patience
from tests.unit.net.test_tls import settings

pytest.importorskip("cryptography", reason="cryptography is not installed")
pytestmark = pytest.mark.skipif(not MSG_MORE, reason="only Linux keeps back what fills no packet")


class NotingSocket(socket.socket):
    """Notes with which flags something was sent."""

    def __init__(self, fileno: int) -> None:
        super().__init__(fileno=fileno)
        self.flags: list[int] = []

    def send(self, data: object, flags: int = 0, /) -> int:
        self.flags.append(flags)
        return super().send(data, flags)  # type: ignore[arg-type]


class Pair:
    def __init__(self, authority: Authority) -> None:
        found = settings(authority, authority.sign("server"))
        stores = read_stores(found)
        theirs, ours = socket.socketpair()
        theirs.settimeout(patience(20))
        self.raw = NotingSocket(ours.detach())
        self.raw.setblocking(False)
        self.raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self.tls = TlsSocket(self.raw, server_context(found, stores), None)
        self.client: ssl.SSLSocket | None = None
        other = threading.Thread(target=self._greet, args=(theirs, client_context(found, stores)))
        other.start()
        while True:
            try:
                self.tls.shake_hands()
                break
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                other.join(0.001)
        other.join()
        self.raw.flags.clear()

    def _greet(self, theirs: socket.socket, context: ssl.SSLContext) -> None:
        self.client = context.wrap_socket(theirs, server_hostname="localhost")

    def received(self, size: int) -> bytes:
        assert self.client is not None
        data = bytearray()
        while len(data) < size:
            data += self.client.recv(size - len(data))
        return bytes(data)


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(Authority(tmp_path / "tls"))
    yield made
    made.tls.close()
    assert made.client is not None
    made.client.close()


def test_one_record_leaves_at_once(pair: Pair) -> None:
    assert pair.tls.send(b"short") == 5
    assert pair.raw.flags == [0]
    assert pair.received(5) == b"short"


def test_all_but_the_last_piece_say_that_more_follows(pair: Pair) -> None:
    data = bytes(range(256)) * (3 * PIECE_BYTES // 256)
    assert pair.tls.send(data) == len(data)
    assert pair.raw.flags == [MSG_MORE, MSG_MORE, 0]
    assert pair.received(len(data)) == data


def test_what_the_caller_goes_on_with_says_so_to_its_end(pair: Pair) -> None:
    assert pair.tls.send(b"head", MSG_MORE) == 4
    assert pair.tls.send(b"rest") == 4
    assert pair.raw.flags == [MSG_MORE, 0]
    assert pair.received(8) == b"headrest"


def test_what_does_not_speak_tls_is_told_from_its_first_bytes(tmp_path: Path) -> None:
    """Its third and fourth byte may look like a length, of which most never comes."""
    authority = Authority(tmp_path / "tls")
    found = settings(authority, authority.sign("client"))
    theirs, ours = socket.socketpair()
    with theirs, ours:
        ours.setblocking(False)
        theirs.sendall(b"SSH-2.0-OpenSSH_9\r\n")
        tls = TlsSocket(ours, client_context(found, read_stores(found)), "localhost")
        with pytest.raises(TlsMisuse, match="does not speak TLS"):
            tls.shake_hands()
