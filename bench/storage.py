"""Measures the storage engine beside Apache Kafka: compaction, its memory, latency beside it, recovery, scrub.

    python bench/storage.py --moldau COMMAND [--kafka DIRECTORY] [--rows compaction,latency,recovery,scrub] [--markdown]

Both brokers are real processes with the same settings and get the same pre-encoded batches from plain sockets. Kafka is
started from the jars of tools/fetch_kafka.sh (or --kafka DIRECTORY); without them only Moldau is measured. Run it with
the interpreter of a compiled installation: millions of records are encoded here first.

- compaction: 200,000 keys in batches of 16 KB, values of 1 KB and of 100 B. The log is filled while it may not be
  compacted (`min.compaction.lag.ms`), synced, and then released. The time is what each broker logs for a run, which for
  Moldau begins with the start of the process; what is counted is the log that was read, once. "Two workers" are two
  such logs and `log.cleaner.threads=2`: everything read, from the start of the first run to the end of the last. The
  best round counts, as a JVM needs some to warm up. Memory is the sum of the peaks of all processes of the broker.
- latency: one connection that produces 16 KB (acks=1) and another that fetches 64 KB, in turn, nothing else in flight;
  first alone, then while one worker compacts other logs.
- recovery: kill -9 with recovery points at 0 (`log.flush.offset.checkpoint.interval.ms`), then the time from the start
  of the process until every partition answers.
- scrub: all of that data without a limit of the rate, in a running broker. Kafka has no such thing.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import re
import struct
import threading
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from side_by_side import (
    HOST,
    Broker,
    Moldau,
    Table,
    Wire,
    cpu_seconds_of,
    frame,
    free_ports,
    makers,
    memory_mb_of,
    parser_of,
    say,
)

from moldau.client.admin import TOPIC, Admin, ConfigChange, ConfigResource, NewTopic
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

KEYS = 200_000
BATCH_BYTES = 16_384
IN_FLIGHT = 16
MB = 1 << 20
SETTINGS = {
    "log.segment.bytes": str(128 * MB),
    "log.cleaner.backoff.ms": "100",
    "log.retention.ms": "-1",
    "log.segment.delete.delay.ms": "1000",
    "group.initial.rebalance.delay.ms": "0",
}
HELD_BACK = {"cleanup.policy": "compact", "min.compaction.lag.ms": str(1 << 40), "min.cleanable.dirty.ratio": "0.01"}
PRODUCE_VERSION = 9
FETCH_VERSION = 11
METRICS = "moldau.metrics.listener"

# What the two brokers log at the end of a compaction.
MOLDAU_RUN = re.compile(
    r"^\[(?P<time>[^]]+)\] INFO compacted (?P<log>\S+) up to offset \d+ in (?P<seconds>[\d.]+) s: "
    r"\d+ of \d+ records stayed, (?P<bytes>\d+) bytes",
    re.MULTILINE,
)
KAFKA_RUN = re.compile(
    r"^\[(?P<time>[^]]+)\] INFO [^\n]*\n?[^\n]*cleaned log (?P<log>\S+) \(dirty section = [^\n]*\n"
    r"\s*(?P<megabytes>[\d.,]+) MB of log processed in [\d.,]+ seconds \((?P<rate>[\d.,]+) MB/sec\)",
    re.MULTILINE,
)


class Run:
    """One compaction of one log, as the broker's log tells it."""

    def __init__(self, log: str, ended: float, seconds: float, size: float) -> None:
        self.log = log
        self.ended = ended
        self.started = ended - seconds
        self.seconds = seconds
        self.size = size


def runs_of(broker: Broker, topic: str) -> list[Run]:
    """The compactions of a topic so far, in the order in which they ended."""
    pattern, to_run = (MOLDAU_RUN, moldau_run) if isinstance(broker, Moldau) else (KAFKA_RUN, kafka_run)
    matches = pattern.finditer(broker.output())
    return [to_run(match) for match in matches if match["log"].rsplit("-", 1)[0] == topic]


