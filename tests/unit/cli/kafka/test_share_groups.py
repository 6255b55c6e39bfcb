"""kafka-share-groups: columns, sentences, streams and exit codes, against a scripted cluster."""

from __future__ import annotations

import re
from typing import Any

import pytest

from moldau.cli.kafka import share_groups
from moldau.cli.kafka.frame import guard
from moldau.client.admin import SharePartitionOffset
from moldau.client.errors import NoBrokerError, error_for
from moldau.client.results import Outcome
from moldau.protocol import errors as codes
from tests.unit.cli.group_fakes import group, orders
from tests.unit.cli.kafka.fakes import FakeAdmin
from tests.unit.cli.share_fakes import share, share_cluster

Captured = pytest.CaptureFixture[str]
FAILED = "\nError: Executing share group command failed due to "
STARTS = {**dict.fromkeys(orders(2, 1), SharePartitionOffset(20, 3, 25)), **dict.fromkeys(orders(0))}


def run(admin: FakeAdmin, *arguments: str) -> int:
    return guard(lambda: share_groups.main(["--bootstrap-server", "h:1", *arguments], connect=admin.connect))


def altered(admin: FakeAdmin) -> list[Any]:
    return [call[1][:2] for call in admin.calls if call[0] == "alter_share_group_offsets"]


def test_start_offsets_are_sorted_and_what_is_not_known_is_a_dash(capsys: Captured) -> None:
    admin = share_cluster(share("g"), starts=STARTS)
    assert run(admin, "--describe", "--group", "g", "--verbose") == 0
    out, err = capsys.readouterr()
    assert out == (
        "\nGROUP           TOPIC           PARTITION  LEADER-EPOCH  START-OFFSET  LAG\n"
        "g               orders          0          -             -             -\n"
        "g               orders          1          3             20            25\n"
        "g               orders          2          3             20            25\n"
    )
    assert not err


def test_a_partition_that_cannot_be_asked_for_is_left_out(capsys: Captured) -> None:
    broken: Outcome[Any] = Outcome(error=error_for(codes.LEADER_NOT_AVAILABLE))
    found = {orders(0)[0]: broken, orders(1)[0]: Outcome(SharePartitionOffset(20, 3, None))}
    admin = share_cluster(share("g"), list_share_group_offsets=lambda names, *_: {"g": Outcome(found)})
    assert run(admin, "--describe", "--group", "g") == 0
    assert capsys.readouterr().out.splitlines()[2:] == ["g               orders          1          20            -"]


def test_members_come_in_the_order_of_their_ids(capsys: Captured) -> None:
    described = share("g", "Stable", orders(0, 1), [])
    described.members.reverse()
    assert run(share_cluster(described), "--describe", "--group", "g", "--members", "--verbose") == 0
    assert capsys.readouterr().out == (
        "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS  MEMBER-EPOCH  ASSIGNMENT\n"
        "g               m0              /10.0.0.1       app             2            4             orders:0,1\n"
        "g               m1              /10.0.0.1       app             0            4             \n"
    )


def test_a_group_without_members_or_offsets_says_so(capsys: Captured) -> None:
    admin = share_cluster(share("g"))
    assert run(admin, "--describe", "--group", "g") == 0
    assert capsys.readouterr() == ("\nShare group 'g' has no offset information.\n", "")
    assert run(admin, "--describe", "--group", "g", "--members") == 0
    assert capsys.readouterr() == ("", "\nShare group 'g' has no active members.\n")
    assert run(admin, "--describe", "--group", "g", "--state") == 0
    out, err = capsys.readouterr()
    assert out == (
        "\nGROUP           COORDINATOR (ID)          STATE           #MEMBERS\n"
        "g               127.0.0.1:9092  (1)       Empty           0\n"
    )
    assert err == "\nShare group 'g' has no active members.\n"


