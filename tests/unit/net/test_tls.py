"""TLS on listeners and between nodes: handshakes that end well, handshakes that do not, and what each of them costs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.net import handshakes
from moldau.net.connection import TLS_PIECE_BYTES
from moldau.net.framing import Scratch
from moldau.net.handshakes import HandshakeThreads
from moldau.net.listener import Listener, ListenerLimits
from moldau.net.listener_group import ListenerGroup
from moldau.net.outbound import OutboundTls, SocketOutbox
from moldau.net.tls_contexts import ServerTls, check_handshake, client_context, read_stores, server_context
from moldau.net.turns import Turns
from moldau.node.context import ClientContext
from moldau.node.outbox import CLOSED, NoResponse
from moldau.node.reply import Reply
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.primitives import Message, Writer
from moldau.protocol.records_data import FileRecords
from moldau.quota.connection_quotas import ConnectionQuotas
from moldau.security.tls_settings import TlsSettings
from moldau.server.posix_disk import PosixDisk
from tests.certificates import Authority, Signed
from tests.pace import patience


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(authority: Authority) -> Signed:
    return authority.sign("server")


@pytest.fixture(scope="module")
def client(authority: Authority) -> Signed:
    return authority.sign("client", "/O=Org/OU=Data/CN=client")


def settings(authority: Authority, own: Signed, **more: str) -> TlsSettings:
    base = single_node_values()
    base["listeners"] = "OUT://127.0.0.1:9094," + base["listeners"]
    base["listener.security.protocol.map"] += ",OUT:SSL"
    values = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(own.pem),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.certificate),
        **{name.replace("_", "."): text for name, text in more.items()},
    }
    return TlsSettings(BrokerConfig({**base, **values}, warn=False), "OUT")


def server_tls(found: TlsSettings) -> ServerTls:
    return ServerTls(found, server_context(found, read_stores(found)))


class Door:
    """A listener with TLS that answers every frame with what `answer` makes of it."""

    def __init__(self, tls: ServerTls) -> None:
        self.now_ms = 1_000_000
        self.turns = Turns()
        self.loop = asyncio.get_running_loop()
        self.threads = HandshakeThreads(self.loop, self.turns)
        self.quotas = ConnectionQuotas()
        self.seen: list[str] = []
        self.answer: Callable[[bytes], list[bytes | FileRecords]] = lambda frame: [framed(frame)]
        self.listener = Listener(
            "OUT",
            "127.0.0.1",
            0,
            is_controller=False,
            handle=self._handle,
            limits=ListenerLimits(),
            scratch=Scratch(turns=self.turns),
            clock=lambda: self.now_ms,
            group=ListenerGroup(self.quotas, self.turns),
            tls=tls,
            threads=self.threads,
        )
        self.listener.bind()
        self.listener.start()

    def _handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        self.seen.append(context.principal)
        reply = Reply()
        reply.complete(self.answer(data[start:end]))
        return reply

    async def connect(self, context: ssl.SSLContext) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.listener.port, ssl=context, server_hostname="localhost")

    def close(self) -> None:
        self.listener.close()
        self.threads.close()


Scenario = Callable[[Door], Awaitable[None]]


def run(tls: ServerTls, scenario: Scenario) -> None:
    async def main() -> None:
        door = Door(tls)
        try:
            await asyncio.wait_for(scenario(door), patience(60))
        finally:
            door.close()
        assert door.quotas.count == 0, "whoever leaves is not counted any more"

    asyncio.run(main())


def framed(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big")
    return await reader.readexactly(size)


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await reader.read() == b""
    except ConnectionResetError:
        return True  # it did not read all that was sent


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_frames_of_every_size_go_there_and_back(authority: Authority, server: Signed) -> None:
    """Small ones together in a record, and large ones over many."""
    found = settings(authority, server)

    async def scenario(door: Door) -> None:
        reader, writer = await door.connect(client_context(found, read_stores(found)))
        sizes = [
            0,
            1,
            3,
            100,
            5000,
            16380,
            16384,
            40_000,
            131_072,
            131_069,
            300_000,
            3_000_000,
            10,
            700_000,
            700_000,
            4,
        ]
        sent = [os.urandom(size) for size in sizes]
        writer.write(b"".join(framed(data) for data in sent))
        for data in sent:
            assert await read_frame(reader) == data
        writer.close()
        await until(lambda: door.listener.connection_count == 0)
        assert door.listener.authenticated_total == 1

    run(server_tls(found), scenario)


def test_records_in_a_file_arrive_whole_at_a_slow_reader(authority: Authority, server: Signed, tmp_path: Path) -> None:
    found = settings(authority, server)
    content = os.urandom(5 * TLS_PIECE_BYTES + 12_345)
    (tmp_path / "segment").write_bytes(content)
    disk = PosixDisk()

    async def scenario(door: Door) -> None:
        file = disk.open(str(tmp_path / "segment"))
        size = len(content) - 100
        door.answer = lambda frame: [(size + 7).to_bytes(4, "big") + b"head", FileRecords(file, 100, size), b"end"]
        reader, writer = await door.connect(client_context(found, read_stores(found)))
        for _ in range(3):
            writer.write(framed(b"fetch"))
        await asyncio.sleep(0.2)  # until the system takes no more
        for _ in range(3):
            assert await read_frame(reader) == b"head" + content[100:] + b"end"
        writer.close()

    run(server_tls(found), scenario)
    disk.close()


@pytest.mark.parametrize("auth", ["requested", "required"])
def test_the_principal_is_the_name_in_the_certificate(
    authority: Authority, server: Signed, client: Signed, auth: str
) -> None:
    tls = server_tls(settings(authority, server, ssl_client_auth=auth))
    named = settings(authority, client)

    async def scenario(door: Door) -> None:
        reader, writer = await door.connect(client_context(named, read_stores(named)))
        writer.write(framed(b"x"))
        await read_frame(reader)
        assert door.seen == ["User:CN=client,OU=Data,O=Org"]
        writer.close()

    run(tls, scenario)


def without_certificate(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(authority.certificate))


def test_without_a_certificate_one_is_nobody_or_nothing(authority: Authority, server: Signed) -> None:
    async def requested(door: Door) -> None:
        reader, writer = await door.connect(without_certificate(authority))
        writer.write(framed(b"x"))
        await read_frame(reader)
        assert door.seen == ["User:ANONYMOUS"]
        writer.close()

    async def required(door: Door) -> None:
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            reader, writer = await door.connect(without_certificate(authority))
            writer.write(framed(b"x"))
            await read_frame(reader)
        await until(lambda: door.listener.failed_authentication_total == 1)
        assert not door.seen and door.listener.connection_count == 0

    run(server_tls(settings(authority, server, ssl_client_auth="requested")), requested)
    run(server_tls(settings(authority, server, ssl_client_auth="required")), required)


def test_a_name_without_a_rule_is_let_in_and_closed_at_its_first_request(
    authority: Authority, server: Signed, client: Signed
) -> None:
    rules = "RULE:^CN=(.*?),OU=Others.*$/$1/"
    tls = server_tls(settings(authority, server, ssl_client_auth="required", ssl_principal_mapping_rules=rules))
    named = settings(authority, client)

    async def scenario(door: Door) -> None:
        reader, writer = await door.connect(client_context(named, read_stores(named)))
        writer.write(framed(b"x"))
        assert await reader.read() == b""
        assert not door.seen

    run(tls, scenario)


def expect_failure(tls: ServerTls, attempt: Callable[[Door], Awaitable[None]], log: pytest.LogCaptureFixture) -> str:
    """What the listener says of a connection that must not come about."""

    async def scenario(door: Door) -> None:
        await attempt(door)
        await until(lambda: door.listener.failed_authentication_total == 1)
        assert door.listener.connection_count == 0 and not door.listener.handshakes

    with log.at_level(logging.WARNING, "moldau.net"):
        run(tls, scenario)
    (line,) = [text for text in log.messages if text.startswith("Failed authentication with /127.0.0.1 (channelId=")]
    assert "(SSL handshake failed): " in line
    return line.partition("failed): ")[2]


def test_failures_are_told_with_their_reason(
    authority: Authority, server: Signed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Authority(tmp_path, "other")
    tls = server_tls(settings(authority, server, ssl_client_auth="required"))

    async def with_certificate_of(signed: Signed, door: Door) -> None:
        context = without_certificate(authority)
        context.load_cert_chain(signed.pem)
        reader, writer = await door.connect(context)
        writer.write(framed(b"x"))
        with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)

    async def plaintext(door: Door) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.listener.port)
        writer.write(framed(b"\0\x12\0\0"))
        assert await is_closed(reader)

    async def oversized(door: Door) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.listener.port)
        writer.write(b"\x16\x03\x01\xff\xff\x01")
        assert await is_closed(reader)

    async def distrustful(door: Door) -> None:
        def connect() -> None:
            plain = socket.create_connection(("127.0.0.1", door.listener.port))
            context = ssl.create_default_context(cafile=str(other.certificate))
            with pytest.raises(ssl.SSLCertVerificationError), plain:
                context.wrap_socket(plain, server_hostname="localhost")

        await door.loop.run_in_executor(None, connect)

    async def too_old(door: Door) -> None:
        context = without_certificate(authority)
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AES128-SHA256@SECLEVEL=0")
        with pytest.raises(ssl.SSLError):
            await door.connect(context)

    cases: list[tuple[Callable[[Door], Awaitable[None]], str]] = [
        (lambda door: with_certificate_of(other.sign("stranger"), door), "certificate is not trusted"),
        (lambda door: with_certificate_of(authority.sign("late", days=-1), door), "certificate has expired"),
        (plaintext, "it does not speak TLS"),
        (oversized, "a TLS record of 65535 bytes"),
        (distrustful, "unknown ca"),
        (too_old, "no shared cipher"),
    ]
    for attempt, reason in cases:
        caplog.clear()
        assert reason in expect_failure(tls, attempt, caplog)


def test_who_says_nothing_costs_a_socket_until_the_deadline(authority: Authority, server: Signed) -> None:
    async def scenario(door: Door) -> None:
        silent = [socket.create_connection(("127.0.0.1", door.listener.port)) for _ in range(20)]
        await until(lambda: len(door.listener.handshakes) == 20)
        assert door.quotas.count == 20, "they count before they have said anything"
        assert all(handshake._secured is None for handshake in door.listener.handshakes)
        silent.pop().close()
        await until(lambda: len(door.listener.handshakes) == 19)
        assert door.listener.failed_authentication_total == 0, "to leave is no failure"
        silent[0].sendall(b"\x16\x03\x01\x02\x00")
        await until(lambda: any(handshake._secured is not None for handshake in door.listener.handshakes))
        door.now_ms += handshakes.HANDSHAKE_MS_MAX - 1
        door.listener.on_timer()
        assert len(door.listener.handshakes) == 19
        door.now_ms += 1
        door.listener.on_timer()
        assert not door.listener.handshakes and door.quotas.count == 0
        for sock in silent:
            # Not while the loop waits: a step that is under way on a thread closes its socket when it has ended.
            sock.setblocking(False)
            with contextlib.suppress(ConnectionResetError):
                received = asyncio.get_running_loop().sock_recv(sock, 10)
                assert await asyncio.wait_for(received, patience(10)) == b""
            sock.close()

    run(server_tls(settings(authority, server)), scenario)


def test_who_sends_a_byte_at_a_time_is_not_heard_to_the_end(
    authority: Authority, server: Signed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshakes, "STEPS_MAX", 5)

    async def scenario(door: Door) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", door.listener.port)
        for number in range(10):
            writer.write(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03"[number : number + 1])
            await asyncio.sleep(0.02)
        assert await is_closed(reader)
        assert door.listener.failed_authentication_total == 1

    run(server_tls(settings(authority, server)), scenario)


def test_the_excess_is_taken_from_those_who_are_not_in_yet(authority: Authority, server: Signed) -> None:
    async def scenario(door: Door) -> None:
        silent = [socket.create_connection(("127.0.0.1", door.listener.port)) for _ in range(3)]
        await until(lambda: len(door.listener.handshakes) == 3)
        assert door.listener.close_handshakes(2) == 2
        assert len(door.listener.handshakes) == 1 and door.quotas.count == 1
        for sock in silent:
            sock.close()

    run(server_tls(settings(authority, server)), scenario)


def test_a_new_certificate_is_for_new_connections(authority: Authority, server: Signed) -> None:
    found = settings(authority, server)
    tls = server_tls(found)

    async def certificate_of(writer: asyncio.StreamWriter) -> str:
        return str(writer.get_extra_info("peercert")["subject"])

    async def scenario(door: Door) -> None:
        context = without_certificate(authority)
        reader, writer = await door.connect(context)
        renewed = settings(authority, authority.sign("renewed"))
        tls.replace(renewed, server_context(renewed, read_stores(renewed)))
        _, second = await door.connect(context)
        assert "server" in await certificate_of(writer) and "renewed" in await certificate_of(second)
        writer.write(framed(b"still there"))
        assert await read_frame(reader) == b"still there"
        writer.close()
        second.close()

    run(tls, scenario)


def resume(
    server_side: ssl.SSLContext, asking: ssl.SSLContext, session: ssl.SSLSession | None
) -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """A client that has an earlier session and its server, after their handshake."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = asking.wrap_bio(to_client, to_server, server_hostname="localhost", session=session)
    serving = server_side.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (client, serving):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    return client, serving


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_with_new_stores_no_session_is_resumed(
    authority: Authority, server: Signed, client: Signed, version: ssl.TLSVersion
) -> None:
    """And in TLS 1.3 not even with the old ones."""
    found = settings(authority, server, ssl_client_auth="required")
    named = settings(authority, client)
    asking = client_context(named, read_stores(named))
    asking.maximum_version = version
    before, after = (server_context(found, read_stores(found)) for _ in range(2))
    first = resume(before, asking, None)  # which goes on: OpenSSL forgets sessions that end without a goodbye
    session = first[0].session
    assert resume(before, asking, session)[1].session_reused == (version == ssl.TLSVersion.TLSv1_2)
    assert not resume(after, asking, session)[1].session_reused


