"""Moldau's own consumer in groups, against Moldau and against Apache Kafka, alone and together with other clients."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moldau.client import (
    Admin,
    AsyncConsumer,
    Consumer,
    ConsumerRecord,
    NewTopic,
    OffsetAndMetadata,
    Producer,
    RebalanceListener,
    TopicPartition,
)
from moldau.client.errors import (
    ClientError,
    CommitFailedError,
    FencedInstanceIdError,
    InvalidGroupIdError,
    NoOffsetForPartitionError,
    UnsupportedAssignorError,
)
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from tests.interop import kafka_oracle
from tests.interop.conftest import new_node, require_kafka, stop_cleanly
from tests.interop.nodes import Node
from tests.interop.peers import Peer
from tests.pace import moment_ms, patience

SECONDS = patience(30)
# Of classic members that are to live although they do not poll for longer.
SESSION_MS = moment_ms(1500)
JOIN_GROUP = 11
CONSUMER_GROUP_HEARTBEAT = 68

# Groups that form and notice changes at once, so that the suite does not wait for defaults made for production.
QUICK = {
    "group.initial.rebalance.delay.ms": "100",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.consumer.heartbeat.interval.ms": "200",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "4000",
    "offsets.topic.num.partitions": "5",
}

MODES: dict[str, dict[str, Any]] = {
    "eager": {"partition.assignment.strategy": "range", "heartbeat.interval.ms": 200},
    "cooperative": {"partition.assignment.strategy": "cooperative-sticky", "heartbeat.interval.ms": 200},
    "consumer": {"group.protocol": "consumer"},
}


@pytest.fixture(scope="module", params=["moldau", "kafka"])
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp(f"groups-{request.param}")
    if request.param == "kafka":
        require_kafka()
        started: Node = kafka_oracle.KafkaNode(folder, QUICK)
        started.format()
    else:
        started = new_node(folder, QUICK)
    started.start()
    yield started
    stop_cleanly(started)


@pytest.fixture(scope="module")
def served(node: Node) -> set[int]:
    peer = Peer(node)
    try:
        return {row.api_key for row in peer.ask(ApiVersionsRequest("test", "1"), 3).api_keys}
    finally:
        peer.close()


@pytest.fixture
def server(node: Node, served: set[int]) -> str:
    if JOIN_GROUP not in served:
        pytest.skip(f"{node.name} does not serve JoinGroup")
    return node.bootstrap


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest, node: Node, served: set[int]) -> dict[str, Any]:
    if request.param == "consumer":
        require_consumer_protocol(node, served)
    return MODES[request.param]


def require_consumer_protocol(node: Node, served: set[int]) -> None:
    if CONSUMER_GROUP_HEARTBEAT not in served:
        pytest.skip(f"{node.name} does not serve ConsumerGroupHeartbeat")


def create(server: str, topic: str, partitions: int = 1) -> list[TopicPartition]:
    with Admin(server) as admin:
        admin.create_topics([NewTopic(topic, partitions, 1)])[topic].get()
    return [TopicPartition(topic, index) for index in range(partitions)]


def produce(server: str, topic: str, values: range, partitions: int) -> None:
    with Producer(server) as producer:
        for number in values:
            producer.send(topic, b"%d" % number, partition=number % partitions)


class Listener(RebalanceListener):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, list[int]]] = []

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("revoked", [item.partition for item in partitions]))

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("assigned", [item.partition for item in partitions]))

    def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
        self.events.append(("lost", [item.partition for item in partitions]))


def member(server: str, topic: str, mode: dict[str, Any], **more: Any) -> Consumer:
    """A consumer of the group that has the topic's name, not yet subscribed."""
    return Consumer(server, config={"auto.offset.reset": "earliest", "group.id": f"g-{topic}", **mode}, **more)


def pump(consumers: list[Consumer], until: Callable[[], bool]) -> list[ConsumerRecord]:
    """Polls all of them in turn until the condition holds; fails after half a minute."""
    records: list[ConsumerRecord] = []
    deadline = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < deadline, f"not so after {SECONDS} s: {[c.assignment() for c in consumers]}"
        for consumer in consumers:
            records += consumer.poll(50)
    return records