def moldau_run(match: re.Match[str]) -> Run:
    return Run(match["log"], parse_time(match["time"]), float(match["seconds"]), float(match["bytes"]))


def kafka_run(match: re.Match[str]) -> Run:
    size = float(match["megabytes"].replace(",", "")) * MB
    rate = float(match["rate"].replace(",", "")) * MB
    return Run(match["log"], parse_time(match["time"]), size / rate, size)


def parse_time(text: str) -> float:
    return datetime.strptime(text, "%Y-%m-%d %H:%M:%S,%f").timestamp()


# The wire


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    data = PartitionProduceData(index=partition, records=MemoryRecords(batch))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)


def fetch_frame(topic: str, partition: int, offset: int, size: int) -> bytes:
    part = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size)
    request = FetchRequest(replica_id=-1, max_wait_ms=0, min_bytes=1, max_bytes=size)
    request.topics = [FetchTopic(topic=topic, partitions=[part])]
    return frame(request, FETCH_VERSION)


def check_produced(answer: bytes) -> None:
    """The error code of the only partition of a produce response v9: a compact topic name comes before it."""
    name_size = answer[6] - 1
    code = struct.unpack_from(">h", answer, 7 + name_size + 1 + 4)[0]
    if code:
        raise RuntimeError(f"a produce request failed with error {code}")


def admin_of(broker: Broker) -> Admin:
    return Admin(bootstrap_servers=f"{HOST}:{broker.port}", request_timeout_ms=60_000)


# Processes


def cpu_seconds(broker: Broker) -> float:
    """Of the broker and of those of its children that have ended: a worker compacts in a process of its own."""
    return cpu_seconds_of(broker.pid, with_ended_children=True)


def processes(broker: Broker) -> list[int]:
    """The broker and its children."""
    found = [broker.pid]
    try:
        children = Path(f"/proc/{broker.pid}/task/{broker.pid}/children").read_text().split()
        found += [int(child) for child in children]
    except OSError:
        pass
    return found


