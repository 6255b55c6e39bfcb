"""`moldau user`: tables, JSON, sentences, exit codes, and where passwords may come from; against a scripted cluster."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from moldau.cli import passwords, user, user_describe
from moldau.cli.root import root
from moldau.client.admin import (
    AclBinding,
    AclOperation,
    PatternType,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
)
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol.errors import CLUSTER_AUTHORIZATION_FAILED, RESOURCE_NOT_FOUND, SECURITY_DISABLED
from tests.unit.cli.kafka.fakes import FakeAdmin

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
USERS = {
    "ben": [ScramCredential(SHA_512, 4096), ScramCredential(SHA_256, 8192)],
    "anna": [ScramCredential(SHA_512, 16384)],
}


def fake(**more: Any) -> FakeAdmin:
    def describe(names: list[str] | None) -> dict[str, Outcome[list[ScramCredential]]]:
        missing = error_for(RESOURCE_NOT_FOUND, "no such user")
        wanted = USERS if names is None else names
        return {name: Outcome(USERS[name]) if name in USERS else Outcome(None, missing) for name in wanted}  # type: ignore[arg-type]

    return FakeAdmin(
        **{
            "describe_user_scram_credentials": describe,
            "alter_user_scram_credentials": lambda changes: {change.user: Outcome(None) for change in changes},
            "describe_acls": [],
            "describe_client_quotas": {},
            **more,
        }
    )


def run(monkeypatch: pytest.MonkeyPatch, admin: FakeAdmin, *arguments: str, typed: str | None = None) -> Result:
    for module in (user, user_describe):
        monkeypatch.setattr(module, "open_admin", lambda connection: admin)
    return CliRunner().invoke(root, ["user", *arguments, "-b", "h:1"], input=typed)


def altered(admin: FakeAdmin) -> list[Any]:
    return [
        change
        for name, arguments, _ in admin.calls
        if name == "alter_user_scram_credentials"
        for change in arguments[0]
    ]


# list and describe


def test_users_are_listed_with_their_mechanisms(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(monkeypatch, fake(), "list").output.splitlines() == [
        "USER  MECHANISM      ITERATIONS",
        "anna  SCRAM-SHA-512       16384",
        "ben   SCRAM-SHA-256        8192",
        "ben   SCRAM-SHA-512        4096",
    ]
    found = json.loads(run(monkeypatch, fake(), "list", "-m", "scram-sha-256", "--format", "json").output)
    assert found == [{"user": "ben", "credentials": [{"mechanism": "SCRAM-SHA-256", "iterations": 8192}]}]


def test_no_users_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(describe_user_scram_credentials={}), "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "moldau user create" in result.stderr


def test_a_user_is_described_with_rights_and_quotas(monkeypatch: pytest.MonkeyPatch) -> None:
    acl = AclBinding(
        ResourceType.TOPIC, "orders", "User:anna", AclOperation.READ, host="10.0.0.7", pattern_type=PatternType.PREFIXED
    )
    admin = fake(
        describe_acls=[acl],
        describe_client_quotas={QuotaEntity.of({"user": "anna"}): {"producer_byte_rate": 1e6}},
    )
    assert run(monkeypatch, admin, "describe", "anna").output.splitlines() == [
        "User:anna",
        "  logs in by  SCRAM-SHA-512, 16384 iterations",
        "  ACLs        User:anna may read topics beginning with orders from 10.0.0.7",
        "  quotas      producer_byte_rate 1.0 MB/s (user anna)",
    ]
    asked = next(arguments[0] for name, arguments, _ in admin.calls if name == "describe_acls")
    assert asked.principal == "User:anna"


def test_what_may_not_be_seen_is_not_known_and_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake(
        describe_acls=error_for(SECURITY_DISABLED, "No Authorizer is configured."),
        describe_client_quotas=error_for(CLUSTER_AUTHORIZATION_FAILED, "not yours"),
    )
    result = run(monkeypatch, admin, "describe", "anna")
    assert result.exit_code == 0
    assert "no authorizer: everybody may do everything" in result.output
    assert "not known: not yours" in result.output
    (row,) = json.loads(run(monkeypatch, admin, "describe", "anna", "--format", "json").output)
    assert (row["acls"], row["quotas"]) == (None, None)


def test_a_user_that_is_not_there_fails_and_the_others_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "describe", "anna", "nobody")
    assert result.exit_code == 1
    assert "User:anna" in result.stdout
    assert "no such user" in result.stderr


# create


def test_a_user_is_created_with_what_scram_derives(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "create", "clara", "--password-stdin", typed="geheim\n")
    assert (result.exit_code, result.output) == (0, "Created user clara (SCRAM-SHA-512).\n")
    assert altered(admin) == [ScramUpsertion("clara", "geheim", SHA_512, 4096)]


def test_both_mechanisms_and_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    flags = ["-m", "SCRAM-SHA-256", "-m", "SCRAM-SHA-512", "-i", "8192", "--password-stdin"]
    assert run(monkeypatch, admin, "create", "clara", *flags, typed="x").exit_code == 0
    assert [(change.mechanism, change.iterations) for change in altered(admin)] == [(SHA_256, 8192), (SHA_512, 8192)]


def test_a_user_that_is_there_is_not_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "create", "anna", "--password-stdin", typed="x")
    assert result.exit_code == 1
    assert "moldau user alter anna" in result.stderr
    assert run(monkeypatch, admin, "create", "anna", "--if-not-exists").exit_code == 0
    assert altered(admin) == []


def test_a_refusal_of_the_cluster_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    error = error_for(CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
    admin = fake(alter_user_scram_credentials=lambda changes: {changes[0].user: Outcome(None, error)})
    result = run(monkeypatch, admin, "create", "clara", "--generate", "--format", "json")
    assert result.exit_code == 1
    (row,) = json.loads(result.stdout)
    assert row["error"] == "CLUSTER_AUTHORIZATION_FAILED"
    assert "password" not in row


# Where passwords come from


def test_a_generated_password_is_shown_once_and_is_the_one_that_was_set(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    (row,) = json.loads(run(monkeypatch, admin, "create", "clara", "--generate", "--format", "json").output)
    assert row["password"] == altered(admin)[0].password
    assert len(row["password"]) >= 32
    other = fake()
    run(monkeypatch, other, "create", "clara", "--generate")
    assert altered(other)[0].password != row["password"]


def test_a_file_that_others_can_read_is_warned_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("pässword\r\n")
    for mode, warned in ((0o600, False), (0o644, True), (0o640, True)):
        file.chmod(mode)
        admin = fake()
        result = run(monkeypatch, admin, "create", "clara", "--password-file", str(file))
        assert altered(admin)[0].password == "pässword"
        assert ("chmod 600" in result.stderr) is warned


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLARAS", "from there")
    admin = fake()
    run(monkeypatch, admin, "create", "clara", "--password-env", "CLARAS")
    assert altered(admin)[0].password == "from there"
    assert run(monkeypatch, admin, "create", "clara", "--password-env", "NOT_SET").exit_code == 2


def test_a_terminal_is_asked_twice_and_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "has_terminal", lambda: True)
    admin = fake()
    result = run(monkeypatch, admin, "create", "clara", typed="one\ntwo\nthree\nthree\n")
    assert altered(admin)[0].password == "three", "the first two were not the same"
    assert "Password of clara" in result.stderr
    assert result.stdout == "Created user clara (SCRAM-SHA-512).\n"
    assert "three" not in result.output


def test_an_argument_is_taken_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "create", "clara", "--password", "seen by all")
    assert altered(admin)[0].password == "seen by all"
    assert "`ps`" in result.stderr
    assert "seen by all" not in result.output


@pytest.mark.parametrize(
    ("flags", "typed", "sentence"),
    [
        ([], "typed", "no terminal"),
        (["--password-stdin"], "", "is empty"),
        (["--password-stdin"], "\n", "is empty"),
        (["--password-stdin"], "one\ntwo\n", "more than one line"),
        (["--password-stdin", "--generate"], "x", "one source"),
        (["--generate", "-i", "100"], None, "4096"),
        (["--generate", "-m", "SCRAM-SHA-1"], None, "not one of"),
    ],
)
def test_what_is_no_password_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, flags: list[str], typed: str | None, sentence: str
) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "create", "clara", *flags, typed=typed)
    assert result.exit_code == 2
    assert sentence in result.stderr
    assert altered(admin) == []


# alter and delete


def test_another_password_holds_for_all_mechanisms_and_keeps_their_iterations(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the old one would still open the door."""
    admin = fake()
    result = run(monkeypatch, admin, "alter", "ben", "--password-stdin", typed="new")
    assert [(change.mechanism, change.iterations) for change in altered(admin)] == [(SHA_256, 8192), (SHA_512, 4096)]
    assert "old password" not in result.stderr


