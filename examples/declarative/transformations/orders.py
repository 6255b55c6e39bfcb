"""Orders from a topic: a streaming table, what each customer spent, and a topic of the large ones.

Spark runs this file; `spark` is the session of the pipeline. A run takes what is there and ends. The table is Spark's:
it is as exact as Spark's file sink is. The topic is written exactly once; its readers need read_committed.
"""

from __future__ import annotations

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession, functions

session = SparkSession.active()
BOOTSTRAP = session.conf.get("moldau.example.bootstrap")
ORDER = "id LONG, customer STRING, amount DOUBLE"

dp.create_sink(
    "large_orders",
    format="moldau",
    options={"kafka.bootstrap.servers": BOOTSTRAP, "topic": "large-orders", "delivery": "exactly-once"},
)


@dp.table(format="parquet")
def orders() -> DataFrame:
    """Each order once, with where it came from."""
    return (
        session.readStream.format("moldau")
        .option("kafka.bootstrap.servers", BOOTSTRAP)
        .option("subscribe", "orders")
        .option("startingOffsets", "earliest")
        .option("valueFormat", "json")
        .option("valueSchema", ORDER)
        .load()
        .select("value.*", "partition", "offset")
    )


@dp.materialized_view(format="parquet")
def spent() -> DataFrame:
    """What each customer spent, computed anew with each run."""
    return session.read.table("orders").groupBy("customer").agg(functions.sum("amount").alias("amount"))


@dp.append_flow(target="large_orders")
def large() -> DataFrame:
    """Orders of a hundred and more, as JSON under the customer's name."""
    return (
        session.readStream.table("orders")
        .where("amount >= 100")
        .selectExpr("customer AS key", "to_json(struct(id, customer, amount)) AS value")
    )
