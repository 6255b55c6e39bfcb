"""kafka-reassign-partitions: plans, throttles, what it prints and its exit codes, against a scripted admin client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moldau.cli.kafka import reassign_partitions
from moldau.cli.kafka.frame import guard
from moldau.cli.kafka.reassign_plan import Move, current_moves, proposed_moves, throttled_replicas
from moldau.client.admin import BROKER, DELETE, TOPIC, ConfigResource, PartitionReassignment
from moldau.client.admin.cluster import ClusterDescription
from moldau.client.admin.log_dirs import ReplicaLogDirInfo
from moldau.client.connection.cluster import Broker, PartitionMetadata, TopicMetadata
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

EXPECTED = "JSON String, Number, Array, Object or token 'null', 'true' or 'false'"
SERVER = ["--bootstrap-server", "localhost:9092"]
MOVE = {"version": 1, "partitions": [{"topic": "move", "partition": 0, "replicas": [3, 1]}]}


def run(admin: FakeAdmin, *arguments: str) -> int:
    return guard(lambda: reassign_partitions.main([*SERVER, *arguments], connect=admin.connect))


def cluster(going_on: dict[TopicPartition, PartitionReassignment] | None = None, **more: Any) -> FakeAdmin:
    partitions = {
        0: PartitionMetadata("move", 0, 1, 0, [1, 2], [1, 2], []),
        1: PartitionMetadata("move", 1, 2, 0, [2, 3], [2, 3], []),
    }
    topic = TopicMetadata("move", bytes(16), False, partitions)
    brokers = [Broker(number, "h", number, None) for number in (1, 2, 3)]
    unknown = error_for(errors.UNKNOWN_TOPIC_OR_PARTITION, "Topic nope not found.")
    answers: dict[str, Any] = {
        "list_topics": [topic],
        "describe_topics": lambda names: {
            name: Outcome(topic) if name == "move" else Outcome(error=unknown) for name in names
        },
        "describe_cluster": ClusterDescription("c", 1, brokers, set()),
        "describe_replica_log_dirs": lambda replicas: {
            replica: Outcome(ReplicaLogDirInfo(f"/data/{replica.broker_id}", 0, None, 0)) for replica in replicas
        },
        "list_partition_reassignments": lambda wanted=None: going_on or {},
        "alter_partition_reassignments": lambda changes, allow=True: {key: Outcome(None) for key in changes},
        "incremental_alter_configs": lambda changes: {key: Outcome(None) for key in changes},
    }
    return FakeAdmin(**{**answers, **more})


@pytest.fixture
def plan(tmp_path: Path) -> str:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(MOVE))
    return str(path)


def changed_configs(admin: FakeAdmin) -> list[dict[ConfigResource, Any]]:
    return [arguments[0] for name, arguments, _ in admin.calls if name == "incremental_alter_configs"]


def test_execute_shows_what_was_and_starts(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    admin = cluster()
    assert run(admin, "--execute", "--reassignment-json-file", plan) == 0
    assert capsys.readouterr().out == (
        "Current partition replica assignment\n\n"
        '{"version":1,"partitions":[{"topic":"move","partition":0,"replicas":[1,2],"log_dirs":["/data/1","/data/2"]}]}'
        "\n\nSave this to use as the --reassignment-json-file option during rollback\n"
        "Successfully started partition reassignment for move-0\n"
    )
    assert changed_configs(admin) == []


def test_a_throttle_names_sources_and_destinations_and_is_taken_away_at_the_end(
    plan: str, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = cluster()
    assert run(admin, "--execute", "--reassignment-json-file", plan, "--throttle", "1000") == 0
    topics, brokers = changed_configs(admin)
    values = {change.name: change.value for change in topics[ConfigResource(TOPIC, "move")]}
    assert values == {
        "leader.replication.throttled.replicas": "0:1,0:2",
        "follower.replication.throttled.replicas": "0:3",
    }
    assert sorted(resource.name for resource in brokers) == ["1", "2", "3"]
    rates = {change.name: change.value for change in brokers[ConfigResource(BROKER, "3")]}
    assert rates == {"leader.replication.throttled.rate": "1000", "follower.replication.throttled.rate": "1000"}
    assert "The inter-broker throttle limit was set to 1000 B/s\n" in capsys.readouterr().out
    admin = cluster()
    assert run(admin, "--verify", "--reassignment-json-file", plan) == 0
    assert capsys.readouterr().out == (
        "Status of partition reassignment:\n"
        "There is no active reassignment of partition move-0, but replica set is 1,2 rather than 3,1.\n\n"
        "Clearing broker-level throttles on brokers 1,2,3\nClearing topic-level throttles on topic move\n"
    )
    assert all(change.operation == DELETE for each in changed_configs(admin) for row in each.values() for change in row)
    admin = cluster()
    assert run(admin, "--verify", "--reassignment-json-file", plan, "--preserve-throttles") == 0
    assert changed_configs(admin) == []


GOING_ON = {TopicPartition("move", 0): PartitionReassignment([3, 1, 2], [3], [2])}


def test_a_move_that_goes_on_is_listed_verified_and_called_off(plan: str, capsys: pytest.CaptureFixture[str]) -> None:
    admin = cluster(GOING_ON)
    assert run(admin, "--list") == 0
    assert capsys.readouterr().out == (
        "Current partition reassignments:\nmove-0: replicas: 3,1,2. adding: 3. removing: 2.\n"
    )
    assert run(admin, "--verify", "--reassignment-json-file", plan) == 0
    assert "Reassignment of partition move-0 is still in progress.\n" in capsys.readouterr().out
    assert changed_configs(admin) == []
    assert run(admin, "--execute", "--reassignment-json-file", plan) == 1
    assert capsys.readouterr().out.startswith("Cannot execute because there is an existing partition assignment.  Use")
    assert run(admin, "--execute", "--additional", "--reassignment-json-file", plan) == 0
    assert run(admin, "--cancel", "--preserve-throttles", "--reassignment-json-file", plan) == 0
    assert "Successfully cancelled partition reassignment for: move-0\n" in capsys.readouterr().out
    calls = [arguments[0] for name, arguments, _ in admin.calls if name == "alter_partition_reassignments"]
    assert calls[-1] == {TopicPartition("move", 0): None}


def test_errors_go_to_the_output_as_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bad.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "move", "partition": 0, "replicas": [9]}]}')
    assert run(cluster(), "--execute", "--reassignment-json-file", str(file)) == 1
    failed = "org.apache.kafka.tools.AdminCommandFailedException: Unknown broker id 9"
    assert capsys.readouterr().out == f"Error: Unknown broker id 9\n{failed}\n\n"
    file.write_text('{"version": 1, "partitions": [{"topic": "nope", "partition": 0, "replicas": [1]}]}')
    assert run(cluster(), "--execute", "--reassignment-json-file", str(file)) == 1
    unknown = "org.apache.kafka.common.errors.UnknownTopicOrPartitionException: Topic nope not found."
    assert capsys.readouterr().out == (
        f"Error: {unknown}\njava.util.concurrent.ExecutionException: {unknown}\nCaused by: {unknown}\n\n"
    )
    refused = Outcome[None](error=error_for(errors.INVALID_REPLICA_ASSIGNMENT, "no"))
    admin = cluster(alter_partition_reassignments=lambda changes, allow=True: dict.fromkeys(changes, refused))
    file.write_text(json.dumps(MOVE))
    assert run(admin, "--execute", "--reassignment-json-file", str(file)) == 1
    assert capsys.readouterr().out.endswith("Error reassigning partition(s):\nmove-0: no\n")


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("[]", "The input string is not a valid JSON"),
        (
            "nonsense",
            f"Unrecognized token 'nonsense': was expecting ({EXPECTED})",
        ),
        ('{"version": 2}', "Not supported version field value 2"),
        ('{"version": 1, "partitions": []}', "Partition reassignment list cannot be empty"),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": []}]}',
            "Partition replica list cannot be empty",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1, 1]}]}',
            "Partition replica lists may not contain duplicate entries: a-0 contains multiple entries for 1",
        ),
        (
            '{"partitions": [{"topic": "a", "partition": 0, "replicas": [1], "log_dirs": ["x", "y"]}]}',
            "Size of replicas list [1] is different from size of log dirs list [x, y] for partition a-0",
        ),
    ],
)
def test_plans_that_make_no_sense(text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "plan.json"
    file.write_text(text)
    assert run(cluster(), "--execute", "--reassignment-json-file", str(file)) == 1
    assert capsys.readouterr().out.splitlines()[0] == f"Error: {sentence}"


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ([], "Command must include exactly one action: --generate, --execute, --verify, --cancel, --list"),
        (["--list", "--verify"], "Command must include exactly one action"),
        (["--execute"], 'Missing required argument "[reassignment-json-file]"'),
        (["--list", "--throttle", "1"], 'Option "[throttle]" can\'t be used with action "[list]"'),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(cluster(), *arguments) == 1
    assert capsys.readouterr().err.startswith(sentence)


def test_generate_keeps_how_many_replicas_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "topics.json"
    file.write_text('{"version": 1, "topics": [{"topic": "move"}]}')
    arguments = ("--generate", "--topics-to-move-json-file", str(file), "--broker-list")
    assert run(cluster(), *arguments, "1,3") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [lines[0], lines[2], lines[3]] == [
        "Current partition replica assignment",
        "",
        "Proposed partition reassignment configuration",
    ]
    for row in json.loads(lines[4])["partitions"]:
        assert sorted(row["replicas"]) == [1, 3] and row["log_dirs"] == ["any", "any"]
    assert run(cluster(), *arguments, "3") == 1
    assert "The target replication factor of 2 cannot be reached because only 1" in capsys.readouterr().out
    assert run(cluster(), *arguments, "3,3") == 1
    assert "Broker list contains duplicate entries: [3]" in capsys.readouterr().out


def test_what_a_plan_moves_from_where_to_where() -> None:
    moves = current_moves(GOING_ON)
    assert moves == {"move": {0: Move({1, 2}, {3})}}
    wanted = {TopicPartition("move", 0): [4, 1], TopicPartition("move", 1): [2, 1]}
    moves = proposed_moves(GOING_ON, wanted, {TopicPartition("move", 1): [2, 3]})
    assert moves == {"move": {0: Move({1, 2}, {4}), 1: Move({2, 3}, {1})}}
    assert throttled_replicas(moves["move"], leaders=True) == "0:1,0:2,1:2,1:3"
    assert throttled_replicas(moves["move"], leaders=False) == "0:4,1:1"