def counts(*consumers: Consumer) -> list[int]:
    return [len(consumer.assignment()) for consumer in consumers]


def values(records: list[ConsumerRecord]) -> list[int]:
    return sorted(int(record.value) for record in records)


def test_members_share_the_partitions_and_every_record_is_read_once(
    server: str, topic: str, mode: dict[str, Any]
) -> None:
    create(server, topic, 6)
    produce(server, topic, range(120), 6)
    seen: list[ConsumerRecord] = []
    first, second = member(server, topic, mode), member(server, topic, mode)
    first.subscribe([topic])
    while len(seen) < 120:
        seen += pump([first], lambda: first.position(TopicPartition(topic, 0)) > 0 if first.assignment() else False)
        seen += first.poll(100)
    second.subscribe([topic])
    seen += pump([first, second], lambda: counts(first, second) == [3, 3])
    assert not set(first.assignment()) & set(second.assignment())
    produce(server, topic, range(120, 240), 6)
    deadline = time.monotonic() + SECONDS
    while len(seen) < 240 and time.monotonic() < deadline:
        seen += first.poll(50) + second.poll(50)
    first.close()
    seen += pump([second], lambda: counts(second) == [6])
    produce(server, topic, range(240, 300), 6)
    deadline = time.monotonic() + SECONDS
    while len(seen) < 300 and time.monotonic() < deadline:
        seen += second.poll(50)
    second.close()
    assert values(seen) == list(range(300))


def test_a_listener_is_told_what_comes_and_goes(server: str, topic: str, mode: dict[str, Any]) -> None:
    create(server, topic, 4)
    listeners = [Listener(), Listener()]
    with member(server, topic, mode) as first:
        first.subscribe([topic], listener=listeners[0])
        pump([first], lambda: counts(first) == [4])
        with member(server, topic, mode) as second:
            second.subscribe([topic], listener=listeners[1])
            pump([first, second], lambda: counts(first, second) == [2, 2])
            kept = [item.partition for item in first.assignment()]
        pump([first], lambda: counts(first) == [4])
    given = sorted({0, 1, 2, 3} - set(kept))
    eager = mode.get("partition.assignment.strategy") == "range"
    told = [event for event in listeners[0].events if event[1] or eager]
    if eager:
        assert told == [
            ("assigned", [0, 1, 2, 3]),
            ("revoked", [0, 1, 2, 3]),
            ("assigned", kept),
            ("revoked", kept),
            ("assigned", [0, 1, 2, 3]),
            ("revoked", [0, 1, 2, 3]),
        ]
    else:
        assert told == [
            ("assigned", [0, 1, 2, 3]),
            ("revoked", given),
            ("assigned", given),
            ("revoked", [0, 1, 2, 3]),
        ]
    assert [event for event in listeners[1].events if event[1]] == [("assigned", given), ("revoked", given)]


def test_reading_goes_on_where_the_group_committed(server: str, topic: str, mode: dict[str, Any]) -> None:
    """By hand, in the listener, and automatically at the end."""
    create(server, topic, 2)
    produce(server, topic, range(100), 2)
    with member(server, topic, {**mode, "enable.auto.commit": False}) as consumer:
        consumer.subscribe([topic])
        pump([consumer], lambda: counts(consumer) == [2])
        while sum(consumer.position(item) for item in consumer.assignment()) < 100:
            consumer.poll(100)
        consumer.commit(
            {TopicPartition(topic, 0): OffsetAndMetadata(30, metadata="halfway"), TopicPartition(topic, 1): 40}
        )
    with member(server, topic, mode) as consumer:
        found = consumer.committed([TopicPartition(topic, 0), TopicPartition(topic, 1), TopicPartition(topic, 7)])
        assert found[TopicPartition(topic, 0)] == OffsetAndMetadata(30, -1, "halfway")
        assert found[TopicPartition(topic, 7)] is None
        consumer.subscribe([topic])
        records: list[ConsumerRecord] = []
        deadline = time.monotonic() + SECONDS
        while len(records) < 30 and time.monotonic() < deadline:
            records += consumer.poll(100)
        assert sorted((r.partition, r.offset) for r in records) == [(0, n) for n in range(30, 50)] + [
            (1, n) for n in range(40, 50)
        ]
    with member(server, topic, mode) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        assert consumer.position(TopicPartition(topic, 0)) == 50


