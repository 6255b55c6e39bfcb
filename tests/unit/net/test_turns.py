"""Turns of the event loop that take long are counted and told, with what they did and whether they worked or waited."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Any

import pytest

from moldau.net import turns as turns_module
from moldau.net.connection import FRAMES_PER_TURN_MAX, Connection
from moldau.net.framing import Scratch
from moldau.net.listener import Listener, ListenerLimits
from moldau.net.turns import DISK, REQUEST, TIMERS, Turns
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.server.clock import Clock
from moldau.server.metrics.loop import turn_metrics
from moldau.server.metrics.metric import to_text
from moldau.server.process import Pump, post
from tests.pace import patience


class FakeTime:
    """Stands still unless somebody works or waits."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.cpu_s = 7.0
        self.readings = 0
        self.cpu_readings = 0

    def clock(self) -> float:
        self.readings += 1
        return self.now_s

    def cpu_clock(self) -> float:
        self.cpu_readings += 1
        return self.cpu_s

    def work(self, seconds: float) -> None:
        self.now_s += seconds
        self.cpu_s += seconds

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


@pytest.fixture
def time() -> FakeTime:
    return FakeTime()


@pytest.fixture
def turns(time: FakeTime) -> Turns:
    return Turns(time.clock, time.cpu_clock)


