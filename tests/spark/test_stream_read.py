"""Streaming reads through a real Spark: triggers, limits, restarts, groups, and what happens to topics meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moldau.client import Admin, TopicPartition
from tests.interop.nodes import Node
from tests.spark import connector, topics
from tests.spark.streams import Stream

pytestmark = pytest.mark.interop
pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")


def test_available_now_reads_what_is_there_in_batches_of_the_limit(
    spark: Any, node: Node, topic: str, tmp_path: Path
) -> None:
    """Also after a restart: nothing twice, nothing left out, and offsets in Spark's own format."""
    topics.create(node, topic, 2)
    topics.fill(node, topic, topics.numbers(0, 60), 0)
    topics.fill(node, topic, topics.numbers(60, 100), 1)
    stream = Stream(spark, node, topic, tmp_path, maxOffsetsPerTrigger=40, commitGroup=f"{topic}-group")
    stream.run()
    assert sorted(map(int, stream.values)) == list(range(100))
    assert [len(batch) for _, batch in sorted(stream.batches.items())] == [40, 40, 20]
    assert stream.progress("endOffset") == {topic: {"0": 60, "1": 40}}
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
    with Stream(spark, moldau_node, topic, tmp_path).start() as stream:
        topics.fill(moldau_node, topic, topics.numbers(0, 10))
        stream.await_values(topics.numbers(0, 10))
        with Admin(moldau_node.bootstrap) as admin:
            admin.create_partitions({topic: 2})[topic].get()
        topics.fill(moldau_node, topic, topics.numbers(10, 20), 1)
        stream.await_values(topics.numbers(0, 20))
        stream.wait(lambda: stream.progress("latestOffset") == {topic: {"0": 10, "1": 10}})


def test_a_broker_that_is_away_for_a_while_is_waited_for(
    spark: Any, own_node: Node, topic: str, tmp_path: Path
) -> None:
    topics.fill(own_node, topic, topics.numbers(0, 10))
    with Stream(spark, own_node, topic, tmp_path).start() as stream:
        stream.await_values(topics.numbers(0, 10))
        own_node.kill()
        own_node.start()
        topics.fill(own_node, topic, topics.numbers(10, 20))
        stream.await_values(topics.numbers(0, 20))


def test_a_topic_created_again_ends_the_query_with_a_sentence_or_is_read_anew(
    spark: Any, moldau_node: Node, topic: str, tmp_path: Path
) -> None:
    """The new topic is longer than the old one was, so that its offsets alone would not give it away."""
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    stream = Stream(spark, moldau_node, topic, tmp_path)
    stream.run()
    topics.delete(moldau_node, topic)
    topics.fill(moldau_node, topic, topics.numbers(100, 130))
    reason = stream.start().failure()
    assert "was deleted and created again" in reason
    assert "failOnDataLoss to false" in reason
    assert stream.values == topics.numbers(0, 10)
    stream.run(failOnDataLoss="false")
    assert stream.values == topics.numbers(0, 10) + topics.numbers(100, 130)


def test_the_checkpoint_of_another_topic_is_refused(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    topics.fill(moldau_node, topic, ["x"])
    topics.fill(moldau_node, f"{topic}-other", ["y"])
    Stream(spark, moldau_node, topic, tmp_path).run()
    reason = Stream(spark, moldau_node, f"{topic}-other", tmp_path).start().failure()
    assert "checkpointLocation of its own" in reason


def test_a_stream_waits_for_enough_records(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    topics.fill(moldau_node, topic, topics.numbers(0, 3))
    limits = {"minOffsetsPerTrigger": 10, "maxTriggerDelay": "1h"}
    with Stream(spark, moldau_node, topic, tmp_path, **limits).start() as stream:
        stream.await_values(topics.numbers(0, 3))  # the first ones are not held back
        topics.fill(moldau_node, topic, topics.numbers(3, 12))
        topics.fill(moldau_node, topic, topics.numbers(12, 13))
        stream.await_values(topics.numbers(0, 13))
        assert len(stream.batches) == 2


def test_a_checkpoint_of_sparks_own_connector_is_read_on(
    spark: Any, moldau_node: Node, topic: str, tmp_path: Path
) -> None:
    """A migration in the middle of a query's life: one word changes, and nothing is read twice or left out."""
    reason = connector.missing()
    if reason:
        pytest.skip(reason)
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    Stream(spark, moldau_node, topic, tmp_path, source="kafka").run()
    topics.fill(moldau_node, topic, topics.numbers(10, 30))
    stream = Stream(spark, moldau_node, topic, tmp_path)
    stream.run()
    assert stream.values == topics.numbers(10, 30)
    topics.fill(moldau_node, topic, topics.numbers(30, 40))
    back = Stream(spark, moldau_node, topic, tmp_path, source="kafka")
    back.run()
    assert back.values == topics.numbers(30, 40)
