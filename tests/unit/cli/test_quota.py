"""`moldau quota`: tables, JSON, sentences and exit codes, against a scripted cluster."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import quota, quota_describe
from moldau.cli.quota_entities import entity_text, parse_value
from moldau.cli.quota_usage import Usage, parse_usage
from moldau.cli.root import root
from moldau.client.admin import ClusterDescription, ConfigEntry, QuotaEntity
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.facts import share_progress
from moldau.protocol.errors import INVALID_REQUEST
from tests.unit.cli.group_fakes import BROKER
from tests.unit.cli.kafka.fakes import FakeAdmin

SHARED_PAIR = "all clients with this user and client id"

Stored = dict[QuotaEntity, dict[str, float]]

PAGE = """# HELP kafka_server_produce_byte_rate Bytes a second
# TYPE kafka_server_produce_byte_rate gauge
kafka_server_produce_byte_rate{user="alice",client_id=""} 1500000.5
kafka_server_produce_throttle_time{user="alice",client_id=""} 220
kafka_server_fetch_byte_rate{user="CN%3Da%20b",client_id="an \\"odd\\\\one"} 0
kafka_server_fetch_throttle_time{user="CN%3Da%20b",client_id="an \\"odd\\\\one"} NaN
kafka_server_controllermutation_mutation_rate{user="",client_id="app"} 2
kafka_server_controllermutation_tokens{user="",client_id="app"} -3.5
kafka_server_produce_queue_size 1
moldau_quota_produce_limit{user="alice",client_id=""} 1000000
moldau_quota_produce_wait_ms{user="alice",client_id=""} 1800
kafka_server_brokertopicmetrics_bytesin_total{topic="t"} 5
something else entirely
"""


def entity(**parts: str | None) -> QuotaEntity:
    return QuotaEntity.of({kind.replace("_", "-"): name for kind, name in parts.items()})


def stored() -> Stored:
    return {
        entity(user="alice", client_id="app"): {"request_percentage": 12.5},
        entity(user="alice"): {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6},
        entity(user=None): {"producer_byte_rate": 500.0},
        entity(client_id="app"): {"producer_byte_rate": 9e6, "controller_mutation_rate": 5.0},
        entity(client_id=None): {"controller_mutation_rate": 1.0},
        entity(ip="10.0.0.7"): {"connection_creation_rate": 10.0},
        entity(ip=None): {"connection_creation_rate": 50.0},
    }


def fake(found: Stored | None = None, page: str | None = None, **more: Any) -> FakeAdmin:
    quotas = stored() if found is None else found

    def describe(filters: list[Any] = [], strict: bool = False) -> Stored:  # noqa: B006
        assert not strict
        return {
            each: values
            for each, values in quotas.items()
            if all(dict(each.parts).get(row.entity_type, "absent") == row.name for row in filters)
        }

    listener = ConfigEntry("moldau.metrics.listener", "127.0.0.1:9404", 4, False, True, [], None, None)
    return FakeAdmin(
        describe_client_quotas=describe,
        alter_client_quotas=lambda changes: {each: Outcome(None) for each in changes},
        describe_cluster=lambda *_: ClusterDescription("c", 1, [BROKER], set()),
        describe_configs=lambda resources, **_: {each: Outcome([listener] if page else []) for each in resources},
        **more,
    )


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str, page: str | None = None) -> Result:
    for module in (quota, quota_describe):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    monkeypatch.setattr(share_progress, "fetch_page", lambda host, port: page)
    return CliRunner().invoke(root, ["quota", *arguments, "-b", "h:1"])


def altered(admin: FakeAdmin) -> list[Mapping[QuotaEntity, dict[str, float | None]]]:
    return [arguments[0] for name, arguments, _ in admin.calls if name == "alter_client_quotas"]


# list


def test_quotas_are_listed_by_whom_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, fake(), "list").output.splitlines() == [
        "FOR                        QUOTA                       VALUE",
        "user alice                 producer_byte_rate        1000000  1.0 MB/s",
        "user alice                 consumer_byte_rate        2000000  2.0 MB/s",
        "default user               producer_byte_rate            500  500 B/s",
        "user alice, client id app  request_percentage           12.5  12.5 % of a thread",
        "client id app              producer_byte_rate        9000000  9.0 MB/s",
        "client id app              controller_mutation_rate        5  5 partitions/s",
        "default client id          controller_mutation_rate        1  1 partitions/s",
        "ip 10.0.0.7                connection_creation_rate       10  10 connections/s",
        "default ip                 connection_creation_rate       50  50 connections/s",
    ]


def test_those_of_one_user_are_listed_with_and_without_a_client_id(monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(run(monkeypatch, fake(), "list", "--user", "alice", "--format", "json").output)
    assert found == [
        {"user": "alice", "quotas": {"producer_byte_rate": 1e6, "consumer_byte_rate": 2e6}},
        {"user": "alice", "client_id": "app", "quotas": {"request_percentage": 12.5}},
    ]
    defaults = run(monkeypatch, fake(), "list", "--user-default", "--format", "json")
    assert json.loads(defaults.output) == [{"user": None, "quotas": {"producer_byte_rate": 500.0}}]


def test_no_quotas_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake({}), "list")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "There are no quotas yet.\n")


def test_usage_comes_from_the_pages_of_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = run(monkeypatch, fake(page=PAGE), "list", "--usage", page=PAGE).output.splitlines()
    assert [re.split(r"\s{2,}", line.strip()) for line in lines[-5:]] == [
        ["Throttled clients come first."],
        ["BROKER", "USER", "CLIENT ID", "QUOTA", "USES", "LIMIT", "WAITS", "THROTTLED"],
        ["1", "alice", "(all)", "producer_byte_rate", "1.5 MB/s", "1.0 MB/s", "1,800 ms", "220 ms"],
        ["1", "(all)", "app", "controller_mutation_rate", "2 partitions/s", "-", "-", "-"],
        ["1", "CN=a b", 'an "odd\\one', "consumer_byte_rate", "0 B/s", "-", "-", "-"],
    ]
    found = json.loads(
        run(monkeypatch, fake(page=PAGE), "list", "-u", "--user", "alice", "--format", "json", page=PAGE).output
    )
    assert [(row["user"], row["key"], row["throttle_ms"]) for row in found["usage"]] == [
        ("alice", "producer_byte_rate", 220.0),
        ("", "controller_mutation_rate", 0.0),
    ]


def test_a_broker_without_a_page_leaves_the_usage_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "moldau.metrics.listener" in run(monkeypatch, fake(), "list", "--usage").stderr
    found = json.loads(run(monkeypatch, fake(), "list", "--usage", "--format", "json").stdout)
    assert found["usage"] is None


def test_lines_that_are_something_else_are_passed_over() -> None:
    assert parse_usage(PAGE, 3) == [
        Usage(3, "", "app", "controller_mutation_rate", 2.0, 0.0, -3.5),
        Usage(3, "CN=a b", 'an "odd\\one', "consumer_byte_rate", 0.0, 0.0),
        Usage(3, "alice", "", "producer_byte_rate", 1500000.5, 220.0, None, 1e6, 1800.0),
    ]
    other = 'kafka_server_controller_mutation_throttle_time_ms{client-id="c",user="u"} 7 1700000000000'
    assert parse_usage(other, 1) == [Usage(1, "u", "c", "controller_mutation_rate", None, 7.0)]
    assert parse_usage('kafka_server_request_request_time{user="u"} x', 1) == []


# describe


def test_describe_says_what_holds_and_which_level_won(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "describe", "--user", "alice", "--client-id", "app")
    lines = [re.split(r"\s{2,}", line.strip()) for line in result.output.splitlines()]
    assert lines == [
        ["user alice, client id app"],
        [""],
        ["QUOTA", "LIMIT", "FROM", "SHARED BY", "USES NOW", "WAITS", "THROTTLED"],
        ["producer_byte_rate", "1.0 MB/s", "user alice", "all client ids of the user", "-", "-", "-"],
        ["500 B/s", "default user", "overridden"],
        ["9.0 MB/s", "client id app", "overridden"],
        ["consumer_byte_rate", "2.0 MB/s", "user alice", "all client ids of the user", "-", "-", "-"],
        ["request_percentage", "12.5 % of a thread", "user alice, client id app", SHARED_PAIR, "-", "-", "-"],
        ["controller_mutation_rate", "5 partitions/s", "client id app", "all users with the client id", "-", "-", "-"],
        ["1 partitions/s", "default client id", "overridden"],
        [""],
        ["A limit holds on each broker by itself."],
    ]
    found = json.loads(
        run(monkeypatch, fake(), "describe", "--user", "alice", "--client-id", "app", "--format", "json").output
    )["effective"]
    assert [(row["key"], row["value"], row["level"], row["from"]) for row in found] == [
        ("producer_byte_rate", 1e6, 3, {"user": "alice"}),
        ("consumer_byte_rate", 2e6, 3, {"user": "alice"}),
        ("request_percentage", 12.5, 1, {"user": "alice", "client_id": "app"}),
        ("controller_mutation_rate", 5.0, 7, {"client_id": "app"}),
    ]
    assert found[0]["overridden"] == [
        {"user": None, "value": 500.0},
        {"client_id": "app", "value": 9e6},
    ]
    assert (found[0]["budget_user"], found[0]["budget_client_id"]) == ("alice", "")


LEVELS = [
    {"user": "u", "client-id": "c"},
    {"user": "u", "client-id": None},
    {"user": "u"},
    {"user": None, "client-id": "c"},
    {"user": None, "client-id": None},
    {"user": None},
    {"client-id": "c"},
    {"client-id": None},
]


@pytest.mark.parametrize("level", range(1, 9))
def test_each_level_wins_over_those_behind_it(monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    present = {QuotaEntity.of(parts): {"producer_byte_rate": 100.0 + n} for n, parts in enumerate(LEVELS)}
    for parts in LEVELS[: level - 1]:
        del present[QuotaEntity.of(parts)]
    arguments = ("describe", "--user", "u", "--client-id", "c", "--format", "json")
    row = json.loads(run(monkeypatch, fake(present), *arguments).output)["effective"][0]
    assert (row["level"], row["value"]) == (level, 99.0 + level)
    assert [other["value"] for other in row["overridden"]] == [100.0 + n for n in range(level, 8)]


def test_a_client_without_a_quota_is_unlimited(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake({}), "describe", "--client-id", "app")
    assert result.output.startswith("user ANONYMOUS, client id app\n") and result.output.count("unlimited") == 4


def test_usage_of_the_budget_that_holds_is_shown_beside_it(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(page=PAGE), "describe", "--user", "alice", "--client-id", "app", page=PAGE)
    row = next(line for line in result.output.splitlines() if line.startswith("producer_byte_rate"))
    assert "1.5 MB/s" in row and row.endswith("220 ms")
    assert "A limit holds on each broker by itself." in result.output


def test_an_address_has_its_own_quota_or_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    own = json.loads(run(monkeypatch, fake(), "describe", "--ip", "10.0.0.7", "--format", "json").output)
    assert own["effective"] == [
        {
            "key": "connection_creation_rate",
            "value": 10.0,
            "level": None,
            "from": {"ip": "10.0.0.7"},
            "overridden": [{"ip": None, "value": 50.0}],
        }
    ]
    other = run(monkeypatch, fake(), "describe", "--ip", "10.0.0.8")
    assert "50 connections/s  default ip" in other.output


def test_describe_wants_to_know_for_whom(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "describe")
    assert result.exit_code == 2 and "--user, --client-id or --ip" in result.output


# set and remove


@pytest.mark.parametrize(
    ("flags", "whom"),
    [
        (["--user", "alice"], entity(user="alice")),
        (["--user-default"], entity(user=None)),
        (["--user", "a", "--client-id", "c"], entity(user="a", client_id="c")),
        (["--user", "a", "--client-default"], entity(user="a", client_id=None)),
        (["--user-default", "--client-id", "c"], entity(user=None, client_id="c")),
        (["--user-default", "--client-default"], entity(user=None, client_id=None)),
        (["--client-id", "c"], entity(client_id="c")),
        (["--client-default"], entity(client_id=None)),
    ],
)
def test_quotas_are_set_for_every_kind_of_entity(
    monkeypatch: pytest.MonkeyPatch, flags: list[str], whom: QuotaEntity
) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "set", *flags, "producer_byte_rate=10MB", "request-percentage=12.5")
    assert altered(admin) == [{whom: {"producer_byte_rate": 1e7, "request_percentage": 12.5}}]
    name = entity_text(dict(whom.parts))
    assert result.output.splitlines() == [
        f"Set producer_byte_rate of {name} to 10.0 MB/s.",
        f"Set request_percentage of {name} to 12.5 % of a thread.",
    ]


def test_quotas_of_addresses_are_set(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "set", "--ip", "10.0.0.7", "connection_creation_rate=5", "--format", "json")
    assert json.loads(result.output) == [{"ip": "10.0.0.7", "quotas": {"connection_creation_rate": 5.0}}]
    assert altered(admin) == [{entity(ip="10.0.0.7"): {"connection_creation_rate": 5.0}}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["producer_byte_rate=1"], "Say for whom"),
        (["--user", "a", "nope=1"], "There is no quota 'nope'"),
        (["--user", "a", "connection_creation_rate=1"], "a quota of addresses"),
        (["--ip", "::1", "producer_byte_rate=1"], "a quota of users and client ids"),
        (["--ip", "::1", "--user", "a", "producer_byte_rate=1"], "cannot be narrowed"),
        (["--user", "a", "--user-default", "producer_byte_rate=1"], "--user or --user-default, not both"),
        (["--client-id", "a", "--client-default", "producer_byte_rate=1"], "--client-id or --client-default"),
        (["--user", "a", "producer_byte_rate=fast"], "is no value of producer_byte_rate"),
        (["--user", "a", "request_percentage=5MB"], "is no value of request_percentage"),
        (["--user", "a", "producer_byte_rate=0"], "must be more than 0"),
        (["--user", "a", "producer_byte_rate"], "wants KEY=VALUE"),
        (["--user", "a", "producer_byte_rate=1", "producer-byte-rate=2"], "named twice"),
        (["--user", "", "producer_byte_rate=1"], "--user wants a name"),
    ],
)
def test_what_cannot_be_set_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str], sentence: str) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "set", *arguments)
    assert result.exit_code == 2 and sentence in result.output and not altered(admin)


def test_what_the_controller_says_against_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = error_for(INVALID_REQUEST, "nope.example is not a valid IP or resolvable host.")
    admin = fake()
    admin.answers["alter_client_quotas"] = lambda changes: {each: Outcome(error=refused) for each in changes}
    result = run(monkeypatch, admin, "set", "--ip", "nope.example", "connection_creation_rate=5")
    assert result.exit_code == 1 and result.stderr == "Error: nope.example is not a valid IP or resolvable host.\n"


def test_one_quota_or_all_of_an_entity_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "remove", "--user", "alice", "consumer_byte_rate")
    assert result.output == "Removed consumer_byte_rate of user alice.\n"
    run(monkeypatch, admin, "remove", "--user", "alice")
    assert altered(admin) == [
        {entity(user="alice"): {"consumer_byte_rate": None}},
        {entity(user="alice"): {"producer_byte_rate": None, "consumer_byte_rate": None}},
    ]


def test_a_quota_that_is_not_set_cannot_be_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "remove", "--user", "alice", "request_percentage")
    assert result.exit_code == 1 and "user alice has no request_percentage." in result.stderr
    result = run(monkeypatch, admin, "remove", "--user", "bob")
    assert result.exit_code == 1 and "user bob has no quotas." in result.stderr and not altered(admin)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1048576", 1048576), ("500k", 500_000), ("10MB", 1e7), ("1.5 GB/s", 1.5e9), ("2e6", 2e6), ("7b", 7)],
)
def test_rates_of_bytes_may_have_units(text: str, value: float) -> None:
    assert parse_value("consumer_byte_rate", text) == value
