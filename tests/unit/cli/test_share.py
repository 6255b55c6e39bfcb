"""`moldau share`: tables, JSON, sentences and exit codes, against a scripted cluster."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import completion, share_offsets
from moldau.cli import group as group_commands
from moldau.cli import share as share_commands
from moldau.cli.root import root
from moldau.cli.share_view import SharePace
from moldau.client.admin import ConfigEntry, SharePartitionOffset
from moldau.client.connection.cluster import Broker
from moldau.client.results import Outcome, TopicPartition
from moldau.facts import share_progress
from moldau.facts.share_progress import page_address, parse_held
from tests.unit.cli.group_fakes import BROKER, group, orders
from tests.unit.cli.kafka.fakes import FakeAdmin
from tests.unit.cli.share_fakes import share, share_cluster

STARTS = {**dict.fromkeys(orders(0, 1), SharePartitionOffset(20, 3, 25)), **dict.fromkeys(orders(2))}
PAGE = """# TYPE moldau_share_partition_acquired_records gauge
moldau_share_partition_acquired_records{group="g",topic="orders",partition="0"} 7
moldau_share_partition_acquired_records{group="g",topic="orders",partition="1"} 2
moldau_share_partition_acquired_records{group="an \\"odd\\\\one",topic="t",partition="3"} 1
moldau_share_partitions 3
"""


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str) -> Result:
    for module in (share_commands, share_offsets, group_commands):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    return CliRunner().invoke(root, [*arguments, "-b", "h:1"])


def with_page(monkeypatch: pytest.MonkeyPatch, text: str | None) -> dict[str, Any]:
    """A broker that names a page of metrics, which says this."""
    monkeypatch.setattr(share_progress, "fetch_page", lambda host, port: text)
    entry = ConfigEntry("moldau.metrics.listener", "127.0.0.1:9404", 4, False, True, [], None, None)
    return {"describe_configs": lambda resources, **_: {each: Outcome([entry]) for each in resources}}


def test_share_groups_are_listed_with_what_is_left_and_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    groups = (share("g", "Stable", orders(0, 1)), group("c", type="consumer"))
    admin = share_cluster(*groups, starts=STARTS, **with_page(monkeypatch, PAGE))
    assert run(monkeypatch, admin, "share", "list").output.splitlines() == [
        "GROUP  STATE   LAG  IN FLIGHT",
        "g      Stable   50          9",
    ]
    found = json.loads(run(monkeypatch, admin, "share", "list", "--format", "json").output)
    assert found == [{"group_id": "g", "state": "Stable", "lag": 50, "in_flight": 9}]
    assert run(monkeypatch, admin, "share", "list", "-q").output == "g\n"
    assert run(monkeypatch, admin, "group", "list").output.splitlines() == [
        "GROUP  TYPE      PROTOCOL  STATE   LAG  IN FLIGHT",
        "g      share     share     Stable   50          9",
        "c      consumer  consumer  Stable    -          -",
    ]


@pytest.mark.parametrize("page", [None, "elsewhere"])
def test_what_is_held_is_not_known_where_no_page_tells(monkeypatch: pytest.MonkeyPatch, page: str | None) -> None:
    more = with_page(monkeypatch, None) if page == "elsewhere" else {}
    admin = share_cluster(share("g"), starts=STARTS, **more)
    found = json.loads(run(monkeypatch, admin, "share", "describe", "g", "--format", "json").output)
    assert (found[0]["lag"], found[0]["in_flight"]) == (50, None)
    assert "IN FLIGHT" not in run(monkeypatch, admin, "share", "describe", "g").output


def test_a_group_is_described_with_offsets_and_members(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("g", "Stable", orders(0, 1), orders(2)), starts=STARTS, **with_page(monkeypatch, PAGE))
    lines = run(monkeypatch, admin, "share", "describe", "g", "-m", "-o").output.splitlines()
    assert lines[:8] == [
        "g",
        "  state        Stable",
        "  coordinator  127.0.0.1:9092 (broker 1)",
        "  assignor     simple",
        "  epochs       group 5, assignment 5",
        "  members      2",
        "  lag          50",
        "  in flight    9",
    ]
    assert lines[9:] == [
        "TOPIC   PARTITION  START  END  LAG  IN FLIGHT",
        "orders          0     20   50   25          7",
        "orders          1     20   50   25          2",
        "orders          2      -   50    -          0",
        "",
        "MEMBER  CLIENT  HOST       EPOCH  PARTITIONS  ASSIGNMENT",
        "m0      app     /10.0.0.1      4           2  orders:0-1",
        "m1      app     /10.0.0.1      4           1  orders:2",
        "",
    ]


def test_partitions_where_nothing_is_left_can_be_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    starts = {orders(0)[0]: SharePartitionOffset(50, 3, 0), orders(1)[0]: SharePartitionOffset(20, 3, 5)}
    lines = run(monkeypatch, share_cluster(share("g"), starts=starts), "share", "describe", "--all", "-l").output
    assert [line.split()[:2] for line in lines.splitlines() if line.startswith("orders")] == [["orders", "1"]]


def test_a_group_that_is_missing_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, share_cluster(share("g"), starts=STARTS), "share", "describe", "nope", "g")
    assert (result.exit_code, result.stdout.splitlines()[0]) == (1, "g")
    assert result.stderr == "Error: Group nope not found. `moldau share list` shows which share groups there are.\n"
    result = run(monkeypatch, share_cluster(share("g"), starts=STARTS), "share", "offsets", "nope", "g", "-t", "orders")
    assert (result.exit_code, len(result.stdout.splitlines())) == (1, 4)


def test_offsets_of_all_groups_are_one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("a"), share("b"), starts=STARTS)
    rows = json.loads(run(monkeypatch, admin, "share", "offsets", "--all", "--format", "json").output)
    assert [(row["group_id"], row["partition"], row["start_offset"], row["lag"]) for row in rows] == [
        (name, *numbers) for name in ("a", "b") for numbers in ((0, 20, 25), (1, 20, 25), (2, None, None))
    ]
    assert run(monkeypatch, admin, "share", "offsets", "--all", "-t", "pay").stderr == "Nothing was read yet.\n"


def test_a_reset_is_shown_and_set_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("g"), starts=STARTS)
    result = run(monkeypatch, admin, "share", "reset", "g", "-t", "orders:0,3", "--to", "-5")
    assert result.stdout.splitlines() == [
        "TOPIC   PARTITION  CURRENT  NEW  CHANGE",
        "orders          0       20   45     +25",
        "orders          3        -   45",
    ]
    assert result.stderr == "Nothing was changed: --execute sets these offsets.\n"
    assert not [call for call in admin.calls if call[0] == "alter_share_group_offsets"]
    result = run(monkeypatch, admin, "share", "reset", "g", "--all-topics", "--to-earliest", "--execute")
    assert (result.exit_code, result.stderr) == (0, "The offsets of 3 partitions are set.\n")
    altered = [call[1] for call in admin.calls if call[0] == "alter_share_group_offsets"]
    assert altered == [("g", dict.fromkeys(orders(0, 1, 2), 10))]


def test_what_cannot_be_reset_is_refused_with_the_next_step(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("busy", "Stable", orders(0)), group("c", type="consumer"), starts=STARTS)
    line = ("-t", "orders", "--to", "end", "--execute")
    admin.answers["describe_share_groups"] = share_cluster(share("busy", "Stable", orders(0))).describe_share_groups
    busy = run(monkeypatch, admin, "share", "reset", "busy", *line)
    assert (busy.exit_code, busy.stderr.startswith("Error: Share group busy is in use: it has 1 member.")) == (1, True)
    other = run(monkeypatch, admin, "share", "reset", "c", *line)
    assert (other.exit_code, other.stderr.startswith("Error: c is a consumer group, not a share group.")) == (1, True)
    assert not [call for call in admin.calls if call[0] == "alter_share_group_offsets"]
    assert run(monkeypatch, admin, "share", "reset", "g", "--to", "end").exit_code == 2
    assert run(monkeypatch, admin, "share", "reset", "g", "-t", "orders").exit_code == 2


def test_groups_are_deleted_and_others_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("g"), group("c", type="consumer"))
    result = run(monkeypatch, admin, "share", "delete", "g", "c", "nope")
    assert (result.exit_code, result.stdout) == (1, "Deleted share group g.\n")
    assert result.stderr.splitlines() == [
        "Error: c is a consumer group, not a share group. `moldau group delete c` deletes it.",
        "Error: Group nope not found. `moldau share list` shows which share groups there are.",
    ]
    assert [call[1][0] for call in admin.calls if call[0] == "delete_share_groups"] == [["g", "nope"]]
    assert run(monkeypatch, admin, "share", "delete", "nope", "--if-exists").exit_code == 0


def test_topics_can_be_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("g"))
    result = run(monkeypatch, admin, "share", "delete", "g", "nope", "-t", "orders", "-t", "pay")
    assert (result.exit_code, result.stdout) == (1, "Share group g has forgotten 1 topic.\n")
    assert result.stderr.splitlines() == [
        "Error: pay: There is no offset information to delete.",
        "Error: Group nope not found. `moldau share list` shows which share groups there are.",
    ]
    assert not [call for call in admin.calls if call[0] == "delete_share_groups"]


def test_the_page_of_metrics_is_looked_for_where_it_can_be() -> None:
    far = Broker(2, "kafka-2.example.org", 9092, None)
    assert page_address("127.0.0.1:9404", BROKER) == ("127.0.0.1", 9404)
    assert page_address(":9404", far) == ("kafka-2.example.org", 9404)
    assert page_address("0.0.0.0:9404", far) == ("kafka-2.example.org", 9404)
    assert page_address("10.0.0.7:9404", far) == ("10.0.0.7", 9404)
    # On this machine somebody else would answer.
    assert page_address("localhost:9404", far) is None
    assert [page_address(text, far) for text in ("", "nonsense", "h:0")] == [None, None, None]


def test_names_on_the_page_may_have_any_character() -> None:
    assert parse_held(PAGE) == {
        "g": {TopicPartition("orders", 0): 7, TopicPartition("orders", 1): 2},
        'an "odd\\one': {TopicPartition("t", 3): 1},
    }


def test_a_page_that_leaves_some_out_tells_nothing() -> None:
    assert parse_held(PAGE.replace("partitions 3", "partitions 1200")) is None
    assert parse_held("# a page of another kind of broker\n") is None
    assert parse_held("moldau_share_partitions 0\n") == {}


def test_records_that_are_done_behind_the_start_count_as_progress() -> None:
    pace = SharePace()
    row = {"topic": "t", "partition": 0, "start_offset": 0, "end_offset": 100, "lag": 80}
    pace.look({"lag": 80, "offsets": [row]}, 0.0)
    pace.look({"lag": 60, "offsets": [{**row, "end_offset": 110, "lag": 60}]}, 2.0)
    # 30 got done with and 10 were written, although the start offset has not moved.
    assert pace.speeds(row) == (15.0, 5.0)


def test_names_of_share_groups_are_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = share_cluster(share("jobs"), share("mail"), group("jobs-consumer", type="consumer"))
    monkeypatch.setattr(completion, "open_admin", lambda connection: admin)
    command = share_commands.delete
    context = command.make_context("delete", ["-b", "h:1"], resilient_parsing=True)
    assert completion.complete_share_groups(context, command.params[0], "j") == ["jobs"]
