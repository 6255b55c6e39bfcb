"""Measures a producer while others read old data from a slow disk: nobody should wait for somebody else's reads.

    sudo python bench/cold_reads.py [--moldau COMMAND] [--kafka DIRECTORY] [--rates 100,20] [--readers 1] [--seconds 8]

A topic is filled and dropped from the page cache, the broker's process may read so many MB a second from then on (a
cgroup of this machine: `io.max` of version 2 or `blkio.throttle` of version 1), and readers fetch the topic from its
beginning, each in a process of its own. Meanwhile one client sends one record at a time to another topic and takes the
time of each answer. The same is measured just before, without readers, and with readers that get as much from memory:
they take processors from the producer as the others do, and nothing else. Moldau first, then, where its
jars are (tools/fetch_kafka.sh, or --kafka DIRECTORY), Apache Kafka.

Needs root, a disk that is a block device, and 2 GB on it.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import struct
import time
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from side_by_side import Broker, Wire, create_topic, frame, makers, parser_of, say

from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder

PRODUCE_VERSION, FETCH_VERSION = 8, 11
BATCH_BYTES = 900_000
FETCH_BYTES_MAX = 10_000_000
# A fetch response of this version with one partition, as far as it stands before the records: correlation id, throttle
# time, error, session, topics, length of the name; partitions, index, error, high watermark, last stable offset, log
# start offset, aborted transactions (none), preferred replica, size of the records.
FETCH_HEAD = struct.Struct(">iihiih")
FETCH_PARTITION_HEAD = struct.Struct(">iihqqqiii")
# Of a batch: base offset, length, ..., last offset delta.
BATCH_HEAD = struct.Struct(">qi11xi")
BATCH_LENGTH_END = 12
PAUSE_S = 0.005
SETTINGS = {"num.partitions": "1", "log.retention.hours": "-1"}


# The throttle


def disk_of(directory: Path) -> str:
    """The numbers of the whole disk that holds a directory."""
    number = os.stat(directory).st_dev
    device = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}").resolve()
    if not device.exists():
        raise SystemExit(f"{directory} is not on a block device, so its reads cannot be slowed down")
    if (device / "partition").exists():
        device = device.parent
    return (device / "dev").read_text().strip()


@contextlib.contextmanager
def throttled(pid: int, disk: str, bytes_per_second: int) -> Iterator[None]:
    """While inside, the process may read so many bytes a second from the disk."""
    old, new = Path("/sys/fs/cgroup/blkio"), Path("/sys/fs/cgroup")
    if old.is_dir():
        group, limit, value = old, "blkio.throttle.read_bps_device", f"{disk} {bytes_per_second}"
    else:
        group, limit, value = new, "io.max", f"{disk} rbps={bytes_per_second}"
        with contextlib.suppress(OSError):
            (new / "cgroup.subtree_control").write_text("+io")
    home = group / next(
        (
            line.split(":", 2)[2].strip().lstrip("/")
            for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
            if ("blkio" in line.split(":")[1] if old.is_dir() else line.startswith("0:"))
        ),
        "",
    )
    slow = group / f"moldau-bench-{os.getpid()}"
    try:
        slow.mkdir(exist_ok=True)
        (slow / limit).write_text(value)
        (slow / "cgroup.procs").write_text(str(pid))
    except OSError as error:
        raise SystemExit(f"this machine does not let its disks be slowed down: {error}") from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            (home / "cgroup.procs").write_text(str(pid))
        time.sleep(0.2)
        with contextlib.suppress(OSError):
            slow.rmdir()


def warm(directory: Path, topic: str) -> None:
    for file in directory.rglob(f"{topic}-*/*.log"):
        with open(file, "rb") as opened:
            while opened.read(1 << 24):
                pass


def forget(directory: Path, topic: str) -> int:
    """Drops the files of a topic from the page cache; returns their size."""
    size = 0
    for file in directory.rglob(f"{topic}-*/*"):
        descriptor = os.open(file, os.O_RDWR)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        size += os.fstat(descriptor).st_size
        os.close(descriptor)
    return size


# Clients


def produce(wire: Wire, request: bytes) -> None:
    wire.socket.sendall(request)
    wire.answer()


def produce_request(topic: str, value: bytes, count: int) -> bytes:
    builder = BatchBuilder()
    for _ in range(count):
        builder.append(int(time.time() * 1000), None, value)
    batch = builder.build()
    data = PartitionProduceData(index=0, records=MemoryRecords(batch))
    topics = [TopicProduceData(name=topic, partition_data=[data])]
    return frame(ProduceRequest(acks=1, timeout_ms=30_000, topic_data=topics), PRODUCE_VERSION)


def fill(wire: Wire, topic: str, megabytes: int) -> None:
    request = produce_request(topic, os.urandom(BATCH_BYTES // 9), 9)
    for _ in range(megabytes * 1_000_000 // BATCH_BYTES):
        produce(wire, request)


def latencies(wire: Wire, request: bytes, seconds: float) -> list[float]:
    """Milliseconds of each request, sorted."""
    found = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        produce(wire, request)
        found.append((time.perf_counter() - start) * 1000)
        time.sleep(PAUSE_S)
    return sorted(found)


def read_all(port: int, topic: str, received: Synchronized[int], bytes_per_second: int) -> None:
    """Fetches from the beginning to the end, over and over, no faster than told; counts bytes. It looks at as little
    as it can, into memory that it has already: what it takes of the processors the producer has to wait for."""
    buffer = memoryview(bytearray(FETCH_BYTES_MAX + BATCH_BYTES + 1024))
    with Wire(port) as wire:
        offset, total, start = 0, 0, time.monotonic()
        while True:
            partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=FETCH_BYTES_MAX)
            topics = [FetchTopic(topic=topic, partitions=[partition])]
            request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=52_428_800, topics=topics)
            wire.socket.sendall(frame(request, FETCH_VERSION))
            size = wire.answer_into(buffer)
            with received.get_lock():
                received.value += size
            offset = next_offset(buffer[:size], topic)
            total += size
            if bytes_per_second > 0:
                time.sleep(max(0.0, start + total / bytes_per_second - time.monotonic()))


def next_offset(answer: memoryview, topic: str) -> int:
    """The offset behind the last whole batch of the only partition; 0, the beginning, if there is none."""
    position = FETCH_HEAD.size + len(topic) + FETCH_PARTITION_HEAD.size
    offset = 0
    while position + BATCH_HEAD.size <= len(answer):
        base_offset, length, last_offset_delta = BATCH_HEAD.unpack_from(answer, position)
        position += BATCH_LENGTH_END + length
        if position <= len(answer):
            offset = base_offset + last_offset_delta + 1
    return offset


# Measuring


class Outcome:
    def __init__(
        self, alone: list[float], warm: list[float], beside: list[float], read_bytes_per_second: float
    ) -> None:
        self.alone = alone
        self.warm = warm
        self.beside = beside
        self.read_bytes_per_second = read_bytes_per_second


def measure(broker: Broker, directory: Path, megabytes_per_second: int, readers: int, seconds: float) -> Outcome:
    request = produce_request("live", bytes(100), 1)
    rate = megabytes_per_second * 1_000_000
    with broker.connect() as wire:
        latencies(wire, request, 1)
        alone = latencies(wire, request, seconds)
        warm(directory, "old")
        from_memory = beside_readers(broker, wire, request, readers, rate // readers, seconds)[0]
        with throttled(broker.pid, disk_of(directory), rate):
            forget(directory, "old")
            from_disk, read_bytes_per_second = beside_readers(broker, wire, request, readers, 0, seconds)
    return Outcome(alone, from_memory, from_disk, read_bytes_per_second)


def beside_readers(
    broker: Broker, wire: Wire, request: bytes, readers: int, bytes_per_second: int, seconds: float
) -> tuple[list[float], float]:
    """Milliseconds of the producer's requests, and how many bytes a second the readers got."""
    received: Synchronized[int] = multiprocessing.Value("q", 0)
    arguments = (broker.port, "old", received, bytes_per_second)
    children = [multiprocessing.Process(target=read_all, args=arguments, daemon=True) for _ in range(readers)]
    for child in children:
        child.start()
    time.sleep(0.3)
    before, start = received.value, time.monotonic()
    found = latencies(wire, request, seconds)
    rate = (received.value - before) / (time.monotonic() - start)
    for child in children:
        child.terminate()
        child.join()
    return found, rate


