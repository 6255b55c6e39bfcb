"""kafka-leader-election: what it prints, where, and its exit codes, against a scripted admin client."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.cli.kafka import leader_election
from moldau.cli.kafka.frame import guard
from moldau.client.admin import PREFERRED, UNCLEAN
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors
from tests.unit.cli.kafka.fakes import FakeAdmin

SERVER = ["--bootstrap-server", "localhost:9092"]
PREFERRED_TYPE = ["--election-type", "preferred"]


def run(admin: FakeAdmin, *arguments: str) -> int:
    return guard(lambda: leader_election.main([*arguments], connect=admin.connect))


def test_each_outcome_is_told_and_failures_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = {
        TopicPartition("a", 0): Outcome(None),
        TopicPartition("b", 1): Outcome(error=error_for(errors.ELECTION_NOT_NEEDED)),
        TopicPartition("c", 2): Outcome(
            error=error_for(errors.PREFERRED_LEADER_NOT_AVAILABLE, "The preferred leader was not available.")
        ),
    }
    admin = FakeAdmin(elect_leaders=outcomes)
    assert run(admin, *SERVER, *PREFERRED_TYPE, "--all-topic-partitions") == 1
    said = capsys.readouterr()
    sentence = (
        "org.apache.kafka.common.errors.PreferredLeaderNotAvailableException: The preferred leader was not available."
    )
    assert said.out == (
        "Successfully completed leader election (PREFERRED) for partitions a-0\n"
        "Valid replica already elected for partitions b-1\n"
        f"Error completing leader election (PREFERRED) for partition: c-2: {sentence}\n"
    )
    assert said.err == (
        "1 replica(s) could not be elected\n"
        "org.apache.kafka.tools.AdminCommandFailedException: 1 replica(s) could not be elected\n"
        f"\tSuppressed: {sentence}\n\n"
    )


def test_partitions_come_from_flags_or_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "elect.json"
    file.write_text('{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 2}]}')
    admin = FakeAdmin(elect_leaders={})
    assert run(admin, *SERVER, *PREFERRED_TYPE, "--topic", "a", "--partition", "3") == 0
    assert run(admin, *SERVER, "--election-type", "unclean", "--path-to-json-file", str(file)) == 0
    assert run(admin, *SERVER, *PREFERRED_TYPE, "--all-topic-partitions") == 0
    asked = [arguments for name, arguments, _ in admin.calls if name == "elect_leaders"]
    assert asked == [
        (PREFERRED, [TopicPartition("a", 3)]),
        (UNCLEAN, [TopicPartition("a", 1), TopicPartition("a", 2)]),
        (PREFERRED, None),
    ]


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--topic", "a"], "Missing required option(s): bootstrap-server, election-type"),
        ([*SERVER, *PREFERRED_TYPE, "--topic", "a"], "Missing required option(s): partition"),
        (
            [*SERVER, *PREFERRED_TYPE],
            "One and only one of the following options is required: topic, all-topic-partitions, path-to-json-file",
        ),
        (
            [*SERVER, *PREFERRED_TYPE, "--all-topic-partitions", "--partition", "1"],
            "Option partition is only allowed if topic is used",
        ),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(FakeAdmin(), *arguments) == 1
    assert capsys.readouterr().err.splitlines()[0] == sentence


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("", "Replica election data is empty"),
        ("{}", 'Replica election data is missing "partitions" field'),
        (
            '{"partitions": [{"topic": "a", "partition": 1}, {"topic": "a", "partition": 1}]}',
            "Replica election data contains duplicate partitions: [a-1]",
        ),
    ],
)
def test_files_that_make_no_sense(text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "elect.json"
    file.write_text(text)
    assert run(FakeAdmin(), *SERVER, *PREFERRED_TYPE, "--path-to-json-file", str(file)) == 1
    assert capsys.readouterr().err.startswith(sentence + "\n")
