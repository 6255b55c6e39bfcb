"""A program with one batch read and one stream into files; the tests run it on a Spark cluster."""

from __future__ import annotations

import json
import sys

from tests.spark.sink_job import session


def main() -> None:
    settings = json.loads(sys.argv[1])
    spark = session(settings)
    spark.sparkContext.setLogLevel("ERROR")
    source = {"kafka.bootstrap.servers": settings["bootstrap"], "subscribe": settings["topic"]}
    batch = spark.read.format("moldau").options(**source, minPartitions="6").load()
    batch.select("partition", "offset", "value").write.mode("overwrite").parquet(settings["batch"])
    limits = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": settings["rows_per_batch"], "minPartitions": "4"}
    stream = spark.readStream.format("moldau").options(**source, **limits).load()
    writer = stream.select("partition", "offset", "value").writeStream.format("parquet")
    query = writer.options(path=settings["stream"], checkpointLocation=settings["checkpoint"])
    print("streaming", flush=True)
    query.trigger(availableNow=True).start().awaitTermination()
    print("done", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
