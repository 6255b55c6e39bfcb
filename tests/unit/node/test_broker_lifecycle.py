"""A broker's life, answer by answer, with a controller that the test plays."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.node.broker_lifecycle import BrokerLifecycle
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_heartbeat_response import BrokerHeartbeatResponse
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest
from moldau.protocol.messages.broker_registration_response import BrokerRegistrationResponse
from moldau.protocol.stored.metadata_records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from moldau.records.clocks import NEVER_MS

SETTINGS = {
    "broker.heartbeat.interval.ms": 2000,
    "broker.session.timeout.ms": 9000,
    "initial.broker.registration.timeout.ms": 60_000,
}


class World:
    """Keeps what was asked; an answer is given when the test says so."""

    def __init__(self) -> None:
        self.metadata = SimpleNamespace(
            node_id=1,
            cluster_id="c",
            incarnation_id=b"i" * 16,
            config=SimpleNamespace(get_int=SETTINGS.__getitem__, rack=None),
            image=MetadataImage(),
            is_active_controller=False,
            leader_destination=lambda: (2, "host", 9002),
            on_leader_changed=[],
        )
        self.asked: list[tuple[Any, Callable[[Any, int], None]]] = []
        self.events: list[str] = []
        metadata: Any = self.metadata
        channel: Any = self
        self.lifecycle = BrokerLifecycle(metadata, channel)
        self.lifecycle.on_gave_up = lambda why: self.events.append(f"gave up: {why}")

    def ask(self, api_key: int, request: Any, done: Any, now_ms: int, timeout_ms: int) -> None:
        assert not self.asked, "one question at a time"
        self.asked.append((request, done))

    def join(self) -> World:
        caught_up, unfenced = lambda: self.events.append("caught up"), lambda: self.events.append("unfenced")
        self.lifecycle.join([], [b"d" * 16], -1, 0, caught_up, unfenced)
        return self

    def answer(self, answer: Any, now_ms: int) -> Any:
        request, done = self.asked.pop()
        done(answer, now_ms)
        return request

    def apply(self, record: Any, offset: int, now_ms: int) -> None:
        delta = MetadataDelta(self.metadata.image)
        delta.replay(record)
        self.metadata.image = delta.apply(offset, 1, now_ms)
        self.lifecycle.on_metadata(delta, self.metadata.image, now_ms)

    def running(self) -> World:
        self.join().answer(BrokerRegistrationResponse(broker_epoch=10), 5)
        self.apply(RegisterBrokerRecord(1, False, b"i" * 16, 10, fenced=True), 10, 6)
        self.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), 7)
        assert self.events == ["caught up", "unfenced"] and self.lifecycle.is_unfenced
        return self

    def next_request(self) -> Any:
        self.lifecycle.poll(self.lifecycle.next_ms)
        return self.asked[-1][0]


def test_a_broker_wants_to_be_fenced_until_it_has_its_own_registration() -> None:
    world = World().join()
    request = world.answer(BrokerRegistrationResponse(broker_epoch=10), 5)
    assert isinstance(request, BrokerRegistrationRequest) and request.log_dirs == [b"d" * 16]
    heartbeat = world.next_request()
    assert isinstance(heartbeat, BrokerHeartbeatRequest) and heartbeat.want_fence
    world.answer(BrokerHeartbeatResponse(is_fenced=True), 2006)
    assert world.events == []
    world.apply(RegisterBrokerRecord(1, False, b"i" * 16, 10, fenced=True), 10, 2100)
    assert world.events == ["caught up"]
    heartbeat = world.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), 2101)
    assert not heartbeat.want_fence and heartbeat.current_metadata_offset == 10
    assert world.events == ["caught up", "unfenced"]
    assert world.lifecycle.next_ms == 2100 + 2000


def test_a_registration_is_tried_until_the_timeout_and_then_given_up() -> None:
    world = World().join()
    while not world.events:
        world.answer(KafkaError(errors.DUPLICATE_BROKER_REGISTRATION), world.lifecycle.next_ms % NEVER_MS)
        if world.lifecycle.next_ms < NEVER_MS:
            world.next_request()
    assert len(world.events) == 1 and world.events[0].startswith("gave up: ")


def test_a_broker_that_is_not_known_any_more_registers_again() -> None:
    world = World().running()
    world.next_request()
    world.answer(KafkaError(errors.STALE_BROKER_EPOCH), 2008)
    assert world.lifecycle.broker_epoch == -1 and not world.lifecycle.is_unfenced
    assert isinstance(world.next_request(), BrokerRegistrationRequest)
    world.answer(BrokerRegistrationResponse(broker_epoch=20), 2060)
    world.apply(RegisterBrokerRecord(1, False, b"i" * 16, 20, fenced=True), 20, 2070)
    world.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), 2071)
    assert world.lifecycle.is_unfenced and world.lifecycle.broker_epoch == 20
    assert world.events == ["caught up", "unfenced"], "the node is told once"


def test_a_broker_that_sees_itself_fenced_asks_to_be_let_in_at_once() -> None:
    world = World().running()
    world.apply(BrokerRegistrationChangeRecord(1, 10, fenced=1), 11, 500)
    heartbeat = world.answer(BrokerHeartbeatResponse(is_caught_up=True, is_fenced=False), 501)
    assert isinstance(heartbeat, BrokerHeartbeatRequest) and world.lifecycle.is_unfenced


def test_a_new_leader_hears_of_the_broker_at_once() -> None:
    world = World().running()
    world.metadata.on_leader_changed[0](300)
    assert isinstance(world.asked[-1][0], BrokerHeartbeatRequest)


def test_a_heartbeat_without_an_answer_is_followed_by_another_soon() -> None:
    world = World().running()
    world.next_request()
    world.answer(KafkaError(errors.NETWORK_EXCEPTION), 2010)
    assert world.lifecycle.next_ms == 2060
    world.next_request()
    world.answer(KafkaError(errors.NETWORK_EXCEPTION), 2070)
    assert world.lifecycle.next_ms == 2170, "and the pauses grow"


def test_the_pause_between_two_tries_is_no_longer_than_that_between_two_heartbeats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A controller whose disk is slow hears them and does not respond: with a short session it must hear enough."""
    monkeypatch.setitem(SETTINGS, "broker.heartbeat.interval.ms", 375)
    monkeypatch.setitem(SETTINGS, "broker.session.timeout.ms", 1500)
    world = World().running()
    for _ in range(20):
        world.next_request()
        sent_ms = world.lifecycle.next_ms - 375
        world.answer(KafkaError(errors.REQUEST_TIMED_OUT, "timed out"), sent_ms + 750)
        assert world.lifecycle.next_ms - sent_ms <= 750 + 375


