"""`moldau acl`: what is created, found and deleted, and which entry decides, against a scripted cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import acl, acl_decision
from moldau.cli.root import root
from moldau.client.admin import (
    AclBinding,
    AclOperation,
    AclPermission,
    ClusterDescription,
    ConfigEntry,
    PatternType,
    ResourceType,
)
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol.errors import CLUSTER_AUTHORIZATION_FAILED, INVALID_REQUEST, SECURITY_DISABLED
from tests.unit.cli.acl_fakes import AclAdmin
from tests.unit.cli.group_fakes import BROKER


def entry(
    principal: str,
    operation: AclOperation,
    name: str = "orders",
    permission: AclPermission = AclPermission.ALLOW,
    host: str = "*",
    pattern: PatternType = PatternType.LITERAL,
    kind: ResourceType = ResourceType.TOPIC,
) -> AclBinding:
    return AclBinding(kind, name, principal, operation, permission, host, pattern)


ANNA_READS = entry("User:anna", AclOperation.READ)
ANNA_WRITES = entry("User:anna", AclOperation.WRITE, "sales-", pattern=PatternType.PREFIXED)
BOB_DENIED = entry("User:bob", AclOperation.ALL, permission=AclPermission.DENY, host="10.0.0.7")
ALL_DESCRIBE = entry("User:*", AclOperation.DESCRIBE, "*")
ALTERS = entry("User:ops", AclOperation.ALTER, "kafka-cluster", kind=ResourceType.CLUSTER)
EVERY = [ANNA_READS, ANNA_WRITES, BOB_DENIED, ALL_DESCRIBE, ALTERS]


def fake(*bindings: AclBinding, configs: dict[str, str | None] | None = None, **more: Any) -> AclAdmin:
    """configs: what DescribeConfigs tells; None for a value that is kept secret."""
    rows = [ConfigEntry(name, value, 4, True, value is None, [], None) for name, value in (configs or {}).items()]
    answers = {
        "describe_cluster": lambda *_: ClusterDescription("c", 1, [BROKER], set()),
        "describe_configs": lambda resources, **_: {each: Outcome(rows) for each in resources},
    }
    return AclAdmin(bindings or EVERY, **(answers | more))


def run(monkeypatch: pytest.MonkeyPatch, admin: AclAdmin, *arguments: str, answer: str = "") -> Result:
    for module in (acl, acl_decision):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    return CliRunner().invoke(root, ["acl", *arguments, "-b", "h:1"], input=answer)


# list


def test_entries_are_listed_by_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, fake(), "list").output.splitlines() == [
        "PRINCIPAL  PERMISSION  OPERATION  RESOURCE                      FROM",
        "User:*     allow       describe   all topics                    any address",
        "User:anna  allow       read       topic orders                  any address",
        "User:anna  allow       write      topics beginning with sales-  any address",
        "User:bob   deny        all        topic orders                  10.0.0.7",
        "User:ops   allow       alter      the cluster                   any address",
    ]


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["topic"], EVERY[:4]),
        (["topic", "orders"], [ANNA_READS, BOB_DENIED]),
        (["topic", "orders", "--applying"], [ANNA_READS, BOB_DENIED, ALL_DESCRIBE]),
        (["topic", "sales-9", "--applying"], [ANNA_WRITES, ALL_DESCRIBE]),
        (["topic", "sales-"], []),
        (["topic", "sales-", "--prefix"], [ANNA_WRITES]),
        (["topic", "*"], [ALL_DESCRIBE]),
        (["cluster"], [ALTERS]),
        (["--principal", "User:anna", "--operation", "Write"], [ANNA_WRITES]),
        (["--deny"], [BOB_DENIED]),
        (["--allow", "--principal", "User:bob"], []),
        (["--host", "10.0.0.7"], [BOB_DENIED]),
    ],
)
def test_some_are_listed(monkeypatch: pytest.MonkeyPatch, arguments: list[str], found: list[AclBinding]) -> None:
    result = run(monkeypatch, fake(), "list", *arguments, "--format", "json")
    rows = json.loads(result.output)
    assert {(row["principal"], row["operation"], row["resource_name"]) for row in rows} == {
        (each.principal, each.operation.name, each.resource_name) for each in found
    }


def test_an_entry_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "list", "topic", "sales-", "--prefix", "--format", "json")
    assert json.loads(result.output) == [
        {
            "principal": "User:anna",
            "permission": "ALLOW",
            "operation": "WRITE",
            "resource_type": "TOPIC",
            "resource_name": "sales-",
            "pattern_type": "PREFIXED",
            "host": "*",
        }
    ]


def test_no_entries_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "list", "group")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no such entries" in result.stderr


# create


def test_entries_are_created_for_each_operation_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = AclAdmin()
    words = ["User:etl", "read,AlterConfigs", "topic", "sales-", "--prefix", "--host", "10.0.0.1", "--host", "::1"]
    result = run(monkeypatch, admin, "create", *words)
    assert result.exit_code == 0
    assert "User:etl may alter-configs topics beginning with sales- from 10.0.0.1." in result.output
    assert {(each.operation.name, each.host, each.pattern_type.name) for each in admin.bindings} == {
        (operation, host, "PREFIXED")
        for operation in ("READ", "ALTER_CONFIGS")
        for host in ("10.0.0.1", "0:0:0:0:0:0:0:1")  # as brokers write it
    }


def test_something_is_denied(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = AclAdmin()
    result = run(monkeypatch, admin, "create", "User:bob", "all", "topic", "*", "--deny")
    assert result.output == "User:bob may not do everything with all topics from any address.\n"
    assert admin.bindings == [entry("User:bob", AclOperation.ALL, "*", AclPermission.DENY)]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["anna", "read", "topic", "t"], "Did you mean User:anna?"),
        (["User:", "read", "topic", "t"], "not 'User:'"),
        (["User:a", "reed", "topic", "t"], "There is no operation 'reed'"),
        (["User:a", "write", "group", "g"], "Nobody can write a group"),
        (["User:a", "read", "topic"], "Say which topic"),
        (["User:a", "read", "topic", "orders-*"], "--prefix orders-"),
        (["User:a", "read", "topic", "orders-*", "--prefix"], "without a star: --prefix orders-"),
        (["User:a", "read", "topic", "*", "--prefix"], "'*' without --prefix"),
        (["User:a", "alter", "cluster", "mine"], "There is one cluster only"),
        (["User:a", "alter", "cluster", "--prefix"], "There is one cluster only"),
        (["User:a", "read", "topic", "t", "--host", "localhost"], "Brokers compare addresses"),
        (["User:a", "read", "topic", "t", "--literal", "--prefix"], "opposites"),
        (["User:a", "read", "toppic", "t"], "toppic"),
    ],
)
def test_what_could_be_misunderstood_is_refused(
    monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    admin = AclAdmin()
    result = run(monkeypatch, admin, "create", *words)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert admin.calls == []


def test_a_name_may_end_with_a_star(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = AclAdmin()
    assert run(monkeypatch, admin, "create", "User:a", "read", "group", "g*", "--literal").exit_code == 0
    assert admin.bindings == [entry("User:a", AclOperation.READ, "g*", kind=ResourceType.GROUP)]


def test_a_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = error_for(INVALID_REQUEST, "No such thing.")
    admin = AclAdmin(create_acls=lambda bindings: {each: Outcome(None, refused) for each in bindings})
    result = run(monkeypatch, admin, "create", "User:a", "read", "topic", "t", "--format", "json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)[0]["error"] == "INVALID_REQUEST"
    assert "No such thing." in result.stderr


# delete


def test_what_will_be_deleted_is_shown_before(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "delete", "--principal", "User:anna", answer="n\n")
    assert result.exit_code == 1
    assert "topic orders" in result.stdout
    assert "Delete these 2 entries?" in result.stdout
    assert admin.bindings == EVERY
    result = run(monkeypatch, admin, "delete", "--principal", "User:anna", answer="y\n")
    assert result.exit_code == 0
    assert result.stdout.endswith("Deleted 2 entries.\n")
    assert admin.bindings == EVERY[2:]


def test_exactly_what_was_shown_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    """An entry that comes between the question and the answer stays."""
    admin = fake()
    newer = entry("User:anna", AclOperation.DELETE)
    describe = admin.answers["describe_acls"]

    def describe_and_add(wanted: Any) -> list[AclBinding]:
        found: list[AclBinding] = describe(wanted)
        admin.bindings.append(newer)
        return found

    admin.answers["describe_acls"] = describe_and_add
    assert run(monkeypatch, admin, "delete", "--principal", "User:anna", "--yes").exit_code == 0
    assert admin.bindings == [*EVERY[2:], newer]


def test_nothing_to_delete_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "delete", "--principal", "User:nobody", "--yes")
    assert result.exit_code == 1
    assert "There are no such entries" in result.stderr


def test_everything_is_never_deleted_by_omission(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    assert run(monkeypatch, admin, "delete", "--yes").exit_code == 2
    assert run(monkeypatch, admin, "delete", "--principal", "User:anna", "--format", "json").exit_code == 2
    assert admin.bindings == EVERY
    result = run(monkeypatch, admin, "delete", "cluster", "--yes", "--format", "json")
    assert [row["deleted"] for row in json.loads(result.output)] == [True]


# test


def decided(monkeypatch: pytest.MonkeyPatch, admin: AclAdmin, *words: str) -> tuple[int, dict[str, Any]]:
    result = run(monkeypatch, admin, "test", *words, "--format", "json")
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize(
    ("words", "code", "by", "acl_operation"),
    [
        (["User:anna", "read", "topic", "orders"], 0, "acl", "READ"),
        (["User:anna", "describe", "topic", "orders"], 0, "acl", "READ"),  # who may read may describe
        (["User:anna", "write", "topic", "orders"], 1, "no_matching_acl", None),
        (["User:anna", "write", "topic", "sales-2026"], 0, "acl", "WRITE"),
        (["User:x", "describe", "topic", "anything"], 0, "acl", "DESCRIBE"),
        (["User:bob", "describe", "topic", "orders"], 0, "acl", "DESCRIBE"),
        (["User:bob", "describe", "topic", "orders", "--host", "10.0.0.7"], 1, "acl", "ALL"),
        (["User:ops", "alter", "cluster"], 0, "acl", "ALTER"),
        (["User:anna", "read", "group", "g"], 1, "no_acl", None),
    ],
)
def test_an_entry_decides(
    monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, by: str, acl_operation: str | None
) -> None:
    found_code, answer = decided(monkeypatch, fake(), *words)
    assert (found_code, answer["allowed"], answer["decided_by"]) == (code, code == 0, by)
    assert (answer["acl"] and answer["acl"]["operation"]) == acl_operation


def test_the_deciding_entry_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "test", "User:bob", "read", "topic", "orders", "--host", "10.0.0.7")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "User:bob may not read topic orders from 10.0.0.7.",
        "  Allowed  no",
        "  Because  User:bob may not do everything with topic orders from 10.0.0.7.",
    ]


def test_entries_for_single_addresses_are_pointed_at(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "--host ADDRESS" in run(monkeypatch, fake(), "test", "User:bob", "read", "topic", "orders").stderr
    assert "--host" not in run(monkeypatch, fake(), "test", "User:anna", "read", "topic", "orders").stderr


def test_a_denial_for_a_single_address_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the answer is yes from elsewhere, scripts and people see from where it is no."""
    code, answer = decided(monkeypatch, fake(), "User:bob", "describe", "topic", "orders")
    assert (code, answer["allowed"]) == (0, True)
    (other,) = answer["single_addresses"]
    assert (other["host"], other["allowed"], other["decided_by"]) == ("10.0.0.7", False, "acl")
    assert other["acl"]["permission"] == "DENY"
    shown = run(monkeypatch, fake(), "test", "User:bob", "describe", "topic", "orders").stderr
    assert "From 10.0.0.7 it is denied: User:bob may not do everything with topic orders from 10.0.0.7." in shown
    for words in (["User:anna", "read", "topic", "orders"], ["User:bob", "read", "topic", "orders", "--host", "::1"]):
        assert decided(monkeypatch, fake(), *words)[1]["single_addresses"] == []