def test_asynchronous_and_automatic_commits(server: str, topic: str, mode: dict[str, Any]) -> None:
    create(server, topic, 1)
    produce(server, topic, range(10), 1)
    partition = TopicPartition(topic, 0)
    done: list[tuple[Any, Any]] = []
    with member(server, topic, {**mode, "auto.commit.interval.ms": 200}) as consumer:
        consumer.subscribe([topic])
        consumer.poll(100)
        pump([consumer], lambda: counts(consumer) == [1])
        while consumer.position(partition) < 10:
            consumer.poll(100)
        consumer.commit_async({partition: OffsetAndMetadata(3)}, lambda offsets, error: done.append((offsets, error)))
        pump([consumer], lambda: bool(done))
        assert done == [({partition: OffsetAndMetadata(3)}, None)]
        pump([consumer], lambda: consumer.committed([partition])[partition] == OffsetAndMetadata(10, 0))


def test_a_member_lives_while_the_user_works(server: str, topic: str, mode: dict[str, Any]) -> None:
    """Heartbeats go on between polls, for longer than the session timeout."""
    create(server, topic, 1)
    classic = "group.protocol" not in mode
    with member(server, topic, {**mode, **({"session.timeout.ms": SESSION_MS} if classic else {})}) as consumer:
        consumer.subscribe([topic])
        pump([consumer], lambda: counts(consumer) == [1])
        before = consumer.group_metadata()
        time.sleep(2 * SESSION_MS / 1000 if classic else 5)
        consumer.poll(300)
        consumer.commit({TopicPartition(topic, 0): 0})
        assert consumer.group_metadata() == before


def test_a_slow_listener_does_not_cost_the_membership(server: str, topic: str) -> None:
    """Heartbeats go on while it runs, for longer than the session timeout."""
    create(server, topic, 1)
    told: list[str] = []

    class Slow(RebalanceListener):
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            time.sleep(2 * SESSION_MS / 1000)
            told.append("assigned")

        def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            time.sleep(2 * SESSION_MS / 1000)
            consumer.commit({TopicPartition(topic, 0): 0})
            told.append("revoked")

        def on_partitions_lost(self, partitions: list[TopicPartition]) -> None:
            told.append("lost")

    with member(server, topic, {**MODES["eager"], "session.timeout.ms": SESSION_MS}) as consumer:
        consumer.subscribe([topic], listener=Slow())
        pump([consumer], lambda: told == ["assigned"])
        consumer.commit({TopicPartition(topic, 0): 0})
        consumer.enforce_rebalance()
        pump([consumer], lambda: len(told) == 3)
    assert told == ["assigned", "revoked", "assigned", "revoked"]


def test_a_member_that_does_not_poll_is_left_out(server: str, topic: str, mode: dict[str, Any]) -> None:
    """After max.poll.interval.ms it leaves; what it commits then is refused, and it is told that it lost everything."""
    create(server, topic, 2)
    listener = Listener()
    with member(server, topic, {**mode, "max.poll.interval.ms": 1000}) as slow, member(server, topic, mode) as quick:
        slow.subscribe([topic], listener=listener)
        pump([slow], lambda: counts(slow) == [2])
        quick.subscribe([topic])
        start = time.monotonic()
        pump([quick], lambda: counts(quick) == [2])
        assert time.monotonic() - start > 0.5
        with pytest.raises(CommitFailedError):
            slow.commit({TopicPartition(topic, 0): 1})
        pump([slow, quick], lambda: counts(slow, quick) == [1, 1])
        assert [kind for kind, items in listener.events if items][:2] == ["assigned", "lost"]