@pytest.fixture(autouse=True)
def unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has the log to itself."""
    monkeypatch.setattr(turns_module.log, "filters", [type(turns_module.log.filters[0])()])


def run_turn(turns: Turns, what: Callable[[], None], name: str = "name") -> None:
    turns.begin()
    what()
    if turns.end():
        turns.tell(REQUEST, name, f"{name} from here")


def test_a_short_turn_is_counted_and_nothing_else(
    time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10):
        run_turn(turns, lambda: time.work(0.002))
        time.wait(1.0)  # between turns nobody is held up
    assert (turns.turns_total, turns.long_turns) == (10, {})
    assert turns.busy_seconds == pytest.approx(0.02)
    assert turns.longest_seconds == pytest.approx(0.002)
    assert not caplog.records


def test_a_long_turn_is_told_with_what_it_did(time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture) -> None:
    run_turn(turns, lambda: time.work(0.23), "Fetch")
    known = turns.long_turns[REQUEST, "Fetch"]
    assert (known.count, known.seconds, known.waited_seconds) == (1, pytest.approx(0.23), pytest.approx(0.0))
    assert turns.longest_seconds == pytest.approx(0.23)
    assert caplog.messages == [
        "the event loop was held up for 230 ms by Fetch from here: about 230 ms on the CPU, 0 ms waiting"
    ]
    assert caplog.records[0].levelno == logging.WARNING


def test_time_that_was_not_spent_on_the_cpu_is_told_apart(
    time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    for _ in range(10):
        run_turn(turns, lambda: time.work(0.001))

    def half_and_half() -> None:
        time.work(0.03)
        time.wait(0.17)

    run_turn(turns, half_and_half)
    run_turn(turns, lambda: time.work(0.1))
    known = turns.long_turns[REQUEST, "name"]
    assert known.count == 2
    assert known.waited_seconds == pytest.approx(0.17)
    assert caplog.messages[0].endswith("about 30 ms on the CPU, 170 ms waiting")
    assert caplog.messages[1].endswith("about 100 ms on the CPU, 0 ms waiting")


def test_a_turn_costs_two_readings_of_the_clock_and_now_and_then_one_of_the_cpu(time: FakeTime, turns: Turns) -> None:
    time.readings = time.cpu_readings = 0
    for _ in range(640):
        run_turn(turns, lambda: time.work(0.00001))
    assert time.readings == 2 * 640
    assert time.cpu_readings == 10


def test_the_log_is_not_filled(time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(200):
        run_turn(turns, lambda: time.work(0.06))
    assert turns.long_turns[REQUEST, "name"].count == 200
    assert len(caplog.records) < 100


def test_what_is_called_back_from_threads_is_named(time: FakeTime, turns: Turns) -> None:
    def on_synced(failure: OSError | None) -> None:
        time.wait(0.06)

    def run() -> None:
        async def main() -> None:
            failure = None
            post(asyncio.get_running_loop(), turns, lambda: on_synced(failure))
            await asyncio.sleep(0)
            await asyncio.sleep(0)

        asyncio.run(main())

    run()
    [(kind, what)] = turns.long_turns
    assert kind == DISK
    assert what.endswith("on_synced")


class SlowNode:
    """A node whose poll takes as long as a test says, part by part."""

    def __init__(self, time: FakeTime, parts: list[tuple[str, float]]) -> None:
        self.time = time
        self.parts = parts
        self.on_step: Callable[[str], None] = lambda name: None

    def set_wake_up(self, wake_at: Callable[[int], None]) -> None: ...

    def poll(self, now_ms: int) -> int:
        for name, seconds in self.parts:
            self.time.work(seconds)
            self.on_step(name)
        return 1 << 60


def test_of_the_nodes_timers_the_slowest_part_is_named(
    time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    async def main(parts: list[tuple[str, float]]) -> None:
        node: Any = SlowNode(time, parts)
        pump = Pump(node, Clock(), asyncio.get_running_loop(), lambda error: None, turns)
        pump.run()
        pump.stop()

    asyncio.run(main([("quorum", 0.001), ("housekeeping", 0.06), ("scrub", 0.02)]))
    asyncio.run(main([("quorum", 0.02), ("housekeeping", 0.02), ("scrub", 0.001)]))
    assert list(turns.long_turns) == [(TIMERS, "housekeeping")]
    [line] = caplog.messages
    assert line.startswith("the event loop was held up for 81 ms by housekeeping (timers), 60 ms of it: about 81 ms on")


def frame(key: int, body: bytes = b"") -> bytes:
    data = key.to_bytes(2, "big") + body
    return len(data).to_bytes(4, "big") + data


def serve(turns: Turns, sent: bytes, handled: int, slow: Callable[[int], None]) -> None:
    """A connection that gets these bytes and answers each frame at once; `slow` is called with its number."""

    async def main() -> None:
        count = 0
        everything = asyncio.Event()

        def handle(context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
            nonlocal count
            slow(count)
            count += 1
            if count == handled:
                everything.set()
            reply = Reply()
            reply.complete([b"answer"])
            return reply

        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        context = ClientContext("L", "client:1")
        loop = asyncio.get_running_loop()
        scratch = Scratch(turns=turns)
        connection = Connection(
            ours,
            loop,
            handle,
            context,
            scratch=scratch,
            frame_bytes_max=1000,
            clock=lambda: 1,
            on_close=lambda closed: None,
        )
        theirs.sendall(sent)
        await asyncio.wait_for(everything.wait(), patience(30))
        await asyncio.sleep(0)
        connection.close()
        theirs.close()

    asyncio.run(main())


def test_a_long_request_is_told_by_its_name_and_its_client(
    time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    serve(turns, frame(1), 1, lambda number: time.work(0.07))
    assert list(turns.long_turns) == [(REQUEST, "Fetch")]
    assert "by Fetch from client:1:" in caplog.messages[0]
    assert turns.frames is None


def test_several_requests_in_one_long_turn_are_all_named(
    time: FakeTime, turns: Turns, caplog: pytest.LogCaptureFixture
) -> None:
    serve(turns, frame(1) + frame(0) + frame(1), 3, lambda number: time.work(0.07))
    assert list(turns.long_turns) == [(REQUEST, "several")]
    assert "by Fetch, Produce from client:1:" in caplog.messages[0]


def test_requests_that_had_to_wait_for_their_turn_are_named_too(time: FakeTime, turns: Turns) -> None:
    frames = [frame(0)] * FRAMES_PER_TURN_MAX + [frame(3)]
    serve(turns, b"".join(frames), len(frames), lambda number: time.work(0.07 if number == len(frames) - 1 else 0.0))
    assert list(turns.long_turns) == [(REQUEST, "Metadata")]


def test_nonsense_does_not_make_the_watch_fail(time: FakeTime, turns: Turns) -> None:
    serve(turns, frame(9999), 1, lambda number: time.work(0.07))
    serve(turns, b"\x00\x00\x00\x01x", 1, lambda number: time.work(0.07))
    assert {what: long.count for (_, what), long in turns.long_turns.items()} == {"unknown": 2}


def test_accepting_is_watched(time: FakeTime, turns: Turns) -> None:
    class SlowListener(Listener):
        def _welcome(self, sock: socket.socket, host: str, port: int) -> None:
            time.work(0.1)
            sock.close()

    async def main() -> None:
        handle: Any = None
        listener = SlowListener(
            "L",
            "127.0.0.1",
            0,
            is_controller=False,
            handle=handle,
            limits=ListenerLimits(),
            scratch=Scratch(turns=turns),
            clock=lambda: 1_000,
        )
        listener.bind()
        listener.start()
        with socket.create_connection(("127.0.0.1", listener.port)):
            while not turns.turns_total:
                await asyncio.sleep(0.001)
        listener.close()

    asyncio.run(main())
    assert list(turns.long_turns) == [("accept", "L")]


def test_the_metrics_say_how_often_how_long_and_why(time: FakeTime, turns: Turns) -> None:
    run_turn(turns, lambda: time.work(0.2), "Fetch")
    run_turn(turns, lambda: time.wait(0.1), "Fetch")
    lines = to_text(turn_metrics(turns)).splitlines()
    assert 'moldau_loop_long_turns_total{kind="request",what="Fetch"} 2' in lines
    assert 'moldau_loop_long_turn_seconds_total{kind="request",what="Fetch"} 0.3' in lines
    assert 'moldau_loop_long_turn_waiting_seconds_total{kind="request",what="Fetch"} 0.1' in lines
    assert "moldau_loop_turns_total 2" in lines
    assert "moldau_loop_busy_seconds_total 0.3" in lines
    assert "moldau_loop_longest_turn_seconds 0.2" in lines
