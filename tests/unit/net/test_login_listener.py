"""A listener that asks for logins: who is not known is read little of, for a limited time, and refused slowly."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable

import pytest

from moldau.api.login_gate import GateKeeper
from moldau.net.framing import Scratch
from moldau.net.listener import Listener, ListenerLimits
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.security.exchange import Derivation, SaslServer
from moldau.security.login import Mechanism
from moldau.security.plain import PlainServer
from tests.pace import patience
from tests.unit.security.wire import answer, authenticate, frame, handshake

RIGHT, WRONG = b"\0alice\0secret-1", b"\0alice\0wrong-1"
ORDINARY = frame(MetadataRequest(topics=[]), 9)
ECHO = b"handled"
PARKED = b"\0\1parked"


class Slow(SaslServer):
    def __init__(self) -> None:
        super().__init__("SLOW")

    def evaluate(self, token: bytes, wall_ms: int) -> Derivation:
        def resume(derived: bytes) -> bytes:
            self.complete("slow")
            return derived

        return Derivation(lambda: b"computed", resume)


class House:
    """A listener, its clock, and whoever handles requests behind it."""

    def __init__(self, delay_ms: int = 0, max_reauth_ms: int = 0) -> None:
        self.now_ms = 1_000_000
        self.handled: list[tuple[str, bytes]] = []
        self.computing: list[Callable[[], None]] = []
        self.parked: list[Reply] = []
        mechanisms = {
            "PLAIN": Mechanism(lambda: PlainServer({"alice": "secret-1"}), max_reauth_ms),
            "SLOW": Mechanism(Slow),
        }
        self.keeper = GateKeeper(
            mechanisms,
            failure_delay_ms=delay_ms,
            receive_bytes_max=1000,
            timeout_ms=5000,
            dispatch=self.handle,
            wall_ms=lambda now_ms: now_ms,
            later=lambda ms, function: asyncio.get_running_loop().call_later(ms / 1000, function) and None,
            compute=lambda compute, done: self.computing.append(lambda: done(compute(), self.now_ms)),
        )
        self.listener = Listener(
            "SASL",
            "127.0.0.1",
            0,
            is_controller=False,
            handle=self.handle,
            limits=ListenerLimits(frame_bytes_max=100_000),
            scratch=Scratch(),
            clock=lambda: self.now_ms,
            gate_keeper=self.keeper,
        )

    def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        self.handled.append((context.principal, data[start:end]))
        reply = Reply()
        if data[start:end] == PARKED:
            self.parked.append(reply)
            return reply
        is_versions = data[start : start + 2] == b"\0\x12"
        said = b"\0\0\0\7\0\0rest" if is_versions else ECHO
        reply.complete([len(said).to_bytes(4, "big") + said])
        return reply

    @property
    def context(self) -> ClientContext:
        return next(iter(self.listener.connections)).context


class Client:
    def __init__(self, house: House) -> None:
        self.sock = socket.create_connection(("127.0.0.1", house.listener.port), patience(5))
        self.sock.setblocking(False)

    async def send(self, *frames: bytes) -> None:
        data = b"".join(struct.pack(">i", len(item)) + item for item in frames)
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    async def exactly(self, count: int) -> bytes | None:
        data = b""
        while len(data) < count:
            try:
                part = await asyncio.get_running_loop().sock_recv(self.sock, count - len(data))
            except ConnectionError:
                return None
            if not part:
                return None
            data += part
        return data

    async def receive(self) -> bytes | None:
        head = await self.exactly(4)
        return None if head is None else await self.exactly(struct.unpack(">i", head)[0])

    async def ask(self, data: bytes) -> bytes | None:
        await self.send(data)
        return await self.receive()

    async def log_in(self, token: bytes = RIGHT) -> int:
        assert answer(await self.ask(handshake("PLAIN")), 17, 1).error_code == 0
        return int(answer(await self.ask(authenticate(token)), 36, 2).error_code)


def run(scenario: Callable[[House, Client], Awaitable[None]], **settings: int) -> House:
    house = House(**settings)

    async def main() -> None:
        house.listener.bind()
        house.listener.start()
        client = Client(house)
        try:
            await asyncio.wait_for(scenario(house, client), patience(20))
        finally:
            client.sock.close()
            house.listener.close()

    asyncio.run(main())
    assert house.listener.unauthenticated_count == 0
    return house


def test_requests_reach_handlers_after_the_login_and_with_its_name() -> None:
    async def scenario(house: House, client: Client) -> None:
        assert await client.ask(frame(ApiVersionsRequest(), 0)) == b"\0\0\0\7\0\0rest"
        assert await client.log_in() == 0
        assert await client.ask(ORDINARY) == ECHO
        assert house.listener.unauthenticated_count == 0

    house = run(scenario)
    assert [principal for principal, _ in house.handled] == ["User:ANONYMOUS", "User:alice"]
    assert (house.keeper.successful_total, house.keeper.failed_total) == (1, 0)


@pytest.mark.parametrize("first", [ORDINARY, b"", b"rubbish", authenticate(RIGHT)])
def test_nothing_else_reaches_them(first: bytes) -> None:
    async def scenario(house: House, client: Client) -> None:
        await client.send(first, handshake("PLAIN"), authenticate(RIGHT), ORDINARY)
        assert await client.receive() is None

    house = run(scenario)
    assert house.handled == [] and house.keeper.failed_total == 1


def test_what_is_sent_behind_a_wrong_password_is_not_handled() -> None:
    async def scenario(house: House, client: Client) -> None:
        await client.send(handshake("PLAIN"), authenticate(WRONG), ORDINARY, authenticate(RIGHT), ORDINARY)
        assert answer(await client.receive(), 17, 1).error_code == 0
        assert answer(await client.receive(), 36, 2).error_code == 58
        assert await client.receive() is None

    for delay_ms in (0, 30):
        assert run(scenario, delay_ms=delay_ms).handled == []


def test_a_refusal_is_held_back_and_others_are_not() -> None:
    async def scenario(house: House, client: Client) -> None:
        begin = asyncio.get_running_loop().time()
        other = Client(house)
        refused = asyncio.ensure_future(client.log_in(WRONG))
        assert await other.log_in() == 0
        assert await other.ask(ORDINARY) == ECHO
        assert not refused.done()
        assert await refused == 58
        assert asyncio.get_running_loop().time() - begin >= 0.29
        assert await client.receive() is None
        other.sock.close()

    run(scenario, delay_ms=300)


def test_a_client_that_leaves_while_its_refusal_is_held_back() -> None:
    async def scenario(house: House, client: Client) -> None:
        await client.send(handshake("PLAIN"), authenticate(WRONG))
        await client.receive()
        client.sock.close()
        await asyncio.sleep(0.1)

    assert run(scenario, delay_ms=40).keeper.failed_total == 1


def test_frames_are_small_until_the_login_is_complete() -> None:
    async def scenario(house: House, client: Client) -> None:
        assert await client.log_in() == 0
        assert await client.ask(b"\0\3" + bytes(50_000)) == ECHO
        other = Client(house)
        await asyncio.get_running_loop().sock_sendall(other.sock, struct.pack(">i", 1001))
        assert await other.receive() is None
        other.sock.close()

    run(scenario)


def test_who_does_not_log_in_in_time_is_sent_away() -> None:
    async def scenario(house: House, client: Client) -> None:
        known = Client(house)
        assert await known.log_in() == 0
        await client.send(handshake("PLAIN"))
        await client.receive()
        house.now_ms += 4_999
        house.listener.on_timer()
        assert house.listener.unauthenticated_count == 1
        house.now_ms += 1
        house.listener.on_timer()
        assert await client.receive() is None
        assert await known.ask(ORDINARY) == ECHO
        known.sock.close()

    run(scenario)


def test_a_session_that_is_over_ends_with_the_next_request() -> None:
    async def scenario(house: House, client: Client) -> None:
        assert await client.log_in() == 0
        house.now_ms += 1_999
        assert await client.ask(ORDINARY) == ECHO
        assert await client.log_in() == 0
        house.now_ms += 1_999
        assert await client.ask(ORDINARY) == ECHO
        house.now_ms += 2
        assert await client.ask(ORDINARY) is None

    house = run(scenario, max_reauth_ms=2_000)
    keeper = house.keeper
    assert (keeper.successful_total, keeper.renewed_total, keeper.expired_total) == (1, 1, 1)


def test_a_login_that_is_refuted_later_ends_with_the_next_request() -> None:
    known: list[bool] = []

    def doubtful() -> SaslServer:
        server = PlainServer({"alice": "secret-1"})
        server.confirm = lambda: known[0] if known else None
        return server

    async def scenario(house: House, client: Client) -> None:
        house.keeper.mechanisms["PLAIN"].new_server = doubtful
        assert await client.log_in() == 0
        assert await client.ask(ORDINARY) == ECHO
        known.append(False)
        assert await client.ask(ORDINARY) is None

    assert len(run(scenario).handled) == 1


def test_after_its_end_a_session_can_still_be_renewed() -> None:
    async def scenario(house: House, client: Client) -> None:
        assert await client.log_in() == 0
        house.now_ms += 9_000
        assert await client.log_in() == 0
        assert await client.ask(ORDINARY) == ECHO
        assert await client.ask(handshake("PLAIN")) == ECHO, "too soon: an ordinary request"
        house.now_ms += 1_000
        assert await client.log_in(WRONG) == 58
        assert await client.receive() is None

    house = run(scenario, max_reauth_ms=2_000)
    assert (house.keeper.renewed_total, house.keeper.failed_renewal_total) == (1, 1)


@pytest.mark.parametrize("delay_ms", [0, 30])
def test_a_renewal_that_fails_is_told_after_earlier_answers_and_nothing_after_it(delay_ms: int) -> None:
    async def scenario(house: House, client: Client) -> None:
        assert await client.log_in() == 0
        house.now_ms += 1_500
        await client.send(PARKED, handshake("PLAIN"), authenticate(WRONG), ORDINARY)
        while house.keeper.failed_renewal_total == 0:
            await asyncio.sleep(0.001)
        await client.send(ORDINARY, handshake("PLAIN"), authenticate(RIGHT), ORDINARY)
        await asyncio.sleep(0.1)  # the time in which it could be answered too soon
        assert house.listener.connection_count == 1, "the earlier request is not forgotten"
        house.parked.pop().complete([struct.pack(">i", 5) + b"fetch"])
        assert await client.receive() == b"fetch"
        assert answer(await client.receive(), 17, 1).error_code == 0
        assert answer(await client.receive(), 36, 2).error_code == 58
        assert await client.receive() is None

    house = run(scenario, delay_ms=delay_ms, max_reauth_ms=60_000)
    assert [data for _, data in house.handled] == [PARKED]
    assert (house.keeper.renewed_total, house.keeper.failed_renewal_total) == (0, 1)


def test_what_is_computed_elsewhere_is_waited_for() -> None:
    async def scenario(house: House, client: Client) -> None:
        await client.send(handshake("SLOW"), authenticate(b"x"))
        await client.receive()
        while not house.computing:
            await asyncio.sleep(0.001)
        house.computing.pop()()
        assert answer(await client.receive(), 36, 2).auth_bytes == b"computed"
        assert await client.ask(ORDINARY) == ECHO
        # Somebody who does not wait, and somebody who leaves.
        for leaves in (False, True):
            other = Client(house)
            await other.send(handshake("SLOW"), authenticate(b"x"))
            await other.receive()
            while not house.computing:
                await asyncio.sleep(0.001)
            if leaves:
                other.sock.close()
            else:
                await other.send(ORDINARY)
                assert await other.receive() is None
            while house.listener.connection_count > 1:
                await asyncio.sleep(0.001)
            house.computing.pop()()
            other.sock.close()

    house = run(scenario)
    assert [principal for principal, _ in house.handled] == ["User:slow"]


def test_what_was_said_in_secret_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")

    async def scenario(house: House, client: Client) -> None:
        assert await client.log_in(WRONG) == 58
        for frames in ([handshake("PLAIN", 0), WRONG], [handshake("PLAIN"), RIGHT], [RIGHT]):
            other = Client(house)
            await other.send(*frames)
            while await other.receive() is not None:
                pass
            other.sock.close()

    run(scenario)
    assert "Failed authentication with 127.0.0.1" in caplog.text
    assert "secret-1" not in caplog.text and "wrong-1" not in caplog.text
