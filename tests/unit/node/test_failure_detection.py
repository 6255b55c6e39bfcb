"""A broker whose process is gone is fenced at once; nobody else ever is.

Every case of docs/adr/0014-fencing-before-the-session-ends.md is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.metadata.delta import MetadataDelta
from moldau.node.context import ClientContext
from moldau.node.failure_detection import GRACE_MS, PAUSE_MS, FailureDetection
from moldau.node.outbox import CLOSED, REFUSED, TIMED_OUT, UNREACHABLE, Channel, NoResponse, OnResponse, Outbox
from moldau.node.responsive_endpoints import RETRY_MAX_MS, RETRY_MIN_MS, ResponsiveEndpoints
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.messages.broker_registration_request import Listener
from moldau.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from moldau.protocol.messages.controller_registration_request import Listener as ControllerListener
from moldau.protocol.messages.unregister_broker_request import UnregisterBrokerRequest
from moldau.protocol.primitives import Message
from moldau.records.clocks import NEVER_MS
from tests.unit.controller.world import World
from tests.unit.metadata.harness import Harness

INTERVAL_MS = 2000
OWN, EXTERNAL, INTERNAL, CONTROLLERS = 9092, 9192, 9292, 9093


class Probed(Channel):
    def __init__(self, host: str, port: int) -> None:
        self.address = (host, port)
        self.asked: list[OnResponse] = []
        self.is_closed = False

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        assert not self.is_closed
        self.asked.append(answered)

    def close(self) -> None:
        self.is_closed = True
        self.asked = []


class Probes(Outbox):
    def __init__(self) -> None:
        self.channels: list[Probed] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        self.channels.append(Probed(host, port))
        return self.channels[-1]


class Watch:
    """Brokers 1 to 3, each with a connection that brings its heartbeats; node 1 decides.

    Their listeners are `end_points`, at hosts of their own; those that are `controllers` have an endpoint as such too.
    At first everybody answers who is not `deaf`.
    """

    def __init__(
        self,
        listener: str | None = "PLAINTEXT",
        end_points: dict[str, int] | None = None,
        controllers: tuple[int, ...] = (),
        deaf: tuple[int, ...] = (),
        hosts: tuple[str, ...] = ("h1", "h2", "h3"),
    ) -> None:
        self.world = World()
        names = end_points if end_points is not None else {"PLAINTEXT": OWN}
        for number, host in enumerate(hosts, 1):
            self.world.register(number, listeners=[Listener(name, host, port, 0) for name, port in names.items()])
            self.world.heartbeat(number)
        for number in controllers:
            listeners = [ControllerListener("CONTROLLER", f"h{number}", CONTROLLERS, 0)]
            request = ControllerRegistrationRequest(number, bytes(16), False, listeners)
            self.world.run(self.world.controller.register_controller(request, self.world.now_ms))
        self.world.create("t", assignments=[[2, 1, 3]])
        self.is_active = True
        self.outbox = Probes()
        self.endpoints = ResponsiveEndpoints(self.outbox, listener, 1)
        self.detection = FailureDetection(
            lambda: self.world.controller if self.is_active else None,
            self.submit,
            self.outbox,
            self.endpoints,
            1,
            INTERVAL_MS,
        )
        self.connections: dict[int, ClientContext] = {}
        self.endpoints.apply_image(self.world.image, self.world.now_ms)
        self.turn(0)
        self.answer_all(deaf)
        for broker_id in (2, 3):
            self.heartbeat(broker_id)
        self.detection.on_controller_active(self.world.now_ms - INTERVAL_MS)
        self.turn(0)

    def submit(self, verb: Callable[[Controller], Result], done: Callable[[Any, int], None], now_ms: int) -> None:
        done(self.world.run(verb(self.world.controller)), now_ms)

    def heartbeat(self, broker_id: int) -> None:
        """Over the broker's connection, a new one if the last was closed."""
        context = self.connections.setdefault(broker_id, ClientContext("CONTROLLER", "peer", True))
        self.detection.on_heartbeat(context, broker_id, self.world.now_ms)
        self.world.heartbeat(broker_id)

    def close(self, broker_id: int) -> None:
        self.connections.pop(broker_id).closed(self.world.now_ms)

    def answer_all(self, deaf: tuple[int, ...] = ()) -> None:
        """Everybody answers, but at the ports in `deaf` connections are refused."""
        for channel in [channel for channel in self.outbox.channels if channel.asked]:
            is_deaf = channel.address[1] in deaf
            self._answer(channel, NoResponse(REFUSED) if is_deaf else ApiVersionsResponse())

    def answer(self, *what: Message | NoResponse) -> None:
        """To the questions that are open, in their order."""
        channels = [channel for channel in self.outbox.channels if channel.asked]
        assert len(channels) == len(what), self.open_questions
        for channel, each in zip(channels, what, strict=True):
            self._answer(channel, each)

    def _answer(self, channel: Probed, what: Message | NoResponse) -> None:
        asked, channel.asked = channel.asked, []
        for answered in asked:
            answered(what, self.world.now_ms)

    @property
    def open_questions(self) -> list[int]:
        return [channel.address[1] for channel in self.outbox.channels for _ in channel.asked]

    def turn(self, milliseconds: int) -> int:
        self.world.now_ms += milliseconds
        return self.detection.poll(self.world.now_ms)

    def refuse_twice(self) -> None:
        for _ in range(2):
            self.answer(*[NoResponse(REFUSED) for _ in self.open_questions])
            self.turn(PAUSE_MS)

    def elect(self) -> None:
        """This controller is a new one, and nobody has found it yet."""
        self.world.controller.state.contacts.clear()
        self.detection.on_controller_active(self.world.now_ms)

    def is_fenced(self, broker_id: int) -> bool:
        return self.world.image.brokers[broker_id].fenced