class PeakMemory:
    """The peak of each process of a broker, looked at again and again until `stop`."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._peaks: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.02):
            for pid in processes(self._broker):
                try:
                    # One that is about to end has no memory any more.
                    self._peaks[pid] = max(self._peaks.get(pid, 0.0), memory_mb_of(pid, "VmHWM"))
                except OSError:
                    pass  # it has ended

    def stop(self) -> tuple[float, float]:
        """Megabytes of the broker itself, and of the largest of its children."""
        self._over.set()
        self._thread.join()
        children = [peak for pid, peak in self._peaks.items() if pid != self._broker.pid]
        return self._peaks.get(self._broker.pid, 0.0), max(children, default=0.0)


# Data


def encode_batches(value_bytes: int, records: int, seed: int) -> list[bytes]:
    """Batches of about 16 KB whose keys are drawn from 200,000; the values cannot be compressed and do not matter."""
    rng = random.Random(seed)
    value = rng.randbytes(value_bytes)
    per_batch = max(1, BATCH_BYTES // value_bytes)
    now_ms = int(time.time() * 1000)
    batches = []
    for _ in range(records // per_batch):
        builder = BatchBuilder()
        for key in rng.choices(range(KEYS), k=per_batch):
            builder.append(now_ms, b"key-%08d" % key, value)
        batches.append(builder.build())
    return batches


def create(broker: Broker, topic: str, partitions: int, configs: dict[str, str]) -> None:
    with admin_of(broker) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1, configs=configs)])[topic].get()
    # Until every partition takes records.
    probe = BatchBuilder()
    probe.append(int(time.time() * 1000), b"probe", b"")
    wire = broker.connect()
    for partition in range(partitions):
        deadline = time.monotonic() + 60
        while True:
            wire.socket.sendall(produce_frame(topic, partition, probe.build()))
            try:
                check_produced(wire.answer())
                break
            except RuntimeError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)


def delete(broker: Broker, topic: str) -> None:
    with admin_of(broker) as admin:
        admin.delete_topics([topic])[topic].get()


def fill(broker: Broker, topic: str, partition: int, batches: list[bytes]) -> None:
    wire = broker.connect()
    waiting = 0
    for batch in batches:
        wire.socket.sendall(produce_frame(topic, partition, batch))
        waiting += 1
        if waiting == IN_FLIGHT:
            check_produced(wire.answer())
            waiting -= 1
    for _ in range(waiting):
        check_produced(wire.answer())


def release(broker: Broker, topic: str) -> None:
    """From now on the topic may be compacted."""
    os.sync()
    with admin_of(broker) as admin:
        resource = ConfigResource(TOPIC, topic)
        admin.incremental_alter_configs({resource: [ConfigChange("min.compaction.lag.ms", "0")]})[resource].get()


def wait_for_runs(broker: Broker, topic: str, count: int, seconds: float = 300.0) -> list[Run]:
    """The first compaction of each of so many logs."""
    deadline = time.monotonic() + seconds
    while True:
        first: dict[str, Run] = {}
        for run in runs_of(broker, topic):
            first.setdefault(run.log, run)
        if len(first) == count:
            return list(first.values())
        if time.monotonic() > deadline:
            raise RuntimeError(f"{broker.name} compacts {topic} too slowly:\n{broker.output()[-3000:]}")
        time.sleep(0.1)


# Compaction


class Compaction:
    """The best of several rounds."""

    def __init__(self) -> None:
        self.bytes_per_second = 0.0
        self.records_per_second = 0.0
        self.cpu_per_gigabyte = float("inf")
        self.broker_mb = 0.0
        self.worker_mb = 0.0


def measure_compaction(
    broker: Broker, batches: list[bytes], workers: int, rounds: int, record_bytes: float
) -> Compaction:
    best = Compaction()
    for number in range(rounds):
        topic = f"compacted-{len(batches)}-{workers}-{number}"
        create(broker, topic, workers, HELD_BACK)
        for partition in range(workers):
            fill(broker, topic, partition, batches)
        memory = PeakMemory(broker)
        cpu = cpu_seconds(broker)
        release(broker, topic)
        runs = wait_for_runs(broker, topic, workers)
        cpu = (cpu_seconds(broker) - cpu) / sum(run.size for run in runs) * 1e9
        broker_mb, worker_mb = memory.stop()
        seconds = max(run.ended for run in runs) - min(run.started for run in runs)
        rate = sum(run.size for run in runs) / seconds
        best.broker_mb = max(best.broker_mb, broker_mb)
        best.worker_mb = max(best.worker_mb, worker_mb)
        best.cpu_per_gigabyte = min(best.cpu_per_gigabyte, cpu)
        if rate > best.bytes_per_second:
            best.bytes_per_second = rate
            best.records_per_second = rate / record_bytes
        figures = f"{rate / 1e6:.0f} MB/s, {rate / record_bytes / 1e6:.2f} million records/s, {cpu:.2f} CPU s/GB"
        say(f"{broker.name}: {topic}: {figures}, {broker_mb:.0f} + {worker_mb:.0f} MB")
        delete(broker, topic)
    return best


def compaction_rows(arguments: argparse.Namespace, table: Table) -> None:
    for value_bytes, records in ((1000, arguments.records), (100, arguments.records * 5)):
        batches = encode_batches(value_bytes, records, 1)
        record_bytes = sum(map(len, batches)) / (len(batches) * max(1, BATCH_BYTES // value_bytes))
        for workers in (1, 2):
            found = []
            for broker in one_by_one(arguments, {**SETTINGS, "log.cleaner.threads": str(workers)}):
                broker.start()
                found.append(measure_compaction(broker, batches, workers, arguments.rounds, record_bytes))
            what = f"compaction, {value_bytes} B values, {'one worker' if workers == 1 else 'two workers'}"
            table.add(f"{what}: MB/s", [one.bytes_per_second / 1e6 for one in found], True, "{:,.0f}")
            table.add(f"{what}: million records/s", [one.records_per_second / 1e6 for one in found], True, "{:.2f}")
            table.add(f"{what}: CPU s per GB", [one.cpu_per_gigabyte for one in found], False, "{:.2f}")
            table.add(
                f"{what}: peak memory, MB", [one.broker_mb + workers * one.worker_mb for one in found], False, "{:.0f}"
            )
        del batches


# Latency


class Latency:
    """Times of requests, with when they ended on the clock of the broker's log."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def measure(self, wire: Wire, request: bytes) -> None:
        start = time.perf_counter()
        wire.socket.sendall(request)
        wire.answer()
        self.times.append((time.time(), time.perf_counter() - start))

    def percentile(self, share: float, start: float, end: float) -> float:
        """In microseconds, of the requests between two times."""
        found = sorted(seconds for ended, seconds in self.times if start <= ended <= end)
        if len(found) < 1000:
            raise RuntimeError(f"only {len(found)} requests were made in {end - start:.1f} s")
        return found[int(len(found) * share)] * 1e6


