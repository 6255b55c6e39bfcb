"""A listener takes as many connections as its limits allow, and leaves the disk its descriptors."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.net import listener as listener_module
from moldau.net.framing import Scratch
from moldau.net.listener import Listener, ListenerLimits
from moldau.net.listener_group import ListenerGroup
from moldau.net.turns import Turns
from moldau.quota.connection_quotas import ConnectionQuotas
from tests.pace import patience

Scenario = Callable[["Door"], Awaitable[None]]


class Door:
    """Listeners that share limits, and a clock that somebody has to move."""

    def __init__(self, *names: str) -> None:
        self.now_ms = 1_000_000
        self.turns = Turns()
        self.quotas = ConnectionQuotas("INSIDE")
        self.group = ListenerGroup(self.quotas, self.turns)
        self.listeners = [self.add(name) for name in names or ("L",)]

    def add(self, name: str) -> Listener:
        handle: Any = None
        scratch = Scratch(turns=self.turns)
        limits = ListenerLimits(idle_ms_max=100)
        return Listener(
            name,
            "127.0.0.1",
            0,
            is_controller=False,
            handle=handle,
            limits=limits,
            scratch=scratch,
            clock=lambda: self.now_ms,
            group=self.group,
        )

    @property
    def listener(self) -> Listener:
        return self.listeners[0]

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms
        for listener in self.listeners:
            listener.on_timer()


def run(scenario: Scenario, *names: str) -> None:
    async def main() -> None:
        door = Door(*names)
        try:
            for listener in door.listeners:
                listener.bind()
                listener.start()
            await asyncio.wait_for(scenario(door), patience(30))
        finally:
            for listener in door.listeners:
                listener.close()
        assert door.quotas.count == 0, "whoever leaves is not counted any more"

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def connect(listener: Listener) -> socket.socket:
    """A connection that the listener has taken from its backlog, or that has been there for a while in vain."""
    sock = socket.create_connection(("127.0.0.1", listener.port), patience(5))
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


async def is_closed_in_the_end(sock: socket.socket) -> bool:
    return await asyncio.get_running_loop().sock_recv(sock, 1) == b""


def test_a_connection_is_refused_when_descriptors_run_short() -> None:
    async def scenario(door: Door) -> None:
        listener = door.listener
        first = await connect(listener)
        assert not await is_closed(first)
        listener.limits.descriptors_max = 1
        second = await connect(listener)
        assert await is_closed_in_the_end(second) and listener.connection_count == 1 and listener.refused_total == 1
        listener.limits.descriptors_max = 1 << 31
        third = await connect(listener)
        await until(lambda: listener.connection_count == 2)
        for sock in (first, second, third):
            sock.close()

    run(scenario)


def test_each_address_has_its_share() -> None:
    async def scenario(door: Door) -> None:
        door.quotas.per_address_max = 1
        listener = door.listener
        first = await connect(listener)
        await until(lambda: listener.connection_count == 1)
        second = await connect(listener)
        assert await is_closed_in_the_end(second) and listener.connection_count == 1
        first.close()
        await until(lambda: listener.connection_count == 0)
        third = await connect(listener)
        await until(lambda: listener.connection_count == 1)
        for sock in (second, third):
            sock.close()

    run(scenario)


def test_the_next_client_waits_until_another_leaves() -> None:
    async def scenario(door: Door) -> None:
        door.quotas.connections_max = 1
        listener = door.listener
        first = await connect(listener)
        await until(lambda: listener.connection_count == 1)
        second = await connect(listener)
        await until(lambda: listener.is_waiting)
        assert listener.connection_count == 1 and not await is_closed(second)
        door.now_ms += 500
        first.close()
        await until(lambda: listener.accepted_total == 2)
        assert listener.connection_count == 1 and listener.blocked_ms_total == 500
        second.close()

    run(scenario)


def test_a_slot_of_one_listener_lets_in_who_waits_at_another() -> None:
    async def scenario(door: Door) -> None:
        door.quotas.connections_max = 1
        one, other = door.listeners
        first = await connect(one)
        await until(lambda: one.connection_count == 1)
        second = await connect(other)
        await until(lambda: other.is_waiting)
        first.close()
        await until(lambda: other.connection_count == 1)
        second.close()

    run(scenario, "L1", "L2")


def test_a_raised_limit_lets_in_who_waits() -> None:
    async def scenario(door: Door) -> None:
        door.quotas.connections_max = 0
        sock = await connect(door.listener)
        await until(lambda: door.listener.is_waiting)
        door.quotas.connections_max = 1
        door.group.changed()
        await until(lambda: door.listener.connection_count == 1)
        sock.close()

    run(scenario)


def test_a_listener_takes_nobody_while_one_waits_for_the_rate() -> None:
    async def scenario(door: Door) -> None:
        door.quotas.creation_rate_max = 1
        listener = door.listener
        socks = [await connect(listener) for _ in range(12)]
        await until(lambda: listener.connection_count == 10 and listener.is_waiting)
        assert listener.accepted_total == 10
        door.pass_ms(999)
        assert listener.connection_count == 10, "it waits for all of its delay"
        door.pass_ms(1)
        assert listener.connection_count == 11
        await until(lambda: listener.is_waiting)
        assert listener.connection_count == 11, "the one after it waits too"
        for sock in socks:
            sock.close()

    run(scenario)


def test_an_address_that_comes_too_often_is_left_unread_and_closed_after_its_delay() -> None:
    async def scenario(door: Door) -> None:
        listener = door.listener
        door.quotas.limit_addresses({"127.0.0.1": 1.0}, None)
        socks = [await connect(listener) for _ in range(12)]
        await until(lambda: listener.throttled_count == 2)
        assert listener.connection_count == 10 and listener.throttled_total == 2
        socks[-1].send(b"x" * 100)
        assert not await is_closed(socks[-1])
        door.pass_ms(999)
        assert listener.throttled_count == 2
        door.pass_ms(1)
        assert listener.throttled_count == 0
        assert await is_closed(socks[-1]) and await is_closed_in_the_end(socks[-2])
        assert not await is_closed(socks[0])
        for sock in socks:
            sock.close()

    run(scenario)


def test_sockets_that_wait_for_their_end_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(door: Door) -> None:
        monkeypatch.setattr(listener_module, "THROTTLED_MAX", 5)
        door.quotas.limit_addresses({}, 0.01)
        socks = [await connect(door.listener) for _ in range(20)]
        await until(lambda: door.listener.throttled_total == 20)
        assert door.listener.throttled_count == 5
        for sock in socks[:15]:
            assert await is_closed_in_the_end(sock)
        for sock in socks:
            sock.close()

    run(scenario)


def test_the_longest_silent_client_goes_for_a_broker() -> None:
    """The protected listener is let in above the limit; the connections of others make room, oldest first."""

    async def scenario(door: Door) -> None:
        outside, inside = door.listeners
        door.quotas.connections_max = 3
        socks = []
        for _ in range(3):
            door.now_ms += 10
            socks.append(await connect(outside))
        await until(lambda: outside.connection_count == 3)
        brokers = [await connect(inside) for _ in range(2)]
        await until(lambda: inside.connection_count == 2 and outside.connection_count == 1)
        assert await is_closed_in_the_end(socks[0]) and await is_closed_in_the_end(socks[1])
        assert not await is_closed(socks[2])
        brokers += [await connect(inside) for _ in range(3)]
        await until(lambda: inside.connection_count == 5 and outside.connection_count == 0)
        assert door.group.excess_closed_total == 3
        for sock in socks + brokers:
            sock.close()

    run(scenario, "OUTSIDE", "INSIDE")


def test_a_lowered_limit_closes_the_excess() -> None:
    async def scenario(door: Door) -> None:
        socks = [await connect(door.listener) for _ in range(4)]
        await until(lambda: door.listener.connection_count == 4)
        door.quotas.connections_max = 1
        door.group.changed()
        await until(lambda: door.listener.connection_count == 1)
        assert not await is_closed(socks[3]), "of those that were silent equally long the youngest stays"
        for sock in socks:
            sock.close()

    run(scenario)


def test_a_closed_listener_leaves_nothing_behind() -> None:
    async def scenario(door: Door) -> None:
        door.quotas.limit_addresses({}, 0.01)
        throttled = await connect(door.listener)
        await until(lambda: door.listener.throttled_count == 1)
        door.quotas.connections_max = 0
        waiting = await connect(door.listener)
        await until(lambda: door.listener.is_waiting)
        door.listener.close()
        assert await is_closed_in_the_end(throttled) and await is_closed_in_the_end(waiting)
        assert not door.listener.is_waiting and door.listener.throttled_count == 0
        throttled.close()
        waiting.close()

    run(scenario)


def test_silent_connections_are_closed_after_their_time() -> None:
    async def scenario(door: Door) -> None:
        sock = await connect(door.listener)
        await until(lambda: door.listener.connection_count == 1)
        door.listener.close_idle()
        assert door.listener.connection_count == 1
        door.now_ms += 101
        door.listener.close_idle()
        assert door.listener.connection_count == 0 and await is_closed_in_the_end(sock)
        sock.close()

    run(scenario)
