"""Spark's own Kafka connector, `format("kafka")`, works against Moldau: batch, streams with checkpoints, sink."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.interop.nodes import Node
from tests.spark import connector, topics

pytestmark = pytest.mark.interop


@pytest.fixture(autouse=True)
def _needs_the_connector(spark: Any) -> None:
    reason = connector.missing()
    if reason:
        pytest.skip(reason)


def kafka_options(node: Node) -> dict[str, str]:
    return {"kafka.bootstrap.servers": node.bootstrap, "startingOffsets": "earliest"}


def read(spark: Any, node: Node, topic: str, **options: str) -> Any:
    return spark.read.format("kafka").options(**{**kafka_options(node), **options}).option("subscribe", topic).load()


def test_a_batch_read_sees_every_record(spark: Any, moldau_node: Node, topic: str) -> None:
    """Keys, values, partitions, offsets and timestamps, over compressed batches and several partitions."""
    topics.create(moldau_node, topic, 3)
    for partition, codec in enumerate(("none", "zstd", "lz4")):
        topics.fill(moldau_node, topic, topics.numbers(0, 50), partition, compression_type=codec)
    rows = read(spark, moldau_node, topic).selectExpr("partition", "offset", "CAST(value AS STRING) AS value").collect()
    assert sorted((row.partition, row.offset, row.value) for row in rows) == [
        (partition, offset, str(offset)) for partition in range(3) for offset in range(50)
    ]


def test_a_batch_read_keeps_to_its_offsets_and_times(spark: Any, moldau_node: Node, topic: str) -> None:
    """Starting and ending offsets by partition, and by timestamp."""
    topics.create(moldau_node, topic, 1)
    topics.fill(moldau_node, topic, topics.numbers(0, 40))
    some = read(
        spark,
        moldau_node,
        topic,
        startingOffsets=f'{{"{topic}":{{"0":10}}}}',
        endingOffsets=f'{{"{topic}":{{"0":-1}}}}',
    )
    assert sorted(row.offset for row in some.select("offset").collect()) == list(range(10, 40))
    time_ms = topics.RECENT_MS + 30
    late = read(spark, moldau_node, topic, startingOffsetsByTimestamp=f'{{"{topic}":{{"0":{time_ms}}}}}')
    assert sorted(row.offset for row in late.select("offset").collect()) == list(range(30, 40))


def test_a_read_committed_read_leaves_aborted_records_out(spark: Any, moldau_node: Node, topic: str) -> None:
    """The connector's consumer gets what Moldau's transactions have committed."""
    topics.create(moldau_node, topic, 1)
    topics.fill_in_transactions(moldau_node, topic, ["kept", "not kept", "kept too"], aborted={1})
    rows = read(spark, moldau_node, topic, **{"kafka.isolation.level": "read_committed"})
    assert sorted(bytes(row.value).decode() for row in rows.collect()) == ["kept", "kept too"]


def test_a_stream_goes_on_from_its_checkpoint(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    """Three starts with the same checkpoint: each sees what is new, and nothing twice."""
    topics.create(moldau_node, topic, 2)
    for start in range(3):
        for partition in range(2):
            topics.fill(moldau_node, topic, topics.numbers(start * 30, start * 30 + 30), partition)
        stream = spark.readStream.format("kafka").options(**kafka_options(moldau_node)).option("subscribe", topic)
        query = (
            stream.option("maxOffsetsPerTrigger", 16)
            .load()
            .selectExpr("partition", "CAST(value AS STRING) AS value")
            .writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(600)
        assert query.exception() is None
        assert len(query.recentProgress) >= 4  # admission control cut the input
    rows = spark.read.parquet(str(tmp_path / "out")).collect()
    assert sorted((row.partition, int(row.value)) for row in rows) == [(p, n) for p in range(2) for n in range(90)]


def test_the_sink_writes_batches_and_streams(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    """The connector's idempotent producer, keys and headers and partitions, from a batch job and from a stream."""
    target = f"{topic}-out"
    topics.create(moldau_node, topic, 1)
    topics.create(moldau_node, target, 2)
    topics.fill(moldau_node, topic, topics.numbers(0, 20))
    rows = spark.range(20, 40).selectExpr(
        "CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value", "CAST(id % 2 AS INT) AS partition"
    )
    options = {"kafka.bootstrap.servers": moldau_node.bootstrap, "topic": target}
    rows.write.format("kafka").options(**options).save()
    query = (
        spark.readStream.format("kafka")
        .options(**kafka_options(moldau_node))
        .option("subscribe", topic)
        .load()
        .selectExpr("key", "value")
        .writeStream.format("kafka")
        .options(**options)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(600)
    assert query.exception() is None
    assert sorted(int(value) for value in topics.committed_values(moldau_node, target)) == list(range(40))
