"""Counts per minute from one topic back to another, exactly once: two streams joined, a watermark, windows.

Views of pages and clicks on them arrive in two topics, out of order and some of them late. A click belongs to the view
with the same id if it came within a minute of it; for each page and minute the views that were clicked are counted, and
the counts go to a third topic once no event of that minute is expected any more.

    pip install 'moldau[spark]'
    moldau topic create views clicks counts
    python examples/windowed_counts.py --checkpoint checkpoints/counts

Events are JSON: {"view": 7, "page": "/home", "time": "2026-01-01T12:00:03Z"} is a view, and a click has no page.
Stop and kill it whenever you like and start it again with the same checkpoint: each count is in the topic once. Readers
need isolation.level=read_committed.
"""

from __future__ import annotations

import argparse
from typing import Any

from pyspark.sql import SparkSession, functions

DELAY = "10 seconds"
VIEW = "view LONG, page STRING, time TIMESTAMP"
CLICK = "view LONG, time TIMESTAMP"


def events(spark: SparkSession, bootstrap: str, topic: str, schema: str, prefix: str) -> Any:
    """A topic of JSON as a stream of columns, with a watermark on its time."""
    rows = (
        spark.readStream.format("moldau")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.isolation.level", "read_committed")
        .option("subscribe", topic)
        .option("startingOffsets", "earliest")
        .load()
    )
    event = rows.select(functions.from_json(rows.value.cast("string"), schema).alias("event")).select("event.*")
    names = [functions.col(name).alias(f"{prefix}_{name}") for name in event.columns]
    return event.select(*names).withWatermark(f"{prefix}_time", DELAY)


def count_clicked_views(views: Any, clicks: Any) -> Any:
    """Keys and values of the target topic."""
    joined = views.join(
        clicks,
        functions.expr(
            "view_view = click_view AND click_time >= view_time AND click_time <= view_time + INTERVAL 1 MINUTE"
        ),
    )
    counts = joined.groupBy(functions.window("view_time", "1 minute"), "view_page").count()
    return counts.selectExpr(
        "view_page AS key",
        "to_json(struct(view_page AS page, string(window.start) AS minute, count)) AS value",
    )


def start(
    spark: SparkSession, bootstrap: str, views: str, clicks: str, counts: str, checkpoint: str, once: bool
) -> Any:
    rows = count_clicked_views(
        events(spark, bootstrap, views, VIEW, "view"), events(spark, bootstrap, clicks, CLICK, "click")
    )
    writer = (
        rows.writeStream.format("moldau")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("topic", counts)
        .option("delivery", "exactly-once")
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
    )
    return (writer.trigger(availableNow=True) if once else writer.trigger(processingTime="1 second")).start()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--bootstrap", default="localhost:9092")
    parser.add_argument("--views", default="views")
    parser.add_argument("--clicks", default="clicks")
    parser.add_argument("--counts", default="counts")
    parser.add_argument("--checkpoint", required=True, help="a directory that stays: where the query has got to")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--once", action="store_true", help="what is there now, and no more")
    given = parser.parse_args()
    spark = SparkSession.builder.master(given.master).appName("windowed-counts").getOrCreate()
    query = start(spark, given.bootstrap, given.views, given.clicks, given.counts, given.checkpoint, given.once)
    query.awaitTermination()


if __name__ == "__main__":
    main()
