"""Reads on a real Spark cluster, one master and two workers, while executors are killed: every record arrives once.

Takes a minute, so that it runs where MOLDAU_SPARK_CLUSTER is 1.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.nodes import Node
from tests.pace import patience
from tests.spark import topics
from tests.spark.conftest import missing, running
from tests.spark.jobs import Job, StandaloneCluster, kill_one

pytestmark = [
    pytest.mark.interop,
    pytest.mark.skipif(os.environ.get("MOLDAU_SPARK_CLUSTER") != "1", reason="MOLDAU_SPARK_CLUSTER is not 1"),
]
RECORDS = 40_000
SECONDS_MAX = patience(300)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[StandaloneCluster]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    started = StandaloneCluster(tmp_path / "cluster")
    started.start()
    yield started
    started.stop()


def rows(folder: Path) -> list[dict[str, Any]]:
    """What the file sink says is there: its log leaves out files of tasks that ran twice."""
    import json

    from pyarrow import parquet

    log = folder / "_spark_metadata"
    if log.is_dir():
        # Each tenth entry is called .compact, and has all before it.
        parts = [path for path in log.iterdir() if path.name.removesuffix(".compact").isdigit()]
        lines = {line for path in parts for line in path.read_text().splitlines()[1:]}
        files = [Path(json.loads(line)["path"].removeprefix("file://")) for line in lines]
    else:
        files = list(folder.glob("*.parquet"))
    return [row for path in files for row in parquet.read_table(path).to_pylist()]


def check(found: list[dict[str, Any]]) -> None:
    numbers = Counter(int(row["value"]) for row in found)
    assert [number for number in range(RECORDS) if numbers[number] != 1] == []
    assert len(found) == RECORDS


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Node]:
    from tests.interop.nodes import MoldauNode

    yield from running(MoldauNode(tmp_path / "node"))


def test_records_arrive_once_on_a_cluster_whose_executors_are_killed(
    broker: Node, cluster: StandaloneCluster, tmp_path: Path
) -> None:
    topics.create(broker, "in", 2)
    topics.fill(broker, "in", topics.numbers(0, RECORDS), None)
    folders = {name: str(tmp_path / name) for name in ("batch", "stream", "checkpoint")}
    settings = {
        "master": cluster.url,
        "bootstrap": broker.bootstrap,
        "topic": "in",
        "rows_per_batch": "4000",
        **folders,
    }
    job = Job("tests.spark.read_job", settings, tmp_path / "job.log")
    job.start()
    chance = random.Random(7)
    kills = 0
    try:
        deadline = time.monotonic() + SECONDS_MAX
        job.wait_for("streaming")
        while job.alive:
            assert time.monotonic() < deadline, job.output()[-3000:]
            # Workers of the pipeline's own language and whole executors, a few times each.
            victims = cluster.executors() if kills % 2 else cluster.python_workers()
            if kills < 4 and kill_one(victims, chance):
                kills += 1
            time.sleep(2)
    finally:
        job.kill()
    assert "done" in job.output(), job.output()[-3000:]
    assert kills >= 2
    check(rows(tmp_path / "batch"))
    check(rows(tmp_path / "stream"))
