"""Measures what rights cost: CPU time of a produce and of a description of all topics, with and without ACLs.

    python bench/rights.py [--acls 1000,100000] [--turns 40] [--requests 500] [--topics 10000] [--markdown]

Requests go through the dispatcher and the handlers of whole nodes in this process, on disks in memory: no socket and no
thread takes part, so what is left is what the node's own thread computes. Each kind of rights has a node of its own,
and one node has no authorizer at all. They take turns: a slice of requests each, the one without an authorizer right
beside the other; the figure is the median of the differences, and the quarters beside it say how far to believe it. Who
asks is no super user and has one ACL of its own, besides those of the row.

produce    one Produce with one record to one topic:
           "others'" ACLs are those of other users about other topics, literal and prefixed in turn;
           "on Topic:*" are those of as many other users about all topics;
           "own" are those of who asks about other topics; "own prefixes" have ten different lengths;
           "after a change": an ACL came or went before every single request.
describe   Metadata of all topics for somebody who may see ten of them, for one topic.
change     what one ACL that comes or goes costs: the image of a node, and its authorizer.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from typing import Any, Final

from moldau.api.dispatch import Dispatcher
from moldau.build_info import is_compiled
from moldau.config.broker_config import BrokerConfig
from moldau.config.unserved import STANDARD_AUTHORIZER
from moldau.metadata.acl_map import AclMap
from moldau.metadata.delta import MetadataDelta
from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.protocol import api_keys
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.primitives import Message, Writer
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.stored.metadata_records import AccessControlEntryRecord, PartitionRecord, TopicRecord
from moldau.records.builder import BatchBuilder
from moldau.records.clocks import WallClock
from moldau.security import authorizer
from moldau.security.rights import ALLOW, DESCRIBE, LITERAL, PREFIXED, READ, TOPIC, WRITE
from moldau.server.storage_format import FormatOptions, format_storage
from moldau.sim.kernel.disk import SimDisk

CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
ADMIN: Final = "User:admin"
ANNA: Final = "User:anna"
STEP_MS: Final = 20
TOPICS_TO_SEE: Final = 10
CHANGES: Final = 200

Entry = tuple[str, int, str, int]
"""Name, pattern, principal and operation of an ALLOW of topics."""


class World:
    """A node on a disk in memory, asked through its dispatcher as a connection would."""

    def __init__(self, entries: list[Entry] | None, topics: int = 0) -> None:
        """No entries at all: no authorizer."""
        self.now_ms = 1_700_000_000_000
        self.events: list[tuple[int, int, Callable[[], None]]] = []
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093",
            "log.dirs": "/data",
            "super.users": ADMIN,
        }
        if entries is not None:
            settings["authorizer.class.name"] = STANDARD_AUTHORIZER
        disk = SimDisk(1, self._schedule)
        format_storage(settings, CLUSTER_ID, disk, FormatOptions(), self.now_ms)
        wall = WallClock()
        wall.note(self.now_ms, self.now_ms, self.now_ms)
        self.node = Node(BrokerConfig(settings, warn=False), disk, random.Random(1), bytes(16), wall=wall)
        self._dispatcher = Dispatcher(self.node)
        self.node.start(self.now_ms)
        self._run(1000)
        self.context = ClientContext("PLAINTEXT", "10.0.0.1:5000")
        self.context.principal = ADMIN
        self._create("orders")
        self._know(topics)
        self.context.principal = ANNA
        if self.node.rights is not None:
            records = [record(number, entry) for number, entry in enumerate(entries or [])]
            self.node.rights.authorizer.apply({one.id: one for one in records})

    def _schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.events.append((self.now_ms + delay_ms, len(self.events), action))

    def _run(self, duration_ms: int) -> None:
        for _ in range(0, duration_ms, STEP_MS):
            self.now_ms += STEP_MS
            due = [event for event in self.events if event[0] <= self.now_ms]
            self.events = [event for event in self.events if event[0] > self.now_ms]
            for _, _, action in sorted(due, key=lambda event: event[:2]):
                action()
            self.node.poll(self.now_ms)

    def _create(self, name: str) -> None:
        self.send(frame_of(CreateTopicsRequest(topics=[CreatableTopic(name, 1, 1)], timeout_ms=60_000), 7))
        self._run(200)
        assert self.node.replicas.find(name, 0) is not None, f"the topic {name} was not created"

    def _know(self, topics: int) -> None:
        """The metadata has them; there are no logs of them."""
        image = self.node.image
        delta = MetadataDelta(image)
        for number in range(topics):
            topic_id = (number + 1000).to_bytes(16, "big")
            delta.replay(TopicRecord(f"topic-{number:05}", topic_id))
            delta.replay(PartitionRecord(0, topic_id, [1], [1], leader=1))
        self.node.image = delta.apply(image.offset, image.epoch, image.timestamp_ms)

    def send(self, frame: bytes) -> Any:
        return self._dispatcher.handle(self.context, frame, 0, len(frame), self.now_ms)

    def change_rights(self) -> None:
        """As if an ACL had come or gone."""
        assert self.node.rights is not None
        self.node.rights.authorizer.generation += 1


def frame_of(request: Message, version: int) -> bytes:
    key = type(request).API_KEY
    writer = Writer()
    RequestHeader(key, version, 7, "bench").encode(writer, api_keys.request_header_version(key, version))
    request.encode(writer, version)
    return writer.to_bytes()


def produce_frame(now_ms: int) -> bytes:
    builder = BatchBuilder()
    builder.append(now_ms, None, bytes(100), [])
    data = builder.build()
    partition = PartitionProduceData(index=0, records=MemoryRecords(data, 0, len(data)))
    topic = TopicProduceData(name="orders", partition_data=[partition])
    return frame_of(ProduceRequest(acks=1, timeout_ms=1000, topic_data=[topic]), 9)


# ACLs


def record(number: int, entry: Entry) -> AccessControlEntryRecord:
    name, pattern, principal, operation = entry
    return AccessControlEntryRecord(number.to_bytes(16, "big"), TOPIC, name, pattern, principal, "*", operation, ALLOW)


def of_others(count: int) -> list[Entry]:
    patterns = (LITERAL, PREFIXED)
    return [(f"topic-{number:05}", patterns[number % 2], f"User:{number % 1000}", WRITE) for number in range(count)]


OWN: Final[list[Entry]] = [("orders", LITERAL, ANNA, WRITE)]


def kinds(counts: list[int]) -> list[tuple[str, list[Entry], bool]]:
    """Title, entries, and whether an ACL changes before every request."""
    found = [("one ACL", OWN, False), ("one ACL, after a change", OWN, True)]
    for count in counts:
        others = of_others(count)
        found += [
            (f"{count:,} ACLs of others", OWN + others, False),
            (f"{count:,} ACLs of others, after a change", OWN + others, True),
        ]
    found += [
        ("5,000 ACLs of others on Topic:*", OWN + [("*", LITERAL, f"User:{n}", WRITE) for n in range(5000)], False),
        ("1,000 own ACLs", OWN + [(f"topic-{n}", LITERAL, ANNA, WRITE) for n in range(1000)], False),
        ("1,000 own prefixes", OWN + [(f"{n:03}" + "x" * (n % 10), PREFIXED, ANNA, WRITE) for n in range(1000)], False),
    ]
    return found


# Measuring


def slice_us(work: Callable[[], None], count: int) -> float:
    """CPU time for one of `count`."""
    began = time.process_time_ns()
    work()
    return (time.process_time_ns() - began) / count / 1000


def in_turn(plain: Callable[[], None], with_rights: Callable[[], None], count: int, turns: int) -> list[float]:
    """How much more the second costs, turn by turn; who comes first changes."""
    for work in (plain, with_rights):
        work()
    found = []
    for turn in range(turns):
        if turn % 2:
            before, more = slice_us(plain, count), slice_us(with_rights, count)
        else:
            more, before = slice_us(with_rights, count), slice_us(plain, count)
        found.append(more - before)
    return sorted(found)


def requests(world: World, frame: bytes, count: int, changes: bool = False) -> Callable[[], None]:
    def work() -> None:
        for _ in range(count):
            if changes:
                world.change_rights()
            assert world.send(frame).done

    return work


def measure_produce(table: Table, counts: list[int], turns: int, count: int) -> None:
    plain = World(None)
    frame = produce_frame(plain.now_ms)
    alone = requests(plain, frame, count)
    alone()
    table.add("produce: no authorizer", sorted(slice_us(alone, count) for _ in range(turns)))
    for title, entries, changes in kinds(counts):
        world = World(entries)
        rights = world.node.rights
        assert rights is not None
        more = in_turn(alone, requests(world, frame, count, changes), count, turns)
        assert rights.denied.total == 0 and rights.allowed.total > turns * count, "it was not allowed"
        table.add(f"produce: {title}, more", more)


def measure_describe(table: Table, counts: list[int], turns: int, topics: int) -> None:
    frame = frame_of(MetadataRequest(topics=None), 12)
    plain = World(None, topics)
    seen: list[Entry] = [(f"topic-{number:05}", LITERAL, ANNA, DESCRIBE) for number in range(TOPICS_TO_SEE)]
    for count in counts:
        world = World(seen + of_others(count), topics)
        more = in_turn(requests(plain, frame, 1), requests(world, frame, 1), topics, turns)
        alone = sorted(slice_us(requests(world, frame, 1), topics) for _ in range(turns))
        table.add(f"describe: {count:,} ACLs of others, a topic of {topics:,}", alone)
        table.add("describe: the same, more than without an authorizer", more)


def measure_change(table: Table, counts: list[int], turns: int) -> None:
    for count in counts:
        records = [record(number, entry) for number, entry in enumerate(of_others(count))]
        acls = AclMap().with_changes({one.id: one for one in records})
        rights = authorizer.Authorizer(frozenset(), False)
        rights.apply({one.id: one for one in records})
        new = record(count, ("new", PREFIXED, "User:new", READ))

        def image(acls: AclMap = acls, new: AccessControlEntryRecord = new) -> None:
            for _ in range(CHANGES // 2):
                acls.with_changes({new.id: new}).with_changes({new.id: None})

        def apply(rights: authorizer.Authorizer = rights, new: AccessControlEntryRecord = new) -> None:
            for _ in range(CHANGES // 2):
                rights.apply({new.id: new})
                rights.apply({new.id: None})

        for title, work in (("image", image), ("authorizer", apply)):
            table.add(f"change: one of {count:,} ACLs, {title}", sorted(slice_us(work, CHANGES) for _ in range(turns)))


class Table:
    """Prints each figure when it is there."""

    def __init__(self, is_markdown: bool) -> None:
        self._is_markdown = is_markdown
        heading = f"µs of CPU, {'compiled' if is_compiled() else 'interpreted'}"
        if is_markdown:
            print(f"| {heading} | median | quarters |\n|---|---|---|")
        else:
            print(f"{heading:<70}{'median':>10}{'quarters':>20}")

    def add(self, title: str, figures: list[float]) -> None:
        """`figures` in ascending order."""
        median = statistics.median(figures)
        lower, upper = figures[len(figures) // 4], figures[len(figures) * 3 // 4]
        if self._is_markdown:
            print(f"| {title} | {median:.2f} | {lower:.2f} to {upper:.2f} |", flush=True)
        else:
            print(f"{title:<70}{median:>10.2f}{lower:>10.2f}{upper:>10.2f}", flush=True)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default="produce,describe,change")
    parser.add_argument("--acls", default="1000,100000", help="how many ACLs others have, one row each")
    parser.add_argument("--turns", type=int, default=40, help="pairs of slices for each figure")
    parser.add_argument("--requests", type=int, default=500, help="requests of a slice")
    parser.add_argument("--topics", type=int, default=10_000, help="topics of the row describe")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def main() -> None:
    arguments = options()
    table = Table(arguments.markdown)
    counts = [int(count) for count in arguments.acls.split(",")]
    rows = {
        "produce": lambda: measure_produce(table, counts, arguments.turns, arguments.requests),
        "describe": lambda: measure_describe(table, counts, max(4, arguments.turns // 4), arguments.topics),
        "change": lambda: measure_change(table, counts, arguments.turns),
    }
    for row in arguments.rows.split(","):
        rows[row]()


if __name__ == "__main__":
    main()
