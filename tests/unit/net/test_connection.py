"""A connection sends replies in the order of the requests, in bounded memory, and closes on what it cannot read."""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.net.connection import FRAMES_PER_TURN_MAX, REPLIES_WAITING_MAX, UNSENT_BYTES_MAX, Connection
from moldau.net.framing import Scratch
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.protocol.primitives import DecodeError
from moldau.protocol.records_data import FileRecords
from moldau.server.clock import Clock
from moldau.server.posix_disk import PosixDisk
from tests.pace import patience, wait_until_async


class Script:
    """Stands in for the dispatcher: a frame's first byte says what happens to it."""

    def __init__(self) -> None:
        self.waiting: list[tuple[Reply, bytes]] = []
        self.handled = 0
        self.abandoned = 0
        self.parts: dict[int, list[Any]] = {}

    def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        self.handled += 1
        body = data[start:end]
        reply = Reply()
        if body[:1] == b"n":
            reply.complete([body])
        elif body[:1] == b"w":
            self.waiting.append((reply, body))
            reply.on_abandon = self._on_abandon
        elif body[:1] == b"f":
            reply.complete(list(self.parts[body[1]]))
        elif body[:1] == b"c":
            reply.close_connection = True
            reply.complete([body])
        elif body[:1] == b"0":
            reply.complete(None)
        elif body[:1] == b"b":
            raise ZeroDivisionError("a bug")
        else:
            raise DecodeError("not a request")
        return reply

    def _on_abandon(self) -> None:
        self.abandoned += 1


Scenario = Callable[[Script, socket.socket, Connection], Awaitable[None]]


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        theirs = socket.create_connection(listener.getsockname())
        return listener.accept()[0], theirs


def run(
    scenario: Scenario,
    script: Script | None = None,
    pair: Callable[[], tuple[socket.socket, socket.socket]] = socket.socketpair,
) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        ours, theirs = pair()
        ours.setblocking(False)
        theirs.setblocking(False)
        dispatcher: Any = script if script is not None else Script()
        connection = Connection(
            ours,
            loop,
            dispatcher.handle,
            ClientContext("L", "test:1"),
            scratch=Scratch(),
            frame_bytes_max=10_000_000,
            clock=Clock(),
            on_close=lambda c: None,
        )
        try:
            await asyncio.wait_for(scenario(dispatcher, theirs, connection), patience(10))
        finally:
            connection.close()
            theirs.close()

    asyncio.run(main())


def framed(*bodies: bytes) -> bytes:
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


async def receive(sock: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < size:
        chunk = await loop.sock_recv(sock, size - len(data))
        if not chunk:
            break
        data += chunk
    return data


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    await asyncio.sleep(0.01)


@pytest.mark.parametrize("pair", [tcp_pair, socket.socketpair])
@pytest.mark.parametrize("pause_s", [0.0, 0.001])
def test_large_frames_arrive_whole_however_they_are_cut(
    pair: Callable[[], tuple[socket.socket, socket.socket]], pause_s: float
) -> None:
    """A large frame behind another one is read in one piece once it is there, or put together from several."""
    bodies = [b"n" + os.urandom(size) for size in (300_000, 1_000_000, 5, 900_000, 400_000, 6_000_000, 3, 700_000)]

    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        loop = asyncio.get_running_loop()

        async def send() -> None:
            data = framed(*bodies)
            for start in range(0, len(data), 211_111):
                await loop.sock_sendall(client, data[start : start + 211_111])
                await asyncio.sleep(pause_s)

        sending = asyncio.create_task(send())
        for body in bodies:
            assert await receive(client, len(body)) == body
        await sending

    run(scenario, pair=pair)


def test_a_client_that_goes_away_inside_a_large_frame_is_noticed() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        large = b"n" + bytes(500_000)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(client, framed(large))
        assert await receive(client, len(large)) == large
        await loop.sock_sendall(client, framed(large)[:300_000])
        await settle()
        assert not connection.closed
        client.close()
        await wait_until_async(lambda: connection.closed, 10)
        assert script.handled == 1

    run(scenario, pair=tcp_pair)


def test_replies_leave_in_the_order_of_the_requests() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"w1", b"n2", b"w3", b"n4"))
        await settle()
        assert script.handled == 4, "later requests start while an earlier one waits"
        script.waiting[1][0].complete([b"w3"])
        await settle()
        script.waiting[0][0].complete([b"w1"])
        assert await receive(client, 8) == b"w1n2w3n4"

    run(scenario)


def test_a_request_without_an_answer_does_not_hold_up_the_next() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"0", b"n1"))
        assert await receive(client, 2) == b"n1"

    run(scenario)


@pytest.mark.parametrize("frame", [b"?", b"b"])
def test_a_frame_that_cannot_be_handled_closes_only_its_connection(frame: bytes) -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"n1", frame))
        assert await receive(client, 100) == b"n1", "what came before it is answered"
        assert connection.closed

    run(scenario)


def test_what_was_answered_is_sent_before_a_close() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"n1", b"c2", b"n3"))
        assert await receive(client, 100) == b"n1c2"
        assert connection.closed

    run(scenario)


