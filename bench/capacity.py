"""Measures what one node bears: thousands of connections, partitions, readers that stall and readers of cold data.

    python bench/capacity.py [--moldau COMMAND] [--kafka DIRECTORY] [--seconds 600] [--connections 2000]
                             [--partitions 1000] [--stalled 100] [--cold 20]

A producer with one request in flight (one record of 100 bytes, acks=all, a pause of 2 ms) is measured alone, and then
beside a crowd in another process:

stalled   ask for 50 MB of records and never read the answer
cold      read old partitions from the beginning to the end, 1 MB a fetch, again and again, while the files of these
          partitions are dropped from the page cache every second
produce   one connection in ten: one record a second
wait      all others: fetch what comes next of some partition, with a long poll of 5 s

Errors are error codes in answers and connections that the broker closed. Memory is that of the broker's process, when
the crowd is there and at the end. With Apache Kafka named by --kafka, it bears the same afterwards.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import selectors
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection as Pipe
from pathlib import Path

from side_by_side import HOST, Broker, create_topic, frame, makers, parser_of, say

from moldau.protocol import api_keys
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.messages.headers import ResponseHeader
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.messages.produce_response import ProduceResponse
from moldau.protocol.primitives import Reader
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

BUSY, COLD, MEASURED = "busy", "cold", "measured"
PRODUCE_VERSION, FETCH_VERSION = 9, 11
COLD_PARTITION_BYTES = 64 << 20
FILL_BATCH_BYTES = 512 << 10
ALONE_S = 30.0
LONG_POLL_MS = 5000


def batch_of(records: int, size: int) -> bytes:
    builder = BatchBuilder()
    now_ms = int(time.time() * 1000)
    for number in range(records):
        builder.append(now_ms, None, bytes((number + n) % 251 for n in range(size)))
    return builder.build()


def produce_frame(topic: str, partition: int, batch: bytes) -> bytes:
    rows = [PartitionProduceData(partition, MemoryRecords(batch, 0, len(batch)))]
    return frame(ProduceRequest(None, -1, 30_000, [TopicProduceData(topic, partition_data=rows)]), PRODUCE_VERSION)


def fetch_frame(topic: str, partition: int, offset: int, wait_ms: int, size: int) -> bytes:
    row = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size)
    topics = [FetchTopic(topic=topic, partitions=[row])]
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, max_bytes=size, session_epoch=-1, topics=topics)
    return frame(request, FETCH_VERSION)


def errors_of_produce(data: bytes) -> list[int]:
    reader = Reader(data)
    ResponseHeader.decode(reader, api_keys.response_header_version(0, PRODUCE_VERSION))
    answer = ProduceResponse.decode(reader, PRODUCE_VERSION)
    return [row.error_code for topic in answer.responses for row in topic.partition_responses if row.error_code]


# The crowd


class Guest:
    """One connection of the crowd: a request, its answer, the next request, perhaps after a pause."""

    def __init__(self, crowd: Crowd, port: int, receive_bytes: int = 0) -> None:
        self.crowd = crowd
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(120)
        self.socket.connect((HOST, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.due = 0.0

    def request(self) -> bytes:
        raise NotImplementedError

    def on_response(self, data: bytes) -> float:
        """Takes the answer; returns after how many seconds the next request is sent."""
        raise NotImplementedError

    def on_readable(self) -> None:
        piece = self.socket.recv(1 << 20)
        if not piece:
            raise ConnectionError("the broker closed the connection")
        self.buffer += piece
        while len(self.buffer) >= 4:
            size = struct.unpack_from(">i", self.buffer)[0]
            if len(self.buffer) < 4 + size:
                return
            data = bytes(self.buffer[4 : 4 + size])
            del self.buffer[: 4 + size]
            self.crowd.answers += 1
            self.crowd.send_after(self, self.on_response(data))


class Staller(Guest):
    """Asks for much, and does not read it."""

    def request(self) -> bytes:
        return fetch_frame(COLD, self.crowd.rng.randrange(self.crowd.cold_partitions), 0, 500, 50 << 20)

    def on_readable(self) -> None:
        pass


class Writer(Guest):
    def request(self) -> bytes:
        return produce_frame(BUSY, self.crowd.rng.randrange(self.crowd.partitions), self.crowd.record)

    def on_response(self, data: bytes) -> float:
        self.crowd.note(errors_of_produce(data))
        return 1.0


class Follower(Guest):
    """Reads a partition on from where it is; `topic` and how much is the matter of those below."""

    topic, size, wait_ms = BUSY, 1 << 20, LONG_POLL_MS

    def __init__(self, crowd: Crowd, port: int, partition: int) -> None:
        super().__init__(crowd, port)
        self.partition = partition
        self.offset = 0

    def request(self) -> bytes:
        return fetch_frame(self.topic, self.partition, self.offset, self.wait_ms, self.size)

    def on_response(self, data: bytes) -> float:
        reader = Reader(data)
        ResponseHeader.decode(reader, api_keys.response_header_version(1, FETCH_VERSION))
        row = FetchResponse.decode(reader, FETCH_VERSION).responses[0].partitions[0]
        self.crowd.note([row.error_code] if row.error_code else [])
        records = row.records
        if isinstance(records, MemoryRecords) and records.size > 0:
            self.offset = self.end_of(records)
            self.crowd.bytes_read[self.topic] += records.size
        elif self.topic == COLD:
            self.offset = 0
        return 0.0

    @staticmethod
    def end_of(records: MemoryRecords) -> int:
        """Behind the last whole batch."""
        at, offset = records.start, 0
        while at + 61 <= records.end:
            base, length = struct.unpack_from(">qi", records.data, at)
            if at + 12 + length > records.end:
                break
            offset = base + struct.unpack_from(">i", records.data, at + 23)[0] + 1
            at += 12 + length
        return offset


class ColdReader(Follower):
    topic, wait_ms = COLD, 500


class Crowd:
    def __init__(self, arguments: argparse.Namespace, port: int) -> None:
        self.rng = random.Random(7)
        self.partitions: int = arguments.partitions
        self.cold_partitions: int = max(1, arguments.cold)
        self.record = batch_of(1, 100)
        self.errors: Counter[str] = Counter()
        self.bytes_read: Counter[str] = Counter()
        self.answers = 0
        self._selector = selectors.DefaultSelector()
        self._waiting: list[Guest] = []
        stalled: int = arguments.stalled
        cold: int = arguments.cold
        others: int = arguments.connections - stalled - cold
        guests: list[Guest] = [Staller(self, port, 4096) for _ in range(stalled)]
        guests += [ColdReader(self, port, number % self.cold_partitions) for number in range(cold)]
        for number in range(others):
            guests.append(Writer(self, port) if number % 10 == 0 else Follower(self, port, number % self.partitions))
        for guest in guests:
            guest.socket.settimeout(120)
            self._selector.register(guest.socket, selectors.EVENT_READ, guest)
            self.send_after(guest, self.rng.random())
        self.guests = guests

    def note(self, codes: list[int]) -> None:
        for code in codes:
            self.errors[f"error code {code}"] += 1

    def send_after(self, guest: Guest, seconds: float) -> None:
        if seconds <= 0:
            guest.socket.sendall(guest.request())
        else:
            guest.due = time.monotonic() + seconds
            self._waiting.append(guest)

    def run(self, until: Callable[[], bool]) -> None:
        while not until():
            for key, _ in self._selector.select(0.05):
                guest: Guest = key.data
                if isinstance(guest, Staller):
                    self._selector.unregister(guest.socket)  # it has an answer, and leaves it there
                    continue
                try:
                    guest.on_readable()
                except OSError as error:
                    self.errors[str(error)] += 1
                    self._selector.unregister(guest.socket)
            now = time.monotonic()
            due = [guest for guest in self._waiting if guest.due <= now]
            self._waiting = [guest for guest in self._waiting if guest.due > now]
            for guest in due:
                self.send_after(guest, 0)


def run_crowd(arguments: argparse.Namespace, port: int, pipe: Pipe) -> None:
    crowd = Crowd(arguments, port)
    pipe.send("here")
    crowd.run(lambda: pipe.poll())
    pipe.send((dict(crowd.errors), crowd.answers, dict(crowd.bytes_read)))


# The measurement


class Evictor(threading.Thread):
    """Takes files of the cold topic out of the page cache, again and again."""

    def __init__(self, data: Path) -> None:
        super().__init__(daemon=True)
        self._data = data
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(1.0):
            evict(self._data)

    def end(self) -> None:
        self._over.set()
        self.join()


def evict(data: Path) -> None:
    for path in data.rglob(f"{COLD}-*/*.log"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def measure(broker: Broker, seconds: float, each: Callable[[], None] | None = None) -> list[float]:
    """The sorted latencies, in ms, of a producer with one request in flight."""
    request = produce_frame(MEASURED, 0, batch_of(1, 100))
    found = []
    deadline = time.monotonic() + seconds
    with broker.connect() as wire:
        while time.monotonic() < deadline:
            start = time.perf_counter()
            wire.socket.sendall(request)
            data = wire.answer()
            found.append((time.perf_counter() - start) * 1000)
            if errors_of_produce(data):
                raise SystemExit(f"the measured producer got {errors_of_produce(data)}")
            if each is not None:
                each()
            time.sleep(0.002)
    return sorted(found)


def fill(broker: Broker, partitions: int) -> None:
    batch = batch_of(FILL_BATCH_BYTES // 1000, 1000)
    with broker.connect() as wire:
        for partition in range(partitions):
            request = produce_frame(COLD, partition, batch)
            for _ in range(COLD_PARTITION_BYTES // len(batch)):
                wire.socket.sendall(request)
                if errors_of_produce(wire.answer()):
                    raise SystemExit("the cold topic could not be filled")


def shares(latencies: list[float]) -> str:
    at = [latencies[min(len(latencies) - 1, int(len(latencies) * share))] for share in (0.5, 0.99, 0.999)]
    return f"p50 {at[0]:.2f} ms, p99 {at[1]:.2f} ms, p99.9 {at[2]:.2f} ms, longest {latencies[-1]:.1f} ms"


def bear(broker: Broker, data: Path, arguments: argparse.Namespace) -> bool:
    seconds: float = arguments.seconds
    with broker.connect() as wire:
        create_topic(wire, BUSY, arguments.partitions)
        create_topic(wire, COLD, max(1, arguments.cold))
        create_topic(wire, MEASURED, 1)
    time.sleep(2)
    say(f"{broker.name}: filling {max(1, arguments.cold)} cold partitions")
    fill(broker, max(1, arguments.cold))
    os.sync()
    measure(broker, 5.0)
    alone = measure(broker, ALONE_S)
    say(f"{broker.name}: alone {shares(alone)}")
    pipe, other_end = multiprocessing.Pipe()
    crowd = multiprocessing.Process(target=run_crowd, args=(arguments, broker.port, other_end))
    crowd.start()
    pipe.recv()
    evictor = Evictor(data)
    evictor.start()
    time.sleep(10)
    memory: list[float] = [broker.memory_mb()]
    next_look = time.monotonic() + 10

    def look() -> None:
        nonlocal next_look
        if time.monotonic() >= next_look:
            next_look += 10
            memory.append(broker.memory_mb())

    beside = measure(broker, seconds, look)
    evictor.end()
    pipe.send("end")
    errors, answers, bytes_read = pipe.recv()
    crowd.join()
    third = max(1, len(memory) // 3)
    print(f"{broker.name}")
    print(f"  producer alone      {shares(alone)}")
    print(f"  producer beside     {shares(beside)}")
    print(f"  answers to others   {answers}, cold data read {bytes_read.get(COLD, 0) >> 20} MB")
    first, last = max(memory[:third]), max(memory[-third:])
    print(f"  memory              {memory[0]:.0f} MB at first, at most {first:.0f} MB in the first third of the time")
    print(f"                      and {last:.0f} MB in the last third")
    print(f"  errors              {sum(errors.values())} {errors or ''}", flush=True)
    return not errors


def main() -> int:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--partitions", type=int, default=1000)
    parser.add_argument("--stalled", type=int, default=100)
    parser.add_argument("--cold", type=int, default=20)
    parser.add_argument("--alone", action="store_true", help="Moldau only")
    arguments = parser.parse_args()
    well = True
    for make in makers(arguments, {"num.partitions": "1"})[: 1 if arguments.alone else None]:
        with make() as broker:
            broker.start()
            well = bear(broker, broker.nodes.data(1), arguments) and well
    return 0 if well else 1


if __name__ == "__main__":
    sys.exit(main())
