"""Measures classic groups: how long until many members that join at once are stable, and how long a rebalance takes.

    python bench/group_joins.py [--moldau COMMAND] [--kafka DIRECTORY] [--members 100] [--partitions 200] [--rounds 7]

Members are plain sockets in this process that do what a consumer does: ask for a member id, join, sync (the leader
brings an assignment of every partition), send heartbeats every 100 ms, join again when told to. The initial delay is 0
on both sides, so that what is measured is work and not waiting. Rounds alternate between Moldau and, where its jars
are (tools/fetch_kafka.sh), Apache Kafka; figures are medians, CPU is that of the broker's process.
"""

from __future__ import annotations

import argparse
import itertools
import math
import selectors
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from groups import wait_for_groups
from side_by_side import Broker, Wire, alternating, frame, fresh_brokers, parser_of

from moldau.protocol import api_keys, errors
from moldau.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
)
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Message, Reader, Writer

SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
HEARTBEAT_SECONDS = 0.1
ROUND_SECONDS_MAX = 60
ROWS = ("joining, ms", "joining, CPU ms", "rebalance, ms", "rebalance, CPU ms")


class Member(Wire):
    """One connection, one request in flight; those of each kind of group know what to ask."""

    versions: dict[type[Message], int] = {}

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.pending: type[Message] | None = None
        self.heartbeat_at = math.inf
        self._rest = b""

    def send(self, request: Message) -> None:
        self.pending = type(request)
        self.socket.sendall(frame(request, self.versions[type(request)]))

    def on_readable(self) -> None:
        self._rest += self.receive(1 << 18)
        if len(self._rest) < 4 or len(self._rest) < 4 + struct.unpack(">i", self._rest[:4])[0]:
            return
        request, self.pending = self.pending, None
        assert request is not None
        reader, self._rest = Reader(self._rest[8:]), b""
        reader.unknown_tags()
        answer = api_keys.response_class(request.API_KEY).decode(reader, self.versions[request])
        self.on_response(request, answer)

    def on_response(self, request: type[Message], answer: Any) -> None:
        raise NotImplementedError

    def join(self) -> None:
        raise NotImplementedError

    def heartbeat(self) -> None:
        raise NotImplementedError

    def leave(self) -> None:
        raise NotImplementedError

    @property
    def progress(self) -> tuple[int, ...]:
        """How far it is, for people."""
        raise NotImplementedError


AnyMember = TypeVar("AnyMember", bound=Member)


class Group(Generic[AnyMember]):
    """All members, driven by one loop."""

    pause_seconds = 0.005

    def __init__(self, name: str, members: list[AnyMember]) -> None:
        self.name = name
        self.members = members
        self.selector = selectors.DefaultSelector()
        for member in self.members:
            self.selector.register(member.socket, selectors.EVENT_READ, member)

    def is_stable(self) -> bool:
        raise NotImplementedError

    def join_all(self, broker: Broker) -> tuple[float, float]:
        """Milliseconds until stable, and of the broker's CPU."""
        cpu, start = broker.cpu_seconds(), time.perf_counter()
        for member in self.members:
            member.join()
        self.run_until_stable()
        return (time.perf_counter() - start) * 1000, (broker.cpu_seconds() - cpu) * 1000

    def run_until_stable(self) -> None:
        deadline = time.perf_counter() + ROUND_SECONDS_MAX
        while not self.is_stable():
            self.turn()
            if time.perf_counter() > deadline:
                raise RuntimeError(f"not stable: {sorted(member.progress for member in self.members)}")

    def turn(self) -> None:
        self.take_answers(self.pause_seconds)
        now = time.perf_counter()
        for member in self.members:
            if member.pending is None and member.heartbeat_at <= now:
                member.heartbeat()

    def take_answers(self, seconds_max: float) -> None:
        for key, _ in self.selector.select(seconds_max):
            key.data.on_readable()

    def settle(self) -> None:
        """Until nothing is in flight."""
        while any(member.pending is not None for member in self.members):
            self.take_answers(0.005)

    def close(self) -> None:
        self.settle()
        for member in self.members:
            member.leave()
        self.settle()
        self.selector.close()
        for member in self.members:
            member.socket.close()


def embedded(message: Message) -> bytes:
    writer = Writer()
    writer.int16(1)
    message.encode(writer, 1)
    return writer.to_bytes()


SUBSCRIPTION = embedded(ConsumerProtocolSubscription(["bench"]))


class ClassicMember(Member):
    versions = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, LeaveGroupRequest: 5}

    def __init__(self, group: ClassicGroup, port: int) -> None:
        super().__init__(port)
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.synced = -1

    def join(self) -> None:
        self.synced = -1
        rows = [JoinGroupRequestProtocol("range", SUBSCRIPTION)]
        self.send(JoinGroupRequest(self.group.name, 45_000, 300_000, self.member_id, None, "consumer", rows))

    def heartbeat(self) -> None:
        self.send(HeartbeatRequest(self.group.name, self.generation, self.member_id))

    def leave(self) -> None:
        self.send(LeaveGroupRequest(self.group.name, members=[MemberIdentity(self.member_id)]))

    def on_response(self, request: type[Message], answer: Any) -> None:
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

    @property
    def progress(self) -> tuple[int, ...]:
        return (self.synced,)


class ClassicGroup(Group[ClassicMember]):
    def __init__(self, name: str, broker: Broker, size: int, partitions: int) -> None:
        self.partitions = partitions
        super().__init__(name, [ClassicMember(self, broker.port) for _ in range(size)])

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


def measure(broker: Broker, number: int, size: int, partitions: int) -> tuple[float, ...]:
    """Milliseconds until stable and of the broker's CPU, for joining and for one rebalance."""
    name = f"group{number}"
    wait_for_groups(broker, [name])
    group = ClassicGroup(name, broker, size, partitions)
    joined = group.join_all(broker)
    group.settle()
    rebalanced = group.join_all(broker)
    group.close()
    return (*joined, *rebalanced)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--partitions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=7)


def show_medians(
    brokers: list[Broker],
    rows: Sequence[str],
    warm_up: int,
    rounds: int,
    work: Callable[[Broker, int], Sequence[float]],
) -> None:
    """`work` gets the number of the round as well, for names that are new."""
    number = itertools.count()
    # Warms up, the JVM most of all.
    alternating(brokers, warm_up, lambda broker: work(broker, next(number)))
    medians = alternating(brokers, rounds, lambda broker: work(broker, next(number)))
    for row, values in zip(rows, medians, strict=True):
        cells = [f"{broker.name} {value:.1f}" for broker, value in zip(brokers, values, strict=True)]
        print(f"{row:30}", "   ".join(cells))


def main() -> None:
    parser = parser_of(__doc__)
    add_options(parser)
    options = parser.parse_args()
    with fresh_brokers(options, SETTINGS) as brokers:
        for broker in brokers:
            broker.start()
        show_medians(brokers, ROWS, 3, options.rounds, lambda b, n: measure(b, n, options.members, options.partitions))


if __name__ == "__main__":
    main()
