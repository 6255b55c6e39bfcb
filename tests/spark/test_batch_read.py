"""Batch reads through a real Spark: columns, bounds, tasks, isolation, codecs, and a sentence for what is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moldau.client import Admin, Producer, TopicPartition
from tests.interop.nodes import RECENT_MS, Node
from tests.spark import topics

pytestmark = pytest.mark.interop
pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")

from moldau.spark.options import read_options  # noqa: E402
from moldau.spark.reader import BatchReader  # noqa: E402
from moldau.spark.source import MoldauSource  # noqa: E402


def reader(spark: Any, node: Node, topic: str, **options: Any) -> Any:
    read = spark.read.format("moldau").option("kafka.bootstrap.servers", node.bootstrap).option("subscribe", topic)
    for name, value in options.items():
        read = read.option(name.replace("__", "."), value)
    return read


def values(frame: Any) -> list[str | None]:
    rows = frame.orderBy("partition", "offset").select("value").collect()
    return [None if row.value is None else bytes(row.value).decode() for row in rows]


def refusal(frame: Any) -> str:
    """The text of the error that a read ends with."""
    with pytest.raises(Exception) as caught:
        frame.collect()
    return str(caught.value)


def test_columns_are_those_of_sparks_connector(spark: Any, node: Node, topic: str) -> None:
    with Producer(node.bootstrap) as producer:
        producer.send(topic, b"v", key=b"k", timestamp_ms=RECENT_MS, headers=[("a", b"1"), ("a", None)]).result()
        producer.send(topic, None, key=None, timestamp_ms=RECENT_MS + 1).result()
    frame = reader(spark, node, topic, includeHeaders="true").load()
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    first, second = frame.orderBy("offset").collect()
    assert (bytes(first.key), bytes(first.value), first.topic, first.partition, first.offset) == (
        b"k",
        b"v",
        topic,
        0,
        0,
    )
    assert (first.timestamp.timestamp() * 1000, first.timestampType) == (RECENT_MS, 0)
    assert [(row.key, row.value and bytes(row.value)) for row in first.headers] == [("a", b"1"), ("a", None)]
    assert (second.key, second.value, second.headers, second.offset) == (None, None, None, 1)
    assert reader(spark, node, topic).load().columns == [*frame.columns[:-1]]


def test_every_codec_is_read(spark: Any, moldau_node: Node, topic: str) -> None:
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    topics.create(moldau_node, topic, len(codecs))
    for partition, codec in enumerate(codecs):
        topics.fill(moldau_node, topic, topics.numbers(0, 500), partition, **{"compression.type": codec})
    assert values(reader(spark, moldau_node, topic).load()) == topics.numbers(0, 500) * len(codecs)


def test_log_append_time_is_told(spark: Any, moldau_node: Node, topic: str) -> None:
    topics.create(moldau_node, topic, message_timestamp_type="LogAppendTime")
    topics.fill(moldau_node, topic, ["x"])
    row = reader(spark, moldau_node, topic).load().collect()[0]
    assert row.timestampType == 1
    assert row.timestamp.timestamp() * 1000 > RECENT_MS


def test_many_tasks_read_every_record_once(spark: Any, node: Node, topic: str) -> None:
    topics.create(node, topic, 2)
    topics.fill(node, topic, topics.numbers(0, 3000), 0)
    topics.fill(node, topic, topics.numbers(3000, 4000), 1, **{"compression.type": "zstd"})
    frame = reader(spark, node, topic, minPartitions=8).load()
    assert frame.rdd.getNumPartitions() == 8
    assert values(frame) == topics.numbers(0, 4000)
    assert reader(spark, node, topic, maxRecordsPerPartition=1000).load().rdd.getNumPartitions() == 4


def test_a_read_begins_and_ends_where_the_options_say(spark: Any, node: Node, topic: str) -> None:
    topics.fill(node, topic, topics.numbers(0, 100))
    with Admin(node.bootstrap) as admin:
        admin.delete_records({TopicPartition(topic, 0): 10})[TopicPartition(topic, 0)].get()

    def read(**options: Any) -> list[str | None]:
        return values(reader(spark, node, topic, **options).load())

    def at(number: int) -> str:
        return json.dumps({topic: {"0": number}})

    assert read() == topics.numbers(10, 100)
    assert read(startingOffsets=at(40), endingOffsets=at(50)) == topics.numbers(40, 50)
    assert read(startingOffsets=at(-2), endingOffsets=at(-1)) == topics.numbers(10, 100)
    assert read(startingTimestamp=RECENT_MS + 95) == topics.numbers(95, 100)
    assert read(startingOffsetsByTimestamp=at(RECENT_MS + 90), endingTimestamp=RECENT_MS + 93) == topics.numbers(90, 93)
    assert read(endingOffsetsByTimestamp=at(RECENT_MS + 9_999)) == topics.numbers(10, 100)
    late = {"startingTimestamp": RECENT_MS + 9_999}
    assert read(**late, startingOffsetsByTimestampStrategy="latest") == []
    assert "startingOffsetsByTimestampStrategy to latest" in refusal(reader(spark, node, topic, **late).load())


def test_topics_are_named_by_pattern_and_partitions_one_by_one(spark: Any, moldau_node: Node, topic: str) -> None:
    for name, value in [(f"{topic}-a", "a"), (f"{topic}-b", "b"), (f"x-{topic}-a", "c")]:
        topics.create(moldau_node, name, 2)
        topics.fill(moldau_node, name, [f"{value}0"], 0)
        topics.fill(moldau_node, name, [f"{value}1"], 1)
    read = spark.read.format("moldau").option("kafka.bootstrap.servers", moldau_node.bootstrap)
    assert sorted(values(read.option("subscribePattern", f"{topic}-.*").load())) == ["a0", "a1", "b0", "b1"]
    read = spark.read.format("moldau").option("kafka.bootstrap.servers", moldau_node.bootstrap)
    assert values(read.option("assign", json.dumps({f"{topic}-a": [1]})).load()) == ["a1"]


def test_aborted_records_are_seen_unless_only_committed_ones_are_asked_for(spark: Any, node: Node, topic: str) -> None:
    with Producer(node.bootstrap, transactional_id=f"{topic}-writer") as producer:
        producer.init_transactions()
        for number, end in [
            (0, producer.commit_transaction),
            (1, producer.abort_transaction),
            (2, producer.commit_transaction),
        ]:
            producer.begin_transaction()
            producer.send(topic, f"{number}-a")
            producer.send(topic, f"{number}-b")
            producer.flush()
            end()
    every = ["0-a", "0-b", "1-a", "1-b", "2-a", "2-b"]
    assert values(reader(spark, node, topic).load()) == every
    committed = reader(spark, node, topic, kafka__isolation__level="read_committed")
    assert values(committed.load()) == [value for value in every if not value.startswith("1")]
    assert values(committed.option("minPartitions", 9).load()) == [
        value for value in every if not value.startswith("1")
    ]


def test_worker_processes_do_not_walk_through_all_modules_after_each_task(
    spark: Any, moldau_node: Node, topic: str
) -> None:
    with Producer(moldau_node.bootstrap) as producer:
        producer.send(topic, b"v").result()

    class Looking(BatchReader):
        def read(self, partition: Any) -> Any:
            import gc

            import pyarrow as pa

            for batch in super().read(partition):
                yield batch.set_column(4, "offset", pa.array([gc.get_freeze_count()] * batch.num_rows, pa.int64()))

    class Look(MoldauSource):
        @classmethod
        def name(cls) -> str:
            return "look"

        def reader(self, schema: Any) -> BatchReader:
            return Looking(read_options(self.options), schema)

    spark.dataSource.register(Look)
    read = spark.read.format("look").option("kafka.bootstrap.servers", moldau_node.bootstrap).option("subscribe", topic)
    seen = [read.load().collect()[0].offset for _ in range(4)]
    assert seen[0] == 0 and max(seen) > 10_000, f"{seen}: Spark's workers are others than moldau.spark looks for"


def test_an_empty_topic_has_no_rows(spark: Any, moldau_node: Node, topic: str) -> None:
    topics.create(moldau_node, topic, 3)
    assert reader(spark, moldau_node, topic).load().collect() == []


def test_what_is_wrong_is_told_in_a_sentence(spark: Any, moldau_node: Node, topic: str) -> None:
    topics.fill(moldau_node, topic, topics.numbers(0, 10))
    assert f"Topic {topic}-not does not exist: create it" in refusal(reader(spark, moldau_node, f"{topic}-not").load())
    at = json.dumps({topic: {"0": 50}})
    text = refusal(reader(spark, moldau_node, topic, startingOffsets=at).load())
    assert "says 50" in text and "from 0 to 10" in text and "failOnDataLoss to false" in text
    frame = reader(spark, moldau_node, topic, endingOffsets=at, failOnDataLoss="false").load()
    assert values(frame) == topics.numbers(0, 10)
    at = json.dumps({topic: {"0": 1, "7": 1}})
    assert f"{topic}-7, which does not exist" in refusal(reader(spark, moldau_node, topic, startingOffsets=at).load())
    lost = {"kafka__security__protocol": "SSL", "kafka__ssl__truststore__location": "/none"}
    assert "/none cannot be read" in refusal(reader(spark, moldau_node, topic, **lost).load())
    assert "leave out schema" in refusal(reader(spark, moldau_node, topic).schema("value STRING").load())
