"""Batching, order and exactly-once of the producer's core, on a simulated clock and a simulated broker."""

from __future__ import annotations

import os
import random

import pytest

from moldau.client.connection.backoff import Backoff
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError, error_for
from moldau.client.produce.accumulator import Accumulator, Batch
from moldau.client.produce.delivery import DeliveryFuture
from moldau.client.results import TopicPartition
from moldau.protocol.errors import MESSAGE_TOO_LARGE
from moldau.records.batch import read_header
from moldau.records.record_buffer import RecordBuffer
from moldau.records.walk import read_records

P0 = TopicPartition("t", 0)

SEEDS = int(os.environ.get("MOLDAU_CLIENT_SEEDS", "30"))


def new_accumulator(**changes: int) -> Accumulator:
    values = {"batch_bytes": 1000, "linger_ms": 5, "delivery_timeout_ms": 10_000, "retries": 1_000_000}
    values.update(changes)
    accumulator = Accumulator(
        batch_bytes=values["batch_bytes"],
        linger_ms=values["linger_ms"],
        delivery_timeout_ms=values["delivery_timeout_ms"],
        retries=values["retries"],
        request_bytes_max=1_000_000,
        codec=0,
        level=-1,
        idempotent=True,
        backoff=Backoff(100, 1000, lambda: 0.5),
    )
    accumulator.producer_id, accumulator.first_epoch = 77, 0
    return accumulator


def send(accumulator: Accumulator, value: bytes, now_ms: int, partition: TopicPartition = P0) -> DeliveryFuture:
    return accumulator.append(partition, 1, None, value, None, now_ms)


def drain(accumulator: Accumulator, now_ms: int) -> list[Batch]:
    batches = accumulator.drain(now_ms, lambda partition: 1, lambda leader: True).get(1, [])
    for batch in batches:
        accumulator.encode(batch)
    return batches


def test_a_batch_waits_for_linger_and_leaves_then() -> None:
    accumulator = new_accumulator()
    future = send(accumulator, b"a", 100)
    assert drain(accumulator, 104) == [] and accumulator.next_deadline_ms(104) == 105
    (batch,) = drain(accumulator, 105)
    assert not future.done()
    accumulator.on_success(batch, 40, -1)
    assert future.result().offset == 40 and future.result().timestamp == 1


def test_a_full_batch_leaves_at_once_and_the_next_record_starts_another() -> None:
    accumulator = new_accumulator()
    futures = [send(accumulator, b"x" * 280, 100) for _ in range(4)]
    (batch,) = drain(accumulator, 100)
    assert batch.count == 3
    accumulator.on_success(batch, 10, -1)
    assert [future.result().offset for future in futures[:3]] == [10, 11, 12] and not futures[3].done()


def test_flush_does_not_wait_for_linger() -> None:
    accumulator = new_accumulator(linger_ms=60_000)
    send(accumulator, b"a", 0)
    number = accumulator.flush()
    (batch,) = drain(accumulator, 0)
    assert not accumulator.flushed(number)
    accumulator.on_success(batch, 0, -1)
    assert accumulator.flushed(number) and accumulator.bytes_held == 0


def test_a_record_above_the_request_size_is_refused_before_it_is_queued() -> None:
    accumulator = new_accumulator()
    with pytest.raises(ClientError) as caught:
        send(accumulator, b"x" * 1_000_000, 0)
    assert caught.value.name == "MESSAGE_TOO_LARGE" and accumulator.batches_held == 0


