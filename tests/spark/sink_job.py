"""A program with one stream from topic to topic, exactly once; the tests start it, kill it and start it again."""

from __future__ import annotations

import json
import sys
from typing import Any


def session(settings: dict[str, Any]) -> Any:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(settings["master"]).appName("moldau-sink-job")
    for name, value in settings.get("spark", {}).items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def main() -> None:
    settings = json.loads(sys.argv[1])
    spark = session(settings)
    spark.sparkContext.setLogLevel("ERROR")
    source = {
        "kafka.bootstrap.servers": settings["bootstrap"],
        "subscribe": settings["source"],
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": str(settings["rows_per_batch"]),
    }
    target = {
        "kafka.bootstrap.servers": settings["bootstrap"],
        "topic": settings["target"],
        "delivery": "exactly-once",
        "checkpointLocation": settings["checkpoint"],
        **settings.get("sink", {}),
    }
    rows = spark.readStream.format("moldau").options(**source).load()
    # Behind a shuffle, so that a lost executor makes Spark run stages again, not only tasks.
    moved = rows.selectExpr("key", "value").repartition(3)
    query = moved.writeStream.format("moldau").options(**target).start()
    print("started", query.id, flush=True)
    seen = -1
    while not query.awaitTermination(1):
        progress = query.lastProgress
        if progress is not None and progress["batchId"] > seen:
            seen = progress["batchId"]
            print(f"batch {seen}: {progress['numInputRows']} rows, {dict(progress['durationMs'])}", flush=True)


if __name__ == "__main__":
    main()
