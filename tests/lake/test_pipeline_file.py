"""Pipelines in TOML: what is read, what is refused and with which sentence, and what a report shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.lake.errors import LakeError
from moldau.lake.pipeline import Pipeline, PythonStep, SqlStep, TableSink, TopicSink, TopicSource
from moldau.lake.pipeline_file import read_pipeline, write_template
from moldau.lake.report import bundle, render_report, short
from moldau.lake.run_log import RoundStats, RunLog, RunStats, read_run, run_files

GOOD = """
[pipeline]
name = "orders"
[kafka]
bootstrap.servers = "localhost:9092"
[spark]
spark.sql.shuffle.partitions = 3
[sources.orders]
topic = "orders"
value_format = "json"
value_schema = "id BIGINT"
[[steps]]
name = "large"
sql = "SELECT * FROM orders"
[[steps]]
name = "scored"
python = "steps.py:score"
inputs = ["large"]
[[sinks]]
from = "scored"
topic = "scores"
[[sinks]]
name = "lake"
from = "orders"
table = "lake/orders"
partition_by = "date"
mode = "upsert"
"""


def write(tmp_path: Path, text: str) -> str:
    (tmp_path / "steps.py").write_text("def score(frame):\n    return frame\n")
    path = tmp_path / "orders.toml"
    path.write_text(text)
    return str(path)


def test_a_pipeline_is_read_whole(tmp_path: Path) -> None:
    pipeline = read_pipeline(write(tmp_path, GOOD))
    assert pipeline.kafka == {"bootstrap.servers": "localhost:9092"}
    assert pipeline.spark == {"spark.sql.shuffle.partitions": "3"}
    assert pipeline.sources == [TopicSource("orders", "orders", value_format="json", value_schema="id BIGINT")]
    sql, python = pipeline.steps
    assert sql == SqlStep("large", "SELECT * FROM orders")
    assert isinstance(python, PythonStep) and python.function("frame") == "frame" and python.inputs == ("large",)
    assert pipeline.sinks[0] == TopicSink("scores", "scored", "scores")
    assert pipeline.sinks[1] == TableSink("lake", "orders", f"{tmp_path}/lake/orders", None, ("date",), "upsert")
    assert pipeline.state == f"{tmp_path}/orders.state"


def test_the_template_is_a_pipeline(tmp_path: Path) -> None:
    path = str(tmp_path / "first.toml")
    write_template(path)
    assert read_pipeline(path).name == "first"
    with pytest.raises(LakeError, match="exists already"):
        write_template(path)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("[pipeline]", "[pipeline", "no TOML"),
        ('topic = "scores"', 'topik = "scores"', "either a topic or a table"),
        ("value_format", "value_fromat", "'value_fromat' is unknown; did you mean value_format?"),
        ('inputs = ["large"]', 'inputs = ["larg"]', "reads from 'larg', .* Did you mean large"),
        ('from = "scored"', 'from = "nothing"', "reads from 'nothing'"),
        ("steps.py:score", "steps.py:missing", "has no function missing"),
        ("steps.py:score", "other.py:score", "there is no file"),
        ("steps.py:score", "score", "write file.py:function"),
        ("bootstrap.servers", "client.id", "does not know its brokers"),
        ('value_schema = "id BIGINT"', "", "needs a value_schema"),
        ('name = "large"', 'name = "orders"', "is there twice"),
        ('name = "large"', 'name = "large-ones"', "cannot stand in SQL"),
        ('mode = "upsert"', 'mode = "replace"', "tables take append or upsert"),
        ('from = "orders"\n', 'from = "large"\n', "straight from a topic only"),
        ('name = "lake"', 'name = "scores"', "Two sinks have the name scores"),
        ('sql = "SELECT * FROM orders"', "sql = 3", "sql must be a text"),
        ("[sources.orders]", "[sorces.orders]", "'sorces' is unknown"),
        ('name = "orders"', 'name = "a/b"', "may have letters"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, before: str, after: str, sentence: str) -> None:
    assert before in GOOD
    with pytest.raises(LakeError, match=sentence):
        read_pipeline(write(tmp_path, GOOD.replace(before, after, 1)))


def test_all_that_is_wrong_is_told_at_once() -> None:
    with pytest.raises(LakeError) as raised:
        Pipeline("p", [TopicSource("a b")], [TableSink("s", "x", "t", "csv")]).check()
    assert len(raised.value.message.splitlines()) >= 5


def test_runs_are_kept_and_read_again(tmp_path: Path) -> None:
    """Also those whose process was killed while it wrote a line."""
    log = RunLog(str(tmp_path), "load orders", {"table": "lake"})
    assert run_files(str(tmp_path)) == []
    log.begin()
    log.add(RoundStats(log.stats.began_ms + 2000, 2.0, 100, lag={"orders-0": 7}))
    with open(log.path, "a") as file:
        file.write('{"round": {"ended')
    found = read_run(log.path)
    assert (found.name, found.rows, found.ended_ms) == ("load orders", 100, 0)
    assert found.rounds[0].lag_total == 7 and found.rounds[0].rows_per_second == 50


def test_a_report_is_one_page_without_anything_to_load() -> None:
    rounds = [
        RoundStats(1_000 * number, 0.5, 1000 * number, 10, 1, number, {"<b>-0": number}) for number in range(1, 400)
    ]
    page = render_report(RunStats("load <orders>", 0, rounds, 400_000, "It <failed>."))
    assert "load &lt;orders&gt;" in page and "It &lt;failed&gt;." in page and "&lt;b&gt;-0" in page
    assert page.count("<svg") == 3 and "<script" not in page and "http" not in page
    assert "79,800,000" in page
    assert "records" in render_report(RunStats("nothing", 0))
    assert bundle([1.0, 5.0, 2.0, 3.0], 2) == [5.0, 3.0] and short(1_234_567) == "1.23 M"


def test_a_report_tells_sinks_and_phases_apart() -> None:
    rounds = [
        RoundStats(2_000, 1.0, 20_000, 48_000, 2, step="lake", rows_out=10_039, phases={"planning": 0.25}),
        RoundStats(3_000, 1.0, 20_000, -1, -1, step="alerts", rows_out=-1, phases={"planning": 0.5}),
    ]
    run = RunStats("pipeline orders", 0, rounds, 4_000, details={"spark_start_s": 12.5})
    page = render_report(run)
    assert "<td>lake</td><td>1</td><td>20,000</td><td>10,039</td><td>2</td><td>0.048</td><td>1.00</td>" in page
    assert "<td>alerts</td><td>1</td><td>20,000</td><td>–</td><td>–</td><td>–</td><td>1.00</td>" in page
    assert "<td>starting Spark</td><td>12.50</td>" in page and "<td>planning</td><td>0.75</td>" in page
    assert "spark_start_s" not in page
    assert "<svg" not in render_report(RunStats("one round", 0, rounds[:1])), "one bar is no plot"
    assert "1 round<" in render_report(RunStats("one round", 0, rounds[:1]))
