"""Loads topics into a lake beside Spark's own Kafka connector and Parquet writer: rows a second, same data.

    python -m bench.spark_load [--scale 1.0] [--rounds 2] [--threads 2] [--formats delta,parquet] [--bootstrap-server …]

Topics are those of bench/spark.py: 1 M records of 1 KB and 5 M of 100 bytes, plain and with zstd. Ours is what
`moldau load` does, rows and offsets committed; theirs is `read.format("kafka")` and `write.parquet`, which commits
no offsets. Files are compressed as each does by default: ours with zstd, Spark's with snappy; --compression sets
ours. --threads 1 and --threads 2 show how it scales: one executor thread is one task at a time. Of several rounds
the best counts; ratios count more than numbers, and on a busy machine those of CPU time more than those of time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from bench.spark import LOADS, Load, broker, fill, read, session  # noqa: E402
from tests.spark import connector  # noqa: E402
from tests.spark.jobs import _descendants as descendants  # noqa: E402


def load_ours(spark: Any, server: str, load: Load, directory: str, form: str, given: argparse.Namespace) -> int:
    """One `moldau load --once`; returns the rows in the table."""
    from moldau.lake.load import Load as LakeLoad
    from moldau.lake.load import LoadSettings
    from moldau.lake.tasks import SparkRunner

    options = {"kafka.bootstrap.servers": server, "subscribe": load.name}
    settings = LoadSettings(options, directory, form, parallelism=given.threads, compression=given.compression)
    with LakeLoad(settings, SparkRunner(spark)) as running:
        return sum(done.rows for done in running.run_once())


def load_theirs(spark: Any, server: str, load: Load, directory: str) -> None:
    read(spark, "kafka", server, load.name).write.parquet(directory)


def cpu_seconds() -> float:
    """CPU time of this process and all below it: the JVM, its Python workers. The broker is not among them."""
    total = 0
    for pid in (os.getpid(), *descendants(os.getpid())):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(int(fields[place]) for place in (11, 12, 13, 14))
    return total / os.sysconf("SC_CLK_TCK")


def timed(spark: Any, server: str, load: Load, kind: str, given: argparse.Namespace, place: str) -> tuple[float, float]:
    """(seconds, CPU seconds) of one load into a new table."""
    directory = os.path.join(place, f"{load.name}-{kind}")
    began, cpu = time.perf_counter(), cpu_seconds()
    try:
        if kind == "connector":
            load_theirs(spark, server, load, directory)
        else:
            rows = load_ours(spark, server, load, directory, kind, given)
            assert rows == load.records, f"{kind} has {rows} rows of {load.title}"
        return time.perf_counter() - began, cpu_seconds() - cpu
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def measure(spark: Any, server: str, load: Load, kinds: list[str], given: argparse.Namespace) -> None:
    best = dict.fromkeys(kinds, (float("inf"), float("inf")))
    with tempfile.TemporaryDirectory(prefix="moldau-lake-", dir=given.folder) as place:
        for turn in range(given.rounds + 1):
            for kind in kinds:
                found = timed(spark, server, load, kind, given, place)
                if turn:  # the first one warms up
                    best[kind] = (min(best[kind][0], found[0]), min(best[kind][1], found[1]))
    theirs = best.get("connector", (float("inf"), float("inf")))
    for kind in kinds:
        seconds, cpu = best[kind]
        ratios = " | ".join(
            f"{other / own:.2f}" if "connector" in best else "–" for other, own in zip(theirs, best[kind], strict=True)
        )
        print(
            f"| {load.title} | {given.threads} | {kind} | {seconds:.2f} |"
            f" {load.records / seconds:,.0f} | {cpu:.2f} | {ratios} |",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="a tenth of the records: 0.1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--formats", default="delta,parquet")
    parser.add_argument("--compression", default="zstd", help="of our files")
    parser.add_argument("--topics", default=",".join(load.name for load in LOADS))
    parser.add_argument("--folder", help="where tables are written; default: the system's temporary directory")
    parser.add_argument("--bootstrap-server", help="a broker that has the topics already, or gets them")
    parser.add_argument("--filled", action="store_true", help="the topics are there")
    given = parser.parse_args()
    from moldau import build_info

    print(build_info.describe())
    kinds = [*given.formats.split(","), *(["connector"] if connector.missing() is None else [])]
    loads = [load._replace(records=int(load.records * given.scale)) for load in LOADS if load.name in given.topics]
    with broker(given.bootstrap_server) as server:
        for load in loads if not given.filled else ():
            fill(server, load)
        spark = session(given.threads)
        print("| topic | threads | to | seconds | rows/s | CPU s | × connector | × connector, by CPU |")
        print("|---|---|---|---|---|---|---|---|")
        for load in loads:
            measure(spark, server, load, kinds, given)
        spark.stop()


if __name__ == "__main__":
    main()
