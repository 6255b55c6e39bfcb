"""One cluster of both: a broker of one kind under a controller of the other, each following the other's partitions.

This is what lets people move from one to the other without stopping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from moldau.protocol.messages import describe_quorum_request as quorum
from tests.interop.conftest import require_kafka, stop_cleanly
from tests.interop.kafka_oracle import KafkaNode
from tests.interop.nodes import HOST, MoldauNode, Node
from tests.interop.peers import Peer
from tests.pace import patience

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
admin_module = pytest.importorskip("confluent_kafka.admin", reason="confluent-kafka is not installed")

RECORDS = 500
WAIT_SECONDS_MAX = patience(30)


class Pair:
    """Node 1 is broker and controller, node 2 a broker under it."""

    def __init__(self, first: Node, second: Node) -> None:
        self.first = first
        self.second = second
        self.topic = ""
        self.admin = admin_module.AdminClient({"bootstrap.servers": second.bootstrap})

    def isr(self) -> list[list[int]]:
        partitions = self.admin.list_topics(self.topic, 10).topics[self.topic].partitions
        return [sorted(partitions[index].isrs) for index in sorted(partitions)]

    def leaders(self) -> list[int]:
        partitions = self.admin.list_topics(self.topic, 10).topics[self.topic].partitions
        return [partitions[index].leader for index in sorted(partitions)]

    def log_bytes(self, node: Node, index: int) -> bytes:
        return b"".join(path.read_bytes() for path in sorted((node.data / f"{self.topic}-{index}").glob("*.log")))


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


@pytest.fixture(scope="module", params=["moldau under kafka", "kafka under moldau"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    require_kafka()
    kinds: tuple[type[Node], type[Node]] = (KafkaNode, MoldauNode)
    if request.param == "kafka under moldau":
        kinds = (MoldauNode, KafkaNode)
    first = kinds[0](tmp_path_factory.mktemp("first"))
    second = kinds[1](tmp_path_factory.mktemp("second"))
    second.cluster_id = first.cluster_id
    second.write_properties(
        {
            "process.roles": "broker",
            "node.id": "2",
            "listeners": f"PLAINTEXT://{HOST}:{second.port}",
            "controller.quorum.voters": f"1@{HOST}:{first.controller_port}",
        }
    )
    for node in (first, second):
        node.format()
        node.start()
    yield Pair(first, second)
    stop_cleanly(second)
    stop_cleanly(first)


def create(pair: Pair, topic: str) -> None:
    """Asked of the broker, decided by the other kind's controller; each node leads one partition."""
    pair.topic = topic
    wanted = admin_module.NewTopic(topic, 2, replica_assignment=[[1, 2], [2, 1]], config={"min.insync.replicas": "2"})
    pair.admin.create_topics([wanted])[topic].result(patience(30))
    wait_for(lambda: pair.isr() == [[1, 2], [1, 2]] and pair.leaders() == [1, 2])


def produce(pair: Pair, first: int) -> None:
    """Acknowledged only when both kinds have it."""
    failures: list[object] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": pair.first.bootstrap, "enable.idempotence": True, "linger.ms": 1}
    )
    for number in range(first, first + RECORDS):
        for index in (0, 1):
            producer.produce(
                pair.topic, str(number).encode(), partition=index, on_delivery=lambda error, _: failures.append(error)
            )
        producer.poll(0)
    assert producer.flush(patience(30)) == 0
    assert set(failures) == {None} and len(failures) == 2 * RECORDS


def read(pair: Pair, index: int, count: int) -> list[int]:
    # Without a commit: the coordinator may be the node that is down.
    settings = {"bootstrap.servers": pair.first.bootstrap, "group.id": "unused", "enable.auto.commit": False}
    consumer = confluent_kafka.Consumer(settings)
    try:
        consumer.assign([confluent_kafka.TopicPartition(pair.topic, index, 0)])
        found: list[int] = []
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while len(found) < count and time.monotonic() < deadline:
            for message in consumer.consume(count - len(found), 1.0):
                assert message.error() is None, message.error()
                found.append(int(message.value()))
        return found
    finally:
        consumer.close()