def test_a_static_member_finds_its_partitions_again(server: str, topic: str, mode: dict[str, Any]) -> None:
    create(server, topic, 4)
    other = member(server, topic, mode, group_instance_id="other")
    first = member(server, topic, mode, group_instance_id="first")
    other.subscribe([topic])
    first.subscribe([topic])
    pump([other, first], lambda: counts(other, first) == [2, 2])
    theirs, ours = other.assignment(), first.assignment()
    before = other.group_metadata()
    first.close()
    with member(server, topic, mode, group_instance_id="first") as again:
        again.subscribe([topic])
        pump([again], lambda: counts(again) == [2])
        other.poll(500)
        assert again.assignment() == ours and other.assignment() == theirs
        assert other.group_metadata() == before
        again.close(leave_group=True)
        pump([other], lambda: counts(other) == [4])
    other.close()


def test_two_members_cannot_have_one_instance_id(server: str, topic: str, mode: dict[str, Any]) -> None:
    """Classic: the later one wins. KIP-848: the earlier one does."""
    create(server, topic, 1)
    first = member(server, topic, mode, group_instance_id="same")
    second = member(server, topic, mode, group_instance_id="same")
    first.subscribe([topic])
    pump([first], lambda: counts(first) == [1])
    second.subscribe([topic])
    if "group.protocol" in mode:
        with pytest.raises(ClientError) as caught:
            pump([second], lambda: False)
        assert caught.value.name == "UNRELEASED_INSTANCE_ID"
        second.close()
        first.poll(100)
        first.close()
        return
    with pytest.raises(FencedInstanceIdError):
        pump([second, first], lambda: False)
    with pytest.raises(FencedInstanceIdError):
        first.commit({TopicPartition(topic, 0): 1})
    first.close()
    pump([second], lambda: counts(second) == [1])
    second.close()


def test_a_pattern_finds_topics(server: str, topic: str, mode: dict[str, Any]) -> None:
    names = {f"{topic}-a", f"{topic}-b", f"x{topic}-a"}
    for name in names:
        create(server, name, 1)
    with Admin(server) as admin:  # a topic that metadata does not show yet is found metadata.max.age.ms later
        deadline = time.monotonic() + SECONDS
        while not names <= {found.name for found in admin.list_topics()}:
            assert time.monotonic() < deadline, "the topics are not in the metadata"
            time.sleep(0.02)
    with member(server, topic, mode) as consumer:
        consumer.subscribe(pattern=f"{topic}-.*")
        pump([consumer], lambda: counts(consumer) == [2])
        assert sorted(item.topic for item in consumer.assignment()) == [f"{topic}-a", f"{topic}-b"]
    with member(server, topic, mode, metadata_max_age_ms=300) as consumer:
        consumer.subscribe(pattern=re.compile(f"{topic}-.*"))
        pump([consumer], lambda: counts(consumer) == [2])
        create(server, f"{topic}-later", 1)
        pump([consumer], lambda: counts(consumer) == [3])
        assert consumer.subscription() == {f"{topic}-a", f"{topic}-b", f"{topic}-later"}


def test_partitions_and_topics_that_come_later_are_read(server: str, topic: str, mode: dict[str, Any]) -> None:
    create(server, topic, 1)
    config = {**mode, "metadata.max.age.ms": 300, "allow.auto.create.topics": False}
    with member(server, topic, config) as consumer:
        consumer.subscribe([topic, f"{topic}-later"])
        pump([consumer], lambda: counts(consumer) == [1])
        with Admin(server) as admin:
            admin.create_partitions({topic: 3})[topic].get()
        pump([consumer], lambda: counts(consumer) == [3])
        create(server, f"{topic}-later", 2)
        pump([consumer], lambda: counts(consumer) == [5])


