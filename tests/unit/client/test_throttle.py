"""KIP-219 on the client's side: a broker that throttles the client hears nothing until the time is over."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable
from math import isnan

import pytest

from moldau.client.admin import Admin, NewTopic
from moldau.client.aio import AsyncConsumer
from moldau.client.connection.throttle import is_honoured
from moldau.client.connection.transport import SocketNetwork
from moldau.client.connection.wire import Call
from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError, RequestTimeoutError, ThrottlingQuotaExceededError, error_for
from moldau.client.metrics.window import summarize
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages import create_partitions_response as extended
from moldau.protocol.messages import delete_topics_response as deleted
from moldau.protocol.messages import share_fetch_response as share_fetched
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.share_fetch_request import ShareFetchRequest
from moldau.protocol.primitives import Message
from tests.pace import patience, patience_ms
from tests.unit.client import test_consumer, test_producer
from tests.unit.client.fake_network import (
    DISCONNECT,
    HOME,
    FakeNetwork,
    Handler,
    ScriptedBroker,
    frame,
    metadata,
    split_request,
)
from tests.unit.client.share_world import World, values_of
from tests.unit.client.test_transport import listening, read_frame
from tests.unit.client.test_wire import metadata_call, negotiated

AWAY = ("away", 9093)
BOTH = {1: HOME, 2: AWAY}
PAUSE_MS = 5_000


class Throttling:
    """A handler that is asked in turn; the answers of the turns in `turns` throttle. Knows when it was asked."""

    def __init__(self, network: FakeNetwork, inner: Handler, *turns: int, empty: type[Message] | None = None) -> None:
        self._network = network
        self._inner = inner
        self._turns = turns
        # What a client that is throttled gets in place of an answer.
        self._empty = empty
        self.asked_ms: list[int] = []

    def __call__(self, request: Message, version: int) -> object:
        self.asked_ms.append(self._network.now_ms())
        throttles = len(self.asked_ms) - 1 in self._turns
        answer = self._empty() if throttles and self._empty is not None else self._inner(request, version)
        if throttles:
            answer.throttle_time_ms = PAUSE_MS  # type: ignore[attr-defined]
        return answer

    @property
    def pauses_ms(self) -> list[int]:
        return [later - earlier for earlier, later in zip(self.asked_ms, self.asked_ms[1:], strict=False)]


def answer_next(connection: object, throttle_ms: int = 0, version: int | None = None) -> None:
    """Answers the Metadata request that the connection has sent."""
    header, request = split_request(connection.take_outgoing())  # type: ignore[attr-defined]
    assert isinstance(request, MetadataRequest)
    answer = MetadataResponse(throttle_time_ms=throttle_ms)
    connection.receive(frame(answer, 3, header.request_api_version, header.correlation_id))  # type: ignore[attr-defined]


# One connection


def test_calls_wait_until_the_broker_throttles_no_more_and_leave_in_their_order() -> None:
    connection = negotiated()
    connection.submit(metadata_call(), 0)
    answer_next(connection, throttle_ms=500)
    calls = [metadata_call(), metadata_call()]
    connection.submit(calls[0], 100)
    assert connection.throttled_ms(100) == 400 and connection.next_deadline_ms() == 500
    assert not connection.tick(499) and connection.take_outgoing() == b""
    connection.submit(calls[1], 500)  # nobody has looked at the clock since the time is over
    sent = connection.take_outgoing()
    size = int.from_bytes(sent[:4], "big") + 4
    first, second = split_request(sent[:size])[0], split_request(sent[size:])[0]
    connection.receive(frame(MetadataResponse(), 3, first.request_api_version, first.correlation_id))
    assert calls[0].done and not calls[1].done and second.correlation_id == first.correlation_id + 1
    connection.tick(501)
    assert connection.throttled_ms(501) == 0 and not connection.expired(501)


def test_a_call_that_waits_too_long_ends_alone() -> None:
    """Nothing was sent, so the connection is as good as before."""
    connection = negotiated()
    connection.submit(metadata_call(), 0)
    answer_next(connection, throttle_ms=5_000)
    late, patient = metadata_call(), Call(MetadataRequest(topics=None), MetadataResponse, patience_ms(20_000))
    connection.submit(late, 0)
    connection.submit(patient, 0)
    assert connection.next_deadline_ms() == 1_000
    assert not connection.expired(1_000) and not connection.tick(1_000)
    assert isinstance(late.error, RequestTimeoutError) and "another 4000 ms" in late.error.message
    assert not patient.done and connection.tick(5_000)
    answer_next(connection)
    assert patient.done and patient.error is None


def test_versions_before_kip_219_are_not_waited_for() -> None:
    """Their brokers have waited before they answered."""
    connection = negotiated({3: 5})
    connection.submit(metadata_call(), 0)
    answer_next(connection, throttle_ms=500)
    connection.submit(metadata_call(), 0)
    assert connection.take_outgoing() != b""


@pytest.mark.parametrize(
    ("api_key", "first"),
    [(0, 6), (1, 8), (2, 3), (3, 6), (10, 2), (18, 2), (19, 3), (20, 2), (37, 1), (42, 1), (43, 0), (44, 0), (78, 0)],
)
def test_the_first_version_that_is_honoured(api_key: int, first: int) -> None:
    assert is_honoured(api_key, first)
    assert first == 0 or not is_honoured(api_key, first - 1)


def test_a_call_over_real_sockets_leaves_after_the_pause() -> None:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, lambda request, version: MetadataResponse(throttle_time_ms=200))
    arrived: list[float] = []

    def behave(peer: socket.socket) -> None:
        for _ in range(3):
            data = read_frame(peer)
            arrived.append(time.monotonic())
            answer = broker.answer(data)
            assert isinstance(answer, bytes)
            peer.sendall(answer)

    with listening(behave) as port:
        network = SocketNetwork("test")
        try:
            for _ in range(2):
                call = Call(MetadataRequest(topics=None), MetadataResponse, patience_ms(20_000))
                network.submit(("127.0.0.1", port), call)
                while not call.done:
                    network.poll(10_000)
                assert call.response().throttle_time_ms == 200
                assert not network.is_ready(("127.0.0.1", port))
            meter = network.meter()
            assert meter is not None
            assert summarize(node.throttle_times_ms for node in meter.nodes.values()).largest == 200
        finally:
            network.close()
    assert arrived[2] - arrived[1] >= 0.199


# Consumers


def reading(home: ScriptedBroker, away: ScriptedBroker) -> tuple[Consumer, FakeNetwork, dict[str, Throttling]]:
    """The first broker leads partition 0 and throttles the first fetch; the second one leads partition 1."""
    network = FakeNetwork({HOME: home, AWAY: away})
    fetches: dict[str, Throttling] = {}
    for name, broker in (("home", home), ("away", away)):
        log = test_consumer.Log()
        log.add(0, [b"a"])
        log.add(1, [b"b"])
        broker.on(MetadataRequest, metadata({"t": [1, 2]}, BOTH))
        broker.on(ListOffsetsRequest, log.list_offsets)
        fetches[name] = Throttling(network, log.fetch, *([0] if name == "home" else []), empty=FetchResponse)
        broker.on(FetchRequest, fetches[name])
    consumer = Consumer("broker:9092", config=wired(network=network))
    consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
    consumer.seek_to_beginning()
    return consumer, network, fetches


def test_a_throttled_fetch_is_sent_again_after_the_pause_and_other_brokers_go_on() -> None:
    consumer, network, fetches = reading(ScriptedBroker(), ScriptedBroker())
    read: list[bytes | None] = []
    while len(read) < 2:
        read += [record.value for record in consumer.poll(1_000)]
    assert read == [b"b", b"a"]
    assert fetches["home"].pauses_ms[0] >= PAUSE_MS
    meanwhile = [at for at in fetches["away"].asked_ms if at < fetches["home"].asked_ms[1]]
    assert len(meanwhile) > 3
    found = consumer.metrics()
    assert found["fetch-throttle-time-max"] == PAUSE_MS and 0 < found["fetch-throttle-time-avg"] < PAUSE_MS
    network.clock_ms += 60_000
    assert isnan(consumer.metrics()["fetch-throttle-time-max"])


def test_a_fetch_of_an_old_version_is_sent_again_at_once() -> None:
    consumer, _, fetches = reading(ScriptedBroker({1: 7}), ScriptedBroker({1: 7}))
    consumer.poll(1_000)
    consumer.poll(1_000)
    assert fetches["home"].pauses_ms[0] < PAUSE_MS


def test_poll_returns_in_time_although_the_broker_throttles() -> None:
    consumer, log = test_consumer.set_up()
    log.add(0, [b"a"])
    log.faults = [FetchResponse(throttle_time_ms=PAUSE_MS)]
    network = consumer._cluster.network
    consumer.seek_to_beginning()
    start_ms = network.now_ms()
    assert consumer.poll(1_000) == [] and network.now_ms() - start_ms <= 1_100
    assert [record.value for record in consumer.poll(60_000)] == [b"a"]
    assert start_ms + PAUSE_MS <= network.now_ms() < start_ms + PAUSE_MS + 1_000, "it does not wait longer either"


def test_any_broker_may_be_asked_for_what_all_know() -> None:
    """Metadata is asked of the one that does not throttle."""
    consumer, network, fetches = reading(ScriptedBroker(), ScriptedBroker())
    while not fetches["home"].asked_ms:
        consumer.poll(1)
    before_ms = network.now_ms()
    for _ in range(3):
        consumer._cluster.refresh(["t"], 60_000)
    assert network.now_ms() - before_ms < 1_000


def test_a_call_that_only_the_throttling_broker_can_answer_keeps_its_deadline() -> None:
    consumer, log = test_consumer.set_up()
    log.faults = [FetchResponse(throttle_time_ms=PAUSE_MS)]
    consumer.seek_to_beginning()
    consumer.poll(10)
    network = consumer._cluster.network
    start_ms = network.now_ms()
    with pytest.raises(ClientError) as caught:
        consumer._cluster.refresh(["t"], 1_000)
    assert caught.value.retriable and network.now_ms() - start_ms <= 1_100
    assert log.fetches and network.is_ready(HOME) is False


def test_the_asyncio_consumer_waits_too_and_counts_it() -> None:
    broker = ScriptedBroker()
    network = FakeNetwork({HOME: broker})
    log = test_consumer.Log()
    log.add(0, [b"a"])
    fetches = Throttling(network, log.fetch, 0, empty=FetchResponse)
    broker.on(MetadataRequest, metadata({"t": [1]}))
    broker.on(ListOffsetsRequest, log.list_offsets)
    broker.on(FetchRequest, fetches)

    async def scenario() -> None:
        async with AsyncConsumer("broker:9092", config=wired(network=network)) as consumer:
            await consumer.assign([TopicPartition("t", 0)])
            await consumer.seek_to_beginning()
            assert [record.value for record in await consumer.poll(60_000)] == [b"a"]
            assert consumer.metrics()["fetch-throttle-time-max"] == PAUSE_MS

    asyncio.run(asyncio.wait_for(scenario(), patience(20)))
    assert fetches.pauses_ms[0] >= PAUSE_MS


def test_a_share_consumer_sends_nothing_to_a_leader_that_throttles() -> None:
    world = World()
    world.leader.deliver(values_of(0, 2), (0, 2, 1))
    world.leader.deliver(values_of(3, 3), (3, 3, 1))
    fetches = Throttling(world.network, world.leader.on_fetch, 0)
    world.leader.broker.on(ShareFetchRequest, fetches)
    consumer = world.consumer()
    assert [record.offset for record in consumer.poll(60_000)] == [0, 1, 2]
    assert [record.offset for record in consumer.poll(60_000)] == [3]
    assert fetches.pauses_ms[0] >= PAUSE_MS
    assert world.leader.acknowledged == [(0, {0: 1, 1: 1, 2: 1})], "they left with the fetch after the pause"
    assert consumer.metrics()["fetch-throttle-time-max"] == PAUSE_MS
    assert share_fetched.ShareFetchResponse().throttle_time_ms == 0


# Producers


class Producing:
    """A producer whose sender is stepped by the test, and a broker that throttles the first request."""

    def __init__(self, **more: object) -> None:
        self.home, self.away = ScriptedBroker(), ScriptedBroker()
        self.network = FakeNetwork({HOME: self.home, AWAY: self.away})
        self.log = test_producer.Log()
        self.produces = Throttling(self.network, self.log.handle, 0)
        for broker in (self.home, self.away):
            broker.on(MetadataRequest, metadata({"t": [1, 2]}, BOTH))
            broker.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5))
            broker.on(ProduceRequest, self.log.handle)
        self.home.on(ProduceRequest, self.produces)
        self.producer = Producer(
            "broker:9092", config=wired(network=self.network), linger_ms=0, max_block_ms=0, retry_backoff_ms=1, **more
        )
        self.sender = self.producer._sender
        self.sender.thread = threading.current_thread()
        self.sender.wanted_topics.add("t")
        self.step_until(lambda: "t" in self.sender.topics)

    def step_until(self, done: Callable[[], bool]) -> None:
        for _ in range(1_000):
            if done():
                return
            self.sender.step()
        raise AssertionError("the condition did not come true")


def test_batches_wait_for_a_leader_that_throttles_and_go_to_others_meanwhile() -> None:
    world = Producing()
    first = world.producer.send("t", b"1", partition=0)
    world.step_until(first.done)
    start_ms = world.network.now_ms()
    second = world.producer.send("t", b"2", partition=0)
    other = world.producer.send("t", b"3", partition=1)
    world.step_until(other.done)
    assert world.network.now_ms() - start_ms < 1_000 and not second.done()
    world.step_until(second.done)
    assert second.result(0).offset == 1 and world.produces.pauses_ms[0] >= PAUSE_MS
    assert world.network.now_ms() - start_ms < PAUSE_MS + 1_000
    found = world.producer.metrics()
    assert found["produce-throttle-time-max"] == PAUSE_MS and 0 < found["produce-throttle-time-avg"] < PAUSE_MS


def test_a_batch_that_waits_longer_than_its_delivery_timeout_fails() -> None:
    world = Producing(delivery_timeout_ms=2_000, request_timeout_ms=1_000)
    first = world.producer.send("t", b"1", partition=0)
    world.step_until(first.done)
    start_ms = world.network.now_ms()
    second = world.producer.send("t", b"2", partition=0)
    world.step_until(second.done)
    assert isinstance(second.exception(0), RequestTimeoutError) and world.network.now_ms() - start_ms < PAUSE_MS
    assert len(world.produces.asked_ms) == 1


def test_a_throttle_ends_with_its_connection() -> None:
    """As with Java's client: a broker throttles anew whoever still exceeds the quota."""
    world = Producing()
    world.home.on(MetadataRequest, lambda request, version: DISCONNECT)
    first = world.producer.send("t", b"1", partition=0)
    world.step_until(first.done)
    assert world.network.throttled_ms(HOME) > 0
    world.network._connections[HOME].close(error_for(13))
    assert world.network.throttled_ms(HOME) == 0
    second = world.producer.send("t", b"2", partition=0)
    world.step_until(second.done)
    assert world.produces.pauses_ms[0] < PAUSE_MS


