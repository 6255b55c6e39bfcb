"""Plans of `kafka-reassign-partitions`: JSON in and out, and which replicas a plan moves from where to where."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from moldau.cli.kafka.options import JavaFailure
from moldau.client.admin import PartitionReassignment, TopicPartitionReplica
from moldau.client.results import TopicPartition

COMMAND_FAILED = "org.apache.kafka.tools.AdminCommandFailedException"
OPERATION_FAILED = "org.apache.kafka.tools.AdminOperationException"
MAPPING = "com.fasterxml.jackson.databind.JsonMappingException"
ANY = "any"

Assignment = dict[TopicPartition, list[int]]


class Plan(NamedTuple):
    parts: list[tuple[TopicPartition, list[int]]]
    """As they stand in the file: a partition may be there twice."""
    directories: dict[TopicPartitionReplica, str]
    """Replicas that are to be in a certain directory."""

    @property
    def assignment(self) -> Assignment:
        return dict(self.parts)


class Move(NamedTuple):
    """Whence a partition is copied, and to which brokers."""

    sources: set[int]
    destinations: set[int]


Moves = dict[str, dict[int, Move]]


def _parse(text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError:
        read = None
        word = re.match(r"\s*([A-Za-z_][\w]*)", text)
        if word is not None:
            wanted = "JSON String, Number, Array, Object or token 'null', 'true' or 'false'"
            sentence = f"Unrecognized token '{word[1]}': was expecting ({wanted})"
            cause = JavaFailure("com.fasterxml.jackson.core.JsonParseException", sentence)
            raise JavaFailure(OPERATION_FAILED, sentence, cause) from None
    if not isinstance(read, dict):
        raise JavaFailure(OPERATION_FAILED, "The input string is not a valid JSON")
    version = read.get("version", 1)
    if version != 1:
        raise JavaFailure(OPERATION_FAILED, f"Not supported version field value {version}")
    return read


def _field(row: Any, name: str, kind: type) -> Any:
    if not isinstance(row, dict) or name not in row:
        raise JavaFailure(MAPPING, f"No such field exists: `{name}`")
    value = row[name]
    if not isinstance(value, kind) or isinstance(value, bool):
        expected = {str: "String", int: "Integer", list: "List"}[kind]
        raise JavaFailure(MAPPING, f"Expected `{expected}` value, received {json.dumps(value, separators=(',', ':'))}")
    return value


def parse_plan(text: str) -> Plan:
    """{"version": 1, "partitions": [{"topic": "t", "partition": 0, "replicas": [1], "log_dirs": ["any"]}]}"""
    plan = Plan([], {})
    for row in _parse(text).get("partitions", []):
        partition = TopicPartition(_field(row, "topic", str), _field(row, "partition", int))
        replicas = [int(each) for each in _field(row, "replicas", list)]
        directories = [str(each) for each in row.get("log_dirs") or [ANY] * len(replicas)]
        if len(replicas) != len(directories):
            sizes = f"Size of replicas list {replicas} is different from size of log dirs list"
            shown = "[" + ", ".join(directories) + "]"
            raise JavaFailure(COMMAND_FAILED, f"{sizes} {shown} for partition {partition}")
        plan.parts.append((partition, replicas))
        for broker_id, directory in zip(replicas, directories, strict=True):
            if directory != ANY:
                plan.directories[TopicPartitionReplica(*partition, broker_id)] = directory
    return plan


def parse_topics(text: str) -> list[str]:
    """{"version": 1, "topics": [{"topic": "t"}]}"""
    return [_field(row, "topic", str) for row in _parse(text).get("topics", [])]


def check_executable(plan: Plan) -> None:
    if not plan.parts:
        raise JavaFailure(COMMAND_FAILED, "Partition reassignment list cannot be empty")
    if any(not replicas for _, replicas in plan.parts):
        raise JavaFailure(COMMAND_FAILED, "Partition replica list cannot be empty")
    twice = duplicates([partition for partition, _ in plan.parts])
    if twice:
        names = ",".join(str(each) for each in twice)
        raise JavaFailure(COMMAND_FAILED, f"Partition reassignment contains duplicate topic partitions: {names}")
    wrong = [(partition, duplicates(replicas)) for partition, replicas in plan.parts if duplicates(replicas)]
    if wrong:
        texts = [f"{partition} contains multiple entries for {','.join(map(str, ids))}" for partition, ids in wrong]
        raise JavaFailure(
            COMMAND_FAILED, f"Partition replica lists may not contain duplicate entries: {'. '.join(texts)}"
        )


def duplicates(items: list[Any]) -> list[Any]:
    return [item for item in dict.fromkeys(items) if items.count(item) > 1]


def plan_json(assignment: Assignment, directories: dict[TopicPartitionReplica, str]) -> str:
    """The plan as one line; a replica without a directory may be in any."""
    rows = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": assignment[partition],
            "log_dirs": [
                directories.get(TopicPartitionReplica(*partition, broker_id), ANY)
                for broker_id in assignment[partition]
            ],
        }
        for partition in sorted(assignment)
    ]
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"), ensure_ascii=False)


# What has to be throttled


def current_moves(reassignments: dict[TopicPartition, PartitionReassignment]) -> Moves:
    moves: Moves = {}
    for partition, going_on in reassignments.items():
        destinations = set(going_on.adding_replicas)
        sources = set(going_on.replicas) - destinations
        moves.setdefault(partition.topic, {})[partition.partition] = Move(sources, destinations)
    return moves


def proposed_moves(
    reassignments: dict[TopicPartition, PartitionReassignment], proposed: Assignment, current: Assignment
) -> Moves:
    """The moves that go on and those that the plan adds; one that goes on keeps its sources."""
    moves = current_moves(reassignments)
    for partition, replicas in proposed.items():
        of_topic = moves.setdefault(partition.topic, {})
        before = of_topic.get(partition.partition)
        sources = before.sources if before is not None else set(current[partition])
        of_topic[partition.partition] = Move(sources, set(replicas) - sources)
    return moves


def throttled_replicas(moves: dict[int, Move], leaders: bool) -> str:
    """The value of a topic's throttle: every source at its leader's end, every destination at its own."""
    return ",".join(
        f"{partition}:{broker_id}"
        for partition in sorted(moves)
        for broker_id in sorted(moves[partition].sources if leaders else moves[partition].destinations)
    )


def brokers_of(moves: Moves) -> list[int]:
    every = (move.sources | move.destinations for of_topic in moves.values() for move in of_topic.values())
    return sorted(set[int]().union(*every))
