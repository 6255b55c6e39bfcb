"""KIP-794: partitions whose leader takes no batches are avoided by records without a key."""

from __future__ import annotations

import time
from collections import Counter

import pytest

from moldau.client.connection.transport import Address
from moldau.client.producer import Producer
from moldau.client.wiring import wired
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.primitives import Message
from tests.pace import patience_ms, wait_until
from tests.unit.client.fake_network import HOME, SILENCE, FakeNetwork, ScriptedBroker, metadata
from tests.unit.client.test_accumulator import drain, new_accumulator, send
from tests.unit.client.test_producer import Log

OTHER: Address = ("other", 9092)


class TwoBrokers:
    """Partitions 0 and 1 with a leader each; the second one can be made silent or be gone."""

    def __init__(self, **more: object) -> None:
        self.silent = False
        self.log = Log()
        self.other = ScriptedBroker()
        home = ScriptedBroker()
        for broker in (home, self.other):
            broker.on(MetadataRequest, metadata({"t": [1, 2]}, {1: HOME, 2: OTHER}))
            broker.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5))
            broker.on(ProduceRequest, self.log.handle)
        self.other.on(ProduceRequest, self._answer)
        self.network = FakeNetwork({HOME: home, OTHER: self.other}, real_time=True)
        settings: dict[str, object] = {"request_timeout_ms": 300, "retry_backoff_ms": 1, "retry_backoff_max_ms": 2}
        self.producer = Producer(
            "broker:9092", config=wired({**settings, **more}, network=self.network), batch_size=1, linger_ms=0
        )

    def _answer(self, request: Message, version: int) -> object:
        return SILENCE if self.silent else self.log.handle(request, version)

    def avoided(self) -> set[int]:
        return self.producer._sender._avoided

    def chosen(self) -> Counter[int]:
        """Where the next 100 records would go."""
        with self.producer._lock:
            state = self.producer._topics["t"]
            return Counter(state.sticky(1).index for _ in range(100))


@pytest.mark.parametrize("gone", [False, True])
def test_a_leader_that_takes_nothing_is_avoided_until_it_does(gone: bool) -> None:
    """Silent or not there at all: after the timeout its partition is not chosen, and is again once it answers."""
    brokers = TwoBrokers(partitioner_availability_timeout_ms=40)
    brokers.silent = not gone
    brokers.other.up = not gone
    with brokers.producer as producer:
        producer.partitions_for("t")
        assert brokers.chosen()[1] > 0
        futures = [producer.send("t", b"%d" % number, partition=1) for number in range(8)]
        wait_until(lambda: brokers.avoided() == {2})
        assert brokers.chosen() == {0: 100}
        futures += [producer.send("t", b"x") for _ in range(20)]
        brokers.silent, brokers.other.up = False, True
        producer.flush(patience_ms(5_000))
        wait_until(lambda: brokers.avoided() == set())
        assert brokers.chosen()[1] > 0
        assert {future.result(0).partition for future in futures[8:]} == {0}
        assert [record.value for record in brokers.log.records[1]] == [b"%d" % number for number in range(8)]


@pytest.mark.parametrize(
    "settings",
    [{}, {"partitioner.availability.timeout.ms": 20, "partitioner.adaptive.partitioning.enable": False}],
)
def test_nothing_is_avoided_by_default_or_without_adaptive_partitioning(settings: dict[str, object]) -> None:
    brokers = TwoBrokers(**settings)
    brokers.silent = True
    for number in range(8):
        brokers.producer.send("t", b"%d" % number, partition=1)
    time.sleep(0.1)
    assert brokers.avoided() == set() and brokers.chosen()[1] > 0
    brokers.producer.close(0)


def test_when_every_leader_is_blocked_all_of_them_are_chosen_from() -> None:
    brokers = TwoBrokers()
    producer = brokers.producer
    producer.partitions_for("t")
    with producer._lock:
        producer._sender._avoided = {1, 2}
        producer._sender._set_available(producer._topics["t"])
    assert set(brokers.chosen()) == {0, 1}
    producer.close(0)


def test_a_leader_is_blocked_while_what_is_due_cannot_leave() -> None:
    accumulator = new_accumulator(batch_bytes=1)

    def blocked(now_ms: int, connected: bool = True, room: bool = True) -> set[int]:
        return accumulator.blocked_leaders(now_ms, lambda partition: 1, lambda leader: connected, lambda leader: room)

    assert blocked(0, connected=False, room=False) == set()  # nothing waits for it
    send(accumulator, b"a", 0)
    assert blocked(0) == set() and blocked(0, connected=False) == {1} and blocked(0, room=False) == {1}
    (first,) = drain(accumulator, 0)
    assert blocked(0, room=False) == set() and blocked(0, connected=False) == {1}
    send(accumulator, b"b", 0)
    assert blocked(0) == {1}  # the first batch of an epoch travels alone
    accumulator.on_success(first, 0, -1)
    assert blocked(0) == set()


def test_a_batch_that_waits_for_more_records_does_not_block() -> None:
    accumulator = new_accumulator(linger_ms=5)
    send(accumulator, b"a", 0)
    for now_ms, expected in ((4, set()), (5, {1})):
        assert accumulator.blocked_leaders(now_ms, lambda _: 1, lambda _: False, lambda _: True) == expected
