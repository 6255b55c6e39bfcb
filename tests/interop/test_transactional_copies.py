"""Copiers that read, write and commit offsets in transactions, while brokers and the copiers themselves are killed.

Kafka's own TransactionalMessageCopier (transactions of version 2) and a loop with confluent-kafka (version 1) copy side
by side on a cluster of three. MOLDAU_COPIES says how many records each of them copies, MOLDAU_COPY_FAULTS how often
somebody is killed meanwhile (the full run: 100,000 and 40); MOLDAU_FAULT_SEED repeats the choices of a run.
"""

from __future__ import annotations

import itertools
import os
import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moldau.client import NewTopic
from tests.cluster.cluster_nodes import QUICK, Cluster, wait_for
from tests.interop.copiers import CommittedReader, Copier, confluent_copier, fill, java_copier, value_of
from tests.pace import patience

RECORDS = int(os.environ.get("MOLDAU_COPIES", "2000"))
FAULTS = int(os.environ.get("MOLDAU_COPY_FAULTS", "5"))
SEED = int(os.environ.get("MOLDAU_FAULT_SEED", str(random.SystemRandom().randrange(1 << 30))))
IS_FULL = RECORDS > 10_000
TRANSACTION_RECORDS = 100 if IS_FULL else 5
JAVA, CONFLUENT = "java-input", "confluent-input"
# Every partition of the Java copier's topic needs a JVM of its own.
PARTITIONS = {JAVA: 2 if IS_FULL else 1, CONFLUENT: 2}
COPIES = {f"{topic}-copy": count for topic, count in PARTITIONS.items()}
INTERNAL = ("__consumer_offsets", "__transaction_state")
# How long nothing may be copied: every timeout that has to find out, one after the other.
STALL_S_MAX = patience(90)
HELD_S_MAX = 1.0


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    few = {"offsets.topic.num.partitions": "4", "transaction.state.log.num.partitions": "4"}
    with Cluster(tmp_path, 3, {**QUICK, **few}) as started:
        started.start()
        topics = [NewTopic(name, count, 3) for name, count in {**PARTITIONS, **COPIES}.items()]
        for outcome in started.admin.create_topics(topics).values():
            outcome.get()
        for topic in PARTITIONS:
            started.await_full_isr(topic)
            fill(started.bootstrap, topic, PARTITIONS[topic], RECORDS)
        yield started