def test_another_subscription_and_none(server: str, topic: str, mode: dict[str, Any]) -> None:
    create(server, topic, 2)
    create(server, f"{topic}-2", 1)
    listener = Listener()
    with member(server, topic, mode) as consumer:
        consumer.subscribe([topic], listener=listener)
        pump([consumer], lambda: counts(consumer) == [2])
        consumer.subscribe([f"{topic}-2"], listener=listener)
        pump([consumer], lambda: consumer.assignment() == [TopicPartition(f"{topic}-2", 0)])
        consumer.unsubscribe()
        assert consumer.assignment() == [] and consumer.subscription() == set()
        assert [event for event in listener.events if event[1]] == [
            ("assigned", [0, 1]),
            ("revoked", [0, 1]),
            ("assigned", [0]),
            ("revoked", [0]),
        ]
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(ClientError, match="unsubscribe"):
            consumer.subscribe([topic])
        consumer.unsubscribe()
        consumer.subscribe([topic])
        pump([consumer], lambda: counts(consumer) == [2])


def test_pauses_outlive_a_rebalance_in_which_the_partition_stays(server: str, topic: str, mode: dict[str, Any]) -> None:
    if mode.get("partition.assignment.strategy") == "range":
        return  # An eager rebalance takes everything away.
    create(server, topic, 2)
    with member(server, topic, mode) as first, member(server, topic, mode) as second:
        first.subscribe([topic])
        pump([first], lambda: counts(first) == [2])
        first.pause(first.assignment())
        second.subscribe([topic])
        pump([first, second], lambda: counts(first, second) == [1, 1])
        assert first.paused() == first.assignment()
        produce(server, topic, range(2), 2)
        assert first.poll(300) == []
        assert len(pump([second], lambda: second.position(second.assignment()[0]) == 1)) == 1


def test_errors_are_those_of_kafka(server: str, node: Node, served: set[int], topic: str) -> None:
    create(server, topic, 1)
    with Consumer(server) as consumer:
        with pytest.raises(InvalidGroupIdError):
            consumer.subscribe([topic])
        with pytest.raises(InvalidGroupIdError):
            consumer.commit()
    with member(server, topic, {}, auto_offset_reset="none") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(NoOffsetForPartitionError):
            pump([consumer], lambda: False)
    require_consumer_protocol(node, served)
    with member(server, topic + "1", MODES["consumer"], group_remote_assignor="none-such") as consumer:
        consumer.subscribe([topic])
        with pytest.raises(UnsupportedAssignorError):
            pump([consumer], lambda: False)
    with member(server, topic + "2", MODES["consumer"]) as consumer:
        consumer.subscribe(pattern="(")
        with pytest.raises(ClientError) as caught:
            pump([consumer], lambda: False)
        assert caught.value.name == "INVALID_REGULAR_EXPRESSION"


def test_server_side_assignors(server: str, node: Node, served: set[int], topic: str) -> None:
    require_consumer_protocol(node, served)
    for name in ("uniform", "range"):
        create(server, f"{topic}-{name}", 4)
        config = {**MODES["consumer"], "group.remote.assignor": name}
        with member(server, f"{topic}-{name}", config) as first, member(server, f"{topic}-{name}", config) as second:
            for consumer in (first, second):
                consumer.subscribe([f"{topic}-{name}"])
            pump([first, second], lambda: counts(first, second) == [2, 2])


def test_a_rebalance_can_be_enforced(server: str, topic: str) -> None:
    create(server, topic, 1)
    with member(server, topic, MODES["eager"]) as consumer:
        consumer.subscribe([topic])
        pump([consumer], lambda: counts(consumer) == [1])
        before = consumer.group_metadata().generation_id
        consumer.enforce_rebalance("just because")
        pump([consumer], lambda: consumer.group_metadata().generation_id > before and counts(consumer) == [1])