def test_many_small_requests_do_not_keep_the_others_waiting() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        count = 20 * FRAMES_PER_TURN_MAX
        client.send(framed(*[b"n%04d" % number for number in range(count)]))
        steps = [0]
        while steps[-1] < count:
            await asyncio.sleep(0)
            steps.append(script.handled)
        assert max(after - before for before, after in itertools.pairwise(steps)) <= FRAMES_PER_TURN_MAX
        assert await receive(client, 5 * count) == b"".join(b"n%04d" % number for number in range(count))

    run(scenario)


def test_nothing_is_read_behind_the_request_that_ends_the_connection() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        script.parts[1] = [bytes(900_000)]
        client.send(framed(b"f\x01", b"c2"))
        await settle()
        assert script.handled == 2 and not connection.closed
        client.send(framed(b"n3"))
        await settle()
        assert script.handled == 2
        assert len(await receive(client, 1_000_000)) == 900_002

    run(scenario)


def test_parked_requests_hear_that_the_client_left() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"w1", b"w2"))
        await settle()
        client.close()
        await settle()
        assert connection.closed and script.abandoned == 2
        script.waiting[0][0].complete([b"late"])

    run(scenario)


def test_a_client_that_does_not_read_is_not_read_from() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        loop = asyncio.get_running_loop()
        body = b"n" + bytes(60_000)
        sender = asyncio.ensure_future(loop.sock_sendall(client, framed(*[body] * 400)))
        await asyncio.sleep(0.3)
        assert not sender.done()
        assert connection._unsent_bytes < UNSENT_BYTES_MAX + 3 * len(body)
        received = await receive(client, 400 * len(body))
        assert received == body * 400
        await sender

    run(scenario)


def test_the_number_of_waiting_requests_is_bounded() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        total = 3 * REPLIES_WAITING_MAX
        client.send(framed(*[b"w"] * total))
        await settle()
        assert script.handled == REPLIES_WAITING_MAX
        answered = 0
        while answered < total:
            batch, script.waiting = script.waiting, []
            for reply, _ in batch:
                reply.complete([b"!"])
                answered += 1
            await settle()
        assert await receive(client, total) == b"!" * total

    run(scenario)


def test_file_regions_are_sent_between_bytes(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    content = os.urandom(3_000_000)
    path.write_bytes(content)
    script = Script()
    file = PosixDisk(lambda function: function()).open(str(path))
    script.parts[1] = [b"head", FileRecords(file, 10, 2_500_000), b"middle", FileRecords(file, 0, 7), b"tail"]

    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"f\x01", b"n-end"))
        expected = b"head" + content[10:2_500_010] + b"middle" + content[:7] + b"tail" + b"n-end"
        assert await receive(client, len(expected)) == expected

    run(scenario, script)


def test_a_file_that_became_shorter_ends_the_connection(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(100))
    script = Script()
    file = PosixDisk(lambda function: function()).open(str(path))
    script.parts[1] = [b"head", FileRecords(file, 0, 1000)]

    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"f\x01"))
        assert len(await receive(client, 10_000)) <= 104
        assert connection.closed

    run(scenario, script)


def test_whoever_asked_is_told_once_that_the_connection_is_gone() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        told: list[int] = []
        connection.context.on_closed = [told.append]
        client.close()
        await settle()
        assert connection.closed
        assert len(told) == 1 and told[0] > 0
        connection.close()
        await settle()
        assert len(told) == 1

    run(scenario)


class CountingSocket(socket.socket):
    """Counts what leaves."""

    sends = 0

    def send(self, *arguments: Any) -> int:
        self.sends += 1
        return super().send(*arguments)


def test_replies_that_another_connection_finishes_in_one_turn_leave_together() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        script, scratch = Script(), Scratch()
        ours, theirs = socket.socketpair()
        waiter = CountingSocket(fileno=ours.detach())
        finisher, other = socket.socketpair()
        for sock in (waiter, theirs, finisher, other):
            sock.setblocking(False)

        def finish(context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
            for waiting, body in script.waiting:
                waiting.complete([body])
            assert waiter.sends == 0, "nothing leaves in the middle of a turn"
            return script.handle(context, b"n", 0, 1, now_ms)

        connections = [
            Connection(
                sock,
                loop,
                handle,
                ClientContext("L", "test:1"),
                scratch=scratch,
                frame_bytes_max=1000,
                clock=Clock(),
                on_close=lambda c: None,
            )
            for sock, handle in ((waiter, script.handle), (finisher, finish))
        ]
        theirs.send(framed(b"w1", b"w2", b"w3"))
        await settle()
        other.send(framed(b"go"))
        assert await receive(theirs, 6) == b"w1w2w3"
        assert waiter.sends == 1
        for connection in connections:
            connection.close()
        for sock in (theirs, other):
            sock.close()

    asyncio.run(main())


def test_a_few_records_leave_together_with_what_stands_around_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = PosixDisk()
    file = disk.open(str(tmp_path / "segment"), create=True)
    file.append([bytes(range(200))])
    script = Script()
    script.parts[1] = [b"head", FileRecords(file, 50, 100), b"tail"]

    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"f\x01"))
        await settle()
        assert client.recv(1000) == b"head" + bytes(range(50, 150)) + b"tail"

    def sendfile(*arguments: int) -> int:
        raise AssertionError("not worth a call of its own")

    monkeypatch.setattr(os, "sendfile", sendfile)
    run(scenario, script)
    disk.close()
