"""The second half of `make demo`: events to a lake table and counts back to a topic, exactly once, through Spark.

What a user would type is run as it would be typed: a pipeline in TOML, `moldau pipeline run`. It runs twice; the
second run takes only what came after the first.
"""

from __future__ import annotations

import json
import random
import subprocess
import time
from collections import Counter
from pathlib import Path

from rich.console import Console

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition

EVENTS = 100_000
PAGES = {"/": 40, "/search": 25, "/item": 20, "/cart": 10, "/checkout": 5}
BAR_WIDTH = 40
RUN_SECONDS_MAX = 180

PIPELINE = """
[pipeline]
name = "clicks"

[kafka]
"bootstrap.servers" = "{server}"

[spark]
"spark.sql.shuffle.partitions" = "4"

[sources.clicks]
topic = "clicks"
value_format = "json"
value_schema = "user BIGINT, page STRING"

[[steps]]
name = "counts"
sql = "SELECT value.page AS key, string(count(*)) AS value FROM clicks GROUP BY value.page"

[[sinks]]
name = "lake"
from = "clicks"
table = "lake/clicks"
format = "delta"

[[sinks]]
name = "per_page"
from = "counts"
topic = "clicks-per-page"
mode = "update"
"""


def show_pipeline(console: Console, command: str, server: str, folder: Path) -> None:
    """Raises RuntimeError if any record is missing or there twice."""
    console.print(PIPELINE.format(server=server).strip(), style="dim", markup=False)
    (folder / "clicks.toml").write_text(PIPELINE.format(server=server))
    with Admin(server) as admin:
        admin.create_topics([NewTopic("clicks", 4), NewTopic("clicks-per-page", 1)])
    expected: Counter[str] = Counter()
    for run in (1, 2):
        expected += produce(server, run)
        took = run_pipeline(command, folder)
        rows, places = read_lake(folder / "lake" / "clicks")
        if rows != expected.total() or places != rows:
            raise RuntimeError(f"{expected.total()} events were sent, the lake has {rows} rows of {places} offsets")
        console.print(
            f"  run {run}: [bold]{rows:,}[/] rows in the lake, each offset once   {took:.1f} s, Spark's start included"
        )
    counts = read_counts(server)
    if counts != expected:
        raise RuntimeError(f"the topic says {counts}, sent were {expected}")
    console.print(
        "\n[bold cyan]clicks-per-page[/]  [dim]written back by the pipeline in transactions, equal to what was sent[/]"
    )
    for page, count in counts.most_common():
        console.print(f"  {page:12} {'█' * round(BAR_WIDTH * count / max(counts.values())):{BAR_WIDTH}} {count:>8,}")


def produce(server: str, seed: int) -> Counter[str]:
    chance = random.Random(seed)
    pages = chance.choices(list(PAGES), list(PAGES.values()), k=EVENTS)
    events = [json.dumps({"user": chance.randrange(1000), "page": page}).encode() for page in pages]
    with Producer(server) as producer:
        producer.send_many("clicks", events)
    return Counter(pages)


def run_pipeline(command: str, folder: Path) -> float:
    began = time.perf_counter()
    run = [command, "pipeline", "run", "clicks.toml", "--once", "--quiet", "--report", "clicks.html"]
    ended = subprocess.run(run, cwd=folder, capture_output=True, text=True, timeout=RUN_SECONDS_MAX)
    if ended.returncode:
        raise RuntimeError(f"the pipeline ended with {ended.returncode}: {ended.stderr.strip()[-800:]}")
    return time.perf_counter() - began


def read_lake(path: Path) -> tuple[int, int]:
    """Rows, and different offsets among them."""
    from deltalake import DeltaTable

    table = DeltaTable(str(path)).to_pyarrow_table(columns=["partition", "offset"])
    places = set(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))
    return table.num_rows, len(places)


def read_counts(server: str) -> Counter[str]:
    """The last count of each page, as somebody who reads only committed records sees it."""
    counts: Counter[str] = Counter()
    partition = TopicPartition("clicks-per-page", 0)
    with Consumer(server, isolation_level="read_committed") as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([partition])[partition]
        while consumer.position(partition) < end:
            for record in consumer.poll(1000):
                counts[(record.key or b"").decode()] = int(record.value or b"0")
    return counts
