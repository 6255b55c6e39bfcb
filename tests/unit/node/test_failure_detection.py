"""A broker whose process is gone is fenced at once; nobody else ever is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.node.context import ClientContext
from moldau.node.failure_detection import GRACE_MS, PAUSE_MS, FailureDetection
from moldau.node.outbox import CLOSED, REFUSED, TIMED_OUT, UNREACHABLE, Answered, Channel, NoAnswer, Outbox
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.primitives import Message
from moldau.raft.core import NEVER_MS
from tests.unit.controller.world import World
from tests.unit.metadata.harness import Harness


class Probed(Channel):
    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[Answered] = []
        self.is_closed = False

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: Answered) -> None:
        assert not self.is_closed
        self.asked.append(answered)

    def close(self) -> None:
        self.is_closed = True


class Probes(Outbox):
    def __init__(self) -> None:
        self.channels: list[Probed] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        self.channels.append(Probed(port))
        return self.channels[-1]


class Watch:
    """Brokers 1 to 3, each with a connection that brings its heartbeats; node 1 decides."""

    def __init__(self) -> None:
        self.world = World()
        self.world.add_brokers(1, 2, 3)
        self.world.create("t", assignments=[[2, 1, 3]])
        self.is_active = True
        self.outbox = Probes()
        self.detection = FailureDetection(
            lambda: self.world.controller if self.is_active else None, self.submit, self.outbox, "PLAINTEXT", 1
        )
        self.connections: dict[int, ClientContext] = {}
        for broker_id in (2, 3):
            self.heartbeat(broker_id)

    def submit(self, verb: Callable[[Controller], Result], done: Callable[[Any], None], now_ms: int) -> None:
        done(self.world.run(verb(self.world.controller)))

    def heartbeat(self, broker_id: int) -> None:
        """Over the broker's connection, a new one if the last was closed."""
        context = self.connections.setdefault(broker_id, ClientContext("CONTROLLER", "peer", True))
        self.detection.on_heartbeat(context, broker_id, self.world.now_ms)
        self.world.heartbeat(broker_id)

    def close(self, broker_id: int) -> None:
        self.connections.pop(broker_id).closed(self.world.now_ms)

    def answer(self, what: Message | NoAnswer) -> None:
        """To the only question that is open."""
        [channel] = [channel for channel in self.outbox.channels if channel.asked]
        [answered] = channel.asked
        channel.asked = []
        answered(what, self.world.now_ms)

    @property
    def open_questions(self) -> list[int]:
        return [channel.port for channel in self.outbox.channels for _ in channel.asked]

    def turn(self, milliseconds: int) -> int:
        self.world.now_ms += milliseconds
        return self.detection.poll(self.world.now_ms)

    def refuse_twice(self) -> None:
        self.answer(NoAnswer(REFUSED))
        self.turn(PAUSE_MS)
        self.answer(NoAnswer(REFUSED))

    def is_fenced(self, broker_id: int) -> bool:
        return self.world.image.brokers[broker_id].fenced


def test_a_broker_that_is_refused_twice_after_its_connection_broke_is_fenced() -> None:
    w = Watch()
    w.close(2)
    assert w.open_questions == [9092]
    w.answer(NoAnswer(REFUSED))
    assert not w.is_fenced(2)
    assert w.detection.poll(w.world.now_ms) == w.world.now_ms + PAUSE_MS
    assert w.turn(PAUSE_MS) == NEVER_MS
    w.answer(NoAnswer(REFUSED))
    assert w.is_fenced(2)
    assert (w.world.partition("t").leader, w.world.partition("t").isr) == (1, (1, 3))
    assert all(channel.is_closed for channel in w.outbox.channels)


@pytest.mark.parametrize("answer", [ApiVersionsResponse(), NoAnswer(TIMED_OUT), NoAnswer(UNREACHABLE)])
def test_any_answer_and_any_silence_leave_the_broker_to_its_session(answer: Message | NoAnswer) -> None:
    w = Watch()
    w.close(2)
    w.answer(NoAnswer(REFUSED))
    w.turn(PAUSE_MS)
    w.answer(answer)
    assert w.turn(10 * PAUSE_MS) == NEVER_MS
    assert not w.open_questions and not w.is_fenced(2)


def test_refusals_must_follow_each_other() -> None:
    """A connection that is closed at once proves that somebody was there a moment ago."""
    w = Watch()
    w.close(2)
    for _ in range(2):
        w.answer(NoAnswer(REFUSED))
        w.turn(PAUSE_MS)
        w.answer(NoAnswer(CLOSED))
        w.turn(PAUSE_MS)
    w.answer(NoAnswer(REFUSED))
    assert w.turn(PAUSE_MS) == NEVER_MS
    assert not w.open_questions and not w.is_fenced(2)


