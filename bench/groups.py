"""Measures the group coordinator: commits a second, CPU per commit, loading a million offsets, memory of many groups.

    python bench/groups.py [--moldau COMMAND] [--kafka PATH] [--rows commit,memory,load] [--offsets 1000000]

Every row runs against Moldau and, where `../shared/oracle/kafka` (or the script named with --kafka) can start one,
against a real Apache Kafka in the same run: both get the same requests from the same plain sockets, with rounds that
alternate between the two. CPU is what the broker's process has used, from /proc. Figures are medians of the rounds; a
JVM is warmed up first.
"""

from __future__ import annotations

import argparse
import os
import selectors
import shlex
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src"))  # where moldau is not installed

from moldau.coordinator.routing import partition_for  # noqa: E402
from moldau.protocol import api_keys  # noqa: E402
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest  # noqa: E402
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest  # noqa: E402
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader  # noqa: E402
from moldau.protocol.messages.offset_commit_request import (  # noqa: E402
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import (  # noqa: E402
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from moldau.protocol.primitives import Message, Reader, Writer  # noqa: E402

TOPIC = "bench"
PARTITIONS = 100
TICKS = os.sysconf("SC_CLK_TCK")
COMMIT_VERSION = 9
FETCH_VERSION = 9
WARM_UP_SECONDS = 16.0
CONSUMERS = 50


# The wire


def frame(request: Message, version: int) -> bytes:
    key = type(request).API_KEY
    writer = Writer()
    RequestHeader(key, version, 7, "bench").encode(writer, api_keys.request_header_version(key, version))
    request.encode(writer, version)
    data = writer.to_bytes()
    return struct.pack(">i", len(data)) + data


class Wire:
    """One connection: single questions, and many requests with a number of them in flight."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.settimeout(120)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._rest = b""

    def ask(self, request: Message, version: int) -> Message:
        key = type(request).API_KEY
        self.socket.sendall(frame(request, version))
        reader = Reader(self._next_frame())
        ResponseHeader.decode(reader, api_keys.response_header_version(key, version))
        return api_keys.response_class(key).decode(reader, version)

    def _next_frame(self) -> bytes:
        while len(self._rest) < 4 or len(self._rest) < 4 + struct.unpack(">i", self._rest[:4])[0]:
            self._receive()
        size = 4 + struct.unpack(">i", self._rest[:4])[0]
        found, self._rest = self._rest[4:size], self._rest[size:]
        return found

    def _receive(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._rest += data

    def pipeline(self, frames: list[bytes], count: int, window: int, error_at: int) -> None:
        """Sends `count` requests, taken from `frames` in turn. `error_at` is the position of the error code that each
        answer must have as 0, counted from the end."""
        sent = answered = 0
        while answered < count:
            room = min(window - (sent - answered), count - sent)
            if room > 0:
                self.socket.sendall(b"".join([frames[(sent + n) % len(frames)] for n in range(room)]))
                sent += room
            self._receive()
            answered += self._take_answers(error_at)

    def _take_answers(self, error_at: int) -> int:
        data, position, count = self._rest, 0, 0
        while len(data) - position >= 4:
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            if end > len(data):
                break
            code = int.from_bytes(data[end - error_at : end - error_at + 2], "big")
            if code:
                raise RuntimeError(f"a commit failed with error {code}")
            position = end
            count += 1
        self._rest = data[position:]
        return count


# Behind the last error code of an OffsetCommit response v8 and later: three counts of tagged fields.
COMMIT_ERROR_AT = 5


def commit_request(group: str, partitions: range, offset: int) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(index, offset, 0, "") for index in partitions]
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=rows)])


# Brokers


class Broker:
    """A broker process; `cpu` and `memory` are those of the process."""

    name = ""
    port = 0
    pid = 0

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def remove(self) -> None:
        raise NotImplementedError

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_mb(self) -> float:
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def connect(self) -> Wire:
        deadline = time.monotonic() + 120
        while True:
            try:
                return Wire(self.port)
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def prepare(self) -> None:
        """Makes the topic, and coordinators for all groups."""
        wire = self.connect()
        new = CreatableTopic(name=TOPIC, num_partitions=PARTITIONS, replication_factor=1)
        wire.ask(CreateTopicsRequest(topics=[new], timeout_ms=60_000), 7)
        self.wait_for_groups(["bench"])
        deadline = time.monotonic() + 120
        while True:
            answer = wire.ask(commit_request("bench", range(PARTITIONS), 0), COMMIT_VERSION)
            codes = {row.error_code for row in answer.topics[0].partitions}  # type: ignore[attr-defined]
            if codes == {0}:
                return
            if time.monotonic() > deadline:
                raise RuntimeError(f"{self.name}: commits fail with {codes}")
            time.sleep(0.1)

    def wait_for_groups(self, groups: list[str]) -> None:
        """Until each group's coordinator answers a fetch of its offsets."""
        wire = self.connect()
        left = list(groups)
        deadline = time.monotonic() + 600
        while left:
            wire.ask(FindCoordinatorRequest(coordinator_keys=left[:1]), 4)
            rows = [OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])])
                    for group in left]  # fmt: skip
            answer = wire.ask(OffsetFetchRequest(groups=rows), FETCH_VERSION)
            left = [row.group_id for row in answer.groups if row.error_code]  # type: ignore[attr-defined]
            if left:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{self.name}: {len(left)} groups have no coordinator")
                time.sleep(0.02)


