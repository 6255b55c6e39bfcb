"""Moldau's own share consumer, against Moldau and against Apache Kafka, alone and beside other clients."""

from __future__ import annotations

import asyncio
import re
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import (
    AcknowledgeType,
    Admin,
    AsyncShareConsumer,
    ConsumerRecord,
    NewTopic,
    Producer,
    ShareConsumer,
    TopicPartition,
)
from moldau.client.admin import GROUP, ConfigChange, ConfigResource
from moldau.client.errors import ClientError, RecordDeserializationError
from tests.interop import kafka_oracle
from tests.interop.conftest import new_node, require_kafka, stop_cleanly
from tests.interop.nodes import Node
from tests.pace import patience, patience_ms

SECONDS = patience(40)

# Groups that form at once and locks that run out soon, so that the suite does not wait for defaults of production.
QUICK = {
    "group.share.min.heartbeat.interval.ms": "200",
    "group.share.heartbeat.interval.ms": "200",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.session.timeout.ms": "6000",
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.record.lock.duration.ms": "3000",
    "offsets.topic.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
}
EXPLICIT = {"share.acknowledgement.mode": "explicit"}


@pytest.fixture(scope="module", params=["moldau", "kafka"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp(f"share-{request.param}")
    if request.param == "kafka":
        require_kafka()
        started: Node = kafka_oracle.KafkaNode(folder, QUICK)
        started.format()
    else:
        started = new_node(folder, QUICK)
    started.start()
    yield started
    stop_cleanly(started)


@pytest.fixture
def server(node: Node) -> str:
    return node.bootstrap


class Told:
    """What an acknowledgement callback heard."""

    def __init__(self) -> None:
        self.accepted: set[tuple[int, int]] = set()
        self.errors: list[ClientError] = []

    def __call__(self, offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
        if error is not None:
            self.errors.append(error)
            return
        self.accepted.update((item.partition, offset) for item, found in offsets.items() for offset in found)


def prepare(server: str, topic: str, count: int, partitions: int = 1) -> None:
    """A topic with so many records, and a group of its name that begins with the first."""
    group = ConfigResource(GROUP, f"g-{topic}")
    with Admin(server) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].get()
        changes = {group: [ConfigChange("share.auto.offset.reset", "earliest")]}
        admin.incremental_alter_configs(changes)[group].get()
    with Producer(server) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % partitions)


def member(server: str, topic: str, **more: Any) -> ShareConsumer:
    config = more.pop("config", {})
    consumer = ShareConsumer(server, config={"group.id": f"g-{topic}", **config}, **more)
    consumer.subscribe([topic])
    return consumer


def take(consumer: ShareConsumer, count: int) -> list[ConsumerRecord]:
    """Polls until so many records came; fails after a while."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + SECONDS
    while len(records) < count:
        assert time.monotonic() < deadline, f"{len(records)} of {count} records came"
        records += consumer.poll(500)
    return records


def values(records: list[ConsumerRecord]) -> list[int]:
    return sorted(int(record.value) for record in records)


def test_every_record_is_accepted_once_by_implicit_acknowledgement(server: str, topic: str) -> None:
    prepare(server, topic, 3000, partitions=3)
    told = Told()
    with member(server, topic, on_acknowledged=told) as consumer:
        records = take(consumer, 3000)
        assert values(records) == list(range(3000)) and {record.delivery_count for record in records} == {1}
        assert set(consumer.commit().values()) <= {None}
        assert len(told.accepted) == 3000 and not told.errors
        assert consumer.acquisition_lock_timeout_ms == 3000
    with member(server, topic) as consumer:
        assert consumer.poll(2500) == []


def test_released_comes_again_and_rejected_does_not(server: str, topic: str) -> None:
    prepare(server, topic, 30)
    told = Told()
    done: dict[int, int] = {}
    with member(server, topic, config=EXPLICIT, on_acknowledged=told) as consumer:
        deadline = time.monotonic() + SECONDS
        while len(done) < 30 and time.monotonic() < deadline:
            for record in consumer.poll(500):
                number = int(record.value)
                assert number not in done
                if number % 3 == 0 and record.delivery_count < 3:
                    consumer.release(record)
                else:
                    consumer.acknowledge(record, AcknowledgeType.REJECT if number % 3 == 1 else AcknowledgeType.ACCEPT)
                    done[number] = int(record.delivery_count)
        assert set(consumer.commit().values()) <= {None}
    assert done == {number: 3 if number % 3 == 0 else 1 for number in range(30)} and not told.errors


def test_record_limit_is_kept_to(server: str, topic: str) -> None:
    prepare(server, topic, 60)
    config = {"share.acquire.mode": "record_limit", "max.poll.records": 7}
    with member(server, topic, config=config) as consumer:
        found: list[ConsumerRecord] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < 60 and time.monotonic() < deadline:
            records = consumer.poll(500)
            assert len(records) <= 7
            found += records
    assert values(found) == list(range(60))


def test_renewed_records_come_again_and_are_still_ours(server: str, topic: str) -> None:
    prepare(server, topic, 4)
    with member(server, topic, config=EXPLICIT) as consumer:
        first = take(consumer, 4)
        for _ in range(3):
            time.sleep(1.5)
            for record in first:
                consumer.renew(record)
            again = take(consumer, 4)
            assert values(again) == [0, 1, 2, 3] and {record.delivery_count for record in again} == {1}
        for record in again:
            consumer.accept(record)
        assert set(consumer.commit().values()) == {None}


def test_a_long_block_keeps_its_locks_and_a_short_one_without_loses_them(server: str, topic: str) -> None:
    """Lock duration 3 s, work of 5 s: nobody else gets what is renewed."""
    prepare(server, topic, 2)
    with (
        member(server, topic, config=EXPLICIT) as worker,
        member(server, topic, config=EXPLICIT) as other,
    ):
        records = take(worker, 2)
        with worker.processing(records[0], renew=True):
            assert other.poll(5000) == []
        with worker.processing(records[1]):
            pass
        assert set(worker.commit().values()) == {None}
        assert other.poll(500) == []


def test_a_lock_that_ran_out_is_told_of(server: str, topic: str) -> None:
    prepare(server, topic, 2)
    told = Told()
    with (
        member(server, topic, config=EXPLICIT, on_acknowledged=told) as slow,
        member(server, topic, config=EXPLICIT) as other,
    ):
        records = take(slow, 2)
        again = take(other, 2)
        assert {record.delivery_count for record in again} == {2}
        for record in records:
            slow.accept(record)
        (error,) = slow.commit().values()
        assert error is not None and error.name == "INVALID_RECORD_STATE"
        assert [item.name for item in told.errors] == ["INVALID_RECORD_STATE"]
        for record in again:
            other.accept(record)
        assert set(other.commit().values()) == {None}


def test_close_gives_locks_back_at_once(server: str, topic: str) -> None:
    prepare(server, topic, 5)
    with member(server, topic, config=EXPLICIT) as consumer:
        records = take(consumer, 5)
        consumer.accept(records[0])
    before = time.monotonic()
    with member(server, topic) as other:
        again = take(other, 4)
        assert values(again) == values(records[1:]) and {record.delivery_count for record in again} == {2}
        assert set(other.commit().values()) == {None}
    assert time.monotonic() - before < SECONDS


def test_markers_of_transactions_are_nobodys_business(server: str, topic: str) -> None:
    prepare(server, topic, 0)
    with Producer(server, transactional_id=f"x-{topic}") as producer:
        producer.init_transactions()
        for number in range(3):
            with producer.transaction():
                producer.send(topic, b"%d" % number)
    with member(server, topic, config=EXPLICIT) as consumer:
        records = take(consumer, 3)
        assert values(records) == [0, 1, 2]
        for record in records:
            consumer.accept(record)
        assert set(consumer.commit().values()) == {None}
        assert consumer.poll(3500) == []


def test_a_record_that_cannot_be_deserialized_is_passed(server: str, topic: str) -> None:
    prepare(server, topic, 1)
    with Producer(server) as producer:
        producer.send(topic, b"bad").result(patience_ms(10_000))
        producer.send(topic, b"2").result(patience_ms(10_000))
    with member(server, topic, config=EXPLICIT, value_deserializer=int) as consumer:
        found: list[int] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < 2 and time.monotonic() < deadline:
            try:
                for record in consumer.poll(500):
                    found.append(record.value)
                    consumer.accept(record)
            except RecordDeserializationError as error:
                assert error.record.value == b"bad"  # type: ignore[attr-defined]
                consumer.acknowledge_offset(topic, 0, 1, AcknowledgeType.REJECT)
        assert found == [0, 2] and set(consumer.commit().values()) <= {None}
    with member(server, topic) as consumer:
        assert consumer.poll(2500) == []


def test_many_workers_share_one_partition_and_none_does_what_another_did(server: str, topic: str) -> None:
    prepare(server, topic, 2000)
    done: list[int] = []
    told = Told()

    def work() -> None:
        config = {**EXPLICIT, "max.poll.records": 20, "share.acquire.mode": "record_limit"}
        deadline = time.monotonic() + SECONDS
        with member(server, topic, config=config, on_acknowledged=told) as consumer:
            while len(done) < 2000 and time.monotonic() < deadline:
                for record in consumer.poll(200):
                    with consumer.processing(record):
                        done.append(int(record.value))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not told.errors and sorted(done) == list(range(2000))
    assert len(told.accepted) == 2000


def test_asyncio_works_on_many_records_at_once(server: str, topic: str) -> None:
    prepare(server, topic, 50)
    done: list[int] = []
    accepted: set[int] = set()

    async def on_acknowledged(offsets: dict[TopicPartition, set[int]], error: ClientError | None) -> None:
        await asyncio.sleep(0)
        assert error is None
        accepted.update(*offsets.values())

    async def handle(consumer: AsyncShareConsumer, record: ConsumerRecord) -> None:
        async with consumer.processing(record, renew=True):
            await asyncio.sleep(0.01)
            done.append(int(record.value))

    async def main() -> None:
        config = {"group.id": f"g-{topic}", **EXPLICIT}
        async with AsyncShareConsumer(server, config=config, on_acknowledged=on_acknowledged) as consumer:
            await consumer.subscribe([topic])
            deadline = time.monotonic() + SECONDS
            while len(done) < 50 and time.monotonic() < deadline:
                records = await consumer.poll(500)
                await asyncio.gather(*(handle(consumer, record) for record in records))
            assert set((await consumer.commit()).values()) <= {None}

    asyncio.run(main())
    assert sorted(done) == list(range(50)) and len(accepted) == 50


def test_ours_and_librdkafkas_share_a_group(server: str, topic: str) -> None:
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    if not hasattr(confluent, "ShareConsumer"):
        pytest.skip("confluent-kafka has no ShareConsumer")
    prepare(server, topic, 1000)
    done: list[int] = []

    def theirs() -> None:
        consumer = confluent.ShareConsumer({"bootstrap.servers": server, "group.id": f"g-{topic}"})
        consumer.subscribe([topic])
        deadline = time.monotonic() + SECONDS
        while len(done) < 1000 and time.monotonic() < deadline:
            for message in consumer.poll(timeout=0.2) or ():
                if message.error() is None:
                    done.append(int(message.value()))
        consumer.close()

    thread = threading.Thread(target=theirs)
    thread.start()
    config = {**EXPLICIT, "share.acquire.mode": "record_limit", "max.poll.records": 10}
    deadline = time.monotonic() + SECONDS
    with member(server, topic, config=config) as consumer:
        while len(done) < 1000 and time.monotonic() < deadline:
            for record in consumer.poll(200):
                with consumer.processing(record):
                    done.append(int(record.value))
    thread.join()
    assert set(done) == set(range(1000))


def test_ours_and_kafkas_own_consumer_share_a_group(server: str, topic: str, kafka_tools: None) -> None:
    prepare(server, topic, 500)
    with member(
        server, topic, config={**EXPLICIT, "share.acquire.mode": "record_limit"}, max_poll_records=5
    ) as consumer:
        ours = take(consumer, 5)
        command = kafka_oracle.java_command(
            "org.apache.kafka.tools.consumer.ConsoleShareConsumer",
            *("--bootstrap-server", server, "--topic", topic, "--group", f"g-{topic}"),
            *("--max-messages", str(500 - len(ours)), "--timeout-ms", str(patience_ms(20_000))),
        )
        done = subprocess.run(command, capture_output=True, text=True, timeout=patience(60), check=False)
        # Theirs takes longer than our locks last, and may have got what ours holds as well.
        theirs = {int(line) for line in done.stdout.split()}
    assert len(theirs) >= 500 - len(ours), done.stderr


def test_the_examples_of_the_documentation_run(start_moldau: Any) -> None:
    """In the order of the page, on a broker of their own."""
    node = start_moldau(QUICK)
    text = (Path(__file__).parents[2] / "docs" / "client-share.md").read_text()
    examples = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(examples) == 4
    for number, example in enumerate(examples):
        code = compile(
            example.replace("localhost:9092", node.bootstrap), f"docs/client-share.md example {number + 1}", "exec"
        )
        exec(code, {"__name__": f"example_{number + 1}"})
