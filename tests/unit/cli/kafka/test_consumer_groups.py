"""kafka-consumer-groups and kafka-groups: columns, sentences, streams and exit codes, against a scripted cluster."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.cli.kafka import consumer_groups, groups
from moldau.cli.kafka.frame import guard
from moldau.client.errors import NoBrokerError, error_for
from moldau.client.results import Outcome
from moldau.protocol import errors as codes
from tests.unit.cli.group_fakes import cluster, group, member, orders
from tests.unit.cli.kafka.fakes import FakeAdmin

Captured = pytest.CaptureFixture[str]
FAILED = "\nError: Executing consumer group command failed due to "
OFFSETS_HEAD = (
    "GROUP           TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     "
    "HOST            CLIENT-ID"
)


def run(admin: FakeAdmin, *arguments: str, main: Callable[..., int] = consumer_groups.main) -> int:
    return guard(lambda: main(["--bootstrap-server", "h:1", *arguments], connect=admin.connect))


def untimed(text: str) -> str:
    return re.sub(r"\[[\d\-: ,]+\]", "[TIME]", text)


def test_members_with_many_partitions_come_first_and_partitions_that_nobody_reads_last(capsys: Captured) -> None:
    members = [member("m-few", orders(3)), member("m-many", orders(1, 0)), member("m-none", [])]
    admin = cluster(group("g", members=members), committed=dict.fromkeys(orders(0, 2, 3), 20))
    assert run(admin, "--describe", "--group", "g") == 0
    out, err = capsys.readouterr()
    assert out == (
        f"\n{OFFSETS_HEAD}\n"
        "g               orders          0          20              50              30              m-many          "
        "/10.0.0.1       app\n"
        "g               orders          1          -               50              -               m-many          "
        "/10.0.0.1       app\n"
        "g               orders          3          20              50              30              m-few           "
        "/10.0.0.1       app\n"
        "g               orders          2          20              50              30              -               "
        "-               -\n"
    )
    assert not err


def test_a_partition_without_a_leader_has_no_end(capsys: Captured) -> None:
    admin = cluster(group("g", "Empty"), committed=dict.fromkeys(orders(0, 1), 20), leaderless=[1])
    assert run(admin, "--describe", "--group", "g", "--verbose") == 0
    out, err = capsys.readouterr()
    assert [line.split()[2:7] for line in out.splitlines()[2:]] == [
        ["0", "3", "20", "50", "30"],
        ["1", "3", "20", "-", "-"],
    ]
    assert err == "\nConsumer group 'g' has no active members.\n"
    assert [set(call[1][0]) for call in admin.calls if call[0] == "list_offsets"] == [set(orders(0))]


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"])
def test_a_group_that_rebalances_is_warned_of_on_the_error_output(state: str, capsys: Captured) -> None:
    assert run(cluster(group("g", state)), "--describe", "--group", "g", "--state") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-1].split()[-2:] == [state, "0"]
    assert err == "\nWarning: Consumer group 'g' is rebalancing.\n"


def test_a_dead_group_does_not_exist(capsys: Captured) -> None:
    assert run(cluster(group("g", "Dead")), "--describe", "--group", "g") == 0
    assert capsys.readouterr() == ("\nError: Consumer group 'g' does not exist.\n", "")


def test_a_state_that_nobody_knows_is_an_error(capsys: Captured) -> None:
    assert run(cluster(group("g", "Dancing")), "--describe", "--group", "g", "--state") == 0
    sentence = "Expected a valid consumer group state, but found 'Unknown'."
    assert capsys.readouterr() == (f"{FAILED}{sentence}\n", f"org.apache.kafka.common.KafkaException: {sentence}\n")


def test_a_group_between_two_protocols_shows_who_is_upgraded(capsys: Captured) -> None:
    members = [
        member("old", orders(0), upgraded=False, epoch=4, target=orders(0)),
        member("new", orders(), upgraded=True, epoch=4, target=orders(1, 2), instance="static"),
    ]
    admin = cluster(group("g", "Reconciling", members, "consumer", "uniform", 5))
    assert run(admin, "--describe", "--group", "g", "--members", "--verbose") == 0
    assert capsys.readouterr().out == (
        "\nGROUP           CONSUMER-ID     GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     "
        "CURRENT-EPOCH   CURRENT-ASSIGNMENT   TARGET-EPOCH    TARGET-ASSIGNMENT    UPGRADED\n"
        "g               old                               /10.0.0.1       app             1               "
        "4               orders:0             5               orders:0             false\n"
        "g               new             static            /10.0.0.1       app             0               "
        "4               -                    5               orders:1,2           true\n"
    )


def test_a_wide_name_counts_as_java_counts_it(capsys: Captured) -> None:
    """A character outside the first plane is two units of Java's strings."""
    assert run(cluster(group("gr\N{GRINNING FACE}p", "Stable")), "--list", "--state") == 0
    assert capsys.readouterr().out.splitlines()[1] == "gr\N{GRINNING FACE}p" + " " * 20 + " Stable              "