def test_a_broker_that_is_refused_twice_after_its_connection_broke_is_fenced() -> None:
    w = Watch()
    w.close(2)
    assert w.open_questions == [OWN]
    w.answer(NoResponse(REFUSED))
    assert not w.is_fenced(2)
    assert w.detection.poll(w.world.now_ms) == w.world.now_ms + PAUSE_MS
    assert w.turn(PAUSE_MS) == NEVER_MS
    w.answer(NoResponse(REFUSED))
    assert w.is_fenced(2)
    assert (w.world.partition("t").leader, w.world.partition("t").isr) == (1, (1, 3))
    assert all(channel.is_closed for channel in w.outbox.channels)


@pytest.mark.parametrize("answer", [ApiVersionsResponse(), NoResponse(TIMED_OUT), NoResponse(UNREACHABLE)])
def test_any_answer_and_any_silence_leave_the_broker_to_its_session(answer: Message | NoResponse) -> None:
    w = Watch()
    w.close(2)
    w.answer(NoResponse(REFUSED))
    w.turn(PAUSE_MS)
    w.answer(answer)
    assert w.turn(10 * PAUSE_MS) == NEVER_MS
    assert not w.open_questions and not w.is_fenced(2)


def test_refusals_must_follow_each_other() -> None:
    """A connection that is closed at once proves that somebody was there a moment ago."""
    w = Watch()
    w.close(2)
    for _ in range(2):
        w.answer(NoResponse(REFUSED))
        w.turn(PAUSE_MS)
        w.answer(NoResponse(CLOSED))
        w.turn(PAUSE_MS)
    w.answer(NoResponse(REFUSED))
    assert w.turn(PAUSE_MS) == NEVER_MS
    assert not w.open_questions and not w.is_fenced(2)


def test_a_process_that_dies_while_it_is_asked_is_found_out_by_the_next_probes() -> None:
    w = Watch()
    w.close(2)
    w.answer(NoResponse(CLOSED))
    w.turn(PAUSE_MS)
    w.refuse_twice()
    assert w.is_fenced(2)


def test_a_heartbeat_over_a_new_connection_saves_the_broker() -> None:
    w = Watch()
    w.close(2)
    w.answer(NoResponse(REFUSED))
    w.heartbeat(2)
    w.turn(PAUSE_MS)
    w.answer(NoResponse(REFUSED))
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
    assert w.open_questions == [OWN]


