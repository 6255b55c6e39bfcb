"""kafka-get-offsets: which partitions it takes, what it prints, against a scripted admin client."""

from __future__ import annotations

import pytest

from moldau.cli.kafka import get_offsets
from moldau.cli.kafka.frame import guard
from moldau.client.connection.cluster import PartitionMetadata, TopicMetadata
from moldau.client.errors import error_for
from moldau.client.results import OffsetAndTimestamp, Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin


def topic(name: str, count: int) -> TopicMetadata:
    rows = {index: PartitionMetadata(name, index, 1, 0, [1], [1], []) for index in range(count)}
    return TopicMetadata(name, bytes(16), name.startswith("__"), rows)


def answer(wanted: dict[TopicPartition, int]) -> dict[TopicPartition, Outcome[OffsetAndTimestamp]]:
    """Each partition answers with the time that was asked for as its offset, the third of a topic not at all."""
    return {
        item: Outcome(error=error_for(errors.LEADER_NOT_AVAILABLE, "no leader"))
        if item.partition == 2
        else Outcome(OffsetAndTimestamp(time if time >= 0 else -time, -1, 0))
        for item, time in wanted.items()
    }


def run(*arguments: str) -> int:
    admin = FakeAdmin(list_topics=[topic("__consumer_offsets", 1), topic("a", 11), topic("b", 2)], list_offsets=answer)
    line = ["--bootstrap-server", "localhost:9092", *arguments]
    return guard(lambda: get_offsets.main(line, connect=admin.connect))


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        (["--topic", "b"], ["b:0:1", "b:1:1"]),
        (["--topic", "b", "--time", "earliest"], ["b:0:2", "b:1:2"]),
        (["--topic", "b", "--time", "77"], ["b:0:77", "b:1:77"]),
        (["--topic", "a", "--partitions", "3,10"], ["a:10:1", "a:3:1"]),
        (["--topic-partitions", "a:0-2,b"], ["a:0:1", "a:1:1", "b:0:1", "b:1:1"]),
        (["--topic-partitions", "a:9-,b:-1"], ["a:10:1", "a:9:1", "b:0:1"]),
        (["--topic-partitions", ":1", "--exclude-internal-topics"], ["a:1:1", "b:1:1"]),
    ],
)
def test_partitions_and_times(arguments: list[str], lines: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 0
    assert capsys.readouterr().out.splitlines() == lines


def test_a_partition_without_an_answer_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--topic", "a", "--partitions", "1,2") == 0
    shown = capsys.readouterr()
    assert shown.out == "a:1:1\n"
    assert shown.err == "Skip getting offsets for topic-partition a-2 due to error: no leader\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--topic", "nope"], "Could not match any topic-partitions with the specified filters"),
        (["--topic", "a", "--partitions", "x"], "--partitions expects a comma separated list of numeric partition ids"),
        (
            ["--topic", "a", "--time", "bogus"],
            "Malformed time argument bogus. Please use -1 or latest / -2 or earliest",
        ),
        (["--topic-partitions", "a", "--topic", "a"], "--topic-partitions cannot be used with --topic or --partitions"),
    ],
)
def test_what_is_wrong_is_said(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith(f"Error occurred: {said}")
