"""Runs of pipelines and loads, from the logs that they write below their state folders."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from moldau.lake.run_log import RoundStats, RunLog, now_ms
from tests.console.axe import overflow, violations_in_both_colours
from tests.console.processes import ConsoleProcess
from tests.interop.nodes import MoldauNode

DETAILS = {"file": "orders.yaml", "master": "local[2]", "spark_start_s": 3.5}


def begin(folder: Path, name: str, ago_s: int) -> RunLog:
    """The log of a run as `moldau pipeline run` begins it, some time ago."""
    log = RunLog(str(folder), f"pipeline {name}", DETAILS)
    log.stats.began_ms = now_ms() - ago_s * 1000
    log.path = str(folder / f"{log.stats.began_ms:015d}-7.jsonl")
    log.begin()
    return log


def add_round(log: RunLog, sink: str, ago_s: float, rows: int, lag: int) -> None:
    phases = {"reading and writing": 1.5, "planning": 0.25}
    ended_ms = now_ms() - int(ago_s * 1000)
    left = {"orders-0": lag, "orders-1": lag}
    log.add(RoundStats(ended_ms, 2.0, rows, rows * 20, 2, len(log.stats.rounds), left, sink, rows // 2, phases))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """One that runs, one that ended, one that failed, one that was killed in the middle of a line; and no log."""
    folders = [tmp_path_factory.mktemp("orders") / "state" / "runs", tmp_path_factory.mktemp("returns") / "runs"]
    running = begin(folders[0], "running", 60)
    for number, lag in enumerate((900, 400, 100)):
        add_round(running, ("clean", "wide", "clean")[number], 30 - number * 10, 1_000, lag)
    ended = begin(folders[0], "ended", 7_200)
    add_round(ended, "clean", 7_100, 5_000, 0)
    ended.end()
    failed = begin(folders[1], "failed", 3_600)
    failed.end("The table has no column amount.")
    killed = begin(folders[1], "killed", 1_800)
    add_round(killed, "clean", 1_700, 10, 5)
    with open(killed.path, "a", encoding="utf-8") as file:
        file.write('{"round": {"ended_ms": 17')
    (folders[1] / "notes.jsonl").write_text("[]\n")
    return folders


@pytest.fixture(scope="module")
def console(node: MoldauNode, runs: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleProcess]:
    named = [argument for folder in runs for argument in ("--runs", str(folder))]
    made = ConsoleProcess(tmp_path_factory.mktemp("console"), node.bootstrap, *named)
    yield made
    made.stop()


def test_runs_are_listed_with_what_became_of_them(page: Any, console: ConsoleProcess) -> None:
    page.goto(console.url)
    page.get_by_text("Everything is as it should be").wait_for()
    page.keyboard.press("g")
    page.keyboard.press("p")
    page.get_by_role("link", name="pipeline running").wait_for()
    rows = [line.split("\t") for line in page.locator("tbody tr").all_inner_texts()]
    found = {row[0].strip(): row[1].strip().split("\n")[-1] for row in rows}
    assert found == {
        "pipeline running": "running",
        "pipeline killed": "silent",
        "pipeline failed": "failed",
        "pipeline ended": "ended",
    }
    assert [row[0].strip() for row in rows] == list(found), "the newest comes first"
    assert violations_in_both_colours(page) == [] and overflow(page) == 0


def test_a_run_shows_its_rounds_and_grows(page: Any, console: ConsoleProcess, runs: list[Path]) -> None:
    page.goto(f"{console.url}/pipelines")
    page.get_by_role("link", name="pipeline running").click()
    page.get_by_role("heading", name="pipeline running").wait_for()
    facts = page.locator(".facts").first
    assert "3,000" in facts.inner_text() and "1,500" in facts.inner_text()
    page.get_by_role("img", name="Lag: 200 now").wait_for()
    page.get_by_role("list", name="Seconds by phase").get_by_text("starting Spark").wait_for()
    assert page.get_by_role("region", name="Sinks").locator("tbody tr").count() == 2
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    (path,) = [path for path in runs[0].iterdir() if "pipeline running" in path.read_text()]
    log = RunLog(str(runs[0]), "pipeline running", DETAILS)
    log.path = str(path)
    add_round(log, "clean", 0, 777, 0)
    page.get_by_text("777").first.wait_for()


def test_a_run_that_failed_says_why(page: Any, console: ConsoleProcess) -> None:
    page.goto(f"{console.url}/pipelines")
    page.get_by_role("link", name="pipeline failed").click()
    page.get_by_text("The table has no column amount.").wait_for()
    assert violations_in_both_colours(page) == [] and overflow(page) == 0
    page.reload()
    page.get_by_text("It failed").wait_for()


@pytest.mark.parametrize("path", ["/pipelines/0/nothing.jsonl", "/pipelines/9/x.jsonl", "/pipelines/0/..%2F..%2Fx"])
def test_files_that_are_no_run_are_not_there(page: Any, console: ConsoleProcess, path: str) -> None:
    page.goto(f"{console.url}{path}")
    page.get_by_role("alert").get_by_text("Not there").wait_for()


def test_without_a_folder_there_is_no_such_page(page: Any, node: MoldauNode, folder: Path) -> None:
    console = ConsoleProcess(folder, node.bootstrap)
    try:
        page.goto(f"{console.url}/pipelines")
        page.get_by_text("start the console with --runs DIRECTORY").wait_for()
        assert page.get_by_role("link", name="Pipelines", exact=True).count() == 0
    finally:
        console.stop()