def latency_round(broker: Broker, batches: list[bytes], topic: str, seconds: float) -> list[float]:
    """p99 of produce and of fetch alone, then both while a worker compacts."""
    create(broker, topic, 4, HELD_BACK)
    for partition in range(4):
        fill(broker, topic, partition, batches)
    os.sync()
    producing, fetching = broker.connect(), broker.connect()
    produce, fetch = produce_frame("side", 0, batches[0]), fetch_frame("side", 0, 0, 65_536)
    produced, fetched = Latency(), Latency()
    gc.collect()
    gc.disable()
    begin = time.time()
    while time.time() < begin + seconds:
        produced.measure(producing, produce)
        fetched.measure(fetching, fetch)
    alone_end = time.time()
    releasing = threading.Thread(target=release, args=(broker, topic))
    releasing.start()
    next_look = 0.0
    while True:
        for _ in range(50):
            produced.measure(producing, produce)
            fetched.measure(fetching, fetch)
        if time.time() > next_look:
            next_look = time.time() + 1.0
            runs = runs_of(broker, topic)
            if len({run.log for run in runs}) == 4:
                break
    releasing.join()
    gc.enable()
    start, end = min(run.started for run in runs), max(run.ended for run in runs)
    say(f"{broker.name}: {topic}: compacting for {sum(run.seconds for run in runs):.1f} of {end - start:.1f} s")
    delete(broker, topic)
    return [
        produced.percentile(0.99, begin + seconds / 4, alone_end),
        fetched.percentile(0.99, begin + seconds / 4, alone_end),
        produced.percentile(0.99, start, end),
        fetched.percentile(0.99, start, end),
    ]