def test_sequences_go_on_from_batch_to_batch_and_stay_over_a_retry() -> None:
    accumulator = new_accumulator(linger_ms=0)
    send(accumulator, b"-", 0)
    accumulator.on_success(drain(accumulator, 0)[0], 0, -1)
    send(accumulator, b"a", 0)
    (first,) = drain(accumulator, 0)
    send(accumulator, b"b", 0)
    (second,) = drain(accumulator, 0)
    assert (first.base_sequence, second.base_sequence) == (1, 2)
    accumulator.on_error(first, NetworkError("lost"), 10)
    accumulator.on_error(second, error_for(45), 11)
    assert drain(accumulator, 50) == []  # backing off
    (again,) = drain(accumulator, 200)
    assert again is first and again.base_sequence == 1
    assert drain(accumulator, 300) == []  # the second waits for the first
    accumulator.on_success(first, 1, -1)
    (again,) = drain(accumulator, 300)
    assert again is second and again.base_sequence == 2


def test_the_first_batch_of_a_producer_travels_alone() -> None:
    accumulator = new_accumulator(linger_ms=0)
    send(accumulator, b"a", 0)
    (first,) = drain(accumulator, 0)
    send(accumulator, b"b", 0)
    assert drain(accumulator, 0) == []
    accumulator.on_success(first, 0, -1)
    assert len(drain(accumulator, 0)) == 1


def test_a_refused_batch_is_given_up_and_the_next_gets_numbers_of_a_raised_epoch() -> None:
    accumulator = new_accumulator(linger_ms=0)
    lost = send(accumulator, b"a", 0)
    (first,) = drain(accumulator, 0)
    accumulator.on_error(first, error_for(87), 1)
    assert lost.exception(0) is not None
    send(accumulator, b"b", 2)
    (second,) = drain(accumulator, 2)
    assert (second.producer_epoch, second.base_sequence) == (1, 0)


def send_three(accumulator: Accumulator) -> tuple[list[DeliveryFuture], list[Batch]]:
    """Three batches in flight behind one that was acknowledged."""
    send(accumulator, b"-", 0)
    accumulator.on_success(drain(accumulator, 0)[0], 0, -1)
    futures, batches = [], []
    for value in (b"a", b"b", b"c"):
        futures.append(send(accumulator, value, 0))
        batches += drain(accumulator, 0)
    assert [batch.base_sequence for batch in batches] == [1, 2, 3]
    return futures, batches


def test_batches_of_unknown_fate_keep_their_numbers_when_one_before_them_is_out_of_order() -> None:
    """The leader wrote all three, lost the connection and restarted: it remembers the last batch alone."""
    accumulator = new_accumulator(linger_ms=0)
    futures, batches = send_three(accumulator)
    for batch in batches:
        accumulator.on_error(batch, NetworkError("closed"), 1)
    unsent = send(accumulator, b"d", 2)
    for batch in batches[:2]:
        assert drain(accumulator, 1000) == [batch] and (batch.producer_epoch, batch.base_sequence) != (1, 0)
        accumulator.on_error(batch, error_for(45), 1000)
    assert drain(accumulator, 1000) == [batches[2]] and batches[2].base_sequence == 3
    accumulator.on_success(batches[2], 3, -1)
    assert [future.exception(0) is None for future in futures] == [False, False, True]
    # What no broker can have seen is free to take any number.
    (last,) = drain(accumulator, 1000)
    assert (last.producer_epoch, last.base_sequence) == (1, 0)
    accumulator.on_success(last, 4, -1)
    assert unsent.result(0).offset == 4


def test_no_more_leave_than_a_broker_remembers_while_a_former_leader_does_not_answer() -> None:
    """Its successor may have what is in flight, and would not know it again behind five others."""
    accumulator = new_accumulator(linger_ms=0)
    send(accumulator, b"-", 0)
    accumulator.on_success(drain(accumulator, 0)[0], 0, -1)
    for number in range(5):
        send(accumulator, b"%d" % number, 0)
        assert len(drain(accumulator, 0)) == 1
    send(accumulator, b"after the election", 0)
    assert accumulator.drain(0, lambda partition: 2, lambda leader: True) == {}
    first = accumulator.queue(P0).in_flight[0]
    accumulator.on_error(first, NetworkError("timed out"), 1)
    assert accumulator.drain(0, lambda partition: 2, lambda leader: True) == {}, "the first one comes first"


