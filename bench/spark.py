"""Batch reads of format("moldau") beside those of Spark's own Kafka connector: rows a second, same data, same session.

    python bench/spark.py [--scale 1.0] [--rounds 3] [--threads 2] [--bootstrap-server HOST:PORT]

Without a server one Moldau is started for the run (MOLDAU_COMMAND names it). Topics of 1 M records of 1 KB and of 5 M
records of 100 bytes, uncompressed and with zstd, are filled and read into Spark's `noop` sink, in turn with the one
and with the other source; rows are counted first, and must be the same. Of several rounds the best counts, as these
machines are noisy; CPU seconds of Spark's processes, JVM and Python together, tell more where others work at the same
time. The connector's jars are those of `tests/spark/connector.py`; without them only our own numbers are shown.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.interop.nodes import MoldauNode  # noqa: E402
from tests.spark import connector  # noqa: E402

PARTITIONS = 2
# Started here, and not part of what is measured.
BROKERS: set[int] = set()


class Load(NamedTuple):
    """One topic to read."""

    name: str
    records: int
    bytes: int
    codec: str

    @property
    def title(self) -> str:
        return f"{self.records / 1e6:g} M × {self.bytes} B, {self.codec}"


LOADS = [
    Load("large-plain", 1_000_000, 1000, "none"),
    Load("large-zstd", 1_000_000, 1000, "zstd"),
    Load("small-plain", 5_000_000, 100, "none"),
    Load("small-zstd", 5_000_000, 100, "zstd"),
]


def values(size: int, rows: int) -> Any:
    """Lines of JSON that compress about as well as events do; no two are the same."""
    import pyarrow as pa

    def line(number: int) -> bytes:
        head = b'{"user":%d,"page":"/item/%d","at":%d,"text":"' % (number * 7919 % 100_003, number * 31 % 977, number)
        body = b"".join(
            b"%x " % (number * place * 2_654_435_761 % 0xFFFF) for place in range(1, (size - len(head)) // 5)
        )
        return (head + body + b"." * size)[: size - 2] + b'"}'

    return pa.array([line(number) for number in range(rows)], pa.binary())


def fill(server: str, load: Load) -> None:
    import pyarrow as pa

    from moldau.client import Admin, NewTopic, Producer

    with Admin(server) as admin:
        admin.create_topics([NewTopic(load.name, PARTITIONS, 1)])[load.name].get()
    rows = 20_000
    column = values(load.bytes, rows)
    keys = pa.array([str(number).encode() for number in range(rows)], pa.binary())
    with Producer(server, compression_type=load.codec, buffer_memory=64 << 20) as producer:
        for start in range(0, load.records, rows):
            count = min(rows, load.records - start)
            partition = pa.array([start // rows % PARTITIONS] * count, pa.int32())
            table = pa.table({"value": column.slice(0, count), "key": keys.slice(0, count), "partition": partition})
            producer.send_arrow(load.name, table)
        producer.flush()


@contextmanager
def broker(given: str | None) -> Iterator[str]:
    if given:
        yield given
        return
    with tempfile.TemporaryDirectory(prefix="moldau-bench-") as directory:
        node = MoldauNode(Path(directory))
        node.format()
        node.start()
        assert node.process is not None
        BROKERS.add(node.process.pid)
        try:
            yield node.bootstrap
        finally:
            node.stop()


def session(threads: int) -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
    builder = SparkSession.builder.master(f"local[{threads}]").config("spark.ui.enabled", "false")
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = builder.config("spark.driver.memory", "3g").config("spark.driver.host", "127.0.0.1")
    jars = ",".join(str(path) for path in connector.jars())
    started = (builder.config("spark.jars", jars) if jars else builder).getOrCreate()
    started.sparkContext.setLogLevel("ERROR")
    return started


def read(spark: Any, source: str, server: str, topic: str) -> Any:
    frame = spark.read.format(source).option("kafka.bootstrap.servers", server).option("subscribe", topic)
    return frame.load()


def cpu_seconds() -> float:
    """CPU time of Spark so far: its JVM and Python processes, without the broker. Tells also on a busy machine."""
    jiffies = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    times: dict[int, float] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        # Ended children of a process count for it.
        parents[int(entry.parent.name)] = int(fields[1])
        times[int(entry.parent.name)] = sum(map(int, fields[11:15])) / jiffies
    found = [pid for pid, parent in parents.items() if parent == os.getpid() and pid not in BROKERS]
    for known in found:
        found += [pid for pid, parent in parents.items() if parent == known]
    return sum(times[pid] for pid in found)


def measure(spark: Any, source: str, server: str, load: Load) -> tuple[float, float]:
    """Seconds and CPU seconds."""
    cpu, start = cpu_seconds(), time.perf_counter()
    read(spark, source, server, load.name).write.format("noop").mode("overwrite").save()
    return time.perf_counter() - start, cpu_seconds() - cpu


def row(load: Load, found: dict[str, list[tuple[float, float]]]) -> str:
    """The best of the rounds, of time and of CPU time."""
    rows = {source: load.records / min(item[0] for item in items) for source, items in found.items()}
    cpu = {source: min(item[1] for item in items) * 1e6 / load.records for source, items in found.items()}
    if "kafka" not in found:
        return f"| {load.title} | {rows['moldau']:,.0f} | – | – | {cpu['moldau']:.2f} | – | – |"
    speed = f"{rows['moldau']:,.0f} | {rows['kafka']:,.0f} | {rows['moldau'] / rows['kafka']:.2f}"
    work = f"{cpu['moldau']:.2f} | {cpu['kafka']:.2f} | {cpu['kafka'] / cpu['moldau']:.2f}"
    return f"| {load.title} | {speed} | {work} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="a tenth of the records: 0.1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--bootstrap-server")
    given = parser.parse_args()
    from moldau import build_info

    print(build_info.describe())
    sources = ["moldau", *(["kafka"] if connector.missing() is None else [])]
    loads = [load._replace(records=int(load.records * given.scale)) for load in LOADS]
    with broker(given.bootstrap_server) as server:
        for load in loads:
            fill(server, load)
        spark = session(given.threads)
        for source in sources:
            for load in loads:  # also warms up both
                found = read(spark, source, server, load.name).count()
                assert found == load.records, f"{source} counts {found} rows in {load.title}"
        print("| topic | moldau rows/s | connector rows/s | ratio | CPU s/M rows | connector | ratio |")
        print("|---|---|---|---|---|---|---|")
        for load in loads:
            found: dict[str, list[tuple[float, float]]] = {source: [] for source in sources}
            for _ in range(given.rounds):
                for source in sources:
                    found[source].append(measure(spark, source, server, load))
            print(row(load, found), flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