def test_no_group_is_described_when_one_is_missing(capsys: Captured) -> None:
    assert run(cluster(group("g")), "--describe", "--group", "g", "--group", "nope", "--state") == 0
    out, err = capsys.readouterr()
    cause = "org.apache.kafka.common.errors.GroupIdNotFoundException: Group nope not found."
    assert out == f"{FAILED}{cause}\n"
    assert err == f"java.util.concurrent.ExecutionException: {cause}\nCaused by: {cause}\n"


def test_a_group_of_another_protocol_is_named_as_that(capsys: Captured) -> None:
    error = error_for(codes.GROUP_ID_NOT_FOUND, "Group w is not of consumers but of the protocol connect.")
    admin = cluster(describe_consumer_groups={"w": Outcome(error=error)})
    assert run(admin, "--describe", "--group", "w") == 0
    assert "IllegalArgumentException: GroupId w is not a consumer group (connect)." in capsys.readouterr().out


def test_who_may_not_see_a_group_is_told_so(capsys: Captured) -> None:
    refused = Outcome[object](error=error_for(codes.GROUP_AUTHORIZATION_FAILED))
    admin = cluster(describe_consumer_groups={"g2": refused}, delete_consumer_groups={"g2": refused})
    assert run(admin, "--describe", "--group", "g2") == 0
    kind = "org.apache.kafka.common.errors.GroupAuthorizationException: "
    assert capsys.readouterr().out == (
        f"{FAILED}{kind}FindCoordinator request for groupId `CoordinatorKey(idValue='g2', type=GROUP)` failed due to"
        " authorization failure\n"
    )
    assert run(admin, "--delete", "--group", "g2") == 0
    assert capsys.readouterr().out.endswith(f"due to: {kind}Group authorization failed.\n")