def test_answered_batches_count_too_while_a_former_leader_does_not_answer() -> None:
    """They stand behind the one in flight in the log of its successor, which would not know it again."""
    accumulator = new_accumulator(linger_ms=0)
    send(accumulator, b"-", 0)
    accumulator.on_success(drain(accumulator, 0)[0], 0, -1)
    silent = send(accumulator, b"a", 0)
    (first,) = drain(accumulator, 0)
    for number in range(4):
        send(accumulator, b"%d" % number, 0)
        (batch,) = accumulator.drain(0, lambda partition: 2, lambda leader: True)[2]
        accumulator.on_success(batch, 2 + number, -1)
    send(accumulator, b"after the election", 0)
    assert accumulator.drain(0, lambda partition: 2, lambda leader: True) == {}
    accumulator.on_error(first, NetworkError("timed out"), 1)
    assert accumulator.drain(1000, lambda partition: 2, lambda leader: True) == {2: [first]}
    accumulator.on_success(first, 1, -1)
    assert silent.result(0).offset == 1
    (last,) = accumulator.drain(1000, lambda partition: 2, lambda leader: True)[2]
    assert last.base_sequence == 6


def test_a_batch_of_unknown_fate_is_not_sent_anew_because_an_earlier_one_was_given_up() -> None:
    accumulator = new_accumulator(linger_ms=0, delivery_timeout_ms=1000)
    _, (first, second, third) = send_three(accumulator)
    accumulator.on_error(first, NetworkError("closed"), 1)
    second.created_ms = third.created_ms = 900
    accumulator.on_error(second, NetworkError("closed"), 1)
    accumulator.on_error(third, NetworkError("closed"), 1)
    accumulator.expire(1000)
    assert drain(accumulator, 1000) == [second] and second.base_sequence == 2
    accumulator.on_error(second, error_for(45), 1001)
    assert drain(accumulator, 1200) == [third] and third.base_sequence == 3


def test_batches_that_were_refused_only_get_new_numbers() -> None:
    accumulator = new_accumulator(linger_ms=0, delivery_timeout_ms=1000)
    futures, (first, second, third) = send_three(accumulator)
    first.created_ms = -1000
    accumulator.expire(0)  # nobody knows whether the first is written; the answers say that it is not
    accumulator.on_error(second, error_for(45), 1)
    accumulator.on_error(third, error_for(45), 1)
    for number, batch in enumerate((second, third)):
        assert drain(accumulator, 500) == [batch] and (batch.producer_epoch, batch.base_sequence) == (1, number)
        accumulator.on_success(batch, 2 + number, -1)
    assert [future.exception(0) is None for future in futures] == [False, True, True]


def test_waiting_batches_expire_after_the_delivery_timeout() -> None:
    accumulator = new_accumulator()
    future = send(accumulator, b"a", 0)
    accumulator.expire(9_999)
    assert not future.done()
    accumulator.expire(10_000)
    assert isinstance(future.exception(0), RequestTimeoutError)


def test_a_batch_in_flight_expires_too_and_its_late_answer_is_nobodys() -> None:
    accumulator = new_accumulator(linger_ms=0)
    future = send(accumulator, b"a", 0)
    (batch,) = drain(accumulator, 0)
    assert accumulator.next_deadline_ms(1) == 10_000
    accumulator.expire(10_000)
    assert isinstance(future.exception(0), RequestTimeoutError) and not batch.in_flight
    send(accumulator, b"b", 10_000)
    (following,) = drain(accumulator, 10_000)
    assert following.base_sequence == 1 and accumulator.bytes_held > 0


def test_a_duplicate_counts_as_delivered_without_an_offset() -> None:
    accumulator = new_accumulator(linger_ms=0)
    future = send(accumulator, b"a", 0)
    (batch,) = drain(accumulator, 0)
    accumulator.on_error(batch, error_for(46), 1)
    assert future.result(0).offset == -1


