"""What clients count of what they did, against scripted brokers; and that they have every metric of the catalogue."""

from __future__ import annotations

from math import isnan
from typing import Any

import pytest

from moldau.client.admin import Admin
from moldau.client.consumer import Consumer
from moldau.client.errors import ClientError
from moldau.client.metrics.catalogue import KINDS, known_metrics
from moldau.client.metrics.names import CLIENT_ID, Metrics
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from moldau.protocol.errors import MESSAGE_TOO_LARGE, NOT_ENOUGH_REPLICAS
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.list_offsets_request import ListOffsetsRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from tests.unit.client import test_consumer, test_producer
from tests.unit.client.fake_network import HOME, FakeNetwork, ScriptedBroker, metadata
from tests.unit.client.group_world import GroupWorld, WorldNetwork
from tests.unit.client.share_world import World
from tests.unit.client.share_world import batch as share_batch

P0 = TopicPartition("t", 0)
RECORD_BYTES = 109
"""One record with a value of 100 bytes and without a key, within its batch."""


def known(kind: str, *, untagged: bool = False) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(row.group, row.name, row.tags) for row in known_metrics(kind) if not (untagged and row.tags)}


def names(metrics: Metrics) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(key.group, key.name, tuple(tag for tag, _ in key.tags if tag != CLIENT_ID)) for key in metrics}


def produce(count: int = 10, **more: Any) -> tuple[Producer, FakeNetwork, test_producer.Log]:
    network, log = test_producer.set_up({"t": [1]})
    producer = test_producer.new_producer(network, **more)
    for future in producer.send_many("t", [bytes(100)] * count):
        future.exception(60_000)
    return producer, network, log


def consume(values: list[bytes], **more: Any) -> tuple[Consumer, FakeNetwork, test_consumer.Log]:
    log = test_consumer.Log()
    log.add(0, values)
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"t": [1]}))
    broker.on(ListOffsetsRequest, log.list_offsets)
    broker.on(FetchRequest, log.fetch)
    network = FakeNetwork({HOME: broker})
    consumer = Consumer("broker:9092", config=wired(network=network), **more)
    consumer.assign([P0])
    consumer.seek_to_beginning()
    return consumer, network, log


# Names


def test_a_producer_has_every_metric_of_the_catalogue() -> None:
    producer, _, _ = produce()
    with producer:
        assert names(producer.metrics()) == known("producer")


def test_a_consumer_without_a_group_has_all_but_those_of_groups() -> None:
    consumer, _, _ = consume([b"a"])
    with consumer:
        while not consumer.poll(100):
            pass
        without = {row for row in known("consumer") if row[0] != "consumer-coordinator-metrics"}
        assert names(consumer.metrics()) == without


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_of_a_group_has_every_metric_of_a_consumer(protocol: str) -> None:
    world = GroupWorld(1, partitions=2)
    settings = {"group.id": "g", "enable.auto.commit": False, "group.protocol": protocol}
    consumer = Consumer("broker-1:9092", config=wired(settings, network=WorldNetwork(world)))
    consumer.subscribe(["t"])
    while not consumer.assignment():
        consumer.poll(100)
    consumer.commit({P0: 1})
    found = consumer.metrics()
    assert known("consumer", untagged=True) <= names(found) <= known("consumer")
    assert found["assigned-partitions"] == 2 and found["rebalance-total"] == 1
    assert found["commit-total"] == 1 and found["commit-latency-max"] >= 0
    assert found["join-total"] == found["sync-total"] == (1 if protocol == "classic" else 0)
    assert found["failed-rebalance-total"] == 0 and found["last-rebalance-seconds-ago"] >= 0
    assert found["rebalance-latency-total"] >= found["rebalance-latency-max"] >= 0
    if protocol == "consumer":
        assert found["heartbeat-total"] > 0 and found["last-heartbeat-seconds-ago"] >= 0
    consumer.close()


def test_a_share_consumer_has_every_metric_of_the_catalogue() -> None:
    world = World()
    world.leader.deliver(share_batch(0, [b"a", b"b"]), (0, 1, 1))
    with world.consumer() as consumer:
        consumer.subscribe(["t"])
        given: list[object] = []
        while not given:
            given += consumer.poll(100)
        consumer.commit()
        found = consumer.metrics()
        assert names(found) == known("share consumer")
        assert found["records-consumed-total"] == 2 and found["records-per-request-max"] == 2
        assert found["acknowledgements-send-total"] == 2 and found["acknowledgements-error-total"] == 0
        assert found["bytes-consumed-total"] == len(share_batch(0, [b"a", b"b"]))


