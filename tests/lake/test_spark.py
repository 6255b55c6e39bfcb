"""Loads, replays, pipelines and the examples on a real Spark with two local threads."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Producer
from moldau.lake.api import load_topics, replay_table, table_frame
from moldau.lake.errors import LakeError
from moldau.lake.lock import WriterLock
from moldau.lake.open_table import open_table
from moldau.lake.pipeline_file import read_pipeline
from moldau.lake.pipeline_run import run_pipeline
from moldau.lake.reading import read_table
from moldau.lake.run_log import RunLog
from tests.interop.nodes import RECENT_MS, MoldauNode
from tests.lake.conftest import MakeTopic, Topic
from tests.lake.kill_runs import read_topic

ROOT = Path(__file__).resolve().parent.parent.parent

if shutil.which("java") is None:
    pytest.skip("Java is missing: install a Java 17 (or newer) runtime", allow_module_level=True)


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    from moldau.lake.session import start_session
    from tests.spark.conftest import worker_environment

    # Which Python workers run is for the session to choose: it is part of what is tested.
    os.environ.update({name: value for name, value in worker_environment().items() if name != "PYSPARK_PYTHON"})
    settings = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    session = start_session("local[2,4]", "moldau-lake-tests", {**settings, "spark.sql.streaming.pollingDelay": "20ms"})
    yield session
    session.stop()


@pytest.mark.parametrize("format_name", ["delta", "iceberg", "parquet"])
def test_spark_loads_and_reads_tables(spark: Any, make_topic: MakeTopic, lake: str, format_name: str) -> None:
    topic = make_topic(3)
    topic.send(40)
    for _ in range(2):
        load_topics(
            topic.name,
            lake,
            bootstrap_servers=topic.bootstrap,
            format=format_name,
            partition_by=["date"],
            options={"includeHeaders": "true"},
        )
        topic.send(5)
    load_topics(topic.name, lake, bootstrap_servers=topic.bootstrap, options={"includeHeaders": "true"})
    frame = table_frame(lake)
    rows = frame.select("partition", "key", "headers").collect()
    assert sorted((row["partition"], bytes(row["key"])) for row in rows) == topic.expected()
    assert all(bytes(row["headers"][0]["value"]) in bytes(row["key"]) for row in rows)


def test_rows_go_back_with_their_keys_times_and_partitions(
    spark: Any, make_topic: MakeTopic, node: MoldauNode, lake: str
) -> None:
    topic, again = make_topic(2), make_topic(2)
    topic.send(20)
    load_topics(topic.name, lake, bootstrap_servers=node.bootstrap, options={"includeHeaders": "true"})
    start, end = (datetime.fromtimestamp((RECENT_MS + ms) / 1000, UTC) for ms in (5_000, 15_000))
    given = {"bootstrap_servers": node.bootstrap, "start": start, "end": end, "run_id": f"run-{again.name}"}
    assert replay_table(lake, again.name, **given) == 20
    assert replay_table(lake, again.name, **given) == 20
    whole = [row for row in read_topic(node.bootstrap, topic.name, 2) if 5 <= row[1] < 15]
    found = read_topic(node.bootstrap, again.name, 2)
    assert [(row[0], row[2], row[3]) for row in found] == [(row[0], row[2], row[3]) for row in whole]
    load_topics(again.name, f"{lake}-again", bootstrap_servers=node.bootstrap, options={"includeHeaders": "true"})
    columns = ["partition", "key", "value", "timestamp", "headers"]
    before = read_table(open_table(lake), [*columns, "offset"]).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    after = read_table(open_table(f"{lake}-again"), [*columns, "offset"])
    after = after.sort_by([("partition", "ascending"), ("offset", "ascending")])
    kept = [row for row in before.to_pylist() if 5 <= row["offset"] < 15]
    assert [{name: row[name] for name in columns} for row in after.to_pylist()] == [
        {name: row[name] for name in columns} for row in kept
    ]


PIPELINE = """
[pipeline]
name = "orders"
[kafka]
bootstrap.servers = "{bootstrap}"
[sources.orders]
topic = "{orders}"
value_format = "json"
value_schema = "id BIGINT, customer STRING, amount DOUBLE"
[sources.customers]
table = "customers"
[sources.countries]
files = "countries.csv"
format = "csv"
options = {{ header = "true" }}
[[steps]]
name = "rich"
sql = '''SELECT o.value.id, o.value.amount, n.name AS country, o.timestamp FROM orders o
    JOIN customers c ON c.customer = o.value.customer JOIN countries n ON n.code = c.country'''
