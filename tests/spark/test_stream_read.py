"""Streaming reads through a real Spark: triggers, limits, restarts, groups, and what happens to topics meanwhile."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, TopicPartition
from tests.interop.nodes import Node
from tests.spark import topics

pytestmark = pytest.mark.interop
pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")


class Stream:
    """A query whose micro-batches are collected, with its checkpoint."""

    def __init__(self, spark: Any, node: Node, topic: str, folder: Path, **options: Any) -> None:
        self._spark = spark
        self._options = {"kafka.bootstrap.servers": node.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
        self._options |= {name.replace("__", "."): str(value) for name, value in options.items()}
        self._checkpoint = folder / "checkpoint"
        self.batches: dict[int, list[str]] = {}

    def _keep(self, frame: Any, number: int) -> None:
        rows = frame.orderBy("topic", "partition", "offset").collect()
        self.batches[number] = [bytes(row.value).decode() for row in rows]

    def start(self, available_now: bool = False, **more: str) -> Any:
        frame = self._spark.readStream.format("moldau").options(**{**self._options, **more}).load()
        writer = frame.writeStream.foreachBatch(self._keep).option("checkpointLocation", str(self._checkpoint))
        return (writer.trigger(availableNow=True) if available_now else writer).start()

    def run(self, **more: str) -> Any:
        """Reads what is there, and ends."""
        query = self.start(available_now=True, **more)
        assert query.awaitTermination(60)
        return query

    @property
    def values(self) -> list[str]:
        return [value for _, batch in sorted(self.batches.items()) for value in batch]


def await_true(condition: Callable[[], bool], query: Any = None, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert query is None or query.isActive, f"the query ended: {query.exception()}"
        assert time.monotonic() < deadline, "it did not come true in time"
        time.sleep(0.05)


def test_available_now_reads_what_is_there_in_batches_of_the_limit(
    spark: Any, node: Node, topic: str, tmp_path: Path
) -> None:
    """Also after a restart: nothing twice, nothing left out, and offsets in Spark's own format."""
    topics.create(node, topic, 2)
    topics.fill(node, topic, topics.numbers(0, 60), 0)
    topics.fill(node, topic, topics.numbers(60, 100), 1)
    stream = Stream(spark, node, topic, tmp_path, maxOffsetsPerTrigger=40, commitGroup=f"{topic}-group")
    query = stream.run()
    assert sorted(map(int, stream.values)) == list(range(100))
    assert [len(batch) for _, batch in sorted(stream.batches.items())] == [40, 40, 20]
    source = query.lastProgress["sources"][0]
    offsets = {name: rows for name, rows in json.loads(str(source["endOffset"]).replace("'", '"')).items() if rows}
    assert offsets == {topic: {"0": 60, "1": 40}}
    topics.fill(node, topic, topics.numbers(100, 120), 1)
    stream.run()
    assert sorted(map(int, stream.values)) == list(range(120))
    with Admin(node.bootstrap) as admin:
        committed = admin.list_consumer_group_offsets({f"{topic}-group": None})[f"{topic}-group"].get()
    found = {item: row.get().offset for item, row in committed.items()}
    assert found == {TopicPartition(topic, 0): 60, TopicPartition(topic, 1): 60}


def test_a_running_query_follows_its_topic(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    """New records, new partitions, and where the topic ends is reported."""
    topics.create(moldau_node, topic, 1)
    stream = Stream(spark, moldau_node, topic, tmp_path, kafka__metadata__max__age__ms=100)
    query = stream.start()
    try:
        topics.fill(moldau_node, topic, topics.numbers(0, 10))
        await_true(lambda: stream.values == topics.numbers(0, 10), query)
        with Admin(moldau_node.bootstrap) as admin:
            admin.create_partitions({topic: 2})[topic].get()
        topics.fill(moldau_node, topic, topics.numbers(10, 20), 1)
        await_true(lambda: stream.values == topics.numbers(0, 20), query)
        await_true(lambda: '"1": 10' in str(query.lastProgress["sources"][0]["latestOffset"]).replace("'", '"'), query)
    finally:
        query.stop()


def test_a_broker_that_is_away_for_a_while_is_waited_for(
    spark: Any, own_node: Node, topic: str, tmp_path: Path
) -> None:
    topics.fill(own_node, topic, topics.numbers(0, 10))
    stream = Stream(spark, own_node, topic, tmp_path)
    query = stream.start()
    try:
        await_true(lambda: stream.values == topics.numbers(0, 10), query)
        own_node.kill()
        own_node.start()
        topics.fill(own_node, topic, topics.numbers(10, 20))
        await_true(lambda: stream.values == topics.numbers(0, 20), query)
    finally:
        query.stop()


def test_a_topic_created_again_ends_the_query_with_a_sentence_or_is_read_anew(
    spark: Any, moldau_node: Node, topic: str, tmp_path: Path
) -> None:
    """The new topic is longer than the old one was, so that its offsets alone would not give it away."""
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    stream = Stream(spark, moldau_node, topic, tmp_path)
    stream.run()
    topics.delete(moldau_node, topic)
    topics.fill(moldau_node, topic, topics.numbers(100, 130))
    query = stream.start()
    with pytest.raises(Exception, match="was deleted and created again") as caught:
        query.awaitTermination(60)
    assert "failOnDataLoss to false" in str(caught.value)
    assert stream.values == topics.numbers(0, 10)
    stream.run(failOnDataLoss="false")
    assert stream.values == topics.numbers(0, 10) + topics.numbers(100, 130)


def test_the_checkpoint_of_another_topic_is_refused(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    topics.fill(moldau_node, topic, ["x"])
    topics.fill(moldau_node, f"{topic}-other", ["y"])
    Stream(spark, moldau_node, topic, tmp_path).run()
    query = Stream(spark, moldau_node, f"{topic}-other", tmp_path).start()
    with pytest.raises(Exception, match="checkpointLocation of its own"):
        query.awaitTermination(60)


def test_a_stream_waits_for_enough_records(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    topics.fill(moldau_node, topic, topics.numbers(0, 3))
    stream = Stream(spark, moldau_node, topic, tmp_path, minOffsetsPerTrigger=10, maxTriggerDelay="1h")
    query = stream.start()
    try:
        await_true(lambda: stream.values == topics.numbers(0, 3), query)  # the first ones are not held back
        topics.fill(moldau_node, topic, topics.numbers(3, 12))
        topics.fill(moldau_node, topic, topics.numbers(12, 13))
        await_true(lambda: stream.values == topics.numbers(0, 13), query)
        assert len(stream.batches) == 2
    finally:
        query.stop()
