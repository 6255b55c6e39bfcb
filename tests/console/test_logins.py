"""People log in with the broker's users and have the rights of those, no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from moldau.client import Admin, Producer
from moldau.client.admin import AclBinding, AclOperation, NewTopic, ResourceType, ScramUpsertion
from tests.console.processes import ConsoleProcess, SecuredNode


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredNode]:
    node = SecuredNode(tmp_path_factory.mktemp("secured"))
    node.format()
    node.start()
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic("anna-orders", 1, 1), NewTopic("secret", 1, 1)])
        admin.alter_user_scram_credentials([ScramUpsertion("anna", "anna-password"), ScramUpsertion("admin", "secret")])
        rights = [
            AclBinding(ResourceType.TOPIC, "anna-orders", "User:anna", operation)
            for operation in (AclOperation.READ, AclOperation.DESCRIBE)
        ]
        for outcome in admin.create_acls(rights).values():
            outcome.get()
    with Producer(node.bootstrap) as producer:
        producer.send("anna-orders", b"bread", b"k")
        producer.send("secret", b"hidden", b"k")
    yield node
    node.stop()


@pytest.fixture(scope="module")
def console(secured: SecuredNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    made = ConsoleProcess(tmp_path_factory.mktemp("console"), secured.sasl_bootstrap)
    yield made
    made.stop()


def log_in(page: Any, console: ConsoleProcess, user: str, password: str) -> None:
    page.goto(console.url)
    page.get_by_label("User").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Log in").click()


def test_a_wrong_password_is_refused_by_the_broker(page: Any, console: ConsoleProcess) -> None:
    log_in(page, console, "anna", "wrong")
    page.get_by_role("alert").filter(has_text="Authentication failed").wait_for()
    assert page.get_by_label("Password").is_visible()


def test_a_user_sees_and_does_what_the_broker_allows(page: Any, console: ConsoleProcess) -> None:
    log_in(page, console, "anna", "anna-password")
    page.get_by_role("link", name="Topics").click()
    page.get_by_role("link", name="anna-orders").wait_for()
    assert page.get_by_role("link", name="secret").count() == 0
    page.goto(f"{console.url}/topics/anna-orders/messages")
    page.get_by_text("bread").first.wait_for()
    page.get_by_role("button", name="Delete topic").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Type its name to confirm").fill("anna-orders")
    dialog.get_by_role("button", name="Delete topic").click()
    dialog.get_by_text("authoriz", exact=False).wait_for()
    tried = [json.loads(line) for line in console.audit().splitlines()][-1]
    assert (tried["user"], tried["action"], tried["target"]) == ("anna", "delete topic", "anna-orders")
    assert "AUTHORIZATION_FAILED" in tried["outcome"]


def test_sessions_do_not_mix_and_end(page: Any, browser: Any, console: ConsoleProcess) -> None:
    log_in(page, console, "admin", "secret")
    page.goto(f"{console.url}/acls")
    page.get_by_text("User:anna").first.wait_for()
    page.goto(f"{console.url}/users")
    page.get_by_text("SCRAM-SHA-256").first.wait_for()
    other = browser.new_context()
    try:
        assert other.request.get(f"{console.url}/api/topics").status == 401
    finally:
        other.close()
    cookie = next(item for item in page.context.cookies() if item["name"] == "moldau_console")
    assert cookie["httpOnly"] and cookie["sameSite"] == "Strict"
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("heading", name="Log in").wait_for()
    old = {"name": cookie["name"], "value": cookie["value"], "url": console.url}
    page.context.add_cookies([old])
    assert page.context.request.get(f"{console.url}/api/topics").status == 401