# A new active controller


def test_a_new_active_controller_asks_for_those_it_has_not_heard_of_for_a_heartbeat_interval() -> None:
    w = Watch()
    w.elect()
    assert w.turn(GRACE_MS) == w.world.now_ms + INTERVAL_MS - GRACE_MS
    w.heartbeat(3)
    w.turn(INTERVAL_MS - GRACE_MS - 1)
    assert not w.open_questions, "broker 2 may not have found it yet"
    w.turn(1)
    assert w.open_questions == [OWN]
    w.refuse_twice()
    assert w.is_fenced(2) and not w.is_fenced(3)


def test_a_broker_that_found_the_new_controller_and_goes_is_looked_for_when_the_interval_is_over() -> None:
    w = Watch()
    w.elect()
    w.heartbeat(3)
    w.heartbeat(2)
    w.turn(GRACE_MS)
    w.close(2)
    assert not w.open_questions
    w.turn(INTERVAL_MS - GRACE_MS)
    w.refuse_twice()
    assert w.is_fenced(2) and not w.is_fenced(3)


def test_a_node_that_was_broker_and_controller_is_fenced_at_once_when_both_refuse() -> None:
    """Most often it was the active controller: nobody has to wait for others to find the next one."""
    w = Watch(controllers=(1, 2, 3))
    w.elect()
    w.heartbeat(3)
    w.turn(GRACE_MS)
    assert w.open_questions == [OWN, CONTROLLERS]
    w.refuse_twice()
    assert w.is_fenced(2) and not w.is_fenced(3)


@pytest.mark.parametrize("answering", [0, 1])
def test_a_node_that_refuses_only_as_one_of_both_is_left_to_its_session(answering: int) -> None:
    w = Watch(controllers=(1, 2, 3))
    w.elect()
    w.heartbeat(3)
    w.turn(GRACE_MS)
    answers: list[Message | NoResponse] = [NoResponse(REFUSED), NoResponse(REFUSED)]
    answers[answering] = ApiVersionsResponse()
    w.answer(*answers)
    assert w.turn(PAUSE_MS) == w.world.now_ms + INTERVAL_MS - GRACE_MS - PAUSE_MS
    assert not w.open_questions and not w.is_fenced(2)


def test_a_node_whose_endpoint_as_controller_never_answered_is_given_the_interval() -> None:
    w = Watch(controllers=(1, 2, 3), deaf=(CONTROLLERS,))
    w.elect()
    w.heartbeat(3)
    w.turn(GRACE_MS)
    assert OWN not in w.open_questions


# Endpoints


