"""The range and round-robin assignors give what Apache Kafka's own give, member by member, racks included."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from moldau.client.assignors import GroupMetadata, MemberSubscription, PartitionReplicas, find_assignors
from moldau.client.results import TopicPartition
from tests.interop.kafka_oracle import java_command
from tests.pace import patience

CASES = 400


class Case:
    """A group drawn by chance."""

    def __init__(self, chance: random.Random) -> None:
        racks = ["a", "b", "c"][: chance.randrange(1, 4)]
        with_racks = chance.random() < 0.7
        self.topics: dict[str, list[list[str]]] = {}
        sizes = [chance.randrange(1, 13) for _ in range(2)]
        for name in [f"t{number}" for number in range(chance.randrange(1, 5))]:
            count = chance.choice(sizes)
            replicas = chance.randrange(1, len(racks) + 1)
            self.topics[name] = [chance.sample(racks, replicas) if with_racks else ["-"] for _ in range(count)]
        self.members: dict[str, tuple[str, str, list[str]]] = {}
        for number in range(chance.randrange(1, 7)):
            instance = f"i{chance.randrange(100):02}{number}" if chance.random() < 0.3 else "-"
            rack = chance.choice([*racks, "far", "-"]) if with_racks else "-"
            wanted = chance.sample(list(self.topics), chance.randrange(1, len(self.topics) + 1))
            if chance.random() < 0.6:
                wanted = list(self.topics)
            self.members[f"m{chance.randrange(1000):03}-{number}"] = (instance, rack, wanted)

    def lines(self) -> list[str]:
        topics = [f"topic {name} {';'.join(','.join(row) for row in rows)}" for name, rows in self.topics.items()]
        members = [
            f"member {name} {instance} {rack} {','.join(wanted)}"
            for name, (instance, rack, wanted) in self.members.items()
        ]
        return [*topics, *members, "run range", "run roundrobin"]

    def ours(self, strategy: str) -> dict[str, list[str]]:
        metadata: GroupMetadata = {
            name: [
                PartitionReplicas(TopicPartition(name, number), frozenset(rack for rack in row if rack != "-"))
                for number, row in enumerate(rows)
            ]
            for name, rows in self.topics.items()
        }
        subscriptions = {
            name: MemberSubscription(
                wanted,
                rack=None if rack == "-" else rack,
                group_instance_id=None if instance == "-" else instance,
            )
            for name, (instance, rack, wanted) in self.members.items()
        }
        (assignor,) = find_assignors(strategy)
        assigned = assignor.assign(metadata, subscriptions)
        return {name: sorted(str(item) for item in row.partitions) for name, row in assigned.items()}


def test_assignments_are_those_of_apache_kafka(kafka_tools: None, tmp_path: Path) -> None:
    if shutil.which("javac") is None:
        pytest.skip("a Java development kit is missing: the probe is run from its source")
    chance = random.Random(881)
    cases = [Case(chance) for _ in range(CASES)]
    questions = tmp_path / "questions.txt"
    questions.write_text("\n".join(line for case in cases for line in case.lines()) + "\n")
    probe = Path(__file__).with_name("AssignorProbe.java")
    done = subprocess.run(
        java_command(str(probe), str(questions)), capture_output=True, text=True, timeout=patience(120)
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.split("\n\n")[:-1]
    assert len(answers) == 2 * CASES
    for number, case in enumerate(cases):
        for offset, strategy in enumerate(("range", "roundrobin")):
            rows = [line.split() for line in answers[2 * number + offset].splitlines()]
            theirs = {row[0]: sorted(row[1:]) for row in rows}
            assert case.ours(strategy) == theirs, (strategy, case.lines())
