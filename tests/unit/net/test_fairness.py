"""Connections take turns: however much one sends, asks for or waits for, the others come next."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from moldau.net.connection import FRAME_BYTES_PER_TURN_MAX, FRAMES_PER_TURN_MAX, RECEIVED_PER_TURN_MAX, Connection
from moldau.net.framing import PIECE_BYTES_MAX, Scratch
from moldau.net.turns import FAIR_TURN_S, Turns
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from tests.pace import patience


class World:
    """Connections on one loop, a clock that only work moves, and who was handled in which order."""

    def __init__(self, scratch_bytes: int = 128 * 1024) -> None:
        self.now_s = 100.0
        self.turns = Turns(lambda: self.now_s, lambda: 0.0)
        self.scratch = Scratch(scratch_bytes, self.turns)
        self.work_s = 0.0
        self.handled: list[str] = []
        self.waiting: list[Reply] = []
        self.waits = False
        self.connections: list[Connection] = []
        self.peers: list[socket.socket] = []

    def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        self.handled.append(context.peer)
        self.now_s += self.work_s
        reply = Reply()
        if self.waits:
            self.waiting.append(reply)
        else:
            reply.complete([b"ok"])
        return reply

    def connect(self, peer: str, ours: socket.socket | None = None) -> Connection:
        if ours is None:
            ours, theirs = socket.socketpair()
            theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8 << 20)
            self.peers.append(theirs)
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        context = ClientContext("L", peer)
        connection = Connection(
            ours,
            loop,
            self.handle,
            context,
            scratch=self.scratch,
            frame_bytes_max=100 << 20,
            clock=lambda: 0,
            on_close=lambda connection: None,
        )
        self.connections.append(connection)
        return connection

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        for sock in self.peers:
            sock.close()


def run(scenario: Callable[[World], Awaitable[None]], scratch_bytes: int = 128 * 1024) -> None:
    async def main() -> None:
        world = World(scratch_bytes)
        try:
            await asyncio.wait_for(scenario(world), patience(30))
        finally:
            world.close()

    asyncio.run(main())


def frames(count: int, size: int = 10) -> bytes:
    return (size.to_bytes(4, "big") + bytes(size)) * count


async def handled_before_the_small_one(world: World, count: int, size: int) -> int:
    """How many frames of a giant are handled before the one of somebody else that was there all the time."""
    world.connect("giant")
    world.connect("small")
    giant, small = world.peers
    giant.setblocking(False)
    assert giant.send(frames(count, size)) == count * (size + 4)
    small.sendall(frames(1))
    while "small" not in world.handled:
        await asyncio.sleep(0)
    return world.handled.index("small")


@pytest.mark.parametrize(
    ("work_s", "size", "before"),
    [
        (0.0, 10, FRAMES_PER_TURN_MAX),
        (FAIR_TURN_S, 10, 4),
        (FAIR_TURN_S / 3, 10, 4),
        (0.0, 32 * 1024, FRAME_BYTES_PER_TURN_MAX // (32 * 1024)),
    ],
    ids=["small frames", "slow ones", "less slow ones", "large ones"],
)
def test_a_turn_is_bounded_in_frames_bytes_and_time(work_s: float, size: int, before: int) -> None:
    async def scenario(world: World) -> None:
        world.work_s = work_s
        assert await handled_before_the_small_one(world, 40, size) <= before
        while len(world.handled) < 41:
            await asyncio.sleep(0)

    run(scenario, scratch_bytes=4 << 20)


def test_a_connection_has_one_turn_at_a_time() -> None:
    """Answers that come one by one do not give the rest of its requests a turn each."""

    async def scenario(world: World) -> None:
        world.waits = True
        world.connect("giant")
        world.peers[0].sendall(frames(200))
        while len(world.handled) < 4 * FRAMES_PER_TURN_MAX:
            await asyncio.sleep(0)
        before = len(world.handled)
        for reply in world.waiting[:FRAMES_PER_TURN_MAX]:
            reply.complete([b"ok"])
        await asyncio.sleep(0)
        assert len(world.handled) - before <= FRAMES_PER_TURN_MAX

    run(scenario)


class Endless(socket.socket):
    """Has as many bytes as anybody wants to read."""

    received = 0

    def recv_into(self, buffer, nbytes=0, flags=0):  # type: ignore[no-untyped-def]
        view = memoryview(buffer)
        if self.received == 0:
            size = 96 << 20
            view[:4] = size.to_bytes(4, "big")
        self.received += len(view)
        return len(view)

    def recv(self, bufsize: int, flags: int = 0) -> bytes:
        self.received += bufsize
        return bytes(bufsize)


def test_a_giant_frame_is_received_in_many_turns() -> None:
    async def scenario(world: World) -> None:
        ours, theirs = socket.socketpair()
        world.peers.append(theirs)
        endless = Endless(ours.family, ours.type, ours.proto, ours.detach())
        connection = world.connect("giant", endless)
        turns = 0
        while not world.handled:
            before = endless.received
            connection._on_readable()
            turns += 1
            assert endless.received - before <= RECEIVED_PER_TURN_MAX + PIECE_BYTES_MAX
        assert turns > 10

    run(scenario)


def test_those_whom_one_append_finishes_do_not_all_leave_in_its_turn() -> None:
    async def scenario(world: World) -> None:
        connection = world.connect("producer")
        left: list[int] = []

        def advance() -> None:
            left.append(len(left))
            world.now_s += FAIR_TURN_S / 2

        world.turns.begin()
        connection._finish([advance] * 20)
        assert len(left) == 4
        for turn in range(2, 6):
            await asyncio.sleep(0)
            assert len(left) == 4 * turn

    run(scenario)
