"""Measures classic groups: how long until many members that join at once are stable, and how long a rebalance takes.

    python bench/group_joins.py [--moldau COMMAND] [--kafka PATH] [--members 100] [--partitions 200] [--rounds 7]

Members are plain sockets in this process that do what a consumer does: ask for a member id, join, sync (the leader
brings an assignment of every partition), send heartbeats every 100 ms, join again when told to. The initial delay is 0
on both sides, so that what is measured is work and not waiting. Rounds alternate between Moldau and, where the script
`../shared/oracle/kafka` can start one, Apache Kafka; figures are medians, CPU is that of the broker's process.
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

from moldau.protocol import api_keys, errors  # noqa: E402
from moldau.protocol.messages.consumer_protocol import (  # noqa: E402
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest  # noqa: E402
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol  # noqa: E402
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity  # noqa: E402
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment  # noqa: E402
from moldau.protocol.primitives import Message, Reader, Writer  # noqa: E402

DELAY = "group.initial.rebalance.delay.ms=0"
HEARTBEAT_SECONDS = 0.1
ROUND_SECONDS_MAX = 60
VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}


class MoldauWithoutDelay(Moldau):
    def __init__(self, command: list[str]) -> None:
        super().__init__(command)
        self.properties.write_text(f"{self.properties.read_text()}{DELAY}\n")


class KafkaWithoutDelay(Kafka):
    def __init__(self, script: Path) -> None:
        super().__init__(script)
        # The script sees by an INFO line that the broker is ready.
        self.environment["KAFKA_ORACLE_LOG"] = "INFO"

    def _run(self, *arguments: str) -> dict[str, str]:
        return super()._run(*arguments, *([DELAY] if arguments[0] == "start" else []))


def embedded(message: Message) -> bytes:
    writer = Writer()
    writer.int16(1)
    message.encode(writer, 1)
    return writer.to_bytes()


SUBSCRIPTION = embedded(ConsumerProtocolSubscription(["bench"]))


class Member:
    """One connection, one request in flight."""

    def __init__(self, group: Group, port: int) -> None:
        self.group = group
        self.socket = socket.create_connection(("127.0.0.1", port), 60)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.member_id = ""
        self.generation = -1
        self.synced = -1
        self.heartbeat_at = 0.0
        self.pending: type[Message] | None = None
        self._rest = b""

    def send(self, request: Message) -> None:
        self.pending = type(request)
        self.socket.sendall(frame(request, VERSIONS[type(request)]))

    def join(self) -> None:
        self.synced = -1
        rows = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
        self.send(JoinGroupRequest(self.group.name, 45_000, 300_000, self.member_id, None, "consumer", rows))

    def heartbeat(self) -> None:
        self.send(HeartbeatRequest(self.group.name, self.generation, self.member_id))

    def leave(self) -> None:
        self.send(LeaveGroupRequest(self.group.name, members=[MemberIdentity(self.member_id)]))

    def on_readable(self) -> None:
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self._rest += data
        if len(self._rest) < 4 or len(self._rest) < 4 + struct.unpack(">i", self._rest[:4])[0]:
            return
        request, self.pending = self.pending, None
        assert request is not None
        reader, self._rest = Reader(self._rest[8:]), b""
        reader.unknown_tags()
        answer: Any = api_keys.response_class(request.API_KEY).decode(reader, VERSIONS[request])
        self.on_answer(request, answer)

    def on_answer(self, request: type[Message], answer: Any) -> None:
        code = answer.error_code
        if code in (errors.UNKNOWN_MEMBER_ID, errors.ILLEGAL_GENERATION):
            self.member_id = ""
        if request is LeaveGroupRequest:
            return
        if request is JoinGroupRequest and code == errors.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            self.join()
        elif code:
            self.join()
        elif request is JoinGroupRequest:
            self.on_joined(answer)
        else:
            if request is SyncGroupRequest:
                self.synced = self.generation
            self.heartbeat_at = time.perf_counter() + HEARTBEAT_SECONDS

    def on_joined(self, answer: Any) -> None:
        self.generation = answer.generation_id
        rows = self.group.assign([row.member_id for row in answer.members]) if answer.members else []
        self.send(SyncGroupRequest(self.group.name, self.generation, self.member_id, None, "consumer", "range", rows))


class Group:
    """All members, driven by one loop."""

    def __init__(self, name: str, broker: Broker, size: int, partitions: int) -> None:
        self.name = name
        self.partitions = partitions
        self.members = [Member(self, broker.port) for _ in range(size)]
        self.selector = selectors.DefaultSelector()
        for member in self.members:
            self.selector.register(member.socket, selectors.EVENT_READ, member)

    def assign(self, ids: list[str]) -> list[SyncGroupRequestAssignment]:
        rows = []
        for number, one in enumerate(ids):
            mine = list(range(number, self.partitions, len(ids)))
            data = embedded(ConsumerProtocolAssignment([AssignmentTopicPartition("bench", mine)]))
            rows.append(SyncGroupRequestAssignment(one, data))
        return rows

    def is_stable(self) -> bool:
        generation = self.members[0].synced
        return generation >= 0 and all(member.synced == generation for member in self.members)

    def run_until_stable(self) -> None:
        deadline = time.perf_counter() + ROUND_SECONDS_MAX
        while not self.is_stable():
            self.turn()
            if time.perf_counter() > deadline:
                raise RuntimeError(f"not stable: {sorted(member.synced for member in self.members)}")

    def turn(self) -> None:
        for key, _ in self.selector.select(0.005):
            key.data.on_readable()
        now = time.perf_counter()
        for member in self.members:
            if member.pending is None and member.synced >= 0 and member.heartbeat_at <= now:
                member.heartbeat()

    def settle(self) -> None:
        """Until nothing is in flight."""
        while any(member.pending is not None for member in self.members):
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


def measure(broker: Broker, name: str, size: int, partitions: int) -> dict[str, float]:
    """Milliseconds until stable and of the broker's CPU, for joining and for one rebalance."""
    broker.wait_for_groups([name])
    group = Group(name, broker, size, partitions)
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    for member in group.members:
        member.join()
    group.run_until_stable()
    joined, joined_cpu = time.perf_counter() - start, broker.cpu_seconds() - cpu
    group.settle()
    cpu, start = broker.cpu_seconds(), time.perf_counter()
    for member in group.members:
        member.join()
    group.run_until_stable()
    rebalanced, rebalanced_cpu = time.perf_counter() - start, broker.cpu_seconds() - cpu
    group.close()
    return {
        "joining, ms": joined * 1000,
        "joining, CPU ms": joined_cpu * 1000,
        "rebalance, ms": rebalanced * 1000,
        "rebalance, CPU ms": rebalanced_cpu * 1000,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moldau", default=f"{sys.executable} -m moldau.cli.main")
    parser.add_argument("--kafka", type=Path, default=ROOT.parent / "shared" / "oracle" / "kafka")
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    brokers: list[Broker] = [MoldauWithoutDelay(shlex.split(options.moldau))]
    if options.kafka.exists():
        brokers.append(KafkaWithoutDelay(options.kafka))
    figures: dict[str, dict[str, list[float]]] = {broker.name: {} for broker in brokers}
    try:
        for broker in brokers:
            broker.start()
        for number in range(-3, options.rounds):
            for broker in brokers:
                row = measure(broker, f"group{number}", options.members, options.partitions)
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
        print(f"{name:22}", "   ".join(cells))


if __name__ == "__main__":
    main()
