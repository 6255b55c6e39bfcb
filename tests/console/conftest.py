"""A broker, a console and a real browser for all tests of pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode
from tests.pace import patience_ms

BRIEF = os.environ.get("MOLDAU_CONSOLE") == "brief"
# What `make test` runs of these tests: one of each kind, in less than a minute.
IN_BRIEF = {
    "test_the_overview_says_how_the_cluster_is",
    "test_markup_and_control_characters_in_records_are_shown_and_never_run",
    "test_the_live_tail_shows_records_as_they_arrive",
    "test_offsets_are_reset_after_a_preview",
    "test_a_user_sees_and_does_what_the_broker_allows",
    "test_strangers_are_not_answered",
    "test_a_page_can_be_used_by_everybody[/topics-light]",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if BRIEF and here in item.path.parents and item.name not in IN_BRIEF:
            item.add_marker(pytest.mark.skip(reason="left out of `make test`: run `make console`"))


def chromium() -> str | None:
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="install the extra dev: playwright is missing")
    path = chromium()
    if path is None:
        pytest.skip("no browser: apt install chromium")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MoldauNode]:
    made = MoldauNode(tmp_path_factory.mktemp("broker"))
    made.format()
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="session")
def console(node: MoldauNode, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    made = ConsoleProcess(tmp_path_factory.mktemp("console"), node.bootstrap)
    yield made
    made.stop()


def open_page(browser: Any, **more: Any) -> tuple[Any, list[str]]:
    """A fresh browser profile, and what goes wrong in it: scripts that fail, what the policy forbids."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, **more)
    context.set_default_timeout(patience_ms(8_000))
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))

    def note(message: Any) -> None:
        if message.type == "error" and "Failed to load resource" not in message.text:
            problems.append(message.text)

    page.on("console", note)
    return page, problems


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    opened, problems = open_page(browser)
    yield opened
    opened.context.close()
    assert not problems, problems


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path
