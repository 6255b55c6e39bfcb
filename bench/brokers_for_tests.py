"""What a broker for tests costs: first fixture, next topic, memory, a record through the door; beside Apache Kafka.

    .venv-compiled/bin/python bench/brokers_for_tests.py [--workers 16] [--kafka]

--kafka also starts an Apache Kafka as a test would (needs Java and tools/fetch_kafka.sh): formatted, started, asked.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
ROUNDS = 5


def timed(work: Callable[[], object]) -> float:
    began = time.monotonic()
    work()
    return time.monotonic() - began


def memory_mb(pid: int) -> float:
    """What is this process's alone, and its share of what it has in common with others."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) / 1024
    return 0.0


def measure_one() -> None:
    from moldau.testing import Broker

    starts, firsts, nexts, deletes, restarts, ends = [], [], [], [], [], []
    for _ in range(ROUNDS):
        broker = Broker()
        starts.append(timed(broker.start))
        firsts.append(timed(broker.topic))
        for _ in range(20):
            began = time.monotonic()
            topic = broker.topic()
            nexts.append(time.monotonic() - began)
            deletes.append(timed(topic.delete))
        began = time.monotonic()
        broker.restart(hard=True)
        restarts.append(time.monotonic() - began)
        ends.append(timed(broker.close))
    for name, found in [
        ("fixture kafka_broker", starts),
        ("first topic (imports the client)", firsts),
        ("next topic", nexts),
        ("its deletion", deletes),
        ("kill and start again", restarts),
        ("end", ends),
    ]:
        print(f"{name:34} {1000 * statistics.median(found):8.1f} ms   at most {1000 * max(found):8.1f} ms")


def measure_door() -> None:
    from moldau.client import Producer
    from moldau.testing import Broker

    with Broker() as broker:
        topic = broker.topic()
        for name, servers in (("through the door", broker.bootstrap_servers), ("direct", broker._direct_servers())):
            with Producer(servers, linger_ms=0) as producer:
                producer.send(topic, b"x").result()
                took = [timed(lambda p=producer: p.send(topic, b"x").result()) for _ in range(2000)]
                print(f"a record and its response, {name:16} p50 {1e6 * statistics.median(took):6.0f} us")
                value = b"v" * 1000
                began = time.monotonic()
                producer.send_many(topic, [value] * 100_000)
                producer.flush()
                print(f"100,000 records of 1 KB, {name:18} {100 / (time.monotonic() - began):6.0f} MB/s")


def measure_many(workers: int) -> None:
    from moldau.testing import Broker

    began = time.monotonic()
    brokers = [Broker() for _ in range(workers)]
    try:
        for broker in brokers:
            broker.start()
        for broker in brokers:
            broker.produce(broker.topic(), b"x")
        took = time.monotonic() - began
        used = [memory_mb(broker.pid) for broker in brokers if broker.pid is not None]
        print(f"{workers} brokers: {sum(used):.0f} MB ({max(used):.1f} MB the largest), all ready after {took:.1f} s")
    finally:
        for broker in brokers:
            broker.close()


def measure_kafka() -> None:
    from moldau.client import Admin, NewTopic
    from tests.interop.kafka_oracle import KafkaNode, missing

    reason = missing()
    if reason is not None:
        print(f"Apache Kafka: {reason}")
        return
    starts, topics = [], []
    for _ in range(3):
        with tempfile.TemporaryDirectory() as directory:
            node = KafkaNode(Path(directory) / "kafka")
            try:
                began = time.monotonic()
                node.format()
                node.start()
                starts.append(time.monotonic() - began)
                with Admin(node.bootstrap) as admin:
                    admin.create_topics([NewTopic("first", 1, 1)])["first"].get()
                    for number in range(20):
                        name = f"t{number}"
                        topics.append(timed(lambda a=admin, n=name: a.create_topics([NewTopic(n, 1, 1)])[n].get()))
                pid = node.process.pid if node.process is not None else 0
                used = memory_mb(pid)
            finally:
                node.kill()
    print(
        f"Apache Kafka: format and start {statistics.median(starts):.1f} s, next topic "
        f"{1000 * statistics.median(topics):.1f} ms, {used:.0f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=16)
    parser.add_argument("--kafka", action="store_true")
    arguments = parser.parse_args()
    measure_one()
    measure_door()
    measure_many(arguments.workers)
    if arguments.kafka:
        measure_kafka()


if __name__ == "__main__":
    main()
