"""Measures the group coordinator: commits a second, CPU per commit, loading a million offsets, memory of many groups.

    python bench/groups.py [--moldau COMMAND] [--kafka DIRECTORY] [--rows commit,memory,load] [--offsets 1000000]

Every row runs against Moldau and, where its jars are (tools/fetch_kafka.sh, or --kafka DIRECTORY),
against a real Apache Kafka in the same run: both get the same requests from the same plain sockets, with rounds that
alternate between the two. CPU is what the broker's process has used, from /proc. Figures are medians of the rounds; a
JVM is warmed up first.
"""

from __future__ import annotations

import selectors
import time
from functools import partial

from side_by_side import Broker, Table, Wire, alternating, create_topic, frame, fresh_brokers, parser_of

from moldau.coordinator.routing import partition_for
from moldau.protocol.messages.find_coordinator_request import FindCoordinatorRequest
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)

TOPIC = "bench"
PARTITIONS = 100
COMMIT_VERSION = 9
FETCH_VERSION = 9
WARM_UP_SECONDS = 16.0
CONSUMERS = 50
# Behind the last error code of an OffsetCommit response v8 and later: three counts of tagged fields.
COMMIT_ERROR_AT = 5


# The wire


class Commits:
    """Commits over one connection, many of them in flight; each of them must succeed."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._rest = b""

    def send(self, frames: list[bytes], count: int, window: int) -> None:
        """Sends `count` requests, taken from `frames` in turn, and waits for the answers."""
        sent = answered = 0
        while answered < count:
            room = min(window - (sent - answered), count - sent)
            if room > 0:
                self.wire.socket.sendall(b"".join([frames[(sent + n) % len(frames)] for n in range(room)]))
                sent += room
            answered += self.take_answers()

    def take_answers(self) -> int:
        """Waits for some bytes; how many answers are whole with them."""
        data, position, count = self._rest + self.wire.receive(1 << 20), 0, 0
        while len(data) - position >= 4:
            end = position + 4 + int.from_bytes(data[position : position + 4], "big")
            if end > len(data):
                break
            code = int.from_bytes(data[end - COMMIT_ERROR_AT : end - COMMIT_ERROR_AT + 2], "big")
            if code:
                raise RuntimeError(f"a commit failed with error {code}")
            position = end
            count += 1
        self._rest = data[position:]
        return count


def commit_request(group: str, partitions: range, offset: int) -> OffsetCommitRequest:
    rows = [OffsetCommitRequestPartition(index, offset, 0, "") for index in partitions]
    return OffsetCommitRequest(group_id=group, topics=[OffsetCommitRequestTopic(TOPIC, partitions=rows)])


def prepare(broker: Broker) -> None:
    """Makes the topic, and coordinators for all groups."""
    wire = broker.connect()
    create_topic(wire, TOPIC, PARTITIONS)
    wait_for_groups(broker, ["bench"])
    deadline = time.monotonic() + 120
    while True:
        answer = wire.ask(commit_request("bench", range(PARTITIONS), 0), COMMIT_VERSION)
        codes = {row.error_code for row in answer.topics[0].partitions}
        if codes == {0}:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{broker.name}: commits fail with {codes}")
        time.sleep(0.1)


def wait_for_groups(broker: Broker, groups: list[str]) -> None:
    """Until each group's coordinator answers a fetch of its offsets."""
    wire = broker.connect()
    left = list(groups)
    deadline = time.monotonic() + 600
    while left:
        wire.ask(FindCoordinatorRequest(coordinator_keys=left[:1]), 4)
        topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=[0])]
        rows = [OffsetFetchRequestGroup(group, topics=topics) for group in left]
        answer = wire.ask(OffsetFetchRequest(groups=rows), FETCH_VERSION)
        left = [row.group_id for row in answer.groups if row.error_code]
        if left:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{broker.name}: {len(left)} groups have no coordinator")
            time.sleep(0.02)


# Measurements