@pytest.mark.parametrize("first", ["classic", "consumer"])
def test_a_group_goes_over_from_one_protocol_to_the_other(
    server: str, node: Node, served: set[int], topic: str, first: str
) -> None:
    """KIP-848's online migration, both ways: members of both kinds share the partitions, then one kind is alone."""
    require_consumer_protocol(node, served)
    create(server, topic, 4)
    kinds = {"classic": MODES["cooperative"], "consumer": MODES["consumer"]}
    second = "consumer" if first == "classic" else "classic"
    old, new = member(server, topic, kinds[first]), member(server, topic, kinds[second])
    seen: list[ConsumerRecord] = []
    old.subscribe([topic])
    seen += pump([old], lambda: counts(old) == [4])
    new.subscribe([topic])
    seen += pump([old, new], lambda: counts(old, new) == [2, 2])
    produce(server, topic, range(40), 4)
    deadline = time.monotonic() + SECONDS
    while len(seen) < 40 and time.monotonic() < deadline:
        seen += old.poll(50) + new.poll(50)
    old.close()
    seen += pump([new], lambda: counts(new) == [4])
    produce(server, topic, range(40, 60), 4)
    deadline = time.monotonic() + SECONDS
    while len(seen) < 60 and time.monotonic() < deadline:
        seen += new.poll(50)
    new.close()
    assert values(seen) == list(range(60))


# Mixed groups

STRATEGIES = ["range", "roundrobin", "cooperative-sticky"]


