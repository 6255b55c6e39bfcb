"""Loads topics into a lake beside Spark's own Kafka connector and Parquet writer: rows a second, same data.

    python -m bench.spark_load [--scale 1.0] [--rounds 2] [--threads 2] [--formats delta,parquet] [--bootstrap-server …]

Topics are those of bench/spark.py: 1 M records of 1 KB and 5 M of 100 bytes, plain and with zstd. Ours is what
`moldau load` does, rows and offsets committed; theirs is `read.format("kafka")` and `write.parquet`, which commits
no offsets. Files are compressed as each does by default: ours with zstd, Spark's with snappy; --compression sets
ours. --threads 1 and --threads 2 show how it scales: one executor thread is one task at a time. Of several rounds
the best counts; ratios count more than numbers.
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


def load_ours(spark: Any, server: str, load: Load, folder: str, form: str, given: argparse.Namespace) -> int:
    """One `moldau load --once`; returns the rows in the table."""
    from moldau.lake.load import Load as LakeLoad
    from moldau.lake.load import LoadSettings
    from moldau.lake.tasks import SparkRunner

    options = {"kafka.bootstrap.servers": server, "subscribe": load.name}
    settings = LoadSettings(options, folder, form, parallelism=given.threads, compression=given.compression)
    with LakeLoad(settings, SparkRunner(spark)) as running:
        return sum(done.rows for done in running.run_once())


def load_theirs(spark: Any, server: str, load: Load, folder: str) -> None:
    read(spark, "kafka", server, load.name).write.parquet(folder)


def timed(spark: Any, server: str, load: Load, kind: str, given: argparse.Namespace, place: str) -> float:
    folder = os.path.join(place, f"{load.name}-{kind}")
    began = time.perf_counter()
    try:
        if kind == "connector":
            load_theirs(spark, server, load, folder)
        else:
            rows = load_ours(spark, server, load, folder, kind, given)
            assert rows == load.records, f"{kind} has {rows} rows of {load.title}"
        return time.perf_counter() - began
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(spark: Any, server: str, load: Load, kinds: list[str], given: argparse.Namespace) -> None:
    best = dict.fromkeys(kinds, float("inf"))
    with tempfile.TemporaryDirectory(prefix="moldau-lake-", dir=given.folder) as place:
        for _ in range(given.rounds + 1):  # the first one warms up
            for kind in kinds:
                best[kind] = min(best[kind], timed(spark, server, load, kind, given, place))
    theirs = load.records / best["connector"] if "connector" in best else 0.0
    for kind in kinds:
        rate = load.records / best[kind]
        ratio = f"{rate / theirs:.2f}" if theirs else "–"
        print(f"| {load.title} | {given.threads} | {kind} | {best[kind]:.2f} | {rate:,.0f} | {ratio} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="a tenth of the records: 0.1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--formats", default="delta,parquet")
    parser.add_argument("--compression", default="zstd", help="of our files")
    parser.add_argument("--topics", default=",".join(load.name for load in LOADS))
    parser.add_argument("--folder", help="where tables are written; default: the system's temporary folder")
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
        print("| topic | threads | to | seconds | rows/s | against the connector |\n|---|---|---|---|---|---|")
        for load in loads:
            measure(spark, server, load, kinds, given)
        spark.stop()


if __name__ == "__main__":
    main()
