"""Transactions of foreign clients: confluent-kafka and aiokafka (version 1), the Java tools (version 2)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.interop.kafka_oracle import java_command, run_tool
from tests.interop.nodes import Node
from tests.pace import patience

SECONDS = patience(30)


def make_topic(node: Node, topic: str, partitions: int = 2) -> None:
    admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")
    admin = admin_module.AdminClient({"bootstrap.servers": node.bootstrap})
    created = admin.create_topics([admin_module.NewTopic(topic, partitions, 1)])
    created[topic].result(SECONDS)


def read_all(
    node: Node,
    topic: str,
    count: int,
    isolation: str = "read_committed",
    in_order: bool = False,
    seconds: float = SECONDS,
) -> list[bytes]:
    """The values up to the end of every partition, as soon as there are `count` of them."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    settings = {"bootstrap.servers": node.bootstrap, "group.id": "reader", "isolation.level": isolation}
    client = confluent_kafka.Consumer({**settings, "auto.offset.reset": "earliest", "enable.partition.eof": True})
    partitions = client.list_topics(topic, SECONDS).topics[topic].partitions
    client.assign([confluent_kafka.TopicPartition(topic, index, 0) for index in partitions])
    values: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not (len(ended) == len(partitions) and len(values) >= count):
        message = client.poll(0.5)
        if message is None:
            continue
        if message.error() is None:
            values.append(message.value())
            ended.discard(message.partition())
        else:
            ended.add(message.partition())
    client.close()
    return values if in_order else sorted(values)


def test_confluent_kafka_commits_and_aborts(moldau_server: Node, topic: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    make_topic(moldau_server, topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": moldau_server.bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    for number in range(6):
        producer.begin_transaction()
        for partition in (0, 1):
            producer.produce(topic, f"{number}-{partition}", partition=partition)
        if number % 2 == 0:
            producer.commit_transaction(SECONDS)
        else:
            producer.abort_transaction(SECONDS)
    expected = sorted(f"{number}-{partition}".encode() for number in (0, 2, 4) for partition in (0, 1))
    assert read_all(moldau_server, topic, len(expected)) == expected
    assert len(read_all(moldau_server, topic, 6, "read_uncommitted")) >= len(expected)


def test_confluent_kafka_fences_its_predecessor(moldau_server: Node, topic: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    make_topic(moldau_server, topic)
    settings = {"bootstrap.servers": moldau_server.bootstrap, "transactional.id": topic}
    zombie = confluent_kafka.Producer(settings)
    zombie.init_transactions(SECONDS)
    zombie.begin_transaction()
    zombie.produce(topic, "lost", partition=0)
    zombie.flush(SECONDS)
    successor = confluent_kafka.Producer(settings)
    successor.init_transactions(SECONDS)
    with pytest.raises(confluent_kafka.KafkaException) as raised:
        zombie.commit_transaction(SECONDS)
    assert raised.value.args[0].code() in (
        confluent_kafka.KafkaError._FENCED,
        confluent_kafka.KafkaError.PRODUCER_FENCED,
    )
    successor.begin_transaction()
    successor.produce(topic, "kept", partition=0)
    successor.commit_transaction(SECONDS)
    assert read_all(moldau_server, topic, 1) == [b"kept"]


def test_confluent_kafka_copies_exactly_once(moldau_server: Node, topic: str) -> None:
    """Consume, transform, produce, with the offsets in the transaction; every third one is aborted and done again."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    source, target = topic, f"{topic}-copy"
    make_topic(moldau_server, source)
    make_topic(moldau_server, target)
    plain = confluent_kafka.Producer({"bootstrap.servers": moldau_server.bootstrap})
    for number in range(60):
        plain.produce(source, str(number), partition=number % 2)
    assert plain.flush(SECONDS) == 0
    copied, rounds = 0, 0
    while copied < 60:
        rounds += 1
        copied += copy_some(confluent_kafka, moldau_server, source, target, aborts=rounds % 3 == 0)
    expected = sorted(f"copy of {number}".encode() for number in range(60))
    assert read_all(moldau_server, target, 60) == expected


def copy_some(confluent_kafka: Any, node: Node, source: str, target: str, aborts: bool) -> int:
    """One life of a copier: a few transactions of ten records; how many records were committed."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": f"copier of {source}",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "transactional.id": f"copy {source}"})
    producer.init_transactions(SECONDS)
    consumer.subscribe([source])
    committed = 0
    try:
        for _ in range(2):
            messages = [one for one in consumer.consume(10, 5.0) if one.error() is None]
            if not messages:
                break
            producer.begin_transaction()
            for message in messages:
                producer.produce(target, b"copy of " + message.value(), partition=message.partition())
            positions = consumer.position(consumer.assignment())
            producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata(), SECONDS)
            if aborts:
                producer.abort_transaction(SECONDS)
                break
            producer.commit_transaction(SECONDS)
            committed += len(messages)
    finally:
        consumer.close()
    return committed


def test_aiokafka_commits_and_aborts(moldau_server: Node, topic: str) -> None:
    aiokafka = pytest.importorskip("aiokafka", reason="aiokafka is not installed")
    make_topic(moldau_server, topic)

    async def run() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=moldau_server.bootstrap, transactional_id=topic)
        await producer.start()
        try:
            for number in range(4):
                await producer.begin_transaction()
                for partition in (0, 1):
                    await producer.send_and_wait(topic, f"{number}-{partition}".encode(), partition=partition)
                if number % 2 == 0:
                    await producer.commit_transaction()
                else:
                    await producer.abort_transaction()
        finally:
            await producer.stop()

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    expected = sorted(f"{number}-{partition}".encode() for number in (0, 2) for partition in (0, 1))
    assert read_all(moldau_server, topic, len(expected)) == expected