class Moldau(Broker):
    name = "Moldau"

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.folder = tempfile.mkdtemp(prefix="moldau-bench-")
        self.process: subprocess.Popen[bytes] | None = None
        self.port, controller_port = free_ports(2)
        self.properties = Path(self.folder) / "server.properties"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{controller_port}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": f"{self.folder}/data",
            "offsets.topic.replication.factor": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        # A cluster id: 22 characters of base64.
        format_command = ["storage", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(self.properties)]
        subprocess.run([*command, *format_command], check=True, stdout=subprocess.DEVNULL, env=self._environment())

    def _environment(self) -> dict[str, str]:
        environment = dict(os.environ)
        # An installed command must not take up the sources.
        environment.pop("PYTHONPATH", None)
        if self.command[0] == sys.executable:
            environment["PYTHONPATH"] = str(ROOT / "src")
        return environment

    def start(self) -> None:
        with open(f"{self.folder}/output.log", "ab") as log:
            self.process = subprocess.Popen(
                [*self.command, "server", str(self.properties)], stdout=log, stderr=log, env=self._environment()
            )
        self.pid = self.process.pid
        self.connect()

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)
            self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Kafka(Broker):
    """Apache Kafka as the oracle starts it: 1 GB heap and G1, as in the distribution."""

    name = "Apache Kafka"

    def __init__(self, script: Path) -> None:
        self.script = script
        self.base_port = free_ports(1)[0]
        self.environment = {**os.environ, "KAFKA_ORACLE_PORT": str(self.base_port)}
        self.started = False

    def _run(self, *arguments: str) -> dict[str, str]:
        done = subprocess.run(
            [str(self.script), *arguments], check=True, stdout=subprocess.PIPE, text=True, env=self.environment
        )
        return dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)

    def start(self) -> None:
        facts = self._run("start-node", "1") if self.started else self._run("start", "1")
        self.started = True
        self.port = int(facts.get("bootstrap", f"x:{self.base_port}").split(",")[0].rsplit(":", 1)[1])
        self.pid = process_listening_on(self.port, self.connect)

    def stop(self) -> None:
        self._run("stop-node", "1")

    def remove(self) -> None:
        self._run("stop")


def process_listening_on(port: int, connect: Callable[[], Wire]) -> int:
    """The process behind a port of this machine."""
    connect()
    wanted = f":{port:04X}"
    for line in [*Path("/proc/net/tcp").read_text().splitlines(), *Path("/proc/net/tcp6").read_text().splitlines()]:
        fields = line.split()
        if len(fields) > 9 and fields[1].endswith(wanted) and fields[3] == "0A":
            for link in Path("/proc").glob("[0-9]*/fd/*"):
                try:
                    if os.readlink(link) == f"socket:[{fields[9]}]":
                        return int(link.parts[2])
                except OSError:
                    continue
    raise RuntimeError(f"nobody listens on port {port}")


def free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


# Measurements


def pipelined_commits(broker: Broker, partitions: int, seconds: float) -> tuple[float, float]:
    """Requests a second and microseconds of the broker's CPU per request; 64 requests in flight on one connection."""
    wire = broker.connect()
    frames = [frame(commit_request("bench", range(partitions), offset), COMMIT_VERSION) for offset in range(50)]
    wire.pipeline(frames, 500, 64, COMMIT_ERROR_AT)
    count, cpu, start = 0, broker.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        wire.pipeline(frames, 1000, 64, COMMIT_ERROR_AT)
        count += 1000
    elapsed = time.perf_counter() - start
    return count / elapsed, (broker.cpu_seconds() - cpu) / count * 1e6


