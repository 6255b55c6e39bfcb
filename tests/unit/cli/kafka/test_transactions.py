"""kafka-transactions and `moldau txn`: what is shown, which transactions hang, what is aborted."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from click.testing import CliRunner

from moldau.cli.kafka.options import Exit
from moldau.cli.kafka.transactions import main
from moldau.cli.root import root
from moldau.client.admin.routing import Listing
from moldau.client.admin.transactions import (
    AbortTransaction,
    HangingTransaction,
    ProducerState,
    TransactionAdmin,
    TransactionDescription,
    TransactionListing,
)
from moldau.client.errors import error_for
from moldau.client.results import Outcome, TopicPartition
from moldau.protocol import errors as codes
from tests.unit.cli.kafka.fakes import FakeAdmin

P0 = TopicPartition("txn", 0)
OPEN = ProducerState(1001, 2, 0, 1_700_000_002_000, 0, 7)
DONE = ProducerState(1002, 3, -1, 1_700_000_002_000, None, None)
KNOWN = TransactionDescription(3, "Ongoing", 1001, 2, 60_000, None, [P0])
HOME = ["--bootstrap-server", "b:1"]


def run(admin: FakeAdmin, *arguments: str) -> int:
    return main([*HOME, *arguments], cast("Any", admin.connect))


def test_lists_end_with_a_tab_behind_each_cell(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(list_transactions=Listing([TransactionListing("txn-a", 1001, "Ongoing", 3)], {}))
    assert run(admin, "list", "--duration-filter", "5", "--transactional-id-pattern", "t.*") == 0
    assert capsys.readouterr().out == (
        "TransactionalId\tCoordinator\tProducerId\tTransactionState\t\n"
        "txn-a          \t3          \t1001      \tOngoing         \t\n"
    )
    assert admin.calls == [("list_transactions", (), {"running_longer_than_ms": 5, "transactional_id_pattern": "t.*"})]


def test_describe_shows_what_is_not_there_as_none(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(describe_transactions={"txn-a": Outcome(KNOWN._replace(state="Empty", partitions=[]))})
    assert run(admin, "describe", "--transactional-id", "txn-a") == 0
    assert capsys.readouterr().out.splitlines()[1] == (
        "3            \ttxn-a          \t1001      \t2            \tEmpty           \t60000               \t"
        "None                         \tNone                 \t               \t"
    )


def test_describe_of_an_unknown_id_fails(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(describe_transactions={"nope": Outcome(error=error_for(codes.TRANSACTIONAL_ID_NOT_FOUND))})
    assert run(admin, "describe", "--transactional-id", "nope") == 1
    assert capsys.readouterr().err == (
        "Failed to describe transaction state of transactional-id `nope`: DescribeTransactions request for"
        " transactionalId `nope` failed because the ID could not be found."
        " Enable debug logging for additional detail.\n"
    )


def test_producers(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(describe_producers={P0: Outcome([OPEN, DONE])})
    assert run(admin, "describe-producers", "--topic", "txn", "--partition", "0") == 0
    first = "1001      \t2            \t0                     \t0           \t1700000002000\t"
    second = "1002      \t3            \t-1                    \t-1          \t1700000002000\t"
    none = "None                         \t"
    assert capsys.readouterr().out.splitlines()[1:] == [f"{first}7                            \t", second + none]


def test_abort_needs_to_know_which_one(capsys: pytest.CaptureFixture[str]) -> None:
    admin = FakeAdmin(describe_producers={P0: Outcome([OPEN, DONE])}, abort_transaction=None)
    where = ["abort", "--topic", "txn", "--partition", "0"]
    assert run(admin, *where, "--start-offset", "99") == 1
    assert capsys.readouterr().err == (
        "Could not find any open transactions starting at offset 99 on partition txn-0\n"
    )
    assert run(admin, *where, "--producer-id", "5") == 1
    assert "must be identified either with --start-offset" in capsys.readouterr().err
    assert run(admin, *where, "--start-offset", "7") == 0
    assert run(admin, *where, "--producer-id", "5", "--producer-epoch", "1", "--coordinator-epoch", "-1") == 0
    aborted = [call[1][0] for call in admin.calls if call[0] == "abort_transaction"]
    assert aborted == [AbortTransaction(P0, 1001, 2, 0), AbortTransaction(P0, 5, 1, 0)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "requires either --topic or --broker-id to limit the scope of the search"),
        (["--partition", "0"], "requires either --topic or --broker-id to limit the scope of the search"),
        (["--partition", "0", "--broker-id", "1"], "The --partition argument requires --topic to be provided"),
    ],
)
def test_a_search_for_hanging_ones_has_a_limit(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(FakeAdmin(), "find-hanging", *arguments) == 1
    assert sentence in capsys.readouterr().err


def test_usage_has_the_words_of_the_real_tool() -> None:
    with pytest.raises(Exit) as ended:
        main(["--bootstrap-server", "b:1", "describe"])
    assert "kafka-transactions.sh: error: argument --transactional-id is required" in ended.value.message
    with pytest.raises(Exit) as ended:
        main([])
    assert "--bootstrap-server host:port COMMAND ..." in ended.value.message


class Asked(TransactionAdmin):
    """Only the questions of find_hanging_transactions(), with answers laid down."""

    def __init__(self, listed: list[TransactionListing], described: dict[str, Any], errors: dict[int, Any]) -> None:
        self.listed, self.described, self.errors = listed, described, errors

    def describe_producers(self, *_: Any, **__: Any) -> Any:
        return {P0: Outcome([OPEN, DONE])}

    def list_transactions(self, *_: Any, **__: Any) -> Any:
        return Listing(self.listed, self.errors)

    def describe_transactions(self, *_: Any, **__: Any) -> Any:
        return self.described


ELSEWHERE = KNOWN._replace(partitions=[TopicPartition("txn", 1)])
LISTED = [TransactionListing("txn-a", 1001, "Ongoing", 3)]


@pytest.mark.parametrize(
    ("listed", "described", "hangs"),
    [
        ([], {}, True),
        (LISTED, {"txn-a": Outcome(KNOWN)}, False),
        (LISTED, {"txn-a": Outcome(ELSEWHERE)}, True),
        (LISTED, {"txn-a": Outcome(error=error_for(codes.TRANSACTIONAL_ID_NOT_FOUND))}, True),
    ],
)
def test_what_no_coordinator_knows_hangs(listed: list[Any], described: dict[str, Any], hangs: bool) -> None:
    admin = Asked(listed, described, {})
    found = admin.find_hanging_transactions([P0], 1000, OPEN.last_timestamp + 1001)
    assert found == ([HangingTransaction(P0, OPEN)] if hangs else [])
    assert not admin.find_hanging_transactions([P0], 1001, OPEN.last_timestamp + 1001), "it is too young"


def test_nothing_hangs_while_a_coordinator_was_not_heard() -> None:
    admin = Asked([], {}, {2: error_for(codes.COORDINATOR_LOAD_IN_PROGRESS)})
    with pytest.raises(Exception, match="load"):
        admin.find_hanging_transactions([P0], 0, OPEN.last_timestamp + 1)


def own(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str) -> Any:
    monkeypatch.setattr("moldau.cli.txn.open_admin", lambda *_: admin)
    return CliRunner().invoke(root, ["txn", *arguments], prog_name="moldau")


def test_own_commands_for_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = FakeAdmin(
        list_transactions=Listing(LISTED, {}),
        describe_transactions={"txn-a": Outcome(KNOWN)},
        describe_producers={P0: Outcome([OPEN])},
        find_hanging_transactions=[HangingTransaction(P0, OPEN)],
        partitions_of=[P0],
        abort_transaction=None,
        force_terminate_transaction=None,
    )
    listed = json.loads(own(monkeypatch, admin, "list", "--format", "json").stdout)
    assert listed == [{"transactional_id": "txn-a", "state": "Ongoing", "producer_id": 1001, "coordinator": 3}]
    described = json.loads(own(monkeypatch, admin, "describe", "txn-a", "--format", "json").stdout)
    assert described[0]["partitions"] == ["txn-0"] and described[0]["timeout_ms"] == 60_000
    producers = json.loads(own(monkeypatch, admin, "describe", "--partitions", "txn:0", "--format", "json").stdout)
    hanging = json.loads(own(monkeypatch, admin, "find-hanging", "txn", "--format", "json").stdout)
    assert producers == hanging and hanging[0]["transaction_start_offset"] == 7
    aborted = own(monkeypatch, admin, "abort", "txn:0", "--start-offset", "7")
    assert aborted.exit_code == 0 and "txn-0 is aborted" in aborted.output
    assert ("abort_transaction", (AbortTransaction(P0, 1001, 2, 0),), {}) in admin.calls
    assert own(monkeypatch, admin, "abort", "txn:0", "--start-offset", "8").exit_code != 0
    forced = own(monkeypatch, admin, "abort", "txn-a")
    assert forced.exit_code == 0 and ("force_terminate_transaction", ("txn-a",), {}) in admin.calls


def test_an_unknown_id_is_not_created_by_fencing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: dict[str, Outcome[TransactionDescription]] = {
        "nope": Outcome(error=error_for(codes.TRANSACTIONAL_ID_NOT_FOUND))
    }
    admin = FakeAdmin(describe_transactions=refused, force_terminate_transaction=None)
    assert own(monkeypatch, admin, "abort", "nope").exit_code != 0
    assert [call[0] for call in admin.calls] == ["describe_transactions"]
