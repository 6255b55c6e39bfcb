"""The producer's face and thread, against a scripted broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moldau.client.errors import ClientError, ClosedError, ConfigError, RecordTooLargeError, RequestTimeoutError
from moldau.client.produce.accumulator import Batch, PartitionQueue
from moldau.client.produce.partitioner import TopicState, partition_for_key
from moldau.client.producer import Producer
from moldau.client.results import RecordMetadata, TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.messages.produce_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import read_header
from moldau.records.record_buffer import RecordBuffer
from moldau.records.walk import Record, read_records
from tests.pace import patience_ms
from tests.unit.client.fake_network import DISCONNECT, HOME, SILENCE, FakeNetwork, ScriptedBroker, metadata

PATIENCE_MS = patience_ms(10_000)


class Log:
    """Answers Produce; keeps what it was sent, partition by partition."""

    def __init__(self) -> None:
        self.records: dict[int, list[Record]] = {}
        self.producers: set[int] = set()
        self.codecs: set[int] = set()
        self.faults: list[object] = []
        self.acks: set[int] = set()

    def handle(self, request: Message, version: int) -> object:
        assert isinstance(request, ProduceRequest)
        fault = self.faults.pop(0) if self.faults else 0
        if not isinstance(fault, int):
            return fault
        self.acks.add(request.acks)
        answers = []
        for topic in request.topic_data:
            rows = []
            for row in topic.partition_data:
                base = len(self.records.get(row.index, []))
                if fault == 0:
                    assert isinstance(row.records, MemoryRecords)
                    data = row.records.to_bytes()
                    header = read_header(data, 0, len(data))
                    self.producers.add(header.producer_id)
                    self.codecs.add(header.codec)
                    self.records.setdefault(row.index, []).extend(read_records(data, header))
                rows.append(PartitionProduceResponse(index=row.index, error_code=fault, base_offset=base))
            answers.append(TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=rows))
        return None if request.acks == 0 else ProduceResponse(responses=answers)


def set_up(topics: dict[str, int | list[int]], highest: dict[int, int] | None = None) -> tuple[FakeNetwork, Log]:
    broker = ScriptedBroker(highest)
    log = Log()
    broker.on(MetadataRequest, metadata(topics))
    broker.on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(producer_id=5, producer_epoch=0))
    broker.on(ProduceRequest, log.handle)
    return FakeNetwork({HOME: broker}, real_time=True), log


def new_producer(network: FakeNetwork, **more: object) -> Producer:
    return Producer("broker:9092", config=wired(network=network), retry_backoff_ms=1, retry_backoff_max_ms=2, **more)


def test_a_record_is_delivered_and_its_future_says_where() -> None:
    network, log = set_up({"t": [1]})
    with new_producer(network) as producer:
        future = producer.send("t", "value", "key", headers={"h": b"1"}, timestamp_ms=99)
        assert future.result(PATIENCE_MS) == RecordMetadata("t", 0, 0, 99)
    (record,) = log.records[0]
    assert (record.key, record.value, record.headers, record.timestamp) == (b"key", b"value", [("h", b"1")], 99)
    assert log.producers == {5} and log.acks == {-1}


def test_headers_may_be_text_and_nonsense_is_explained() -> None:
    network, log = set_up({"t": [1]})
    unfit: Any = [{"h": 5}, [("h",)], [(1, b"v")]]
    with new_producer(network) as producer:
        text: Any = {"h": "1", "none": None}
        producer.send("t", "v", headers=text).result(PATIENCE_MS)
        for headers in unfit:
            with pytest.raises((TypeError, ConfigError), match="header"):
                producer.send("t", "v", headers=headers)
    (record,) = log.records[0]
    assert record.headers == [("h", b"1"), ("none", None)]


@pytest.mark.parametrize("highest", [3, 9, 12, 13])
def test_old_and_new_versions_of_produce_are_spoken(highest: int) -> None:
    network, _ = set_up({"t": [1]}, {0: highest})
    with new_producer(network) as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == 0


def test_brokers_without_topic_ids_are_asked_by_name() -> None:
    network, _ = set_up({"t": [1]}, {3: 9})
    with new_producer(network) as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == 0


@pytest.mark.parametrize(("codec", "number"), [("none", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3), ("zstd", 4)])
def test_every_codec_is_written(codec: str, number: int) -> None:
    network, log = set_up({"t": [1]})
    with new_producer(network, compression_type=codec) as producer:
        for index in range(50):
            producer.send("t", b"value %d" % index)
    assert log.codecs == {number} and [record.value for record in log.records[0]][49] == b"value 49"


def test_close_delivers_what_is_queued() -> None:
    network, log = set_up({"t": [1, 1, 1]})
    with new_producer(network, linger_ms=60_000) as producer:
        for index in range(1000):
            producer.send("t", b"%d" % index, b"%d" % index)
    assert sum(len(records) for records in log.records.values()) == 1000
    with pytest.raises(ClosedError):
        producer.send("t", b"late")


def test_keys_go_where_the_java_client_puts_them() -> None:
    network, log = set_up({"t": [1] * 7})
    with new_producer(network) as producer:
        for index in range(100):
            producer.send("t", b"v", b"key-%d" % index)
    for partition, records in log.records.items():
        assert all(partition_for_key(record.key or b"", 7) == partition for record in records)


@pytest.mark.parametrize("faults", [[6], [DISCONNECT], [19, DISCONNECT, 6, 3]])
def test_retriable_errors_are_tried_again_until_it_works(faults: list[object]) -> None:
    network, log = set_up({"t": [1]})
    log.faults = list(faults)
    with new_producer(network) as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == 0
    assert len(log.records[0]) == 1


def test_a_producer_id_that_is_refused_at_first_is_asked_for_again() -> None:
    network, _ = set_up({"t": [1]})
    codes = [14, 15, 0]

    def answer(request: Message, version: int) -> object:
        return InitProducerIdResponse(error_code=codes.pop(0), producer_id=5, producer_epoch=0)

    network.brokers[HOME].on(InitProducerIdRequest, answer)
    with new_producer(network) as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == 0


def test_a_producer_id_that_is_refused_for_good_ends_the_producer() -> None:
    network, _ = set_up({"t": [1]})
    network.brokers[HOME].on(InitProducerIdRequest, lambda request, version: InitProducerIdResponse(error_code=31))
    with new_producer(network) as producer:
        error = producer.send("t", b"v").exception(PATIENCE_MS)
        assert error is not None and error.name == "CLUSTER_AUTHORIZATION_FAILED" and error.fatal
        with pytest.raises(ClientError):
            producer.send("t", b"v")


def test_a_final_error_reaches_future_callback_and_batch_listener() -> None:
    network, log = set_up({"t": [1]})
    log.faults = [10]
    told: list[ClientError | None] = []
    batches: list[tuple[TopicPartition, int]] = []
    with new_producer(network, on_batch=lambda item, count, error: batches.append((item, count))) as producer:
        future = producer.send("t", b"v", on_delivery=lambda metadata, error: told.append(error))
        producer.flush(PATIENCE_MS)
        error = future.exception(0)
        assert error is not None and error.name == "MESSAGE_TOO_LARGE" and told == [error]
        assert batches == [(TopicPartition("t", 0), 1)]
        assert producer.send("t", b"next").result(PATIENCE_MS).offset == 0


def test_an_unknown_topic_fails_after_max_block() -> None:
    network, _ = set_up({})
    with (
        new_producer(network, max_block_ms=patience_ms(100)) as producer,
        pytest.raises(ClientError, match="nope does not exist"),
    ):
        producer.send("nope", b"v")


def test_a_partition_that_does_not_exist_is_refused() -> None:
    network, _ = set_up({"t": [1]})
    with new_producer(network) as producer, pytest.raises(ClientError, match="no partition 4"):
        producer.send("t", b"v", partition=4)


def test_a_full_buffer_blocks_up_to_max_block() -> None:
    network, log = set_up({"t": [1]})
    log.faults = [6] * 10_000
    producer = new_producer(network, buffer_memory=1000, max_block_ms=patience_ms(100))
    with pytest.raises(RequestTimeoutError, match=r"buffer\.memory"):
        for _ in range(100):
            producer.send("t", b"x" * 100)
    producer.close(0)


def test_closing_without_patience_fails_what_is_left() -> None:
    network, log = set_up({"t": [1]})
    log.faults = [6] * 10_000
    producer = new_producer(network)
    future = producer.send("t", b"v")
    producer.close(0)
    assert isinstance(future.exception(PATIENCE_MS), ClosedError)


def test_acks_0_needs_no_answer_and_no_producer_id() -> None:
    network, log = set_up({"t": [1]})
    with new_producer(network, acks="0") as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == -1
    assert log.acks == {0} and log.producers == {-1}


def test_idempotence_asked_for_together_with_acks_1_is_a_contradiction() -> None:
    with pytest.raises(ConfigError, match="acks must be all"):
        Producer("broker:9092", config=wired(network=FakeNetwork({})), acks="1", enable_idempotence=True)


def test_a_value_of_a_wrong_type_is_refused() -> None:
    network, _ = set_up({"t": [1]})
    with new_producer(network) as producer, pytest.raises(TypeError, match="value_serializer"):
        producer.send("t", 5)


def test_records_without_a_key_stay_on_a_partition_until_a_batch_is_full() -> None:
    topic = new_topic(adaptive=False)
    chosen = [topic.sticky(300).index for _ in range(12)]
    assert chosen == [0] * 4 + [1] * 4 + [0] * 4


def test_a_partition_that_loses_its_leader_is_left_at_once() -> None:
    topic = new_topic(adaptive=False)
    assert topic.sticky(1).index == 0
    topic.set_available([2])
    assert topic.sticky(1).index == 2


def test_a_partition_whose_batches_pile_up_is_drawn_more_rarely() -> None:
    """KIP-794: with 0, 1 and 4 batches waiting, the chances are 5 : 4 : 1."""
    drawn = iter(range(10))
    topic = new_topic(adaptive=True, choose=lambda count: next(drawn) if count == 10 else -1)
    for index, batches in enumerate((0, 1, 4)):
        for _ in range(batches):
            topic.queues[index].in_flight.append(Batch(topic.queues[index], 0, 1, RecordBuffer(), 0))
    chosen = [topic.sticky(1000).index for _ in range(10)]
    assert chosen == [0] * 5 + [1] * 4 + [2]


def new_topic(adaptive: bool, choose: Callable[[int], int] = lambda count: 0) -> TopicState:
    queues = [PartitionQueue(TopicPartition("t", index)) for index in range(3)]
    topic = TopicState("t", queues, 1000, adaptive, choose)
    topic.set_available([0, 1, 2])
    return topic


def test_many_records_are_sent_with_their_keys() -> None:
    network, log = set_up({"t": [1, 1, 1]})
    with new_producer(network) as producer:
        futures = producer.send_many("t", ["a", "b", None], ["k", None, b"k"])
        assert futures[0].result(PATIENCE_MS).partition == partition_for_key(b"k", 3)
    seen = {(record.key, record.value) for records in log.records.values() for record in records}
    assert seen == {(b"k", b"a"), (None, b"b"), (b"k", None)}


def test_a_custom_partitioner_decides() -> None:
    network, log = set_up({"t": [1, 1, 1]})
    with new_producer(network, partitioner=lambda topic, key, count: count - 1) as producer:
        producer.send_many("t", [b"a", b"b"], [b"k", None])
    assert list(log.records) == [2]


def test_the_delivery_timeout_must_leave_room_for_a_request() -> None:
    with pytest.raises(ConfigError, match=r"linger\.ms \+ request\.timeout\.ms"):
        Producer("broker:9092", delivery_timeout_ms=100)


def test_a_leader_that_an_answer_names_is_used_without_asking_for_metadata() -> None:
    """KIP-951: NOT_LEADER_OR_FOLLOWER with the new leader and its address."""
    network, log = set_up({"t": [1]})
    other = ScriptedBroker()
    other.on(ProduceRequest, log.handle)
    network.brokers[("other", 9092)] = other
    home = network.brokers[HOME]

    def moved(request: Message, version: int) -> ProduceResponse:
        assert isinstance(request, ProduceRequest)
        row = PartitionProduceResponse(
            index=0, error_code=6, current_leader=LeaderIdAndEpoch(leader_id=2, leader_epoch=8)
        )
        topic = TopicProduceResponse(topic_id=request.topic_data[0].topic_id, partition_responses=[row])
        return ProduceResponse(responses=[topic], node_endpoints=[NodeEndpoint(node_id=2, host="other", port=9092)])

    home.on(ProduceRequest, moved)
    with new_producer(network) as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == 0
    assert sum(isinstance(request, MetadataRequest) for _, request in home.seen) == 1


def test_a_record_that_no_request_can_carry_is_refused_at_once() -> None:
    network, _ = set_up({"t": [1]})
    with new_producer(network, max_request_size=1000) as producer:
        with pytest.raises(RecordTooLargeError):
            producer.send("t", b"x" * 2000)
        assert producer.send("t", b"x").result(PATIENCE_MS).offset == 0


def test_a_leader_that_hangs_is_left_for_the_one_that_took_its_place() -> None:
    """No answer in time says nothing about the batch, but it may mean that the metadata is old."""
    network, log = set_up({"t": [1]})
    leaders: dict[str, int | list[int]] = {"t": [1]}
    brokers = {1: HOME, 2: ("other", 9092)}
    home, other = network.brokers[HOME], ScriptedBroker()
    network.brokers[("other", 9092)] = other
    for broker in (home, other):
        broker.on(MetadataRequest, metadata(leaders, brokers))
    other.on(ProduceRequest, log.handle)

    def hang(request: Message, version: int) -> object:
        leaders["t"] = [2]
        return SILENCE

    home.on(ProduceRequest, hang)
    with new_producer(
        network, request_timeout_ms=patience_ms(100), delivery_timeout_ms=patience_ms(20_000)
    ) as producer:
        assert producer.send("t", b"v").result(PATIENCE_MS).offset == 0
    assert [record.value for record in log.records[0]] == [b"v"]


def test_metadata_is_asked_first_where_answers_came_from_before() -> None:
    network, _ = set_up({"t": [1]})
    brokers = {1: HOME, 2: ("hangs", 9092), 3: ("hangs", 9093)}
    home = network.brokers[HOME]
    home.on(MetadataRequest, metadata({"t": [1], "u": [1], "v": [1]}, brokers))
    for address in list(brokers.values())[1:]:
        hanging = network.brokers[address] = ScriptedBroker()
        hanging.on(MetadataRequest, lambda request, version: SILENCE)
    with new_producer(
        network, request_timeout_ms=patience_ms(60_000), delivery_timeout_ms=patience_ms(120_000)
    ) as producer:
        for topic in ("t", "u", "v"):
            assert producer.send(topic, b"v").result(PATIENCE_MS).topic == topic
