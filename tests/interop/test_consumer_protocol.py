"""Clients of the consumer group protocol (KIP-848) on Moldau, alone and in one group with those of the classic one."""

from __future__ import annotations

import contextlib
import re
import subprocess
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from moldau.protocol.messages.consumer_group_describe_request import ConsumerGroupDescribeRequest
from moldau.protocol.messages.list_groups_request import ListGroupsRequest
from tests.interop import kafka_oracle
from tests.interop.conftest import NodeFactory, new_node, stop_cleanly
from tests.interop.group_clients import CLIENTS, POLL_SECONDS, GroupClient, Member, shares, wait_until
from tests.interop.nodes import Node
from tests.interop.peers import Peer
from tests.interop.test_classic_groups import (
    PARTITIONS,
    RECORDS,
    VERIFIABLE_CONSUMER,
    Verifiable,
    fill,
    produce_more,
)
from tests.pace import patience_ms

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

# Heartbeats are as frequent as a broker's settings say, and those have lower bounds of their own.
QUICK = {
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "2000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.assignment.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "200",
    "offsets.topic.num.partitions": "5",
}


class Modern(GroupClient):
    """librdkafka with group.protocol=consumer; a topic that begins with ^ is a regular expression."""

    def __init__(self, bootstrap: str, group: str, topic: str, assignor: str | None, instance: str | None) -> None:
        settings: dict[str, Any] = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
        if assignor is not None:
            settings["group.remote.assignor"] = assignor
        if instance is not None:
            settings["group.instance.id"] = instance
        self.consumer = confluent_kafka.Consumer(settings)
        self.consumer.subscribe([topic])

    def poll(self) -> list[tuple[int, int]]:
        found = []
        for message in self.consumer.consume(100, POLL_SECONDS):
            error = message.error()
            if error is None:
                found.append((message.partition(), message.offset()))
            elif error.fatal():
                raise RuntimeError(error.name())
        return found

    def assigned(self) -> set[int]:
        return {row.partition for row in self.consumer.assignment()}

    def commit(self) -> None:
        self.consumer.commit(asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    node = new_node(tmp_path_factory.mktemp("moldau-consumer"), QUICK)
    node.start()
    yield node
    stop_cleanly(node)


class Group:
    """Members of one group on one topic, of both protocols; all leave at the end."""

    def __init__(self, node: Node, topic: str) -> None:
        self.node = node
        self.topic = topic
        self.group_id = f"group-{topic}"
        self.members: list[Member] = []

    def join(self, assignor: str | None = None, instance: str | None = None, topic: str | None = None) -> Member:
        make = partial(Modern, self.node.bootstrap, self.group_id, topic or self.topic, assignor, instance)
        return self._add(Member(make))

    def join_classic(self, client: str = "confluent", strategy: str = "range", instance: str | None = None) -> Member:
        module, make = CLIENTS[client]
        pytest.importorskip(module, reason=f"{client} is not installed")
        return self._add(Member(partial(make, self.node.bootstrap, self.group_id, self.topic, strategy, instance)))

    def _add(self, member: Member) -> Member:
        self.members.append(member)
        return member

    def wait_for_shares(self) -> None:
        alive = [member for member in self.members if member.is_alive()]
        wait_until(lambda: shares(alive, PARTITIONS), alive, "a share for every member")

    def wait_for_records(self, member: Member, count: int) -> None:
        wait_until(lambda: len(member.read) >= count, [member], f"reading {count} records")

    def kind(self) -> tuple[str, str]:
        """Type and state as ListGroups shows them."""
        peer = Peer(self.node)
        try:
            (found,) = [row for row in peer.ask(ListGroupsRequest(), 5).groups if row.group_id == self.group_id]
            return found.group_type, found.group_state
        finally:
            peer.close()

    def describe(self) -> Any:
        peer = Peer(self.node)
        try:
            return peer.ask(ConsumerGroupDescribeRequest([self.group_id]), 1).groups[0]
        finally:
            peer.close()


@pytest.fixture
def group(node: Node, topic: str) -> Iterator[Group]:
    fill(node, topic)
    found = Group(node, topic)
    yield found
    for member in found.members:
        with contextlib.suppress(AssertionError):
            member.leave()


@pytest.mark.parametrize("assignor", ["uniform", "range"])
def test_members_come_and_go(group: Group, assignor: str) -> None:
    """Partitions are shared by whoever is there, and keep their members where that is possible."""
    first = group.join(assignor)
    group.wait_for_shares()
    second = group.join(assignor)
    group.wait_for_shares()
    third = group.join(assignor)
    group.wait_for_shares()
    assert [len(member.assigned) for member in (first, second, third)] == [2, 2, 2]
    assert group.describe().assignor_name == assignor
    second.leave()
    group.wait_for_shares()
    first.leave()
    group.wait_for_shares()
    assert third.assigned == set(range(PARTITIONS))
    third.leave()
    assert group.kind() == ("consumer", "Empty")


def test_nobody_reads_a_record_twice_while_members_come(group: Group) -> None:
    """A partition that moves is committed by its old member before the next one starts."""
    first = group.join()
    group.wait_for_records(first, PARTITIONS * RECORDS)
    first.commit()
    second = group.join()
    group.wait_for_shares()
    produce_more(group.node, group.topic)
    wait_until(
        lambda: len(first.read) + len(second.read) >= 2 * PARTITIONS * RECORDS, [first, second], "the new records"
    )
    read = first.read + second.read
    assert len(set(read)) == len(read) == 2 * PARTITIONS * RECORDS


def test_offsets_are_committed_and_resumed(group: Group) -> None:
    first = group.join()
    group.wait_for_records(first, PARTITIONS * RECORDS)
    first.commit()
    first.leave()
    produce_more(group.node, group.topic)
    second = group.join()
    group.wait_for_records(second, PARTITIONS * RECORDS)
    time.sleep(0.3)
    assert {offset for _, offset in second.read} == set(range(RECORDS, 2 * RECORDS))
    assert len(second.read) == PARTITIONS * RECORDS


def test_a_static_member_takes_its_partitions_back(group: Group) -> None:
    """It is away for less than its session: the group's epoch stays, and it gets what it had."""
    stays = group.join(instance="one")
    restarts = group.join(instance="two")
    group.wait_for_shares()
    before, seen, epoch = set(restarts.assigned), len(stays.seen), group.describe().group_epoch
    restarts.leave()
    again = group.join(instance="two")
    wait_until(lambda: again.assigned == before, [stays, again], "the same assignment")
    assert len(stays.seen) == seen
    assert group.describe().group_epoch == epoch


def test_a_regular_expression_finds_topics(group: Group) -> None:
    """RE2 on the broker: also topics that are created later."""
    member = group.join(topic=f"^{group.topic}(-more)?$")
    wait_until(lambda: member.assigned == set(range(PARTITIONS)), [member], "the topic's partitions")
    assert group.topic in group.describe().members[0].subscribed_topic_regex
    group.wait_for_records(member, PARTITIONS * RECORDS)


def test_a_restart_of_the_broker_changes_nothing(start_moldau: NodeFactory, topic: str) -> None:
    """Killed with members at work: they go on in the same epoch."""
    node = start_moldau(QUICK)
    fill(node, topic)
    group = Group(node, topic)
    first = group.join()
    group.wait_for_records(first, PARTITIONS * RECORDS)
    first.commit()
    second = group.join()
    group.wait_for_shares()
    epoch = group.describe().group_epoch
    node.kill()
    time.sleep(0.5)
    node.start()
    produce_more(node, topic)
    wait_until(
        lambda: len(first.read) + len(second.read) >= 2 * PARTITIONS * RECORDS, [first, second], "the new records"
    )
    assert all(offset >= RECORDS for _, offset in second.read)
    assert group.describe().group_epoch == epoch
    first.leave()
    second.leave()


# Both protocols in one group


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_is_upgraded_and_downgraded_member_by_member(group: Group, strategy: str) -> None:
    """Every member is replaced by one of the other protocol, and back; every partition always finds a reader."""
    old = [group.join_classic(strategy=strategy), group.join_classic(strategy=strategy)]
    group.wait_for_shares()
    assert group.kind() == ("classic", "Stable")
    new = [group.join()]
    group.wait_for_shares()
    assert group.kind()[0] == "consumer"
    old[0].leave()
    group.wait_for_shares()
    new.append(group.join())
    group.wait_for_shares()
    old[1].leave()
    group.wait_for_shares()
    assert [member.member_type for member in group.describe().members] == [1, 1]
    again = [group.join_classic(strategy=strategy)]
    group.wait_for_shares()
    new[0].leave()
    group.wait_for_shares()
    again.append(group.join_classic(strategy=strategy))
    group.wait_for_shares()
    new[1].leave()
    group.wait_for_shares()
    wait_until(lambda: group.kind() == ("classic", "Stable"), again, "a classic group")
    assert {partition for member in again for partition in member.assigned} == set(range(PARTITIONS))


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_other_classic_clients_are_taken_along(group: Group, client: str) -> None:
    """They know nothing of the newer protocol, and share with a member that does."""
    group.join_classic(client)
    group.wait_for_shares()
    modern = group.join()
    group.wait_for_shares()
    assert group.kind()[0] == "consumer"
    modern.leave()
    group.wait_for_shares()
    assert group.kind()[0] == "classic"


def test_offsets_survive_the_upgrade(group: Group) -> None:
    first = group.join_classic()
    group.wait_for_records(first, PARTITIONS * RECORDS)
    first.commit()
    first.leave()
    produce_more(group.node, group.topic)
    second = group.join()
    group.wait_for_records(second, PARTITIONS * RECORDS)
    assert {offset for _, offset in second.read} == set(range(RECORDS, 2 * RECORDS))


# Java


class ModernVerifiable(Verifiable):
    """kafka-verifiable-consumer with the consumer protocol."""

    def __init__(self, node: Node, topic: str) -> None:
        command = kafka_oracle.java_command(
            VERIFIABLE_CONSUMER,
            *("--bootstrap-server", node.bootstrap, "--topic", topic, "--group-id", f"group-{topic}"),
            *("--group-protocol", "consumer", "--reset-policy", "earliest"),
        )
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.events = []


def test_the_console_consumer_resumes(group: Group, kafka_tools: None) -> None:
    count = PARTITIONS * RECORDS
    for _ in range(2):
        done = kafka_oracle.run_tool(
            "console-consumer",
            *("--bootstrap-server", group.node.bootstrap, "--topic", group.topic, "--group", group.group_id),
            *("--from-beginning", "--max-messages", str(count), "--timeout-ms", str(patience_ms(30_000))),
            *("--command-property", "group.protocol=consumer"),
        )
        assert done.returncode == 0, done.stderr
        assert len(done.stdout.split()) == count
        assert group.kind() == ("consumer", "Empty")
        produce_more(group.node, group.topic)


def test_verifiable_consumers_share_and_commit(group: Group, kafka_tools: None) -> None:
    """A Java member and one of librdkafka; records are read and committed once."""
    first = ModernVerifiable(group.node, group.topic)
    try:
        assert first.wait_for_partitions(PARTITIONS) == set(range(PARTITIONS))
        first.wait_for(
            lambda row: row["name"] == "offsets_committed" and row["success"] and len(row["offsets"]) > 0, "a commit"
        )
        other = group.join()
        revoked = first.wait_for(lambda row: row["name"] == "partitions_revoked", "giving up half")
        given = {row["partition"] for row in revoked["partitions"]}
        assert len(given) == PARTITIONS // 2
        wait_until(lambda: other.assigned == given, [other], "the other half")
        assert group.kind() == ("consumer", "Stable")
        other.leave()
        first.wait_for_partitions(PARTITIONS // 2)
    finally:
        first.stop()


def test_java_members_of_both_protocols(group: Group, kafka_tools: None) -> None:
    """A classic Java member, then one of the consumer protocol, which then leaves again."""
    classic = Verifiable(group.node, group.topic)
    modern = None
    try:
        classic.wait_for_partitions(PARTITIONS)
        modern = ModernVerifiable(group.node, group.topic)
        modern.wait_for_partitions(PARTITIONS // 2)
        classic.wait_for_partitions(PARTITIONS // 2)
        assert group.kind()[0] == "consumer"
        modern.stop()
        classic.wait_for_partitions(PARTITIONS)
        assert group.kind()[0] == "classic"
    finally:
        classic.stop()
        if modern is not None:
            modern.stop()


def test_the_real_tools_describe_the_group(group: Group, kafka_tools: None) -> None:
    """kafka-consumer-groups knows epochs, targets and that the protocol is the newer one; kafka-groups lists it."""
    member = group.join(instance="one")
    group.wait_for_records(member, PARTITIONS * RECORDS)
    member.commit()

    def tool(*arguments: str) -> list[list[str]]:
        done = kafka_oracle.run_tool(arguments[0], "--bootstrap-server", group.node.bootstrap, *arguments[1:])
        assert done.returncode == 0, done.stderr
        return [line.split() for line in done.stdout.splitlines() if line.strip()]

    about = ("consumer-groups", "--describe", "--group", group.group_id)
    head, row = tool(*about, "--state", "--verbose")
    assert row[head.index("STATE")] == "Stable"
    head, *rows = tool(*about)
    assert [(row[head.index("CURRENT-OFFSET")], row[head.index("LAG")]) for row in rows] == [(str(RECORDS), "0")] * 6
    head, row = tool(*about, "--members", "--verbose")
    assert row[head.index("#PARTITIONS")] == str(PARTITIONS)
    assert row[head.index("GROUP-INSTANCE-ID")] == "one"
    listed = tool("groups", "--list", "--consumer")
    assert [group.group_id, "Consumer", "consumer"] in listed
    member.leave()


def test_the_real_dump_log_reads_the_groups(start_moldau: NodeFactory, topic: str, kafka_tools: None) -> None:
    """Every kind of record of a consumer group, tombstones included, by the decoder of Apache Kafka."""
    node = start_moldau({**QUICK, "offsets.topic.num.partitions": "1"})
    fill(node, topic)
    group = Group(node, topic)
    classic = group.join_classic()
    group.wait_for_shares()
    static = group.join(instance="one")
    group.wait_for_shares()
    matching = group.join(topic=f"^{topic}$")
    group.wait_for_shares()
    for member in (static, matching, classic):
        member.leave()
    node.stop()
    file = next((node.data / "__consumer_offsets-0").glob("*.log"))
    done = kafka_oracle.run_tool("dump-log", "--offsets-decoder", "--files", str(file))
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| offset")]
    seen = {
        match[1]: match[2] for match in (re.search(r'"type":"(\d+)".*? payload: (.)', row) for row in rows) if match
    }
    assert {"2", "3", "5", "6", "7", "8", "16"} <= set(seen)
    assert not [row for row in rows if "isvalid: false" in row or "payload: " not in row]
    assert any('classicMemberMetadata":{' in row for row in rows)
    assert any('"type":"16"' in row and "<DELETE>" in row for row in rows)