def latency_rows(arguments: argparse.Namespace, table: Table) -> None:
    batches = encode_batches(1000, arguments.records // 2, 2)
    found = []
    for broker in one_by_one(arguments, SETTINGS):
        broker.start()
        create(broker, "side", 1, {"retention.bytes": str(1 << 30)})
        fill(broker, "side", 0, batches[: 1 << 12])
        rounds = [
            latency_round(broker, batches, f"beside-{number}", arguments.seconds) for number in range(arguments.rounds)
        ]
        # The round with the best figures alone, so that what disturbed one round disturbs no comparison.
        found.append(min(rounds, key=lambda one: one[0] + one[1]))
    for number, what in enumerate(("produce 16 KB", "fetch 64 KB")):
        table.add(f"{what}, p99 alone: µs", [one[number] for one in found], False, "{:,.0f}")
        table.add(f"{what}, p99 beside compaction: µs", [one[number + 2] for one in found], False, "{:,.0f}")
        table.add(
            f"{what}, beside compaction / alone", [one[number + 2] / one[number] for one in found], False, "{:.2f}"
        )


# Recovery and scrub


def ready_everywhere(broker: Broker, topic: str, partitions: int) -> None:
    """Until every partition gives records: those behind the small first batch with which it was tried out."""
    wire = broker.connect()
    for partition in range(partitions):
        request = fetch_frame(topic, partition, 1, 1000)
        while True:
            try:
                wire.socket.sendall(request)
                answer = wire.answer()
            except OSError:
                wire = broker.connect()
                continue
            if len(answer) > 200:
                break
            time.sleep(0.01)


def recovery_rows(arguments: argparse.Namespace, table: Table, scrub: bool) -> None:
    partitions = 10
    batches = encode_batches(1000, 100_000, 3)
    times = int(arguments.gigabytes * 1e9 / partitions / sum(map(len, batches))) + 1
    settings = {
        **SETTINGS,
        "log.segment.bytes": str(1 << 28),
        "log.flush.offset.checkpoint.interval.ms": "36000000",
        "moldau.log.scrub.bytes.per.second": str(1 << 40),
    }
    found, rates = [], []
    for broker in one_by_one(arguments, settings):
        broker.start()
        create(broker, "large", partitions, {})
        for partition in range(partitions):
            for _ in range(times):
                fill(broker, "large", partition, batches)
        os.sync()
        broker.kill()
        start = time.perf_counter()
        broker.start(wait=False)
        ready_everywhere(broker, "large", partitions)
        found.append(time.perf_counter() - start)
        size = times * partitions * sum(map(len, batches))
        say(f"{broker.name}: {size / 1e9:.1f} GB recovered, {found[-1]:.1f} s from start to the last partition")
        if scrub and isinstance(broker, Moldau):
            # A clean stop flushes everything; what is not flushed is left to recovery.
            broker.stop()
            broker.start()
            rates.append(measure_scrub(broker))
    table.add(f"recovery of {arguments.gigabytes:g} GB after kill -9: s", found, False, "{:.1f}")
    if rates:
        table.add("scrub: MB/s", rates, True, "{:,.0f}")


def measure_scrub(broker: Moldau) -> float:
    """Megabytes a second of the first pass, which begins a minute after the start."""
    deadline = time.monotonic() + 600
    begin, first = 0.0, 0.0
    while metric(broker, "moldau_log_scrub_passes_total") == 0:
        seen = metric(broker, "moldau_log_scrub_bytes_total")
        if seen > 0 and begin == 0.0:
            begin, first = time.perf_counter(), seen
        if time.monotonic() > deadline:
            raise RuntimeError("the scrub has not passed over everything in ten minutes")
        time.sleep(0.05)
    return (metric(broker, "moldau_log_scrub_bytes_total") - first) / (time.perf_counter() - begin) / 1e6


def metric(broker: Moldau, name: str) -> float:
    with urllib.request.urlopen(f"http://{broker.settings[METRICS]}/metrics", timeout=60) as answer:
        for line in answer.read().decode().splitlines():
            if line.startswith(f"{name} "):
                return float(line.rsplit(" ", 1)[1])
    raise KeyError(name)


def one_by_one(arguments: argparse.Namespace, settings: dict[str, str]) -> Iterator[Broker]:
    """One broker after the other, each with an empty directory; it is removed before the next one comes."""
    for make in makers(arguments, {**settings, METRICS: f"{HOST}:{free_ports(1)[0]}"}):
        with make() as broker:
            yield broker


def main() -> None:
    parser = parser_of(__doc__, ("compaction", "latency", "recovery", "scrub"))
    parser.add_argument(
        "--records", type=int, default=1_000_000, help="records of 1 KB in a log; five times as many of 100 B"
    )
    parser.add_argument("--gigabytes", type=float, default=10.0, help="how much is recovered")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8.0, help="how long the load runs alone")
    arguments = parser.parse_args()
    rows = arguments.rows
    # Moldau says at this level how long a compaction took.
    os.environ["MOLDAU_LOG_LEVEL"] = "INFO"
    table = Table(arguments)
    if "compaction" in rows:
        compaction_rows(arguments, table)
    if "latency" in rows:
        latency_rows(arguments, table)
    if "recovery" in rows or "scrub" in rows:
        recovery_rows(arguments, table, "scrub" in rows)


if __name__ == "__main__":
    main()
