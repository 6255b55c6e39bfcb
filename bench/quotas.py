"""Measures quotas: how close to its limit a client is kept, how large the burst before is, and what others notice.

    python bench/quotas.py [--moldau COMMAND] [--kafka DIRECTORY] [--rows produce,fetch,request,…]
                           [--seconds 110]

Every row runs against Moldau and, where its jars are (tools/fetch_kafka.sh, or --kafka DIRECTORY),
against a real Apache Kafka with the same limits. Clients are plain sockets in one thread, the same code for both
brokers, one request in flight each; they ignore `throttle_time_ms` and are slowed down by the broker alone. A quota
gives its ten seconds' worth again when the samples of the first burst are too old to count, every eleven seconds or a
little more: what is measured over many of them is a rate, over three of them it depends on where one begins. Both
brokers are measured at the same time, but for the rows whose figures are times: hostile and cost.

produce  1 and 10 connections that share a client id with `producer_byte_rate`; small and large requests. Percent off
         the limit over so many seconds once it has settled, and the burst: seconds' worth before the first wait.
fetch    the same with `consumer_byte_rate`, reading one topic again and again.
request  1 and 10 connections that ask for metadata as fast as they can under `request_percentage`: CPU time of the
         broker in percent of a core, without what it uses when nobody asks. Kafka's covers more than the quota does
         (its compiler, its collector).
mutations  1 and 10 connections that create topics of 1 and of 10 partitions under `controller_mutation_rate`, and wait
         as long as they are told to: percent off the limit.
connections  1 and 10 threads that connect, ask for the versions and close again under `connection_creation_rate` of
         their address: percent off the limit, of those that were answered.
clients  real producers under `producer_byte_rate`, which pause when they are told to: librdkafka, Java's
         kafka-producer-perf-test (where tools/fetch_kafka.sh has its jars) and ours. Percent off the limit, by what the
         log has grown.
consumers  the same with consumers and `consumer_byte_rate`, by what they say that they have read.
hostile  200 connections that produce as fast as they can under a quota, and one well-behaved client outside of it: its
         p50 and p99 in ms, alone and beside them.
cost     CPU time of the broker for one Produce with one record, in us: with no quota, with 10,000 client ids that have
         one, and for a client that is one of them and far from its limit. In turn, the median of so many rounds.
"""

from __future__ import annotations

import itertools
import selectors
import socket
import statistics
import struct
import subprocess
import sys
import threading
import time
from bisect import bisect_right
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TypeVar

from side_by_side import KAFKA_JARS, Broker, Table, Wire, create_topic, fresh_brokers, parser_of

from moldau.protocol import api_keys, errors
from moldau.protocol.messages import alter_client_quotas_request as alter
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.describe_log_dirs_request import DescribableLogDirTopic, DescribeLogDirsRequest
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

T = TypeVar("T")

PRODUCE_VERSION, FETCH_VERSION, METADATA_VERSION = 9, 12, 12
SMALL, LARGE = 1000, 200_000
BYTES_PER_SECOND = 4_000_000
SMALL_BYTES_PER_SECOND = 1_000_000
"""With more a single connection might not send as many small requests as it may."""
PERCENT = 5.0
SETTLE_S = 27.5
"""In the middle between two bursts: what is measured has whole ones."""
SAMPLE_S = 0.5
EMPTY_BYTES_MAX = 100
"""An answer to a fetch that is not longer than this brings no records."""
PRODUCE_THROTTLE, FETCH_THROTTLE = slice(-5, -1), slice(5, 9)
"""Where these versions of the answers have it."""
HOSTILE_CONNECTIONS = 200
HOSTILE_RATE = 1_000_000
PAUSE_S = 0.01
MUTATIONS_PER_SECOND = 5.0
CONNECTIONS_PER_SECOND = 20.0
CONNECTING_ADDRESS = "127.0.0.2"
"""Not that of the bench's own connections."""
CREATE_VERSION = 7
READ_BYTES_PER_SECOND = 1_000_000
ENTITIES = 10_000
ENTITIES_PER_REQUEST = 1000
COST_ROUNDS, COST_S = 60, 0.5
"""Many short turns: what else the machine does changes little within one round."""
COST_CONNECTIONS = 20
"""So that the loop is not asleep between two requests, which would cost more than what is looked for."""
FAR_LIMIT = 1e12