def test_a_failed_directory_is_told_with_the_next_turn_and_every_heartbeat_after() -> None:
    world = World().running()
    world.lifecycle.report_offline_directory(b"x" * 16, 100)
    assert world.lifecycle.next_ms == 100 and not world.asked
    for _ in range(2):
        assert world.next_request().offline_log_dirs == [b"x" * 16]
        world.answer(BrokerHeartbeatResponse(is_fenced=False), world.lifecycle.next_ms)


def test_a_leaving_broker_asks_again_after_a_pause_and_never_inside_an_answer() -> None:
    world = World().running()
    world.lifecycle.leave(100, lambda: world.events.append("left"))
    now_ms = 100
    for _ in range(3):
        request = world.answer(BrokerHeartbeatResponse(is_fenced=False), now_ms)
        assert request.want_shut_down and not world.asked
        assert world.lifecycle.next_ms == now_ms + 20
        now_ms = world.lifecycle.next_ms
        world.lifecycle.poll(now_ms)
    world.answer(BrokerHeartbeatResponse(is_fenced=True, should_shut_down=True), now_ms)
    assert world.events[-1] == "left" and world.lifecycle.next_ms == NEVER_MS


def test_a_leaving_broker_that_nobody_answers_goes_after_two_seconds() -> None:
    world = World().running()
    world.lifecycle.leave(100, lambda: world.events.append("left"))
    while "left" not in world.events:
        if world.asked:
            world.answer(KafkaError(errors.NETWORK_EXCEPTION), world.lifecycle.next_ms)
        world.lifecycle.poll(world.lifecycle.next_ms)
        assert world.lifecycle.next_ms in (NEVER_MS, *range(5000))


def test_another_brokers_controlled_shutdown_is_acknowledged_at_once() -> None:
    world = World().running()
    world.apply(RegisterBrokerRecord(2, False, b"j" * 16, 11, fenced=False), 11, 300)
    assert not world.asked
    world.apply(BrokerRegistrationChangeRecord(2, 11, in_controlled_shutdown=1), 12, 400)
    assert world.asked[-1][0].current_metadata_offset == 12