def percentile(values: list[float], share: float) -> float:
    return values[min(len(values) - 1, int(len(values) * share))]


def show(broker: Broker, rate: int, outcome: Outcome) -> None:
    cells = [f"{broker.name:<14}", f"{rate:>5} MB/s"]
    for values in (outcome.alone, outcome.warm, outcome.beside):
        cells += [f"{percentile(values, 0.5):>10.2f}", f"{percentile(values, 0.99):>9.2f}"]
    cells += [f"{outcome.beside[-1]:>9.1f}", f"{outcome.read_bytes_per_second / 1e6:>11.1f}"]
    print("".join(cells), flush=True)


def main() -> None:
    parser = parser_of(__doc__)
    parser.add_argument("--rates", default="100,20", help="MB a second that the disk gives")
    parser.add_argument("--readers", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--only-moldau", action="store_true")
    arguments = parser.parse_args()
    rates = [int(rate) for rate in arguments.rates.split(",")]
    megabytes = int(max(rates) * (arguments.seconds + 3))
    print(f"{'ms':<14}{'disk':>10}{'alone p50':>10}{'p99':>9}{'warm p50':>10}{'p99':>9}{'cold p50':>10}", end="")
    print(f"{'p99':>9}{'max':>9}{'read MB/s':>11}")
    chosen = makers(arguments, SETTINGS)
    for make in chosen[:1] if arguments.only_moldau else chosen:
        with make() as broker:
            broker.start()
            directory = broker.output_file.parent
            with broker.connect() as wire:
                create_topic(wire, "old", 1)
                create_topic(wire, "live", 1)
                time.sleep(2)
                say(f"writing {megabytes} MB to {broker.name}")
                fill(wire, "old", megabytes)
                latencies(wire, produce_request("live", bytes(100), 1), 3)  # a JVM is measured when it is warm
            for rate in rates:
                show(broker, rate, measure(broker, directory, rate, arguments.readers, arguments.seconds))


if __name__ == "__main__":
    main()