def framed(request: Message, version: int, client_id: str) -> bytes:
    key = type(request).API_KEY
    writer = Writer()
    RequestHeader(key, version, 7, client_id).encode(writer, api_keys.request_header_version(key, version))
    request.encode(writer, version)
    data = writer.to_bytes()
    return struct.pack(">i", len(data)) + data


def produce_frame(topic: str, size: int, client_id: str) -> bytes:
    builder = BatchBuilder()
    builder.append(int(time.time() * 1000), None, bytes(n % 251 for n in range(size)))
    batch = builder.build()
    row = PartitionProduceData(0, MemoryRecords(batch, 0, len(batch)))
    request = ProduceRequest(None, 1, 30_000, [TopicProduceData(topic, partition_data=[row])])
    return framed(request, PRODUCE_VERSION, client_id)


def fetch_frame(topic: str, size: int, client_id: str) -> bytes:
    topics = [FetchTopic(topic, partitions=[FetchPartition(0, -1, 0, -1, -1, size)])]
    request = FetchRequest(topics=topics, max_wait_ms=100, min_bytes=1, max_bytes=size, session_epoch=-1)
    return framed(request, FETCH_VERSION, client_id)


def set_quota(broker: Broker, name: str, key: str, value: float, kind: str = "client-id") -> None:
    entry = alter.EntryData([alter.EntityData(kind, name)], [alter.OpData(key, value)])
    with broker.connect() as wire:
        answer = wire.ask(alter.AlterClientQuotasRequest([entry]), 1)
        assert answer.entries[0].error_code == 0, answer
    time.sleep(1.0)


class Load:
    """Connections that send the same request again as soon as they have the answer."""

    def __init__(
        self, port: int, count: int, data: bytes, worth: Callable[[int], int], throttle: slice = slice(0, 0)
    ) -> None:
        """`worth`: what an answer of so many bytes counts; `throttle`: where its throttle time is."""
        self.selector = selectors.DefaultSelector()
        self.data = data
        self.worth = worth
        self.throttle = throttle
        self.total = 0
        self.began_s = time.monotonic()
        self.first_wait_total = -1
        self.wires: list[Wire] = []
        for _ in range(count):
            wire = Wire(port)
            self.wires.append(wire)
            wire.socket.sendall(data)
            self.selector.register(wire.socket, selectors.EVENT_READ, [wire, bytearray()])

    def run(self, until_s: float, each: Callable[[], None] | None = None) -> None:
        """`each` is called between the turns."""
        while time.monotonic() < until_s:
            ready = self.selector.select(0.002 if each is not None else 0.2)
            for key, _ in ready:
                wire, buffer = key.data
                buffer += wire.receive(1 << 20)
                while len(buffer) >= 4 and len(buffer) >= 4 + (size := int.from_bytes(buffer[:4], "big")):
                    answer = bytes(buffer[4 : 4 + size]) if self.first_wait_total < 0 else b""
                    del buffer[: 4 + size]
                    self.total += self.worth(size)
                    if any(answer[self.throttle]):
                        self.first_wait_total = self.total
                    wire.socket.sendall(self.data)
            if each is not None:
                each()

    def close(self) -> None:
        self.selector.close()
        for wire in self.wires:
            wire.socket.close()


def at_once(brokers: list[Broker], work: Callable[[Broker], T]) -> list[T]:
    """The same for all brokers, in threads: they wait for their quotas most of the time."""
    with ThreadPoolExecutor(len(brokers)) as pool:
        return list(pool.map(work, brokers))


def rate_of(samples: list[tuple[float, int]]) -> float:
    """What came a second: the slope of the line that is nearest to all samples of time and total.

    What comes in bursts is a staircase. Its ends alone would say more or less by up to one step of them.
    """
    return statistics.linear_regression([time_s for time_s, _ in samples], [total for _, total in samples]).slope


def sampled(total: Callable[[], int], seconds: float, wait: Callable[[float], None]) -> list[tuple[float, int]]:
    """Time and total every SAMPLE_S; `wait` gets the moment of the next one."""
    began_s = time.monotonic()
    samples = [(began_s, total())]
    for number in range(1, round(seconds / SAMPLE_S) + 1):
        wait(began_s + number * SAMPLE_S)
        samples.append((time.monotonic(), total()))
    return samples