def test_a_batch_that_is_too_large_is_halved_until_it_fits_and_futures_follow() -> None:
    accumulator = new_accumulator(linger_ms=0)
    futures = [send(accumulator, b"%d" % number, 0) for number in range(5)]
    later = send(accumulator, b"x" * 990, 0)
    (batch,) = drain(accumulator, 0)
    told: list[int] = []
    futures[4]._add_callback(lambda metadata, error: told.append(-1 if metadata is None else metadata.offset))
    accumulator.on_error(batch, error_for(10), 1)
    sizes = []
    offset = 0
    while accumulator.batches_held:
        (part,) = drain(accumulator, 1)
        assert part.base_sequence == offset
        if part.count == 3:
            accumulator.on_error(part, error_for(10), 1)
            continue
        sizes.append(part.count)
        accumulator.on_success(part, offset, -1)
        for future, callback in part.fate.callbacks:
            callback(future.metadata(), None)
        offset += part.count
    assert sizes == [2, 1, 2, 1] and told == [4] and accumulator.bytes_held == 0
    assert [future.result(0).offset for future in [*futures, later]] == [0, 1, 2, 3, 4, 5]


def test_encoded_batches_shrink_when_a_broker_refuses_one_and_never_below_the_batch_size() -> None:
    accumulator = new_accumulator()
    before = accumulator.encoded_bytes_max
    assert before == 1 << 19
    for expected in (5_000, 2_500, 1_250, 1_000, 1_000):
        buffer = RecordBuffer()
        while buffer.size < 2 * expected:
            buffer.append(1, None, b"x" * 40, None)
        count = buffer.records_count
        buffer.close()
        accumulator.append_encoded(accumulator.queue(P0), buffer.parts(-1, -1, -1)[1], count, 1, 1, 0)
        (batch,) = drain(accumulator, 0)
        accumulator.on_error(batch, error_for(MESSAGE_TOO_LARGE), 0)
        assert abs(int(accumulator.encoded_bytes_max) - expected) < 40
        accumulator.fail_all(NetworkError("enough"))


def test_more_records_are_no_news_while_nothing_may_leave() -> None:
    """The sender is not woken for a batch that could not be sent: an answer wakes it."""
    accumulator = new_accumulator(linger_ms=0)
    send(accumulator, b"a", 0)
    assert accumulator.news
    accumulator.news = False
    (batch,) = drain(accumulator, 0)  # the first batch of an epoch travels alone
    send(accumulator, b"b", 0)
    assert accumulator.news and drain(accumulator, 0) == []
    accumulator.news = False
    for _ in range(10):
        send(accumulator, b"x" * 400, 0)
    assert not accumulator.news and accumulator.all_blocked()
    send(accumulator, b"c", 0, TopicPartition("t", 1))
    assert accumulator.news and not accumulator.all_blocked()
    accumulator.on_success(batch, 0, -1)
    assert len(drain(accumulator, 0)) == 2
    accumulator.news = False
    send(accumulator, b"x" * 900, 0)
    assert accumulator.news


def test_a_single_record_that_is_too_large_fails() -> None:
    accumulator = new_accumulator(linger_ms=0)
    future = send(accumulator, b"a", 0)
    accumulator.on_error(drain(accumulator, 0)[0], error_for(10), 1)
    error = future.exception(0)
    assert error is not None and error.name == "MESSAGE_TOO_LARGE" and accumulator.batches_held == 0


