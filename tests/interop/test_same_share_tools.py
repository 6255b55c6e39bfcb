"""Kafka's tool for share groups and ours of the same name, against the same broker: same output, errors, exit codes.

The broker is Apache Kafka in the first round and Moldau in the second. Lines with `%` change something, so both tools
run them on groups of their own; all other lines look at the same groups.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moldau.cli.root import root
from moldau.client.admin import Admin, NewTopic
from moldau.client.producer import Producer
from moldau.client.results import TopicPartition
from moldau.protocol.messages.share_group_heartbeat_request import ShareGroupHeartbeatRequest
from tests.interop.conftest import NodeFactory, new_node, require_kafka, stop_cleanly
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import RECENT_MS, Node, free_ports
from tests.interop.test_kafka_tools_same import OURS, REAL, Done, RealTools
from tests.interop.test_same_group_tools import LONG_TOPIC, RECENT, compare, sorted_lines
from tests.interop.wire import Wire
from tests.pace import patience

confluent: Any = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

SETTLE_SECONDS = patience(60)
SETTINGS = {
    "offsets.topic.num.partitions": "5",
    "share.coordinator.state.topic.num.partitions": "5",
    # Members that join and never say anything again.
    "group.share.max.session.timeout.ms": "600000",
    "group.share.session.timeout.ms": "600000",
}
MEMBERS = ("AAAAAAAAAAAAAAAAAAAAAg", "BBBBBBBBBBBBBBBBBBBBBg", "zzzzzzzzzzzzzzzzzzzzzQ", "m0000000000000000000AA")

USAGE = """
alone --list
alone --version
--list --describe
--list --state bogus
--list --members
--list --offsets
--list --verbose
--list --group a
--list --topic a
--describe
--describe --group a --all-groups
--describe --group a --members --offsets
--describe --group a --members --state --offsets
--describe --group a --state foo
--describe --group a --topic b
--describe --group a --timeout x
--members
--delete
--delete --group a --all-groups
--delete --group a --topic b
--delete --group a --state
--delete --group a --verbose
--delete-offsets
--delete-offsets --group a
--delete-offsets --topic a
--delete-offsets --all-groups --topic a
--delete-offsets --group a --topic b --all-topics
--delete-offsets --group a --all-topics
--delete-offsets --group a --group b --topic c
--delete-offsets --group a --topic b --dry-run
--reset-offsets
--reset-offsets --group a
--reset-offsets --group a --dry-run --execute
--reset-offsets --group a --dry-run
--reset-offsets --group a --to-latest
--reset-offsets --group a --topic orders
--reset-offsets --group a --topic orders --dry-run
--reset-offsets --group a --topic orders --to-latest
--reset-offsets --group a --topic orders --all-topics --to-latest --dry-run
--reset-offsets --group a --topic orders --to-latest --to-earliest --dry-run
--reset-offsets --group a --topic orders --to-latest --to-datetime x --dry-run
--reset-offsets --all-groups --topic orders --to-latest --dry-run
--reset-offsets --group a --group b --topic orders --to-latest --dry-run
--reset-offsets --group a --all-groups --all-topics --to-latest --dry-run
--reset-offsets --delete --group a
--list --timeout x
--list --timeout 9999999999999999999999
alone --list --bootstrap-server nonsense
alone --list --bootstrap-server 127.0.0.1:x
--no-such-flag
--group
--list --command-config nope.properties
--verbose
--timeout 5
--list --delete --group a
--list --delete --all-groups
--describe --delete --all-groups
--delete --delete-offsets --group a --topic b
--reset-offsets --dry-run
--reset-offsets --dry-run --topic x
--reset-offsets --dry-run --topic x --all-groups --to-latest
--reset-offsets --group a --dry-run --to-latest --to-earliest
--reset-offsets --group a --all-topics --dry-run --to-latest --to-earliest --to-datetime x
--reset-offsets --group a --all-topics --dry-run --to-earliest --to-datetime x
--reset-offsets --list --all-topics --group a --dry-run --to-earliest
--delete --topic b
--delete --group a --all-groups --topic b
--delete --all-topics --group a
--delete-offsets --group a --all-groups --topic b
--describe --all-groups --topic b
--reset-offsets --group a --all-topics --dry-run --to-datetime x --to-datetime y
--list --state a --state b
--reset-offsets --group idle --topic '' --dry-run --to-latest
--delete-offsets --group idle --topic ''
--list --timeout 0
--list --timeout -5
"""

LISTS = """
--list --state=
--list --state dead,Stable
--list --all-groups
--list --all-topics
--list --to-latest
--list --dry-run
--list extra
--list --state ,
--list
--list --state
--list --state stable
--list --state Empty,stable
"""

MISSING = """
--describe --group nope
--describe --group nope --members
--describe --group nope --state --verbose
--describe --group nope --group nada
--describe --group idle --group nada
--describe --group ''
--delete --group nope
--delete --group nope --group nada
--delete --group zz --group b --group idle-not --group aaa --group plain
--delete --group ''
--delete-offsets --group nope --topic nope
--delete-offsets --group nope --topic orders --topic pay
--delete-offsets --group '' --topic pay
--delete-offsets --group idle --topic nope
--delete-offsets --group idle --topic empty
--delete-offsets --group idle --topic orders:0
--delete-offsets --group live --topic orders
--reset-offsets --group nope --topic nope --dry-run --to-latest
--reset-offsets --group nope --topic nope:0 --dry-run --to-latest
--reset-offsets --group nope --topic orders --dry-run --to-latest
--reset-offsets --group nope --all-topics --to-latest --dry-run
--reset-offsets --group idle --topic nope --dry-run --to-latest
--reset-offsets --group idle --topic nope:0 --dry-run --to-latest
--reset-offsets --group idle --topic orders:9 --dry-run --to-latest
--reset-offsets --group idle --topic nope: --dry-run --to-latest
--reset-offsets --group idle --topic a:b:c --dry-run --to-latest
--reset-offsets --group idle --topic a:x,1 --dry-run --to-latest
--reset-offsets --group idle --topic orders --to-datetime x --dry-run
--reset-offsets --group idle --topic orders --to-datetime 2026-01-01Txx --dry-run
--reset-offsets --group live --topic orders --to-latest --dry-run
--reset-offsets --group live --all-topics --to-latest --execute
--reset-offsets --group '' --topic orders --to-latest --dry-run
--describe --group plain
--delete --group plain
--delete-offsets --group plain --topic orders
--reset-offsets --group plain --topic orders --to-latest --dry-run
--reset-offsets --group plain --topic orders --to-latest --execute
--reset-offsets --group plain --all-topics --to-latest --execute
"""

DESCRIBE = """
--describe --group idle
--describe --group idle --verbose
--describe --group idle --members
--describe --group idle --members --verbose
--describe --group idle --state
--describe --group idle --state --verbose
--describe --group live
--describe --group live --offsets
--describe --group live --verbose
--describe --group live --members
--describe --group live --members --verbose
--describe --group live --state
--describe --group live --state --verbose
--describe --group live-new --verbose
--describe --group live-lost
--describe --group live-lost --members
--describe --group live-lost --members --verbose
--describe --group live-lost --state
--describe --group live --group idle
--describe --group idle --group idle
--describe --all-groups
--describe --all-groups --members
--describe --all-groups --state --verbose
--describe --group live-wide --members --verbose
--describe --group live-wide
"""

RESET = """
--reset-offsets --group idle --all-topics --to-earliest --dry-run
--reset-offsets --group idle --all-topics --to-latest --dry-run
--reset-offsets --group idle --topic pay --topic orders --to-latest --dry-run
--reset-offsets --group idle --topic pay --topic orders --to-earliest --dry-run
--reset-offsets --group idle --topic pay --topic orders --to-datetime 2020-01-01T00:00:00.000 --dry-run
--reset-offsets --group idle --all-topics --to-datetime 2020-01-01T00:00:00.000 --dry-run
--reset-offsets --group idle --topic pay:-1 --to-latest --dry-run
--reset-offsets --group idle --topic orders --to-datetime RECENT --dry-run
"""

CHANGE = """
--describe --group %-a-group-with-a-very-long-name
--describe --group %-a-group-with-a-very-long-name --members
--describe --group %-a-group-with-a-very-long-name --state --verbose
--reset-offsets --group %-g1 --topic orders --to-earliest --dry-run
--reset-offsets --group %-g1 --topic orders:0,2 --to-latest --execute
--reset-offsets --group %-g1 --topic orders:0,2 --topic pay --to-latest --execute
--reset-offsets --group %-g1 --all-topics --to-earliest --execute
--describe --group %-g1
--reset-offsets --group %-g2 --topic orders --to-datetime 2030-01-01T00:00:00.000 --execute
--reset-offsets --group %-g2 --topic empty --to-latest --execute
--reset-offsets --group %-new --topic orders --to-latest --execute
--describe --group %-new
--reset-offsets --group %-a-group-with-a-very-long-name --all-topics --to-latest --dry-run
--delete-offsets --group %-g3 --topic orders --topic nope --topic pay
--delete-offsets --group %-g3 --topic orders
--delete-offsets --group %-a-group-with-a-very-long-name --topic a-topic-with-a-rather-long-name
--describe --group %-g3
--describe --group %-g3 --state
--delete-offsets --group %-g4 --topic orders --topic orders
--delete --group %-g4 --group nope
--delete --group %-busy --group %-g5
--delete --group %-busy
--delete --group %-g6 --group %-g7
--delete --group %-g1 --group %-g1
--delete --group %-g1
"""

GROUPS = """
--list
--list --share
--list --group-type share
--list --protocol share --group-type Share
--list --consumer
"""

CONFIGS = """
--alter --group %g --add-config share.auto.offset.reset=earliest,share.isolation.level=read_committed
--describe --group %g
--describe --entity-type groups --entity-name %g
--describe --group %g --all
--alter --group %g --add-config share.auto.offset.reset=nonsense
--alter --group %g --add-config share.auto.offset.reset=by_duration:PT1H
--alter --group %g --add-config share.record.lock.duration.ms=1
--alter --group %g --add-config share.record.lock.duration.ms=20000,share.session.timeout.ms=50000
--alter --group %g --add-config share.session.timeout.ms=1
--alter --group %g --add-config share.delivery.count.limit=3,share.partition.max.record.locks=1000
--alter --group %g --add-config share.delivery.count.limit=1
--alter --group %g --add-config share.renew.acknowledge.enable=false
--alter --group %g --add-config share.no.such=1
--describe --group %g
--alter --group %g --delete-config share.auto.offset.reset
--describe --group %g
--describe --group nope
"""

NOBODY = """
alone --list --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --list --state --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --describe --group a --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --describe --all-groups --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --reset-offsets --group a --topic b --to-latest --dry-run --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --delete --group a --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --delete --all-groups --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --delete-offsets --group a --topic b --bootstrap-server 127.0.0.1:1 --timeout 1000
"""


@pytest.fixture(scope="module")
def real(kafka_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTools]:
    tools = RealTools(tmp_path_factory.mktemp("tools"))
    yield tools
    tools.close()


@pytest.fixture(scope="module", params=["kafka", "moldau"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of its own, with topics, share groups without members, and some with."""
    require_kafka()
    folder: Path = tmp_path_factory.mktemp(request.param)
    node: Node = KafkaNode(folder, SETTINGS) if request.param == "kafka" else new_node(folder, SETTINGS)
    if request.param == "kafka":
        node.format()
    node.start()
    wires: list[Wire] = []
    try:
        make_groups(node, wires)
        yield node
    finally:
        for wire in wires:
            wire.socket.close()
        stop_cleanly(node)


