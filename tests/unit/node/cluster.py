"""Several whole nodes on simulated disks and one clock, joined by wires that deliver in a millisecond."""

from __future__ import annotations

import random
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

from moldau.api.dispatch import Dispatcher
from moldau.config.broker_config import BrokerConfig
from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.node.outbox import CLOSED, REFUSED, TIMED_OUT, Channel, NoResponse, OnResponse, Outbox
from moldau.node.reply import Reply
from moldau.protocol import api_keys
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.primitives import Message, Writer
from moldau.records.clocks import NEVER_MS
from moldau.server.storage_format import FormatOptions, format_storage
from moldau.sim.kernel.disk import SimDisk
from tests.unit.node.world import CLUSTER, Asked

WIRE_MS = 1
CLIENT_PORT = 9000
CONTROLLER_PORT = 9500
BOTH = "broker,controller"


def frame_of(request: Message, version: int, client_id: str | None = "test", correlation_id: int = 7) -> bytes:
    key = type(request).API_KEY
    writer = Writer()
    header = RequestHeader(key, version, correlation_id, client_id)
    header.encode(writer, api_keys.request_header_version(key, version))
    request.encode(writer, version)
    return writer.to_bytes()


class Wire(Channel):
    """One connection; a target that is down refuses it, one that is cut off never answers."""

    def __init__(self, cluster: Cluster, source: Member, port: int, purpose: str) -> None:
        self.cluster = cluster
        self.source = source
        self.port = port
        self.purpose = purpose
        self.context: ClientContext | None = None
        self.life = 0
        self.awaited: list[tuple[Asked, OnResponse]] = []
        self.closed = False

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, answered: OnResponse) -> None:
        assert not self.closed and api_key == type(request).API_KEY
        frame = frame_of(request, version)
        asked = Asked(request, version, Reply())
        entry = (asked, answered)
        self.awaited.append(entry)
        self.cluster.schedule(WIRE_MS, lambda: self._deliver(entry, frame))
        self.cluster.schedule(timeout_ms, lambda: self._expire(entry))

    def _expire(self, entry: tuple[Asked, OnResponse]) -> None:
        if entry in self.awaited:
            self.fail(TIMED_OUT)

    def _deliver(self, entry: tuple[Asked, OnResponse], frame: bytes) -> None:
        target = self.cluster.member_at(self.port)
        if entry not in self.awaited or self.cluster.is_cut(self.source, target):
            return
        if not target.is_up or not target.listens(self.port):
            self.fail(REFUSED)
            return
        if self.context is None or self.life != target.lives:
            is_controller = self.port >= CONTROLLER_PORT
            self.context = ClientContext("CONTROLLER" if is_controller else "PLAINTEXT", "127.0.0.1:1", is_controller)
            self.life = target.lives
            target.wires.append(self)
        reply = target.dispatcher.handle(self.context, frame, 0, len(frame), self.cluster.now_ms)
        entry[0].reply = reply
        if reply.done:
            self._advance()
        else:
            reply.on_done = lambda finished: self._advance()

    def _advance(self) -> None:
        while self.awaited and self.awaited[0][0].reply.done:
            asked, answered = self.awaited.pop(0)
            self._tell_later(WIRE_MS, answered, asked.response)

    def _tell_later(self, delay_ms: int, answered: OnResponse, answer: Message | NoResponse) -> None:
        life = self.source.lives

        def tell() -> None:
            if not self.closed and self.source.is_up and self.source.lives == life:
                answered(answer, self.cluster.now_ms)

        self.cluster.schedule(delay_ms, tell)

    def fail(self, reason: int) -> None:
        awaited, self.awaited = self.awaited, []
        for _, answered in awaited:
            self._tell_later(0, answered, NoResponse(reason))

    def close(self) -> None:
        self.closed = True
        self.awaited.clear()


class Wires(Outbox):
    def __init__(self, cluster: Cluster, source: Member) -> None:
        self.cluster = cluster
        self.source = source
        self.opened: list[Wire] = []

    def open(self, purpose: str, host: str, port: int) -> Channel:
        wire = Wire(self.cluster, self.source, port, purpose)
        self.opened.append(wire)
        return wire