class ModelBroker:
    """Keeps sequences as a broker does: refuses gaps, recognises the last five batches."""

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.epoch = -1
        self.next_sequence = 0
        self.recent: list[tuple[int, int, int]] = []

    def produce(self, data: bytes) -> ClientError | int:
        header = read_header(data, 0, len(data))
        for epoch, sequence, offset in self.recent:
            if (epoch, sequence) == (header.producer_epoch, header.base_sequence):
                return offset
        if header.producer_epoch < self.epoch:
            return error_for(47)
        if header.producer_epoch > self.epoch:
            if header.base_sequence != 0 and self.epoch >= 0:
                return error_for(45)
            self.epoch, self.next_sequence = header.producer_epoch, header.base_sequence
        if header.base_sequence != self.next_sequence:
            return error_for(45)
        offset = len(self.values)
        self.values += [record.value or b"" for record in read_records(data, header)]
        self.next_sequence += header.records_count
        self.recent = [*self.recent[-4:], (self.epoch, header.base_sequence, offset)]
        return offset

    def restart(self) -> None:
        """Of each producer a snapshot of the log keeps the last batch."""
        self.recent = self.recent[-1:]


def run_seed(
    seed: int, delivery_timeout_ms: int, restarts: float = 0.0
) -> tuple[ModelBroker, list[DeliveryFuture], int]:
    """Five in flight over a network that loses requests and answers; what arrives arrives in order."""
    chance = random.Random(seed)
    accumulator = new_accumulator(
        batch_bytes=200, linger_ms=chance.choice([0, 5]), delivery_timeout_ms=delivery_timeout_ms
    )
    broker = ModelBroker()
    futures: list[DeliveryFuture] = []
    flying: list[tuple[int, Batch, ClientError | int]] = []
    now_ms = 0
    total = 120
    while len(futures) < total or accumulator.batches_held:
        now_ms += chance.randrange(1, 30)
        if len(futures) < total:
            for _ in range(chance.randrange(4)):
                futures.append(send(accumulator, b"%06d" % len(futures), now_ms))
        accumulator.expire(now_ms)
        if restarts and chance.random() < restarts:
            broker.restart()
            flying[:] = [(when, batch, NetworkError("closed")) for when, batch, _ in flying]
        for batch in accumulator.drain(now_ms, lambda partition: 1, lambda leader: len(flying) < 5).get(1, []):
            data = b"".join(accumulator.encode(batch))
            fault = chance.random()
            if fault < 0.1:
                outcome: ClientError | int = NetworkError("request lost")
            elif fault < 0.15:
                outcome = error_for(6)
            else:
                outcome = broker.produce(data)
                if fault > 0.9:
                    outcome = NetworkError("answer lost")
            flying.append((now_ms + chance.randrange(1, 200), batch, outcome))
        while flying and flying[0][0] <= now_ms:
            _, batch, result = flying.pop(0)
            if not batch.in_flight:
                continue  # it was given up meanwhile
            if isinstance(result, int):
                accumulator.on_success(batch, result, -1)
            else:
                accumulator.on_error(batch, result, now_ms)
        assert now_ms < 10_000_000
    return broker, futures, total


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_record_is_written_once_and_in_order_whatever_the_network_does(seed: int) -> None:
    broker, futures, _ = run_seed(seed, 10_000_000)
    assert broker.values == [b"%06d" % number for number in range(len(futures))]
    for number, future in enumerate(futures):
        assert future.result(0).offset == number


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_acknowledged_is_written_once_also_when_other_batches_time_out(seed: int) -> None:
    broker, futures, _ = run_seed(seed, 400)
    assert len(set(broker.values)) == len(broker.values)
    assert broker.values == sorted(broker.values)
    for number, future in enumerate(futures):
        if future.exception(0) is None:
            assert broker.values[future.result(0).offset] == b"%06d" % number


@pytest.mark.parametrize("timeout_ms", [400, 10_000_000])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_is_written_twice_by_a_broker_that_restarts_and_remembers_one_batch(seed: int, timeout_ms: int) -> None:
    broker, futures, _ = run_seed(seed, timeout_ms, restarts=0.05)
    assert len(set(broker.values)) == len(broker.values)
    assert broker.values == sorted(broker.values)
    for number, future in enumerate(futures):
        if future.exception(0) is None and future.result(0).offset >= 0:
            assert broker.values[future.result(0).offset] == b"%06d" % number
