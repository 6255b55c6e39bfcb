"""Quotas in the simulated world: rates by the simulated clock, and nothing lost or answered twice while muted."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.protocol import errors
from moldau.protocol.messages import alter_client_quotas_request as alter
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.sim.node.client import SimClient
from moldau.sim.node.program import NodeProgram
from moldau.sim.node.world import NodeWorld
from tests.sim.seeds import SEEDS

RATE = 20_000
RECORD_BYTES = 2000
IN_FLIGHT = 5
PERIOD_MS = 60_000


class Producer:
    """As fast as it is let, several requests at once; a client from before KIP-219, which does not wait by itself."""

    def __init__(self, world: NodeWorld, name: str, acks: int = 1) -> None:
        self.client = SimClient(world.world, world.host, name)
        self.world = world.world
        self.acks = acks
        self.sent = 0
        self.lost = 0
        self.offsets: list[int] = []
        self.told_ms = 0
        self.stopped = False

    def fill(self) -> None:
        while not self.stopped and self.client.in_flight < IN_FLIGHT:
            self.sent += 1
            self.client.call(produce(self.sent), 9, self._on_response)

    def _on_response(self, answer: Any) -> None:
        if answer is None:
            self.lost += 1
            self.world.schedule(5, self.fill)
            return
        row = answer.responses[0].partition_responses[0]
        assert row.error_code == errors.NONE
        self.told_ms = max(self.told_ms, answer.throttle_time_ms)
        self.offsets.append(row.base_offset)
        self.fill()


def produce(number: int, acks: int = 1) -> ProduceRequest:
    builder = BatchBuilder()
    builder.append(1, b"%04d" % number, bytes(RECORD_BYTES))
    data = builder.build()
    partition = PartitionProduceData(index=0, records=MemoryRecords(data, 0, len(data)))
    return ProduceRequest(acks=acks, timeout_ms=1000, topic_data=[TopicProduceData("t", partition_data=[partition])])


def ask(world: NodeWorld, request: Message, version: int) -> Any:
    client = SimClient(world.world, world.host, "admin")
    answers: list[Any] = []
    client.call(request, version, answers.append)
    assert world.world.run_until(lambda: bool(answers), 30_000)
    return answers[0]


def set_quota(world: NodeWorld, key: str, value: float) -> None:
    entry = alter.EntryData([alter.EntityData("user", "ANONYMOUS")], [alter.OpData(key, value)])
    assert ask(world, alter.AlterClientQuotasRequest([entry]), 1).entries[0].error_code == errors.NONE
    world.world.run_for(200)


def started(seed: int) -> NodeWorld:
    world = NodeWorld(seed)
    assert world.host.boot()
    program = world.host.program
    assert isinstance(program, NodeProgram)
    assert world.world.run_until(lambda: program.node.is_ready, 60_000)
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    topic.configs = [CreatableTopicConfig("retention.ms", "-1"), CreatableTopicConfig("retention.bytes", "-1")]
    assert ask(world, CreateTopicsRequest([topic], timeout_ms=1000), 5).topics[0].error_code == errors.NONE
    world.world.run_for(200)
    return world


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("count", [1, 4])
def test_producers_get_their_rate_together_and_every_request_is_answered_once(seed: int, count: int) -> None:
    world = started(seed)
    set_quota(world, "producer_byte_rate", RATE)
    producers = [Producer(world, f"p{number}") for number in range(count)]
    for producer in producers:
        producer.fill()
    world.world.run_for(PERIOD_MS)
    before = sum(len(producer.offsets) for producer in producers)
    world.world.run_for(PERIOD_MS)
    offsets = sorted(offset for producer in producers for offset in producer.offsets)
    rate = (len(offsets) - before) * RECORD_BYTES / (PERIOD_MS / 1000)
    assert 0.85 * RATE < rate < 1.1 * RATE
    assert all(producer.told_ms > 0 for producer in producers)
    for producer in producers:
        producer.stopped = True
    assert world.world.run_until(lambda: all(p.client.in_flight == 0 for p in producers), 10 * PERIOD_MS)
    offsets = sorted(offset for producer in producers for offset in producer.offsets)
    assert offsets == list(range(sum(producer.sent for producer in producers))), "none lost, none written twice"
    world.world.run_for(PERIOD_MS)
    assert world.host.muted_connections == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_connections_that_break_while_muted_leave_nothing_behind(seed: int) -> None:
    world = started(seed)
    set_quota(world, "producer_byte_rate", RATE)
    producers = [Producer(world, f"p{number}") for number in range(3)]
    for producer in producers:
        producer.fill()
    rng = world.world.derived_rng("breaks")
    muted = 0
    for _ in range(20):
        world.world.run_for(rng.randint(100, 4000))
        muted = max(muted, world.host.muted_connections)
        rng.choice(producers).client.disconnect("a test")
    assert muted > 0
    for producer in producers:
        producer.stopped = True
        producer.client.disconnect("the end")
    world.world.run_for(10 * PERIOD_MS)
    assert sum(producer.lost for producer in producers) > 0
    assert world.host.muted_connections == 0
    names = [link.name for link in world.host._sides]
    assert not [name for name in names if not name.startswith("admin")], "no connection is remembered"
    offsets = [offset for producer in producers for offset in producer.offsets]
    assert len(set(offsets)) == len(offsets)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_consumer_gets_its_rate_and_every_record(seed: int) -> None:
    world = started(seed)
    total = 300
    for number in range(total):
        assert ask(world, produce(number), 9).responses[0].partition_responses[0].error_code == errors.NONE
    set_quota(world, "consumer_byte_rate", RATE)
    client = SimClient(world.world, world.host, "consumer")
    bytes_read = [0]
    empty = [0]
    began_ms = world.world.now_ms

    def fetch() -> None:
        wanted = [FetchPartition(partition=0, fetch_offset=bytes_read[0] // record, partition_max_bytes=1 << 20)]
        topics = [FetchTopic(topic="t", partitions=wanted)]
        request = FetchRequest(topics=topics, max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, session_epoch=-1)
        client.call(request, 12, on_response)

    def on_response(answer: Any) -> None:
        if not answer.responses:
            assert answer.throttle_time_ms > 0
            empty[0] += 1
        else:
            assert answer.responses[0].partitions[0].error_code == errors.NONE
            bytes_read[0] += answer.responses[0].partitions[0].records.size
        if bytes_read[0] < total * record:
            fetch()

    record = len(produce(1).topic_data[0].partition_data[0].records.to_bytes())  # type: ignore[union-attr]
    fetch()
    assert world.world.run_until(lambda: bytes_read[0] == total * record, 20 * PERIOD_MS), "every record, once"
    took_s = (world.world.now_ms - began_ms) / 1000
    # The first ten seconds' worth may come at once.
    assert total * RECORD_BYTES / took_s < RATE * (took_s + 12) / took_s
    assert empty[0] > 0


def test_the_same_seed_mutes_in_the_same_way() -> None:
    def run() -> list[tuple[int, int]]:
        world = started(11)
        set_quota(world, "producer_byte_rate", RATE)
        producer = Producer(world, "p")
        seen: list[tuple[int, int]] = []
        producer.fill()
        for _ in range(30):
            world.world.run_for(1000)
            seen.append((len(producer.offsets), world.host.muted_connections))
        return seen

    assert run() == run()