def test_nobody_there(capsys: Captured) -> None:
    admin = cluster(list_consumer_groups=NoBrokerError("gone"), delete_consumer_groups=NoBrokerError("gone"))
    assert run(admin, "--list") == 0
    lost = "org.apache.kafka.common.KafkaException: Failed to find brokers to send ListGroups"
    assert capsys.readouterr().out == f"{FAILED}java.util.concurrent.ExecutionException: {lost}\n"
    assert run(admin, "--delete", "--group", "g") == 0
    assert capsys.readouterr().out.endswith(
        "* Group 'g' could not be deleted due to: org.apache.kafka.common.errors.TimeoutException: "
        "Timed out waiting for a node assignment. Call: deleteConsumerGroups(api=FIND_COORDINATOR)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--list", "--state", "bogus"), 1, "Invalid state list 'bogus'. Valid states are: "),
        (("--list", "--type", "classic,bogus"), 1, "Invalid types list 'classic,bogus'. Valid types are: "),
        (("--members", "--list"), 1, "Option(s) [members] are unavailable given other options on the command line"),
        (("--list", "--delete", "--group", "g"), 1, 'Option "[group]" can\'t be used with option "[list]"'),
        (("--group", "g"), 1, "Command must include exactly one action: --list, --describe, --delete, "),
        (("--reset-offsets", "--group", "g", "--dry-run"), 1, "One of the reset scopes should be defined"),
        (("--reset-offsets", "--group", "g", "--topic", "orders", "--dry-run"), 1, "requires one of the following sc"),
        (("--reset-offsets", "--group", "g", "--topic", "a:b:c", "--to-latest"), 1, "Invalid topic arg 'a:b:c'"),
        (("--reset-offsets", "--group", "g", "--topic", "a:x", "--to-latest"), 1, "Invalid partition 'x' specified"),
        (
            ("--reset-offsets", "--group", "g", "--topic", "orders", "--shift-by", "1"),
            1,
            "Cannot shift offset for part",
        ),
        (("--list", "--timeout", "soon"), 0, "Cannot parse argument 'soon' of option timeout"),
        (
            ("--reset-offsets", "--group", "g", "--topic", "nope", "--to-latest"),
            0,
            "does not host this topic-partition",
        ),
        (("--reset-offsets", "--group", "g", "--topic", "orders:9", "--to-latest"), 0, 'partitions "orders-9" do not'),
        (("--reset-offsets", "--group", "g", "--from-file", "nope.csv"), 0, "Unable to read file nope.csv"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], code: int, said: str, capsys: Captured) -> None:
    """Usage errors end with 1 and list the options; everything else ends with 0, as scripts know it."""
    assert run(cluster(group("g", "Empty")), *arguments) == code
    out, err = capsys.readouterr()
    assert said in err
    assert out == "" if code else out.startswith(FAILED)


def test_a_reset_is_only_shown_unless_it_is_to_be_executed(capsys: Captured) -> None:
    admin = cluster(group("g", "Empty"), committed=dict.fromkeys(orders(0, 1), 20))
    assert run(admin, "--reset-offsets", "--group", "g", "--all-topics", "--to-offset", "60") == 0
    out, err = capsys.readouterr()
    table = "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n"
    table += "g               orders          0          50\ng               orders          1          50\n"
    assert out == table
    assert err.startswith("WARN: No action will be performed as the --execute option is missing.")
    moved = "[TIME] WARN New offset (60) is higher than latest offset for topic partition orders-{}. Value will be set"
    moved += " to 50 (org.apache.kafka.tools.OffsetsUtils)\n"
    assert untimed(err).endswith(moved.format(0) + moved.format(1))
    assert "alter_consumer_group_offsets" not in [call[0] for call in admin.calls]
    assert run(admin, "--reset-offsets", "--group", "g", "--all-topics", "--to-offset", "60", "--execute") == 0
    assert capsys.readouterr().out == table
    assert admin.calls[-1][1][:2] == ("g", dict.fromkeys(orders(0, 1), 50))


def test_partitions_without_records_that_young_go_to_their_end(capsys: Captured) -> None:
    admin = cluster(group("g", "Empty"))
    line = ["--reset-offsets", "--group", "g", "--topic", "orders:0", "--dry-run", "--to-datetime"]
    assert run(admin, *line, "1970-01-01T00:16:40.005") == 0
    assert capsys.readouterr().out.endswith("g               orders          0          15\n")
    assert run(admin, *line, "2030-01-01T00:00:00.000+02:00") == 0
    assert capsys.readouterr().out == (
        "\nWarn: Partition 0 from topic orders is empty. Falling back to latest known offset.\n"
        "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\ng               orders          0          50\n"
    )


def test_a_group_in_use_is_left_alone(capsys: Captured) -> None:
    admin = cluster(group("g", members=[member("m", orders(0))]))
    assert run(admin, "--reset-offsets", "--group", "g", "--topic", "orders", "--to-latest", "--execute") == 0
    assert capsys.readouterr().out == (
        "\nError: Assignments can only be reset if the group 'g' is inactive, but the current state is Stable.\n"
        "\nGROUP           TOPIC           PARTITION  NEW-OFFSET\n"
    )