def test_lists_name_share_groups_alone(capsys: Captured) -> None:
    admin = share_cluster(share("a"), share("b", "Stable"), group("c", type="consumer"))
    assert run(admin, "--list") == 0
    assert capsys.readouterr().out == "a\nb\n"
    assert run(admin, "--list", "--state", "stable,") == 0
    assert capsys.readouterr().out == "GROUP           STATE\nb               Stable\n"
    assert run(admin, "--list", "--state", "Assigning") == 1
    err = capsys.readouterr().err
    assert err.startswith("Invalid state list 'Assigning'. Valid states are: Empty, Dead, Stable\n")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--timeout 5", "Command must include exactly one action: --list, --describe, --delete, --reset-offsets,"),
        ("--describe", "Option [describe] takes one of these options: [all-groups], [group]"),
        ("--describe --all-groups --members --state", "Option [describe] takes at most one of these options:"),
        ("--describe --group a --state x", "Option [describe] does not take a value for [state]"),
        ("--delete", "Option [delete] takes the options [group] or [all-groups]"),
        ("--delete --group a --all-groups", "Option [delete] takes either [group] or [all-groups], not both."),
        ("--delete --group a --topic t", "Option [delete] does not take the option: [topic]"),
        ("--delete-offsets --group a", "Option [delete-offsets] takes the following options: [group], [topic]"),
        ("--reset-offsets", "Option [reset-offsets] takes the option: [execute] or [dry-run]"),
        ("--reset-offsets --dry-run", "Option [reset-offsets] takes the option: [group]"),
        ("--reset-offsets --dry-run --group a", "Option [reset-offsets] takes one of these options: [all-topics]"),
        ("--reset-offsets --dry-run --group a --topic t", "Option [reset-offsets] takes one of these options: [to-"),
        ("--list --group a", 'Option "[group]" can\'t be used with option "[list]"'),
    ],
)
def test_a_command_line_that_makes_no_sense(arguments: str, sentence: str, capsys: Captured) -> None:
    admin = share_cluster()
    assert run(admin, *arguments.split()) == 1
    out, err = capsys.readouterr()
    assert (out, err.startswith(sentence)) == ("", True), err
    assert not admin.connected


def test_a_reset_is_shown_and_set_when_it_is_told_to(capsys: Captured) -> None:
    admin = share_cluster(share("g"), starts=STARTS)
    reset = ("--reset-offsets", "--group", "g", "--topic", "orders:0,1", "--to-latest")
    shown = (
        "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n"
        "g               orders          0          50\n"
        "g               orders          1          50\n"
    )
    assert (run(admin, *reset, "--dry-run"), capsys.readouterr().out, altered(admin)) == (0, shown, [])
    assert (run(admin, *reset, "--execute"), capsys.readouterr().out) == (0, shown)
    assert altered(admin) == [("g", dict.fromkeys(orders(0, 1), 50))]


def test_a_reset_of_all_topics_takes_those_that_the_group_knows(capsys: Captured) -> None:
    admin = share_cluster(share("g"), starts=STARTS)
    assert run(admin, "--reset-offsets", "--group", "g", "--all-topics", "--to-earliest", "--execute") == 0
    assert altered(admin) == [("g", dict.fromkeys(orders(0, 1, 2), 10))]
    assert run(admin, "--reset-offsets", "--group", "new", "--all-topics", "--to-earliest", "--execute") == 0
    assert len(altered(admin)) == 1
    assert capsys.readouterr().out.endswith("\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n")


def test_a_group_with_members_is_not_reset(capsys: Captured) -> None:
    admin = share_cluster(share("g", "Stable", orders(0)), starts=STARTS)
    assert run(admin, "--reset-offsets", "--group", "g", "--all-topics", "--to-earliest", "--execute") == 1
    assert capsys.readouterr() == ("", "Share group 'g' is not empty.\n")
    assert not altered(admin)


def test_partitions_whose_offsets_are_refused_are_named(capsys: Captured) -> None:
    refused: Outcome[None] = Outcome(error=error_for(codes.GROUP_ID_NOT_FOUND, "Group g is not a share group."))
    admin = share_cluster(alter_share_group_offsets=lambda name, new, *_: dict.fromkeys(new, refused))
    assert run(admin, "--reset-offsets", "--group", "g", "--topic", "orders:0,1", "--to-latest", "--execute") == 0
    sentence = "Failed altering group offsets for the following partitions: [orders-0, orders-1]"
    out, err = capsys.readouterr()
    assert out == f"{FAILED}{sentence}\n"
    assert err == f"org.apache.kafka.common.errors.GroupIdNotFoundException: {sentence}\n"


