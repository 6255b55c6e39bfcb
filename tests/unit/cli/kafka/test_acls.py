"""`kafka-acls`: what is added, removed and listed, in the words of the real tool."""

from __future__ import annotations

import io

import pytest

from moldau.cli.kafka.acls import main
from moldau.cli.kafka.frame import guard
from moldau.client.admin import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from moldau.client.errors import error_for
from moldau.client.results import Outcome
from moldau.protocol.errors import CLUSTER_AUTHORIZATION_FAILED
from tests.unit.cli.acl_fakes import AclAdmin

ORDERS = "ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)"
SERVER = ["--bootstrap-server", "h:1"]


def acl(
    name: str, principal: str, operation: AclOperation, pattern: PatternType = PatternType.LITERAL, host: str = "*"
) -> AclBinding:
    return AclBinding(ResourceType.TOPIC, name, principal, operation, AclPermission.ALLOW, host, pattern)


READS = acl("orders", "User:anna", AclOperation.READ)
WRITES = acl("orders", "User:bert", AclOperation.WRITE)
PREFIX = acl("ord", "User:anna", AclOperation.ALL, PatternType.PREFIXED)


def run(admin: AclAdmin, *arguments: str) -> int:
    return guard(lambda: main([*SERVER, *arguments], admin.connect))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_entries_are_added_and_those_that_exist_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    admin = AclAdmin([READS])
    arguments = ["--add", "--allow-principal", "User:anna", "--topic", "orders", "--operation", "Read"]
    assert run(admin, *arguments, "--operation", "describeconfigs") == 0
    assert capsys.readouterr().out == (
        f"Acl (pattern={ORDERS}, entry=(principal=User:anna, host=*, operation=READ, permissionType=ALLOW))"
        " already exists.\n"
        f"Adding ACLs for resource `{ORDERS}`: \n"
        " \t(principal=User:anna, host=*, operation=DESCRIBE_CONFIGS, permissionType=ALLOW)\n\n"
    )
    assert admin.bindings == [READS, READS._replace(operation=AclOperation.DESCRIBE_CONFIGS)]


def test_every_principal_gets_every_operation_from_every_host() -> None:
    admin = AclAdmin()
    whom = ["--allow-principal", "User:a", "--allow-principal", "User:b", "--deny-principal", "User:c"]
    hosts = ["--allow-host", "1.1.1.1", "--allow-host", "2.2.2.2"]
    run(admin, "--add", *whom, *hosts, "--operation", "Read", "--operation", "Write", "--group", "g", "--topic", "t")
    # A group cannot be written: the whole line is refused.
    assert admin.bindings == []
    run(admin, "--add", *whom, *hosts, "--operation", "Read", "--group", "g", "--topic", "t")
    assert len(admin.bindings) == 2 * (2 * 2 + 1)
    denied = [binding for binding in admin.bindings if binding.permission == AclPermission.DENY]
    assert {(binding.principal, binding.host) for binding in denied} == {("User:c", "*")}


def test_a_producer_and_a_consumer_get_what_they_need() -> None:
    admin = AclAdmin()
    who = ["--add", "--allow-principal", "User:a", "--topic", "t"]
    assert run(admin, *who, "--producer", "--transactional-id", "x", "--idempotent") == 0
    assert run(admin, *who, "--consumer", "--group", "g") == 0
    found = {(binding.resource_type.name, binding.resource_name, binding.operation.name) for binding in admin.bindings}
    assert found == {
        ("TOPIC", "t", "WRITE"),
        ("TOPIC", "t", "DESCRIBE"),
        ("TOPIC", "t", "CREATE"),
        ("TOPIC", "t", "READ"),
        ("TRANSACTIONAL_ID", "x", "WRITE"),
        ("TRANSACTIONAL_ID", "x", "DESCRIBE"),
        ("CLUSTER", "kafka-cluster", "IDEMPOTENT_WRITE"),
        ("GROUP", "g", "READ"),
    }


def test_the_cluster_has_no_prefix(capsys: pytest.CaptureFixture[str]) -> None:
    admin = AclAdmin()
    run(admin, "--add", "--allow-principal", "User:a", "--cluster", "--resource-pattern-type", "prefixed")
    assert admin.bindings == []
    assert "You must provide at least one resource" in capsys.readouterr().err


