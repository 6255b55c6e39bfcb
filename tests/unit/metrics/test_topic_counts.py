"""Bytes and records of topics, and what the broker remembers of topics that have left."""

from __future__ import annotations

from moldau.metrics.topic_counts import BrokerCounts
from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.replication.partition import Partition
from tests.unit.node.cluster import Cluster
from tests.unit.node.world import NodeWorld, batch, produce_request


def partition_of(world: NodeWorld, topic: str) -> Partition:
    found = world.node.replicas.find(topic, 0)
    assert found is not None
    return found


def test_what_is_produced_and_fetched() -> None:
    world = NodeWorld().start()
    assert world.create("t", partitions=2) == errors.NONE
    data = batch(world.now_ms, 5)
    for index in (0, 0, 1):
        world.ask(produce_request("t", index, data), 9)
    counts = world.node.replicas.context.counts
    topic = counts.topics["t"]
    assert (topic.bytes_in, topic.messages_in, topic.produce_requests) == (3 * len(data), 15, 3)
    wanted = [FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic("t", partitions=wanted)])
    world.ask(request, 12)
    assert (topic.bytes_out, topic.fetch_requests) == (2 * len(data), 1)
    assert counts.total().bytes_in >= topic.bytes_in


def test_what_is_refused() -> None:
    world = NodeWorld().start()
    assert world.create("t", max_message_bytes="200") == errors.NONE
    counts = world.node.replicas.context.counts
    large, damaged = batch(world.now_ms, 1, bytes(500)), bytearray(batch(world.now_ms))
    damaged[-1] ^= 1
    world.ask(produce_request("t", 0, large), 9)
    world.ask(produce_request("t", 0, bytes(damaged)), 9)
    topic = counts.topics["t"]
    assert topic.bytes_rejected == len(large) + len(damaged)
    assert (topic.bytes_in, topic.messages_in, topic.failed_produce_requests) == (0, 0, 0)
    assert counts.invalid_crc_records == 1
    world.ask(produce_request("nothing", 0, large), 9)
    assert "nothing" not in counts.topics


def test_a_topic_that_leaves_is_still_in_the_total() -> None:
    world = NodeWorld().start()
    assert world.create("t") == errors.NONE
    world.produce("t", values=3)
    counts = world.node.replicas.context.counts
    before = counts.total()
    assert counts.topics["t"].messages_in == 3
    assert world.delete("t") == errors.NONE
    world.run(1000)
    assert "t" not in counts.topics
    after = counts.total()
    assert (after.bytes_in, after.messages_in) >= (before.bytes_in, before.messages_in)


def test_partitions_of_a_topic_share_their_counts() -> None:
    counts = BrokerCounts()
    first, second = counts.partition_added("t"), counts.partition_added("t")
    assert first is second
    first.bytes_in = 7
    counts.partition_removed("t")
    assert counts.topics["t"] is first
    counts.partition_removed("t")
    counts.partition_removed("t")
    assert not counts.topics and counts.total().bytes_in == 7


def test_replication_is_counted_on_both_sides_and_so_is_who_joins_the_isr() -> None:
    cluster = Cluster().start()
    leader = cluster[1]
    assert leader.create("t", replicas=3) == errors.NONE
    cluster.run(2000)
    led = next(m for m in cluster.up() if (p := m.node.replicas.find("t", 0)) is not None and p.is_leader)
    data = batch(cluster.now_ms, 4)
    led.ask(produce_request("t", 0, data, acks=-1), 9)
    cluster.run(1000)
    out = led.node.replicas.context.counts.replication_bytes_out
    assert out >= 2 * len(data)
    follower = next(m for m in cluster.up() if m is not led)
    assert follower.node.replicas.context.counts.replication_bytes_in >= len(data)
    follower.kill()
    cluster.run(30_000)
    before = led.node.replicas.context.counts.isr_expands
    follower.start()
    cluster.run(10_000)
    assert led.node.replicas.context.counts.isr_expands > before
