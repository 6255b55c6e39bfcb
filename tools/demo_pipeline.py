"""The last part of `make demo`: events to a lake table and counts back to a topic, exactly once, through Spark.

What a user would type is run as it would be typed: a pipeline in TOML, `moldau pipeline run`. It runs twice; the
second run takes only what came after the first. The first one leaves Spark's classes in an archive, from which Java
starts in half the time.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from demo_broker import MOLDAU, console, say, start, stop
from demo_steps import members_of

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import ClientError

EVENTS = 100_000
PAGES = {"/": 40, "/search": 25, "/item": 20, "/cart": 10, "/checkout": 5}
BAR_WIDTH = 40
RUN_SECONDS_MAX = 300
LINE_SECONDS = 5
# A run of seconds is over before Java's second compiler and its parallel collector pay for themselves.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

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


def main() -> int:
    folder, archive = Path.cwd(), Path(sys.argv[1])
    broker: subprocess.Popen[str] | None = None
    try:
        broker, server, _ = start(folder, quiet=True)
        show_pipeline(server, folder, archive)
        return 0 if stop(broker) == 0 else 1
    except (ClientError, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        console.print(f"[red]the demo failed:[/] {error}")
        return 1
    finally:
        if broker is not None:
            broker.kill()
            broker.wait()


def show_pipeline(server: str, folder: Path, archive: Path) -> None:
    """Raises RuntimeError if any record is missing or there twice."""
    say("Now the lake", "moldau pipeline run clicks.toml: a Delta table and a topic, exactly once, through Spark")
    text = PIPELINE.format(server=server).strip()
    (folder / "clicks.toml").write_text(text)
    console.print(
        f"  clicks.toml has {len(text.splitlines())} lines: topic clicks to table lake/clicks, and back to a topic"
    )
    console.print("  [dim]SELECT page, count(*) FROM clicks GROUP BY page[/]")
    with Admin(server) as admin:
        admin.create_topics([NewTopic("clicks", 4), NewTopic("clicks-per-page", 1)])
    expected: Counter[str] = Counter()
    for run in (1, 2):
        expected += produce(server, run)
        console.print(f"  run {run}: {EVENTS:,} new events are in the topic, Spark starts")
        took = run_pipeline(folder, archive)
        rows, places = read_lake(folder / "lake" / "clicks")
        if rows != expected.total() or places != rows:
            raise RuntimeError(f"{expected.total()} events were sent, the lake has {rows} rows of {places} offsets")
        console.print(f"  run {run}: [bold]{rows:,}[/] rows in the lake, each offset once   {took:.1f} s in all")
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


def run_pipeline(folder: Path, archive: Path) -> float:
    """Runs it as a user would, with options that make a small run short, and says that it still runs."""
    began = time.perf_counter()
    kept = archive.exists()
    if not kept:
        console.print("  [dim]this run leaves Spark's classes in an archive: the next start is shorter[/]")
    unfinished = archive.with_suffix(".new")
    option = f"-XX:SharedArchiveFile={archive}" if kept else f"-XX:ArchiveClassesAtExit={unfinished}"
    settings = ["--spark-conf", f"spark.driver.extraJavaOptions={JAVA_OPTIONS} {option}"]
    command = [*MOLDAU, "pipeline", "run", "clicks.toml", "--once", "--quiet", "--report", "clicks.html", *settings]
    with (folder / "run.log").open("w") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
        while True:
            try:
                code = running.wait(LINE_SECONDS)
                break
            except subprocess.TimeoutExpired:
                console.print(f"  [dim]… {time.perf_counter() - began:.0f} s[/]")
                if time.perf_counter() - began > RUN_SECONDS_MAX:
                    running.kill()
                    raise
    if code:
        raise RuntimeError(f"the pipeline ended with {code}: {(folder / 'run.log').read_text().strip()[-800:]}")
    took = time.perf_counter() - began
    wait_for_java()
    if not kept and unfinished.exists():
        unfinished.replace(archive)
    return took


def wait_for_java() -> None:
    """Java ends after the command that started it, and writes its archive then; the next run is not to meet it."""
    began = time.perf_counter()
    while any(is_java(pid) for pid in members_of({os.getsid(0)})):
        time.sleep(0.1)
        if time.perf_counter() - began > RUN_SECONDS_MAX:
            raise RuntimeError("Java does not end")


def is_java(pid: int) -> bool:
    command = subprocess.run(["ps", "-o", "comm=", "-p", str(pid)], capture_output=True, text=True)
    return command.stdout.strip().endswith("java")


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


if __name__ == "__main__":
    sys.exit(main())
