"""ACLs, users of SCRAM and quotas: added, changed and taken away in the pages, with a line in the audit log each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin
from moldau.client.admin import AclOperation, AclPermission, NewTopic, PatternType, QuotaEntity
from moldau.client.errors import ClientError
from tests.console.axe import overflow, violations_in_both_colours
from tests.console.processes import ConsoleProcess, SecuredNode


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    node = SecuredNode(tmp_path_factory.mktemp("secured"))
    node.format()
    node.start()
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic("invoices", 1, 1)])["invoices"].get()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def console(secured: SecuredNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    """Through the listener without a login, where everybody may do everything."""
    made = ConsoleProcess(tmp_path_factory.mktemp("console"), secured.bootstrap)
    yield made
    made.stop()


def audited(console: ConsoleProcess) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(console.audit().splitlines()[-1])
    assert row["outcome"] == "done" and row["address"] == "127.0.0.1"
    return row


def check(page: Any) -> None:
    assert violations_in_both_colours(page) == [] and overflow(page) == 0


def test_an_acl_is_created_and_deleted(page: Any, console: ConsoleProcess, secured: SecuredNode) -> None:
    page.goto(f"{console.url}/acls")
    page.get_by_text("There are no entries.").wait_for()
    page.get_by_role("button", name="Add an entry").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Who").fill("User:berta")
    dialog.get_by_label("Permission").select_option("DENY")
    dialog.get_by_label("Operation").select_option("WRITE")
    dialog.get_by_label("Name").fill("invo")
    page.locator('datalist option[value="invoices"]').wait_for(state="attached")
    dialog.get_by_label("Pattern").select_option("PREFIXED")
    check(page)
    dialog.get_by_role("button", name="Add", exact=True).click()
    page.get_by_text("The entry is added.").wait_for()
    page.get_by_text("topic invo…").wait_for()
    check(page)
    expected = {
        "principal": "User:berta",
        "host": "*",
        "permission": "DENY",
        "operation": "WRITE",
        "resource_type": "TOPIC",
        "resource_name": "invo",
        "pattern_type": "PREFIXED",
    }
    row = audited(console)
    assert (row["action"], row["target"], row["details"]) == ("create ACL", "User:berta", expected)
    with Admin(secured.bootstrap) as admin:
        (found,) = admin.describe_acls()
        assert (found.operation, found.permission) == (AclOperation.WRITE, AclPermission.DENY)
        assert found.pattern_type == PatternType.PREFIXED
        page.get_by_role("button", name="Delete User:berta write topic invo").click()
        check(page)
        dialog.get_by_role("button", name="Delete it").click()
        page.get_by_text("There are no entries.").wait_for()
        assert list(admin.describe_acls()) == []
    row = audited(console)
    assert (row["action"], row["target"], row["details"]) == ("delete ACL", "User:berta", expected)


def test_an_acl_that_the_broker_refuses_is_told_in_the_dialog(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/acls")
    page.get_by_role("button", name="Add an entry").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Who").fill("berta")
    dialog.get_by_label("Name").fill("invoices")
    dialog.get_by_role("button", name="Add", exact=True).click()
    dialog.get_by_role("alert").filter(has_text="principal").wait_for()
    assert json.loads(console.audit().splitlines()[-1])["outcome"] != "done"


def logs_in(secured: SecuredNode, user: str, password: str) -> bool:
    config = {
        "bootstrap.servers": secured.sasl_bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": user,
        "sasl.password": password,
    }
    try:
        with Admin(config=config) as admin:
            admin.describe_cluster()
    except ClientError:
        return False
    return True


def test_a_user_is_added_gets_another_password_and_is_deleted(
    page: Any, console: ConsoleProcess, secured: SecuredNode
) -> None:
    page.goto(f"{console.url}/users")
    page.get_by_text("The cluster keeps no users of SCRAM.").wait_for()
    page.get_by_role("button", name="Add a user").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("User").fill("carla")
    dialog.get_by_label("Password").fill("first-secret")
    dialog.get_by_label("Mechanism").select_option("SCRAM-SHA-256")
    check(page)
    dialog.get_by_role("button", name="Set").click()
    page.get_by_text("carla can log in with that password.").wait_for()
    page.get_by_text("SCRAM-SHA-256, 4,096 iterations").wait_for()
    check(page)
    row = audited(console)
    assert (row["action"], row["target"]) == ("set password", "carla")
    assert row["details"] == {"mechanism": "SCRAM-SHA-256"}
    assert logs_in(secured, "carla", "first-secret") and not logs_in(secured, "carla", "second-secret")
    page.get_by_role("button", name="New password of carla").click()
    dialog.get_by_label("Password").fill("second-secret")
    dialog.get_by_label("Mechanism").select_option("SCRAM-SHA-256")
    dialog.get_by_role("button", name="Set").click()
    dialog.wait_for(state="detached")
    assert logs_in(secured, "carla", "second-secret") and not logs_in(secured, "carla", "first-secret")
    page.get_by_role("button", name="Delete SCRAM-SHA-256 of carla").click()
    assert dialog.get_by_role("button", name="Delete", exact=True).is_disabled()
    dialog.get_by_label("Type its name to confirm").fill("carla")
    check(page)
    dialog.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_text("The cluster keeps no users of SCRAM.").wait_for()
    row = audited(console)
    assert (row["action"], row["target"]) == ("delete credentials", "carla")
    assert not logs_in(secured, "carla", "second-secret")
    assert "secret" not in console.audit() + console.output()


def quotas(secured: SecuredNode) -> dict[QuotaEntity, dict[str, float]]:
    with Admin(secured.bootstrap) as admin:
        return admin.describe_client_quotas()


def test_quotas_are_set_changed_and_removed(page: Any, console: ConsoleProcess, secured: SecuredNode) -> None:
    entity = QuotaEntity.of({"user": "dora", "client-id": "loader"})
    page.goto(f"{console.url}/quotas")
    page.get_by_text("No quotas are set").wait_for()
    page.get_by_role("button", name="Set a quota").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("For").select_option("user client-id")
    dialog.get_by_label("User").fill("dora")
    dialog.get_by_label("Client id").fill("loader")
    dialog.get_by_label("producer_byte_rate").fill("1000000")
    dialog.get_by_label("request_percentage").fill("50")
    assert not dialog.get_by_label("connection_creation_rate").is_visible()
    check(page)
    dialog.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("The quotas are set.").wait_for()
    page.get_by_text("1,000,000").wait_for()
    check(page)
    assert quotas(secured) == {entity: {"producer_byte_rate": 1_000_000.0, "request_percentage": 50.0}}
    row = audited(console)
    assert (row["action"], row["target"]) == ("alter quotas", "client-id loader, user dora")
    page.get_by_role("button", name="Edit quotas for client-id loader, user dora").click()
    dialog.get_by_label("producer_byte_rate").fill("2000000")
    dialog.get_by_label("request_percentage").fill("")
    dialog.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("2,000,000").wait_for()
    assert quotas(secured) == {entity: {"producer_byte_rate": 2_000_000.0}}
    assert audited(console)["details"] == {"producer_byte_rate": 2_000_000.0, "request_percentage": None}
    page.get_by_role("button", name="Remove quotas for client-id loader, user dora").click()
    check(page)
    dialog.get_by_role("button", name="Remove them").click()
    page.get_by_text("No quotas are set").wait_for()
    assert quotas(secured) == {}
    assert audited(console)["details"] == {"producer_byte_rate": None}


def test_addresses_have_a_quota_of_their_own(page: Any, console: ConsoleProcess, secured: SecuredNode) -> None:
    page.goto(f"{console.url}/quotas")
    page.get_by_role("button", name="Set a quota").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("For").select_option("ip")
    assert not dialog.get_by_label("producer_byte_rate").is_visible()
    dialog.get_by_label("connection_creation_rate").fill("0")
    dialog.get_by_role("button", name="Set", exact=True).click()
    dialog.get_by_text("must be a number above 0").wait_for()
    dialog.get_by_label("connection_creation_rate").fill("20")
    dialog.get_by_role("button", name="Set", exact=True).click()
    page.get_by_text("ip (all others)").wait_for()
    assert quotas(secured) == {QuotaEntity.of({"ip": None}): {"connection_creation_rate": 20.0}}
