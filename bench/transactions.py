"""Measures transactions and idempotence: transactions a second, reading what is committed, what idempotence costs.

    python bench/transactions.py [--moldau COMMAND] [--kafka DIRECTORY] [--rows raw,clients,fetch,idempotence]
    [--markdown]

Every row runs against Moldau and, where its jars are (tools/fetch_kafka.sh, or --kafka DIRECTORY),
against a real Apache Kafka in the same run, with rounds that alternate; figures are medians of the rounds. CPU is what
the broker's process has used, from /proc. A JVM is warmed up first.

raw          transactions of version 2 over a plain socket, one request in flight: Produce with one record of 100 bytes
             for each partition, TxnOffsetCommit where offsets are part of it, EndTxn. What is answered with
             CONCURRENT_TRANSACTIONS, because markers are still being written, is sent again at once.
clients      the same through confluent-kafka (version 1) and through Moldau's own client (version 2).
fetch        one fetch after the other over a plain socket, read_committed, of a partition of about 200 MB in which
             every tenth transaction was aborted; beside it the same with read_uncommitted.
idempotence  Produce over a plain socket, five in flight, with and without producer id and sequence numbers; the load
             generator does the same for both, checksum included.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from side_by_side import Broker, Table, Wire, alternating, create_topic, frame, fresh_brokers, parser_of

from moldau.protocol import errors
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.metadata_request import MetadataRequest, MetadataRequestTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.records.crc import crc32c

GROUP, TRANSACTIONAL = 0, 1
PRODUCE_VERSION = 12
END_VERSION = 5
OFFSETS_VERSION = 5
FETCH_VERSION = 4
RECORD_BYTES = 100
FILL_TRANSACTIONS = 3000
FILL_RECORDS = 64
ABORT_EVERY = 10
WORKLOADS = (("1 partition", 1, False), ("10 partitions", 10, False), ("1 partition and offsets", 1, True))

# Where things are in a batch.
CRC_AT, ATTRIBUTES_AT, PRODUCER_AT, SEQUENCE_AT = 17, 21, 43, 53
# How long the part of a Produce answer is that is about one partition, when nothing went wrong.
PARTITION_ANSWER_BYTES = 33


def batch_of(records: int, size: int, producer_id: int = -1, transactional: bool = False) -> bytes:
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for number in range(records):
        builder.append(now_ms, None, bytes((number + n) % 251 for n in range(size)))
    epoch, sequence = (0, 0) if producer_id >= 0 else (-1, -1)
    return builder.build(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )


def produce_request(topic: str, batch: bytes, partitions: int = 1, transactional_id: str | None = None) -> bytes:
    rows = [PartitionProduceData(index, MemoryRecords(batch, 0, len(batch))) for index in range(partitions)]
    request = ProduceRequest(transactional_id, -1, 30_000, [TopicProduceData(topic, partition_data=rows)])
    return frame(request, PRODUCE_VERSION)


class Answers:
    """Frames from a socket, without a copy of more than they are."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._buffer = bytearray(4 << 20)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0

    def next(self) -> memoryview:
        """The next answer, good until the one after it is asked for."""
        self._need(4)
        size: int = struct.unpack_from(">i", self._buffer, self._start)[0]
        self._need(4 + size)
        found = self._view[self._start + 4 : self._start + 4 + size]
        self._start += 4 + size
        return found

    def _need(self, size: int) -> None:
        if self._end - self._start >= size:
            return
        if self._start:
            rest = bytes(self._view[self._start : self._end])
            self._view[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        while self._end - self._start < size:
            got = self._socket.recv_into(self._view[self._end :])
            if got == 0:
                raise ConnectionError("the broker closed the connection")
            self._end += got


class Transactor:
    """A transactional producer made of frames that are patched: id, epoch and checksum."""

    def __init__(self, broker: Broker, topic: str, partitions: int, offsets: bool, batch: bytes | None = None) -> None:
        self.name = f"bench {topic} {partitions} {offsets} {time.time()}"
        wire = broker.connect()
        find_coordinator(wire, self.name, TRANSACTIONAL)
        find_coordinator(wire, "bench", GROUP)
        answer: Any = ask_until(wire, InitProducerIdRequest(self.name, 60_000), 5)
        self._id, self._epoch = answer.producer_id, answer.producer_epoch
        self._socket = wire.socket
        self._answers = Answers(wire.socket)
        self._batch = batch or batch_of(1, RECORD_BYTES, 0, transactional=True)
        self._partitions = partitions
        self._topic = topic
        self._produce = bytearray(produce_request(topic, self._batch, partitions, self.name))
        self._batches = find_all(self._produce, self._batch[:CRC_AT])
        self._commit = bytearray(frame(EndTxnRequest(self.name, 0, 0, True), END_VERSION))
        self._abort = bytearray(frame(EndTxnRequest(self.name, 0, 0, False), END_VERSION))
        marked = 0x1122334455667788
        row = TxnOffsetCommitRequestPartition(0, 5, -1, "")
        topics = [TxnOffsetCommitRequestTopic(topic, [row])]
        request = TxnOffsetCommitRequest(self.name, "bench", marked, 0, topics=topics)
        self._offsets = bytearray(frame(request, OFFSETS_VERSION)) if offsets else bytearray()
        self._offsets_id_at = self._offsets.find(marked.to_bytes(8, "big"))
        self.again = 0

    def run(self, commits: bool = True) -> None:
        """One transaction."""
        self._patch()
        self._send(self._produce, self._produce_error)
        if self._offsets:
            self._send(self._offsets, self._offsets_error)
        self._send(self._commit if commits else self._abort, end_error)
        self._id, self._epoch = struct.unpack(">qh", self._answer[-11:-1])

    def _patch(self) -> None:
        who = struct.pack(">qh", self._id, self._epoch)
        self._commit[-12:-2] = self._abort[-12:-2] = who
        if self._offsets:
            at = self._offsets_id_at
            self._offsets[at : at + 10] = who
        data, size, first = self._produce, len(self._batch), self._batches[0]
        for at in self._batches:
            data[at + PRODUCER_AT : at + SEQUENCE_AT] = who
        checksum = crc32c(bytes(data[first + ATTRIBUTES_AT : first + size])).to_bytes(4, "big")
        for at in self._batches:
            data[at + CRC_AT : at + ATTRIBUTES_AT] = checksum

    def _send(self, data: bytearray, error_of: Callable[[memoryview], int]) -> None:
        while True:
            self._socket.sendall(data)
            self._answer = self._answers.next()
            error = error_of(self._answer)
            if error == 0:
                return
            if error != errors.CONCURRENT_TRANSACTIONS:
                raise RuntimeError(f"{self.name}: {errors.error_name(error)}")
            self.again += 1

    def _produce_error(self, answer: memoryview) -> int:
        # Correlation, tags, one topic, its name, the partitions; then index and error of each.
        at = 4 + 1 + 1 + 1 + len(self._topic) + 1 + 4
        for number in range(self._partitions):
            error: int = struct.unpack_from(">h", answer, at + number * PARTITION_ANSWER_BYTES)[0]
            if error:
                return error
        return 0

    def _offsets_error(self, answer: memoryview) -> int:
        error: int = struct.unpack_from(">h", answer, len(answer) - 5)[0]
        return error


def end_error(answer: memoryview) -> int:
    error: int = struct.unpack_from(">h", answer, len(answer) - 13)[0]
    return error


def find_all(data: bytearray, part: bytes) -> list[int]:
    found, at = [], data.find(part)
    while at >= 0:
        found.append(at)
        at = data.find(part, at + len(part))
    return found


def ask_until(wire: Wire, request: Any, version: int) -> Any:
    """Asks until there is no error any more: topics of coordinators are made when they are first needed."""
    deadline = time.monotonic() + 60
    while True:
        answer: Any = wire.ask(request, version)
        code = answer.coordinators[0].error_code if hasattr(answer, "coordinators") else answer.error_code
        if code == 0:
            return answer
        if time.monotonic() > deadline:
            raise RuntimeError(f"{type(request).__name__}: {errors.error_name(code)}")
        time.sleep(0.05)


def find_coordinator(wire: Wire, key: str, kind: int) -> None:
    ask_until(wire, FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4)


def make_topic(broker: Broker, topic: str, partitions: int) -> None:
    wire = broker.connect()
    create_topic(wire, topic, partitions)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        answer: Any = wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 9)
        rows = answer.topics[0].partitions
        if len(rows) == partitions and all(row.leader_id >= 0 and row.error_code == 0 for row in rows):
            return
        time.sleep(0.05)
    raise RuntimeError(f"{topic} has no leaders")