def sleep_until(moment_s: float) -> None:
    time.sleep(max(0.0, moment_s - time.monotonic()))


def measure_rate(load: Load, seconds: float) -> tuple[float, float]:
    """What came a second, once it has settled, and what came before somebody had to wait for the first time."""
    try:
        load.run(load.began_s + SETTLE_S)
        before = load.total
        rate = rate_of(sampled(lambda: load.total, seconds, load.run))
        return rate, load.first_wait_total if load.first_wait_total >= 0 else before
    finally:
        load.close()


def limited_topic(broker: Broker, names: Names, value: float = BYTES_PER_SECOND) -> str:
    """A new topic, and a quota for producers whose client id is its name."""
    name = names.next()
    with broker.connect() as wire:
        create_topic(wire, name, 1)
    time.sleep(1.0)
    set_quota(broker, name, "producer_byte_rate", value)
    return name


def request_worth(size: int, answer_size: int) -> int:
    return size


def fetch_worth(answer_size: int) -> int:
    return answer_size if answer_size > EMPTY_BYTES_MAX else 0


class Names:
    """Every measurement has a topic and a client id of its own."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def next(self) -> str:
        return f"quota-{next(self._numbers)}"


def limit_for(size: int) -> float:
    return SMALL_BYTES_PER_SECOND if size == SMALL else BYTES_PER_SECOND


def add_accuracy(table: Table, what: str, limit: float, measured: list[tuple[float, float]]) -> None:
    off = [abs(rate / limit - 1) * 100 for rate, _ in measured]
    table.add(f"{what}: percent off the limit", off, False, "{:.2f}")
    table.add(f"{what}: burst, in seconds' worth", [burst / limit for _, burst in measured], False, "{:.1f}")


def run_produce(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    for count in (1, 10):
        for size in (SMALL, LARGE):

            def measure(broker: Broker, count: int = count, size: int = size) -> tuple[float, float]:
                name = limited_topic(broker, names, limit_for(size))
                data = produce_frame(name, size, name)
                load = Load(broker.port, count, data, partial(request_worth, len(data) - 4), PRODUCE_THROTTLE)
                return measure_rate(load, seconds)

            what = f"produce, {count} connections, {size:,} bytes"
            add_accuracy(table, what, limit_for(size), at_once(brokers, measure))


def run_fetch(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    for count in (1, 10):
        for size in (SMALL, LARGE):

            def measure(broker: Broker, count: int = count, size: int = size) -> tuple[float, float]:
                name = names.next()
                with broker.connect() as wire:
                    create_topic(wire, name, 1)
                    time.sleep(1.0)
                    for _ in range(20):
                        wire.socket.sendall(produce_frame(name, size, "filler"))
                        wire.answer()
                set_quota(broker, name, "consumer_byte_rate", limit_for(size))
                # As many batches as are there: a few kilobytes, or four megabytes.
                load = Load(broker.port, count, fetch_frame(name, 8_000_000, name), fetch_worth, FETCH_THROTTLE)
                return measure_rate(load, seconds)

            what = f"fetch, {count} connections, {20 * size:,} bytes"
            add_accuracy(table, what, limit_for(size), at_once(brokers, measure))


def run_request(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    for count in (1, 10):

        def measure(broker: Broker, count: int = count) -> float:
            name = names.next()
            set_quota(broker, name, "request_percentage", PERCENT)
            idle = broker.cpu_seconds()
            time.sleep(5.0)
            idle = (broker.cpu_seconds() - idle) / 5.0
            load = Load(broker.port, count, framed(MetadataRequest(topics=None), METADATA_VERSION, name), lambda _: 1)
            load.run(load.began_s + SETTLE_S)
            before, began_s = broker.cpu_seconds(), time.monotonic()
            load.run(began_s + seconds)
            cpu = (broker.cpu_seconds() - before) / (time.monotonic() - began_s)
            load.close()
            return (cpu - idle) * 100

        what = f"request, {count} connections, limit {PERCENT}: percent of a core"
        table.add(what, at_once(brokers, measure), False, "{:.2f}")


class Workers:
    """Threads that do something again and again, and count what was done."""

    def __init__(self, count: int, work: Callable[[int], int]) -> None:
        """`work` gets the thread's number, does it once and says how much that counts."""
        self.total = 0
        self._is_over = False
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(number, work), daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self, number: int, work: Callable[[int], int]) -> None:
        while not self._is_over:
            done = work(number)
            with self._lock:
                self.total += done

    def rate(self, seconds: float) -> float:
        """What is done a second, once it has settled; the threads end."""
        time.sleep(SETTLE_S)
        rate = rate_of(sampled(lambda: self.total, seconds, sleep_until))
        self._is_over = True
        for thread in self._threads:
            thread.join()
        return rate


