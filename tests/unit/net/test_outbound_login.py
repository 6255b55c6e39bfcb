"""A node logs in at another one: before its first request, again when a session ends, and what happens if it cannot."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import pytest

from moldau.net.outbound import SocketOutbox
from moldau.net.outbound_login import OutboundLogin
from moldau.node.outbox import CLOSED, NoResponse
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from moldau.protocol.primitives import Message
from moldau.security.exchange import LoginRefused, SaslClient
from moldau.security.plain import PlainClient
from moldau.security.scram import Keys, ScramClient, ScramServer, ScramUsers, keys_of, salted_password
from moldau.server.clock import Clock
from tests.pace import patience
from tests.unit.net.test_outbound import TIMEOUT_MS, Answers, Peer, framed

API_VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36
SECRET = "secret-1"


class Node(Peer):
    """The other node."""

    async def answer_handshake(self, mechanism: str = "PLAIN", error: int = 0) -> None:
        header, request = await self.request()
        assert isinstance(request, SaslHandshakeRequest) and request.mechanism == mechanism
        assert header.request_api_version == 1
        await self.reply(header.correlation_id, HANDSHAKE, 1, SaslHandshakeResponse(error, ["PLAIN"]))

    async def answer_token(self, error: int = 0, said: bytes = b"", lifetime_ms: int = 0) -> bytes:
        header, request = await self.request()
        assert isinstance(request, SaslAuthenticateRequest) and header.request_api_version == 2
        message = "not today" if error else ""
        response = SaslAuthenticateResponse(error, message, said, lifetime_ms)
        await self.reply(header.correlation_id, AUTHENTICATE, 2, response)
        return bytes(request.auth_bytes)

    async def reply(self, correlation_id: int, key: int, version: int, response: Message) -> None:
        await self.send(framed(correlation_id, key, version, response))

    async def answer_versions(self) -> None:
        header, request = await self.request()
        assert isinstance(request, ApiVersionsRequest)
        await self.reply(header.correlation_id, API_VERSIONS, 0, ApiVersionsResponse())


Scenario = Callable[[Node, SocketOutbox], Awaitable[None]]


def run(scenario: Scenario, new_client: Callable[[], SaslClient] = lambda: PlainClient("node", SECRET)) -> None:
    async def main() -> None:
        node = Node()
        loop = asyncio.get_running_loop()
        outbox = SocketOutbox(loop, Clock(), "moldau-7")
        outbox.login = OutboundLogin(loop, new_client)
        try:
            await asyncio.wait_for(scenario(node, outbox), patience(20))
        finally:
            outbox.close()
            node.close()

    asyncio.run(main())


def ask(outbox: SocketOutbox, node: Node, answers: Answers, count: int = 1) -> object:
    channel = outbox.open("raft", "127.0.0.1", node.port)
    for _ in range(count):
        channel.send(API_VERSIONS, 0, ApiVersionsRequest(), TIMEOUT_MS, answers)
    return channel


def test_requests_wait_for_the_login() -> None:
    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers = Answers()
        ask(outbox, node, answers, 3)
        await node.accept()
        await node.answer_handshake()
        assert await node.answer_token() == f"\0node\0{SECRET}".encode()
        for _ in range(3):
            await node.answer_versions()
        got = await answers.count(3)
        assert not any(isinstance(answer, NoResponse) for answer in got)

    run(scenario)


def test_scram_with_several_steps() -> None:
    salted = salted_password("SCRAM-SHA-256", SECRET.encode(), b"salt", 4096)
    keys = keys_of("SCRAM-SHA-256", salted, b"salt", 4096)

    def find(mechanism: str, name: str) -> Keys | None:
        return keys if name == "node" else None

    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers = Answers()
        ask(outbox, node, answers)
        server = ScramServer("SCRAM-SHA-256", ScramUsers(find, lambda token: None, b""), "nonce")
        await node.accept()
        await node.answer_handshake("SCRAM-SHA-256")
        for _ in range(2):
            header, request = await node.request()
            assert isinstance(request, SaslAuthenticateRequest)
            said = server.evaluate(bytes(request.auth_bytes), 0)
            assert isinstance(said, bytes)
            await node.reply(header.correlation_id, AUTHENTICATE, 2, SaslAuthenticateResponse(0, "", said))
        assert server.principal == "User:node"
        await node.answer_versions()
        assert not isinstance((await answers.count(1))[0], NoResponse)

    run(scenario, lambda: ScramClient("SCRAM-SHA-256", "node", SECRET, "mine"))


@pytest.mark.parametrize("where", ["handshake", "token", "client", "proof", "nonsense", "hang up"])
def test_whoever_is_not_let_in_is_told_so_once(where: str, caplog: pytest.LogCaptureFixture) -> None:
    def new_client() -> SaslClient:
        if where == "client":
            raise LoginRefused("there is no token")
        if where == "proof":
            return ScramClient("SCRAM-SHA-256", "node", SECRET, "mine")
        return PlainClient("node", SECRET)

    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers = Answers()
        ask(outbox, node, answers, 2)
        await node.accept()
        with contextlib.suppress(EOFError, ConnectionError):
            if where == "nonsense":
                await node.request()
                await node.send(b"\0\0\0\5\0\0\0\x63x")
            elif where == "hang up":
                await node.request()
                node.hang_up()
            elif where != "client":
                name = "SCRAM-SHA-256" if where == "proof" else "PLAIN"
                await node.answer_handshake(name, 33 if where == "handshake" else 0)
                await node.answer_token(58 if where == "token" else 0, b"nonsense" if where == "proof" else b"")
        await answers.count(2)
        assert answers.reasons() == [CLOSED, CLOSED]

    run(scenario, new_client)
    assert SECRET not in caplog.text
    if where not in ("nonsense", "hang up"):
        assert "failed authentication due to" in caplog.text
    if where == "token":
        assert "not today" in caplog.text


def test_the_next_request_tries_again_on_a_new_connection() -> None:
    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers = Answers()
        channel = outbox.open("raft", "127.0.0.1", node.port)
        for lets_in in (False, True):
            channel.send(API_VERSIONS, 0, ApiVersionsRequest(), TIMEOUT_MS, answers)
            await node.accept()
            await node.answer_handshake()
            await node.answer_token(0 if lets_in else 58)
            if lets_in:
                await node.answer_versions()
            await answers.count(2 if lets_in else 1)
        assert [isinstance(answer, NoResponse) for answer in answers.got] == [True, False]

    run(scenario)


def test_a_session_is_renewed_behind_what_is_on_its_way() -> None:
    """The request that was asked before is answered in the middle of the login, and those after it wait."""

    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers, later = Answers(), Answers()
        channel = outbox.open("raft", "127.0.0.1", node.port)
        channel.send(API_VERSIONS, 0, ApiVersionsRequest(), TIMEOUT_MS, answers)
        await node.accept()
        await node.answer_handshake()
        await node.answer_token(lifetime_ms=100)
        header, _ = await node.request()
        await asyncio.sleep(0.12)
        channel.send(API_VERSIONS, 0, ApiVersionsRequest(), TIMEOUT_MS, later)
        await node.reply(header.correlation_id, API_VERSIONS, 0, ApiVersionsResponse())
        await node.answer_handshake()
        await answers.count(1)
        await node.answer_token(lifetime_ms=0)
        await node.answer_versions()
        await later.count(1)
        channel.send(API_VERSIONS, 0, ApiVersionsRequest(), TIMEOUT_MS, later)
        await node.answer_versions()
        await later.count(2)
        assert not any(isinstance(answer, NoResponse) for answer in answers.got + later.got)

    run(scenario)


def test_a_login_that_is_not_answered_ends() -> None:
    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers = Answers()
        channel = outbox.open("raft", "127.0.0.1", node.port)
        channel.send(API_VERSIONS, 0, ApiVersionsRequest(), 100, answers)
        await node.accept()
        await answers.count(1)
        assert isinstance(answers.got[0], NoResponse)

    run(scenario)


def test_a_channel_that_is_closed_meanwhile_is_silent() -> None:
    async def scenario(node: Node, outbox: SocketOutbox) -> None:
        answers = Answers()
        channel = outbox.open("raft", "127.0.0.1", node.port)
        channel.send(API_VERSIONS, 0, ApiVersionsRequest(), TIMEOUT_MS, answers)
        await node.accept()
        await node.request()
        channel.close()
        await asyncio.sleep(0.05)
        assert answers.got == []

    run(scenario)