# Transactions a second


def measured(broker: Broker, seconds: float, run: Callable[[], None]) -> tuple[float, float]:
    """Transactions a second, and microseconds of the broker's CPU for each."""
    for _ in range(20):
        run()
    count, cpu, start = 0, broker.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        run()
        count += 1
    took = time.perf_counter() - start
    return count / took, (broker.cpu_seconds() - cpu) / count * 1e6


def raw_transactions(broker: Broker, partitions: int, offsets: bool, seconds: float) -> tuple[float, float]:
    return measured(broker, seconds, Transactor(broker, f"t{partitions}", partitions, offsets).run)


def confluent_transactions(broker: Broker, partitions: int, offsets: bool, seconds: float) -> tuple[float, float]:
    import confluent_kafka

    topic = f"t{partitions}"
    bootstrap = f"127.0.0.1:{broker.port}"
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": f"confluent {time.time()}", "linger.ms": 0}
    )
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "bench"})
    consumer.assign([confluent_kafka.TopicPartition(topic, 0)])
    group = consumer.consumer_group_metadata()
    producer.init_transactions(30)
    value, rows = b"." * RECORD_BYTES, [confluent_kafka.TopicPartition(topic, 0, 5)]

    def run() -> None:
        producer.begin_transaction()
        for partition in range(partitions):
            producer.produce(topic, value, partition=partition)
        if offsets:
            producer.send_offsets_to_transaction(rows, group, 30)
        producer.commit_transaction(30)

    try:
        return measured(broker, seconds, run)
    finally:
        consumer.close()


