"""`moldau group describe` of a streams group: who works on which task, who keeps copies, and how far it is behind."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner, Result

from moldau.cli import group as group_commands
from moldau.cli.root import root
from moldau.cli.streams_group_view import tasks_text
from moldau.client.admin import (
    StreamsGroupDescription,
    StreamsMember,
    StreamsSubtopology,
    StreamsTasks,
    StreamsTopic,
)
from moldau.client.results import Outcome
from tests.unit.cli.group_fakes import BROKER, cluster, group, orders
from tests.unit.cli.kafka.fakes import FakeAdmin

NOTHING = StreamsTasks({}, {}, {})


def member(name: str, has: StreamsTasks, target: StreamsTasks) -> StreamsMember:
    return StreamsMember(
        name, 6, None, None, f"client-{name}", "/10.0.0.1", 0, "process", None, {}, {}, {}, has, target, False
    )


@pytest.fixture
def admin() -> FakeAdmin:
    both = StreamsTasks({"0": [0, 1]}, {}, {})
    members = [
        member("m1", both, StreamsTasks({"0": [0]}, {"1": [0]}, {})),
        member("m2", NOTHING, StreamsTasks({"0": [1]}, {}, {})),
    ]
    subtopologies = [
        StreamsSubtopology("0", ["orders"], ["rep"], [], []),
        StreamsSubtopology("1", [], [], [StreamsTopic("store", 1, 1, {})], [StreamsTopic("rep", 1, 1, {})]),
    ]
    found = StreamsGroupDescription("app", "Reconciling", BROKER, 7, 7, 0, subtopologies, members)
    return cluster(
        group("app", type="streams"),
        committed=dict.fromkeys(orders(0), 50) | dict.fromkeys(orders(1), 20),
        describe_consumer_groups=cluster().answers["describe_consumer_groups"],
        describe_streams_groups=lambda names: {name: Outcome(found) for name in names},
    )


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str) -> Result:
    monkeypatch.setattr(group_commands, "open_admin", lambda connection: admin)
    return CliRunner().invoke(root, ["group", "describe", "app", *arguments, "-b", "h:1"])


def test_a_streams_group_for_people(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> None:
    result = run(monkeypatch, admin, "-o", "-m")
    assert result.exit_code == 0, result.output
    lines = [" ".join(line.split()) for line in result.output.splitlines()]
    assert "state Reconciling" in lines and "epochs group 7, assignment 7" in lines and "lag 30" in lines
    assert "orders 1 20 50 30 client-m1 /10.0.0.1 m1" in lines
    assert "MEMBER CLIENT HOST PROCESS EPOCH ACTIVE STANDBY" in lines
    assert "m1 client-m1 /10.0.0.1 process 6 0_0 0_1 → 0_0 - → 1_0" in lines
    assert "m2 client-m2 /10.0.0.1 process 6 - → 0_1 -" in lines


def test_a_streams_group_for_programs(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin) -> None:
    (found,) = json.loads(run(monkeypatch, admin, "--format", "json").output)
    assert (found["type"], found["lag"], found["topology_epoch"]) == ("streams", 30, 0)
    assert found["offsets"][1]["member_id"] == "m1"
    assert found["members"][0]["target_tasks"] == {"active": {"0": [0]}, "standby": {"1": [0]}, "warmup": {}}
    assert found["subtopologies"][1]["state_changelog_topics"] == ["store"]


def test_tasks_have_the_names_that_kafka_streams_gives_them() -> None:
    assert tasks_text({"1": [1, 0], "0": [2]}) == "0_2 1_0 1_1"
    assert tasks_text({}) == "-"
