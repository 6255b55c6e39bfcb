"""Moldau and Apache Kafka in one run on one machine, as ratios: produce, fetch, failover, start, many partitions.

    python bench/compare.py [--moldau COMMAND] [--kafka DIRECTORY] [--rows single,cluster,start,partitions] [--rounds 2]
                            [--only moldau] [--brief] [--markdown] [--json FILE]

This is what `make bench` runs and docs/PERFORMANCE.md quotes. Both systems get the same server.properties and the same
bytes: requests are encoded before, and sent over plain sockets by one thread, so that the load costs the same for both.
Each round has fresh nodes with empty directories, rounds alternate between the systems, and each figure is the median
of its rounds. A load is warmed up first, so that a JVM is measured when it has compiled itself. CPU and memory are
those of all processes of a system, from /proc; memory that processes share counts once. Requests are of versions that
name topics (Produce 8, Fetch 4); acks=all everywhere.

single      one node, topics with one partition. Produce: five requests in flight, each one batch of 1,000 records of
            1 KB, of 16 such records, of one record of 100 B, and of 160 records of text of 1 KB in gzip; then one
            request in flight. Fetch: one request in flight, the 16 KB batches from the first on, 1 MB and 64 KB each.
cluster     three nodes, one partition with three replicas, min.insync.replicas=2: the same load; then kill -9 of its
            leader, and how long until another one has acknowledged a record.
start       from the start of the process, with formatted storage, to the first acknowledged record, which includes
            making its topic; then CPU while nobody asks for anything.
partitions  a topic with 5,000 partitions: until all have a leader, memory, and a restart to the first acknowledgement.

--brief takes a tenth of the time: it shows that everything runs, and its figures mean nothing.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shlex
import statistics
import struct
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from side_by_side import (
    KafkaProgram,
    MoldauProgram,
    Nodes,
    Program,
    Table,
    Wire,
    frame,
    parser_of,
    say,
    why_no_kafka,
)

from moldau.protocol import errors
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.records.codecs import GZIP, NONE

PRODUCE_VERSION, FETCH_VERSION, CREATE_VERSION, METADATA_VERSION = 8, 4, 7, 8
IN_FLIGHT = 5
PARTITIONS = 5_000
RESPONSE_BYTES_MAX = 32 << 20
LIMIT_S = 120.0
# What is in front of the first partition's error code, besides the topic's name: size, correlation id, number of
# topics, length of the name, number of partitions, index.
BEFORE_PRODUCE_ERROR = 4 + 4 + 4 + 2 + 4 + 4
# From the error on, where there is none: error, base offset, time, log start, record errors, message, throttle time.
AFTER_PRODUCE_INDEX = 2 + 8 + 8 + 8 + 4 + 2 + 4
# The same for the number of aborted transactions: correlation id, throttle time, number of topics, length of the name,
# number of partitions, index, error, high watermark, last stable offset.
BEFORE_ABORTED = 4 + 4 + 4 + 2 + 4 + 4 + 2 + 8 + 8
BATCH_HEADER_BYTES = 61
MORE_IS_BETTER = ("req/s", "MB/s")


@dataclass(frozen=True)
class Pace:
    """How long things are measured; of a cluster longer, because three JVMs take longer to be warm."""

    warm_s: float = 5.0
    cluster_warm_s: float = 15.0
    load_s: float = 3.0
    cluster_load_s: float = 4.0
    single_requests: int = 8_000
    cluster_requests: int = 3_000
    warm_fetch_mb: int = 100
    fetch_mb: int = 500
    rest_s: float = 10.0
    partitions_rest_s: float = 15.0


BRIEF = Pace(0.5, 1.5, 0.3, 0.4, 800, 300, 10, 50, 1.0, 1.5)

Figures = dict[str, float]


# Requests


def batch_of(records: int, size: int, codec: int = NONE) -> bytes:
    """Random bytes, or text that compresses about as well as events do."""
    chance = random.Random(size)
    builder = BatchBuilder(codec=codec)
    value = chance.randbytes(size)
    for _ in range(records):
        if codec != NONE:
            words = (f"visitor={chance.randrange(10**9)} page={chance.randrange(10**5)};" for _ in range(size // 20))
            value = "".join(words).encode()[:size]
        builder.append(int(time.time() * 1000), None, value)
    return builder.build()


def produce_frame(topic: str, batch: bytes) -> bytes:
    data = TopicProduceData(topic, partition_data=[PartitionProduceData(0, MemoryRecords(batch))])
    return frame(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), PRODUCE_VERSION)


def create_topic(port: int, name: str, partitions: int, replicas: int) -> None:
    """Asks until it is there: right after a start nobody may be able to make one yet."""
    new = CreatableTopic(name=name, num_partitions=partitions, replication_factor=replicas)
    deadline = time.monotonic() + LIMIT_S
    while True:
        try:
            with Wire(port) as wire:
                answer = wire.ask(CreateTopicsRequest(topics=[new], timeout_ms=60_000), CREATE_VERSION)
            error = answer.topics[0].error_code
            if error in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
                return
            problem = f"error {error}"
        except OSError as refused:
            problem = str(refused)
        if time.monotonic() > deadline:
            raise RuntimeError(f"topic {name} could not be made: {problem}")
        time.sleep(0.005)


def leaders_of(port: int, topic: str) -> list[int]:
    """The leader of each partition, -1 where there is none, as one node knows them."""
    with Wire(port, 10.0) as wire:
        answer = wire.ask(MetadataRequest([MetadataRequestTopic(name=topic)]), METADATA_VERSION)
    return [partition.leader_id for partition in answer.topics[0].partitions]


class Load:
    """One connection that sends the same Produce request again and again."""

    def __init__(self, port: int, topic: str, batch: bytes, connect: Callable[[int], Wire] = Wire) -> None:
        self.wire = connect(port)
        self.frame = produce_frame(topic, batch)
        # All answers are equally long, so that each is one call of the system.
        self._answer = memoryview(bytearray(BEFORE_PRODUCE_ERROR + len(topic) + AFTER_PRODUCE_INDEX))
        self._error_at = BEFORE_PRODUCE_ERROR + len(topic)

    def __enter__(self) -> Load:
        return self

    def __exit__(self, *exception: object) -> None:
        self.wire.socket.close()

    def send(self) -> None:
        self.wire.socket.sendall(self.frame)

    def receive(self) -> None:
        """Raises what the answer says. One with an error may be longer; nothing is read behind it."""
        self.wire.fill(self._answer)
        error = struct.unpack_from(">h", self._answer, self._error_at)[0]
        if error != errors.NONE:
            raise RuntimeError(f"a record was refused with error {error}")

    def run(self, seconds: float, in_flight: int = IN_FLIGHT) -> tuple[int, float]:
        """Requests that were acknowledged, and how long they took."""
        start = time.perf_counter()
        end = start + seconds
        sent = received = 0
        while True:
            if time.perf_counter() < end:
                while sent - received < in_flight:
                    self.send()
                    sent += 1
            if received == sent:
                return received, time.perf_counter() - start
            self.receive()
            received += 1

    def latencies_us(self, count: int) -> list[float]:
        """With one request in flight, in ascending order."""
        times = []
        for _ in range(count):
            start = time.perf_counter()
            self.send()
            self.receive()
            times.append((time.perf_counter() - start) * 1e6)
        return sorted(times)


class Reader:
    """One connection that fetches a partition from its first record on, and again when it is at the end."""

    def __init__(self, port: int, topic: str, size: int, connect: Callable[[int], Wire] = Wire) -> None:
        self.wire = connect(port)
        partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=size)
        topics = [FetchTopic(topic, partitions=[partition])]
        request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=size, topics=topics)
        self._frame = bytearray(frame(request, FETCH_VERSION))
        self._answer = memoryview(bytearray(RESPONSE_BYTES_MAX))
        self._aborted_at = BEFORE_ABORTED + len(topic)
        self.position = 0
        self.answer_bytes = 0

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, *exception: object) -> None:
        self.wire.socket.close()

    def mb_per_second(self, megabytes: int) -> float:
        start = time.perf_counter()
        received = 0
        while received < megabytes * 1_000_000:
            received += self.fetch()
        return received / 1e6 / (time.perf_counter() - start)

    def request_from(self, offset: int) -> None:
        """The offset and the size are the last twelve bytes of a request for one partition."""
        struct.pack_into(">q", self._frame, len(self._frame) - 12, offset)
        self.wire.socket.sendall(self._frame)

    def fetch(self) -> int:
        """Bytes of records; `position` is behind them then, or at the first record again."""
        self.request_from(self.position)
        self.answer_bytes = self.wire.answer_into(self._answer)
        aborted = struct.unpack_from(">i", self._answer, self._aborted_at)[0]
        place = self._aborted_at + 4 + 16 * max(0, aborted)
        size: int = struct.unpack_from(">i", self._answer, place)[0]
        if size <= 0:
            if self.position == 0:
                raise RuntimeError("there is nothing to fetch")
            self.position = 0
            return 0
        before = self.position
        self._move_on(place + 4, place + 4 + size)
        if self.position <= before:
            raise RuntimeError("a fetch brought nothing new")
        return size

    def _move_on(self, place: int, end: int) -> None:
        """Behind the last batch that is here as a whole."""
        while place + BATCH_HEADER_BYTES <= end:
            base_offset, length = struct.unpack_from(">qi", self._answer, place)
            if place + 12 + length > end:
                return
            self.position = base_offset + struct.unpack_from(">i", self._answer, place + 23)[0] + 1
            place += 12 + length


# Measurements


def produce_figures(
    nodes: Nodes, port: int, topic: str, label: str, batch: bytes, warm_s: float, seconds: float
) -> Figures:
    with Load(port, topic, batch) as load:
        load.run(warm_s)
        before = nodes.cpu_seconds()
        count, took = load.run(seconds)
        cpu = nodes.cpu_seconds() - before
    return {f"{label} req/s": count / took, f"{label} cpu us": cpu / count * 1e6}


def latency_figures(port: int, topic: str, label: str, count: int) -> Figures:
    with Load(port, topic, batch_of(1, 100)) as load:
        load.latencies_us(count // 16)
        times = load.latencies_us(count)
    return {f"{label} p50 us": times[count // 2], f"{label} p99 us": times[count * 99 // 100]}


def measure_single(program: Program, pace: Pace) -> Figures:
    loads = {
        "1 MB": batch_of(1000, 1000),
        "16 KB": batch_of(16, 1000),
        "1 record": batch_of(1, 100),
        "160 KB gzip": batch_of(160, 1000, GZIP),
    }
    with Nodes(program, 1, {"num.partitions": "1"}) as nodes:
        nodes.start()
        port = nodes.ports[1]
        create_topic(port, "first", 1, 1)
        time.sleep(pace.rest_s / 5)
        figures = {"memory idle MB": nodes.memory_mb()}
        for label, batch in loads.items():
            create_topic(port, label.replace(" ", "-"), 1, 1)
            time.sleep(0.5)
            topic, shown = label.replace(" ", "-"), f"produce {label}"
            figures |= produce_figures(nodes, port, topic, shown, batch, pace.warm_s, pace.load_s)
        figures |= latency_figures(port, "1-record", "produce 1 in flight", pace.single_requests)
        for label, size in (("1 MB", 1 << 20), ("64 KB", 64 << 10)):
            with Reader(port, "16-KB", size) as reader:
                reader.mb_per_second(pace.warm_fetch_mb)
                figures[f"fetch {label} MB/s"] = reader.mb_per_second(pace.fetch_mb)
        figures["memory after load MB"] = nodes.memory_mb()
    return figures


def measure_cluster(program: Program, pace: Pace) -> Figures:
    with Nodes(program, 3, {"num.partitions": "1", "min.insync.replicas": "2"}) as nodes:
        nodes.start()
        create_topic(nodes.ports[1], "replicated", 1, 3)
        time.sleep(pace.rest_s / 3)
        leader = leaders_of(nodes.ports[1], "replicated")[0]
        port = nodes.ports[leader]
        figures: Figures = {}
        for label, batch in (("16 KB", batch_of(16, 1000)), ("1 MB", batch_of(1000, 1000))):
            shown, warm_s = f"rf3 produce {label}", pace.cluster_warm_s
            figures |= produce_figures(nodes, port, "replicated", shown, batch, warm_s, pace.cluster_load_s)
        figures |= latency_figures(port, "replicated", "rf3 1 in flight", pace.cluster_requests)
        figures["rf3 memory MB"] = nodes.memory_mb()
        figures["write gap after kill -9 s"] = write_gap(nodes, leader)
        nodes.kill()
    return figures


def write_gap(nodes: Nodes, leader: int) -> float:
    """From the kill of the leader to the first record that another one acknowledges."""
    batch = batch_of(1, 100)
    nodes.kill(leader)
    start = time.perf_counter()
    while time.perf_counter() - start < LIMIT_S:
        for node in nodes.processes:
            try:
                found = leaders_of(nodes.ports[node], "replicated")[0]
                if found in nodes.processes:
                    with Load(nodes.ports[found], "replicated", batch) as load:
                        load.latencies_us(1)
                    return time.perf_counter() - start
            except (OSError, RuntimeError):
                continue
        time.sleep(0.02)
    return math.inf


def measure_start(program: Program, pace: Pace) -> Figures:
    with Nodes(program, 1, {"num.partitions": "1"}) as nodes:
        figures = {"start to first ack s": first_acknowledgement(nodes)}
        time.sleep(pace.rest_s)
        before = nodes.cpu_seconds()
        time.sleep(pace.rest_s)
        figures["idle cpu %"] = (nodes.cpu_seconds() - before) / pace.rest_s * 100
    return figures


def first_acknowledgement(nodes: Nodes) -> float:
    """Seconds from the start of the process on."""
    batch = batch_of(1, 100)
    start = time.perf_counter()
    nodes.start(wait=False)
    create_topic(nodes.ports[1], "first", 1, 1)
    while time.perf_counter() - start < LIMIT_S:
        try:
            with Load(nodes.ports[1], "first", batch) as load:
                load.latencies_us(1)
            return time.perf_counter() - start
        except (OSError, RuntimeError):
            time.sleep(0.005)
    return math.inf


def measure_partitions(program: Program, pace: Pace) -> Figures:
    with Nodes(program, 1, {"num.partitions": "1"}) as nodes:
        nodes.start()
        port = nodes.ports[1]
        create_topic(port, "first", 1, 1)
        start = time.perf_counter()
        create_topic(port, "many", PARTITIONS, 1)
        while leaders_of(port, "many").count(1) < PARTITIONS:
            time.sleep(0.05)
        figures = {f"create {PARTITIONS} partitions s": time.perf_counter() - start}
        time.sleep(pace.partitions_rest_s)
        figures[f"memory {PARTITIONS} partitions MB"] = nodes.memory_mb()
        nodes.stop()
        figures[f"restart {PARTITIONS} partitions to first ack s"] = first_acknowledgement(nodes)
        nodes.kill()
    return figures


ROWS: dict[str, Callable[[Program, Pace], Figures]] = {
    "single": measure_single,
    "cluster": measure_cluster,
    "start": measure_start,
    "partitions": measure_partitions,
}


# Running and showing


def programs(arguments: argparse.Namespace) -> list[Program]:
    found: list[Program] = []
    if arguments.only != "kafka":
        found.append(MoldauProgram(shlex.split(arguments.moldau)))
    if arguments.only != "moldau":
        reason = why_no_kafka(arguments.kafka)
        if reason is None:
            found.append(KafkaProgram(arguments.kafka))
        elif arguments.only == "kafka":
            raise SystemExit(reason)
        else:
            say(f"Moldau alone: {reason}")
    return found


def medians(row: str, chosen: list[Program], rounds: int, pace: Pace) -> dict[str, list[float]]:
    """Each figure of a row, for each program."""
    seen: dict[str, list[Figures]] = {program.name: [] for program in chosen}
    for number in range(rounds):
        for program in chosen:
            say(f"{row}, round {number + 1} of {rounds}: {program.name}")
            seen[program.name].append(ROWS[row](program, pace))
    names = list(seen[chosen[0].name][0])
    return {name: [statistics.median(one[name] for one in seen[each.name]) for each in chosen] for name in names}


def main() -> None:
    parser = parser_of(__doc__, list(ROWS))
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=("moldau", "kafka"), help="one of the two, without ratios")
    parser.add_argument("--brief", action="store_true", help="a tenth of the time, only to see that it runs")
    parser.add_argument("--json", type=Path, help="write the figures into this file, too")
    arguments = parser.parse_args()
    chosen = programs(arguments)
    pace = BRIEF if arguments.brief else Pace()
    table = Table(arguments, [program.name for program in chosen])
    results: dict[str, dict[str, float]] = {}
    for row in arguments.rows:
        for name, values in medians(row, chosen, arguments.rounds, pace).items():
            table.add(name, values, name.endswith(MORE_IS_BETTER), "{:,.1f}")
            results[name] = dict(zip([program.name for program in chosen], values, strict=True))
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
