"""One shard of the group coordinator on a log in memory, its clock in the test's hand, and clients that talk to it."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.classic_group import ClassicGroup
from moldau.coordinator.group.classic_join import Joining
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.log import CoordinatorLog
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.timers import Timers
from moldau.metadata.image import MetadataImage
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from moldau.protocol.messages.heartbeat_request import HeartbeatRequest
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.stored.group_records import GroupMetadataKey, GroupMetadataValue
from moldau.records.batch import split_batches
from moldau.records.builder import BatchBuilder
from moldau.records.walk import read_records

START_MS = 1_000_000
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@localhost:9093",
    "listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/data",
}


class MemoryLog(CoordinatorLog):
    """Batches in a list. `held` keeps the high watermark where it is; `failing` is the error of every append."""

    def __init__(self) -> None:
        self.batches: list[tuple[int, bytes]] = []
        self.end = 0
        self.committed = 0
        self.held = False
        self.failing: int | None = None
        self.on_moved: Callable[[int], None] | None = None
        self.records: list[tuple[bytes, bytes | None]] = []

    def append(self, batch: bytes, now_ms: int) -> int:
        if self.failing is not None:
            raise KafkaError(self.failing)
        header = split_batches(batch, 0, len(batch))[0]
        rows = read_records(batch, header)
        builder = BatchBuilder(base_offset=self.end)
        for row in rows:
            assert row.key is not None
            builder.append(row.timestamp, row.key, row.value)
            self.records.append((row.key, row.value))
        self.batches.append((self.end, builder.build(producer_id=-1, producer_epoch=-1, base_sequence=0)))
        self.end += len(rows)
        if not self.held:
            self.committed = self.end
        return self.end

    def release(self, now_ms: int) -> None:
        self.held = False
        self.committed = self.end
        waiting, self.on_moved = self.on_moved, None
        if waiting is not None:
            waiting(now_ms)

    def start_offset(self) -> int:
        return 0

    def end_offset(self) -> int:
        return self.end

    def high_watermark(self) -> int:
        return self.committed

    def read(self, offset: int, max_bytes: int, on_ready: Callable[[], None]) -> bytes:
        return next((batch for base, batch in self.batches if base >= offset), b"")

    def batch_bytes_max(self) -> int:
        return 1 << 20

    def watch(self, on_moved: Callable[[int], None]) -> None:
        self.on_moved = on_moved


def subscription(*topics: str) -> bytes:
    """A consumer's metadata, as it stands in its JoinGroup."""
    writer = Writer()
    writer.int16(0)
    ConsumerProtocolSubscription(list(topics)).encode(writer, 0)
    return writer.to_bytes()


class Pending:
    """An answer that comes or does not. As in a connection, an error after the answer is not looked at."""

    def __init__(self) -> None:
        self.answers: list[Any] = []

    def __call__(self, answer: Message | KafkaError) -> None:
        if not self.answers or not isinstance(answer, KafkaError):
            self.answers.append(answer)

    @property
    def done(self) -> bool:
        return bool(self.answers)

    @property
    def answer(self) -> Any:
        assert len(self.answers) == 1, f"answered {len(self.answers)} times"
        return self.answers[0]

    @property
    def code(self) -> int:
        answer = self.answer
        return int(answer.code if isinstance(answer, KafkaError) else answer.error_code)