def own_transactions(broker: Broker, partitions: int, offsets: bool, seconds: float) -> tuple[float, float]:
    from moldau.client import ConsumerGroupMetadata, Producer, TopicPartition

    topic = f"t{partitions}"
    group, rows = ConsumerGroupMetadata("bench"), {TopicPartition(topic, 0): 5}
    with Producer(f"127.0.0.1:{broker.port}", transactional_id=f"moldau {time.time()}") as producer:
        producer.init_transactions()
        value = b"." * RECORD_BYTES

        def run() -> None:
            producer.begin_transaction()
            for partition in range(partitions):
                producer.send(topic, value, partition=partition)
            if offsets:
                producer.send_offsets_to_transaction(rows, group)
            producer.commit_transaction()

        return measured(broker, seconds, run)


def run_transactions(
    brokers: list[Broker], table: Table, rounds: int, seconds: float, drivers: dict[str, Callable[..., Any]]
) -> None:
    for broker in brokers:
        broker.start()
        for partitions in (1, 10):
            make_topic(broker, f"t{partitions}", partitions)
        for driver in drivers.values():
            for _, partitions, offsets in WORKLOADS:
                driver(broker, partitions, offsets, seconds if broker.name == "Moldau" else 3 * seconds)
    for name, driver in drivers.items():
        for label, partitions, offsets in WORKLOADS:

            def work(broker: Broker, driver: Any = driver, n: int = partitions, o: bool = offsets) -> tuple[float, ...]:
                found: tuple[float, ...] = driver(broker, n, o, seconds)
                return found

            rate, cpu = alternating(brokers, rounds, work)
            table.add(f"{name}, {label}: transactions/s", rate, True, "{:,.0f}")
            table.add(f"{name}, {label}: CPU µs each", cpu, False, "{:,.0f}")
    for broker in brokers:
        broker.stop()