def test_one_mechanism_alone_leaves_the_other_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "alter", "ben", "-m", "SCRAM-SHA-512", "--password-stdin", typed="new")
    assert [change.mechanism for change in altered(admin)] == [SHA_512]
    assert "old password still works with SCRAM-SHA-256" in result.stderr


def test_who_is_not_there_cannot_be_altered(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "alter", "nobody", "--generate")
    assert result.exit_code == 1
    assert "moldau user create nobody" in result.stderr


def test_users_are_deleted_with_all_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "delete", "ben", "anna")
    assert result.output == "Deleted user anna.\nDeleted user ben.\n"
    assert altered(admin) == [
        ScramDeletion("anna", SHA_512),
        ScramDeletion("ben", SHA_256),
        ScramDeletion("ben", SHA_512),
    ]


def test_a_mechanism_alone_is_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = fake()
    result = run(monkeypatch, admin, "delete", "ben", "-m", "SCRAM-SHA-256")
    assert result.output == "Deleted SCRAM-SHA-256 of user ben.\n"
    assert altered(admin) == [ScramDeletion("ben", SHA_256)]


def test_deleting_nobody_fails_unless_that_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    result = run(monkeypatch, fake(), "delete", "nobody", "anna")
    assert result.exit_code == 1
    assert "There is no user nobody" in result.stderr
    assert "Deleted user anna" in result.stdout
    assert run(monkeypatch, fake(), "delete", "nobody", "--if-exists").exit_code == 0