def run_mutations(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    for count in (1, 10):
        for partitions in (1, 10):

            def measure(broker: Broker, count: int = count, partitions: int = partitions) -> float:
                name = names.next()
                set_quota(broker, name, "controller_mutation_rate", MUTATIONS_PER_SECOND)
                wires = [broker.connect() for _ in range(count)]
                topics = itertools.count()

                def create(number: int) -> int:
                    topic = CreatableTopic(f"{name}-{next(topics)}", partitions, 1)
                    wires[number].socket.sendall(framed(CreateTopicsRequest([topic], 30_000), CREATE_VERSION, name))
                    reader = Reader(wires[number].answer())
                    ResponseHeader.decode(reader, 1)
                    answer = CreateTopicsResponse.decode(reader, CREATE_VERSION)
                    code = answer.topics[0].error_code
                    assert code in (errors.NONE, errors.THROTTLING_QUOTA_EXCEEDED), answer
                    if code == errors.NONE:
                        return partitions
                    time.sleep(answer.throttle_time_ms / 1000)
                    return 0

                return abs(Workers(count, create).rate(seconds) / MUTATIONS_PER_SECOND - 1) * 100

            what = f"mutations, {count} connections, {partitions} partitions: percent off the limit"
            table.add(what, at_once(brokers, measure), False, "{:.2f}")


def run_connections(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    question = framed(ApiVersionsRequest("bench", "1"), 3, "bench")
    for broker in brokers:
        set_quota(broker, CONNECTING_ADDRESS, "connection_creation_rate", CONNECTIONS_PER_SECOND, "ip")
    for count in (1, 10):

        def measure(broker: Broker, count: int = count) -> float:
            def connect(number: int) -> int:
                here = (CONNECTING_ADDRESS, 0)
                try:
                    with socket.create_connection(("127.0.0.1", broker.port), 30, here) as connection:
                        connection.sendall(question)
                        return 1 if connection.recv(4) else 0
                except ConnectionError:
                    return 0

            return abs(Workers(count, connect).rate(seconds) / CONNECTIONS_PER_SECOND - 1) * 100

        what = f"connections, {count} at once: percent off the limit"
        table.add(what, at_once(brokers, measure), False, "{:.2f}")


PRODUCERS = {"librdkafka": """
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "client.id": sys.argv[2], "linger.ms": 5})
while True:
    try:
        producer.produce(sys.argv[2], value)
        producer.poll(0)
    except BufferError:
        producer.poll(0.1)
""", "ours": """
from moldau.client import Producer
producer = Producer(bootstrap_servers=sys.argv[1], client_id=sys.argv[2], linger_ms=5)
while True:
    producer.send(sys.argv[2], value)
"""}  # fmt: skip


def client_commands(broker: Broker, name: str) -> dict[str, list[str]]:
    """Producers of records of a thousand bytes that never end."""
    address = f"127.0.0.1:{broker.port}"
    head = "import os, sys\nvalue = os.urandom(1000)"
    commands = {client: [sys.executable, "-c", head + code, address, name] for client, code in PRODUCERS.items()}
    if KAFKA_JARS.is_dir():
        tool = ["java", "-Xmx256M", "-cp", f"{KAFKA_JARS}/*", "org.apache.kafka.tools.ProducerPerformance"]
        sizes = ["--num-records", "1000000000", "--record-size", "1000", "--throughput", "-1"]
        properties = [f"bootstrap.servers={address}", f"client.id={name}"]
        commands["Java"] = [*tool, "--topic", name, *sizes, "--producer-props", *properties]
    return commands


CONSUMERS = {"librdkafka": """
from confluent_kafka import Consumer, TopicPartition
consumer = Consumer({"bootstrap.servers": sys.argv[1], "client.id": sys.argv[2], "group.id": sys.argv[2]})
consumer.assign([TopicPartition(sys.argv[2], 0, 0)])
def poll():
    return sum(len(message.value()) for message in consumer.consume(1000, 0.1))
""", "ours": """
from moldau.client import Consumer, TopicPartition
consumer = Consumer(bootstrap_servers=sys.argv[1], client_id=sys.argv[2], auto_offset_reset="earliest")
consumer.assign([TopicPartition(sys.argv[2], 0)])
def poll():
    return sum(len(record.value) for record in consumer.poll(100))
"""}  # fmt: skip
TELL = """
total = 0
while True:
    total += poll()
    print(total, flush=True)
"""


def run_consumers(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    """Each reads a topic with enough for all that time from its beginning."""
    needed = READ_BYTES_PER_SECOND * (SETTLE_S + seconds + 30)
    for client, code in CONSUMERS.items():

        def measure(broker: Broker, client: str = client, code: str = code) -> float:
            name = names.next()
            with broker.connect() as wire:
                create_topic(wire, name, 1)
                time.sleep(1.0)
                data = produce_frame(name, LARGE, "filler")
                for _ in range(int(needed / LARGE)):
                    wire.socket.sendall(data)
                    wire.answer()
            set_quota(broker, name, "consumer_byte_rate", READ_BYTES_PER_SECOND)
            command = [sys.executable, "-c", "import sys" + code + TELL, f"127.0.0.1:{broker.port}", name]
            running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert running.stdout is not None
            seen: list[tuple[float, int]] = []
            try:
                while not seen or seen[-1][0] < seen[0][0] + SETTLE_S + seconds:
                    line = running.stdout.readline()
                    assert line, f"the consumer of {client} has ended"
                    if int(line) > 0:
                        seen.append((time.monotonic(), int(line)))
            finally:
                running.kill()
                running.wait()
            began_s, times = seen[0][0] + SETTLE_S, [time_s for time_s, _ in seen]
            moments = [began_s + number * SAMPLE_S for number in range(round(seconds / SAMPLE_S))]
            rate = rate_of([(moment_s, seen[bisect_right(times, moment_s) - 1][1]) for moment_s in moments])
            return abs(rate / READ_BYTES_PER_SECOND - 1) * 100

        table.add(f"consumer of {client}: percent off the limit", at_once(brokers, measure), False, "{:.2f}")


def log_bytes(broker: Broker, topic: str) -> int:
    with broker.connect() as wire:
        answer = wire.ask(DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0])]), 4)
    return sum(row.partition_size for place in answer.results for found in place.topics for row in found.partitions)