class GroupWorld:
    """See the module."""

    def __init__(self, seed: int = 1, settings: dict[str, str] | None = None) -> None:
        values = {**SETTINGS, **(settings or {})}
        self.settings = GroupSettings(BrokerConfig(values))
        self.rng = random.Random(seed)
        self.now_ms = START_MS
        self.log = MemoryLog()
        self.epoch = 0
        self.start()

    def start(self) -> None:
        """Leads the shard: what is in the log is loaded."""
        self.epoch += 2
        self.runtime = CoordinatorRuntime("__consumer_offsets", self._make_machine, 1 << 20, 0)
        self.runtime.lead(0, self.epoch, self.log, MetadataImage(), self.now_ms)
        while self.runtime.poll(self.now_ms) <= self.now_ms:
            pass

    def stop(self) -> None:
        self.runtime.resign_all(self.now_ms)

    def _make_machine(self, index: int, timers: Timers) -> CoordinatorMachine:
        return GroupMachine(index, timers, self.settings, self.rng)

    @property
    def machine(self) -> GroupMachine:
        found = self.runtime.find(0).machine
        assert isinstance(found, GroupMachine)
        return found

    def group(self, group_id: str = "g") -> ClassicGroup:
        found = self.machine.state.groups[group_id]
        assert isinstance(found, ClassicGroup)
        return found

    def tick(self, ms: int) -> None:
        """Lets time pass; timers fire when they are due, not later."""
        end_ms = self.now_ms + ms
        while True:
            due_ms = self.runtime.poll(self.now_ms)
            if due_ms > end_ms:
                break
            self.now_ms = max(due_ms, self.now_ms)
        self.now_ms = end_ms

    def run(self, verb: Callable[[GroupMachine], Outcome], done: Pending) -> Pending:
        def on_machine(machine: CoordinatorMachine) -> Outcome:
            assert isinstance(machine, GroupMachine)
            return verb(machine)

        self.runtime.run(0, on_machine, done, self.now_ms)
        return done

    # Requests

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        instance: str | None = None,
        client: str = "c",
        protocols: list[tuple[str, bytes]] | None = None,
        protocol_type: str = "consumer",
        session_ms: int = 10_000,
        rebalance_ms: int = 60_000,
        version: int = 9,
        reason: str | None = None,
    ) -> Pending:
        offered = [("range", subscription("t"))] if protocols is None else protocols
        rows = [JoinGroupRequestProtocol(name, data) for name, data in offered]
        request = JoinGroupRequest(group, session_ms, rebalance_ms, member_id, instance, protocol_type, rows, reason)
        done = Pending()
        joining = Joining(request, version, client, "/127.0.0.1", done)
        return self.run(lambda machine: machine.classic.join(joining, self.now_ms), done)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        instance: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
    ) -> Pending:
        rows = [SyncGroupRequestAssignment(one, data) for one, data in (assignments or {}).items()]
        request = SyncGroupRequest(group, generation, member_id, instance, protocol_type, protocol_name, rows)
        done = Pending()
        return self.run(lambda machine: machine.classic.sync(request, done, self.now_ms), done)

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None) -> Pending:
        request = HeartbeatRequest(group, generation, member_id, instance)
        return self.run(lambda machine: machine.classic.heartbeat(request, self.now_ms), Pending())

    def leave(self, *members: tuple[str, str | None], group: str = "g") -> Pending:
        request = LeaveGroupRequest(group, members=[MemberIdentity(one, instance) for one, instance in members])
        return self.run(lambda machine: machine.classic.leave(request, self.now_ms), Pending())

    # Short cuts

    def new_id(self, **fields: Any) -> str:
        """The id that a dynamic member gets before it joins."""
        answer = self.join(**fields).answer
        assert answer.error_code == errors.MEMBER_ID_REQUIRED
        found: str = answer.member_id
        return found

    def stable(self, size: int, **fields: Any) -> list[str]:
        """A group of this many members with assignments, the leader first; returns their ids."""
        ids = [self.new_id(**fields) for _ in range(size)]
        waiting = [self.join(one, **fields) for one in ids]
        self.tick(6000)
        first = waiting[0].answer
        assert first.error_code == 0
        ids.sort(key=lambda one: one != first.leader)
        names = {"group": fields["group"]} if "group" in fields else {}
        self.sync(ids[0], first.generation_id, {one: one.encode() for one in ids}, **names)
        for one in ids[1:]:
            assert self.sync(one, first.generation_id, **names).answer.assignment == one.encode()
        return ids


def read_group_record(key: bytes, value: bytes | None) -> tuple[str, GroupMetadataValue | None]:
    group_id = GroupMetadataKey.decode(Reader(key, 2, len(key)), 0).group
    if value is None:
        return group_id, None
    reader = Reader(value)
    return group_id, GroupMetadataValue.decode(reader, reader.int16())
