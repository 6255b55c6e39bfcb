"""The last part of `make demo`: events to a lake table and counts back to a topic, exactly once, through Spark.

What `moldau pipeline run clicks.toml` does, from Python: a program that starts Spark once and runs the pipeline twice.
The second run takes only what came after the first. When everything has been shown, Java leaves Spark's classes in an
archive, from which the next demo starts in half the time.

    python demo_pipeline.py ARCHIVE [FILE]     starts Spark at once, and goes on when FILE is there
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Any

from demo_broker import console, say, start, stop

from moldau.client import Admin, Consumer, NewTopic, Producer, TopicPartition
from moldau.client.errors import ClientError
from moldau.lake.errors import LakeError

EVENTS = 100_000
PAGES = {"/": 40, "/search": 25, "/item": 20, "/cart": 10, "/checkout": 5}
BAR_WIDTH = 40
LINE_SECONDS = 3
OUTPUT_SHOWN = 800
JAVA_SECONDS_MAX = 300
# A run of seconds is over before Java's second compiler and its parallel collector pay for themselves.
JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

PIPELINE = """
[pipeline]
name = "clicks"

[kafka]
"bootstrap.servers" = "{server}"

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
    directory, archive = Path.cwd(), Path(sys.argv[1])
    broker: subprocess.Popen[str] | None = None
    keep_to_ourselves(directory / "spark.log")
    spark = SparkStart(archive)
    try:
        if len(sys.argv) > 2:
            wait_for_file(Path(sys.argv[2]))
        broker, server, _ = start(directory, quiet=True)
        show_pipeline(server, directory, spark)
        code = stop(broker)
        broker = None
        spark.end()
        return 0 if code == 0 else 1
    except (ClientError, LakeError, OSError, RuntimeError, subprocess.TimeoutExpired) as error:
        console.print(f"[red]the demo failed:[/] {error}")
        console.print((directory / "spark.log").read_text(errors="replace").strip()[-OUTPUT_SHOWN:], markup=False)
        return 1
    finally:
        if broker is not None:
            broker.kill()
            broker.wait()


def keep_to_ourselves(log: Path) -> None:
    """What Java and Spark's workers print, on both channels, is for those who look for the reason of a failure."""
    screen = os.dup(1)
    with log.open("wb", buffering=0) as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    sys.stdout = os.fdopen(screen, "w", buffering=1, encoding="utf-8")


def wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.05)


class SparkStart:
    """Starts Spark in a thread: the events are made meanwhile, and what the runs need is imported."""

    def __init__(self, archive: Path) -> None:
        self._archive = archive
        self._kept = archive.exists()
        self._unfinished = archive.with_suffix(".new")
        self._session: Any = None
        self._failure: Exception | None = None
        self._began = time.perf_counter()
        self._seconds = 0.0
        self._thread = threading.Thread(target=self._start, daemon=True)
        self._thread.start()

    def _start(self) -> None:
        from moldau.lake.session import start_session

        option = "SharedArchiveFile" if self._kept else "ArchiveClassesAtExit"
        archive = self._archive if self._kept else self._unfinished
        settings = {
            "spark.driver.extraJavaOptions": f"{JAVA_OPTIONS} -XX:{option}={archive}",
            "spark.sql.shuffle.partitions": "2",
        }
        try:
            self._session = start_session(None, "moldau demo", settings)
        except Exception as failure:
            self._failure = failure
        self._seconds = time.perf_counter() - self._began

    def wait(self) -> tuple[Any, float]:
        """The session, and how long Spark took to start."""
        self._thread.join()
        if self._failure is not None:
            raise RuntimeError(f"Spark does not start: {self._failure}")
        return self._session, self._seconds

    def end(self) -> None:
        """Has Java leave its archive if there was none; otherwise it ends when this process does."""
        if self._kept:
            return
        java = self._session.sparkContext._gateway.proc
        console.print("\n  Java leaves Spark's classes in an archive: the next demo is shorter (Ctrl-C skips this)")
        with Ticking("archive"):
            self._session.stop()
            java.stdin.close()
            java.wait(JAVA_SECONDS_MAX)
        if self._unfinished.exists():
            self._unfinished.replace(self._archive)


class Ticking:
    """Says every few seconds that something still runs."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def _tick(self) -> None:
        began = time.perf_counter()
        while not self._over.wait(LINE_SECONDS):
            console.print(f"  [dim]{self._what}: … {time.perf_counter() - began:.0f} s[/]")

    def __enter__(self) -> Ticking:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()


def show_pipeline(server: str, directory: Path, spark: SparkStart) -> None:
    """Raises RuntimeError if any record is missing or there twice."""
    from moldau.lake.pipeline_file import read_pipeline
    from moldau.lake.pipeline_run import run_pipeline

    say("Now the lake", "a pipeline into a Delta table and a topic, exactly once, through Spark")
    text = PIPELINE.format(server=server).strip()
    (directory / "clicks.toml").write_text(text)
    console.print(
        f"  clicks.toml has {len(text.splitlines())} lines: topic clicks to table lake/clicks, and back to a topic"
    )
    console.print("  [dim]SELECT page, count(*) FROM clicks GROUP BY page[/]")
    console.print("  on a command line: moldau pipeline run clicks.toml; here it runs twice in one Spark")
    with Admin(server) as admin:
        admin.create_topics([NewTopic("clicks", 4), NewTopic("clicks-per-page", 1)])
    expected: Counter[str] = produce(server, 1)
    pipeline = read_pipeline(str(directory / "clicks.toml"))
    with Ticking("Spark starts"):
        session, seconds = spark.wait()
    console.print(f"  Spark is there                 {seconds:.1f} s after its process began")
    for run in (1, 2):
        if run > 1:
            expected += produce(server, run)
        console.print(f"  run {run}: {EVENTS:,} new events are in the topic")
        began = time.perf_counter()
        with Ticking(f"run {run}"):
            run_pipeline(pipeline, session)
        took = time.perf_counter() - began
        rows, places = read_lake(directory / "lake" / "clicks")
        if rows != expected.total() or places != rows:
            raise RuntimeError(f"{expected.total()} events were sent, the lake has {rows} rows of {places} offsets")
        console.print(f"  run {run}: [bold]{rows:,}[/] rows in the lake, each offset once   {took:.1f} s")
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