def test_a_process_that_dies_while_it_is_asked_is_found_out_by_the_next_probes() -> None:
    w = Watch()
    w.close(2)
    w.answer(NoAnswer(CLOSED))
    w.turn(PAUSE_MS)
    w.refuse_twice()
    assert w.is_fenced(2)


def test_a_heartbeat_over_a_new_connection_saves_the_broker() -> None:
    w = Watch()
    w.close(2)
    w.answer(NoAnswer(REFUSED))
    w.heartbeat(2)
    w.turn(PAUSE_MS)
    w.answer(NoAnswer(REFUSED))
    assert not w.is_fenced(2)


def test_a_broker_that_was_fenced_wrongly_is_back_with_its_next_heartbeat() -> None:
    w = Watch()
    w.close(2)
    w.refuse_twice()
    assert w.is_fenced(2)
    w.heartbeat(2)
    assert not w.is_fenced(2)


def test_only_the_connection_of_the_last_heartbeat_counts() -> None:
    w = Watch()
    old = w.connections.pop(2)
    w.heartbeat(2)
    old.closed(w.world.now_ms)
    assert not w.open_questions


def test_a_connection_is_watched_once_whatever_comes_over_it() -> None:
    """Nobody can fill the node's memory with heartbeats of brokers that do not exist, or by taking turns."""
    w = Watch()
    strange, other = ClientContext("CONTROLLER", "peer", True), ClientContext("CONTROLLER", "peer", True)
    for broker_id in range(100, 200):
        w.detection.on_heartbeat(strange, broker_id, 0)
    assert strange.on_closed is None
    for _ in range(50):
        w.detection.on_heartbeat(strange, 2, 0)
        w.detection.on_heartbeat(other, 2, 0)
    assert strange.on_closed is not None and len(strange.on_closed) == 1


def test_a_broker_that_is_fenced_too_often_is_left_to_its_session_for_a_while() -> None:
    w = Watch()
    for _ in range(3):
        w.close(2)
        w.refuse_twice()
        assert w.is_fenced(2)
        w.turn(1000)
        w.heartbeat(2)
    w.close(2)
    assert not w.open_questions
    w.heartbeat(2)
    w.turn(60_000)
    w.close(2)
    assert w.open_questions == [9092]


def test_a_new_active_controller_asks_for_those_it_has_not_heard_of() -> None:
    w = Watch()
    w.world.controller.state.contacts.clear()
    w.detection.on_controller_active(w.world.now_ms)
    assert w.detection.poll(w.world.now_ms) == w.world.now_ms + GRACE_MS
    w.heartbeat(3)
    w.turn(GRACE_MS)
    assert w.open_questions == [9092]
    w.refuse_twice()
    assert w.is_fenced(2) and not w.is_fenced(3)


def test_a_controller_that_is_not_active_any_more_asks_nobody() -> None:
    w = Watch()
    w.close(2)
    w.answer(NoAnswer(REFUSED))
    w.is_active = False
    assert w.turn(PAUSE_MS) == NEVER_MS
    w.close(3)
    assert not w.open_questions and all(channel.is_closed for channel in w.outbox.channels)


def test_losing_touch_elsewhere_is_not_enough_while_heartbeats_come() -> None:
    """A refused fetch makes the controller look, but only a broken heartbeat connection lets it fence."""
    w = Watch()
    w.detection.on_channel_failed(2, REFUSED, w.world.now_ms)
    w.refuse_twice()
    assert not w.is_fenced(2)


def test_a_process_that_comes_back_at_once_may_register_though_the_session_of_the_last_one_lasts() -> None:
    w = Watch()
    w.close(2)
    w.world.register(2, incarnation=2)
    assert w.world.image.brokers[2].incarnation_id[1] == 2
    w.answer(NoAnswer(REFUSED))
    assert w.turn(PAUSE_MS) == NEVER_MS
    w.answer(NoAnswer(REFUSED))
    assert w.world.record_names() == [], "it has another epoch now, and is fenced until it has caught up"


def test_a_node_that_was_fenced_wrongly_leads_again_after_its_next_heartbeat() -> None:
    """With the real life of a broker on the other side: it goes on with its heartbeats, whatever it was told."""
    harness = Harness()
    harness.start()
    harness.run(lambda: harness.ready)
    harness.create("t")
    epoch = harness.node.image.brokers[1].broker_epoch

    def fence(controller: Controller) -> Result:
        controller.brokers.connection_lost(1, epoch)
        return controller.fence_broker(1, epoch)

    assert harness.ask(fence) is True
    assert harness.node.image.topics_by_name["t"].partitions[0].leader == -1
    harness.run(lambda: not harness.node.image.brokers[1].fenced, 2_001)
    partition = harness.node.image.topics_by_name["t"].partitions[0]
    assert (partition.leader, partition.leader_epoch, partition.leader_recovery_state) == (1, 2, 0)
