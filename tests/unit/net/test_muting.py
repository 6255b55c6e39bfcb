"""A muted connection: the answer leaves at once, then nothing is read and nothing handled until the time is over."""

from __future__ import annotations

import asyncio
import socket

import pytest

from moldau.net.connection import Connection
from moldau.net.framing import Scratch
from moldau.net.meter import LOOP_NS_MAX, TimeMeter
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.quota.client_quotas import ClientQuotas
from moldau.server.clock import Clock
from tests.pace import wait_until_async
from tests.unit.net.test_connection import Script, framed, receive, run, settle

LONG_MS = 60_000


class ThrottlingScript(Script):
    """`m` mutes for a long time, `s` for a short one; `w` waits, and may be completed with a throttle later."""

    def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
        body = data[start:end]
        if body[:1] not in (b"m", b"s"):
            return super().handle(context, data, start, end, now_ms)
        self.handled += 1
        reply = Reply()
        reply.mute_ms = LONG_MS if body[:1] == b"m" else 30
        reply.complete([body])
        return reply


def is_read(connection: Connection) -> bool:
    return bool(connection._reading)


def test_the_answer_comes_at_once_and_pipelined_frames_wait() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"n1", b"m2", b"n3", b"n4"))
        assert await receive(client, 4) == b"n1m2"
        client.send(framed(b"n5"))
        await settle()
        assert script.handled == 2, "frames that were read before do not slip through"
        assert not is_read(connection), "and none are read"

    run(scenario, ThrottlingScript())


def test_everything_is_handled_once_and_in_order_after_the_wait() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"s1", b"n2", b"s3", b"n4"))
        await asyncio.sleep(0)
        client.send(framed(b"s5", b"n6"))
        assert await receive(client, 12) == b"s1n2s3n4s5n6"
        assert script.handled == 6
        await wait_until_async(lambda: is_read(connection), 5, "it is not read again")

    run(scenario, ThrottlingScript())


def test_a_throttle_that_is_decided_later_stops_what_comes_after() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"w1", b"w2"))
        await settle()
        second = script.waiting[1][0]
        second.mute_ms = LONG_MS
        second.complete([b"w2"])
        client.send(framed(b"n3"))
        await settle()
        assert script.handled == 2
        script.waiting[0][0].complete([b"w1"])
        assert await receive(client, 4) == b"w1w2", "answers of what was handled before leave"
        assert not is_read(connection)

    run(scenario, ThrottlingScript())


def test_it_stays_muted_until_the_answer_was_sent_however_long_that_takes() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"w1", b"w2"))
        await settle()
        second = script.waiting[1][0]
        second.mute_ms = 1
        second.complete([b"w2"])
        await asyncio.sleep(0.05)
        client.send(framed(b"n3"))
        await settle()
        assert script.handled == 2, "the time is over, its answer still waits for its turn"
        script.waiting[0][0].complete([b"w1"])
        assert await receive(client, 6) == b"w1w2n3"

    run(scenario, ThrottlingScript())


def test_the_longest_wait_counts() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"w1", b"w2"))
        await settle()
        for (reply, body), mute_ms in zip(script.waiting, (LONG_MS, 1), strict=True):
            reply.mute_ms = mute_ms
            reply.complete([body])
        assert await receive(client, 4) == b"w1w2"
        await asyncio.sleep(0.05)
        client.send(framed(b"n3"))
        await settle()
        assert script.handled == 2

    run(scenario, ThrottlingScript())


def test_a_connection_closed_while_muted_leaves_no_timer() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"m1", b"n2"))
        assert await receive(client, 2) == b"m1"
        timer = connection._mute_timer
        assert timer is not None
        connection.close()
        assert timer.cancelled() and connection._mute_timer is None
        await settle()
        assert script.handled == 1

    run(scenario, ThrottlingScript())


def test_who_goes_away_while_muted_is_noticed_after_it() -> None:
    async def scenario(script: Script, client: socket.socket, connection: Connection) -> None:
        client.send(framed(b"s1"))
        assert await receive(client, 2) == b"s1"
        client.send(framed(b"02"))
        client.close()
        await wait_until_async(lambda: connection.closed, 5, "it is not closed")
        assert script.handled == 2, "what was sent before counts"

    run(scenario, ThrottlingScript())


def test_time_goes_to_the_connection_it_was_spent_on_and_only_while_it_is_asked_for() -> None:
    quotas = ClientQuotas()
    meter = TimeMeter(quotas)
    one, other = ClientContext("L", "one:1"), ClientContext("L", "other:1")
    first = meter.begin(one)
    spend()
    second = meter.begin(other)
    assert one.unbilled_ns > 0 and other.unbilled_ns == 0
    of_one = one.unbilled_ns
    spend()
    meter.end(second)
    assert one.unbilled_ns == of_one and other.unbilled_ns > 0
    spend()
    meter.end(first)
    assert one.unbilled_ns > of_one

    async def main() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        context, script = ClientContext("L", "test:1"), Script()
        loop = asyncio.get_running_loop()
        scratch = Scratch(meter=meter)
        connection = Connection(
            ours,
            loop,
            script.handle,
            context,
            scratch=scratch,
            frame_bytes_max=1000,
            clock=Clock(),
            on_close=lambda c: None,
        )
        theirs.send(framed(b"n1"))
        assert await receive(theirs, 2) == b"n1"
        assert context.unbilled_ns == 0
        quotas.apply({(("user", "x"),): {"request_percentage": 1.0}})
        theirs.send(framed(b"n2"))
        assert await receive(theirs, 2) == b"n2"
        await settle()
        assert context.unbilled_ns > 0
        connection.close()
        theirs.close()

    asyncio.run(main())


def spend() -> None:
    sum(range(20_000))


def test_what_the_loop_needs_to_serve_a_connection_is_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    clock_ns = [0]
    monkeypatch.setattr("time.thread_time_ns", lambda: clock_ns[0])
    meter = TimeMeter(ClientQuotas())
    one, other = ClientContext("L", "one:1"), ClientContext("L", "other:1")
    for whose, waited_ns, used_ns in ((one, 20_000, 1_000), (other, 3_000_000, 2_000)):
        clock_ns[0] += waited_ns
        before = meter.begin(whose)
        clock_ns[0] += used_ns
        meter.end(before)
    assert one.unbilled_ns == 21_000
    assert other.unbilled_ns == LOOP_NS_MAX + 2_000, "the node had work of its own"


def test_time_for_frames_that_waited_out_the_muting_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else whoever sends many at once would pay for the first one only."""
    clock_ns = [0]
    monkeypatch.setattr("time.thread_time_ns", lambda: clock_ns[0])

    class Busy(ThrottlingScript):
        def handle(self, context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
            clock_ns[0] += 1_000_000
            return super().handle(context, data, start, end, now_ms)

    async def main() -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        quotas = ClientQuotas()
        quotas.apply({(("user", "x"),): {"request_percentage": 1.0}})
        context, script = ClientContext("L", "test:1"), Busy()
        scratch = Scratch(meter=TimeMeter(quotas))
        loop = asyncio.get_running_loop()
        connection = Connection(
            ours,
            loop,
            script.handle,
            context,
            scratch=scratch,
            frame_bytes_max=1000,
            clock=Clock(),
            on_close=lambda c: None,
        )
        theirs.send(framed(b"s1", b"n2", b"n3"))
        assert await receive(theirs, 6) == b"s1n2n3"
        await settle()
        assert context.unbilled_ns == 3_000_000
        connection.close()
        theirs.close()

    asyncio.run(main())