def test_a_list_is_of_resources_and_of_principals(capsys: pytest.CaptureFixture[str]) -> None:
    admin = AclAdmin([READS, WRITES, PREFIX])
    assert (
        run(admin, "--list", "--topic", "orders", "--resource-pattern-type", "match", "--principal", "User:anna") == 0
    )
    assert capsys.readouterr().out == (
        "ACLs for principal `User:anna`\n"
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=ord, patternType=PREFIXED)`:\n"
        "\t(principal=User:anna, host=*, operation=ALL, permissionType=ALLOW)\n\n"
        f"Current ACLs for resource `{ORDERS}`:\n"
        "\t(principal=User:anna, host=*, operation=READ, permissionType=ALLOW)\n\n"
    )


def test_principals_come_in_the_order_of_javas_sets(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["User:x", "User:a", "User:none"]
    run(AclAdmin(), "--list", *(word for name in names for word in ("--principal", name)))
    assert capsys.readouterr().out.splitlines() == [f"ACLs for principal `User:{name}`" for name in ("a", "none", "x")]


def test_entries_are_removed_and_nothing_is_said() -> None:
    admin = AclAdmin([READS, WRITES, PREFIX])
    assert run(admin, "--remove", "--topic", "orders", "--allow-principal", "User:anna", "--force") == 0
    assert admin.bindings == [READS, WRITES, PREFIX]  # it meant the operation All
    assert (
        run(admin, "--remove", "--topic", "orders", "--allow-principal", "User:anna", "--operation", "Read", "--force")
        == 0
    )
    assert admin.bindings == [WRITES, PREFIX]
    assert run(admin, "--remove", "--topic", "orders", "--resource-pattern-type", "match", "--force") == 0
    assert admin.bindings == []


@pytest.mark.parametrize(("answer", "left"), [("y\n", 0), ("Y\n", 0), ("n\n", 1), ("yes\n", 1), ("\n", 1)])
def test_a_person_is_asked_before(
    answer: str, left: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    admin = AclAdmin([READS])
    screen = Terminal()
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    monkeypatch.setattr("sys.stdout", screen)
    assert run(admin, "--remove", "--topic", "orders") == 0
    assert screen.getvalue() == f"Are you sure you want to delete all ACLs for resource filter `{ORDERS}`? (y/n)\n"
    assert len(admin.bindings) == left


def test_a_pipe_cannot_confirm(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    admin = AclAdmin([READS])
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert run(admin, "--remove", "--topic", "orders", "--allow-principal", "User:anna", "--operation", "Read") == 1
    assert admin.bindings == [READS]
    question, _, failure = capsys.readouterr().out.partition("Error while executing ACL command: ")
    assert question == (
        "Are you sure you want to remove ACLs: \n"
        " \t(principal=User:anna, host=*, operation=READ, permissionType=ALLOW)\n"
        f" from resource filter `{ORDERS}`? (y/n)\n"
    )
    assert failure.startswith('Cannot invoke "java.io.Console.readLine()" because')


def test_what_a_broker_refuses_ends_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    refused = error_for(CLUSTER_AUTHORIZATION_FAILED, None)
    admin = AclAdmin(create_acls=lambda bindings: {binding: Outcome(None, refused) for binding in bindings})
    assert run(admin, "--add", "--allow-principal", "User:a", "--topic", "t") == 1
    cause = "org.apache.kafka.common.errors.ClusterAuthorizationException: Cluster authorization failed."
    assert capsys.readouterr().out.endswith(
        f"Error while executing ACL command: {cause}\n"
        f"java.util.concurrent.ExecutionException: {cause}\nCaused by: {cause}\n\n"
    )


def test_controllers_can_be_asked() -> None:
    admin = AclAdmin()
    assert guard(lambda: main(["--bootstrap-controller", "c:1", "--list"], admin.connect)) == 0
    assert admin.connected == [(None, None, "c:1")]


def test_a_config_without_a_file_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(AclAdmin(), "--list", "--command-config") == 0
    assert capsys.readouterr().out == "Did not load any properties since the property file is not specified\n"
