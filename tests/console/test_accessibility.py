"""axe-core finds nothing serious on any page, in light and dark, nor in dialogs."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client import Admin, Producer, TopicPartition
from moldau.client.admin import NewTopic
from tests.console.axe import violations
from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode

PAGES = {
    "/": "Everything is as it should be",
    "/topics": "a11y",
    "/topics/a11y": "Leaders by broker",
    "/topics/a11y/messages": "customer",
    "/topics/a11y/configs": "retention.ms",
    "/topics/a11y/groups": "a11y-group",
    "/topics/a11y/producers": "Last sequence",
    "/groups": "a11y-group",
    "/groups/a11y-group": "Assignment",
    "/brokers": "Partitions led",
    "/brokers/1": "Log directories",
    "/quorum": "High watermark",
    "/transactions": "Hanging transactions",
    "/transactions?hanging=a11y": "No transaction hangs",
    "/quotas": "Quotas",
    "/users": "The cluster keeps no users",
}


@pytest.fixture(scope="module", autouse=True)
def things(node: MoldauNode) -> None:
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic("a11y", 2, 1)])["a11y"]
        admin.alter_consumer_group_offsets("a11y-group", {TopicPartition("a11y", 0): 0})
    with Producer(node.bootstrap) as producer:
        producer.send("a11y", b'{"customer": 1}', b"k", partition=0, headers=[("h", b"v")])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_used_by_everybody(browser: Any, console: ConsoleProcess, path: str, theme: Any) -> None:
    context = browser.new_context(color_scheme=theme)
    page = context.new_page()
    try:
        page.goto(f"{console.url}{path}")
        page.get_by_text(PAGES[path]).first.wait_for()
        if path.endswith("/messages"):
            page.locator(".opener").first.click()
            page.locator(".whole pre").first.wait_for()
        assert violations(page) == []
    finally:
        context.close()


@pytest.mark.parametrize(
    ("path", "opener"),
    [
        ("/topics", "Create topic"),
        ("/topics/a11y", "Delete topic"),
        ("/topics/a11y", "Delete records"),
        ("/topics/a11y/messages", "Produce"),
        ("/topics/a11y/configs", "Edit retention.ms"),
        ("/groups/a11y-group", "Reset offsets"),
        ("/quotas", "Set a quota"),
        ("/users", "Add a user"),
        ("/", "Keyboard help"),
    ],
)
def test_a_dialog_can_be_used_by_everybody(page: Any, console: ConsoleProcess, path: str, opener: str) -> None:
    page.goto(f"{console.url}{path}")
    page.get_by_role("button", name=opener, exact=True).click()
    page.get_by_role("dialog").wait_for()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
