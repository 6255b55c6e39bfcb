"""The way to the active controller: answered once, failed at once when another one leads, asked again where wanted."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from moldau.node.controller_channel import ControllerChannel, has_no_response
from moldau.node.outbox import CLOSED, TIMED_OUT, Channel, NoResponse, OnResponse, Outbox
from moldau.protocol import errors
from moldau.protocol.api_table import ALLOCATE_PRODUCER_IDS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.allocate_producer_ids_request import AllocateProducerIdsRequest
from moldau.protocol.messages.allocate_producer_ids_response import AllocateProducerIdsResponse
from moldau.protocol.primitives import Message

REQUEST = AllocateProducerIdsRequest(1, 2)
ANSWER = AllocateProducerIdsResponse(producer_id_start=5, producer_id_len=1)


class FakeMetadata:
    """A node that follows whoever the test says leads."""

    def __init__(self) -> None:
        self.config = SimpleNamespace(get_int=lambda name: 30_000)
        self.on_leader_changed: list[Callable[[int], None]] = []
        self.is_active_controller = False
        self.leader_id = 2
        self.leader_epoch = 1
        self.port: int | None = 9002
        self.now_ms = 7

    def leader_destination(self) -> tuple[int, str, int] | None:
        return None if self.leader_id < 0 or self.port is None else (self.leader_id, "host", self.port)

    def submit(self, verb: Any, done: Callable[[Any, int], None], now_ms: int) -> None:
        done(ANSWER, self.now_ms)

    def lead(self, leader_id: int, port: int | None) -> None:
        self.leader_id, self.port = leader_id, port
        self.leader_epoch += 1
        for callback in self.on_leader_changed:
            callback(100)


class FakeChannel(Channel):
    def __init__(self, port: int) -> None:
        self.port = port
        self.closed = False
        self.asked: list[tuple[int, OnResponse]] = []

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        assert not self.closed
        self.asked.append((timeout_ms, answered))

    def close(self) -> None:
        self.closed = True


class FakeOutbox(Outbox):
    def __init__(self) -> None:
        self.channels: list[FakeChannel] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        self.channels.append(FakeChannel(port))
        return self.channels[-1]


class World:
    def __init__(self) -> None:
        self.metadata = FakeMetadata()
        self.outbox = FakeOutbox()
        self.channel = ControllerChannel(self.metadata, self.outbox)  # type: ignore[arg-type]
        self.answers: list[Any] = []

    def done(self, answer: Any, now_ms: int) -> None:
        self.answers.append(answer.code if isinstance(answer, KafkaError) else answer)

    def ask(self) -> None:
        self.channel.ask(ALLOCATE_PRODUCER_IDS, REQUEST, self.done, 0)

    def ask_until(self, deadline_ms: int) -> None:
        self.channel.ask_until(deadline_ms, ALLOCATE_PRODUCER_IDS, REQUEST, self.done, 0)

    def answer(self, answer: Message | NoResponse, now_ms: int, channel: int = -1, number: int = -1) -> None:
        self.outbox.channels[channel].asked[number][1](answer, now_ms)


@pytest.fixture
def world() -> World:
    return World()


def test_an_answer_is_passed_on_and_an_error_in_it_is_that_error(world: World) -> None:
    world.ask()
    world.ask()
    world.answer(ANSWER, 1, number=0)
    world.answer(AllocateProducerIdsResponse(error_code=errors.STALE_BROKER_EPOCH), 2, number=1)
    assert world.answers == [ANSWER, errors.STALE_BROKER_EPOCH]
    assert len(world.outbox.channels) == 1


def test_nobody_to_ask_is_said_at_once(world: World) -> None:
    world.metadata.port = None
    world.ask()
    assert world.answers == [errors.NOT_CONTROLLER] and not world.outbox.channels


@pytest.mark.parametrize(
    ("reason", "code"), [(CLOSED, errors.NETWORK_EXCEPTION), (TIMED_OUT, errors.REQUEST_TIMED_OUT)]
)
def test_no_answer_is_an_error_that_says_so(world: World, reason: int, code: int) -> None:
    world.ask()
    world.answer(NoResponse(reason), 1)
    assert world.answers == [code] and has_no_response(KafkaError(code))


def test_what_waits_for_a_controller_that_was_replaced_fails_at_once_and_only_once(world: World) -> None:
    world.ask()
    world.metadata.lead(3, 9003)
    assert world.answers == [errors.NOT_CONTROLLER] and world.outbox.channels[0].closed
    world.answer(ANSWER, 200, channel=0)
    assert world.answers == [errors.NOT_CONTROLLER]
    world.ask()
    assert world.outbox.channels[-1].port == 9003


def test_it_fails_at_once_also_when_the_new_ones_address_is_not_known_yet(world: World) -> None:
    world.ask()
    world.metadata.lead(3, None)
    assert world.answers == [errors.NOT_CONTROLLER]


def test_a_leader_that_is_only_being_looked_for_may_still_answer(world: World) -> None:
    world.ask()
    world.metadata.lead(-1, None)
    world.answer(ANSWER, 50)
    assert world.answers == [ANSWER]


def test_a_leader_that_was_elected_again_may_have_lost_what_it_was_asked_before(world: World) -> None:
    world.ask()
    world.metadata.lead(2, 9002)
    assert world.answers == [errors.NOT_CONTROLLER] and world.outbox.channels[0].closed


def test_a_persistent_question_is_asked_after_growing_pauses_until_its_deadline(world: World) -> None:
    world.ask_until(1000)
    now_ms, asked_at = 0, [0]
    while not world.answers:
        world.answer(NoResponse(CLOSED), now_ms)
        if not world.answers:
            now_ms = world.channel.poll(now_ms)
            world.channel.poll(now_ms)
            asked_at.append(now_ms)
    assert asked_at == [0, 20, 60, 140, 300, 620, 1000]
    assert world.answers == [errors.REQUEST_TIMED_OUT]


def test_a_persistent_question_goes_to_a_new_leader_at_once(world: World) -> None:
    world.ask_until(30_000)
    world.metadata.lead(3, 9003)
    assert not world.answers and [channel.port for channel in world.outbox.channels] == [9002, 9003]
    world.answer(AllocateProducerIdsResponse(error_code=errors.NOT_CONTROLLER), 101)
    assert not world.answers, "it leads, and is not active yet"
    world.channel.poll(121)
    world.answer(ANSWER, 122)
    assert world.answers == [ANSWER]


def test_a_node_that_becomes_the_active_controller_answers_itself(world: World) -> None:
    world.ask_until(30_000)
    world.metadata.is_active_controller = True
    world.metadata.lead(1, None)
    assert world.answers == [ANSWER]
