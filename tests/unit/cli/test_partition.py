"""`moldau partition` and `moldau quorum`: tables, JSON, sentences and exit codes, against a scripted cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import partition as partition_commands
from moldau.cli import partition_reassign, quorum
from moldau.cli.root import root
from moldau.client.admin import (
    BROKER,
    DELETE,
    TOPIC,
    UNCLEAN,
    ConfigEntry,
    ConfigResource,
    LogDirectory,
    PartitionReassignment,
    QuorumInfo,
    QuorumReplica,
    RaftEndpoint,
    ReplicaOnDisk,
)
from moldau.client.admin.cluster import ClusterDescription
from moldau.client.connection.cluster import Broker, PartitionMetadata, TopicMetadata
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

DIRECTORY = "AR9q14ED9XEw7GCLqVZieQ"


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str) -> Result:
    for module in (partition_commands, partition_reassign, quorum):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    monkeypatch.setattr(partition_reassign, "LOOK_S", 0.0)
    return CliRunner().invoke(root, [*arguments, "-b", "h:1"], prog_name="moldau")


def part(index: int, leader: int, replicas: list[int], in_sync: list[int]) -> PartitionMetadata:
    return PartitionMetadata("orders", index, leader, 4, replicas, in_sync, [])


STATES = [
    part(0, 1, [1, 2, 3], [1, 2, 3]),
    part(1, 3, [2, 3, 1], [1, 2, 3]),
    part(2, 1, [1, 2, 3], [1, 2]),
    part(3, 1, [1, 2, 3], [1]),
    part(4, -1, [1, 2, 3], []),
    part(5, 1, [1, 2, 3, 4], [1, 2, 3]),
    part(6, 1, [1, 2, 3], [1, 2]),
]
GOING_ON = {TopicPartition("orders", 6): PartitionReassignment([1, 2, 3], [3], [2])}


def cluster(*partitions: PartitionMetadata, **more: Any) -> FakeAdmin:
    rows = {item.partition: item for item in partitions or STATES}
    topic = TopicMetadata("orders", bytes(16), False, rows)
    minimum = [ConfigEntry("min.insync.replicas", "2", 1, False, False, [], None)]
    answers: dict[str, Any] = {
        "list_topics": [topic],
        "partitions_of": lambda name: [rows[index] for index in sorted(rows)],
        "describe_configs": lambda resources, names=None: {each: Outcome(minimum) for each in resources},
        "describe_cluster": ClusterDescription("c", 1, [Broker(i, "h", i, None) for i in (1, 2, 3, 4)], set()),
        "list_partition_reassignments": lambda wanted=None: {} if partitions else GOING_ON,
        "alter_partition_reassignments": lambda changes: {key: Outcome(None) for key in changes},
        "incremental_alter_configs": lambda changes: {key: Outcome(None) for key in changes},
        "describe_log_dirs": lambda brokers, wanted: {
            broker: Outcome([LogDirectory("/d", None, -1, -1, [ReplicaOnDisk(key, 100, 0, False) for key in wanted])])
            for broker in brokers
        },
    }
    return FakeAdmin(**{**answers, **more})


def test_each_partition_is_in_one_state(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = json.loads(run(monkeypatch, cluster(), "partition", "describe", "--format", "json").stdout)
    assert [row["state"] for row in rows] == [
        "ok", "not-preferred", "at-min-isr", "under-min-isr", "unavailable", "under-replicated", "moving",
    ]  # fmt: skip
    only = run(monkeypatch, cluster(), "partition", "describe", "--only", "unavailable", "--only", "moving").stdout
    assert only.splitlines() == [
        "TOPIC   PARTITION  LEADER  EPOCH  REPLICAS  IN-SYNC  MOVING  STATE",
        "orders          4    none      4  1,2,3                      unavailable",
        "orders          6       1      4  1,2,3     1,2      +3 -2   moving",
    ]
    some = json.loads(run(monkeypatch, cluster(), "partition", "describe", "orders:0,4-5", "--format", "json").stdout)
    assert [row["partition"] for row in some] == [0, 4, 5]
    missing = run(monkeypatch, cluster(), "partition", "describe", "orders:9")
    assert missing.exit_code == 1 and "there is no partition 9" in missing.stderr


def test_elections_are_told_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {
        TopicPartition("orders", 0): Outcome[None](error=error_for(errors.ELECTION_NOT_NEEDED)),
        TopicPartition("orders", 1): Outcome(None),
        TopicPartition("orders", 2): Outcome(error=error_for(errors.PREFERRED_LEADER_NOT_AVAILABLE, "Not there.")),
    }
    admin = cluster(elect_leaders=outcomes)
    result = run(monkeypatch, admin, "partition", "elect-leader", "orders:0-2")
    assert result.exit_code == 1
    assert result.stdout == "Partition orders-1 is led by 2 now.\n1 partition has the right leader already.\n"
    assert result.stderr == "Error: Partition orders-2: Not there.\n"
    result = run(monkeypatch, cluster(elect_leaders={}), "partition", "elect-leader", "--all", "--unclean")
    assert result.exit_code == 0, result.output
    assert run(monkeypatch, admin, "partition", "elect-leader").exit_code == 2
    rows = json.loads(run(monkeypatch, admin, "partition", "elect-leader", "orders", "--format", "json").stdout)
    assert [row["elected"] for row in rows] == [False, True, False]


def test_an_unclean_election_says_who_leads_as_soon_as_brokers_know(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter([-1, -1, 3])
    admin = cluster(
        elect_leaders={TopicPartition("orders", 0): Outcome(None)},
        partitions_of=lambda name: [part(0, next(looks), [1, 2, 3], [])],
    )
    result = run(monkeypatch, admin, "partition", "elect-leader", "orders:0", "--unclean")
    assert result.stdout == "Partition orders-0 is led by 3 now.\n"
    assert [call[1][0] for call in admin.calls if call[0] == "elect_leaders"] == [UNCLEAN]


def changes(admin: FakeAdmin) -> list[Any]:
    return [call[1][0] for call in admin.calls if call[0] == "alter_partition_reassignments"]


def test_a_reassignment_waits_until_all_is_moved_and_takes_its_throttle_away(monkeypatch: pytest.MonkeyPatch) -> None:
    left = iter([{}, GOING_ON, GOING_ON, {}])  # once before, for the throttle
    admin = cluster(part(0, 1, [1, 2], [1, 2]), list_partition_reassignments=lambda wanted=None: next(left))
    result = run(monkeypatch, admin, "partition", "reassign", "orders:0", "--to", "3,1", "--throttle", "5000")
    assert (result.exit_code, result.stdout) == (0, "Moved 1 partition.\n"), result.output
    assert changes(admin) == [{TopicPartition("orders", 0): [3, 1]}]
    altered = [call[1][0] for call in admin.calls if call[0] == "incremental_alter_configs"]
    lists = {change.name: change.value for change in altered[0][ConfigResource(TOPIC, "orders")]}
    assert lists["follower.replication.throttled.replicas"] == "0:3"
    assert {change.value for change in altered[1][ConfigResource(BROKER, "3")]} == {"5000"}
    assert all(change.operation == DELETE for row in altered[-1].values() for change in row)


def test_a_reassignment_may_be_left_alone_called_off_or_only_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = cluster(part(0, 1, [1, 2], [1, 2]))
    result = run(monkeypatch, admin, "partition", "reassign", "orders", "--to", "3,1", "--no-wait", "--format", "json")
    assert json.loads(result.stdout) == [
        {"topic": "orders", "partition": 0, "from": [1, 2], "to": [3, 1], "done": False}
    ]
    shown = run(monkeypatch, admin, "partition", "reassign", "orders", "--to", "3,1", "--dry-run").stdout
    assert shown.splitlines()[1].split() == ["orders", "0", "1,2", "3,1"]
    assert run(monkeypatch, admin, "partition", "reassign", "orders", "--to", "1,2").stdout == "Nothing has to move.\n"
    going = cluster(part(6, 1, [1, 2], [1, 2]), list_partition_reassignments=lambda wanted=None: GOING_ON)
    assert run(monkeypatch, going, "partition", "reassign", "orders", "--cancel").stdout == "Called off 1 move.\n"
    assert changes(going) == [{TopicPartition("orders", 6): None}]
    over = run(monkeypatch, going, "partition", "reassign", "orders", "--to", "3", "--wait-timeout", "10ms")
    assert over.stdout.startswith("Started to move 1 partition;")


def test_plans_are_kafkas_and_spread_by_the_rule_of_new_topics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    admin = cluster(part(0, 1, [1, 2], [1, 2]), part(1, 2, [2, 1], [1, 2]))
    command = ("partition", "reassign", "orders", "--brokers", "3,4", "--dry-run", "--format", "json")
    plan = run(monkeypatch, admin, *command).stdout
    assert [sorted(row["replicas"]) for row in json.loads(plan)["partitions"]] == [[3, 4], [3, 4]]
    assert all(run(monkeypatch, admin, *command).stdout == plan for _ in range(10)), "what was shown is what runs"
    file = tmp_path / "plan.json"
    file.write_text(plan)
    result = run(monkeypatch, admin, "partition", "reassign", "--plan", str(file), "--no-wait")
    assert result.stdout.startswith("Started to move 2 partitions;")
    file.write_text('{"partitions": [{"topic": "orders", "partition": 0, "replicas": []}]}')
    result = run(monkeypatch, admin, "partition", "reassign", "--plan", str(file))
    assert result.exit_code == 1 and "replica list cannot be empty" in result.stderr
    few = run(monkeypatch, admin, "partition", "reassign", "orders", "--brokers", "3", "--dry-run")
    assert few.exit_code == 1 and "name at least as many brokers" in few.stderr
    more = (*command[:5], "--replication-factor", "1", *command[5:])
    assert "error" not in run(monkeypatch, admin, *more).stdout


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["orders"], 2, "one of --to, --brokers, --plan and --cancel"),
        (["--to", "1"], 2, "Name the partitions"),
        (["orders", "--to", "1,1"], 2, "different broker ids"),
        (["orders", "--to", "9"], 1, "There is no broker 9; there are 1,2,3,4."),
        (["orders:x", "--to", "1"], 2, "not 'x'"),
    ],
)
def test_what_makes_no_sense_is_explained(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    result = run(monkeypatch, cluster(part(0, 1, [1, 2], [1, 2])), "partition", "reassign", *arguments)
    assert result.exit_code == code and words in result.stderr, result.output


def test_a_refused_move_is_told_beside_those_that_go_well(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = Outcome[None](error=error_for(errors.INVALID_REPLICA_ASSIGNMENT, "No such broker."))
    admin = cluster(
        part(0, 1, [1, 2], [1, 2]),
        part(1, 1, [1, 2], [1, 2]),
        alter_partition_reassignments=lambda wanted: {
            key: refused if key.partition else Outcome(None) for key in wanted
        },
    )
    result = run(monkeypatch, admin, "partition", "reassign", "orders", "--to", "3")
    assert (result.exit_code, result.stdout) == (1, "Moved 1 partition.\n")
    assert "Partition orders-1: No such broker." in result.stderr


# The quorum


def replica(node: int, end: int, caught_up: int | None = 1) -> QuorumReplica:
    return QuorumReplica(node, bytes(15) + bytes([node]), end, caught_up, caught_up)


QUORUM = QuorumInfo(
    2, 7, 90, [replica(1, 80), replica(2, 100)], [replica(3, -1, None)], {1: [RaftEndpoint("CONTROLLER", "h1", 9093)]}
)


def test_the_quorum_is_shown_with_how_far_each_is(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(describe_metadata_quorum=QUORUM)
    answer = json.loads(run(monkeypatch, admin, "quorum", "describe", "--format", "json").stdout)
    assert (answer["leader"], answer["high_watermark"]) == (2, 90)
    assert [(row["id"], row["role"], row["lag"]) for row in answer["replicas"]] == [
        (1, "voter", 20),
        (2, "leader", 0),
        (3, "observer", None),
    ]
    assert answer["replicas"][0]["endpoints"] == ["CONTROLLER://h1:9093"]
    text = run(monkeypatch, admin, "quorum", "describe").stdout
    assert "votes needed     2 of 2" in text and "never" in text


def test_voters_are_added_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(describe_metadata_quorum=QUORUM, add_raft_voter=None, remove_raft_voter=None)
    added = run(monkeypatch, admin, "quorum", "add-voter", "4", DIRECTORY, "CONTROLLER://10.0.0.4:9093")
    assert added.stdout == "Node 4 votes now.\n"
    assert admin.calls[-1][1][2] == [RaftEndpoint("CONTROLLER", "10.0.0.4", 9093)]
    removed = run(monkeypatch, admin, "quorum", "remove-voter", "4", DIRECTORY, "--format", "json")
    assert json.loads(removed.stdout) == {"voters": [1, 2]}
    for arguments in (["4", "nonsense", "C://h:1"], ["4", DIRECTORY, "h:1"], ["4", DIRECTORY, "C://h:0"]):
        assert run(monkeypatch, admin, "quorum", "add-voter", *arguments).exit_code == 2
    failing = FakeAdmin(remove_raft_voter=error_for(errors.VOTER_NOT_FOUND, "There is no such voter."))
    result = run(monkeypatch, failing, "quorum", "remove-voter", "4", DIRECTORY)
    assert result.exit_code == 1 and "There is no such voter." in result.stderr
