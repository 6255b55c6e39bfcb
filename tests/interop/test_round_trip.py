"""One data directory changes hands: Apache Kafka writes it, Moldau opens it and goes on, Apache Kafka takes it back.

Everything that a client can see is compared record by record on each side, after orderly stops and after kill -9, and
the real kafka-dump-log reads every file that Moldau left.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.admin import BROKER, TOPIC, ConfigChange, ConfigResource, QuotaEntity
from moldau.client.errors import RebalanceInProgressError
from moldau.protocol import errors
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest, TopicProduceData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from tests.interop.conftest import require_kafka
from tests.interop.kafka_oracle import KafkaNode, run_tool
from tests.interop.nodes import RECENT_MS, MoldauNode, Node
from tests.interop.peers import Peer
from tests.interop.test_dump_log_same import run_moldau
from tests.interop.test_group_recovery import successor
from tests.pace import patience, patience_ms

confluent_kafka = pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SECONDS = patience(40)
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "2",
    "log.cleaner.backoff.ms": "200",
    "log.segment.delete.delay.ms": "1000",
    "log.cleaner.min.compaction.lag.ms": "0",
    # Snapshots of the metadata on both sides.
    "metadata.log.max.record.bytes.between.snapshots": "4000",
    "metadata.log.segment.bytes": "8388608",
}
TABLE = {
    "cleanup.policy": "compact",
    "segment.bytes": "1048576",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "600000",
}
ODD = {
    "retention.ms": "864000000",
    "max.message.bytes": "200000",
    "compression.type": "lz4",
    "segment.bytes": "1048576",
}
GROUPS = {"old": "classic", "new": "consumer"}

Row = tuple[str, int, int, int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


class Story:
    """What was done to the directory so far, by whom, and what must be there."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.table: dict[bytes, bytes | None] = {}
        self.sent = 0
        self.records: list[Row] = []
        self.committed: list[Row] = []
        self.topics: dict[str, Any] = {}
        self.groups: dict[str, dict[tuple[str, int], int]] = {}
        self.producer_id = -1
        self.sequence = 0
        self.last_offset = -1

    # Writing

    def create_topics(self) -> None:
        topics = [NewTopic(f"codec-{codec}", 2, 1) for codec in CODECS]
        topics += [NewTopic("table", 1, 1, TABLE), NewTopic("odd", 3, 1, ODD), NewTopic("paid", 1, 1)]
        topics += [NewTopic("numbered", 1, 1), NewTopic("short-lived", 1, 1)]
        with Admin(bootstrap_servers=self.node.bootstrap) as admin:
            for outcome in admin.create_topics(topics).values():
                outcome.get()
            admin.delete_topics(["short-lived"])["short-lived"].get()

    def write(self, count: int = 60) -> None:
        """Every codec, headers, keys and values that are missing or empty."""
        for codec in CODECS:
            settings: dict[str, Any] = {"compression_type": codec, "linger_ms": 5, "batch_size": 4000}
            with Producer(bootstrap_servers=self.node.bootstrap, **settings) as producer:
                for number in range(self.sent, self.sent + count):
                    key = None if number % 7 == 0 else b"" if number % 5 == 0 else b"key-%d" % number
                    value = None if number % 11 == 0 else b"%d " % number * (number % 90)
                    headers = [("h", b"%d" % number), ("ř", None), ("h", b"")] if number % 3 == 0 else []
                    topics = {f"codec-{codec}": number % 2, "odd": number % 3}
                    for topic, partition in topics.items():
                        producer.send(
                            topic, value, key=key, partition=partition, headers=headers, timestamp_ms=RECENT_MS + number
                        )
                producer.flush()
        self.sent += count

    def fill_table(self) -> None:
        """Three megabytes over fifty keys, which compaction makes small."""
        with Producer(bootstrap_servers=self.node.bootstrap, linger_ms=5) as producer:
            for number in range(3000):
                key = b"key-%d" % (number % 50)
                value = None if number % 97 == 0 else b"%d %s " % (number, self.node.name.encode()) + b"x" * 1000
                producer.send("table", value, key=key, partition=0)
                self.table[key] = value
            producer.flush()
        folder = self.node.data / "table-0"
        deadline = time.monotonic() + SECONDS
        while sum(path.stat().st_size for path in folder.glob("*.log")) > 2_300_000:
            assert time.monotonic() < deadline, f"not compacted:\n{self.node.output()[-2000:]}"
            time.sleep(0.2)

    def write_transactions(self) -> None:
        """One transaction that counts and one that does not; only Apache Kafka has them so far."""
        producer = confluent_kafka.Producer({"bootstrap.servers": self.node.bootstrap, "transactional.id": "payer"})
        producer.init_transactions(30)
        for end in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            for number in range(4):
                producer.produce("paid", key=b"%d" % number, value=end.__name__.encode(), partition=0)
            producer.flush(patience(20))
            end(30)

    def write_numbered(self) -> None:
        """An idempotent producer by hand: what it sends twice is there once, and what is missing is noticed."""
        peer = Peer(self.node)
        try:
            if self.producer_id < 0:
                self.producer_id = peer.ask(InitProducerIdRequest(None, 60_000), 4).producer_id
            else:
                again = self._produce(peer, self.sequence - 1)
                assert (again.error_code, again.base_offset) == (errors.NONE, self.last_offset), "a duplicate"
                assert self._produce(peer, self.sequence + 5).error_code == errors.OUT_OF_ORDER_SEQUENCE_NUMBER
            for _ in range(3):
                self._send_next(peer)
        finally:
            peer.close()

    def _send_next(self, peer: Peer) -> None:
        answer = self._produce(peer, self.sequence)
        assert answer.error_code == errors.NONE, answer
        self.last_offset = answer.base_offset
        self.sequence += 1

    def _produce(self, peer: Peer, sequence: int) -> Any:
        builder = BatchBuilder()
        builder.append(RECENT_MS + sequence, b"n", b"%d" % sequence)
        data = builder.build(producer_id=self.producer_id, producer_epoch=0, base_sequence=sequence)
        partition = PartitionProduceData(index=0, records=MemoryRecords(data, 0, len(data)))
        topic = TopicProduceData(name="numbered", partition_data=[partition])
        answer = peer.ask(ProduceRequest(acks=-1, timeout_ms=patience_ms(5000), topic_data=[topic]), 9)
        return answer.responses[0].partition_responses[0]

    def consume(self, group: str, count: int) -> list[tuple[str, int, int]]:
        """Reads on where the group stands and commits what was read."""
        settings: dict[str, Any] = {"group_id": group, "group_protocol": GROUPS[group], "auto_offset_reset": "earliest"}
        read: list[tuple[str, int, int]] = []
        got: list[tuple[str, int, int]] = []
        with Consumer(
            bootstrap_servers=self.node.bootstrap, enable_auto_commit=False, max_poll_records=20, **settings
        ) as consumer:
            consumer.subscribe([f"codec-{codec}" for codec in CODECS])
            deadline = time.monotonic() + SECONDS
            while len(read) < count:
                assert time.monotonic() < deadline, f"{group} got {len(read)} of {count}:\n{self.node.output()[-2000:]}"
                got += [(record.topic, record.partition, record.offset) for record in consumer.poll(500)]
                try:
                    consumer.commit()
                except RebalanceInProgressError:
                    continue  # what was not committed may come again
                read += dict.fromkeys(got)
                got = []
        return read

    def advance(self, group: str, count: int) -> None:
        """The group goes on exactly where it stood."""
        before = self.groups.get(group, {})
        position = dict(before)
        for topic, partition, offset in self.consume(group, count):
            assert offset == position.get((topic, partition), 0), f"{group} in {topic}-{partition}"
            position[topic, partition] = offset + 1
        self.groups[group] = position
        assert position != before

    # Looking

    def remember(self) -> None:
        self.records = self.read("read_uncommitted")
        self.committed = self.read("read_committed")
        self.topics = self.describe()

    def read(self, isolation: str) -> list[Row]:
        rows: list[Row] = []
        with Consumer(bootstrap_servers=self.node.bootstrap, isolation_level=isolation) as consumer:
            names = [*(f"codec-{codec}" for codec in CODECS), "table", "odd", "paid", "numbered", "born-in-moldau"]
            with Admin(bootstrap_servers=self.node.bootstrap) as admin:
                topics = {topic.name: topic for topic in admin.list_topics() if topic.name in names}
            partitions = [TopicPartition(name, index) for name, topic in topics.items() for index in topic.partitions]
            consumer.assign(partitions)
            consumer.seek_to_beginning(partitions)
            ends = consumer.end_offsets(partitions)
            deadline = time.monotonic() + SECONDS
            while any(consumer.position(each) < ends[each] for each in partitions):
                assert time.monotonic() < deadline, "cannot be read to the end"
                for record in consumer.poll(500):
                    headers = tuple((name, value) for name, value in record.headers)
                    where = (record.topic, record.partition, record.offset, record.timestamp)
                    rows.append((*where, record.key, record.value, headers))
        return sorted(rows, key=lambda row: row[:3])

    def describe(self) -> dict[str, Any]:
        with Admin(bootstrap_servers=self.node.bootstrap) as admin:
            found = {}
            for topic in admin.list_topics():
                resource = ConfigResource(TOPIC, topic.name)
                configs = admin.describe_configs([resource])[resource].get()
                own = {entry.name: entry.value for entry in configs if entry.source == 1}
                found[topic.name] = (topic.topic_id, len(topic.partitions), own)
            return found

    def check_same(self) -> None:
        """What is there is what was there, apart from records that compaction took away meanwhile."""
        uncommitted, committed = self.read("read_uncommitted"), self.read("read_committed")
        assert without_table(uncommitted) == without_table(self.records)
        assert without_table(committed) == without_table(self.committed)
        known = {row[:3]: row for row in self.records}
        assert all(row == known[row[:3]] for row in uncommitted), "a record of the table changed"
        last: dict[bytes, bytes | None] = {}
        for row in uncommitted:
            if row[0] == "table":
                assert row[4] is not None
                last[row[4]] = row[5]
        assert {key: last.get(key) for key in self.table} == self.table
        assert self.describe() == self.topics
        assert any(row[5] == b"abort_transaction" for row in uncommitted)
        assert not any(row[5] == b"abort_transaction" for row in committed)


