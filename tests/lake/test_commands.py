"""`moldau lake` and `moldau pipeline` as people type them; what needs Spark is in the tests of Spark."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from moldau.cli.root import root
from moldau.client import Admin, NewTopic
from moldau.lake.lock import WriterLock
from moldau.lake.open_table import create_table
from moldau.lake.positions import Positions
from moldau.lake.run_log import RoundStats, RunLog
from moldau.lake.table import LakeTable, Note
from moldau.spark.rows import arrow_schema
from tests.interop.nodes import MoldauNode
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
    lag = {"orders-0": 30}
    log.add(RoundStats(log.stats.began_ms, 1.5, 1200, 48_000, 2, lag=lag, step="lake", rows_out=1039))
    assert "it was killed" in run("pipeline", "status", file).stdout
    with WriterLock(str(tmp_path / "first.state"), "a run of pipeline first"):
        text = run("pipeline", "status", file).stdout
        assert "a run of pipeline first (process" in text and "1,200" in text and "running" in text
        assert "1,039" in text, "rows that came out"
        told = json.loads(run("pipeline", "status", file, "--format", "json").stdout)
        assert told["running"] is True and told["last"]["lag"] == 30
    Path(file).write_text("[pipeline]\nname = 3")
    assert "name must be a text" in run("pipeline", "validate", file, code=1).output


def test_a_pipeline_whose_broker_is_away_says_so_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_spark(*given: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr("moldau.lake.session.start_session", no_spark)
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        address = f"127.0.0.1:{nobody.getsockname()[1]}"
    monkeypatch.setenv("MOLDAU_BOOTSTRAP_SERVER", address)
    file = str(tmp_path / "first.toml")
    run("pipeline", "init", file)
    assert f'"bootstrap.servers" = "{address}"' in Path(file).read_text()
    for command in (("run", file), ("validate", file, "--connect")):
        told = run("pipeline", *command, code=1).output
        assert f"No broker responds at {address}" in told and "Traceback" not in told
    assert "is fine" in run("pipeline", "validate", file).stdout, "without --connect nobody is asked"


def test_a_pipeline_is_checked_against_its_brokers(node: MoldauNode, tmp_path: Path) -> None:
    file = str(tmp_path / "second.toml")
    run("pipeline", "init", file, "-b", node.bootstrap)
    Path(file).write_text(Path(file).read_text().replace('topic = "orders"', 'topic = "asked-for"', 1))
    assert "have no topic asked-for" in run("pipeline", "validate", file, "--connect", code=1).output
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic("asked-for")])["asked-for"].get()
    assert "Its brokers respond." in run("pipeline", "validate", file, "--connect").stdout


def test_load_takes_format_as_every_command_does(tmp_path: Path) -> None:
    nowhere = ("load", "t", "--to", str(tmp_path / "x"), "--mode", "upsert")
    for formats in (("--format", "parquet", "--format", "json"), ("--table-format", "parquet", "--format", "json")):
        assert "parquet" in run(*nowhere, *formats, code=1).output, "the table's format, not that of the output"
    both = run(*nowhere, "--table-format", "delta", "--format", "iceberg", code=2).output
    assert "cannot be delta and iceberg at once" in both
    helped = run("load", "--help").stdout
    assert "--format" in helped and "--table-format" in helped and "--json" not in helped


def test_columns_without_statistics_are_no_news_to_iceberg(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Keys and values are bytes, whose bounds are left out on purpose."""
    made = create_table(str(tmp_path / "iceberg"), "iceberg", arrow_schema(), [])
    load(made, 0, 5)
    assert "statistics missing" not in caplog.text
    assert offsets(made.path) == list(range(5))


def test_a_replay_makes_the_topic_it_needs_or_refuses_at_once(
    node: MoldauNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers would make it with one partition, and the rows of others would wait until everything fails."""
    made = create_table(str(tmp_path / "lake"), "delta", arrow_schema(), [])
    batch = rows(0, 5)
    place = batch.schema.get_field_index("partition")
    batch = batch.set_column(place, batch.schema.field(place), pa.array([2] * 5, batch.schema.field(place).type))
    made.append(write(made, batch), Positions(), Positions(), Note("batch", {}))
    monkeypatch.setattr("moldau.lake.session.start_session", lambda *given: None)
    monkeypatch.setattr("moldau.lake.replay.replay_tasks", lambda session, tasks, *given: len(tasks))
    replay = ("lake", "replay", made.path, "-b", node.bootstrap, "--to")
    run(*replay, "replayed")
    with Admin(node.bootstrap) as admin:
        assert len(admin.describe_topics(["replayed"])["replayed"].get().partitions) == 3
        admin.create_topics([NewTopic("too-few", 2)])["too-few"].get()
    told = run(*replay, "too-few", code=1).output
    assert "Topic too-few has 2 partitions, and rows of the table name partition 2" in told and "--by-key" in told
    run(*replay, "too-few", "--by-key")
