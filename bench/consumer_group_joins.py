"""Measures consumer groups (KIP-848): how long until many members that join at once have their partitions, and leave.

    python bench/consumer_group_joins.py [--moldau COMMAND] [--kafka PATH] [--members 100] [--partitions 200]
                                         [--heartbeat-ms 20]

Members are plain sockets in this process that do what a consumer does: join, send a heartbeat every 20 ms, and at once
when they have something to acknowledge or were given something. The interval is far below Kafka's 5 s so that the time
until stable is the coordinator's and not that of members who wait for their next heartbeat. Stable is when every
partition has one member, nobody has two more than anybody else, and all are in the same epoch. Three things are
measured: joining with the assignment interval 0 (an assignment for every member that comes: work), with the default of
a second (mostly waiting), and steady heartbeats, one of each member in flight. Rounds alternate between Moldau and,
where the script `../shared/oracle/kafka` can start one, Apache Kafka; figures are medians, CPU is that of the broker's
process.
"""

from __future__ import annotations

import argparse
import selectors
import shlex
import socket
import statistics
import struct
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "src"))  # where moldau is not installed
sys.path.insert(0, str(ROOT / "bench"))

from groups import Broker, Kafka, Moldau, frame  # noqa: E402

from moldau.protocol.messages.consumer_group_heartbeat_request import (  # noqa: E402
    ConsumerGroupHeartbeatRequest,
    TopicPartitions,
)
from moldau.protocol.messages.consumer_group_heartbeat_response import ConsumerGroupHeartbeatResponse  # noqa: E402
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest  # noqa: E402
from moldau.protocol.messages.incremental_alter_configs_request import (  # noqa: E402
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from moldau.protocol.primitives import Reader  # noqa: E402

VERSION = 1
HEARTBEAT_MS = 20
ROUND_SECONDS_MAX = 60
STEADY_HEARTBEATS = 20_000
GROUP_RESOURCE = 32
TOPIC = "consumers"


class Member:
    """One connection, one heartbeat in flight."""

    def __init__(self, group: Group, port: int, number: int) -> None:
        self.group = group
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.member_id = f"member-{number}"
        self.epoch = 0
        self.owned: list[TopicPartitions] = []
        self.pending = False
        self.must_acknowledge = False
        self.heartbeat_at = 0.0
        self._rest = b""

    def send(self, **fields: Any) -> None:
        self.pending = True
        request = ConsumerGroupHeartbeatRequest(
            **{"group_id": self.group.name, "member_id": self.member_id, "member_epoch": self.epoch, **fields}
        )
        self.socket.sendall(frame(request, VERSION))

    def join(self) -> None:
        self.send(rebalance_timeout_ms=300_000, subscribed_topic_names=[TOPIC], topic_partitions=[])

    def heartbeat(self) -> None:
        if self.must_acknowledge:
            self.must_acknowledge = False
            self.send(topic_partitions=self.owned)
        else:
            self.send()

    def leave(self) -> None:
        self.send(member_epoch=-1)

    def on_readable(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._rest += data
        if len(self._rest) < 4 or len(self._rest) < 4 + struct.unpack(">i", self._rest[:4])[0]:
            return
        reader, self._rest = Reader(self._rest[8:]), b""
        reader.unknown_tags()
        answer = ConsumerGroupHeartbeatResponse.decode(reader, VERSION)
        if answer.error_code:
            raise RuntimeError(f"a heartbeat failed with error {answer.error_code}: {answer.error_message}")
        self.pending = False
        self.epoch = answer.member_epoch
        self.heartbeat_at = time.perf_counter() + self.group.heartbeat_seconds
        if answer.assignment is not None:
            self.owned = [
                TopicPartitions(topic.topic_id, topic.partitions) for topic in answer.assignment.topic_partitions
            ]
            self.must_acknowledge = True
            self.heartbeat_at = 0.0

    @property
    def count(self) -> int:
        return sum(len(topic.partitions) for topic in self.owned)


class Group:
    """All members, driven by one loop."""

    heartbeat_seconds = HEARTBEAT_MS / 1000

    def __init__(self, name: str, broker: Broker, size: int, partitions: int) -> None:
        self.name = name
        self.partitions = partitions
        self.members = [Member(self, broker.port, number) for number in range(size)]
        self.selector = selectors.DefaultSelector()
        for member in self.members:
            self.selector.register(member.socket, selectors.EVENT_READ, member)

    def is_stable(self) -> bool:
        epoch = self.members[0].epoch
        if epoch <= 0 or any(member.epoch != epoch or member.must_acknowledge for member in self.members):
            return False
        counts = [member.count for member in self.members]
        return sum(counts) == self.partitions and max(counts) - min(counts) <= 1

    def run_until_stable(self) -> None:
        deadline = time.perf_counter() + ROUND_SECONDS_MAX
        while not self.is_stable():
            self.turn()
            if time.perf_counter() > deadline:
                raise RuntimeError(f"not stable: {sorted((one.epoch, one.count) for one in self.members)}")

    def turn(self) -> None:
        for key, _ in self.selector.select(0.002):
            key.data.on_readable()
        now = time.perf_counter()
        for member in self.members:
            if not member.pending and member.heartbeat_at <= now:
                member.heartbeat()

    def run_steady(self, count: int) -> None:
        """Every member sends its next heartbeat when the last one is answered."""
        sent = 0
        while sent < count:
            for member in self.members:
                if not member.pending:
                    member.send()
                    sent += 1
            for key, _ in self.selector.select(0.01):
                key.data.on_readable()
        self.settle()

    def settle(self) -> None:
        while any(member.pending for member in self.members):
            for key, _ in self.selector.select(0.005):
                key.data.on_readable()

    def close(self) -> None:
        self.settle()
        for member in self.members:
            member.leave()
        self.settle()
        self.selector.close()
        for member in self.members:
            member.socket.close()


def configure(broker: Broker, group: str, interval_ms: int) -> None:
    entry = AlterableConfig("consumer.assignment.interval.ms", 0, str(interval_ms))
    resource = AlterConfigsResource(GROUP_RESOURCE, group, [entry])
    broker.connect().ask(IncrementalAlterConfigsRequest([resource]), 1)
    time.sleep(0.3)


def measure_joining(broker: Broker, name: str, size: int, partitions: int, interval_ms: int) -> tuple[float, float]:
    """Milliseconds until stable, and of the broker's CPU."""
    broker.wait_for_groups([name])
    configure(broker, name, interval_ms)
    group = Group(name, broker, size, partitions)
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    for member in group.members:
        member.join()
    group.run_until_stable()
    took, used = time.perf_counter() - start, broker.cpu_seconds() - cpu
    group.close()
    return took * 1000, used * 1000


def measure_heartbeats(broker: Broker, name: str, size: int, partitions: int) -> tuple[float, float]:
    """Heartbeats a second, and microseconds of the broker's CPU for each."""
    broker.wait_for_groups([name])
    configure(broker, name, 0)
    group = Group(name, broker, size, partitions)
    for member in group.members:
        member.join()
    group.run_until_stable()
    group.settle()
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    group.run_steady(STEADY_HEARTBEATS)
    took, used = time.perf_counter() - start, broker.cpu_seconds() - cpu
    group.close()
    return STEADY_HEARTBEATS / took, used * 1e6 / STEADY_HEARTBEATS


def measure(broker: Broker, number: int, size: int, partitions: int) -> dict[str, float]:
    work = measure_joining(broker, f"work{number}", size, partitions, 0)
    default = measure_joining(broker, f"default{number}", size, partitions, 1000)
    steady = measure_heartbeats(broker, f"steady{number}", size, partitions)
    return {
        "joining, interval 0, ms": work[0],
        "joining, interval 0, CPU ms": work[1],
        "joining, interval 1 s, ms": default[0],
        "joining, interval 1 s, CPU ms": default[1],
        "heartbeats a second": steady[0],
        "heartbeat, CPU us": steady[1],
    }


def prepare(broker: Broker, partitions: int) -> None:
    broker.start()
    new = CreatableTopic(name=TOPIC, num_partitions=partitions, replication_factor=1)
    broker.connect().ask(CreateTopicsRequest(topics=[new], timeout_ms=60_000), 7)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau.cli.main")
    parser.add_argument("--kafka", type=Path, default=ROOT.parent / "shared" / "oracle" / "kafka")
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--heartbeat-ms", type=int, default=HEARTBEAT_MS)
    options = parser.parse_args()
    Group.heartbeat_seconds = options.heartbeat_ms / 1000
    brokers: list[Broker] = [Moldau(shlex.split(options.moldau))]
    if options.kafka.exists():
        brokers.append(Kafka(options.kafka))
    figures: dict[str, dict[str, list[float]]] = {broker.name: {} for broker in brokers}
    try:
        for broker in brokers:
            prepare(broker, options.partitions)
        for number in range(-2, options.rounds):
            for broker in brokers:
                row = measure(broker, number, options.members, options.partitions)
                if number < 0:
                    # Warms up, the JVM most of all.
                    continue
                for name, value in row.items():
                    figures[broker.name].setdefault(name, []).append(value)
    finally:
        for broker in brokers:
            broker.remove()
    for name in next(iter(figures.values())):
        cells = [f"{broker.name} {statistics.median(figures[broker.name][name]):.1f}" for broker in brokers]
        print(f"{name:30}", "   ".join(cells))


if __name__ == "__main__":
    main()