# Reading what is committed


def fill(broker: Broker, topic: str) -> None:
    make_topic(broker, topic, 1)
    transactor = Transactor(broker, topic, 1, False, batch_of(FILL_RECORDS, 1000, 0, transactional=True))
    for number in range(FILL_TRANSACTIONS):
        transactor.run(commits=number % ABORT_EVERY != ABORT_EVERY - 1)


def fetch_all(broker: Broker, topic: str, isolation: int, size: int) -> tuple[float, float, int]:
    """Megabytes a second from the beginning to the end, CPU µs for each megabyte, aborted transactions named."""
    wire = broker.connect()
    answers = Answers(wire.socket)
    position = got = aborted = 0
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    name = struct.pack(">h", len(topic)) + topic.encode()
    while True:
        body = struct.pack(">iiiibi", -1, 10, 1, size, isolation, 1) + name + struct.pack(">iiqi", 1, 0, position, size)
        head = struct.pack(">hhih5s", 1, FETCH_VERSION, 7, 5, b"bench")
        wire.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        answer = answers.next()
        at = 12 + len(name) + 4 + 4
        (error,) = struct.unpack_from(">h", answer, at)
        if error:
            raise RuntimeError(errors.error_name(error))
        (count,) = struct.unpack_from(">i", answer, at + 18)
        aborted += max(count, 0)
        at += 22 + 16 * max(count, 0)
        (length,) = struct.unpack_from(">i", answer, at)
        if length <= 0:
            break
        got += length
        position = end_of(answer, at + 4, at + 4 + length)
    took = time.perf_counter() - start
    return got / took / 1e6, (broker.cpu_seconds() - cpu) / got * 1e12, aborted


def end_of(answer: memoryview, at: int, end: int) -> int:
    """The offset behind the last whole batch."""
    position = -1
    while at + 61 <= end:
        base, length = struct.unpack_from(">qi", answer, at)
        if at + 12 + length > end:
            break
        position = base + struct.unpack_from(">i", answer, at + 23)[0] + 1
        at += 12 + length
    if position < 0:
        raise RuntimeError("a fetch without a whole batch")
    return position


def run_fetch(brokers: list[Broker], table: Table, rounds: int) -> None:
    for broker in brokers:
        broker.start()
        fill(broker, "mixed")
        for _ in range(1 if broker.name == "Moldau" else 8):
            _, _, aborted = fetch_all(broker, "mixed", 1, 1 << 20)
        if aborted < FILL_TRANSACTIONS // ABORT_EVERY:
            raise RuntimeError(f"{broker.name} named {aborted} aborted transactions only")
    for size, label in ((1 << 20, "1 MB"), (64 << 10, "64 KB")):
        for isolation, what in ((1, "read_committed, 10 % aborted"), (0, "read_uncommitted, the same")):

            def work(broker: Broker, isolation: int = isolation, size: int = size) -> tuple[float, ...]:
                return fetch_all(broker, "mixed", isolation, size)[:2]

            rate, cpu = alternating(brokers, rounds, work)
            table.add(f"fetches of {label}, {what}: MB/s", rate, True, "{:,.0f}")
            table.add(f"fetches of {label}, {what}: CPU µs per MB", cpu, False, "{:,.0f}")
    for broker in brokers:
        broker.stop()


# Idempotence


