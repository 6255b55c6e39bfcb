"""Lookups of names while the name server hangs: one for a name, few threads, and nobody is forgotten."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from moldau.net.outbound import SocketOutbox
from moldau.net.resolver import THREADS_MAX, Found, Resolver
from moldau.node.outbox import NoResponse
from moldau.protocol.messages.vote_request import VoteRequest
from moldau.protocol.primitives import Message
from moldau.server.clock import Clock
from tests.pace import patience, patience_ms

VOTE = 52


class NameServer:
    """Answers nothing until it is told to; counts who has asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers = threading.Event()

    def getaddrinfo(self, host: str, port: object, **kind: object) -> list[Any]:
        self.asked.append(host)
        assert self.answers.wait(patience(30)), "the test ended without an answer"
        if host == "nobody":
            raise socket.gaierror("no such name")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0))]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server.getaddrinfo)
    yield server
    server.answers.set()


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), patience(30)))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_all_who_ask_for_a_name_share_one_lookup(server: NameServer) -> None:
    async def scenario() -> None:
        resolver = Resolver(asyncio.get_running_loop())
        got: list[tuple[int, list[Found]]] = []
        for asker in (1, 2, 1):
            resolver.resolve("slow", asker, asker, lambda attempt, found: got.append((attempt, found)))
        await until(lambda: len(server.asked) == 1)
        server.answers.set()
        await until(lambda: len(got) == 2)
        assert got == [(1, [(socket.AF_INET, "127.0.0.1")]), (2, [(socket.AF_INET, "127.0.0.1")])]
        resolver.resolve("slow", 1, 3, lambda attempt, found: got.append((attempt, found)))
        await until(lambda: len(got) == 3)
        assert server.asked == ["slow", "slow"], "what was found is not kept: addresses change"

    run(scenario)


def test_more_names_than_threads_wait_for_their_turn(server: NameServer) -> None:
    async def scenario() -> None:
        resolver = Resolver(asyncio.get_running_loop())
        got: list[str] = []
        names = [f"host-{number}" for number in range(3 * THREADS_MAX)]
        for number, name in enumerate(names):
            resolver.resolve(name, self_key, number, lambda number, found: got.append(names[number]))
        resolver.resolve("nobody", self_key, 0, lambda number, found: got.append(f"nobody {found}"))
        for name in names[-3:]:
            resolver.forget(name, self_key)
        await until(lambda: len(server.asked) == THREADS_MAX)
        await asyncio.sleep(0.05)
        assert len(server.asked) == THREADS_MAX
        server.answers.set()
        await until(lambda: len(got) == len(names) - 3 + 1)
        assert sorted(got) == sorted([*names[:-3], "nobody []"])
        assert not set(names[-3:]) & set(server.asked), "nobody waited for these any more"

    self_key = object()
    run(scenario)


def test_attempts_to_connect_while_a_name_server_hangs_make_no_threads(
    server: NameServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every attempt gives up after a while and the next one begins; when the name server is back, that one connects."""
    monkeypatch.setattr("moldau.net.outbound.CONNECT_TIMEOUT_MS", 20)

    async def scenario() -> None:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        outbox = SocketOutbox(loop, Clock(), "test")
        channel = outbox.open("raft", "slow", listener.getsockname()[1])
        failures: list[object] = []

        def ask_again(answer: Message | NoResponse, now_ms: int) -> None:
            failures.append(answer)
            channel.send(VOTE, 2, VoteRequest(), patience_ms(5000), ask_again)

        channel.send(VOTE, 2, VoteRequest(), patience_ms(5000), ask_again)
        await until(lambda: len(failures) >= 5)
        assert server.asked == ["slow"]
        server.answers.set()
        accepted, _ = await loop.sock_accept(listener)
        accepted.close()
        outbox.close()
        listener.close()

    run(scenario)