def test_a_refusal_where_nobody_ever_answered_says_nothing() -> None:
    w = Watch(deaf=(OWN,))
    w.close(2)
    assert not w.open_questions
    w.elect()
    for _ in range(30):
        w.turn(INTERVAL_MS // 10)
        w.answer_all((OWN,))
    assert not w.is_fenced(2) and not w.is_fenced(3)


def test_an_endpoint_that_is_refused_is_asked_again_more_and_more_seldom_until_it_answers() -> None:
    w = Watch(deaf=(OWN,))
    waits = []
    for _ in range(12):
        at_ms = w.detection.poll(w.world.now_ms)
        waits.append(at_ms - w.world.now_ms)
        w.turn(at_ms - w.world.now_ms)
        assert w.open_questions == [OWN, OWN]
        w.answer_all((OWN,))
    assert waits[:3] == [RETRY_MIN_MS, 2 * RETRY_MIN_MS, 4 * RETRY_MIN_MS] and waits[-1] == RETRY_MAX_MS
    w.turn(RETRY_MAX_MS)
    w.answer_all()
    assert w.turn(RETRY_MAX_MS) == NEVER_MS
    w.close(2)
    w.refuse_twice()
    assert w.is_fenced(2)


def test_the_inter_broker_listener_is_asked_where_it_is_known() -> None:
    w = Watch("INTERNAL", {"EXTERNAL": EXTERNAL, "INTERNAL": INTERNAL}, deaf=(EXTERNAL,))
    assert {channel.address[1] for channel in w.outbox.channels} == {INTERNAL}
    w.close(2)
    assert w.open_questions == [INTERNAL]
    w.refuse_twice()
    assert w.is_fenced(2)


def test_where_it_is_not_known_only_those_count_that_answered() -> None:
    w = Watch(None, {"EXTERNAL": EXTERNAL, "INTERNAL": INTERNAL}, deaf=(EXTERNAL,))
    w.close(2)
    assert w.open_questions == [INTERNAL]
    w.refuse_twice()
    assert w.is_fenced(2)


def test_where_it_is_not_known_all_that_answered_have_to_refuse() -> None:
    w = Watch(None, {"EXTERNAL": EXTERNAL, "INTERNAL": INTERNAL})
    w.close(2)
    assert w.open_questions == [EXTERNAL, INTERNAL]
    w.answer(NoResponse(REFUSED), ApiVersionsResponse())
    w.turn(PAUSE_MS)
    assert not w.open_questions and not w.is_fenced(2)


def test_an_address_that_two_brokers_claim_is_nobodys() -> None:
    """Each advertises localhost, and who asks there finds a broker of its own machine."""
    w = Watch(None, hosts=("h1", "localhost", "localhost"))
    assert not w.outbox.channels
    w.close(2)
    assert not w.open_questions


def test_an_answer_counts_for_the_registration_that_gave_it() -> None:
    w = Watch()
    w.close(2)
    w.answer(ApiVersionsResponse())
    w.world.register(2, incarnation=2)
    w.world.heartbeat(2)
    w.endpoints.apply_image(w.world.image, w.world.now_ms)
    w.heartbeat(2)
    w.close(2)
    assert not w.open_questions
    w.turn(0)
    assert w.open_questions == [OWN], "the new process is asked, and has not answered yet"


def test_a_broker_is_not_asked_before_it_is_let_in_nor_when_it_is_gone() -> None:
    w = Watch()
    w.world.register(4, listeners=[Listener("PLAINTEXT", "h4", OWN, 0)])
    w.endpoints.apply_image(w.world.image, w.world.now_ms)
    w.turn(1000)
    assert not w.open_questions
    w.world.heartbeat(4)
    w.endpoints.apply_image(w.world.image, w.world.now_ms)
    w.turn(0)
    assert w.open_questions == [OWN]
    w.world.run(w.world.controller.unregister_broker(UnregisterBrokerRequest(4), w.world.now_ms))
    w.endpoints.apply_image(w.world.image, w.world.now_ms)
    assert w.turn(1000) == NEVER_MS and not w.open_questions


def test_a_controller_that_is_not_active_asks_in_advance() -> None:
    """Else its first refusal, from the machine of the controller that died, would say nothing."""
    w = Watch()
    w.is_active = False
    w.world.register(4, listeners=[Listener("PLAINTEXT", "h4", OWN, 0)])
    w.world.heartbeat(4)
    delta = MetadataDelta(w.world.image)
    delta.changed_brokers[4] = w.world.image.brokers[4]
    w.detection.apply(delta, w.world.image, w.world.now_ms)
    w.turn(0)
    assert w.open_questions == [OWN]


def test_what_is_encrypted_is_not_asked() -> None:
    w = Watch()
    w.world.register(4, listeners=[Listener("PLAINTEXT", "h4", OWN, 1)])
    w.world.heartbeat(4)
    w.endpoints.apply_image(w.world.image, w.world.now_ms)
    assert w.turn(0) == NEVER_MS and not w.open_questions


# Whose suspicion counts


def test_a_controller_that_is_not_active_any_more_asks_nobody() -> None:
    w = Watch()
    w.close(2)
    w.answer(NoResponse(REFUSED))
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
    w.answer(NoResponse(REFUSED))
    assert w.turn(PAUSE_MS) == NEVER_MS
    w.answer(NoResponse(REFUSED))
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
