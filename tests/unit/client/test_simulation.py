"""The whole producer and consumer on a simulated clock and network: each record once, in order, whatever happens.

MOLDAU_CLIENT_SEEDS says how many seeds are run (a few by default).
"""

from __future__ import annotations

import os
import random
import threading

import pytest

from moldau.client.consumer import Consumer
from moldau.client.produce.delivery import DeliveryFuture
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition
from moldau.client.wiring import wired
from tests.unit.client.simulated_network import SimulatedCluster, SimulatedNetwork

SEEDS = int(os.environ.get("MOLDAU_CLIENT_SEEDS", "6"))
PARTITIONS = 3


def new_producer(network: SimulatedNetwork, chance: random.Random) -> Producer:
    """A producer whose sender is stepped by the test."""
    producer = Producer(
        "broker-1:9092,broker-2:9092",
        config=wired(network=network),
        batch_size=chance.choice([100, 300, 1000]),
        linger_ms=chance.choice([0, 5, 50]),
        compression_type=chance.choice(["none", "none", "zstd", "lz4"]),
        retry_backoff_ms=10,
        retry_backoff_max_ms=200,
        request_timeout_ms=1_000,
        delivery_timeout_ms=100_000_000,
        max_block_ms=0,
    )
    sender = producer._sender
    sender.thread = threading.current_thread()
    sender.wanted_topics.add("t")
    while "t" not in sender.topics:
        sender.step()
    return producer


def produce(seed: int, throttle_ms: int = 0) -> tuple[SimulatedCluster, list[list[DeliveryFuture]], random.Random]:
    random.seed(seed)  # the pauses between tries
    chance = random.Random(seed)
    cluster = SimulatedCluster(chance, PARTITIONS, chance.choice([250, 1 << 20]))
    if throttle_ms:
        cluster.throttle_ms, cluster.throttles_percent = throttle_ms, 20
    network = SimulatedNetwork(cluster, chance, chance.choice([0.0, 0.02, 0.1]))
    producer = new_producer(network, chance)
    futures: list[list[DeliveryFuture]] = [[] for _ in range(PARTITIONS)]
    sent = 0
    while sent < 200 or producer._accumulator.batches_held:
        for _ in range(chance.randrange(8) if sent < 200 else 0):
            partition = chance.randrange(PARTITIONS)
            value = b"%d:%05d" % (partition, len(futures[partition]))
            futures[partition].append(producer.send("t", value, partition=partition))
            sent += 1
        if chance.random() < 0.02:
            cluster.move_a_leader()
        producer._sender.step()
        assert network.clock_ms < 50_000_000, "the producer does not finish"
    return cluster, futures, chance


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_record_is_written_once_and_in_order(seed: int) -> None:
    cluster, futures, _ = produce(seed)
    for partition, log in enumerate(cluster.logs):
        assert log.values == [b"%d:%05d" % (partition, number) for number in range(len(futures[partition]))]
        for number, future in enumerate(futures[partition]):
            assert future.result(0).offset in (number, -1)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_record_is_written_once_and_in_order_by_a_throttled_producer(seed: int) -> None:
    """The network checks that nothing is sent to a broker while it throttles the client."""
    cluster, futures, _ = produce(seed, throttle_ms=700)
    assert cluster.throttled
    for partition, log in enumerate(cluster.logs):
        assert log.values == [b"%d:%05d" % (partition, number) for number in range(len(futures[partition]))]


@pytest.mark.parametrize("throttle_ms", [0, 700])
@pytest.mark.parametrize("seed", range(SEEDS))
def test_every_record_is_read_once_and_in_order(seed: int, throttle_ms: int) -> None:
    cluster, futures, chance = produce(seed, throttle_ms)
    network = SimulatedNetwork(cluster, chance, chance.choice([0.0, 0.02, 0.1]))
    consumer = Consumer(
        "broker-1:9092,broker-2:9092",
        config=wired(network=network),
        retry_backoff_ms=10,
        retry_backoff_max_ms=200,
        request_timeout_ms=1_000,
        max_partition_fetch_bytes=chance.choice([1, 500, 1 << 20]),
    )
    consumer.assign([TopicPartition("t", index) for index in range(PARTITIONS)])
    for partition in consumer.assignment():
        consumer.seek(partition, 0)
    read: list[list[bytes]] = [[] for _ in range(PARTITIONS)]
    while sum(map(len, read)) < sum(map(len, futures)):
        for record in consumer.poll(chance.randrange(100), chance.randrange(1, 50)):
            assert record.offset == len(read[record.partition])
            read[record.partition].append(record.value)
        if chance.random() < 0.02:
            cluster.move_a_leader()
        assert network.clock_ms < 50_000_000, "the consumer does not finish"
    assert read == [log.values for log in cluster.logs]