def test_brokers_of_both_kinds_follow_each_other(pair: Pair) -> None:
    create(pair, "followed")
    produce(pair, 0)
    for index in (0, 1):
        assert read(pair, index, RECORDS) == list(range(RECORDS))

    # A follower learns the high watermark later; who leads alone, below min.insync.replicas, cannot move it.
    time.sleep(1.5)
    # The broker leaves as it should: its partitions have another leader when it is gone.
    stop_cleanly(pair.second)
    pair.admin = admin_module.AdminClient({"bootstrap.servers": pair.first.bootstrap})
    assert pair.leaders() == [1, 1] and pair.isr() == [[1], [1]]
    assert read(pair, 1, RECORDS) == list(range(RECORDS)), "what the other kind led"
    for index in (0, 1):
        assert pair.log_bytes(pair.second, index) == pair.log_bytes(pair.first, index) != b""

    # It comes back, catches up and is in sync again.
    pair.second.start()
    wait_for(lambda: pair.isr() == [[1, 2], [1, 2]])
    produce(pair, RECORDS)
    for index in (0, 1):
        assert read(pair, index, 2 * RECORDS) == list(range(2 * RECORDS))


def test_settings_changed_through_one_kind_are_seen_by_the_other(pair: Pair) -> None:
    create(pair, "changed")
    resource = admin_module.ConfigResource(admin_module.RESOURCE_TOPIC, pair.topic)
    resource.add_incremental_config(
        admin_module.ConfigEntry("retention.ms", "7777777", incremental_operation=admin_module.AlterConfigOpType.SET)
    )
    pair.admin.incremental_alter_configs([resource])[resource].result(patience(30))
    for node in (pair.first, pair.second):
        admin = admin_module.AdminClient({"bootstrap.servers": node.bootstrap})
        asked = admin_module.ConfigResource(admin_module.RESOURCE_TOPIC, pair.topic)

        wait_for(partial(has_value, admin, asked, "retention.ms", "7777777"))


def has_value(admin: Any, resource: Any, key: str, value: str) -> bool:
    """False also while the broker that is asked has not heard of the topic."""
    try:
        return bool(admin.describe_configs([resource])[resource].result(patience(30))[key].value == value)
    except confluent_kafka.KafkaException as error:
        if error.args[0].code() != confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise
        return False


@pytest.fixture
def voters(tmp_path: Path) -> Iterator[list[Node]]:
    """Three nodes that are broker and controller: Apache Kafka has the first vote, Moldau the other two."""
    require_kafka()
    nodes: list[Node] = [KafkaNode(tmp_path / "1"), MoldauNode(tmp_path / "2"), MoldauNode(tmp_path / "3")]
    voters = ",".join(f"{number}@{HOST}:{node.controller_port}" for number, node in enumerate(nodes, 1))
    for number, node in enumerate(nodes, 1):
        node.cluster_id = nodes[0].cluster_id
        node.write_properties({"node.id": str(number), "controller.quorum.voters": voters})
        node.format()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda node: node.start(), nodes))
    yield nodes
    for node in nodes:
        node.kill()


def quorum_leader(nodes: list[Node]) -> Node:
    peer = Peer(next(node for node in nodes if node.process is not None))
    try:
        asked = quorum.DescribeQuorumRequest([quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])])
        leader_id: int = peer.ask(asked, 2).topics[0].partitions[0].leader_id
        return nodes[leader_id - 1]
    finally:
        peer.close()


def topics_of(node: Node) -> set[str]:
    return set(admin_module.AdminClient({"bootstrap.servers": node.bootstrap}).list_topics(timeout=patience(10)).topics)


def create_topic(node: Node, name: str) -> None:
    """Asks again where the broker had named a dead one as the controller: librdkafka would go on calling that one."""
    deadline = time.monotonic() + patience(60)
    while True:
        admin = admin_module.AdminClient({"bootstrap.servers": node.bootstrap})
        asked = admin.create_topics([admin_module.NewTopic(name, 1, 2)], request_timeout=patience(5))
        try:
            asked[name].result()
            return
        except confluent_kafka.KafkaException as error:
            code = error.args[0].code()
            if code == confluent_kafka.KafkaError.TOPIC_ALREADY_EXISTS:
                return
            if code != confluent_kafka.KafkaError._TIMED_OUT or time.monotonic() > deadline:
                raise


def test_a_quorum_of_both_kinds_loses_its_leader_and_goes_on(voters: list[Node]) -> None:
    created: set[str] = set()
    for number in range(3):
        dead = quorum_leader(voters)
        dead.kill()
        living = [node for node in voters if node is not dead]
        created.add(f"t{number}")
        create_topic(living[number % 2], f"t{number}")
        dead.start()
        for node in voters:
            wait_for(lambda node=node: created <= topics_of(node))  # type: ignore[misc]
