"""Moldau's own client, the same suite against Moldau and against Apache Kafka."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import random
import re
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import moldau.client
from moldau.client import Admin, AsyncAdmin, AsyncConsumer, AsyncProducer, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import (
    ClientError,
    ClosedError,
    OffsetOutOfRangeError,
    RecordTooLargeError,
    RequestTimeoutError,
    UnknownTopicOrPartitionError,
)
from tests.interop.nodes import Node
from tests.pace import patience, patience_ms


@pytest.fixture(params=["moldau_server", "oracle"], ids=["moldau", "kafka"])
def server(request: pytest.FixtureRequest) -> str:
    node: Node = request.getfixturevalue(request.param)
    return node.bootstrap


def create(server: str, topic: str, partitions: int = 1, **configs: str) -> list[TopicPartition]:
    with Admin(server) as admin:
        named = {name.replace("_", "."): value for name, value in configs.items()}
        admin.create_topics([NewTopic(topic, partitions, 1, named)])[topic].get()
    return [TopicPartition(topic, index) for index in range(partitions)]


def read(server: str, partitions: list[TopicPartition], count: int, **more: Any) -> list[Any]:
    """Records from the beginning until there are so many; fails after twenty seconds."""
    records: list[Any] = []
    deadline = time.monotonic() + patience(20)
    with Consumer(server, **more) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while len(records) < count and time.monotonic() < deadline:
            records += consumer.poll(500)
    return records


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_are_written_and_read_with_every_codec(server: str, topic: str, codec: str) -> None:
    partitions = create(server, topic)
    base = time.time_ns() // 1_000_000 - 600_000  # not so old that retention takes them
    with Producer(server, compression_type=codec) as producer:
        futures = [
            producer.send(
                topic, b"value %d" % number, b"key", headers={"n": b"%d" % number}, timestamp_ms=base + number
            )
            for number in range(500)
        ]
    assert [future.result(0).offset for future in futures] == list(range(500))
    records = read(server, partitions, 500)
    assert [(r.offset, r.key, r.value, r.timestamp, r.headers) for r in records] == [
        (number, b"key", b"value %d" % number, base + number, [("n", b"%d" % number)]) for number in range(500)
    ]


@pytest.mark.parametrize("acks", ["all", "1", "0"])
def test_every_kind_of_acknowledgement_delivers(server: str, topic: str, acks: str) -> None:
    partitions = create(server, topic)
    with Producer(server, acks=acks) as producer:
        producer.send_many(topic, [b"%d" % number for number in range(300)])
    assert [record.value for record in read(server, partitions, 300)] == [b"%d" % number for number in range(300)]


def test_keys_land_where_confluent_kafka_puts_them(server: str, topic: str) -> None:
    """10,000 random keys; murmur2_random is what librdkafka calls Java's partitioner."""
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    partitions = create(server, topic, 7)
    chance = random.Random(7)
    keys = [chance.randbytes(chance.randrange(1, 40)) for _ in range(10_000)]
    other = confluent.Producer({"bootstrap.servers": server, "partitioner": "murmur2_random", "linger.ms": 5})
    for key in keys:
        other.produce(topic, b"theirs", key)
    assert other.flush(patience(20)) == 0
    with Producer(server) as producer:
        producer.send_many(topic, [b"ours"] * len(keys), keys)
    placed: dict[bytes, dict[bytes, set[int]]] = {b"ours": {}, b"theirs": {}}
    for record in read(server, partitions, 20_000, max_poll_records=5000):
        placed[record.value].setdefault(record.key, set()).add(record.partition)
    assert placed[b"ours"] == placed[b"theirs"] and len(placed[b"ours"]) == len(set(keys))


