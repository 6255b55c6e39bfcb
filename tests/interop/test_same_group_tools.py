"""Kafka's group tools and ours of the same name, against the same broker: same output, same errors, same exit codes.

The broker is Apache Kafka in the first round and Moldau in the second. Lines with `%` change something, so both tools
run them on groups of their own; all other lines look at the same groups.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moldau.cli.root import root
from moldau.protocol.messages.join_group_request import JoinGroupRequest, JoinGroupRequestProtocol
from moldau.protocol.messages.sync_group_request import SyncGroupRequest, SyncGroupRequestAssignment
from tests.interop.conftest import new_node, require_kafka, stop_cleanly
from tests.interop.kafka_oracle import KafkaNode, run_tool
from tests.interop.nodes import RECENT_MS, MoldauNode, Node
from tests.interop.test_kafka_tools_same import CLASSES, OURS, REAL, Done, RealTools, masked, run_ours
from tests.interop.wire import Wire
from tests.pace import moment_ms, patience

confluent: Any = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
confluent_admin: Any = pytest.importorskip("confluent_kafka.admin")

CLASSES |= {
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "groups": "org.apache.kafka.tools.GroupsCommand",
}
LONG_TOPIC = "a-topic-with-a-rather-long-name"
RECENT = time.strftime("%Y-%m-%dT%H:%M:%S.000", time.gmtime(RECENT_MS // 1000 + 10))
# What make_records() leaves in the partitions that members read.
ENDS = {("orders", 0): 14, ("orders", 1): 13, ("orders", 2): 13, ("orders", 3): 0}
ENDS |= {("pay", 0): 5, ("pay", 1): 5, ("empty", 0): 0}
SETTLE_SECONDS = patience(60)
REST_SECONDS = 3
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "5",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.heartbeat.interval.ms": "500",
}

USAGE = """
--list --state bogus
--list --type bogus
--list --describe
--describe
--describe --group a --all-groups
--describe --group a --members --offsets
--describe --group a --members --state --offsets
--describe --group a --state foo
--members
--list --members
--verbose --list
--delete --group a --type
--delete
--delete --group a --topic b
--delete-offsets --group a
--delete-offsets --topic a
--reset-offsets
--reset-offsets --group a --dry-run --execute
--reset-offsets --all-topics --dry-run
--reset-offsets --group a --dry-run
--reset-offsets --group a --topic b
--reset-offsets --group a --topic orders --dry-run
--reset-offsets --group a --all-topics --to-offset 1 --to-latest --dry-run
--reset-offsets --group a --all-topics --to-offset x --dry-run
--reset-offsets --group a --all-topics --shift-by x --dry-run
--list --timeout x
--list --timeout 9999999999999999999999
--group a --list
--topic a --list
--topic a --describe --group b
alone --version
alone --list
alone --validate-regex a --list
alone --list --bootstrap-server nonsense
alone --list --bootstrap-server 127.0.0.1:x
--no-such-flag
--group
--list --command-config nope.properties
"""

MISSING = """
--describe --group nope
--describe --group nope --members
--describe --group nope --state --verbose
--describe --group nope --group nada
--describe --group ''
--delete --group nope
--delete --group nope --group nada
--delete-offsets --group nope --topic nope
--delete-offsets --group nope --topic orders:1 --topic pay
--delete-offsets --group nope --group b --topic nope
--delete-offsets --group nope --topic nope:x
--reset-offsets --group nope --topic nope --dry-run
--reset-offsets --group nope --topic nope:0 --dry-run --to-latest
--reset-offsets --group nope --topic nope: --dry-run --to-latest
--reset-offsets --group nope --topic a:b:c --dry-run --to-latest
--reset-offsets --group nope --topic a:x,1 --dry-run --to-latest
--reset-offsets --group nope --all-topics --to-latest --dry-run
--reset-offsets --group nope --all-topics --to-latest --dry-run --export
--reset-offsets --group nope --all-topics --by-duration x --dry-run
--reset-offsets --group nope --all-topics --to-datetime x --dry-run
--reset-offsets --group nope --from-file nope.csv --dry-run
"""

LISTS = """
--list
--list extra
--list --state=
--all-groups --list
--list --state
--list --type
--list --state stable
--list --state Empty,stable --type classic
--list --type consumer --state
"""

DESCRIBE = """
--describe --group simple
--describe --group simple --verbose
--describe --group simple --members
--describe --group simple --members --verbose
--describe --group simple --state --verbose
--describe --group live-classic
--describe --group live-classic --verbose
--describe --group live-classic --offsets
--describe --group live-classic --members
--describe --group live-classic --members --verbose
--describe --group live-classic --state
--describe --group live-classic --state --verbose
--describe --group live-idle --verbose
--describe --group live-idle --members --verbose
--describe --group live-static --verbose
--describe --group live-static --members
--describe --group live-static --members --verbose
--describe --group live-workers
--describe --group live-modern --verbose
--describe --group live-modern --members
--describe --group live-modern --members --verbose
--describe --group live-modern --state --verbose
--describe --group live-regex --members --verbose
--describe --group live-regex --offsets
--describe --group live-mixed --members --verbose
--describe --group live-mixed --state --verbose
--describe --group live-modern --group live-classic --group simple --state
--describe --group live-modern --group live-classic --group simple --group nope
--delete --group live-classic
--delete --group live-modern --group live-idle --group nope
--delete-offsets --group live-classic --topic orders
--delete-offsets --group live-modern --topic orders:0
--delete-offsets --group live-modern --topic orders:0 --topic empty
--reset-offsets --group live-classic --topic orders --to-earliest --execute
--reset-offsets --group live-classic --group live-modern --topic orders --to-earliest --execute
"""

RESET = f"""
--reset-offsets --group %-g1 --topic orders --to-earliest --dry-run
--reset-offsets --group %-g1 --topic orders --to-earliest
--reset-offsets --group %-g1 --topic orders --topic pay:0 --to-latest --dry-run
--reset-offsets --group %-g1 --group %-g2 --group %-new --all-topics --to-latest --dry-run
--reset-offsets --group %-g1 --group %-g2 --group %-new --all-topics --to-latest --dry-run --export
--reset-offsets --group %-g1 --all-topics --to-latest --dry-run --export
--reset-offsets --group '%-a group, with "odd" name' --group %-g2 --all-topics --to-latest --dry-run --export
--reset-offsets --group %-a-group-with-a-very-long-name --group %-g1 --all-topics --to-latest --dry-run --export
--reset-offsets --group %-a-group-with-a-very-long-name --all-topics --to-latest --dry-run --export
--reset-offsets --group %-a-group-with-a-very-long-name --group %-g1 --all-topics --to-latest --dry-run
--reset-offsets --group %-g1 --topic orders:0,1 --to-offset 1 --execute
--describe --group %-g1
--reset-offsets --group %-g1 --topic orders:0 --to-offset 999 --execute
--reset-offsets --group %-g1 --topic orders --to-offset 999 --dry-run
--reset-offsets --group %-g1 --topic orders --to-offset -5 --dry-run
--reset-offsets --group %-g1 --topic orders:0,1,2 --shift-by -2 --execute
--reset-offsets --group %-g1 --topic orders --shift-by 2 --dry-run
--reset-offsets --group %-g1 --all-topics --shift-by 1000 --dry-run
--reset-offsets --group %-g1 --topic orders --to-current --dry-run
--reset-offsets --group %-g1 --all-topics --to-current --execute
--reset-offsets --group %-g1 --topic orders --to-datetime 2020-01-01T00:00:00.000 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime {RECENT} --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime {RECENT}Z --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime {RECENT}+01:00 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime {RECENT}-02 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime {RECENT}+0100 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime 2023-11-14T22:13:30 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime 2023-11-14 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime 2023-11-14T --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime 2023-13-14T22:13:30.000 --dry-run
--reset-offsets --group %-g1 --topic orders --to-datetime 2023-1-4T2:3:3.5 --dry-run
--reset-offsets --group %-g1 --topic orders --by-duration P10000D --dry-run
--reset-offsets --group %-g1 --topic orders --by-duration PT0.5S --dry-run
--reset-offsets --group %-g1 --topic orders --by-duration -P1D --dry-run
--reset-offsets --group %-g1 --topic orders --by-duration P1Y --dry-run
--reset-offsets --group %-g1 --topic orders --by-duration PT --dry-run
--reset-offsets --group %-g1 --topic orders --by-duration p1dt1h --dry-run
--reset-offsets --group %-g1 --topic orders:99 --to-latest --dry-run
--reset-offsets --group %-g1 --topic orders:-1 --to-latest --dry-run
--reset-offsets --group %-g1 --from-file %-plan.csv --execute
--reset-offsets --group %-g1 --from-file %-short.csv --dry-run
--reset-offsets --group %-g1 --from-file %-blank.csv --dry-run
--reset-offsets --group %-g1 --topic orders --from-file %-plan.csv --dry-run --export
--reset-offsets --group %-new --topic orders --to-latest --execute
--describe --group %-new --verbose
--reset-offsets --group %-new --to-latest --dry-run
--delete-offsets --group %-g2 --topic orders:0
--delete-offsets --group %-g2 --topic orders
--delete-offsets --group %-g2 --topic orders:99
--delete-offsets --group %-g2 --topic orders:0 --topic nope
--delete-offsets --group %-g2 --topic nope
--delete-offsets --group %-g2 --topic orders:x
--describe --group %-g2
--delete --group %-g2
--delete --group %-g2 --group %-g3
--delete --group %-g1 --group %-g4
--delete --group %-g1
"""

# Where a file has groups in it the real tool first tries without, and shows how that fails: only the answers are alike.
PLANS = """
--reset-offsets --group %-g5 --group %-g6 --from-file %-groups.csv --dry-run
--reset-offsets --group %-g5 --from-file %-groups.csv --dry-run
--reset-offsets --group %-g7 --from-file %-groups.csv --dry-run
--reset-offsets --group %-g5 --from-file %-bad.csv --dry-run
--reset-offsets --group %-g5 --from-file %-empty.csv --dry-run
--reset-offsets --group %-g5 --from-file %-long.csv --dry-run
"""

NOBODY = """
alone --list --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --list --state --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --describe --group a --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --reset-offsets --group a --topic b --to-latest --dry-run --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --delete --group a --bootstrap-server 127.0.0.1:1 --timeout 1000
alone --delete-offsets --group a --topic b:1 --bootstrap-server 127.0.0.1:1 --timeout 1000
"""

FILES = {
    "plan.csv": "orders,0,7\norders,1,99\n",
    "groups.csv": '%-g5,orders,0,8\n"%-g6",orders,1,2\n',
    "bad.csv": "orders,0,x\n",
    "short.csv": "orders\n",
    "empty.csv": "",
    "blank.csv": "orders,0,7\n\norders,1,2\n",
    "long.csv": "orders,0,7,8,9\n",
}

GROUPS = """
--list
--list --consumer
--list --share
--list --streams
--list --group-type classic
--list --group-type Consumer
--list --group-type bogus
--list --protocol consumer
--list --protocol connect --group-type classic
--list --consumer --share
--list --share --protocol x
--list --streams --consumer
--consumer
alone --list
alone
alone --version
alone --list --bootstrap-server nonsense
--list --no-such
--list --group-type
--list extra
--list --command-config nope.properties
--version
"""

PATTERNS = r"""
a.* a|b ( ) (a a) (a)) [ [a [] []a] [^]a] [^ [a-z] [z-a] [a-] [-a] [a-b-c] [\d-z] [a-\d] [[:alpha:]] [[:^alpha:]]
[[:nope:]] [[:alpha] [:alpha:] * +a ? a** a*+ a*? a*?? a+? a??? a{2} a{2,} a{2,3} a{3,2} a{1001} a{1000} a{,5} a{ a{x}
a{2 a{02} a{0} a{00} {2} (a{2}){2} a{2}{3} a{2}* a*{2} (|*) a|* (*a) ^* $+ \b* \ a\ \d\D\s\S\w\W \A\z\b\B \Z \C \1 \12
\0 \08 \8 \x41 \x4 \x{41} \x{} \x{110000} \x{10FFFF} \x{zz} \x \Qa*b\E* \Q* \Q\E* \pL \p{L} \p{Lu} \p{Greek} \p{^Greek}
\P{Greek} \p{Nope} \p{ \p \pN* [\pL] [\p{Nope}] \a\f\n\r\t\v \e \_ \- \é é* (?i)a (?i:a) (?-i)a (?i-s:a) (?-) (?i-)a (?)
(?:) (?:a) (?:a (?:*) (?i)* a(?i)* (?z) (?i (? (?P<n>a) (?P<n>a)(?P<n>b) (?P<>a) (?P<n (?P<n-x>a) (?P=n) (?<n>a) (?<=a)b
(?<!a)b (?=a) (?!a) (?#c) (?>a) (?U)a+ (?ims)a (?--i)a (?i-s-m)a [[.a.]] [[=a=]] [\ [\] [a\] [a-\] [\x41-\x40] [\Qa]
[a-z&&[b]] .{2}.* x{999999999} x{99999999999} x{1,99999999999} ()* ()** (a*)* (a|b|)*
"""


@pytest.fixture(scope="module")
def real(kafka_tools: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTools]:
    tools = RealTools(tmp_path_factory.mktemp("tools"))
    for name, text in FILES.items():
        for prefix in (REAL, OURS):
            (tools.folder / f"{prefix}-{name}").write_text(text.replace("%", prefix))
    yield tools
    tools.close()


@pytest.fixture(scope="module", params=["kafka", "moldau"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node of its own, with topics, groups that have offsets alone, and members of all kinds."""
    require_kafka()
    folder: Path = tmp_path_factory.mktemp(request.param)
    node: Node = KafkaNode(folder, SETTINGS) if request.param == "kafka" else new_node(folder, SETTINGS)
    if request.param == "kafka":
        node.format()
    node.start()
    members = Members(node.bootstrap)
    try:
        make_records(node.bootstrap)
        commit_groups(node.bootstrap)
        members.join_all()
        # A classic group that is not of consumers, as Connect's workers have one.
        with join_raw(node, "live-workers", "connect"):
            yield node
    finally:
        members.close()
        stop_cleanly(node)


def make_records(bootstrap: str) -> None:
    admin = confluent_admin.AdminClient({"bootstrap.servers": bootstrap})
    sizes = {"orders": 4, "pay": 2, "empty": 1, LONG_TOPIC: 1}
    for made in admin.create_topics(
        [confluent_admin.NewTopic(name, count, 1) for name, count in sizes.items()]
    ).values():
        made.result(patience(20))
    producer = confluent.Producer({"bootstrap.servers": bootstrap})
    for number in range(40):
        producer.produce("orders", str(number), partition=number % 3, timestamp=RECENT_MS + number * 1000)
    for number in range(10):
        producer.produce("pay", str(number), partition=number % 2)
    for number in range(3):
        producer.produce(LONG_TOPIC, str(number))
    assert producer.flush(patience(20)) == 0


def commit(bootstrap: str, group_id: str, offsets: dict[tuple[str, int], int]) -> None:
    consumer = confluent.Consumer({"bootstrap.servers": bootstrap, "group.id": group_id, "enable.auto.commit": False})
    rows = [confluent.TopicPartition(topic, index, offset) for (topic, index), offset in offsets.items()]
    consumer.commit(offsets=rows, asynchronous=False)
    consumer.close()


def commit_groups(bootstrap: str) -> None:
    commit(bootstrap, "simple", {("orders", 0): 3, ("pay", 1): 1})
    for prefix in (REAL, OURS):
        for number in range(1, 8):
            some = {("orders", 0): 3, ("orders", 1): 5, ("orders", 2): 0, ("pay", 1): 2}
            commit(bootstrap, f"{prefix}-g{number}", some)
        commit(bootstrap, f'{prefix}-a group, with "odd" name', {("orders", 0): 3})
        commit(bootstrap, f"{prefix}-a-group-with-a-very-long-name", {(LONG_TOPIC, 0): 2})


class Members:
    """Consumers that stay while tools look at them; offsets are committed once, then nothing moves any more."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.consumers: list[tuple[str, Any]] = []

    def join(self, group_id: str, topics: list[str], client_id: str, **more: str) -> Any:
        settings = {
            "bootstrap.servers": self.bootstrap,
            "group.id": group_id,
            "client.id": client_id,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{name.replace("_", "."): value for name, value in more.items()},
        }
        consumer = confluent.Consumer(settings)
        consumer.subscribe(topics)
        self.consumers.append((group_id, consumer))
        return consumer

    def join_all(self) -> None:
        for client_id in ("c1", "c2"):
            self.join("live-classic", ["orders", "pay"], client_id, group_protocol="classic")
            self.join("live-idle", ["empty"], client_id, group_protocol="classic")
        for name in ("static-one", "a-very-long-instance-name-2"):
            self.join("live-static", ["orders"], "s1", group_protocol="classic", group_instance_id=name)
        mixed = self.join("live-mixed", ["orders"], "old", group_protocol="classic")
        self.poll_until(lambda: bool(mixed.assignment()))
        self.join("live-mixed", ["orders"], "new", group_protocol="consumer")
        self.join("live-modern", ["orders", "pay"], "m1", group_protocol="consumer")
        self.join("live-modern", ["orders"], "m2", group_protocol="consumer", group_instance_id="inst")
        self.join("live-regex", ["^or.*"], "r1", group_protocol="consumer")
        owned = {
            "live-classic": 6,
            "live-idle": 1,
            "live-static": 4,
            "live-mixed": 4,
            "live-modern": 6,
            "live-regex": 4,
        }
        self.poll_until(lambda: self.assigned() == owned and self.is_all_read(), REST_SECONDS)
        for _, consumer in self.consumers:
            done = [place for place in consumer.position(consumer.assignment()) if place.offset >= 0]
            if done:
                consumer.commit(offsets=done, asynchronous=False)

    def assigned(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for group_id, consumer in self.consumers:
            counts[group_id] = counts.get(group_id, 0) + len(consumer.assignment())
        return counts

    def is_all_read(self) -> bool:
        places = [place for _, consumer in self.consumers for place in consumer.position(consumer.assignment())]
        # Where nothing was read there is no position.
        return all(max(place.offset, 0) == ENDS[place.topic, place.partition] for place in places)

    def poll_until(self, is_done: Callable[[], bool], rest_seconds: float = 0) -> None:
        """Until it is done and stays so."""
        deadline = time.monotonic() + SETTLE_SECONDS
        since = time.monotonic()
        while not is_done() or time.monotonic() - since < rest_seconds:
            if not is_done():
                since = time.monotonic()
            assert time.monotonic() < deadline, f"no rest in {SETTLE_SECONDS} s: {self.assigned()}"
            for _, consumer in self.consumers:
                consumer.poll(0.02)

    def close(self) -> None:
        for _, consumer in self.consumers:
            consumer.close()


def join_raw(node: Node, group_id: str, protocol_type: str, instance_id: str | None = None) -> Wire:
    """The only member of a classic group, on a connection of its own; it never says anything again."""
    wire = Wire(node.host, node.port)
    join = JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=300_000,
        rebalance_timeout_ms=10_000,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocols=[JoinGroupRequestProtocol(name="default", metadata=b"x")],
    )
    deadline = time.monotonic() + SETTLE_SECONDS
    while (joined := wire.ask(join, 9)).error_code != 0:
        assert time.monotonic() < deadline, joined
        join.member_id = joined.member_id or join.member_id
        time.sleep(0.1)
    sync = SyncGroupRequest(
        group_id=group_id,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=instance_id,
        protocol_type=protocol_type,
        protocol_name="default",
        assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"y")],
    )
    assert wire.ask(sync, 5).error_code == 0
    return wire


def neutral(done: Done, prefix: str) -> Done:
    """Without what is random: the options of the tool, and orders that change with each start of the real tool.

    Clients of earlier lines that ended within Java's exit may still look for their broker, and say so.
    """
    shown = masked(done, prefix)
    lost = r"^\[TIME\] WARN \[AdminClient clientId=adminclient-1\] Connection to node .*\n"
    shown = Done(shown.code, shown.out, re.sub(lost, "", shown.err, flags=re.MULTILINE))
    err = re.sub(r"^Option \(\* = required\) +Description *\n(.*\n)*", "[options]\n", shown.err, flags=re.MULTILINE)
    err = re.sub(r"(these options|the following options|states are|types are|scenarios): (.*)", _sort_names, err)
    return Done(shown.code, shown.out, err)


def _sort_names(found: re.Match[str]) -> str:
    names = sorted(re.findall(r"[\w-]+", found[2]))
    return f"{found[1]}: {' '.join(names)}"


def compare(
    node: Node, real: RealTools, tool: str, lines: str, of: Callable[[Done], object] = lambda done: done
) -> None:
    """of: the part of an answer that is compared."""
    different = []
    for line in lines.strip("\n").splitlines():
        both = []
        for prefix in (REAL, OURS):
            arguments = shlex.split(line.replace("%", prefix))
            if arguments[:1] == ["alone"]:
                arguments.pop(0)
            else:
                arguments = ["--bootstrap-server", node.bootstrap, *arguments]
            done = real.run(tool, arguments) if prefix == REAL else run_ours(tool, arguments, real.folder)
            # The mask of a prefix would hide the groups of one tool in what the other one lists.
            both.append(of(neutral(done, prefix if "%" in line else "%")))
        if both[0] != both[1]:
            different.append(f"{line}\n  real: {both[0]}\n  ours: {both[1]}")
    assert not different, "\n".join(["", *different])


def sorted_lines(done: Done) -> Done:
    return Done(done.code, "\n".join(sorted(done.out.splitlines())), done.err)


def test_command_lines_that_make_no_sense(broker: Node, real: RealTools) -> None:
    compare(broker, real, "consumer-groups", USAGE)


def test_groups_that_do_not_exist(broker: Node, real: RealTools) -> None:
    compare(broker, real, "consumer-groups", MISSING)


def test_lists_of_groups(broker: Node, real: RealTools) -> None:
    """In whichever order the shards of the coordinator answered."""
    compare(broker, real, "consumer-groups", LISTS, sorted_lines)
    compare(broker, real, "groups", GROUPS, sorted_lines)


def test_groups_with_and_without_members(broker: Node, real: RealTools) -> None:
    compare(broker, real, "consumer-groups", DESCRIBE)


def test_all_groups_at_once(broker: Node, real: RealTools) -> None:
    rows = "--describe --all-groups --state --verbose\n--describe --all-groups --members --verbose\n"
    # A group of another protocol is not among them.
    compare(broker, real, "consumer-groups", rows + "--describe --all-groups\n")


def test_resets_and_deletions(broker: Node, real: RealTools) -> None:
    compare(broker, real, "consumer-groups", RESET)


def test_brokers_that_are_not_there(broker: Node, real: RealTools) -> None:
    compare(broker, real, "consumer-groups", NOBODY)


def test_plans_in_files(broker: Node, real: RealTools) -> None:
    compare(broker, real, "consumer-groups", PLANS, lambda done: (done.code, done.out))


def test_regular_expressions(real: RealTools) -> None:
    """Needs no broker: is it one of RE2, and what is wrong with it?"""
    different = []
    for pattern in PATTERNS.split():
        arguments = ["--validate-regex", pattern]
        theirs, ours = real.run("consumer-groups", arguments), run_ours("consumer-groups", arguments, real.folder)
        if theirs != ours:
            different.append(f"{theirs} {ours}")
    assert not different, "\n".join(["", *different])


def test_the_offsets_decoder_of_dump_log(broker: Node, real: RealTools) -> None:
    """On what the broker has written for groups of both protocols."""
    types: set[str] = set()
    for path in sorted(broker.data.glob("__consumer_offsets-*/*.log")):
        arguments = ["--files", str(path), "--offsets-decoder"]
        theirs, ours = real.run("dump-log", arguments), run_ours("dump-log", arguments, real.folder)
        assert ours == theirs, path
        types.update(re.findall(r'key: \{"type":"(\d+)"', ours.out))
    # Offsets, classic groups, and of the newer ones: group, member, target epoch, target, current, regular expression.
    assert types >= {"1", "2", "3", "5", "6", "7", "8", "16"}


@pytest.mark.parametrize("name", ["OffsetsMessageFormatter", "GroupMetadataMessageFormatter"])
def test_formatters_of_the_console_consumer(broker: Node, name: str) -> None:
    arguments = ["--bootstrap-server", broker.bootstrap, "--topic", "__consumer_offsets", "--from-beginning"]
    arguments += ["--timeout-ms", str(moment_ms(10_000)), "--formatter", f"org.apache.kafka.tools.consumer.{name}"]
    arguments += ["--isolation-level", "read_committed"]
    theirs = run_tool("console-consumer", *arguments)
    command = [*MoldauNode.command(), "kafka-console-consumer", *arguments]
    ours = subprocess.run(command, capture_output=True, text=True, timeout=patience(60), env=path_environment())
    found = objects(ours.stdout)
    assert found == objects(theirs.stdout)
    assert any('"simple"' in each for each in found) == (name == "OffsetsMessageFormatter")
    assert any('"live-classic"' in each for each in found)
    assert (ours.returncode, theirs.returncode) == (0, 0), ours.stderr


def objects(text: str) -> list[str]:
    """The JSON texts, which stand behind each other without a line end; partitions come in any order.

    Reading leaves groups behind: those of the console consumers themselves do not count.
    """
    decoder = json.JSONDecoder()
    found = []
    at = 0
    while at < len(text):
        value, end = decoder.raw_decode(text, at)
        if not value["key"]["data"]["group"].startswith("console-consumer-"):
            found.append(text[at:end])
        at = end
    return sorted(found)


def path_environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}


def moldau_group(node: Node, *arguments: str) -> Any:
    """What `moldau group` says for programs."""
    result = CliRunner().invoke(root, ["group", *arguments, "--format", "json", "-b", node.bootstrap])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_moldau_group_sees_what_is_there(broker: Node) -> None:
    found = {row["group_id"]: (row["type"], row["protocol"], row["state"]) for row in moldau_group(broker, "list")}
    assert found["simple"] == ("classic", None, "Empty")
    assert found["live-classic"] == ("classic", "consumer", "Stable")
    assert found["live-workers"] == ("classic", "connect", "Stable")
    assert found["live-modern"] == ("consumer", "consumer", "Stable")
    assert {row["group_id"] for row in moldau_group(broker, "list", "-t", "consumer")} == {
        "live-modern",
        "live-mixed",
        "live-regex",
    }
    (modern,) = moldau_group(broker, "describe", "live-modern")
    assert sorted(member["group_instance_id"] or "" for member in modern["members"]) == ["", "inst"]
    assert all(member["assignment"] == member["target_assignment"] for member in modern["members"])
    lags = {(row["topic"], row["partition"]): row["lag"] for row in modern["offsets"]}
    assert lags == {
        ("orders", 0): 0,
        ("orders", 1): 0,
        ("orders", 2): 0,
        ("orders", 3): None,
        ("pay", 0): 0,
        ("pay", 1): 0,
    }
    assert modern["lag"] == 0


def test_moldau_group_changes_what_it_is_told_to(broker: Node) -> None:
    commit(broker.bootstrap, "own", {("orders", 0): 3, ("orders", 1): 5, ("pay", 1): 2})
    rows = moldau_group(broker, "reset-offsets", "own", "-t", "orders:0", "-t", "pay", "--to", "-2", "--execute")
    assert [(row["topic"], row["partition"], row["offset"], row["new_offset"]) for row in rows] == [
        ("orders", 0, 3, 12),
        ("pay", 0, None, 3),
        ("pay", 1, 2, 3),
    ]
    moldau_group(broker, "delete-offsets", "own", "-t", "pay:0")
    (own,) = moldau_group(broker, "describe", "own")
    assert [(row["topic"], row["partition"], row["offset"], row["lag"]) for row in own["offsets"]] == [
        ("orders", 0, 12, 2),
        ("orders", 1, 5, 8),
        ("pay", 1, 3, 2),
    ]
    assert moldau_group(broker, "delete", "own") == [{"group_id": "own", "deleted": True}]
    assert "own" not in [row["group_id"] for row in moldau_group(broker, "list")]


def test_moldau_group_removes_static_members(broker: Node) -> None:
    with join_raw(broker, "lost", "consumer", "warehouse-7"):
        (lost,) = moldau_group(broker, "describe", "lost", "-m")
        assert [member["group_instance_id"] for member in lost["members"]] == ["warehouse-7"]
        removed = moldau_group(broker, "remove-members", "lost", "-i", "warehouse-7")
        assert [row["removed"] for row in removed] == [True]
        (lost,) = moldau_group(broker, "describe", "lost")
        assert (lost["state"], lost["members"]) == ("Empty", [])
        moldau_group(broker, "delete", "lost")