def test_an_admin_client_has_every_metric_of_the_catalogue() -> None:
    network, _ = test_producer.set_up({"t": [1]})
    with Admin("broker:9092", config=wired(network=network)) as admin:
        admin.list_topics()
        found = admin.metrics()
        assert names(found) == known("admin")
        assert found["request-total"] >= 2 and not isnan(found.value("request-latency-avg", node_id="node-1"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_catalogue_names_nothing_twice(kind: str) -> None:
    assert len(known_metrics(kind)) == len(known(kind))


# Producers


def test_a_producer_counts_records_batches_and_bytes() -> None:
    producer, _, _ = produce(10)
    with producer:
        found = producer.metrics()
        size = found["batch-size-max"]
        assert found["record-send-total"] == 10 == found.value("record-send-total", topic="t")
        assert found.value("byte-total", topic="t") == size * round(found.value("byte-total", topic="t") / size)
        assert found["record-size-max"] == found["record-size-avg"] == RECORD_BYTES
        assert found["compression-rate-avg"] == found.value("compression-rate", topic="t") == 1.0
        assert found["record-error-total"] == found["record-retry-total"] == found["batch-split-total"] == 0
        assert found["record-send-rate"] > 0 and found["record-queue-time-avg"] >= 0
        assert found["buffer-available-bytes"] == found["buffer-total-bytes"] == 32 * 1024 * 1024
        assert found["requests-in-flight"] == found["waiting-threads"] == 0
        assert found.value("request-latency-max", node_id="node-1") == found["request-latency-max"] >= 0


def test_what_is_sent_again_is_counted_again() -> None:
    network, log = test_producer.set_up({"t": [1]})
    log.faults = [NOT_ENOUGH_REPLICAS]
    with test_producer.new_producer(network) as producer:
        producer.send("t", b"1").result(60_000)
        found = producer.metrics()
        assert found["record-retry-total"] == found.value("record-retry-total", topic="t") == 1
        assert found["record-send-total"] == 2 and found["record-error-total"] == 0


def test_what_fails_is_an_error() -> None:
    network, log = test_producer.set_up({"t": [1]})
    log.faults = [MESSAGE_TOO_LARGE]
    with test_producer.new_producer(network) as producer:
        with pytest.raises(ClientError):
            producer.send("t", b"1").result(60_000)
        found = producer.metrics()
        assert found["record-error-total"] == found.value("record-error-total", topic="t") == 1


def test_compressed_batches_are_smaller_than_their_records() -> None:
    producer, _, _ = produce(1_000, compression_type="zstd")
    with producer:
        found = producer.metrics()
        assert 0 < found["compression-rate-avg"] < 0.5
        assert found["record-size-avg"] > 100 and found["batch-size-avg"] < 1_000 * found["record-size-avg"]


def test_calls_that_block_are_timed() -> None:
    producer, _, _ = produce(1)
    with producer:
        producer.flush()
        found = producer.metrics()
        assert found["flush-time-ns-total"] > 0 and found["metadata-wait-time-ns-total"] > 0
        assert found["txn-commit-time-ns-total"] == 0 and found["metadata-age"] >= 0


# Consumers


def test_a_consumer_counts_records_bytes_and_lag() -> None:
    consumer, _, log = consume([bytes(100)] * 10)
    log.add(0, [bytes(100)] * 5)
    with consumer:
        given: list[object] = []
        while len(given) < 4:
            given += consumer.poll(100, max_records=4)
        found = consumer.metrics()
        assert found["records-consumed-total"] == 4 and found["bytes-consumed-total"] == 0, "a batch has begun"
        assert found.value("records-lag", topic="t", partition=0) == 11 == found["records-lag-max"]
        assert found.value("records-lead", topic="t", partition=0) == 4 == found["records-lead-min"]
        while len(given) < 15:
            given += consumer.poll(100)
        found = consumer.metrics()
        assert found["records-consumed-total"] == 15 == found.value("records-consumed-total", topic="t")
        assert found["bytes-consumed-total"] == 15 * RECORD_BYTES == found.value("bytes-consumed-total", topic="t")
        assert found.value("records-lag", topic="t", partition=0) == 0
        assert found.value("records-lag-max", topic="t", partition=0) == 11
        assert found.value("preferred-read-replica", topic="t", partition=0) == -1
        assert found["fetch-total"] >= 1 and found["fetch-size-max"] >= 10 * RECORD_BYTES
        assert found["records-per-request-avg"] >= 1 and found["last-poll-seconds-ago"] == 0


def test_what_was_lately_is_forgotten_after_a_minute_and_totals_are_not() -> None:
    consumer, network, _ = consume([b"a"])
    with consumer:
        while not consumer.poll(100):
            pass
        assert consumer.metrics()["records-consumed-rate"] > 0
        network.clock_ms += 60_000
        found = consumer.metrics()
        assert found["records-consumed-rate"] == 0 and found["records-consumed-total"] == 1
        assert isnan(found["fetch-latency-avg"]) and isnan(found["records-lag-max"])
        assert found["last-poll-seconds-ago"] >= 59
        assert found.value("records-lag", topic="t", partition=0) == 0, "what it was last"


def test_the_length_of_samples_is_a_setting() -> None:
    producer, network, _ = produce(1, metrics_sample_window_ms=1_000_000, metrics_num_samples=3)
    assert network.meter() is not None
    producer.close()
    for settings in ({"metrics_num_samples": 0}, {"metrics_sample_window_ms": -1}):
        with pytest.raises(ClientError):
            Producer("broker:9092", **settings)  # type: ignore[arg-type]


def test_totals_of_a_topic_stay_when_its_partitions_go() -> None:
    consumer, _, _ = consume([b"a"])
    with consumer:
        while not consumer.poll(100):
            pass
        consumer.assign([TopicPartition("u", 0)])
        found = consumer.metrics()
        assert found["records-consumed-total"] == 1
        assert not found.find("records-lag", topic="t")


def test_the_time_in_poll_is_compared_with_the_time_outside() -> None:
    consumer, network, _ = consume([])
    with consumer:
        consumer.poll(100)
        network.clock_ms += 300
        consumer.poll(100)
        found = consumer.metrics()
        assert found["time-between-poll-max"] >= 400
        assert 0.1 < found["poll-idle-ratio-avg"] < 0.8