class Blaster:
    """Produces as fast as it is answered, five requests in flight; each has its own sequence number, or none."""

    def __init__(self, broker: Broker, topic: str, records: int, size: int, idempotent: bool) -> None:
        wire = broker.connect()
        self._topic = topic
        self._socket = wire.socket
        self._answers = Answers(wire.socket)
        producer_id = -1
        if idempotent:
            answer: Any = ask_until(wire, InitProducerIdRequest(None, 60_000), 5)
            producer_id = answer.producer_id
        self._idempotent = idempotent
        self._records = records
        batch = batch_of(records, size, producer_id)
        self._frame = bytearray(produce_request(topic, batch))
        self._at = self._frame.find(batch[:CRC_AT])
        self._end = self._at + len(batch)
        self._sequence = 0

    def send(self) -> None:
        at, data = self._at, self._frame
        sequence = self._sequence if self._idempotent else -1
        data[at + SEQUENCE_AT : at + SEQUENCE_AT + 4] = struct.pack(">i", sequence)
        checksum = crc32c(bytes(memoryview(data)[at + ATTRIBUTES_AT : self._end]))
        data[at + CRC_AT : at + ATTRIBUTES_AT] = checksum.to_bytes(4, "big")
        self._sequence = (self._sequence + self._records) & 0x7FFFFFFF
        self._socket.sendall(data)

    def receive(self) -> None:
        answer = self._answers.next()
        (error,) = struct.unpack_from(">h", answer, 4 + 1 + 1 + 1 + len(self._topic) + 1 + 4)
        if error:
            raise RuntimeError(errors.error_name(error))

    def run(self, broker: Broker, seconds: float) -> tuple[float, float]:
        """Requests a second, and microseconds of the broker's CPU for each."""
        self.send()
        self.receive()  # the first of a producer goes alone, as clients do it
        sent = got = 0
        cpu, start = broker.cpu_seconds(), time.perf_counter()
        end = start + seconds
        while True:
            while sent - got < 5 and time.perf_counter() < end:
                self.send()
                sent += 1
            if sent == got:
                break
            self.receive()
            got += 1
        took = time.perf_counter() - start
        self._socket.close()
        return got / took, (broker.cpu_seconds() - cpu) / got * 1e6


def run_idempotence(brokers: list[Broker], table: Table, rounds: int, seconds: float) -> None:
    loads = (("1 record of 100 bytes", "one", 1, 100), ("16 records of 1,000 bytes", "many", 16, 1000))
    for broker in brokers:
        broker.start()
        for _, topic, records, size in loads:
            make_topic(broker, topic, 1)
            for idempotent in (False, True):
                Blaster(broker, topic, records, size, idempotent).run(broker, seconds)
    for label, topic, records, size in loads:

        def work(broker: Broker, t: str = topic, r: int = records, s: int = size) -> tuple[float, ...]:
            plain = Blaster(broker, t, r, s, False).run(broker, seconds)
            return (*plain, *Blaster(broker, t, r, s, True).run(broker, seconds))

        # Plain and idempotent alternate as well; more rounds, because small differences are looked for.
        plain_rate, plain_cpu, rate, cpu = alternating(brokers, rounds + 2, work)
        table.add(f"produce {label}, plain: requests/s", plain_rate, True, "{:,.0f}")
        table.add(f"produce {label}, idempotent: requests/s", rate, True, "{:,.0f}")
        table.add(f"produce {label}, plain: CPU µs each", plain_cpu, False, "{:.1f}")
        table.add(f"produce {label}, idempotent: CPU µs each", cpu, False, "{:.1f}")
        costs = [100 * (with_ids / without - 1) for with_ids, without in zip(cpu, plain_cpu, strict=True)]
        table.add(f"produce {label}: idempotence costs, % of CPU", costs, False, "{:+.1f}")
    for broker in brokers:
        broker.stop()


def main() -> None:
    parser = parser_of(__doc__, ("raw", "clients", "fetch", "idempotence"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    rounds, seconds = arguments.rounds, arguments.seconds
    clients = {"confluent-kafka": confluent_transactions, "Moldau's client": own_transactions}
    table = Table(arguments)
    for row in arguments.rows:
        with fresh_brokers(arguments, {}) as brokers:
            if row == "raw":
                run_transactions(brokers, table, rounds, seconds, {"plain socket": raw_transactions})
            elif row == "clients":
                run_transactions(brokers, table, rounds, seconds, clients)
            elif row == "fetch":
                run_fetch(brokers, table, rounds)
            else:
                run_idempotence(brokers, table, rounds, seconds)


if __name__ == "__main__":
    main()