def without_table(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] != "table"]


# What only the controller knows: it must survive a visit of Moldau even where Moldau does nothing with it.


def set_other_metadata(node: Node) -> None:
    with Admin(bootstrap_servers=node.bootstrap) as admin:
        entity = QuotaEntity.of({"user": "anna", "client-id": None})
        for outcome in admin.alter_client_quotas({entity: {"producer_byte_rate": 12345.0}}).values():
            outcome.get()
        changes = {ConfigResource(BROKER, ""): [ConfigChange("log.retention.ms", "777000000")]}
        for changed in admin.incremental_alter_configs(changes).values():
            changed.get()
    scram = "SCRAM-SHA-256=[iterations=4096,password=secret]"
    arguments = ("--alter", "--add-config", scram, "--entity-type", "users", "--entity-name", "anna")
    done = run_tool("configs", "--bootstrap-server", node.bootstrap, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr


def other_metadata(node: Node) -> str:
    said = []
    for kind in ("users", "brokers"):
        more = ("--entity-default",) if kind == "brokers" else ()
        done = run_tool("configs", "--bootstrap-server", node.bootstrap, "--describe", "--entity-type", kind, *more)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    return "".join(said)


# The files


def check_files(node: Node, clean: bool) -> None:
    """Nothing is wrong in the directory, as we see it and as the real tool sees it."""
    done = run_moldau("log", "verify", str(node.data), "--format", "json")
    found = json.loads(done.stdout)["findings"]
    leaving = ("-delete", ".deleted")
    errors_found = [each for each in found if each["severity"] == "error" and not each["path"].endswith(leaving)]
    assert not errors_found
    if clean:
        assert [each for each in found if not each["path"].endswith(leaving)] == []
    files = sorted(path for path in node.data.rglob("*") if path.is_file() and "-delete/" not in str(path))
    logs = [path for path in files if path.suffix == ".log"]
    indexes = [path for path in files if path.suffix in (".index", ".timeindex")]
    plain = [path for path in logs if not path.parent.name.startswith(("table", "__consumer", "__cluster"))]
    done_text = dump("--deep-iteration", "--files", *plain)
    assert "isvalid: false" not in done_text.stdout and done_text.stderr == ""
    compacted = dump("--deep-iteration", "--files", *[path for path in logs if path not in plain])
    assert "isvalid: false" not in compacted.stdout
    assert "Non-consecutive" in compacted.stderr or compacted.stderr == ""
    if clean:
        # An index that a killed Apache Kafka left is as large as it may become, until an orderly stop makes it anew.
        sane = dump("--index-sanity-check", "--files", *indexes)
        good = [line for line in sane.stdout.splitlines() if line.endswith((" passed sanity check.", " is empty."))]
        assert len(good) == len(indexes), sane.stdout[-2000:]
    metadata = [path for path in files if path.suffix == ".checkpoint" or path.parent.name == "__cluster_metadata-0"]
    decoded = dump(
        "--cluster-metadata-decoder", "--files", *[path for path in metadata if path.suffix in (".log", ".checkpoint")]
    )
    assert "REGISTER_BROKER_RECORD" in decoded.stdout and "isvalid: false" not in decoded.stdout
    others = [path for path in files if path.suffix in (".snapshot", ".txnindex")]
    dump("--files", *others)


def dump(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    flags = [str(each) for each in arguments if isinstance(each, str)]
    paths = ",".join(str(each) for each in arguments if isinstance(each, Path))
    done = run_tool("dump-log", *flags, paths)
    assert done.returncode == 0, done.stderr[-2000:]
    return done


def written_by(node: Node) -> str:
    done = run_moldau("storage", "info", "-c", str(node.properties), "--format", "json")
    (directory,) = json.loads(done.stdout)["directories"]
    assert directory["can_be_opened"], directory
    return str(directory["written_by"])


# The story


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[list[Node]]:
    require_kafka()
    started: list[Node] = []
    yield started
    for node in started:
        node.kill()


def end(node: Node, clean: bool) -> None:
    if not clean:
        node.kill()
    elif isinstance(node, MoldauNode):
        assert node.stop() == 0, node.output()[-3000:]
    else:
        node.stop()


def hand_over(story: Story, kind: type[Node], nodes: list[Node]) -> None:
    story.node = successor(story.node, kind)
    nodes.append(story.node)
    story.node.start()


@pytest.mark.parametrize("clean", [True, False], ids=["after clean stops", "after kill -9"])
def test_kafka_then_moldau_then_kafka(tmp_path: Path, nodes: list[Node], clean: bool) -> None:
    kafka = KafkaNode(tmp_path / "node", SETTINGS)
    nodes.append(kafka)
    kafka.format()
    kafka.start()
    story = Story(kafka)
    story.create_topics()
    story.write()
    story.fill_table()
    story.write_transactions()
    story.write_numbered()
    set_other_metadata(kafka)
    for group in GROUPS:
        story.advance(group, 100)
    story.remember()
    other = other_metadata(kafka)
    end(kafka, clean)
    assert written_by(kafka) == "Apache Kafka"

    hand_over(story, MoldauNode, nodes)
    moldau = story.node
    story.check_same()
    for group in GROUPS:
        story.advance(group, 60)
    story.write_numbered()
    story.write()
    story.fill_table()
    with Admin(bootstrap_servers=moldau.bootstrap) as admin:
        admin.create_topics([NewTopic("born-in-moldau", 2, 1, {"retention.ms": "123456789"})])["born-in-moldau"].get()
        change = {ConfigResource(TOPIC, "odd"): [ConfigChange("max.message.bytes", "300000")]}
        admin.incremental_alter_configs(change)[ConfigResource(TOPIC, "odd")].get()
    with Producer(bootstrap_servers=moldau.bootstrap) as producer:
        for number in range(100):
            producer.send("born-in-moldau", b"%d" % number, key=b"k", partition=number % 2)
        producer.flush()
    for group in GROUPS:
        story.advance(group, 200)
    story.remember()
    end(moldau, clean)
    assert written_by(moldau) == "Moldau"
    check_files(moldau, clean)

    hand_over(story, KafkaNode, nodes)
    story.check_same()
    assert other_metadata(story.node) == other
    for group in GROUPS:
        story.advance(group, 50)
    story.write_numbered()
    story.write(20)
    story.fill_table()
    story.remember()
    end(story.node, clean)
    assert written_by(story.node) == "Apache Kafka"

    hand_over(story, MoldauNode, nodes)
    story.check_same()
    for group in GROUPS:
        story.advance(group, 20)
    end(story.node, True)
    check_files(story.node, True)
