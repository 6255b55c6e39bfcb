"""Moldau and Apache Kafka throttle alike: every level of user and client id, producers, consumers, request time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from moldau.protocol.messages import alter_client_quotas_request as alter
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.describe_client_quotas_request import DescribeClientQuotasRequest
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from tests.interop.batches import batch
from tests.interop.conftest import Same
from tests.interop.nodes import Node
from tests.interop.peers import Peer
from tests.pace import patience, patience_ms

Entity = tuple[tuple[str, str | None], ...]
USER = "ANONYMOUS"
SECONDS = patience(30)
WINDOW_S = 11
PRODUCE_KEY, FETCH_KEY, REQUEST_KEY = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


def change(peer: Peer, changes: dict[Entity, float | None], key: str) -> None:
    """Sets or removes quotas, and waits until the broker has them."""
    entries = []
    for entity, value in changes.items():
        names = [alter.EntityData(kind, name) for kind, name in entity]
        entries.append(alter.EntryData(names, [alter.OpData(key, 0.0 if value is None else value, value is None)]))
    with peer.connect() as wire:
        answer = wire.ask(alter.AlterClientQuotasRequest(entries), 1)
        assert [entry.error_code for entry in answer.entries] == [0] * len(entries), answer
        deadline = time.monotonic() + SECONDS
        wanted = {entity: value for entity, value in changes.items() if value is not None}
        while time.monotonic() < deadline:
            found = described(wire, key)
            if all(found.get(entity) == wanted.get(entity) for entity in changes):
                time.sleep(0.2)  # what describes them may be a moment ahead of what enforces them
                return
            time.sleep(0.05)
    raise AssertionError(f"{peer.node.name} does not describe {changes}")


def described(wire: Any, key: str) -> dict[Entity, float]:
    answer = wire.ask(DescribeClientQuotasRequest([], False), 1)
    found = {}
    for entry in answer.entries:
        values = {value.key: value.value for value in entry.values}
        if key in values:
            found[tuple(sorted((part.entity_type, part.entity_name) for part in entry.entity))] = values[key]
    return found


@contextmanager
def quotas(peer: Peer, changes: dict[Entity, float | None], key: str) -> Iterator[None]:
    change(peer, changes, key)
    try:
        yield
    finally:
        change(peer, dict.fromkeys(changes), key)


def produce(topic: str, size: int, acks: int = 1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=MemoryRecords(batch([bytes(size)])))
    return ProduceRequest(
        acks=acks, timeout_ms=patience_ms(10_000), topic_data=[TopicProduceData(topic, partition_data=[data])]
    )


def levels(client_id: str) -> list[Entity]:
    return [
        (("client-id", client_id), ("user", USER)),
        (("client-id", None), ("user", USER)),
        (("user", USER),),
        (("client-id", client_id), ("user", None)),
        (("client-id", None), ("user", None)),
        (("user", None),),
        (("client-id", client_id),),
        (("client-id", None),),
    ]


@pytest.mark.parametrize("level", range(1, 9))
def test_the_level_that_wins_shows_in_the_throttle_time(same: Same, topic: str, level: int) -> None:
    """All lower levels have values too. A first request is measured over exactly ten seconds, so times are equal."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        client_id = f"{topic}-{level}"
        entities = levels(client_id)
        values: dict[Entity, float | None] = {entities[n - 1]: 1000.0 * n for n in range(level, 9)}
        if level == 6:
            time.sleep(WINDOW_S + 1)  # level 3 counted for the same user
        with quotas(peer, values, PRODUCE_KEY), peer.connect() as wire:
            with peer.connect() as other:
                entities_described = sorted(described(other, PRODUCE_KEY).values())
            return wire.ask(produce(topic, 200_000), 9, client_id).throttle_time_ms, entities_described

    throttle_ms, found = same(scenario)
    assert found == [1000.0 * n for n in range(level, 9)]
    bound = level * 1000
    assert 200_000 * 1000 / bound - 10_000 < throttle_ms < 201_000 * 1000 / bound - 10_000


