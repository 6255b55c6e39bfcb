"""`moldau group`: tables, JSON, sentences and exit codes, against a scripted cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import group as group_commands
from moldau.cli import group_offsets
from moldau.cli.group_view import Pace, assignment_text, bars
from moldau.cli.root import root
from moldau.client.admin import MemberToRemove
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol import errors as codes
from tests.unit.cli.group_fakes import FIRST_MS, cluster, group, listing, member, orders
from tests.unit.cli.kafka.fakes import FakeAdmin


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str) -> Result:
    for module in (group_commands, group_offsets):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    return CliRunner().invoke(root, ["group", *arguments, "-b", "h:1"])


def altered(admin: FakeAdmin) -> list[Any]:
    return [call[1] for call in admin.calls if call[0] == "alter_consumer_group_offsets"]


@pytest.fixture
def busy() -> FakeAdmin:
    members = [
        member("m1", orders(0, 1), target=orders(0), epoch=7),
        member("m2", orders(2), target=orders(1, 2), epoch=8, instance="static"),
    ]
    found = group("busy", "Reconciling", members, "consumer", "uniform", 8)
    return cluster(found, committed=dict.fromkeys(orders(0, 1, 3), 50) | dict.fromkeys(orders(1), 20))


def test_groups_are_listed_for_people_and_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = cluster(group("a", "Empty"), group("b", type="consumer"))
    assert run(monkeypatch, admin, "list").output.splitlines() == [
        "GROUP  TYPE      PROTOCOL  STATE",
        "a      classic   consumer  Empty",
        "b      consumer  consumer  Stable",
    ]
    assert run(monkeypatch, admin, "list", "-q").output == "a\nb\n"
    rows = json.loads(run(monkeypatch, admin, "list", "--format", "json", "-s", "stable", "-t", "CONSUMER").output)
    assert rows[1] == {"group_id": "b", "type": "consumer", "protocol": "consumer", "state": "Stable"}
    assert admin.calls[-1][1] == (("Stable",), ("consumer",))


def test_a_list_that_lacks_a_broker_ends_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    partial = listing(group("a"))
    partial.errors[2] = error_for(codes.COORDINATOR_LOAD_IN_PROGRESS)
    result = run(monkeypatch, cluster(list_groups=partial), "list")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].startswith("a ")
    assert "Groups of broker 2 are missing:" in result.stderr


def test_offsets_and_lag(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    result = run(monkeypatch, busy, "describe", "busy")
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "busy",
        "  state        Reconciling",
        "  type         consumer",
        "  coordinator  127.0.0.1:9092 (broker 1)",
        "  assignor     uniform",
        "  epochs       group 8, assignment 8",
        "  members      2",
        "  lag          30",
        "",
        "TOPIC   PARTITION  CURRENT  END  LAG  CLIENT  HOST       MEMBER",
        "orders          0       50   50    0  app     /10.0.0.1  m1",
        "orders          1       20   50   30  app     /10.0.0.1  m1",
        "orders          2        -   50    -  app     /10.0.0.1  m2",
        "orders          3       50   50    0  -       -          -",
        "",
    ]


def test_only_what_lags(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    """A partition without a commit may be unread altogether, so it counts."""
    lines = run(monkeypatch, busy, "describe", "busy", "--lagging").output.splitlines()
    assert [line.split()[1] for line in lines if line.startswith("orders")] == ["1", "2"]
    idle = cluster(group("idle", "Empty"), committed=dict.fromkeys(orders(0), 50))
    assert "Every partition is read to its end." in run(monkeypatch, idle, "describe", "idle", "-l").output


def test_members_and_where_their_partitions_go(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    lines = run(monkeypatch, busy, "describe", "busy", "-m").output.splitlines()
    assert lines[9:] == [
        "MEMBER  INSTANCE  CLIENT  HOST       EPOCH  PARTITIONS  ASSIGNMENT",
        "m1      -         app     /10.0.0.1      7           2  orders:0-1 → orders:0",
        "m2      static    app     /10.0.0.1      8           1  orders:2 → orders:1-2",
        "",
    ]


def test_a_description_for_programs(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    result = run(monkeypatch, busy, "describe", "--all", "--format", "json")
    (found,) = json.loads(result.output)
    assert (found["state"], found["lag"], found["group_epoch"]) == ("Reconciling", 30, 8)
    assert found["offsets"][1] == {
        "topic": "orders",
        "partition": 1,
        "offset": 20,
        "leader_epoch": 3,
        "metadata": "",
        "end_offset": 50,
        "lag": 30,
        "member_id": "m1",
        "client_id": "app",
        "host": "/10.0.0.1",
    }
    assert found["members"][1]["target_assignment"] == {"orders": [1, 2]}


def test_a_group_that_is_missing_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    result = run(monkeypatch, busy, "describe", "nope", "busy")
    assert result.exit_code == 1
    assert result.stdout.startswith("busy\n")
    assert result.stderr == "Error: Group nope not found. `moldau group list` shows which groups there are.\n"


def test_a_group_of_another_kind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = cluster(group("s", type="share"), describe_consumer_groups=cluster().answers["describe_consumer_groups"])
    result = run(monkeypatch, admin, "describe", "s")
    assert (result.exit_code, result.stderr.startswith("Error: s is a share group, not one of consumers.")) == (1, True)


def test_a_partition_whose_leader_is_gone_has_an_unknown_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = cluster(group("g", "Empty"), committed=dict.fromkeys(orders(0, 1), 20), leaderless=[0, 1])
    output = run(monkeypatch, admin, "describe", "g").output
    assert "  lag          unknown\n" in output
    assert "orders          0       20    -    -  -       -     -\n" in output


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-t", "orders", "--to", "beginning"), [10, 10, 10, 10]),
        (("-t", "orders", "--to-earliest"), [10, 10, 10, 10]),
        (("-t", "orders:1,3", "--to", "end"), [50, 50]),
        (("-t", "orders:0", "--to", "-5"), [45]),
        (("-t", "orders:0", "--to", "-500"), [10]),
        (("-t", "orders:0", "--to", "17"), [17]),
        (("-t", "orders:0", "--to-offset", "9999"), [50]),
        (("-t", "orders:0", "--to", f"@{FIRST_MS + 4}"), [14]),
        (("-t", "orders:0", "--to-datetime", "1970-01-01T00:16:40.004"), [14]),
        (("-t", "orders:0", "--by-duration", "PT1H"), [50]),
        (("--all-topics", "--shift-by", "-3"), [17, 17]),
        (("--all-topics", "--shift-by", "-300"), [10, 10]),
        (("-t", "orders:1,2", "--to-current"), [20, 50]),
    ],
)
def test_where_a_reset_goes(monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], expected: list[int]) -> None:
    admin = cluster(group("g", "Empty"), committed=dict.fromkeys(orders(0, 1), 20))
    result = run(monkeypatch, admin, "reset-offsets", "g", *arguments, "--format", "json")
    assert result.exit_code == 0, result.output
    assert [row["new_offset"] for row in json.loads(result.stdout)] == expected
    assert not altered(admin), "nothing is changed without --execute"
    assert result.stderr.endswith("Nothing was changed: --execute sets these offsets.\n")


def test_a_reset_shows_how_far_it_goes_and_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = cluster(group("g", "Empty"), committed=dict.fromkeys(orders(0), 20))
    result = run(monkeypatch, admin, "reset-offsets", "g", "-t", "orders:0,2", "--to", "15", "--execute")
    assert result.stdout.splitlines() == [
        "TOPIC   PARTITION  CURRENT  NEW  CHANGE",
        "orders          0       20   15      -5",
        "orders          2        -   15",
    ]
    assert result.stderr == "The offsets of 2 partitions are set.\n"
    assert altered(admin) == [("g", dict.fromkeys(orders(0, 2), 15))]


def test_a_plan_goes_out_and_comes_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    admin = cluster(group("g", "Empty"), committed=dict.fromkeys(orders(0, 1), 20))
    result = run(monkeypatch, admin, "reset-offsets", "g", "--all-topics", "--to-latest", "--export")
    assert result.stdout == "orders,0,50\norders,1,50\n"
    plan = tmp_path / "plan.csv"
    plan.write_text(result.stdout)
    assert run(monkeypatch, admin, "reset-offsets", "g", "--from-file", str(plan), "--execute").exit_code == 0
    assert altered(admin) == [("g", dict.fromkeys(orders(0, 1), 50))]
    plan.write_text("orders,0,soon\n")
    assert run(monkeypatch, admin, "reset-offsets", "g", "--from-file", str(plan)).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--to", "end"), 2, "Say which offsets: --topic TOPIC, or --all-topics."),
        (("-t", "orders", "--all-topics", "--to", "end"), 2, "Say which offsets"),
        (("-t", "orders"), 2, "Say where to, with one of --to, --to-earliest"),
        (("-t", "orders", "--to", "end", "--shift-by", "1"), 2, "Say where to, with one of"),
        (("-t", "orders", "--to", "soon"), 2, "--to wants"),
        (("-t", "orders", "--to-datetime", "soon"), 2, "as in 2026-01-31T12:00:00.000"),
        (("-t", "orders", "--to", "end", "--execute", "--dry-run"), 2, "--execute and --dry-run are opposites."),
        (("-t", "orders:x", "--to", "end"), 2, "--topic wants orders or orders:0,1; not 'orders:x'."),
        (("-t", "orders:7", "--to", "end"), 1, "Topic orders has partitions 0 to 3; there is no partition 7."),
        (("-t", "orders", "--shift-by", "1"), 1, "orders-0 has no committed offset to shift. Say where to with --to."),
    ],
)
def test_resets_that_make_no_sense(
    monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, said: str
) -> None:
    admin = cluster(group("g", "Empty"))
    result = run(monkeypatch, admin, "reset-offsets", "g", *arguments)
    assert result.exit_code == code
    assert said in " ".join(result.stderr.split())
    assert not altered(admin)


def test_a_group_in_use_is_not_reset(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    result = run(monkeypatch, busy, "reset-offsets", "busy", "-t", "orders", "--to", "end", "--execute")
    assert result.exit_code == 1
    assert "Group busy is in use: it is Reconciling and has 2 members. Stop its consumers first" in result.stderr
    assert not altered(busy)


def test_a_partition_that_cannot_be_set_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {
        orders(0)[0]: Outcome(None),
        orders(1)[0]: Outcome[None](error=error_for(codes.OFFSET_METADATA_TOO_LARGE)),
    }
    admin = cluster(group("g", "Empty"), alter_consumer_group_offsets=refused)
    result = run(monkeypatch, admin, "reset-offsets", "g", "-t", "orders:0,1", "--to", "end", "--execute")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: orders-1: ")
    assert "are set" not in result.stderr


def test_offsets_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, cluster(), "delete-offsets", "g", "-t", "orders:0,1")
    assert (result.exit_code, result.output) == (0, "Deleted the offsets of 2 partitions from group g.\n")
    subscribed = {orders(0)[0]: Outcome[None](error=error_for(codes.GROUP_SUBSCRIBED_TO_TOPIC))}
    result = run(
        monkeypatch, cluster(delete_consumer_group_offsets=subscribed), "delete-offsets", "g", "-t", "orders:0"
    )
    assert result.exit_code == 1
    assert result.output == "Error: Group g reads the topic at the moment. Stop its consumers first.\n"


def test_groups_are_deleted(monkeypatch: pytest.MonkeyPatch, busy: FakeAdmin) -> None:
    admin = cluster(group("g", "Empty"), group("busy", members=[member("m", [])]))
    result = run(monkeypatch, admin, "delete", "g", "busy", "nope", "--if-exists")
    assert result.exit_code == 1
    assert result.stdout == "Deleted group g.\nGroup nope does not exist.\n"
    assert result.stderr.startswith("Error: Group busy has members. Stop its consumers first;")


def test_members_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    static, gone = MemberToRemove("static"), MemberToRemove(member_id="gone")
    outcomes = {static: Outcome(None), gone: Outcome[None](error=error_for(codes.UNKNOWN_MEMBER_ID))}
    admin = cluster(remove_members_from_consumer_group=outcomes)
    result = run(monkeypatch, admin, "remove-members", "g", "-i", "static", "-m", "gone", "--reason", "moved")
    assert admin.calls[-1][1] == ("g", [static, gone], "moved")
    assert result.exit_code == 1
    assert result.stdout == "Removed 1 member from group g.\n"
    assert result.stderr.startswith("Error: gone: ")
    assert run(monkeypatch, admin, "remove-members", "g").exit_code == 2
    assert run(monkeypatch, admin, "remove-members", "g", "--all", "-m", "x").exit_code == 2


def test_the_pace_of_a_group_is_that_of_the_last_seconds() -> None:
    def found(offset: int, end: int) -> dict[str, Any]:
        row = {"topic": "orders", "partition": 0, "offset": offset, "end_offset": end, "lag": end - offset}
        return {"lag": end - offset, "offsets": [row]}

    pace = Pace()
    pace.look(found(0, 100), 0.0)
    row = found(0, 100)["offsets"][0]
    assert pace.cells(row) == ("", "", "")
    pace.look(found(40, 120), 10.0)
    assert pace.cells(found(40, 120)["offsets"][0]) == ("4.0", "2.0", "40 s")
    pace.look(found(40, 1120), 20.0)
    # The first look is too long ago by now.
    assert pace.cells(found(40, 1120)["offsets"][0]) == ("0", "100", "never")
    assert pace.history == [100, 80, 1080]


def test_small_pictures() -> None:
    assert bars([0, 1, 50, 100]) == "▁▁▄█"
    assert bars([0, 0]) == "▁▁"
    assert assignment_text({"a": [0, 1, 2, 5, 7, 8], "b": [3]}) == "a:0-2,5,7-8 b:3"