def commits_of_many(broker: Broker, consumers: int, seconds: float) -> tuple[float, float]:
    """The same with many connections, each with a group of its own and one commit in flight."""
    selector = selectors.DefaultSelector()
    names = [f"bench-{number}" for number in range(consumers)]
    broker.wait_for_groups(names)
    frames: dict[int, bytes] = {}
    for name in names:
        wire = broker.connect()
        frames[wire.socket.fileno()] = frame(commit_request(name, range(10), 5), COMMIT_VERSION)
        selector.register(wire.socket, selectors.EVENT_READ, wire)
        wire.socket.sendall(frames[wire.socket.fileno()])
    count, cpu, start = 0, broker.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        for key, _ in selector.select():
            wire = key.data
            wire._receive()
            if wire._take_answers(COMMIT_ERROR_AT):
                wire.socket.sendall(frames[key.fd])
                count += 1
    elapsed = time.perf_counter() - start
    found = count / elapsed, (broker.cpu_seconds() - cpu) / count * 1e6
    for key in list(selector.get_map().values()):
        key.data.socket.close()
    return found


def commits_one_by_one(broker: Broker, seconds: float) -> tuple[float, float]:
    """Median and 99th percentile of the time of a commit, in microseconds, with one in flight."""
    wire = broker.connect()
    frames = [frame(commit_request("bench", range(1), offset), COMMIT_VERSION) for offset in range(50)]
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        wire.pipeline(frames, 1, 1, COMMIT_ERROR_AT)
        times.append(time.perf_counter() - start)
    times.sort()
    return times[len(times) // 2] * 1e6, times[int(len(times) * 0.99)] * 1e6


def fill(broker: Broker, groups: int, offsets_each: int) -> list[str]:
    """Commits offsets for many groups; returns their names."""
    wire = broker.connect()
    names = [f"group-{number}" for number in range(groups)]
    frames = [frame(commit_request(name, range(offsets_each), 1_000_000), COMMIT_VERSION) for name in names]
    wire.pipeline(frames, groups, 16, COMMIT_ERROR_AT)
    return names


def load_row(broker: Broker, offsets: int) -> tuple[float, float, float, float]:
    """Seconds from the start of the process until all groups answer: empty, and with offsets; of the latter, how many
    passed after the first connection; and megabytes then."""
    broker.start()
    broker.prepare()
    broker.stop()
    some = one_group_for_each_partition()
    empty, _ = timed_start(broker, some)
    fill(broker, offsets // PARTITIONS, PARTITIONS)
    broker.stop()
    full, loading = timed_start(broker, some)
    memory = broker.memory_mb()
    broker.stop()
    return empty, full, loading, memory


def one_group_for_each_partition() -> list[str]:
    """Groups whose coordinators are all partitions of __consumer_offsets."""
    found: dict[int, str] = {}
    for number in range(10_000):
        found.setdefault(partition_for(f"group-{number}", 50), f"group-{number}")
    assert len(found) == 50
    return list(found.values())


def timed_start(broker: Broker, groups: list[str]) -> tuple[float, float]:
    start = time.perf_counter()
    broker.start()
    listening = time.perf_counter()
    broker.wait_for_groups(groups)
    end = time.perf_counter()
    return end - start, end - listening


def memory_row(broker: Broker) -> tuple[float, float]:
    """Megabytes before, and after 10,000 groups have committed 10 offsets each."""
    before = broker.memory_mb()
    fill(broker, 10_000, 10)
    time.sleep(1)
    return before, broker.memory_mb()


# Output


class Table:
    def __init__(self, brokers: list[Broker], markdown: bool) -> None:
        self.brokers = brokers
        self.markdown = markdown
        self.rows: list[tuple[str, list[float], bool, str]] = []

    def add(self, name: str, values: list[float], more_is_better: bool, form: str) -> None:
        self.rows.append((name, values, more_is_better, form))
        print(self._line(*self.rows[-1]), flush=True)

    def _line(self, name: str, values: list[float], more_is_better: bool, form: str) -> str:
        cells = [form.format(value) for value in values]
        if len(values) == 2 and min(values) > 0:
            ratio = values[0] / values[1] if more_is_better else values[1] / values[0]
            cells.append(f"{ratio:.1f}×")
        if self.markdown:
            return "| " + " | ".join([name, *cells]) + " |"
        return f"{name:<75}" + "".join(f"{cell:>16}" for cell in cells)

    def head(self) -> None:
        names = [broker.name for broker in self.brokers] + (["ahead by"] if len(self.brokers) == 2 else [])
        if self.markdown:
            print("| measurement | " + " | ".join(names) + " |\n" + "|---" * (len(names) + 1) + "|")
        else:
            print(f"{'measurement':<75}" + "".join(f"{name:>16}" for name in names))


def alternating(brokers: list[Broker], rounds: int, work: Callable[[Broker], tuple[float, ...]]) -> list[list[float]]:
    """For each figure of `work`, its median for each broker."""
    seen: dict[str, list[tuple[float, ...]]] = {broker.name: [] for broker in brokers}
    for _ in range(rounds):
        for broker in brokers:
            seen[broker.name].append(work(broker))
    figures = len(seen[brokers[0].name][0])
    return [[statistics.median([one[n] for one in seen[b.name]]) for b in brokers] for n in range(figures)]


def run_commit_rows(brokers: list[Broker], table: Table, rounds: int, seconds: float) -> None:
    for broker in brokers:
        broker.start()
        broker.prepare()
        pipelined_commits(broker, 1, WARM_UP_SECONDS / 2)
        commits_of_many(broker, CONSUMERS, WARM_UP_SECONDS / 2)
    for partitions in (1, 10):
        rate, cpu = alternating(brokers, rounds, lambda broker, n=partitions: pipelined_commits(broker, n, seconds))  # type: ignore[misc]
        what = f"OffsetCommit of {partitions}, one connection, 64 in flight"
        table.add(f"{what}: requests/s", rate, True, "{:,.0f}")
        table.add(f"{what}: CPU µs each", cpu, False, "{:.1f}")
    rate, cpu = alternating(brokers, rounds, lambda broker: commits_of_many(broker, CONSUMERS, seconds))
    what = f"OffsetCommit of 10, {CONSUMERS} connections, one in flight each"
    table.add(f"{what}: requests/s", rate, True, "{:,.0f}")
    table.add(f"{what}: CPU µs each", cpu, False, "{:.1f}")
    median, high = alternating(brokers, rounds, lambda broker: commits_one_by_one(broker, seconds))
    table.add("OffsetCommit of 1, one in flight: p50 µs", median, False, "{:.0f}")
    table.add("OffsetCommit of 1, one in flight: p99 µs", high, False, "{:.0f}")
    for broker in brokers:
        broker.stop()


def run_memory_rows(brokers: list[Broker], table: Table) -> None:
    found = []
    for broker in brokers:
        broker.start()
        broker.prepare()
        found.append(memory_row(broker))
        broker.stop()
    table.add("10,000 groups × 10 offsets: growth, MB", [after - before for before, after in found], False, "{:.0f}")
    table.add("10,000 groups × 10 offsets: memory, MB", [after for _, after in found], False, "{:.0f}")


def run_load_rows(brokers: list[Broker], table: Table, offsets: int) -> None:
    found = [load_row(broker, offsets) for broker in brokers]
    table.add("start until all groups answer, no offsets: s", [one[0] for one in found], False, "{:.2f}")
    table.add(f"start until all groups answer, {offsets:,} offsets: s", [one[1] for one in found], False, "{:.2f}")
    table.add("of that, after the first connection: s", [one[2] for one in found], False, "{:.2f}")
    table.add(f"memory with {offsets:,} offsets: MB", [one[3] for one in found], False, "{:.0f}")


def fresh(arguments: argparse.Namespace) -> Iterator[list[Broker]]:
    """Brokers with empty folders, for one group of rows; removed afterwards."""
    brokers: list[Broker] = [Moldau(shlex.split(arguments.moldau))]
    if arguments.kafka.exists():
        brokers.append(Kafka(arguments.kafka))
    try:
        yield brokers
    finally:
        for broker in brokers:
            broker.remove()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau", help="the moldau command to measure")
    parser.add_argument("--kafka", type=Path, default=ROOT.parent / "shared" / "oracle" / "kafka")
    parser.add_argument("--rows", default="commit,memory,load")
    parser.add_argument("--offsets", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--markdown", action="store_true")
    arguments = parser.parse_args()
    shown = False
    for row in arguments.rows.split(","):
        for brokers in fresh(arguments):
            table = Table(brokers, arguments.markdown)
            if not shown:
                table.head()
                shown = True
            if row == "commit":
                run_commit_rows(brokers, table, arguments.rounds, arguments.seconds)
            elif row == "memory":
                run_memory_rows(brokers, table)
            elif row == "load":
                run_load_rows(brokers, table, arguments.offsets)
            else:
                parser.error(f"there is no row {row}: commit, memory, load")


if __name__ == "__main__":
    main()