def make_groups(node: Node, wires: list[Wire]) -> None:
    with Admin(node.bootstrap) as admin:
        sizes = {"orders": 4, "pay": 2, "empty": 1, LONG_TOPIC: 1}
        for made in admin.create_topics([NewTopic(name, count, 1) for name, count in sizes.items()]).values():
            made.get()
        make_records(node.bootstrap)
        some = {("orders", 0): 3, ("orders", 1): 5, ("orders", 2): 0, ("pay", 1): 2}
        start(admin, "idle", some)
        admin.alter_consumer_group_offsets("plain", {TopicPartition("orders", 0): 1})[TopicPartition("orders", 0)].get()
        start(admin, "live", {("orders", 0): 3, ("orders", 1): 13})
        for prefix in (REAL, OURS):
            for number in range(1, 8):
                start(admin, f"{prefix}-g{number}", some)
            start(admin, f"{prefix}-a-group-with-a-very-long-name", {(LONG_TOPIC, 0): 2})
        wires.append(join(node, "live", MEMBERS[0], ["orders", "pay"], "w1"))
        wires.append(join(node, "live", MEMBERS[1], ["orders"], "a-client-with-a-long-name"))
        for index, member_id in enumerate(MEMBERS):
            wires.append(join(node, "live-wide", member_id, ["orders", "pay"], f"c{index}", 6 if index == 0 else 1))
        wires.append(join(node, "live-new", MEMBERS[0], ["orders"], "w1"))
        wires.append(join(node, "live-lost", MEMBERS[0], ["not-there"], "w1"))
        for prefix in (REAL, OURS):
            wires.append(join(node, f"{prefix}-busy", MEMBERS[0], ["orders"], "w1"))
        settle(admin)