# Controller mutations


Answers = list[tuple[dict[str, int], int]]


class Controller:
    """Answers with the next of these, topic -> error code and the throttle time, and knows when it was asked."""

    def __init__(self, answers: Answers, timeout_ms: int = 60_000) -> None:
        self.answers = answers
        self.broker = ScriptedBroker()
        self.network = FakeNetwork({HOME: self.broker})
        self.admin = Admin("broker:9092", config=wired(network=self.network), default_api_timeout_ms=timeout_ms)
        self.asked_ms: list[int] = []
        self.broker.on(MetadataRequest, metadata({}))
        self.broker.on(CreateTopicsRequest, self._create)
        self.broker.on(DeleteTopicsRequest, self._delete)
        self.broker.on(CreatePartitionsRequest, self._extend)

    def _next(self, names: list[str | None]) -> tuple[dict[str, int], int]:
        self.asked_ms.append(self.network.now_ms())
        codes, throttle_ms = self.answers.pop(0)
        assert names == list(codes)
        return codes, throttle_ms

    def _create(self, request: Message, version: int) -> object:
        assert isinstance(request, CreateTopicsRequest)
        codes, throttle_ms = self._next([row.name for row in request.topics])
        rows = [CreatableTopicResult(name=name, error_code=code, error_message=None) for name, code in codes.items()]
        return CreateTopicsResponse(topics=rows, throttle_time_ms=throttle_ms)

    def _delete(self, request: Message, version: int) -> object:
        assert isinstance(request, DeleteTopicsRequest)
        codes, throttle_ms = self._next([row.name for row in request.topics])
        rows = [deleted.DeletableTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return deleted.DeleteTopicsResponse(responses=rows, throttle_time_ms=throttle_ms)

    def _extend(self, request: Message, version: int) -> object:
        assert isinstance(request, CreatePartitionsRequest)
        codes, throttle_ms = self._next([row.name for row in request.topics])
        rows = [extended.CreatePartitionsTopicResult(name=name, error_code=code) for name, code in codes.items()]
        return extended.CreatePartitionsResponse(results=rows, throttle_time_ms=throttle_ms)


MUTATIONS: dict[str, Callable[..., dict[str, object]]] = {
    "create": lambda admin, names, **more: admin.create_topics([NewTopic(name) for name in names], **more),
    "delete": lambda admin, names, **more: admin.delete_topics(names, **more),
    "extend": lambda admin, names, **more: admin.create_partitions(dict.fromkeys(names, 3), **more),
}


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_topics_over_the_quota_are_asked_for_again_after_the_throttle_time(mutation: str) -> None:
    answers: Answers = [({"x": 0, "y": 89, "z": 89}, 3_000), ({"y": 0, "z": 89}, 4_000), ({"z": 0}, 0)]
    controller = Controller(answers)
    found = MUTATIONS[mutation](controller.admin, ["x", "y", "z"])
    assert [item.error for item in found.values()] == [None] * 3  # type: ignore[attr-defined]
    first, second, third = controller.asked_ms
    assert 3_000 <= second - first < 3_200 and 4_000 <= third - second < 4_200


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_whoever_does_not_want_to_wait_is_told_for_how_long(mutation: str) -> None:
    controller = Controller([({"x": 0, "y": 89}, 3_000)])
    found = MUTATIONS[mutation](controller.admin, ["x", "y"], retry_on_quota_violation=False)
    error = found["y"].error  # type: ignore[attr-defined]
    assert found["x"].error is None and isinstance(error, ThrottlingQuotaExceededError)  # type: ignore[attr-defined]
    assert error.throttle_time_ms == 3_000 and "quota" in error.message


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_quota_that_outlasts_the_timeout_is_the_error(mutation: str) -> None:
    controller = Controller([({"x": 0, "y": 89}, 3_000), ({"y": 89}, 20_000)], timeout_ms=10_000)
    found = MUTATIONS[mutation](controller.admin, ["x", "y"])
    error = found["y"].error  # type: ignore[attr-defined]
    assert found["x"].error is None and isinstance(error, ThrottlingQuotaExceededError)  # type: ignore[attr-defined]
    assert error.throttle_time_ms == 20_000


def test_what_was_created_stays_told_when_the_controller_goes_away() -> None:
    controller = Controller([({"x": 0, "y": 89}, 3_000)], timeout_ms=10_000)
    controller.broker.on(MetadataRequest, metadata({}))
    create = controller._create

    def once(request: Message, version: int) -> object:
        return create(request, version) if controller.answers else DISCONNECT

    controller.broker.on(CreateTopicsRequest, once)
    found = controller.admin.create_topics([NewTopic("x"), NewTopic("y")])
    assert found["x"].error is None and isinstance(found["y"].error, ThrottlingQuotaExceededError)


def test_a_loop_of_fifty_topics_under_a_quota_loses_none() -> None:
    """One partition a second, with a bucket of five: what a controller does by KIP-599."""
    made: list[str] = []
    broker = ScriptedBroker()
    network = FakeNetwork({HOME: broker})
    tokens, filled_ms = 5.0, network.now_ms()

    def create(request: Message, version: int) -> object:
        nonlocal tokens, filled_ms
        assert isinstance(request, CreateTopicsRequest)
        now_ms = network.now_ms()
        tokens, filled_ms = min(5.0, tokens + (now_ms - filled_ms) / 1000), now_ms
        rows, throttle_ms = [], 0
        for row in request.topics:
            code = 89 if tokens < 0 else 0
            if code:
                throttle_ms = round(-tokens * 1000)
            else:
                tokens -= 1
                made.append(row.name)
            rows.append(CreatableTopicResult(name=row.name, error_code=code, error_message=None))
        return CreateTopicsResponse(topics=rows, throttle_time_ms=throttle_ms)

    broker.on(MetadataRequest, metadata({}))
    broker.on(CreateTopicsRequest, create)
    admin = Admin("broker:9092", config=wired(network=network))
    start_ms = network.now_ms()
    for number in range(50):
        admin.create_topics([NewTopic(f"t{number}")])[f"t{number}"].get()
    assert made == [f"t{number}" for number in range(50)]
    assert 43_000 <= network.now_ms() - start_ms < 50_000