def test_offsets_that_the_coordinator_does_not_take(capsys: Captured) -> None:
    refused = {each: Outcome[None](error=error_for(codes.UNKNOWN_MEMBER_ID)) for each in orders(0)}
    admin = cluster(group("g", "Empty"), alter_consumer_group_offsets=refused)
    assert run(admin, "--reset-offsets", "--group", "g", "--topic", "orders:0", "--to-latest", "--execute") == 0
    sentence = "Failed altering group offsets for the following partitions: [orders-0]"
    assert capsys.readouterr() == (
        f"{FAILED}{sentence}\n",
        f"org.apache.kafka.common.errors.UnknownMemberIdException: {sentence}\n",
    )


def test_an_export_can_be_read_back(tmp_path: Path, capsys: Captured) -> None:
    """With the group in each line where there are several; texts are quoted where they might be misread."""
    names = ("plain", "with, comma", "a-name-of-more-than-24-letters")
    admin = cluster(*(group(name, "Empty") for name in names), committed=dict.fromkeys(orders(1), 20))
    chosen = [word for name in names for word in ("--group", name)]
    assert run(admin, "--reset-offsets", *chosen, "--all-topics", "--to-earliest", "--dry-run", "--export") == 0
    exported = capsys.readouterr().out
    assert sorted(exported.splitlines()) == [
        "",
        '"a-name-of-more-than-24-letters",orders,1,10',
        '"with, comma",orders,1,10',
        "plain,orders,1,10",
    ]
    plan = tmp_path / "plan.csv"
    plan.write_text(exported.rstrip("\n"))
    assert run(admin, "--reset-offsets", *chosen, "--from-file", str(plan), "--execute") == 0
    altered = {call[1][0]: call[1][1] for call in admin.calls if call[0] == "alter_consumer_group_offsets"}
    assert altered == dict.fromkeys(names, dict.fromkeys(orders(1), 10))


def test_deletions_and_what_is_in_their_way(capsys: Captured) -> None:
    admin = cluster(group("g", "Empty"), group("busy", members=[member("m", [])]))
    assert run(admin, "--delete", "--group", "g", "--group", "busy", "--group", "nope") == 0
    assert capsys.readouterr().out == (
        "\nError: Deletion of some consumer groups failed:\n"
        "* Group 'nope' could not be deleted due to: org.apache.kafka.common.errors.GroupIdNotFoundException: "
        "The group id does not exist.\n"
        "* Group 'busy' could not be deleted due to: org.apache.kafka.common.errors.GroupNotEmptyException: "
        "The group is not empty.\n"
        "\nThese consumer groups were deleted successfully: 'g'\n"
    )


def test_offsets_of_a_topic_that_is_read_cannot_be_deleted(capsys: Captured) -> None:
    subscribed = Outcome[None](error=error_for(codes.GROUP_SUBSCRIBED_TO_TOPIC))
    admin = cluster(delete_consumer_group_offsets=lambda *_: {orders(2)[0]: Outcome(None), orders(10)[0]: subscribed})
    assert run(admin, "--delete-offsets", "--group", "g", "--topic", "orders:2,10") == 0
    out = capsys.readouterr().out
    assert out.startswith("\nError: Encountered some partition-level error, see the follow-up details.\n\nTOPIC")
    assert [line.split()[:3] for line in out.splitlines()[4:]] == [
        ["orders", "10", "Error:"],
        ["orders", "2", "Successful"],
    ]


def test_kafka_groups_shows_the_kinds_that_are_asked_for(capsys: Captured) -> None:
    admin = cluster(group("a"), group("b", type="consumer"), group("c", type="share"), group("d", type="future"))
    assert run(admin, "--list", "--group-type", "Share", main=groups.main) == 0
    assert capsys.readouterr().out == (
        "GROUP                TYPE                 PROTOCOL            \n"
        "c                    Share                consumer             \n"
    )
    assert run(admin, "--list", main=groups.main) == 0
    assert [line.split()[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["a", "Classic"],
        ["b", "Consumer"],
        ["c", "Share"],
        ["d", "Unknown"],
    ]
    assert run(admin, "--list", "--share", "--consumer", main=groups.main) == 1
    assert capsys.readouterr().err.startswith('Option "[consumer]" can\'t be used with option "[share]"\n')