def test_settings_that_the_broker_tells_decide_too(monkeypatch: pytest.MonkeyPatch) -> None:
    told: dict[str, str | None] = {"super.users": "User:root; User:admin", "allow.everyone.if.no.acl.found": "true"}
    admin = fake(configs=told)
    assert decided(monkeypatch, admin, "User:admin", "write", "topic", "orders")[1]["decided_by"] == "super_user"
    code, answer = decided(monkeypatch, admin, "User:x", "read", "group", "g")
    assert (code, answer["decided_by"]) == (0, "allow.everyone.if.no.acl.found")
    assert decided(monkeypatch, admin, "User:x", "write", "topic", "orders")[0] == 1


def test_settings_that_the_broker_hides_are_unknown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    admin = fake(configs={"super.users": None, "allow.everyone.if.no.acl.found": None})
    code, answer = decided(monkeypatch, admin, "User:root", "read", "group", "g")
    assert (code, len(answer["unknown"])) == (1, 2)
    shown = run(monkeypatch, admin, "test", "User:root", "read", "group", "g")
    assert shown.stdout.startswith("As far as the cluster tells, User:root may not read group g.")
    assert "super.users" in shown.stderr
    # A yes needs no more than its entry.
    assert decided(monkeypatch, admin, "User:anna", "read", "topic", "orders")[1]["unknown"] == []
    file = tmp_path / "server.properties"
    file.write_text("super.users=User:root\n")
    words = ["User:root", "read", "group", "g", "--server-config", str(file)]
    code, answer = decided(monkeypatch, admin, *words)
    assert (code, answer["decided_by"], answer["unknown"]) == (0, "super_user", [])


def test_who_may_not_see_settings_is_told_what_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake(describe_configs=error_for(CLUSTER_AUTHORIZATION_FAILED))
    assert len(decided(monkeypatch, admin, "User:x", "read", "group", "g")[1]["unknown"]) == 2


def test_without_an_authorizer_everybody_may_do_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    code, answer = decided(
        monkeypatch, fake(describe_acls=error_for(SECURITY_DISABLED)), "User:x", "read", "topic", "t"
    )
    assert (code, answer["decided_by"]) == (0, "no_authorizer")


def test_one_question_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, fake(), "test", "User:x", "read,write", "topic", "t").exit_code == 2
    assert run(monkeypatch, fake(), "test", "User:x", "read", "topic", "t", "--host", "*").exit_code == 2
