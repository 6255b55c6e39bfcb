"""Writes topics from Spark, with `format("moldau")` and with Spark's own Kafka connector, side by side.

    python -m bench.spark_write [--rows 1000000] [--bytes 1024] [--codecs none,zstd] [--repeat 3]
    python -m bench.spark_write --latency [--unix-sockets]

Rows are made by Spark itself, so that only the write is measured: the first row of the table is that job without a
sink. With --latency, streams: how long their micro-batches take. Ratios count: machines are noisy.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moldau.client import Admin, NewTopic, Producer
from tests.interop.nodes import MoldauNode, Node
from tests.spark import connector
from tests.spark.conftest import worker_environment

PAYLOADS = 97
PARTITIONS = 2
DELIVERIES = ("at-least-once", "exactly-once")


def session(unix_sockets: bool) -> Any:
    from pyspark.sql import SparkSession

    os.environ.update(worker_environment())
    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.memory", "2g")
        .config("spark.sql.streaming.pollingDelay", "5ms")
        .config("spark.python.unix.domain.socket.enabled", str(unix_sockets).lower())
        .config("spark.jars", ",".join(str(path) for path in connector.jars()))
    )
    found = builder.getOrCreate()
    found.sparkContext.setLogLevel("ERROR")
    return found


def rows_of(spark: Any, count: int, size: int) -> Any:
    """Text that looks like events: a number, and one of a hundred payloads, which compress about as JSON does."""
    words = [random.Random(number).randbytes(6).hex() for number in range(64)]
    chance = random.Random(7)
    payloads = []
    for _ in range(PAYLOADS):
        text = ""
        while len(text) < size:
            text += f'"{chance.choice(words)}":{chance.randrange(10**6)},'
        payloads.append(text[: size - 12])
    table = ", ".join(f"'{item}'" for item in payloads)
    return spark.range(0, count, 1, PARTITIONS).selectExpr(
        "string(id) AS key", f"binary(concat(lpad(id, 12, '0'), array({table})[int(id % {PAYLOADS})])) AS value"
    )


def make_topic(node: Node, name: str) -> str:
    with Admin(node.bootstrap) as admin:
        admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].get()
    return name


def drop_topic(node: Node, name: str) -> None:
    with Admin(node.bootstrap) as admin:
        admin.delete_topics([name])[name].get()


def timed(work: Callable[[], None]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def write_rows(spark: Any, node: Node, count: int, size: int, codec: str, repeat: int) -> None:
    rows = rows_of(spark, count, size)
    sinks = [("connector", "kafka", {}), *((f"moldau {name}", "moldau", {"delivery": name}) for name in DELIVERIES)]
    seconds: dict[str, list[float]] = {"no sink": [], **{name: [] for name, _, _ in sinks}}
    for turn in range(repeat):
        seconds["no sink"].append(timed(lambda: rows.write.format("noop").mode("append").save()))
        for place, (name, form, options) in enumerate(sinks):
            topic = make_topic(node, f"w-{size}-{codec}-{turn}-{place}")
            given = {
                "kafka.bootstrap.servers": node.bootstrap,
                "topic": topic,
                "kafka.compression.type": codec,
                **options,
            }
            writer = rows.write.format(form).options(**given).mode("append")
            seconds[name].append(timed(writer.save))
            drop_topic(node, topic)
    peer = min(seconds["connector"])
    for name, found in seconds.items():
        best = min(found)
        print(f"{count} x {size} B {codec:5} {name:22} {best:6.2f} s {count / best:10,.0f} rows/s {peer / best:5.2f} x")


def stream_latency(spark: Any, node: Node, batches: int = 25, rows: int = 1_000, rounds: int = 3) -> None:
    """How long micro-batches take from trigger to end, in turn by each source: read only, and from topic to topic."""
    source = make_topic(node, "latency-in")
    with Producer(node.bootstrap) as producer:
        for number in range(batches * rows):
            producer.send(source, b"x" * 200, str(number))
    ways = [
        ("connector, read only", "kafka", None),
        ("moldau, read only", "moldau", None),
        ("connector", "kafka", {}),
        *((f"moldau {delivery}", "moldau", {"delivery": delivery}) for delivery in DELIVERIES),
    ]
    found: dict[str, list[dict[str, int]]] = {name: [] for name, _, _ in ways}
    # The JVM has compiled the paths of both when the second round begins: the first is not counted.
    for turn in range(rounds + 1):
        for place, (name, form, sink) in enumerate(ways):
            measured = micro_batches(spark, node, source, form, sink, f"latency-{turn}-{place}", rows)
            found[name] += measured if turn else []
    for name, measured in found.items():
        times = sorted(row["triggerExecution"] for row in measured)
        print(
            f"micro-batches of {rows} rows, {name:22} median {statistics.median(times):5.0f} ms,"
            f" p95 {times[int(len(times) * 0.95) - 1]:5.0f} ms,"
            f" of which in the batch itself {statistics.median(row.get('addBatch', 0) for row in measured):5.0f} ms"
        )


def micro_batches(
    spark: Any, node: Node, source: str, form: str, sink: dict[str, str] | None, target: str, rows: int
) -> list[dict[str, int]]:
    """One stream to its end, and what Spark says of each of its micro-batches; without a sink, rows are thrown away."""
    server = {"kafka.bootstrap.servers": node.bootstrap}
    stream = (
        spark.readStream.format(form)
        .options(**server, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger=rows)
        .load()
        .selectExpr("key", "value")
        .writeStream
    )
    if sink is None:
        stream = stream.format("noop")
    else:
        stream = stream.format(form).options(**server, topic=make_topic(node, target), **sink)
    with tempfile.TemporaryDirectory() as checkpoint:
        query = stream.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        query.awaitTermination()
        return [row["durationMs"] for row in query.recentProgress if row["numInputRows"]]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--bytes", type=int, default=1024)
    parser.add_argument("--codecs", default="none,zstd")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--latency", action="store_true", help="micro-batches instead of throughput")
    parser.add_argument("--unix-sockets", action="store_true", help="between the JVM and Python, not TCP")
    given = parser.parse_args()
    reason = connector.missing()
    if reason:
        sys.exit(reason)
    with tempfile.TemporaryDirectory() as directory:
        node = MoldauNode(Path(directory) / "node", {"transaction.two.phase.commit.enable": "true"})
        node.format()
        node.start()
        spark = session(given.unix_sockets)
        try:
            if given.latency:
                stream_latency(spark, node)
            for codec in [] if given.latency else given.codecs.split(","):
                write_rows(spark, node, given.rows, given.bytes, codec, given.repeat)
        finally:
            spark.stop()
            node.stop()


if __name__ == "__main__":
    main()