def test_a_value_that_changes_keeps_the_history(same: Same, topic: str) -> None:
    """Lowered: the next request waits. Raised: it does not. Removed: nobody waits."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        client = (("client-id", topic),)
        seen = []
        try:
            for value in (100_000.0, 1000.0, 1_000_000.0, None):
                change(peer, {client: value}, PRODUCE_KEY)
                with peer.connect() as wire:
                    seen.append(wire.ask(produce(topic, 50_000), 9, topic).throttle_time_ms > 0)
        finally:
            change(peer, {client: None}, PRODUCE_KEY)
        return seen

    assert same(scenario) == [False, True, False, False]


def test_a_throttled_fetch_is_empty_and_opens_no_session(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        seen: list[Any] = []
        with quotas(peer, {(("client-id", topic),): 1000.0}, FETCH_KEY):
            for offset in (0, 1):
                peer.produce(topic, batch([bytes(6000)]))
                request = peer.fetch_request(topic, [(0, offset)], 12, session_epoch=0, max_bytes=1 << 20)
                with peer.connect() as wire:
                    answer = wire.ask(request, 12, topic)
                rows = [row for found in answer.responses for row in found.partitions]
                sizes = [row.records.size for row in rows]
                seen.append((answer.error_code, answer.session_id > 0, sizes, answer.throttle_time_ms > 0))
        return seen

    first, second = same(scenario)
    assert first[1] and first[2] and not first[3]
    assert second == (0, False, [], True)


def test_request_time_is_limited_for_every_api_and_by_a_second_at_most(same: Same, topic: str) -> None:
    def scenario(peer: Peer) -> Any:
        with quotas(peer, {(("client-id", topic),): 0.01}, REQUEST_KEY):
            waits = []
            for request, version in ((MetadataRequest(topics=None), 12), (ApiVersionsRequest(), 2)):
                deadline = time.monotonic() + patience(60)
                waited = 0
                while waited == 0 and time.monotonic() < deadline:
                    with peer.connect() as wire:
                        for _ in range(50):
                            waited = wire.ask(request, version, topic).throttle_time_ms
                            if waited:
                                break
                waits.append(0 < waited <= 1000)
            return waits

    assert same(scenario) == [True, True]


def test_without_an_answer_the_connection_is_silent(same: Same, topic: str) -> None:
    """acks=0: what is asked next on the connection is not heard for a while."""

    def scenario(peer: Peer) -> Any:
        peer.create(topic)
        with quotas(peer, {(("client-id", topic),): 1000.0}, PRODUCE_KEY), peer.connect() as wire:
            wire.send(produce(topic, 200_000, acks=0), 9, topic)
            wire.send(ApiVersionsRequest(), 0, topic)
            wire.socket.settimeout(2)
            try:
                return wire.receive_frame()
            except TimeoutError:
                return "silent"

    assert same(scenario) == "silent"


# Real clients


@pytest.mark.parametrize("count", [1, 3])
def test_librdkafka_is_slowed_down_to_its_rate(moldau_server: Node, topic: str, count: int) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    peer = Peer(moldau_server)
    peer.create(topic)
    rate, size = 200_000, 10_000
    seconds = 6.0
    settings = {"bootstrap.servers": moldau_server.bootstrap, "client.id": topic, "linger.ms": 0, "acks": 1}
    delivered = [0]

    def on_delivery(error: Any, message: Any) -> None:
        delivered[0] += error is None

    with quotas(peer, {(("client-id", topic),): float(rate)}, PRODUCE_KEY):
        producers = [
            confluent.Producer({**settings, "batch.num.messages": 5, "message.timeout.ms": patience_ms(120_000)})
            for _ in range(count)
        ]
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            for producer in producers:
                if len(producer) < 50:
                    producer.produce(topic, bytes(size), on_delivery=on_delivery)
                producer.poll(0)
        # As many as are on the way may be in the log before the first of them waits.
        took = time.monotonic() - began
        assert delivered[0] * size < rate * (took + 10) + count * 60 * size
        for producer in producers:
            producer.purge()
            producer.flush(0)
    peer.close()


def test_a_librdkafka_consumer_gets_everything_at_its_rate(moldau_server: Node, topic: str) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    peer = Peer(moldau_server)
    peer.create(topic)
    count, size, rate = 150, 10_000, 100_000
    for _ in range(count):
        assert peer.produce(topic, batch([bytes(size)])).error_code == 0
    with quotas(peer, {(("client-id", topic),): float(rate)}, FETCH_KEY):
        consumer = confluent.Consumer(
            {"bootstrap.servers": moldau_server.bootstrap, "client.id": topic, "group.id": topic}
        )
        consumer.assign([confluent.TopicPartition(topic, 0, 0)])
        began = time.monotonic()
        found = 0
        while found < count and time.monotonic() - began < patience(120):
            found += len([message for message in consumer.consume(50, 1.0) if message.error() is None])
        took = time.monotonic() - began
        consumer.close()
    peer.close()
    assert found == count, "nothing is lost by answers that are empty"
    assert count * size < rate * (took + 12), "and it does not come faster than the quota allows"