def test_a_batch_that_is_too_large_for_the_topic_is_split(server: str, topic: str) -> None:
    partitions = create(server, topic, max_message_bytes="2000")
    with Producer(server, batch_size=16_000, linger_ms=50) as producer:
        futures = producer.send_many(topic, [b"%03d" % number + b"x" * 97 for number in range(100)])
        large = producer.send(topic, b"y" * 3000)
    assert isinstance(large.exception(0), RecordTooLargeError)
    assert [future.result(0).offset for future in futures] == list(range(100))
    assert [record.value[:3] for record in read(server, partitions, 100)] == [b"%03d" % n for n in range(100)]


def test_arrow_tables_go_there_and_back(server: str, topic: str) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    partitions = create(server, topic, 3)
    keys = [None if number % 5 == 0 else b"k%d" % number for number in range(5000)]
    values = [b"%d" % number * (number % 7) for number in range(5000)]
    with Producer(server, compression_type="zstd") as producer:
        delivery = producer.send_arrow(topic, pyarrow.table({"key": keys, "value": values}))
        assert sum(batch.rows for batch in delivery.result(patience_ms(20_000))) == 5000
    seen: dict[tuple[Any, Any], int] = {}
    rows = 0
    with Consumer(server) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        deadline = time.monotonic() + patience(20)
        while rows < 5000 and time.monotonic() < deadline:
            batch = consumer.poll_arrow(500)
            for row in [] if batch is None else batch.to_pylist():
                seen[(row["key"], row["value"])] = row["partition"]
                rows += 1
    assert rows == 5000 and set(seen) == set(zip(keys, values, strict=True))


def test_positions_offsets_and_times(server: str, topic: str) -> None:
    (partition,) = create(server, topic)
    base = time.time_ns() // 1_000_000 - 600_000  # not so old that retention takes them
    with Producer(server) as producer:
        for number in range(10):
            producer.send(topic, b"%d" % number, timestamp_ms=base + 1000 * number)
    with Consumer(server, auto_offset_reset="earliest") as consumer:
        assert consumer.partitions_for(topic) == [partition]
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        found = consumer.offsets_for_times({partition: base + 4500})[partition]
        assert found is not None and (found.offset, found.timestamp) == (5, base + 5000)
        assert consumer.offsets_for_times({partition: base + 99_999}) == {partition: None}
        consumer.assign([partition])
        assert consumer.position(partition) == 0
        consumer.seek(partition, 7)
        assert [record.value for record in consumer.poll(patience_ms(5000))] == [b"7", b"8", b"9"]
        assert consumer.position(partition) == 10 and consumer.lag(partition) == 0
        consumer.seek(partition, 500)
        assert consumer.poll(patience_ms(5000))[0].offset == 0


def test_incremental_fetches_see_every_new_record(server: str, topic: str) -> None:
    """A fetch session lives over many polls while partitions are paused, resumed and written to."""
    partitions = create(server, topic, 4)
    seen: dict[int, list[bytes]] = {index: [] for index in range(4)}
    with Producer(server, linger_ms=0) as producer, Consumer(server, auto_offset_reset="earliest") as consumer:
        consumer.assign(partitions)
        for number in range(40):
            producer.send(topic, b"%d" % number, partition=number % 4).result(patience_ms(10_000))
            if number % 10 == 3:
                consumer.pause([partitions[number % 4]])
            if number % 10 == 8:
                consumer.resume(partitions)
            for record in consumer.poll(50):
                seen[record.partition].append(record.value)
        consumer.resume(partitions)
        deadline = time.monotonic() + patience(10)
        while sum(map(len, seen.values())) < 40 and time.monotonic() < deadline:
            for record in consumer.poll(200):
                seen[record.partition].append(record.value)
    assert seen == {index: [b"%d" % number for number in range(index, 40, 4)] for index in range(4)}


