"""Records of TLS that bring no data: a few of them are fine, and nobody keeps the loop busy with more."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.net import log_limit
from moldau.net.connection import Connection
from moldau.net.tls import (
    HANDSHAKE_ROUNDS_MAX,
    OWN_BYTES_MAX,
    RECORD_BYTES_MAX,
    RECORDS_AT_ONCE_MAX,
    RECORDS_WITHOUT_DATA_MAX,
    TlsMisuse,
    TlsSocket,
)
from moldau.net.tls_contexts import client_context, read_stores, server_context
from tests.certificates import Authority, Signed
from tests.pace import patience
from tests.tls_attacker import (
    ALERT,
    DATA,
    HANDSHAKE,
    KEY_UPDATE_WITH_ANSWER,
    NEW_SESSION_TICKET,
    NO_RENEGOTIATION,
    USER_CANCELED,
    Attacker,
)
from tests.unit.net.test_tls import Door, framed, read_frame, run, server_tls, settings, until

pytest.importorskip("cryptography", reason="cryptography is not installed")

LOOKED_AT_MAX = RECORDS_AT_ONCE_MAX + RECORDS_WITHOUT_DATA_MAX
"""A batch may begin with data, and the rest of it is not held against anybody."""


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Signed:
    return authority.sign("server")


class Pair:
    """A TlsSocket and, at the other end of a pair of sockets, an attacker; the handshake is done."""

    def __init__(
        self,
        authority: Authority,
        own: Signed,
        folder: Path,
        version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
        attacks_a_client: bool = False,
    ) -> None:
        found = settings(authority, own)
        theirs, ours = socket.socketpair()
        theirs.settimeout(patience(20))
        ours.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        serving, asking = server_context(found, read_stores(found)), client_context(found, read_stores(found))
        serving.minimum_version = serving.maximum_version = version
        if attacks_a_client:
            self.tls = TlsSocket(ours, asking, "localhost")
            self.attacker = Attacker(theirs, serving, folder, is_server=True)
        else:
            self.tls = TlsSocket(ours, serving, None)
            self.attacker = Attacker(theirs, asking, folder)
        self._ours = ours
        self._sender: threading.Thread | None = None
        self._shake_hands()
        self.records_before = self.tls.records_total

    def _shake_hands(self) -> None:
        other = threading.Thread(target=self.attacker.shake_hands)
        other.start()
        while True:
            try:
                self.tls.shake_hands()
                break
            except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
                other.join(0.001)
        other.join()

    def send(self, records: bytes) -> None:
        """As much as the system takes; what is too much comes later."""
        self._sender = threading.Thread(target=self.attacker.flood, args=(records,))
        self._sender.start()

    def send_all(self, records: bytes) -> None:
        self.attacker.sock.sendall(records)

    def reads(self) -> Iterator[bytes]:
        """What each read gives until there is nothing more; an empty one where it has to wait."""
        view = memoryview(bytearray(100_000))
        while True:
            before = self.tls.records_total
            try:
                count = self.tls.recv_into(view)
                yield bytes(view[:count])
                if count == 0:
                    return
            except BlockingIOError:
                assert self._sender is not None
                is_over = not self._sender.is_alive()
                if is_over and not self.tls.pending and not self._is_there():
                    return
                yield b""
            finally:
                assert self.tls.records_total - before <= RECORDS_AT_ONCE_MAX

    def _is_there(self) -> bool:
        try:
            return bool(self._ours.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False

    def read_all(self) -> bytes:
        return b"".join(self.reads())

    @property
    def looked_at(self) -> int:
        return self.tls.records_total - self.records_before

    def close(self) -> None:
        self.tls.close()
        if self._sender is not None:
            self._sender.join()
        self.attacker.sock.close()


Flood = Callable[[Attacker], bytes]


def expect_cut_off(pair: Pair, flood: bytes) -> None:
    pair.send(flood)
    # With some of it OpenSSL has less patience.
    with pytest.raises((TlsMisuse, ConnectionAbortedError)):
        pair.read_all()
    assert pair.looked_at <= LOOKED_AT_MAX
    pair.close()


@pytest.mark.parametrize(
    "flood",
    [
        lambda attacker: attacker.key_updates(3000),
        lambda attacker: attacker.key_updates(1500, KEY_UPDATE_WITH_ANSWER),
        lambda attacker: attacker.key_updates(60, padding=RECORD_BYTES_MAX - 6),
        lambda attacker: b"".join(attacker.own.seal(DATA, b"") for _ in range(3000)),
        lambda attacker: b"".join(attacker.own.seal(ALERT, USER_CANCELED) for _ in range(3000)),
        lambda attacker: b"\x14\x03\x03\x00\x01\x01" * 3000,
    ],
    ids=["key updates", "that want an answer", "that look like data", "empty data", "alerts", "change cipher spec"],
)
def test_a_client_that_only_keeps_tls_busy_is_cut_off(
    authority: Authority, server: Signed, tmp_path: Path, flood: Flood
) -> None:
    pair = Pair(authority, server, tmp_path)
    expect_cut_off(pair, flood(pair.attacker))


@pytest.mark.parametrize(
    "flood",
    [
        lambda attacker: b"".join(attacker.old.seal(HANDSHAKE, attacker.hello) for _ in range(500)),
        lambda attacker: b"".join(attacker.old.seal(ALERT, NO_RENEGOTIATION) for _ in range(3000)),
        lambda attacker: b"".join(attacker.old.seal(DATA, b"") for _ in range(3000)),
    ],
    ids=["renegotiation", "alerts", "empty data"],
)
def test_nor_in_an_older_version(authority: Authority, server: Signed, tmp_path: Path, flood: Flood) -> None:
    pair = Pair(authority, server, tmp_path, ssl.TLSVersion.TLSv1_2)
    expect_cut_off(pair, flood(pair.attacker))


def test_a_server_that_sends_tickets_without_an_end_is_cut_off(
    authority: Authority, server: Signed, tmp_path: Path
) -> None:
    pair = Pair(authority, server, tmp_path, attacks_a_client=True)
    expect_cut_off(pair, b"".join(pair.attacker.own.seal(HANDSHAKE, NEW_SESSION_TICKET) for _ in range(2000)))


def test_a_server_may_send_a_few_tickets(authority: Authority, server: Signed, tmp_path: Path) -> None:
    pair = Pair(authority, server, tmp_path, attacks_a_client=True)
    seal = pair.attacker.own.seal
    pair.send(b"".join(seal(HANDSHAKE, NEW_SESSION_TICKET) for _ in range(10)) + seal(DATA, b"welcome"))
    assert pair.read_all() == b"welcome"
    pair.close()


def test_keys_may_be_updated_between_data(authority: Authority, server: Signed, tmp_path: Path) -> None:
    """As many in a row as are allowed, again and again, and what was sent arrives; a read never does more at once."""
    pair = Pair(authority, server, tmp_path)
    attacker = pair.attacker
    pieces = [os.urandom(size) for size in (1, 5, 16384, 1, 300, 16384, 16384, 2) * 8]
    records = b"".join(
        attacker.key_updates(RECORDS_WITHOUT_DATA_MAX - 1) + attacker.own.seal(DATA, piece) for piece in pieces
    )
    pair.send(records)
    assert pair.read_all() == b"".join(pieces)
    assert pair.looked_at == len(pieces) * RECORDS_WITHOUT_DATA_MAX
    pair.close()


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7, 1000])
def test_records_may_come_in_any_pieces(authority: Authority, server: Signed, tmp_path: Path, size: int) -> None:
    pair = Pair(authority, server, tmp_path)
    attacker = pair.attacker
    content = [b"one", b"two" * 30, b"three" * (10 if size < 100 else 3000), b"x"]
    records = attacker.key_updates(1) + b"".join(attacker.own.seal(DATA, one) for one in content)
    view = memoryview(bytearray(100_000))
    received = b""
    for start in range(0, len(records), size):
        pair.send_all(records[start : start + size])
        try:
            received += bytes(view[: pair.tls.recv_into(view)])
        except BlockingIOError:
            assert not pair.tls.pending
    assert received == b"".join(content)
    pair.close()


def test_what_does_not_fit_is_pending(authority: Authority, server: Signed, tmp_path: Path) -> None:
    pair = Pair(authority, server, tmp_path)
    pair.send_all(pair.attacker.own.seal(DATA, b"abcdefgh") + pair.attacker.own.seal(DATA, b"ij"))
    small = memoryview(bytearray(3))
    received = []
    for _ in range(4):
        count = pair.tls.recv_into(small)
        received.append(bytes(small[:count]))
        assert pair.tls.pending == (len(received) < 4)
    assert received == [b"abc", b"def", b"ghi", b"j"]
    pair.close()


def test_a_record_that_is_too_large_is_not_waited_for(authority: Authority, server: Signed, tmp_path: Path) -> None:
    pair = Pair(authority, server, tmp_path)
    pair.send(b"\x17\x03\x03\xff\xff")
    with pytest.raises(TlsMisuse, match="65535 bytes"):
        pair.read_all()
    pair.close()


def test_data_before_a_damaged_record_is_read_and_then_the_failure_is_told(
    authority: Authority, server: Signed, tmp_path: Path
) -> None:
    pair = Pair(authority, server, tmp_path)
    pair.send_all(pair.attacker.own.seal(DATA, b"good") + b"\x17\x03\x03\x00\x20" + bytes(32))
    view = memoryview(bytearray(100))
    assert pair.tls.recv_into(view) == 4 and pair.tls.pending
    with pytest.raises(ConnectionAbortedError):
        pair.tls.recv_into(view)
    pair.close()


def test_a_goodbye_is_the_end_even_if_the_socket_stays_open(
    authority: Authority, server: Signed, tmp_path: Path
) -> None:
    pair = Pair(authority, server, tmp_path)
    pair.send_all(pair.attacker.own.seal(DATA, b"last") + pair.attacker.own.seal(ALERT, b"\x01\x00"))
    view = memoryview(bytearray(100))
    assert pair.tls.recv_into(view) == 4 and pair.tls.pending
    assert pair.tls.recv_into(view) == 0
    pair.close()


def test_to_say_goodbye_nothing_is_received(authority: Authority, server: Signed, tmp_path: Path) -> None:
    pair = Pair(authority, server, tmp_path)
    pair.send(pair.attacker.key_updates(2000))
    pair.close()
    assert pair.looked_at == 0


def test_answers_that_nobody_takes_do_not_pile_up(authority: Authority, server: Signed, tmp_path: Path) -> None:
    """Each key update wants one in return; there is data in between, so they are not too many in a row."""
    pair = Pair(authority, server, tmp_path)
    with pytest.raises(BlockingIOError):
        while True:
            pair.tls.send(bytes(10_000))
    attacker = pair.attacker
    records = [
        attacker.key_updates(5, KEY_UPDATE_WITH_ANSWER) + attacker.own.seal(DATA, b"x") for _ in range(OWN_BYTES_MAX)
    ]
    pair.send(b"".join(records))
    with pytest.raises(TlsMisuse, match="does not take"):
        pair.read_all()
    assert pair.tls._outgoing.pending < OWN_BYTES_MAX + 100 * RECORDS_AT_ONCE_MAX
    pair.close()


def test_what_could_not_be_sent_leaves_once_and_whole(authority: Authority, server: Signed, tmp_path: Path) -> None:
    pair = Pair(authority, server, tmp_path)
    content = os.urandom(700_001)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(pair.attacker.receive(len(content))))
    sent = waited = 0
    while sent < len(content):
        try:
            sent += pair.tls.send(memoryview(content)[sent : sent + 130_000])
        except BlockingIOError:
            waited += 1
            if waited == 3:
                reader.start()
    reader.join()
    assert received == [content] and waited >= 3
    pair.close()


def test_a_handshake_that_does_not_end_is_ended(authority: Authority, server: Signed) -> None:
    """OpenSSL skips any number of a server's requests to begin again."""
    found = settings(authority, server)
    asking = client_context(found, read_stores(found))
    theirs, ours = socket.socketpair()
    ours.setblocking(False)
    tls = TlsSocket(ours, asking, "localhost")
    hello_requests = b"\x16\x03\x03\x00\x04\x00\x00\x00\x00" * 10_000

    def flood() -> None:
        with contextlib.suppress(ConnectionError):
            theirs.sendall(hello_requests)

    flooding = threading.Thread(target=flood)
    flooding.start()
    with pytest.raises(TlsMisuse, match="too many pieces"):
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                tls.shake_hands()
    assert tls.records_total <= (HANDSHAKE_ROUNDS_MAX + 1) * RECORDS_AT_ONCE_MAX
    tls.close()
    flooding.join()
    theirs.close()


