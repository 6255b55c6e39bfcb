"""`moldau broker drain|unregister` and `moldau partition move-dir`, against a scripted cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import broker_leave, partition_move_dir, partition_reassign
from moldau.cli.drain_plan import plan_drain
from moldau.cli.root import root
from moldau.client.admin import LogDirectory, ReplicaOnDisk, TopicPartitionReplica
from moldau.client.admin.cluster import ClusterDescription
from moldau.client.connection.cluster import Broker, PartitionMetadata, TopicMetadata
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin


def part(index: int, replicas: list[int], in_sync: list[int] | None = None, leader: int | None = None) -> Any:
    first = replicas[0] if leader is None else leader
    return PartitionMetadata("orders", index, first, 4, replicas, replicas if in_sync is None else in_sync, [])


def key(index: int) -> TopicPartition:
    return TopicPartition("orders", index)


NO_RACKS: dict[int, str | None] = dict.fromkeys((1, 2, 3, 4))


def test_leaders_go_to_replicas_in_turn_and_the_broker_becomes_the_last() -> None:
    rows = [part(0, [4, 1, 2]), part(1, [4, 2, 1]), part(2, [1, 4, 2]), part(3, [1, 2, 3]), part(4, [1, 2, 4])]
    plan = plan_drain(rows, 4, NO_RACKS, False)
    assert plan.changes == {key(0): [2, 1, 4], key(1): [2, 1, 4], key(2): [1, 2, 4]}, "1 led two already, 2 none"
    assert plan.stuck == []


def test_a_replica_that_is_not_in_sync_is_not_made_the_leader() -> None:
    plan = plan_drain([part(0, [4, 1, 2], [4, 2])], 4, NO_RACKS, False)
    assert plan.changes == {key(0): [2, 1, 4]}


def test_replicas_go_where_there_are_few_and_to_other_racks() -> None:
    rows = [part(0, [4, 1]), part(1, [1, 4]), part(2, [1, 2]), part(3, [2, 3])]
    assert plan_drain(rows, 4, NO_RACKS, True).changes == {key(0): [1, 3], key(1): [1, 2]}
    racks: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}
    assert plan_drain([part(0, [1, 4]), part(3, [2, 2])], 4, racks, True).changes == {key(0): [1, 2]}, "3 is in rack a"


def test_what_nobody_can_take_over_stays() -> None:
    assert plan_drain([part(0, [4])], 4, NO_RACKS, False).stuck == [key(0)]
    assert plan_drain([part(0, [4])], 4, NO_RACKS, True).changes == {key(0): [1]}
    assert plan_drain([part(0, [1, 2, 3, 4])], 4, NO_RACKS, True).stuck == [key(0)]


class Cluster:
    """Brokers 1 to 4; reassignments and elections are done at once."""

    def __init__(self, *rows: PartitionMetadata, fenced: tuple[int, ...] = ()) -> None:
        self.rows = {row.partition: row for row in rows}
        self.fenced = set(fenced)
        self.unregistered: list[int] = []
        self.admin = FakeAdmin(
            describe_cluster=lambda include_fenced_brokers=False: ClusterDescription(
                "c", 1, [Broker(i, "h", i, None) for i in (1, 2, 3, 4)], self.fenced
            ),
            list_topics=lambda: [TopicMetadata("orders", bytes(16), False, dict(self.rows))],
            list_partition_reassignments=lambda wanted=None: {},
            alter_partition_reassignments=self.reassign,
            elect_leaders=self.elect,
            describe_log_dirs=lambda brokers, wanted: {broker: Outcome([]) for broker in brokers},
            unregister_broker=self.unregistered.append,
        )

    def reassign(self, changes: dict[TopicPartition, list[int]]) -> dict[TopicPartition, Outcome[None]]:
        for item, replicas in changes.items():
            row = self.rows[item.partition]
            leader = row.leader if row.leader in replicas else replicas[0]
            self.rows[item.partition] = row._replace(replicas=replicas, in_sync_replicas=replicas, leader=leader)
        return {item: Outcome(None) for item in changes}

    def elect(self, kind: int, wanted: list[TopicPartition]) -> dict[TopicPartition, Outcome[None]]:
        for item in wanted:
            row = self.rows[item.partition]
            self.rows[item.partition] = row._replace(leader=row.replicas[0])
        return {item: Outcome(None) for item in wanted}


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str) -> Result:
    for module in (broker_leave, partition_move_dir):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    for module in (broker_leave, partition_reassign, partition_move_dir):
        monkeypatch.setattr(module, "LOOK_S", 0.0)
    return CliRunner().invoke(root, [*arguments, "-b", "h:1"], prog_name="moldau")


def test_a_drained_broker_leads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(part(0, [4, 1]), part(1, [1, 4], leader=4), part(2, [1, 2]))
    shown = run(monkeypatch, cluster.admin, "broker", "drain", "4", "--dry-run").stdout
    assert "4,1" in shown and "1,4" in shown and cluster.rows[0].replicas == [4, 1]
    result = run(monkeypatch, cluster.admin, "broker", "drain", "4")
    assert (result.exit_code, result.stdout) == (0, "Broker 4 leads nothing and has 2 replicas.\n"), result.output
    assert [row.leader for row in cluster.rows.values()] == [1, 1, 1]
    told = run(monkeypatch, cluster.admin, "broker", "drain", "4", "--replicas").stdout
    assert told == "Broker 4 has nothing any more: stop it, then `moldau broker unregister 4`.\n"
    told = json.loads(run(monkeypatch, cluster.admin, "broker", "drain", "4", "--format", "json").stdout)
    assert told == {"id": 4, "changed": 0, "leaders": 0, "replicas": 0, "done": True}


def test_a_partition_without_another_replica_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_leave, "NEWS_S", 0.0)
    result = run(monkeypatch, Cluster(part(0, [4])).admin, "broker", "drain", "4")
    assert result.exit_code == 1 and "Partition orders-0 stays on broker 4: it has no other replica." in result.stderr
    assert "leads 1 partition and has 1 replica" in result.stdout
    result = run(monkeypatch, Cluster().admin, "broker", "drain", "9")
    assert result.exit_code == 1 and "There is no broker 9 in the cluster; there are: 1, 2, 3, 4." in result.stderr


def test_only_a_broker_that_is_stopped_and_empty_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    running = run(monkeypatch, Cluster().admin, "broker", "unregister", "4")
    assert running.exit_code == 1 and "Broker 4 is running: stop it first" in running.stderr
    full = Cluster(part(0, [1, 4]), fenced=(4,))
    result = run(monkeypatch, full.admin, "broker", "unregister", "4")
    assert result.exit_code == 1 and "Broker 4 has 1 replica" in result.stderr and full.unregistered == []
    assert run(monkeypatch, full.admin, "broker", "unregister", "4", "--force").exit_code == 0
    empty = Cluster(part(0, [1, 2]), fenced=(4,))
    result = run(monkeypatch, empty.admin, "broker", "unregister", "4")
    assert result.stdout == "Broker 4 is no part of the cluster any more.\n" and empty.unregistered == [4]


class Directories:
    """Two directories of broker 1; a move takes two looks."""

    def __init__(self) -> None:
        self.place = {key(0): "/a", key(1): "/a", key(2): "/b"}
        self.future: dict[TopicPartition, str] = {}
        self.looks = 0
        rows = {item.partition: part(item.partition, [1, 2]) for item in self.place}
        self.admin = FakeAdmin(
            partitions_of=lambda name: list(rows.values()),
            describe_log_dirs=self.describe,
            alter_replica_log_dirs=self.alter,
        )

    def describe(self, brokers: list[int], wanted: Any = None) -> dict[int, Outcome[list[LogDirectory]]]:
        self.looks += 1
        if self.looks > 2:
            self.place |= self.future
            self.future = {}
        found = []
        for path in ("/a", "/b"):
            rows = [ReplicaOnDisk(item, 100, 0, False) for item, at in self.place.items() if at == path]
            rows += [ReplicaOnDisk(item, 50, 9, True) for item, at in self.future.items() if at == path]
            found.append(LogDirectory(path, None, -1, -1, rows))
        return {broker: Outcome(found) for broker in brokers}

    def alter(self, moves: dict[TopicPartitionReplica, str]) -> dict[TopicPartitionReplica, Outcome[None]]:
        outcomes: dict[TopicPartitionReplica, Outcome[None]] = {}
        for item, path in moves.items():
            if item.partition == 1:
                outcomes[item] = Outcome(error=error_for(errors.KAFKA_STORAGE_ERROR, "It is broken."))
            else:
                outcomes[item] = Outcome(None)
                self.future[TopicPartition(item.topic, item.partition)] = path
        return outcomes


def test_replicas_move_between_directories(monkeypatch: pytest.MonkeyPatch) -> None:
    move = ("partition", "move-dir", "--broker", "1")
    disks = Directories()
    result = run(monkeypatch, disks.admin, *move, "orders:0,2", "--to", "/b")
    assert (result.exit_code, result.stdout) == (0, "Moved 1 replica to /b.\n"), result.output
    assert disks.place[key(0)] == "/b" and disks.looks == 3
    again = run(monkeypatch, disks.admin, *move, "orders:0,2", "--to", "/b")
    assert again.stdout == "Everything is in /b already.\n"
    failed = run(monkeypatch, Directories().admin, *move, "--from", "/a", "--to", "/b")
    assert failed.exit_code == 1 and "Partition orders-1: It is broken." in failed.stderr
    assert failed.stdout == "Moved 1 replica to /b.\n"
    started = run(monkeypatch, Directories().admin, *move, "orders:0", "--to", "/b", "--no-wait").stdout
    assert started == "Started to move 1 replica to /b.\n"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (("orders:0", "--to", "/c"), "Broker 1 has no log directory /c; it has /a, /b."),
        (("--to", "/b"), "Name the partitions"),
    ],
)
def test_directories_that_are_not_there_are_told(
    monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...], sentence: str
) -> None:
    result = run(monkeypatch, Directories().admin, "partition", "move-dir", "--broker", "1", *more)
    assert result.exit_code != 0 and sentence in result.stderr