def make_records(bootstrap: str) -> None:
    with Producer(bootstrap) as producer:
        for number in range(40):
            moment_ms = RECENT_MS + number * 1000
            producer.send("orders", str(number).encode(), partition=number % 3, timestamp_ms=moment_ms)
        for number in range(10):
            producer.send("pay", str(number).encode(), partition=number % 2)
        for number in range(3):
            producer.send(LONG_TOPIC, str(number).encode())
        producer.flush()


def start(admin: Admin, group_id: str, offsets: dict[tuple[str, int], int]) -> None:
    """A share group without members that starts there."""
    wanted = {TopicPartition(*partition): offset for partition, offset in offsets.items()}
    for outcome in admin.alter_share_group_offsets(group_id, wanted).values():
        outcome.get()


def join(node: Node, group_id: str, member_id: str, topics: list[str], client_id: str, least: int = 1) -> Wire:
    """A member, on a connection of its own, which heartbeats until it has so many partitions."""
    wire = Wire(node.host, node.port)
    request = ShareGroupHeartbeatRequest(
        group_id=group_id, member_id=member_id, member_epoch=0, subscribed_topic_names=topics
    )
    count = 0
    deadline = time.monotonic() + SETTLE_SECONDS
    while True:
        answer = wire.ask(request, 1, client_id)
        assert answer.error_code == 0, answer
        request.member_epoch = answer.member_epoch
        if answer.assignment is not None:
            count = sum(len(row.partitions) for row in answer.assignment.topic_partitions)
        if count >= least or "not-there" in topics:
            return wire
        assert time.monotonic() < deadline, f"{group_id}: no assignment after {SETTLE_SECONDS} s"
        time.sleep(0.1)


