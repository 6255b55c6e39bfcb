"""`moldau lake` and `moldau pipeline` as people type them; what needs Spark is in the tests of Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root
from moldau.lake.lock import WriterLock
from moldau.lake.open_table import create_table
from moldau.lake.run_log import RoundStats, RunLog
from moldau.lake.table import LakeTable
from moldau.spark.rows import arrow_schema
from tests.lake.test_commits import load, offsets, rows, write


def run(*arguments: str, code: int = 0) -> Result:
    found = CliRunner().invoke(root, list(arguments))
    assert found.exit_code == code, found.output
    return found


@pytest.fixture
def table(tmp_path: Path) -> LakeTable:
    made = create_table(str(tmp_path / "lake"), "delta", arrow_schema(), ["date"])
    for number in range(4):
        load(made, number * 5, number * 5 + 5)
    return made


def test_a_table_is_described(table: LakeTable) -> None:
    with WriterLock(table.path, "a load of orders"):
        text = run("lake", "describe", table.path).stdout
    for word in (
        "delta, version 4",
        "rows            20",
        "partitioned by  date",
        "a load of orders (process",
        "orders",
    ):
        assert word in text, text
    told = json.loads(run("lake", "describe", table.path, "--format", "json").stdout)
    assert told["offsets"]["orders"] == {"0": 20} and told["rows"] == 20 and told["files"] == 4
    assert told["columns"]["offset"] == "int64" and told["commits"][0]["operation"] == "load"


def test_a_table_is_looked_after(table: LakeTable) -> None:
    write(table, rows(90, 95))
    assert "4 files became 1" in run("lake", "optimize", table.path).stdout
    assert "no small files" in run("lake", "optimize", table.path).stdout
    assert "5 files would be removed" in run("lake", "vacuum", table.path, "--retain", "0h", "--dry-run").stdout
    assert "5 files removed" in run("lake", "vacuum", table.path, "--retain", "0h").stdout
    assert offsets(table.path) == list(range(20))
    run("lake", "expire", table.path, "--older-than", "1d")
    assert offsets(table.path) == []
    assert "begins anew" in run("lake", "forget", table.path, "orders", "--yes").stdout


def test_mistakes_are_told_in_sentences(table: LakeTable, tmp_path: Path) -> None:
    assert "There is no table in" in run("lake", "describe", str(tmp_path / "none"), code=1).output
    assert "is no time: write 90d" in run("lake", "vacuum", table.path, "--retain", "soon", code=1).output
    assert "Name topics, or a --pattern" in run("load", "--to", "x", code=2).output
    assert "--from is never" in run("load", "t", "--to", "x", "--from", "never", code=2).output
    assert "is no time" in run("lake", "replay", table.path, "--to", "t", "--from-time", "late", code=2).output
    upsert = run("load", "t", "--to", "x", "--mode", "upsert", "--format", "parquet", code=1).output
    assert "Upserts need a Delta table" in upsert


def test_a_pipeline_is_begun_checked_and_watched(tmp_path: Path) -> None:
    file = str(tmp_path / "first.toml")
    run("pipeline", "init", file)
    assert "exists already" in run("pipeline", "init", file, code=1).output
    assert "first is fine: 1 source, 1 step, 1 sink." in run("pipeline", "validate", file).stdout
    assert "never" in run("pipeline", "status", file).stdout
    log = RunLog(str(tmp_path / "first.state" / "runs"), "pipeline first")
    log.begin()
    log.add(RoundStats(log.stats.began_ms, 1.5, 1200, lag={"orders-0": 30}, step="lake"))
    assert "it was killed" in run("pipeline", "status", file).stdout
    with WriterLock(str(tmp_path / "first.state"), "a run of pipeline first"):
        text = run("pipeline", "status", file).stdout
        assert "a run of pipeline first (process" in text and "1,200" in text and "running" in text
        told = json.loads(run("pipeline", "status", file, "--format", "json").stdout)
        assert told["running"] is True and told["last"]["lag"] == 30
    Path(file).write_text("[pipeline]\nname = 3")
    assert "name must be a text" in run("pipeline", "validate", file, code=1).output