# On a listener


def tls_of(connection: Connection) -> TlsSocket:
    tls = connection._tls
    assert tls is not None
    return tls


async def attack(door: Door, authority: Authority, folder: Path) -> tuple[Attacker, TlsSocket]:
    """An attacker whose connection has just begun, after all others."""
    known = set(door.listener.connections)
    sock = await door.loop.run_in_executor(None, socket.create_connection, ("127.0.0.1", door.listener.port))
    sock.settimeout(patience(20))
    attacker = Attacker(sock, ssl.create_default_context(cafile=str(authority.certificate)), folder)
    await door.loop.run_in_executor(None, attacker.shake_hands)
    await until(lambda: len(set(door.listener.connections) - known) == 1)
    (connection,) = set(door.listener.connections) - known
    return attacker, tls_of(connection)


def test_a_good_client_is_served_beside_a_flood(
    authority: Authority,
    server: Signed,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of thousands of records a handful is looked at, then the connection is closed, with a word in the log."""
    monkeypatch.setattr(log_limit, "LINES_MAX", 1_000_000)  # other tests may have used it up
    found = settings(authority, server)

    async def scenario(door: Door) -> None:
        reader, writer = await door.connect(client_context(found, read_stores(found)))
        await until(lambda: door.listener.connection_count == 1)
        attacker, tls = await attack(door, authority, tmp_path)
        before = tls.records_total
        flood = attacker.key_updates(5000)
        flooding = door.loop.run_in_executor(None, attacker.flood, flood)
        for number in range(20):
            writer.write(framed(b"%d" % number))
            assert await read_frame(reader) == b"%d" % number
        await flooding
        await until(lambda: door.listener.connection_count == 1)
        assert tls.records_total - before <= LOOKED_AT_MAX
        attacker.sock.close()
        writer.close()
        await until(lambda: door.listener.connection_count == 0)

    with caplog.at_level(logging.WARNING, "moldau.net"):
        run(server_tls(found), scenario)
    assert [text for text in caplog.messages if text.endswith("TLS records in a row without data")]


def test_small_records_of_a_large_frame_leave_their_turns_to_others(
    authority: Authority, server: Signed, tmp_path: Path
) -> None:
    """A byte in a record, with key updates in between: all of it is handled, a few records in a turn."""
    found = settings(authority, server)
    content = os.urandom(200_000)

    async def scenario(door: Door) -> None:
        attacker, tls = await attack(door, authority, tmp_path)
        own = attacker.own
        data = framed(content)
        small, rest = data[:300], data[300:]
        records = [own.seal(DATA, small[:200])]
        records += [attacker.key_updates(3) + own.seal(DATA, small[at : at + 1]) for at in range(200, 300)]
        records += [own.seal(DATA, rest[at : at + 16_000]) for at in range(0, len(rest), 16_000)]
        sending = door.loop.run_in_executor(None, attacker.flood, b"".join(records))
        receiving = door.loop.run_in_executor(None, attacker.receive, len(data))
        turns, handled = door.turns.turns_total, tls.records_total
        while not receiving.done():
            await asyncio.sleep(0)
            # What is read from the system in one turn may be followed by another read where records are large.
            of_large = 3 * len(rest) // 16_000
            assert tls.records_total - handled <= (door.turns.turns_total - turns) * RECORDS_AT_ONCE_MAX + of_large
        assert await receiving == data
        await sending
        attacker.sock.close()
        await until(lambda: door.listener.connection_count == 0)

    run(server_tls(found), scenario)


def test_a_client_that_updates_its_keys_now_and_then_lives_on(
    authority: Authority, server: Signed, tmp_path: Path
) -> None:
    found = settings(authority, server)

    async def scenario(door: Door) -> None:
        attacker, _ = await attack(door, authority, tmp_path)

        def talk() -> None:
            for number in range(40):
                request = framed(b"request %d" % number)
                update = attacker.key_updates(1, KEY_UPDATE_WITH_ANSWER) if number % 3 == 0 else b""
                attacker.sock.sendall(update + attacker.own.seal(DATA, request))
                assert attacker.receive(len(request)) == request

        await door.loop.run_in_executor(None, talk)
        assert door.listener.connection_count == 1
        attacker.sock.close()
        await until(lambda: door.listener.connection_count == 0)

    run(server_tls(found), scenario)