def test_only_share_groups_without_members_are_deleted(capsys: Captured) -> None:
    admin = share_cluster(share("idle"), share("busy", "Stable", orders(0)), group("c", type="consumer"))
    assert run(admin, "--delete", "--group", "idle", "--group", "busy", "--group", "c") == 0
    assert capsys.readouterr().out == (
        "\nError: Deletion of some share groups failed:\n"
        "* Group 'c' could not be deleted due to: java.lang.IllegalArgumentException: Group 'c' is not a share group.\n"
        "* Group 'busy' could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException:"
        " Share group 'busy' is not EMPTY.\n"
        "\nThese share groups were deleted successfully: 'idle'\n"
    )
    assert [call[1][0] for call in admin.calls if call[0] == "delete_share_groups"] == [["idle"]]


def test_all_groups_can_be_deleted_also_where_there_are_none(capsys: Captured) -> None:
    assert run(share_cluster(share("a"), share("b")), "--delete", "--all-groups") == 0
    assert capsys.readouterr().out == "Deletion of requested share groups ('a', 'b') was successful.\n"
    assert run(share_cluster(), "--delete", "--all-groups") == 0
    assert capsys.readouterr().out == "Deletion of requested share groups () was successful.\n"


def test_offsets_of_topics_are_deleted_one_by_one(capsys: Captured) -> None:
    admin = share_cluster(share("g"))
    assert run(admin, "--delete-offsets", "--group", "g", "--topic", "pay", "--topic", "orders", "--topic", "") == 0
    assert capsys.readouterr().out == (
        "\nTOPIC           STATUS\n"
        "                Error: This server does not host this topic-partition.\n"
        "orders          Successful\n"
        "pay             Error: There is no offset information to delete.\n"
    )
    assert run(admin, "--delete-offsets", "--group", "nope", "--topic", "orders") == 0
    assert capsys.readouterr().out == (
        "\nError: Group nope not found.\n\nTOPIC           STATUS\norders          Error: Group nope not found.\n"
    )


def test_failures_arrive_as_javas_client_wraps_them(capsys: Captured) -> None:
    assert run(share_cluster(), "--describe", "--group", "nope") == 0
    cause = "org.apache.kafka.common.errors.GroupIdNotFoundException: Group nope not found."
    out, err = capsys.readouterr()
    assert out == f"{FAILED}{cause}\n"
    assert err == f"java.util.concurrent.ExecutionException: {cause}\nCaused by: {cause}\n"
    invalid: Outcome[Any] = Outcome(error=error_for(codes.INVALID_GROUP_ID))
    admin = share_cluster(describe_share_groups=lambda names, **_: dict.fromkeys(names, invalid))
    assert run(admin, "--reset-offsets", "--group", "", "--topic", "orders", "--to-latest", "--dry-run") == 1
    err = re.sub(r"\[[\d\-: ,]+\]", "[TIME]", capsys.readouterr().err)
    assert err == (
        "[TIME] ERROR [AdminClient clientId=adminclient-1] `DescribeShareGroups` request for group id  failed due to"
        " unexpected error INVALID_GROUP_ID (org.apache.kafka.clients.admin.internals.DescribeShareGroupsHandler)\n"
        "The group id is invalid.\n"
    )


def test_a_cluster_that_is_not_there(capsys: Captured) -> None:
    nobody = NoBrokerError("nobody answers")
    late = "org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node assignment. Call: "
    assert run(share_cluster(list_groups=nobody), "--delete", "--all-groups") == 0
    out, err = capsys.readouterr()
    assert out.endswith("KafkaException: Failed to find brokers to send ListGroups\n")
    assert err.endswith(f"Caused by: {late}findAllBrokers\n")
    admin = share_cluster(delete_share_group_offsets=nobody)
    assert run(admin, "--delete-offsets", "--group", "g", "--topic", "t") == 0
    call = "deleteShareGroupOffsets(api=FIND_COORDINATOR)"
    assert capsys.readouterr().out.startswith(f"\nError: Encounter some unknown error: {late}{call}\n")


def test_where_no_record_is_that_young_it_is_the_end(capsys: Captured) -> None:
    admin = share_cluster(share("g"))
    line = ("--reset-offsets", "--group", "g", "--topic", "orders:0", "--dry-run", "--to-datetime")
    assert run(admin, *line, "2030-01-01T00:00:00.000") == 0
    out = capsys.readouterr().out
    assert out.startswith("\nWarn: Partition 0 from topic orders is empty. Falling back to latest known offset.\n")
    assert out.endswith("g               orders          0          50\n")
    assert run(admin, *line, "x") == 0
    assert "java.text.ParseException: Error parsing timestamp." in capsys.readouterr().out
    assert not altered(admin)
