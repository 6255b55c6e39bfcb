"""A listener takes as many connections as it may, and leaves the disk its descriptors."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from moldau.net.framing import Scratch
from moldau.net.listener import Listener, ListenerLimits

Scenario = Callable[[Listener], Awaitable[None]]


def run(limits: ListenerLimits, scenario: Scenario) -> None:
    async def main() -> None:
        handle: Any = None
        listener = Listener("L", "127.0.0.1", 0, False, handle, limits, Scratch(), lambda: 1_000_000)
        listener.bind()
        listener.start()
        try:
            await asyncio.wait_for(scenario(listener), 10)
        finally:
            listener.close()

    asyncio.run(main())


async def connect(listener: Listener) -> socket.socket:
    sock = socket.create_connection(("127.0.0.1", listener.port), 5)
    sock.setblocking(False)
    await asyncio.sleep(0.01)
    return sock


async def is_closed(sock: socket.socket) -> bool:
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().sock_recv(sock, 1), 0.05) == b""
    except TimeoutError:
        return False
    except ConnectionResetError:
        return True


def test_a_connection_is_refused_when_descriptors_run_short() -> None:
    async def scenario(listener: Listener) -> None:
        first = await connect(listener)
        assert not await is_closed(first)
        listener.limits.descriptors_max = 1
        second = await connect(listener)
        assert await is_closed(second) and listener.connection_count == 1 and listener.refused_total == 1
        listener.limits.descriptors_max = 1 << 31
        third = await connect(listener)
        assert not await is_closed(third) and listener.connection_count == 2
        for sock in (first, second, third):
            sock.close()

    run(ListenerLimits(), scenario)


def test_each_address_has_its_share() -> None:
    async def scenario(listener: Listener) -> None:
        first = await connect(listener)
        second = await connect(listener)
        assert await is_closed(second) and listener.connection_count == 1
        first.close()
        await asyncio.sleep(0.01)
        third = await connect(listener)
        assert not await is_closed(third)
        for sock in (second, third):
            sock.close()

    run(ListenerLimits(connections_per_address_max=1), scenario)


def test_the_next_client_waits_until_another_leaves() -> None:
    async def scenario(listener: Listener) -> None:
        first = await connect(listener)
        second = await connect(listener)
        assert listener.connection_count == 1 and not await is_closed(second)
        first.close()
        await asyncio.sleep(0.02)
        assert listener.connection_count == 1 and listener.accepted_total == 2
        second.close()

    run(ListenerLimits(connections_max=1), scenario)


def test_silent_connections_are_closed_after_their_time() -> None:
    async def scenario(listener: Listener) -> None:
        sock = await connect(listener)
        listener.close_idle()
        assert listener.connection_count == 1
        listener._clock = lambda: 1_000_101
        listener.close_idle()
        assert listener.connection_count == 0 and await is_closed(sock)
        sock.close()

    run(ListenerLimits(idle_ms_max=100), scenario)
