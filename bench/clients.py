"""Compares Python clients against one broker: records a second and CPU microseconds of the client per record.

    python bench/clients.py [--records 1000000] [--bootstrap-server HOST:PORT] [--markdown]

Without a server one Moldau is started for the run. Each measurement is a process of its own, so that neither imports
nor memory of one client weigh on another; its topic has one partition and is deleted afterwards. All clients get the
same settings: acks=all, idempotence where the client has it, linger 5 ms, the same batch size, and fetches of up to
1 MB per partition. Time is taken from the first send to the last acknowledgement, and from the first poll to the last
record. Of several rounds the best counts, as these machines are noisy.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LINGER_MS = 5
BATCH_BYTES = 131_072

Result = tuple[float, float]  # seconds, CPU seconds


def measured(work: Callable[[], None]) -> Result:
    cpu, start = time.process_time(), time.perf_counter()
    work()
    return time.perf_counter() - start, time.process_time() - cpu


def value_of(size: int) -> bytes:
    """Text that compresses about as well as events do."""
    text = b"".join(b'{"user":%d,"page":"/item/%d","at":%d}' % (i * 7919, i * 31, 1700000000 + i) for i in range(40))
    return (text * (size // len(text) + 1))[:size]


# Moldau


def moldau_producer(server: str, codec: str) -> Any:
    from moldau.client import Producer

    return Producer(server, compression_type=codec, batch_size=BATCH_BYTES, linger_ms=LINGER_MS)


def moldau_produce(server: str, topic: str, count: int, value: bytes, codec: str) -> Result:
    with moldau_producer(server, codec) as producer:
        producer.partitions_for(topic)

        def work() -> None:
            send = producer.send
            for _ in range(count):
                send(topic, value)
            producer.flush()

        return measured(work)


def moldau_produce_many(server: str, topic: str, count: int, value: bytes, codec: str) -> Result:
    values = [value] * 10_000
    with moldau_producer(server, codec) as producer:
        producer.partitions_for(topic)

        def work() -> None:
            for _ in range(count // len(values)):
                producer.send_many(topic, values)
            producer.flush()

        return measured(work)


def moldau_produce_arrow(server: str, topic: str, count: int, value: bytes, codec: str) -> Result:
    import pyarrow
    import pyarrow.compute  # not to be measured

    table = pyarrow.table({"value": pyarrow.array([value] * 100_000, pyarrow.binary())})
    with moldau_producer(server, codec) as producer:
        producer.partitions_for(topic)

        def work() -> None:
            for _ in range(count // table.num_rows):
                producer.send_arrow(topic, table)
            producer.flush()

        return measured(work)


def moldau_consumer(server: str, topic: str) -> Any:
    from moldau.client import Consumer, TopicPartition

    consumer = Consumer(server)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), 0)
    consumer.position(TopicPartition(topic, 0))
    return consumer


def moldau_consume(server: str, topic: str, count: int) -> Result:
    with moldau_consumer(server, topic) as consumer:

        def work() -> None:
            seen = 0
            for record in consumer:
                if record.value is not None:
                    seen += 1
                if seen == count:
                    break

        return measured(work)


def moldau_consume_batches(server: str, topic: str, count: int) -> Result:
    with moldau_consumer(server, topic) as consumer:

        def work() -> None:
            seen = 0
            while seen < count:
                seen += len(consumer.poll(1000, 10_000))

        return measured(work)


def moldau_consume_views(server: str, topic: str, count: int) -> Result:
    return moldau_consume_arrow(server, topic, count, views=True)


def moldau_consume_arrow(server: str, topic: str, count: int, views: bool = False) -> Result:
    import pyarrow.compute  # noqa: F401  (not to be measured)

    with moldau_consumer(server, topic) as consumer:

        def work() -> None:
            seen = 0
            while seen < count:
                rows = consumer.poll_arrow(1000, views=views)
                seen += 0 if rows is None else rows.num_rows

        return measured(work)


# confluent-kafka


def confluent_produce(server: str, topic: str, count: int, value: bytes, codec: str) -> Result:
    from confluent_kafka import Producer

    producer = Producer(
        {
            "bootstrap.servers": server,
            "enable.idempotence": True,
            "compression.type": codec,
            "linger.ms": LINGER_MS,
            "batch.size": BATCH_BYTES,
            "queue.buffering.max.messages": 1_000_000,
        }
    )
    producer.list_topics(topic)

    def work() -> None:
        produce = producer.produce
        for number in range(count):
            while True:
                try:
                    produce(topic, value)
                    break
                except BufferError:
                    producer.poll(0.01)
            if number % 1000 == 0:
                producer.poll(0)
        assert producer.flush() == 0

    return measured(work)


def confluent_consumer(server: str, topic: str) -> Any:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": server, "group.id": "bench", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    return consumer


def confluent_consume(server: str, topic: str, count: int) -> Result:
    consumer = confluent_consumer(server, topic)

    def work() -> None:
        seen = 0
        while seen < count:
            message = consumer.poll(1.0)
            if message is not None and message.value() is not None:
                seen += 1

    return measured(work)


def confluent_consume_batches(server: str, topic: str, count: int) -> Result:
    consumer = confluent_consumer(server, topic)

    def work() -> None:
        seen = 0
        while seen < count:
            seen += len(consumer.consume(10_000, 1.0))

    return measured(work)


# aiokafka


def aiokafka_produce(server: str, topic: str, count: int, value: bytes, codec: str) -> Result:
    from aiokafka import AIOKafkaProducer

    async def run() -> Result:
        producer = AIOKafkaProducer(
            bootstrap_servers=server,
            enable_idempotence=True,
            compression_type=None if codec == "none" else codec,
            linger_ms=LINGER_MS,
            max_batch_size=BATCH_BYTES,
        )
        await producer.start()
        await producer.partitions_for(topic)
        cpu, start = time.process_time(), time.perf_counter()
        for _ in range(count):
            await producer.send(topic, value)
        await producer.flush()
        result = time.perf_counter() - start, time.process_time() - cpu
        await producer.stop()
        return result

    return asyncio.run(run())


def aiokafka_consume(server: str, topic: str, count: int) -> Result:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def run() -> Result:
        consumer = AIOKafkaConsumer(bootstrap_servers=server)
        await consumer.start()
        consumer.assign([TopicPartition(topic, 0)])
        consumer.seek(TopicPartition(topic, 0), 0)
        seen = 0
        cpu, start = time.process_time(), time.perf_counter()
        while seen < count:
            for records in (await consumer.getmany(timeout_ms=1000)).values():
                seen += len(records)
        result = time.perf_counter() - start, time.process_time() - cpu
        await consumer.stop()
        return result

    return asyncio.run(run())


# kafka-python


def kafka_python_produce(server: str, topic: str, count: int, value: bytes, codec: str) -> Result:
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=server,
        acks="all",
        enable_idempotence=True,
        compression_type=None if codec == "none" else codec,
        linger_ms=LINGER_MS,
        batch_size=BATCH_BYTES,
    )
    producer.partitions_for(topic)

    def work() -> None:
        for _ in range(count):
            producer.send(topic, value)
        producer.flush()

    result = measured(work)
    producer.close()
    return result


def kafka_python_consume(server: str, topic: str, count: int) -> Result:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=server)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0), 0)

    def work() -> None:
        seen = 0
        while seen < count:
            for records in consumer.poll(1000, 10_000).values():
                seen += len(records)

    result = measured(work)
    consumer.close()
    return result


PRODUCE: dict[str, Callable[[str, str, int, bytes, str], Result]] = {
    "moldau send": moldau_produce,
    "moldau send_many": moldau_produce_many,
    "moldau send_arrow": moldau_produce_arrow,
    "confluent-kafka": confluent_produce,
    "aiokafka": aiokafka_produce,
    "kafka-python": kafka_python_produce,
}
CONSUME: dict[str, Callable[[str, str, int], Result]] = {
    "moldau iteration": moldau_consume,
    "moldau poll": moldau_consume_batches,
    "moldau poll_arrow": moldau_consume_arrow,
    "moldau poll_arrow, views": moldau_consume_views,
    "confluent-kafka poll": confluent_consume,
    "confluent-kafka consume": confluent_consume_batches,
    "aiokafka": aiokafka_consume,
    "kafka-python": kafka_python_consume,
}
# What is slow enough is measured with a part of the records.
SHARE = {"aiokafka": 4, "kafka-python": 10, "confluent-kafka poll": 4}


def one(arguments: list[str]) -> None:
    """The process of one measurement: kind, name, server, topic, count, size, codec."""
    kind, name, server, topic, count, size, codec = arguments
    if kind == "produce":
        seconds, cpu = PRODUCE[name](server, topic, int(count), value_of(int(size)), codec)
    else:
        seconds, cpu = CONSUME[name](server, topic, int(count))
    print(json.dumps([seconds, cpu]))


def measure(kind: str, name: str, server: str, topic: str, count: int, size: int, codec: str) -> Result | None:
    command = [sys.executable, __file__, "--one", kind, name, server, topic, str(count), str(size), codec]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        print(f"{kind} {name}: failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    seconds, cpu = json.loads(done.stdout.splitlines()[-1])
    return seconds, cpu


def run_row(
    server: str, count: int, size: int, codec: str, rounds: int, only: str, directions: list[str]
) -> list[tuple[str, str, float, float]]:
    """One size and codec: every client produces into topics of its own, and reads the same topic."""
    from moldau.client import Admin, NewTopic

    rows: list[tuple[str, str, float, float]] = []
    stamp = f"bench-{size}-{codec}-{int(time.time() * 1000)}"
    with Admin(server) as admin:

        def create(name: str) -> None:
            admin.create_topics([NewTopic(name, 1, 1)])[name].get()

        def keep(kind: str, name: str, best: list[tuple[float, float]]) -> None:
            if best:
                rows.append((kind, name, max(rate for rate, _ in best), min(cpu for _, cpu in best)))
                print(
                    f"{size:5} B {codec:5} {kind:8} {name:24} {rows[-1][2]:12,.0f}/s {rows[-1][3]:7.2f} µs", flush=True
                )

        for name in [name for name in PRODUCE if only in name and "produce" in directions]:
            best = []
            part = count // SHARE.get(name, 1)
            for number in range(rounds):
                topic = f"{stamp}-{name.replace(' ', '-')}-{number}"
                create(topic)
                found = measure("produce", name, server, topic, part, size, codec)
                if found is not None:
                    best.append((part / found[0], found[1] / part * 1e6))
                admin.delete_topics([topic])
            keep("produce", name, best)
        if "consume" not in directions:
            return rows
        create(stamp)
        measure("produce", "moldau send_many", server, stamp, count, size, codec)
        for name in [name for name in CONSUME if only in name]:
            best = []
            part = count // SHARE.get(name, 1)
            for _ in range(rounds):
                found = measure("consume", name, server, stamp, part, size, codec)
                if found is not None:
                    best.append((part / found[0], found[1] / part * 1e6))
            keep("consume", name, best)
        admin.delete_topics([stamp])
    return rows


def start_broker(directory: Path) -> tuple[subprocess.Popen[bytes], str]:
    sys.path.insert(0, str(ROOT))
    from tests.interop.nodes import MoldauNode

    node = MoldauNode(directory)
    node.format()
    node.start()
    assert node.process is not None
    return node.process, node.bootstrap


def print_table(rows: list[tuple[int, str, str, str, float, float]]) -> None:
    print("\n| record | codec | direction | client | records/s | CPU µs per record |\n|---|---|---|---|---:|---:|")
    for size, codec, kind, name, rate, cpu in rows:
        print(f"| {size} B | {codec} | {kind} | {name} | {rate:,.0f} | {cpu:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sizes", default="100,1000")
    parser.add_argument("--codecs", default="none,zstd")
    parser.add_argument("--only", default="", help="only clients whose name has this in it")
    parser.add_argument("--directions", default="produce,consume")
    parser.add_argument("--bootstrap-server")
    parser.add_argument("--markdown", action="store_true", help="print a table at the end")
    parser.add_argument("--one", nargs=7, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        one(arguments.one)
        return
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as directory:
        process = None
        server = arguments.bootstrap_server
        if server is None:
            os.environ.setdefault("MOLDAU_COMMAND", f"{sys.executable} -m moldau.cli.main")
            process, server = start_broker(Path(directory))
        rows: list[tuple[int, str, str, str, float, float]] = []
        try:
            for size in map(int, arguments.sizes.split(",")):
                for codec in arguments.codecs.split(","):
                    directions = arguments.directions.split(",")
                    found = run_row(
                        server, arguments.records, size, codec, arguments.rounds, arguments.only, directions
                    )
                    rows += [(size, codec, *row) for row in found]
        finally:
            if process is not None:
                process.terminate()
                process.wait(30)
    if arguments.markdown:
        print_table(rows)


if __name__ == "__main__":
    main()
