"""Clients in classic groups on Moldau: members come and go, static ones restart, offsets are committed and resumed."""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from moldau.coordinator.routing import partition_for
from moldau.protocol.messages.leave_group_request import LeaveGroupRequest, MemberIdentity
from tests.interop import kafka_oracle
from tests.interop.batches import batch
from tests.interop.conftest import NodeFactory, new_node, stop_cleanly
from tests.interop.group_clients import CLIENTS, SECONDS, Member, shares, wait_until
from tests.interop.nodes import Node
from tests.interop.peers import Peer
from tests.pace import patience, patience_ms

PARTITIONS = 6
RECORDS = 5
QUICK = {"group.initial.rebalance.delay.ms": "200", "offsets.topic.num.partitions": "5"}
STRATEGIES = [
    ("confluent", "range"),
    ("confluent", "roundrobin"),
    ("confluent", "cooperative-sticky"),
    ("kafka-python", "range"),
    ("kafka-python", "cooperative-sticky"),
    ("aiokafka", "range"),
    ("aiokafka", "roundrobin"),
]
KCAT = shutil.which("kcat") or shutil.which("kafkacat")
VERIFIABLE_CONSUMER = "org.apache.kafka.tools.VerifiableConsumer"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    """A node whose groups do not wait long for more members."""
    node = new_node(tmp_path_factory.mktemp("moldau-classic"), QUICK)
    node.start()
    yield node
    stop_cleanly(node)


def fill(node: Node, topic: str) -> None:
    """A topic with a few records in each partition."""
    peer = Peer(node)
    try:
        peer.create(topic, PARTITIONS)
        produce_more(node, topic)
    finally:
        peer.close()


def produce_more(node: Node, topic: str) -> None:
    peer = Peer(node)
    try:
        for partition in range(PARTITIONS):
            answer = peer.produce(topic, batch([b"v%d" % i for i in range(RECORDS)]), partition=partition)
            assert answer.error_code == 0
    finally:
        peer.close()


class Group:
    """Members of one group on one topic; all leave at the end."""

    def __init__(self, node: Node, topic: str) -> None:
        self.node = node
        self.topic = topic
        self.members: list[Member] = []

    def join(self, client: str = "confluent", strategy: str = "range", instance: str | None = None) -> Member:
        module, make = CLIENTS[client]
        pytest.importorskip(module, reason=f"{client} is not installed")
        member = Member(partial(make, self.node.bootstrap, f"group-{self.topic}", self.topic, strategy, instance))
        self.members.append(member)
        return member

    def wait_for_shares(self) -> None:
        present = [member for member in self.members if not member.has_left]
        wait_until(lambda: shares(present, PARTITIONS), present, "a share for every member")

    def wait_for_records(self, member: Member, count: int) -> None:
        wait_until(lambda: len(member.read) >= count, [member], f"reading {count} records")


@pytest.fixture
def group(node: Node, topic: str) -> Iterator[Group]:
    fill(node, topic)
    found = Group(node, topic)
    yield found
    for member in found.members:
        with contextlib.suppress(AssertionError):
            member.leave()


def is_balanced(members: list[Member]) -> bool:
    return len({len(member.assigned) for member in members}) == 1


@pytest.mark.parametrize(("client", "strategy"), STRATEGIES)
def test_members_come_and_go(group: Group, client: str, strategy: str) -> None:
    """Partitions are shared by whoever is there."""
    first = group.join(client, strategy)
    group.wait_for_shares()
    second = group.join(client, strategy)
    group.wait_for_shares()
    third = group.join(client, strategy)
    members = [first, second, third]
    # Cooperative members give partitions up one rebalance before others get them: everybody may have some before that.
    wait_until(lambda: shares(members, PARTITIONS) and is_balanced(members), members, "two partitions for each")
    second.leave()
    group.wait_for_shares()
    first.leave()
    group.wait_for_shares()
    assert third.assigned == set(range(PARTITIONS))


def test_different_clients_share_one_group(group: Group) -> None:
    """Whoever leads assigns partitions to all, in the format that all read."""
    for client in CLIENTS:
        group.join(client, "range")
        group.wait_for_shares()
    group.members[0].leave()
    group.wait_for_shares()


@pytest.mark.parametrize("client", list(CLIENTS))
def test_offsets_are_committed_and_resumed(group: Group, client: str) -> None:
    """What was committed is not read again, by whoever gets the partition."""
    first = group.join(client)
    group.wait_for_records(first, PARTITIONS * RECORDS)
    first.commit()
    first.leave()
    produce_more(group.node, group.topic)
    second = group.join(client)
    group.wait_for_records(second, PARTITIONS * RECORDS)
    time.sleep(0.3)
    assert {offset for _, offset in second.read} == set(range(RECORDS, 2 * RECORDS))
    assert len(second.read) == PARTITIONS * RECORDS