@pytest.mark.parametrize("first", ["theirs", "ours"])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "consumer"])
def test_a_group_with_confluent_kafka(
    server: str, node: Node, served: set[int], topic: str, strategy: str, first: str
) -> None:
    """Whoever comes first leads; what both read is everything once, and ours goes on alone."""
    confluent = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    settings: dict[str, Any] = {"group.protocol": "consumer"}
    if strategy == "consumer":
        require_consumer_protocol(node, served)
    else:
        settings = {"partition.assignment.strategy": strategy, "heartbeat.interval.ms": 200}
    create(server, topic, 6)
    other = confluent.Consumer(
        {"bootstrap.servers": server, "group.id": f"g-{topic}", "auto.offset.reset": "earliest", **settings}
    )
    ours = member(server, topic, settings)
    read: list[int] = []

    def poll_both(until: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS
        while not until():
            assert time.monotonic() < deadline, (other.assignment(), ours.assignment(), read)
            message = other.poll(0.05)
            if message is not None and message.error() is None:
                read.append(int(message.value()))
            read.extend(values(ours.poll(50)))

    early, late = (other, ours) if first == "theirs" else (ours, other)
    early.subscribe([topic])
    poll_both(lambda: len(early.assignment()) == 6)
    late.subscribe([topic])
    poll_both(lambda: len(other.assignment()) == len(ours.assignment()) == 3)
    assert {(item.topic, item.partition) for item in other.assignment()}.isdisjoint(ours.assignment())
    produce(server, topic, range(60), 6)
    poll_both(lambda: len(read) >= 60)
    other.close()
    pump([ours], lambda: counts(ours) == [6])
    produce(server, topic, range(60, 90), 6)
    read += values(pump([ours], lambda: sum(ours.position(item) for item in ours.assignment()) == 90))
    ours.close()
    assert sorted(read) == list(range(90))


class JavaMember:
    """kafka-verifiable-consumer: reports as JSON what it is assigned and what it reads."""

    def __init__(self, server: str, topic: str, *arguments: str) -> None:
        command = kafka_oracle.java_command(
            "org.apache.kafka.tools.VerifiableConsumer",
            "--bootstrap-server",
            server,
            "--topic",
            topic,
            "--group-id",
            f"g-{topic}",
            "--reset-policy",
            "earliest",
            *arguments,
        )
        self.partitions: set[int] = set()
        self.read = 0
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if not line.startswith("{"):
                continue
            event = json.loads(line)
            items = {row["partition"] for row in event.get("partitions", []) if isinstance(row, dict)}
            if event["name"] == "partitions_assigned":
                self.partitions |= items
            elif event["name"] == "partitions_revoked":
                self.partitions -= items
            elif event["name"] == "records_consumed":
                self.read += event["count"]

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(patience(20))
        self._thread.join(patience(10))


@pytest.mark.parametrize(
    "strategy", ["RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor", "consumer"]
)
def test_a_group_with_the_java_consumer(
    server: str, node: Node, served: set[int], topic: str, strategy: str, kafka_tools: None
) -> None:
    """Java leads and ours joins, Java leaves and ours goes on, Java comes back and ours leads."""
    settings: dict[str, Any]
    if strategy == "consumer":
        require_consumer_protocol(node, served)
        arguments = ["--group-protocol", "consumer"]
        settings = {"group.protocol": "consumer"}
    else:
        name = f"org.apache.kafka.clients.consumer.{strategy}"
        arguments = ["--assignment-strategy", name, "--session-timeout", "6000"]
        settings = {"partition.assignment.strategy": name, "heartbeat.interval.ms": 200}
    create(server, topic, 6)
    java = JavaMember(server, topic, *arguments)
    ours = member(server, topic, settings)
    records: list[ConsumerRecord] = []
    try:
        ours.subscribe([topic])
        records += pump([ours], lambda: len(java.partitions) == 3 and counts(ours) == [3])
        assert java.partitions | {item.partition for item in ours.assignment()} == set(range(6))
        produce(server, topic, range(60), 6)
        deadline = time.monotonic() + SECONDS
        while java.read + len(records) < 60 and time.monotonic() < deadline:
            records += ours.poll(100)
        assert (java.read, len(records)) == (30, 30)
        java.stop()
        records += pump([ours], lambda: counts(ours) == [6])
        java = JavaMember(server, topic, *arguments)
        records += pump([ours], lambda: len(java.partitions) == 3 and counts(ours) == [3])
        assert java.partitions | {item.partition for item in ours.assignment()} == set(range(6))
        assert len(records) == 30
    finally:
        java.stop()
        ours.close()


def test_a_group_outlives_its_broker(node: Node, server: str, topic: str, mode: dict[str, Any]) -> None:
    """The broker is killed and started again; the members go on, and nothing is lost."""
    create(server, topic, 2)
    produce(server, topic, range(20), 2)
    seen: list[ConsumerRecord] = []
    with member(server, topic, mode) as consumer:
        consumer.subscribe([topic])
        while len(seen) < 20:
            seen += pump([consumer], lambda: counts(consumer) == [2])
            seen += consumer.poll(100)
        consumer.commit()
        node.kill()
        for _ in range(3):
            assert consumer.poll(100) == []
        node.start()
        produce(server, topic, range(20, 40), 2)
        deadline = time.monotonic() + SECONDS
        while len(seen) < 40 and time.monotonic() < deadline:
            seen += consumer.poll(100)
        while True:
            try:
                consumer.commit()
                break
            except CommitFailedError:
                # The broker may have come back too late for this member, which then joins again.
                assert time.monotonic() < deadline
                seen += consumer.poll(100)
    assert sorted({int(record.value) for record in seen}) == list(range(40))


def test_the_asyncio_face(server: str, topic: str, mode: dict[str, Any]) -> None:
    """A listener may be asynchronous, and commit."""
    create(server, topic, 2)
    produce(server, topic, range(20), 2)
    told: list[str] = []

    class Async(RebalanceListener):
        async def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:  # type: ignore[override]
            await asyncio.sleep(0.01)
            told.append("assigned")

        async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:  # type: ignore[override]
            await consumer.commit()
            told.append("revoked")

    consumer: AsyncConsumer

    async def scenario() -> int:
        nonlocal consumer
        config = {"auto.offset.reset": "earliest", "group.id": f"g-{topic}", **mode, "enable.auto.commit": False}
        consumer = AsyncConsumer(server, config=config)
        async with consumer:
            await consumer.subscribe([topic], listener=Async())
            seen = 0
            async for _ in consumer:
                seen += 1
                if seen == 20:
                    break
        return seen

    assert asyncio.run(asyncio.wait_for(scenario(), SECONDS)) == 20
    assert told == ["assigned", "revoked"]
    with member(server, topic, mode) as reader:
        found = reader.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)])
    assert [row.offset for row in found.values() if row is not None] == [10, 10]