def run_clients(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    for client in client_commands(brokers[0], ""):

        def measure(broker: Broker, client: str = client) -> float:
            name = limited_topic(broker, names)
            command = client_commands(broker, name)[client]
            running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                while log_bytes(broker, name) == 0:
                    assert running.poll() is None, f"the producer of {client} has ended: {command}"
                    time.sleep(0.1)
                time.sleep(SETTLE_S)
                rate = rate_of(sampled(lambda: log_bytes(broker, name), seconds, sleep_until))
            finally:
                running.kill()
                running.wait()
            return abs(rate / BYTES_PER_SECOND - 1) * 100

        table.add(f"producer of {client}: percent off the limit", at_once(brokers, measure), False, "{:.2f}")


class WellBehaved:
    """One small request every ten milliseconds; how long its answers take."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self.wire = Wire(broker.port)
        self.data = produce_frame(topic, 100, "well behaved")
        self.took_ms: list[float] = []
        self._next_s = 0.0

    def step(self) -> None:
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + PAUSE_S
        self.wire.socket.sendall(self.data)
        self.wire.answer()
        self.took_ms.append((time.monotonic() - now_s) * 1000)

    def percentiles(self) -> tuple[float, float]:
        cuts = statistics.quantiles(self.took_ms, n=100)
        self.took_ms.clear()
        return cuts[49], cuts[98]


def run_hostile(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    alone, beside = [], []
    for broker in brokers:
        name = limited_topic(broker, names, HOSTILE_RATE)
        client = WellBehaved(broker, name)
        end_s = time.monotonic() + 5.0
        while time.monotonic() < end_s:  # so that a JVM is warm
            client.step()
        client.took_ms.clear()
        quiet = Load(broker.port, 0, b"", lambda _: 0)
        quiet.run(time.monotonic() + seconds, client.step)
        alone.append(client.percentiles())
        load = Load(broker.port, HOSTILE_CONNECTIONS, produce_frame(name, 10_000, name), lambda _: 1)
        load.run(load.began_s + SETTLE_S, client.step)
        client.took_ms.clear()
        load.run(time.monotonic() + seconds, client.step)
        beside.append(client.percentiles())
        load.close()
        client.wire.socket.close()
    for index, what in ((0, "p50"), (1, "p99")):
        table.add(f"well-behaved client alone: {what} ms", [row[index] for row in alone], False, "{:.2f}")
        table.add(f"beside {HOSTILE_CONNECTIONS} hostile: {what} ms", [row[index] for row in beside], False, "{:.2f}")


def set_many(broker: Broker, client_ids: list[str], value: float | None) -> None:
    """Gives each of them a quota of its own; None takes them away."""
    op = alter.OpData("producer_byte_rate", value or 0.0, value is None)
    with broker.connect() as wire:
        for first in range(0, len(client_ids), ENTITIES_PER_REQUEST):
            names = client_ids[first : first + ENTITIES_PER_REQUEST]
            entries = [alter.EntryData([alter.EntityData("client-id", name)], [op]) for name in names]
            answer = wire.ask(alter.AlterClientQuotasRequest(entries), 1)
            assert all(entry.error_code == 0 for entry in answer.entries), answer
    time.sleep(0.5)


def busy_ns_of(pid: int) -> int:
    """CPU time of all threads of a process, finer than the ticks of its statistics."""
    return sum(int((task / "schedstat").read_text().split()[0]) for task in Path(f"/proc/{pid}/task").iterdir())


def cost_us(broker: Broker, load: Load) -> float:
    """CPU time for one request."""
    load.run(time.monotonic() + 0.1)
    before, count = busy_ns_of(broker.pid), load.total
    load.run(time.monotonic() + COST_S)
    return (busy_ns_of(broker.pid) - before) / 1000 / (load.total - count)


def run_cost(brokers: list[Broker], table: Table, seconds: float, names: Names) -> None:
    others = [f"tenant-{number}" for number in range(ENTITIES)]
    medians = []
    for broker in brokers:
        name = names.next()
        with broker.connect() as wire:
            create_topic(wire, name, 1)
        time.sleep(1.0)
        data = produce_frame(name, 100, name)
        load = Load(broker.port, COST_CONNECTIONS, data, lambda _: 1)
        load.run(time.monotonic() + 5.0)  # so that a JVM is warm
        rounds = []
        for _ in range(COST_ROUNDS):
            none = cost_us(broker, load)
            set_many(broker, others, FAR_LIMIT)
            of_others = cost_us(broker, load)
            set_many(broker, [name], FAR_LIMIT)
            own = cost_us(broker, load)
            set_many(broker, [name, *others], None)
            rounds.append((none, of_others - none, own - none))
        load.close()
        medians.append([statistics.median(column) for column in zip(*rounds, strict=True)])
    for index, what in enumerate(("no quota", f"{ENTITIES:,} entities, others: more", "its own too: more")):
        table.add(f"one produce, {what}, us", [row[index] for row in medians], False, "{:.2f}")


ROWS = {
    "produce": run_produce,
    "fetch": run_fetch,
    "request": run_request,
    "mutations": run_mutations,
    "connections": run_connections,
    "clients": run_clients,
    "consumers": run_consumers,
    "hostile": run_hostile,
    "cost": run_cost,
}


def main() -> None:
    parser = parser_of(__doc__, tuple(ROWS))
    parser.add_argument("--seconds", type=float, default=110.0, help="how long each figure is measured")
    arguments = parser.parse_args()
    table, names = Table(arguments), Names()
    for row in arguments.rows:
        with fresh_brokers(arguments, {}) as brokers:
            for broker in brokers:
                broker.start()
            ROWS[row](brokers, table, arguments.seconds, names)
            for broker in brokers:
                broker.stop()


if __name__ == "__main__":
    main()