def pipelined_commits(broker: Broker, partitions: int, seconds: float) -> tuple[float, float]:
    """Requests a second and microseconds of the broker's CPU per request; 64 requests in flight on one connection."""
    commits = Commits(broker.connect())
    frames = [frame(commit_request("bench", range(partitions), offset), COMMIT_VERSION) for offset in range(50)]
    commits.send(frames, 500, 64)
    count, cpu, start = 0, broker.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        commits.send(frames, 1000, 64)
        count += 1000
    elapsed = time.perf_counter() - start
    return count / elapsed, (broker.cpu_seconds() - cpu) / count * 1e6


def commits_of_many(broker: Broker, consumers: int, seconds: float) -> tuple[float, float]:
    """The same with many connections, each with a group of its own and one commit in flight."""
    selector = selectors.DefaultSelector()
    names = [f"bench-{number}" for number in range(consumers)]
    wait_for_groups(broker, names)
    frames: dict[int, bytes] = {}
    for name in names:
        wire = broker.connect()
        frames[wire.socket.fileno()] = frame(commit_request(name, range(10), 5), COMMIT_VERSION)
        selector.register(wire.socket, selectors.EVENT_READ, Commits(wire))
        wire.socket.sendall(frames[wire.socket.fileno()])
    count, cpu, start = 0, broker.cpu_seconds(), time.perf_counter()
    while time.perf_counter() - start < seconds:
        for key, _ in selector.select():
            commits: Commits = key.data
            if commits.take_answers():
                commits.wire.socket.sendall(frames[key.fd])
                count += 1
    elapsed = time.perf_counter() - start
    found = count / elapsed, (broker.cpu_seconds() - cpu) / count * 1e6
    for key in list(selector.get_map().values()):
        key.data.wire.socket.close()
    return found


def commits_one_by_one(broker: Broker, seconds: float) -> tuple[float, float]:
    """Median and 99th percentile of the time of a commit, in microseconds, with one in flight."""
    commits = Commits(broker.connect())
    frames = [frame(commit_request("bench", range(1), offset), COMMIT_VERSION) for offset in range(50)]
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        commits.send(frames, 1, 1)
        times.append(time.perf_counter() - start)
    times.sort()
    return times[len(times) // 2] * 1e6, times[int(len(times) * 0.99)] * 1e6


def fill(broker: Broker, groups: int, offsets_each: int) -> list[str]:
    """Commits offsets for many groups; returns their names."""
    names = [f"group-{number}" for number in range(groups)]
    frames = [frame(commit_request(name, range(offsets_each), 1_000_000), COMMIT_VERSION) for name in names]
    Commits(broker.connect()).send(frames, groups, 16)
    return names


def load_row(broker: Broker, offsets: int) -> tuple[float, float, float, float]:
    """Seconds from the start of the process until all groups answer: empty, and with offsets; of the latter, how many
    passed after the first connection; and megabytes then."""
    broker.start()
    prepare(broker)
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
    wait_for_groups(broker, groups)
    end = time.perf_counter()
    return end - start, end - listening


def memory_row(broker: Broker) -> tuple[float, float]:
    """Megabytes before, and after 10,000 groups have committed 10 offsets each."""
    before = broker.memory_mb()
    fill(broker, 10_000, 10)
    time.sleep(1)
    return before, broker.memory_mb()


# Rows


def run_commit_rows(brokers: list[Broker], table: Table, rounds: int, seconds: float) -> None:
    for broker in brokers:
        broker.start()
        prepare(broker)
        pipelined_commits(broker, 1, WARM_UP_SECONDS / 2)
        commits_of_many(broker, CONSUMERS, WARM_UP_SECONDS / 2)
    for partitions in (1, 10):
        rate, cpu = alternating(brokers, rounds, partial(pipelined_commits, partitions=partitions, seconds=seconds))
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
        prepare(broker)
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


def main() -> None:
    parser = parser_of(__doc__, ("commit", "memory", "load"))
    parser.add_argument("--offsets", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    table = Table(arguments)
    for row in arguments.rows:
        with fresh_brokers(arguments, {}) as brokers:
            if row == "commit":
                run_commit_rows(brokers, table, arguments.rounds, arguments.seconds)
            elif row == "memory":
                run_memory_rows(brokers, table)
            else:
                run_load_rows(brokers, table, arguments.offsets)


if __name__ == "__main__":
    main()
