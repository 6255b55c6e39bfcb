"""Three metadata nodes with a static quorum, joined by the wire form of their messages."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.controller.controller import Controller
from moldau.controller.result import Result
from moldau.node.metadata_node import MetadataNode
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import describe_quorum_request as quorum
from moldau.protocol.messages import incremental_alter_configs_request as configs
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.raft import messages as m
from moldau.raft.ready import Outbound
from moldau.raft.state import ReplicaKey
from moldau.raft.wire_client import reply_from_wire, request_to_wire
from moldau.server.storage_format import FormatOptions, format_storage
from moldau.sim.kernel.disk import SimDisk

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
BROKER = 4
STUCK_MS = 3_600_000


def over_the_wire(message: Message) -> Message:
    """The message as the other side decodes it, in the highest version."""
    writer = Writer()
    message.encode(writer, message.HIGHEST_VERSION)
    return type(message).decode(Reader(writer.to_bytes()), message.HIGHEST_VERSION)


class Trio:
    numbers: tuple[int, ...] = (1, 2, 3)

    def __init__(self, options: FormatOptions | None = None) -> None:
        self.now_ms = 1_700_000_000_000
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        self.count = 0
        self.down: set[int] = set()
        self.nodes: dict[int, MetadataNode] = {}
        self.disks: dict[int, SimDisk] = {}
        for number in self.numbers:
            values = self.settings(number)
            disk = SimDisk(number, self.schedule)
            format_storage(values, CLUSTER, disk, options or FormatOptions(), self.now_ms)
            self.disks[number] = disk
            self.nodes[number] = self.make(number, BrokerConfig(values, warn=False))
        for node in self.nodes.values():
            node.start(self.now_ms)

    def settings(self, number: int) -> dict[str, str]:
        return {
            "process.roles": "controller",
            "node.id": str(number),
            "listeners": f"CONTROLLER://127.0.0.1:{9090 + number}",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9091,2@127.0.0.1:9092,3@127.0.0.1:9093",
            "log.dirs": "/data",
        }

    def make(self, number: int, config: BrokerConfig) -> MetadataNode:
        node = MetadataNode(config, self.disks[number], random.Random(number), bytes([number]) * 16)
        node.send = partial(self.send, number)
        return node

    def restart(self, *numbers: int) -> None:
        """What was under way to and from them is lost."""
        for number in numbers:
            self.nodes[number].stop(self.now_ms)
            self.nodes[number] = self.make(number, self.nodes[number].config)
        for number in numbers:
            self.nodes[number].start(self.now_ms)

    def schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.count += 1
        self.events.append((self.now_ms + delay_ms, self.count, action))

    def send(self, source: int, outbound: Outbound) -> None:
        self.schedule(1, lambda: self.arrive(source, outbound))

    def arrive(self, source: int, outbound: Outbound) -> None:
        if {source, outbound.destination} & self.down:
            self.nodes[source].on_raft_failure(outbound, self.now_ms)
            return
        request = over_the_wire(request_to_wire(outbound.request, CLUSTER))

        def respond(response: Message) -> None:
            reply = reply_from_wire(over_the_wire(response))
            assert reply is not None
            if source not in self.down:
                self.schedule(1, lambda: self.hear(node, outbound, reply))

        node = self.nodes[source]
        self.nodes[outbound.destination].handle_raft_request(
            request.API_KEY, request, "CONTROLLER", self.now_ms, respond
        )

    def hear(self, node: MetadataNode, outbound: Outbound, reply: Any) -> None:
        if node in self.nodes.values():
            node.on_raft_reply(outbound, reply, self.now_ms)

    def run(self, until: Callable[[], bool], limit_ms: int = 30_000) -> None:
        end_ms = self.now_ms + limit_ms
        while not until():
            deadlines = []
            for number, node in self.nodes.items():
                if number not in self.down:
                    node.tick(self.now_ms)
                    deadlines.append(node.poll(self.now_ms))
            self.now_ms = max(self.now_ms + 1, min([*deadlines, *(event[0] for event in self.events), end_ms]))
            assert self.now_ms < end_ms, "it did not happen"
            due = sorted(event for event in self.events if event[0] <= self.now_ms)
            self.events = [event for event in self.events if event[0] > self.now_ms]
            for _, _, action in due:
                action()

    def active(self) -> MetadataNode | None:
        nodes = [n for number, n in self.nodes.items() if number not in self.down and n.is_active_controller]
        return max(nodes, key=lambda node: node.leader_epoch, default=None)

    def set_group_config(self, name: str) -> Any:
        change = configs.AlterableConfig("consumer.session.timeout.ms", 0, "50000")
        request = configs.IncrementalAlterConfigsRequest([configs.AlterConfigsResource(32, name, [change])])
        return self.decide(lambda controller: controller.incremental_alter_configs(request, self.now_ms))

    def decide(self, verb: Callable[[Controller], Result]) -> Any:
        """What the active controller answers once it is committed."""
        node = self.active()
        assert node is not None
        answers: list[Any] = []
        node.submit(verb, lambda answer, now_ms: answers.append(answer), self.now_ms)
        self.run(lambda: bool(answers))
        return answers[0]


def test_a_change_reaches_every_node_and_survives_the_active_controller() -> None:
    trio = Trio()
    trio.run(lambda: trio.active() is not None)
    assert trio.set_group_config("a").responses[0].error_code == 0
    trio.run(lambda: all((32, "a") in node.image.configs for node in trio.nodes.values()))
    first = trio.active()
    assert first is not None
    trio.down.add(first.node_id)
    trio.run(lambda: trio.active() is not None)
    second = trio.active()
    assert second is not None and second.leader_epoch > first.leader_epoch
    assert trio.set_group_config("b").responses[0].error_code == 0
    trio.down.clear()
    trio.run(lambda: (32, "b") in first.image.configs)
    assert not first.is_active_controller
    answers: list[Any] = []
    first.submit(lambda controller: controller.no_op(), lambda answer, now_ms: answers.append(answer), trio.now_ms)
    assert isinstance(answers[0], KafkaError) and answers[0].code == errors.NOT_CONTROLLER


def test_without_a_majority_nothing_is_committed_and_the_leader_steps_down() -> None:
    trio = Trio()
    trio.run(lambda: trio.active() is not None)
    leader = trio.active()
    assert leader is not None
    trio.run(lambda: leader.high_watermark > 5)
    trio.down |= {1, 2, 3} - {leader.node_id}
    answers: list[Any] = []
    leader.submit(lambda controller: controller.no_op(), lambda answer, now_ms: answers.append(answer), trio.now_ms)
    trio.run(lambda: bool(answers))
    assert isinstance(answers[0], KafkaError)
    assert not leader.is_active_controller


class TrioAndBroker(Trio):
    """A fourth node that only observes the quorum."""

    numbers = (1, 2, 3, 4)

    def settings(self, number: int) -> dict[str, str]:
        if number != BROKER:
            return super().settings(number)
        return super().settings(number) | {"process.roles": "broker", "listeners": "PLAINTEXT://127.0.0.1:9094"}

    def has_applied(self, node: MetadataNode, group: str) -> bool:
        return (32, group) in node.image.configs

    def was_fetched(self, node: MetadataNode) -> bool:
        """Whether the leader has heard that this observer has all of the log."""
        leader = self.active()
        assert leader is not None
        request = quorum.DescribeQuorumRequest([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])])
        described = leader.describe_quorum(request, 2, self.now_ms).topics[0].partitions[0]
        ends = {one.replica_id: one.log_end_offset for one in described.observers}
        return ends.get(node.node_id) == leader.log.end_offset()


def test_a_broker_fetches_and_applies_metadata_while_its_own_sync_does_not_end() -> None:
    """Nobody counts what it has on its disk, so neither its fetches nor its image wait for that."""
    trio = TrioAndBroker()
    broker = trio.nodes[BROKER]
    trio.run(lambda: trio.active() is not None and broker.is_caught_up)
    trio.run(lambda: broker.raft.synced_offset == broker.log.end_offset())
    trio.disks[BROKER].sync_delay_ms = (STUCK_MS, STUCK_MS)
    synced_offset = broker.raft.synced_offset
    for number in range(5):
        name = f"group-{number}"
        assert trio.set_group_config(name).responses[0].error_code == 0
        trio.run(partial(trio.has_applied, broker, name), limit_ms=1000)
        trio.run(partial(trio.was_fetched, broker), limit_ms=1000)
    assert broker.raft.synced_offset == synced_offset <= broker.log.end_offset() - 5, "its disk has none of them"


class TrioWithTwoListeners(Trio):
    def settings(self, number: int) -> dict[str, str]:
        return super().settings(number) | {
            "listeners": f"CONTROLLER://127.0.0.1:{9090 + number},OTHER://127.0.0.1:{9190 + number}",
            "controller.listener.names": "CONTROLLER,OTHER",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,OTHER:PLAINTEXT",
        }


def test_who_has_restarted_tells_the_leader_on_the_listener_it_was_asked_by() -> None:
    """The leader has told its endpoints before, and the settings name only those of the first listener."""
    trio = TrioWithTwoListeners()
    trio.run(lambda: trio.active() is not None)
    leader = trio.active()
    assert leader is not None
    follower = leader.node_id % 3 + 1
    trio.run(lambda: trio.nodes[follower].is_caught_up)
    trio.restart(follower)
    node = trio.nodes[follower]
    trio.run(lambda: node.is_caught_up and leader.node_id in node.image.controllers)
    assert node.leader_epoch == leader.leader_epoch and node.raft.address_for(leader.node_id, "OTHER") is None

    def ask(listener: str) -> list[tuple[str, int]]:
        asked = m.FetchRequest(node.leader_epoch, ReplicaKey(9, bytes(16)), 0, 0, 0, 1024, 0)
        request = over_the_wire(request_to_wire(asked, CLUSTER))
        answers: list[Any] = []
        node.handle_raft_request(request.API_KEY, request, listener, trio.now_ms, answers.append)
        return [(endpoint.host, endpoint.port) for endpoint in answers[0].node_endpoints]

    assert ask("CONTROLLER") == [("127.0.0.1", 9090 + leader.node_id)]
    assert ask("OTHER") == [("127.0.0.1", 9190 + leader.node_id)]
    assert ask("UNKNOWN") == []