def test_java_producer_commits(moldau_server: Node, topic: str, kafka_tools: None) -> None:
    """Version 2: no AddPartitionsToTxn, an epoch for each transaction."""
    make_topic(moldau_server, topic)
    done = run_tool(
        "producer-perf-test", "--topic", topic, "--num-records", "2000", "--throughput", "2000",
        "--record-size", "20", "--transactional-id", topic, "--transaction-duration-ms", "50",
        "--bootstrap-server", moldau_server.bootstrap,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(read_all(moldau_server, topic, 2000)) == 2000


def test_java_copier_copies_exactly_once(moldau_server: Node, topic: str, kafka_tools: None) -> None:
    """TransactionalMessageCopier with random aborts."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    make_topic(moldau_server, topic, 1)
    make_topic(moldau_server, f"{topic}-copy", 1)
    plain = confluent_kafka.Producer({"bootstrap.servers": moldau_server.bootstrap})
    for number in range(500):
        plain.produce(topic, str(number))
    assert plain.flush(SECONDS) == 0
    done = subprocess.run(
        java_command(
            "org.apache.kafka.tools.TransactionalMessageCopier",
            "--broker-list",
            moldau_server.bootstrap,
            "--input-topic",
            topic,
            "--output-topic",
            f"{topic}-copy",
            "--input-partition",
            "0",
            "--max-messages",
            "500",
            "--consumer-group",
            f"copier of {topic}",
            "--transactional-id",
            f"copy {topic}",
            "--transaction-size",
            "50",
            "--enable-random-aborts",
        ),
        capture_output=True,
        text=True,
        timeout=patience(90),
    )
    assert done.returncode == 0, done.stderr
    expected = sorted(str(number).encode() for number in range(500))
    assert read_all(moldau_server, f"{topic}-copy", 500) == expected


def test_the_real_kafka_transactions_tool(moldau_server: Node, topic: str, kafka_tools: None) -> None:
    """Lists, describes, shows producers, and ends a transaction that hangs."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    make_topic(moldau_server, topic, 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": moldau_server.bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, "open", partition=0)
    assert producer.flush(SECONDS) == 0

    def run(*arguments: str) -> list[list[str]]:
        done = run_tool("transactions", "--bootstrap-server", moldau_server.bootstrap, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return [[cell.strip() for cell in line.split("\t")] for line in done.stdout.splitlines()]

    assert [row[3] for row in run("list") if row[0] == topic] == ["Ongoing"]
    described = run("describe", "--transactional-id", topic)[1]
    assert (described[0], described[1], described[4], described[8]) == ("1", topic, "Ongoing", f"{topic}-0")
    assert run("describe-producers", "--topic", topic, "--partition", "0")[1][5] == "0"
    run("forceTerminateTransaction", "--transactionalId", topic)
    assert run("describe", "--transactional-id", topic)[1][4] == "Empty"
    assert read_all(moldau_server, topic, 0) == []
    with pytest.raises(confluent_kafka.KafkaException):
        producer.commit_transaction(SECONDS)


def test_the_real_dump_log_reads_the_log_of_transactions(start_moldau: Any, topic: str, kafka_tools: None) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    node = start_moldau({"transaction.state.log.num.partitions": "1"})
    make_topic(node, topic, 1)
    producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "transactional.id": topic})
    producer.init_transactions(SECONDS)
    producer.begin_transaction()
    producer.produce(topic, "x")
    producer.commit_transaction(SECONDS)
    segment = node.data / "__transaction_state-0" / "00000000000000000000.log"
    deadline = time.monotonic() + SECONDS
    while True:
        done = run_tool("dump-log", "--transaction-log-decoder", "--files", str(segment))
        assert done.returncode == 0, done.stderr
        if '"transactionStatus":4' in done.stdout or time.monotonic() > deadline:
            break
    statuses = [int(line.split('"transactionStatus":')[1][0]) for line in done.stdout.splitlines() if topic in line]
    assert statuses == [0, 1, 2, 4]


def test_a_copier_survives_kills_of_the_broker(start_moldau: Any, topic: str) -> None:
    """Exactly once, in the order of the input, while the only broker is killed again and again."""
    confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    node = start_moldau()
    make_topic(node, topic, 1)
    make_topic(node, f"{topic}-copy", 1)
    plain = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
    for number in range(3000):
        plain.produce(topic, str(number), partition=0)
    assert plain.flush(SECONDS) == 0
    command = [sys.executable, str(Path(__file__).parent / "transactional_copier.py"), node.bootstrap, topic, "20"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as copier:
        try:
            for _ in range(3):
                time.sleep(2.5)
                node.kill()
                node.start()
            values = read_all(node, f"{topic}-copy", 3000, in_order=True, seconds=4 * SECONDS)
        finally:
            copier.kill()
            said = copier.communicate()[0].decode()
    assert len(values) == 3000, f"{len(values)} of 3,000 records; the copier said: {said}"
    assert values == [str(number).encode() for number in range(3000)]