def settle(admin: Admin) -> None:
    """Until nothing moves any more: all partitions of the groups with members are known to the share coordinator."""
    deadline = time.monotonic() + SETTLE_SECONDS
    seen: object = None
    since = time.monotonic()
    while time.monotonic() - since < 2:
        found = admin.describe_share_groups(["live", "live-new", "live-lost", f"{REAL}-busy", f"{OURS}-busy"])
        now = [outcome.get() for outcome in found.values()]
        if now != seen:
            seen, since = now, time.monotonic()
        assert time.monotonic() < deadline, "the groups do not come to rest"
        time.sleep(0.2)


def test_command_lines_that_make_no_sense(broker: Node, real: RealTools) -> None:
    compare(broker, real, "share-groups", USAGE)


def test_groups_that_do_not_exist_or_are_of_another_kind(broker: Node, real: RealTools) -> None:
    compare(broker, real, "share-groups", MISSING, in_one_wording)


def in_one_wording(done: Done) -> Done:
    """Moldau sends a sentence of its own about a group without a name."""
    return Done(done.code, done.out.replace("The group id is not valid.", "The group id is invalid."), done.err)


def test_lists_of_share_groups(broker: Node, real: RealTools) -> None:
    """In whichever order the shards of the coordinator answered."""
    compare(broker, real, "share-groups", LISTS, sorted_lines)
    compare(broker, real, "groups", GROUPS, sorted_lines)


