"""Measures a small client alone and beside giants: nobody should hold up the others, quotas or not.

    python bench/fairness.py [--moldau COMMAND] [--kafka DIRECTORY] [--seconds 8] [--giants 1] [--only-moldau]

One client sends one record at a time and takes the time of each answer: alone, beside producers that send requests of
1 MB without waiting for answers, and beside consumers that fetch 50 MB at a time from memory. Each giant is a process
of its own; it takes processors from the small client as well as turns of the broker, so the machine should have some.
"""

from __future__ import annotations

import multiprocessing
import os
import struct
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized

from side_by_side import Broker, Wire, create_topic, frame, makers, parser_of, say

from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

PRODUCE_VERSION, FETCH_VERSION = 8, 11
GIANT_BYTES = 1_000_000
FETCH_BYTES = 50_000_000
IN_FLIGHT = 32
STORED_MB = 200
PAUSE_S = 0.002
SETTINGS = {"num.partitions": "1", "log.retention.bytes": "2000000000"}


def produce_request(topic: str, value: bytes, count: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(int(time.time() * 1000), None, value)
    data = PartitionProduceData(index=0, records=MemoryRecords(builder.build()))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)


def giant_request(topic: str) -> bytes:
    return produce_request(topic, os.urandom(GIANT_BYTES // 10), 9)


def produce_on(port: int, moved: Synchronized[int]) -> None:
    """Sends giant requests with many in flight, for ever."""
    request = giant_request("giant")
    with Wire(port) as wire:
        for _ in range(IN_FLIGHT):
            wire.socket.sendall(request)
        while True:
            wire.answer()
            moved.value += len(request)
            wire.socket.sendall(request)


def fetch_on(port: int, moved: Synchronized[int]) -> None:
    """Fetches the same 50 MB over and over, and looks at none of it."""
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=FETCH_BYTES)
    topics = [FetchTopic(topic="stored", partitions=[partition])]
    request = frame(FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=topics), FETCH_VERSION)
    buffer = bytearray(1 << 20)
    with Wire(port) as wire:
        while True:
            wire.socket.sendall(request)
            size = struct.unpack(">i", wire._exactly(4))[0]
            moved.value += size
            while size > 0:
                size -= wire.socket.recv_into(buffer, min(size, len(buffer)))


def latencies(wire: Wire, seconds: float) -> list[float]:
    """Milliseconds of each request, sorted."""
    request = produce_request("small", bytes(100), 1)
    found = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        wire.socket.sendall(request)
        wire.answer()
        found.append((time.perf_counter() - start) * 1000)
        time.sleep(PAUSE_S)
    return sorted(found)


Giant = Callable[[int, "Synchronized[int]"], None]


def beside(broker: Broker, wire: Wire, giant: Giant | None, count: int, seconds: float) -> tuple[list[float], float]:
    """The small client's times, and how many MB a second the giants moved."""
    moved: Synchronized[int] = multiprocessing.Value("q", 0, lock=False)  # type: ignore[assignment]
    children = [
        multiprocessing.Process(target=giant, args=(broker.port, moved), daemon=True)
        for _ in range(count if giant is not None else 0)
    ]
    for child in children:
        child.start()
    time.sleep(1.0)
    before, start = moved.value, time.monotonic()
    found = latencies(wire, seconds)
    rate = (moved.value - before) / (time.monotonic() - start)
    for child in children:
        child.terminate()
        child.join()
    return found, rate / 1e6


def percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def show(name: str, what: str, values: list[float], rate: float) -> None:
    cells = [f"{name:<14}", f"{what:<22}", f"{percentile(values, 0.5):>9.2f}", f"{percentile(values, 0.99):>9.2f}"]
    cells += [f"{values[-1]:>9.1f}", f"{rate:>12.0f}"]
    print("".join(cells), flush=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--giants", type=int, default=1)
    parser.add_argument("--only-moldau", action="store_true")
    arguments = parser.parse_args()
    print(f"{'ms':<14}{'the small client':<22}{'p50':>9}{'p99':>9}{'max':>9}{'giants MB/s':>12}")
    chosen = makers(arguments, SETTINGS)
    for make in chosen[:1] if arguments.only_moldau else chosen:
        with make() as broker:
            broker.start()
            with broker.connect() as wire:
                for topic in ("small", "giant", "stored"):
                    create_topic(wire, topic, 1)
                time.sleep(2)
                say(f"writing {STORED_MB} MB to {broker.name}")
                request = giant_request("stored")
                for _ in range(STORED_MB):
                    wire.socket.sendall(request)
                    wire.answer()
                latencies(wire, 3)  # a JVM is measured when it is warm
                rows: list[tuple[str, Giant | None]] = [
                    ("alone", None),
                    ("beside producers", produce_on),
                    ("beside consumers", fetch_on),
                ]
                for what, giant in rows:
                    show(broker.name, what, *beside(broker, wire, giant, arguments.giants, arguments.seconds))


if __name__ == "__main__":
    main()