class Kills:
    """Kills brokers and copiers in turn, spread over the whole copy."""

    def __init__(self, cluster: Cluster, copiers: list[Copier], reader: CommittedReader, rng: random.Random) -> None:
        self._cluster = cluster
        self._copiers = copiers
        self._reader = reader
        self._rng = rng
        self._total = RECORDS * len(COPIES)
        self._at_start = {copier.name: 0 for copier in copiers}

    def run(self) -> None:
        # Every other time it is a broker.
        victims = itertools.cycle([victim for copier in self._copiers for victim in (None, copier)])
        for number in range(FAULTS):
            self._await(lambda count=(number + 1) * self._total // (FAULTS + 2): self._reader.copied >= count)
            victim = next(victims)
            if victim is None:
                self._kill_broker()
            else:
                self._kill_copier(victim)
        self._await(lambda: self._reader.copied >= self._total)

    def _kill_copier(self, victim: Copier) -> None:
        """In the middle of its work: when something of this life of it was committed."""
        before = self._at_start[victim.name]
        everything = sum(RECORDS // PARTITIONS[place.topic.removesuffix("-copy")] for place in victim.places)
        self._await(lambda: self._reader.copied_by(victim) > before or victim.finished or before == everything)
        if not victim.finished:
            print(f"{self._reader.copied:7d} records copied: {victim.name} is killed", flush=True)
            victim.kill()
            self._at_start[victim.name] = self._reader.copied_by(victim)

    def _kill_broker(self) -> None:
        node_id = self._rng.choice(self._cluster.ids)
        began = time.monotonic()
        self._cluster.kill(node_id)
        hold_until = began + self._rng.random() * HELD_S_MAX
        while time.monotonic() < hold_until:
            self._tend()
            time.sleep(0.05)
        self._cluster.start(node_id)
        for topic in (*COPIES, *INTERNAL):
            self._cluster.await_full_isr(topic, 60)
        took_s = time.monotonic() - began
        print(
            f"{self._reader.copied:7d} records copied: node {node_id} was killed, well in {took_s:4.1f} s", flush=True
        )

    def _await(self, condition: Callable[[], bool]) -> None:
        before, since = -1, time.monotonic()
        while not condition():
            self._tend()
            if self._reader.copied != before:
                before, since = self._reader.copied, time.monotonic()
            assert time.monotonic() - since < STALL_S_MAX, f"nothing is copied any more:\n{self._explain()}"
            time.sleep(0.05)

    def _tend(self) -> None:
        assert not self._reader.problems, f"{self._reader.problems[:5]}\n{self._explain()}"
        for copier in self._copiers:
            copier.tend()

    def _explain(self) -> str:
        outputs = "".join(f"--- {one.name}, life {one.lives}\n{one.output()[-2000:]}\n" for one in self._copiers)
        return f"{self._reader.counts}\n{outputs}{self._cluster.outputs()}"


def test_copies_are_exact_while_brokers_and_copiers_are_killed(
    cluster: Cluster, tmp_path: Path, kafka_tools: None
) -> None:
    """Every record once, in the order of its partition, as readers of committed records see it, now and later."""
    pytest.importorskip("confluent_kafka", reason="confluent-kafka is not installed")
    print(f"\nMOLDAU_FAULT_SEED={SEED}")
    copiers = [
        java_copier(cluster.bootstrap, JAVA, partition, TRANSACTION_RECORDS, tmp_path)
        for partition in range(PARTITIONS[JAVA])
    ]
    copiers.append(confluent_copier(cluster.bootstrap, CONFLUENT, PARTITIONS[CONFLUENT], TRANSACTION_RECORDS, tmp_path))
    reader = CommittedReader(cluster.bootstrap, COPIES)
    reader.start()
    try:
        Kills(cluster, copiers, reader, random.Random(SEED)).run()
        await_offsets(cluster)
    finally:
        for copier in copiers:
            copier.kill()
        reader.finish()
    assert not reader.problems, reader.problems[:5]
    assert all(one.lives > 1 for one in copiers), "a copier was never killed"
    for topic, partitions in COPIES.items():
        expected = {n: [value_of(n, number) for number in range(RECORDS // partitions)] for n in range(partitions)}
        assert read_committed(cluster.bootstrap, topic, partitions) == expected


def await_offsets(cluster: Cluster) -> None:
    """Offsets and output agree: the groups stand behind the last record of the input."""

    def is_at_the_end() -> bool:
        for topic, partitions in PARTITIONS.items():
            group = f"copier of {topic}"
            committed = cluster.admin.list_consumer_group_offsets({group: None})[group].get()
            rows = {place.partition: outcome.get() for place, outcome in committed.items()}
            offsets = {partition: row.offset for partition, row in rows.items() if row is not None}
            if offsets != dict.fromkeys(range(partitions), RECORDS // partitions):
                return False
        return True

    wait_for(is_at_the_end, 30, "the groups have committed everything", cluster.outputs, 0.1)


def read_committed(bootstrap: str, topic: str, partitions: int) -> dict[int, list[bytes]]:
    """Everything, as confluent-kafka reads it."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_committed"}
    client = Consumer({**settings, "enable.partition.eof": True})
    client.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    found: dict[int, list[bytes]] = {index: [] for index in range(partitions)}
    ended: set[int] = set()
    deadline = time.monotonic() + STALL_S_MAX
    while len(ended) < partitions and time.monotonic() < deadline:
        for message in client.consume(1000, 0.5):
            if message.error() is None:
                found[message.partition()].append(message.value())
            else:
                ended.add(message.partition())
    client.close()
    return found