def test_configs_of_share_groups(broker: Node, real: RealTools) -> None:
    compare(broker, real, "configs", CONFIGS)


def test_groups_with_and_without_members(broker: Node, real: RealTools) -> None:
    compare(broker, real, "share-groups", DESCRIBE)


def test_plans_of_resets(broker: Node, real: RealTools) -> None:
    compare(broker, real, "share-groups", RESET.replace("RECENT", RECENT))


def test_resets_and_deletions(broker: Node, real: RealTools) -> None:
    compare(broker, real, "share-groups", CHANGE)


def test_brokers_that_are_not_there(broker: Node, real: RealTools) -> None:
    compare(broker, real, "share-groups", NOBODY)


def moldau_share(node: Node, *arguments: str) -> Any:
    """What a command of our own answers as JSON."""
    done = CliRunner().invoke(root, ["share", *arguments, "-b", node.bootstrap, "--format", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_our_own_commands(broker: Node) -> None:
    start_at = {
        (row["topic"], row["partition"]): row["start_offset"] for row in moldau_share(broker, "offsets", "idle")
    }
    assert start_at == {("orders", 0): 3, ("orders", 1): 5, ("orders", 2): 0, ("pay", 1): 2}
    listed = {row["group_id"]: (row["state"], row["lag"]) for row in moldau_share(broker, "list")}
    assert (listed["idle"], listed["live-new"]) == (("Empty", 35), ("Stable", None))
    described = moldau_share(broker, "describe", "live-wide")[0]
    assert sorted(member["member_id"] for member in described["members"]) == sorted(MEMBERS)
    assert "plain" not in listed
    with Admin(broker.bootstrap) as admin:
        start(admin, "own", {("orders", 0): 0})
    plan = moldau_share(broker, "reset", "own", "-t", "orders", "--to", f"@{RECENT}", "--execute")
    assert [row["new_offset"] for row in plan] == [4, 3, 3, 0]
    assert moldau_share(broker, "describe", "own")[0]["lag"] == 30
    assert moldau_share(broker, "delete", "own", "-t", "orders") == [
        {"group_id": "own", "topic": "orders", "deleted": True}
    ]
    assert moldau_share(broker, "offsets", "own") == []
    assert moldau_share(broker, "delete", "own") == [{"group_id": "own", "deleted": True}]


def test_records_that_members_hold_are_counted(start_moldau: NodeFactory) -> None:
    """Where the broker has a page of metrics: what a member was given and has not acknowledged."""
    node = start_moldau({"moldau.metrics.listener": f"127.0.0.1:{free_ports(1)[0]}"})
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic("orders", 3, 1)])["orders"].get()
        start(admin, "held", {("orders", index): 0 for index in range(3)})
        start(admin, "idle", {("orders", index): 0 for index in range(3)})
    with Producer(node.bootstrap) as producer:
        for number in range(5):
            producer.send("orders", str(number).encode(), partition=0)
        producer.flush()
    settings = {"bootstrap.servers": node.bootstrap, "group.id": "held", "share.acknowledgement.mode": "explicit"}
    consumer = confluent.ShareConsumer(settings)
    consumer.subscribe(["orders"])
    deadline = time.monotonic() + SETTLE_SECONDS
    found: dict[str, Any] = {}
    try:
        while found.get("held") != (5, 5):
            assert time.monotonic() < deadline, found
            consumer.poll(0.5)
            found = {row["group_id"]: (row["lag"], row["in_flight"]) for row in moldau_share(node, "list")}
        assert found["idle"] == (5, 0)
    finally:
        consumer.close()
    # What a member gives back when it leaves is nobody's.
    while moldau_share(node, "describe", "held")[0]["in_flight"] != 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)