[[steps]]
name = "large"
python = "steps.py:large"
inputs = ["rich"]
[[sinks]]
name = "all"
from = "orders"
table = "all"
[[sinks]]
name = "rich"
from = "rich"
table = "rich"
format = "parquet"
partition_by = ["country"]
[[sinks]]
name = "alerts"
from = "large"
topic = "{alerts}"
[[steps]]
name = "counts"
sql = "SELECT value.customer AS key, string(count(*)) AS value FROM orders GROUP BY value.customer"
[[sinks]]
name = "counts"
from = "counts"
topic = "{counts}"
mode = "update"
"""
STEPS = """
from pyspark.sql import functions as f

def large(rich):
    value = f.to_json(f.struct("id", "country"))
    return rich.where("amount >= 50").select(f.col("id").cast("string").alias("key"), value.alias("value"))
"""


def send_orders(topic: Topic, first: int, behind: int) -> None:
    with Producer(topic.bootstrap) as producer:
        for number in range(first, behind):
            order = {"id": number, "customer": f"c{number % 3}", "amount": number % 100}
            producer.send(topic.name, json.dumps(order).encode(), b"%d" % number)


@pytest.fixture
def pipeline(tmp_path: Path, make_topic: MakeTopic, node: MoldauNode) -> tuple[str, Topic, Topic, Topic]:
    orders, customers, alerts, counts = make_topic(2), make_topic(1), make_topic(2), make_topic(1)
    with Producer(node.bootstrap) as producer:
        for number in range(3):
            customer = {"customer": f"c{number}", "country": ("AT", "CZ", "DE")[number]}
            producer.send(customers.name, json.dumps(customer).encode(), b"c%d" % number)
    load_topics(
        customers.name,
        str(tmp_path / "customers"),
        bootstrap_servers=node.bootstrap,
        options={"valueFormat": "json", "valueSchema": "customer STRING, country STRING"},
    )
    (tmp_path / "countries.csv").write_text("code,name\nAT,Österreich\nCZ,Česko\nDE,Deutschland\n")
    (tmp_path / "steps.py").write_text(STEPS)
    file = tmp_path / "orders.toml"
    file.write_text(
        PIPELINE.format(bootstrap=node.bootstrap, orders=orders.name, alerts=alerts.name, counts=counts.name)
    )
    return str(file), orders, alerts, counts


def test_a_pipeline_from_topics_tables_and_files_to_tables_and_topics(
    spark: Any, pipeline: tuple[str, Topic, Topic, Topic], tmp_path: Path, node: MoldauNode
) -> None:
    """Two runs, the second begins with a batch of the first; each order is in every sink once, with what was joined."""
    file, orders, alerts, counts = pipeline
    for run in range(2):
        send_orders(orders, run * 150, run * 150 + 150)
        if run:
            forget_last_batch(tmp_path / "orders.state" / "checkpoints")
        log = run_patiently(file, spark)
        assert {item.step for item in log.stats.rounds} == {"all", "rich", "alerts", "counts"}
        if not run:
            check_counts(log, tmp_path)
    everything = read_table(open_table(str(tmp_path / "all"))).to_pylist()
    assert sorted(row["id"] for row in everything) == list(range(300))
    rich = read_table(open_table(str(tmp_path / "rich"))).to_pylist()
    countries = ("Österreich", "Česko", "Deutschland")
    assert sorted((row["id"], row["country"]) for row in rich) == [(n, countries[n % 3]) for n in range(300)]
    found = sorted(int(key) for _, _, key, _ in read_topic(node.bootstrap, alerts.name, 2))
    assert found == [number for number in range(300) if number % 100 >= 50]
    written: dict[str, list[int]] = {}
    for _, _, key, value in read_topic(node.bootstrap, counts.name, 1):
        written.setdefault(key.decode(), []).append(int(value))
    assert {key: values[-1] for key, values in written.items()} == {"c0": 100, "c1": 100, "c2": 100}
    assert all(values == sorted(set(values)) for values in written.values())
    check_refusals(file, spark, tmp_path)


def check_counts(log: RunLog, tmp_path: Path) -> None:
    """What went in and out, sink by sink, and where the time went."""
    sinks = log.stats.sinks()
    assert {name: sink.rows_out for name, sink in sinks.items()} == {"all": 150, "rich": 150, "alerts": 50, "counts": 3}
    for name in ("all", "rich"):
        files = list(open_table(str(tmp_path / name)).files())
        assert (sinks[name].files, sinks[name].bytes) == (len(files), sum(file.size for file in files))
    assert sinks["alerts"].files == -1 and sinks["alerts"].bytes > 50 * len("50{}")
    assert sinks["rich"].rows >= 150 and {"planning", "reading and writing"} <= set(log.stats.phases)


def forget_last_batch(checkpoints: Path) -> None:
    """As if the driver had been killed after the sinks' commits and before Spark's own: the batch is run again."""
    for sink in ("rich", "alerts", "counts"):
        commits = checkpoints / sink / "commits"
        last = max(int(place.name) for place in commits.iterdir() if place.name.isdigit())
        (commits / str(last)).unlink()
        (commits / f".{last}.crc").unlink(missing_ok=True)


def run_patiently(file: str, spark: Any) -> RunLog:
    """On a busy machine Spark gives up on Python workers that take ten seconds to start; it is simply run again."""
    for _ in range(20):
        try:
            return run_pipeline(read_pipeline(file), spark)
        except LakeError as error:
            if "Python worker" not in str(error):
                raise
    raise AssertionError("this machine is too busy to start a process in ten seconds")


def check_refusals(file: str, spark: Any, tmp_path: Path) -> None:
    """The second run at once, and a table whose checkpoint is gone."""
    told = read_pipeline(file)
    with (
        WriterLock(told.state, "a run of pipeline orders"),
        pytest.raises(LakeError, match="in use by a run of pipeline"),
    ):
        run_pipeline(told, spark)
    shutil.rmtree(Path(told.state) / "checkpoints" / "rich")
    with pytest.raises(LakeError, match="from a checkpoint that is gone"):
        run_pipeline(told, spark)
    assert len(read_table(open_table(str(tmp_path / "rich")))) == 300


def run_example(name: str, node: MoldauNode, *arguments: str) -> None:
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, ROOT / "examples" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    module.main(["--bootstrap-server", node.bootstrap, *arguments])


def test_the_examples_run(spark: Any, node: MoldauNode, lake: str, capfd: pytest.CaptureFixture[str]) -> None:
    run_example("clickstream_to_lake", node, "--to", f"{lake}/clicks", "--count", "500")
    assert "1000 clicks in the lake" in capfd.readouterr().out
    run_example("cdc_to_table", node, "--to", f"{lake}/customers", "--changes", "400")
    assert "they are the same" in capfd.readouterr().out
    run_example("lake_backfill", node, "--to", f"{lake}/readings")
    told = capfd.readouterr().out
    assert "4320 readings loaded" in told and "1440 readings in readings-again, from minute 60 to 119" in told


def test_an_unknown_topic_is_told_in_a_sentence(spark: Any, node: MoldauNode, lake: str) -> None:
    from moldau.spark.lookup import ReadError

    with pytest.raises(ReadError, match="Topic nowhere does not exist"):
        load_topics("nowhere", lake, bootstrap_servers=node.bootstrap)