@pytest.mark.parametrize("client", list(CLIENTS))
def test_a_static_member_takes_its_partitions_back(group: Group, client: str) -> None:
    """It is away for less than its session: nobody else notices, and it gets what it had."""
    stays = group.join(client, instance="one")
    restarts = group.join(client, instance="two")
    group.wait_for_shares()
    before, seen = set(restarts.assigned), len(stays.seen)
    restarts.leave()
    again = group.join(client, instance="two")
    wait_until(lambda: again.assigned == before, [stays, again], "the same assignment")
    assert len(stays.seen) == seen


def test_a_member_that_is_lost_is_removed_on_time(group: Group) -> None:
    """A process that is killed sends no LeaveGroup: its session ends, and the others share what it had."""
    stays = group.join()
    group.wait_for_shares()
    code = (
        "import sys; from tests.interop.group_clients import Confluent\n"
        f"c = Confluent({group.node.bootstrap!r}, 'group-{group.topic}', {group.topic!r}, 'range', None)\n"
        "while True:\n c.poll(); print(len(c.assigned()), flush=True)\n"
    )
    lost = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        wait_until(lambda: len(stays.assigned) == PARTITIONS // 2, [stays], "the other to join")
    finally:
        lost.kill()
        lost.communicate()
    began = time.monotonic()
    wait_until(lambda: len(stays.assigned) == PARTITIONS, [stays], "the lost member's partitions")
    assert 4 < time.monotonic() - began < 40, "its session is 6 s; one that was not told has 45"


def test_a_restart_of_the_broker_loses_no_offset(start_moldau: NodeFactory, topic: str) -> None:
    """Killed in the middle of a rebalance: the members find each other again, and go on where they had committed."""
    node = start_moldau(QUICK)
    fill(node, topic)
    group = Group(node, topic)
    first = group.join()
    group.wait_for_records(first, PARTITIONS * RECORDS)
    first.commit()
    second = group.join()
    time.sleep(0.1)
    node.kill()
    time.sleep(0.5)
    node.start()
    group.wait_for_shares()
    produce_more(node, topic)
    wait_until(
        lambda: len(first.read) + len(second.read) >= 2 * PARTITIONS * RECORDS, [first, second], "the new records"
    )
    read = first.read + second.read
    assert {offset for _, offset in read} == set(range(2 * RECORDS))
    assert all(offset >= RECORDS for _, offset in second.read)
    first.leave()
    second.leave()


@pytest.mark.skipif(KCAT is None, reason="kcat is not installed (Debian: apt install kcat)")
def test_kcat_in_a_group(group: Group) -> None:
    """It reads everything and commits; the next one goes on where it stopped."""
    arguments = [str(KCAT), "-b", group.node.bootstrap, "-G", f"group-{group.topic}", group.topic]
    quick = ["-X", "session.timeout.ms=6000", "-X", "heartbeat.interval.ms=200", "-X", "auto.offset.reset=earliest"]
    done = subprocess.run(
        [*arguments[:3], *quick, "-e", *arguments[3:]], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == PARTITIONS * RECORDS
    produce_more(group.node, group.topic)
    again = subprocess.run(
        [*arguments[:3], *quick, "-e", *arguments[3:]], capture_output=True, text=True, timeout=SECONDS
    )
    assert len(again.stdout.split()) == PARTITIONS * RECORDS


# Java


def console_consumer(node: Node, topic: str, group_id: str, count: int, *more: str) -> list[str]:
    done = kafka_oracle.run_tool(
        "console-consumer",
        *("--bootstrap-server", node.bootstrap, "--topic", topic, "--group", group_id),
        *("--from-beginning", "--max-messages", str(count), "--timeout-ms", str(patience_ms(30_000))),
        *("--command-property", "group.protocol=classic", *more),
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_console_consumer_resumes(group: Group, kafka_tools: None) -> None:
    group_id = f"group-{group.topic}"
    count = PARTITIONS * RECORDS
    assert len(console_consumer(group.node, group.topic, group_id, count)) == count
    produce_more(group.node, group.topic)
    assert len(console_consumer(group.node, group.topic, group_id, count)) == count


class Verifiable:
    """kafka-verifiable-consumer as a member: it reports every assignment and commit as a line of JSON."""

    def __init__(self, node: Node, topic: str, *more: str, session_ms: int = 6000) -> None:
        command = kafka_oracle.java_command(
            VERIFIABLE_CONSUMER,
            *("--bootstrap-server", node.bootstrap, "--topic", topic, "--group-id", f"group-{topic}"),
            *("--group-protocol", "classic", "--session-timeout", str(session_ms), "--reset-policy", "earliest"),
            *more,
        )
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.events: list[dict[str, Any]] = []

    def wait_for(self, condition: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        assert self.process.stdout is not None
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            line = self.process.stdout.readline()
            if not line:
                break
            event: dict[str, Any] = json.loads(line)
            self.events.append(event)
            if condition(event):
                return event
        raise AssertionError(f"{what} did not happen: {self.events}")

    def wait_for_partitions(self, count: int) -> set[int]:
        event = self.wait_for(
            lambda row: row["name"] == "partitions_assigned" and len(row["partitions"]) == count,
            f"an assignment of {count} partitions",
        )
        return {row["partition"] for row in event["partitions"]}

    def stop(self) -> None:
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.communicate(timeout=patience(20))
        self.process.kill()


def test_verifiable_consumers_share_and_commit(group: Group, kafka_tools: None) -> None:
    """Two Java members and one of librdkafka; the records are read and committed once."""
    first = Verifiable(group.node, group.topic)
    try:
        assert first.wait_for_partitions(PARTITIONS) == set(range(PARTITIONS))
        first.wait_for(
            lambda row: (
                row["name"] == "offsets_committed"
                and row["success"]
                and all(one["offset"] == RECORDS for one in row["offsets"])
            ),
            "a commit of everything",
        )
        other = group.join()
        mine = first.wait_for_partitions(PARTITIONS // 2)
        wait_until(lambda: other.assigned == set(range(PARTITIONS)) - mine, [other], "the other half")
        assert other.read == []
        other.leave()
        first.wait_for_partitions(PARTITIONS)
    finally:
        first.stop()


def test_a_static_java_member_restarts(group: Group, kafka_tools: None) -> None:
    """Its partner is not disturbed; it has its partitions back in the same generation."""
    partner = group.join("confluent", "range", "partner")
    group.wait_for_shares()
    static = ("--group-instance-id", "java")
    first = Verifiable(group.node, group.topic, *static, session_ms=30_000)
    try:
        before = first.wait_for_partitions(PARTITIONS // 2)
        wait_until(lambda: len(partner.assigned) == PARTITIONS // 2, [partner], "the other half")
        seen = len(partner.seen)
        first.process.kill()
        again = Verifiable(group.node, group.topic, *static, session_ms=30_000)
        try:
            assert again.wait_for_partitions(PARTITIONS // 2) == before
            assert len(partner.seen) == seen
        finally:
            again.stop()
    finally:
        first.stop()


def test_the_duplicate_of_a_static_member_is_fenced(group: Group, kafka_tools: None) -> None:
    """The one that came first ends with an error; the second has its partitions."""
    static = ("--group-instance-id", "same")
    first = Verifiable(group.node, group.topic, *static, session_ms=30_000)
    second = None
    try:
        first.wait_for_partitions(PARTITIONS)
        second = Verifiable(group.node, group.topic, *static, session_ms=30_000)
        second.wait_for_partitions(PARTITIONS)
        first.process.wait(SECONDS)
    finally:
        first.stop()
        if second is not None:
            second.stop()


def test_the_real_dump_log_reads_the_records(group: Group, kafka_tools: None) -> None:
    """New, with a member and its assignment, empty again: as Apache Kafka would have written it."""
    member = group.join(instance="static")
    group.wait_for_shares()
    member.leave()
    group_id = f"group-{group.topic}"
    Peer(group.node).ask(LeaveGroupRequest(group_id, members=[MemberIdentity("", "static")]), 5)
    folder = f"__consumer_offsets-{partition_for(group_id, int(QUICK['offsets.topic.num.partitions']))}"
    path = group.node.data / folder / "00000000000000000000.log"
    done = kafka_oracle.run_tool("dump-log", "--offsets-decoder", "--files", str(path))
    payloads = re.findall(rf'"group":"{group_id}"}}}} payload: (.*)', done.stdout)
    first, second, third = [json.loads(text)["data"] for text in payloads]
    assert (first["generation"], first["protocolType"], first["members"]) == (0, "", [])
    [row] = second["members"]
    assert (second["generation"], second["protocol"], second["leader"]) == (1, "range", row["memberId"])
    assert (row["groupInstanceId"], row["clientHost"], row["sessionTimeout"]) == ("static", "/127.0.0.1", 6000)
    assert row["subscription"]["topics"] == [group.topic]
    assert row["assignment"]["assignedPartitions"] == [{"topic": group.topic, "partitions": list(range(PARTITIONS))}]
    assert (third["generation"], third["protocol"], third["leader"], third["members"]) == (2, None, None, [])
    assert all(json.loads(text)["version"] == "3" for text in payloads)


def test_cooperative_java_members(group: Group, kafka_tools: None) -> None:
    """The cooperative protocol takes two generations: one gives up, the next one takes."""
    strategy = ("--assignment-strategy", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor")
    first = Verifiable(group.node, group.topic, *strategy)
    second = None
    try:
        first.wait_for_partitions(PARTITIONS)
        second = Verifiable(group.node, group.topic, *strategy)
        second.wait_for_partitions(PARTITIONS // 2)
        revoked = first.wait_for(lambda row: row["name"] == "partitions_revoked", "giving up half")
        assert len(revoked["partitions"]) == PARTITIONS // 2
    finally:
        first.stop()
        if second is not None:
            second.stop()