def test_both_sides_are_tried_in_memory(authority: Authority, server: Signed, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    mutual = settings(authority, server, ssl_client_auth="required")
    stranger = settings(other, other.sign("stranger"))
    ours = server_context(mutual, read_stores(mutual))
    assert check_handshake(ours, client_context(mutual, read_stores(mutual), verifies_hosts=False)) is None
    theirs = client_context(stranger, read_stores(stranger), verifies_hosts=False)
    assert "the client does not trust the certificate" in (check_handshake(ours, theirs) or "")


# Between nodes


def ask(outbox: SocketOutbox, port: int, host: str = "localhost") -> asyncio.Future[Message | NoResponse]:
    answer: asyncio.Future[Message | NoResponse] = outbox.loop.create_future()
    channel = outbox.open("test", host, port)
    channel.send(18, 0, ApiVersionsRequest(), 20_000, lambda response, _: answer.set_result(response))
    return answer


def api_versions(frame: bytes) -> list[bytes | FileRecords]:
    writer = Writer()
    writer.int32(0)
    writer.raw(frame[4:8])
    ApiVersionsResponse(error_code=0, api_keys=[]).encode(writer, 0)
    writer.set_int32(0, writer.size - 4)
    return [writer.to_bytes()]


@pytest.mark.parametrize(
    ("names", "more", "is_let_in"),
    [
        ("DNS:localhost", {}, True),
        ("DNS:elsewhere", {}, False),
        ("DNS:elsewhere", {"ssl_endpoint_identification_algorithm": ""}, True),
    ],
)
def test_a_node_looks_at_the_name_of_the_other(
    authority: Authority, client: Signed, names: str, more: dict[str, str], is_let_in: bool
) -> None:
    tls = server_tls(settings(authority, authority.sign("peer", names=names), ssl_client_auth="required"))
    own = settings(authority, client, **more)
    context = client_context(own, read_stores(own))

    async def scenario(door: Door) -> None:
        door.answer = api_versions
        outbox = SocketOutbox(
            door.loop, lambda: door.now_ms, "n", door.turns, OutboundTls(lambda: context, door.threads)
        )
        answer = await ask(outbox, door.listener.port)
        if is_let_in:
            assert isinstance(answer, ApiVersionsResponse)
            assert door.seen == ["User:CN=client,OU=Data,O=Org"]
        else:
            assert isinstance(answer, NoResponse) and answer.reason == CLOSED
        outbox.close()
        await until(lambda: door.listener.connection_count == 0)

    run(tls, scenario)


def test_a_channel_that_is_closed_in_its_handshake_leaves_nothing(authority: Authority, client: Signed) -> None:
    own = settings(authority, client)
    context = client_context(own, read_stores(own))

    async def main() -> None:
        turns, loop = Turns(), asyncio.get_running_loop()
        mute = socket.create_server(("127.0.0.1", 0))
        threads = HandshakeThreads(loop, turns)
        outbox = SocketOutbox(loop, lambda: 0, "n", turns, OutboundTls(lambda: context, threads))
        answer = ask(outbox, mute.getsockname()[1])
        accepted, _ = await loop.run_in_executor(None, mute.accept)
        accepted.setblocking(False)
        await loop.sock_recv(accepted, 1)
        outbox.close()
        while await loop.sock_recv(accepted, 65536):
            pass
        assert not answer.done(), "nobody is interested any more"
        accepted.close()
        mute.close()
        threads.close()

    asyncio.run(asyncio.wait_for(main(), patience(30)))