def test_what_goes_wrong_is_said_as_kafka_says_it(server: str, topic: str) -> None:
    (partition,) = create(server, topic)
    with Producer(server, max_block_ms=patience_ms(1500)) as producer:
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, b"x" * 2_000_000)
        with pytest.raises(UnknownTopicOrPartitionError, match="no partition 9"):
            producer.send(topic, b"x", partition=9)
        with pytest.raises(ClientError) as caught:
            producer.send("no/such topic", b"x")
        assert caught.value.name == "INVALID_TOPIC_EXCEPTION" and not caught.value.retriable
    with pytest.raises(ClosedError):
        producer.send(topic, b"x")
    with Consumer(server, auto_offset_reset="none", allow_auto_create_topics=False) as consumer:
        consumer.assign([partition])
        consumer.seek(partition, 77)
        with pytest.raises(OffsetOutOfRangeError):
            consumer.poll(patience_ms(5000))
        with pytest.raises(UnknownTopicOrPartitionError):
            consumer.partitions_for("not-there")


def test_no_broker_is_an_error_after_the_timeout_and_not_a_hang() -> None:
    start = time.monotonic()
    with Producer("127.0.0.1:1", max_block_ms=700) as producer, pytest.raises(RequestTimeoutError):
        producer.send("t", b"x")
    assert time.monotonic() - start < patience(5), "the default is a minute"


def test_the_asyncio_face(server: str, topic: str) -> None:
    async def scenario() -> list[bytes]:
        async with AsyncAdmin(server) as admin:
            (await admin.create_topics([NewTopic(topic, 2, 1)]))[topic].get()
        async with AsyncProducer(server) as producer:
            deliveries = [await producer.send(topic, b"%d" % number, partition=number % 2) for number in range(100)]
            offsets = [(await delivery).offset for delivery in deliveries]
            assert offsets == [number // 2 for number in range(100)]
            assert (await producer.send_and_wait(topic, b"last", partition=0)).offset == 50
        values: list[bytes] = []
        async with AsyncConsumer(server, auto_offset_reset="earliest") as consumer:
            await consumer.assign(await consumer.partitions_for(topic))
            async for record in consumer:
                values.append(record.value)
                if len(values) == 101:
                    break
        return values

    values = asyncio.run(asyncio.wait_for(scenario(), patience(30)))
    assert sorted(values) == sorted([b"%d" % number for number in range(100)] + [b"last"])


def test_a_restarted_broker_is_found_again(start_moldau: Any, topic: str) -> None:
    """Records that were queued while the broker was away are delivered once it is back."""
    node = start_moldau()
    create(node.bootstrap, topic)
    with Producer(node.bootstrap) as producer:
        assert producer.send(topic, b"before").result(patience_ms(10_000)).offset == 0
        node.stop()
        future = producer.send(topic, b"meanwhile")
        time.sleep(0.3)
        node.start()
        assert future.result(patience_ms(30_000)).offset == 1
    assert [r.value for r in read(node.bootstrap, [TopicPartition(topic, 0)], 2)] == [b"before", b"meanwhile"]


def documentation_examples() -> list[str]:
    text = (Path(__file__).parents[2] / "docs" / "client.md").read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def help_examples() -> list[str]:
    """Those that help(moldau.client) shows: the indented blocks."""
    blocks = re.findall(r"(?:^    .*\n|^\n(?=    ))+", inspect.getdoc(moldau.client) or "", re.MULTILINE)
    return [textwrap.dedent(block) for block in blocks]


@pytest.mark.parametrize(
    ("examples", "least"), [(documentation_examples(), 7), (help_examples(), 5)], ids=["page", "help"]
)
def test_the_examples_of_the_documentation_run(start_moldau: Any, examples: list[str], least: int) -> None:
    """In their order, on a broker of their own; those with Arrow where it is installed."""
    has_arrow = importlib.util.find_spec("pyarrow") is not None
    node = start_moldau()
    assert len(examples) >= least
    for number, example in enumerate(examples):
        if "arrow" in example and not has_arrow:
            continue
        code = compile(example.replace("localhost:9092", node.bootstrap), f"example {number + 1}", "exec")
        exec(code, {"__name__": f"example_{number + 1}"})