class Member:
    """One node and its disk; `roles` as in process.roles."""

    def __init__(self, cluster: Cluster, node_id: int, roles: str, settings: dict[str, str]) -> None:
        self.cluster = cluster
        self.node_id = node_id
        self.disk = SimDisk(node_id, cluster.schedule)
        listeners = []
        if "broker" in roles:
            listeners.append(f"PLAINTEXT://10.0.0.{node_id}:{CLIENT_PORT + node_id}")
        if "controller" in roles:
            listeners.append(f"CONTROLLER://10.0.0.{node_id}:{CONTROLLER_PORT + node_id}")
        self.values = {
            "process.roles": roles,
            "node.id": str(node_id),
            "listeners": ",".join(listeners),
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": cluster.voters,
            "log.dirs": "/data",
            **settings,
        }
        format_storage(self.values, CLUSTER, self.disk, FormatOptions(), cluster.now_ms)
        self.is_up = False
        self.lives = 0
        self.wires: list[Wire] = []
        self.fatal: list[str] = []

    def start(self) -> None:
        self.lives += 1
        self.is_up = True
        self.due_ms = NEVER_MS
        self.outbox = Wires(self.cluster, self)
        config = BrokerConfig(self.values, warn=False)
        seed = random.Random(1000 * self.node_id + self.lives)
        self.node = Node(config, self.disk, seed, seed.randbytes(16), outbox=self.outbox)
        self.node.on_fatal = self.fatal.append
        self.node.set_wake_up(self.wake_at)
        self.dispatcher = Dispatcher(self.node)
        self.context = ClientContext("PLAINTEXT", "127.0.0.1:5000")
        self.node.start(self.cluster.now_ms)
        self.poll(self.lives)

    def poll(self, life: int, due_ms: int = -1) -> None:
        if self.is_up and life == self.lives and due_ms in (-1, self.due_ms):
            self.due_ms = NEVER_MS
            self.wake_at(self.node.poll(self.cluster.now_ms))

    def wake_at(self, deadline_ms: int) -> None:
        life, due_ms = self.lives, max(deadline_ms, self.cluster.now_ms + 1)
        if due_ms < self.due_ms:
            self.due_ms = due_ms
            self.cluster.schedule(due_ms - self.cluster.now_ms, lambda: self.poll(life, due_ms))

    def listens(self, port: int) -> bool:
        return port >= CONTROLLER_PORT or self.node.is_ready

    def kill(self) -> None:
        """As kill -9: the disk keeps what was written, connections break."""
        self.is_up = False
        wires, self.wires = self.wires, []
        for wire in wires:
            wire.fail(CLOSED)
            if wire.context is not None:
                wire.context = None
        self.disk.process_crash()
        for other in self.cluster.members.values():
            for wire in [wire for wire in other.wires if wire.source is self]:
                other.wires.remove(wire)
                if wire.context is not None:
                    wire.context.closed(self.cluster.now_ms)

    # Asking as a client

    def send(self, request: Message, version: int, context: ClientContext | None = None) -> Asked:
        frame = frame_of(request, version)
        context = context if context is not None else self.context
        return Asked(request, version, self.dispatcher.handle(context, frame, 0, len(frame), self.cluster.now_ms))

    def ask(self, request: Message, version: int, context: ClientContext | None = None, limit_ms: int = 10_000) -> Any:
        asked = self.send(request, version, context)
        self.cluster.run_until(lambda: asked.reply.done, limit_ms)
        return asked.response

    def create(self, topic: str, partitions: int = 1, replicas: int = 3) -> int:
        wanted = CreatableTopic(name=topic, num_partitions=partitions, replication_factor=replicas)
        return int(self.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=5000), 5).topics[0].error_code)


class Cluster:
    """`roles` by node id; three nodes that are both by default."""

    def __init__(self, roles: dict[int, str] | None = None, **settings: str) -> None:
        self.now_ms = 1_700_000_000_000
        self._queue: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0
        self._cut: set[int] = set()
        roles = roles if roles is not None else {1: BOTH, 2: BOTH, 3: BOTH}
        voters = [node_id for node_id, role in roles.items() if "controller" in role]
        self.voters = ",".join(f"{node_id}@10.0.0.{node_id}:{CONTROLLER_PORT + node_id}" for node_id in voters)
        own = {key.replace("_", "."): value for key, value in settings.items()}
        self.members = {node_id: Member(self, node_id, role, own) for node_id, role in roles.items()}

    def start(self) -> Cluster:
        for member in self.members.values():
            member.start()
        self.run_until(lambda: all(member.node.is_ready for member in self.up()))
        return self

    def __getitem__(self, node_id: int) -> Member:
        return self.members[node_id]

    def up(self) -> list[Member]:
        return [member for member in self.members.values() if member.is_up]

    def reachable(self) -> list[Member]:
        return [member for member in self.up() if member.node_id not in self._cut]

    def active(self) -> Member:
        """The active controller among those that are up and can be heard."""
        found = [member for member in self.reachable() if member.node.metadata.is_active_controller]
        assert len(found) == 1, f"{len(found)} active controllers"
        return found[0]

    def has_active(self) -> bool:
        return any(member.node.metadata.is_active_controller for member in self.reachable())

    def member_at(self, port: int) -> Member:
        return self.members[port % 100]

    def cut_off(self, member: Member) -> None:
        """Nothing goes from or to it any more, and nobody is told."""
        self._cut.add(member.node_id)

    def heal(self) -> None:
        self._cut.clear()

    def is_cut(self, source: Member, target: Member) -> bool:
        return source is not target and bool(self._cut & {source.node_id, target.node_id})

    # Time

    def schedule(self, delay_ms: int, action: Callable[[], object]) -> None:
        self._count += 1
        heappush(self._queue, (self.now_ms + max(0, delay_ms), self._count, action))

    def run_until(self, condition: Callable[[], bool], limit_ms: int = 30_000) -> int:
        """Runs until it holds; returns how long that took."""
        start_ms = self.now_ms
        while not condition():
            at_ms, _, action = heappop(self._queue)
            assert at_ms - start_ms <= limit_ms, "it did not happen"
            self.now_ms = max(self.now_ms, at_ms)
            action()
        return self.now_ms - start_ms

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        self.schedule(duration_ms, lambda: None)
        self.run_until(lambda: self.now_ms >= end_ms, duration_ms + 1)
