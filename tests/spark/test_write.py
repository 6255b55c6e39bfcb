"""Writing topics with `format("moldau")`: columns, options, delivery, jobs and streams, on Moldau and Apache Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")

from moldau.client import Admin, Consumer
from tests.interop.nodes import RECENT_MS, Node
from tests.pace import wait_until
from tests.spark import topics
from tests.spark.streams import run_to_end

DELIVERIES = ("at-least-once", "exactly-once")


def write(rows: Any, node: Node, **options: str) -> None:
    given = {"kafka.bootstrap.servers": node.bootstrap, **options}
    rows.write.format("moldau").options(**given).mode("append").save()


def read_all(node: Node, topic: str) -> list[Any]:
    with Consumer(node.bootstrap, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        partitions = consumer.partitions_for(topic)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        records: list[Any] = []
        while any(consumer.position(item) < end for item, end in ends.items()):
            records += consumer.poll(100)
        return records


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_every_column_becomes_its_part_of_the_record(spark: Any, node: Node, topic: str, delivery: str) -> None:
    """Keys, values, headers, partitions and timestamps; nulls where they are allowed."""
    topics.create(node, topic, 3)
    rows = spark.sql(
        f"""SELECT CASE WHEN id % 4 = 0 THEN NULL ELSE concat('k', id) END AS key,
                   CASE WHEN id % 5 = 0 THEN NULL ELSE binary(concat('v', id)) END AS value,
                   CASE WHEN id % 3 = 0 THEN NULL
                        ELSE array(named_struct('key', 'h', 'value', binary(string(id)))) END AS headers,
                   CASE WHEN id % 2 = 0 THEN int(id % 3) END AS partition,
                   timestamp_millis({RECENT_MS} + id) AS timestamp
            FROM range(60)"""
    )
    write(rows, node, topic=topic, delivery=delivery, writeTimestamps="true")
    records = {record.timestamp - RECENT_MS: record for record in read_all(node, topic)}
    assert sorted(records) == list(range(60))
    for number, record in records.items():
        assert record.key == (None if number % 4 == 0 else b"k%d" % number)
        assert record.value == (None if number % 5 == 0 else b"v%d" % number)
        assert list(record.headers) == ([] if number % 3 == 0 else [("h", b"%d" % number)])
        if number % 2 == 0:
            assert record.partition == number % 3


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_rows_go_to_the_topic_in_their_column(spark: Any, moldau_node: Node, topic: str, delivery: str) -> None:
    """One write, three topics; the option topic would decide for all rows."""
    for number in range(3):
        topics.create(moldau_node, f"{topic}-{number}", 1)
    rows = spark.range(30).selectExpr(f"concat('{topic}-', id % 3) AS topic", "string(id) AS value")
    write(rows, moldau_node, delivery=delivery)
    for number in range(3):
        found = sorted(int(value) for value in topics.committed_values(moldau_node, f"{topic}-{number}"))
        assert found == list(range(number, 30, 3))


def test_keys_go_where_other_producers_put_them(spark: Any, moldau_node: Node, topic: str) -> None:
    """The partition of a key is that of our producer, which is that of the Java client."""
    topics.create(moldau_node, topic, 5)
    topics.create(moldau_node, f"{topic}-same", 5)
    write(spark.range(50).selectExpr("string(id) AS key", "string(id) AS value"), moldau_node, topic=topic)
    topics.fill(moldau_node, f"{topic}-same", topics.numbers(0, 50), None)
    places = [
        {record.key: record.partition for record in read_all(moldau_node, name)} for name in (topic, f"{topic}-same")
    ]
    assert places[0] == places[1]


def test_a_run_with_a_name_happens_once(spark: Any, moldau_node: Node, topic: str) -> None:
    """A batch job that is started again after it succeeded writes nothing; under another name it does."""
    topics.create(moldau_node, topic, 1)
    rows = spark.range(10).selectExpr("string(id) AS value")
    for run in ("nightly-1", "nightly-1", "nightly-2"):
        write(rows, moldau_node, topic=topic, delivery="exactly-once", runId=f"{topic}-{run}")
    assert sorted(topics.committed_values(moldau_node, topic)) == sorted(2 * topics.numbers(0, 10))


def test_a_job_that_fails_leaves_nothing(spark: Any, moldau_node: Node, topic: str) -> None:
    """One task of four fails: readers of committed records see none of the others, and nothing stays open."""
    topics.create(moldau_node, topic, 1)
    rows = spark.range(0, 4000, 1, 4).selectExpr(
        "CASE WHEN id = 3900 THEN raise_error('poison') ELSE string(id) END AS value"
    )
    with pytest.raises(Exception, match="poison"):
        write(rows, moldau_node, topic=topic, delivery="exactly-once")
    assert topics.committed_values(moldau_node, topic) == []
    with Admin(moldau_node.bootstrap) as admin:
        wait_until(lambda: not list(admin.list_transactions(states=["Ongoing"])))


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_stream_writes_each_row_over_restarts(
    spark: Any, node: Node, topic: str, delivery: str, tmp_path: Path
) -> None:
    """Several micro-batches, two starts with one checkpoint."""
    topics.create(node, topic, 2)
    topics.create(node, f"{topic}-out", 2)
    for start in range(2):
        topics.fill(node, topic, topics.numbers(start * 40, start * 40 + 40))
        writer = (
            spark.readStream.format("moldau")
            .option("kafka.bootstrap.servers", node.bootstrap)
            .option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .option("maxOffsetsPerTrigger", "15")
            .load()
            .selectExpr("key", "value")
            .writeStream.format("moldau")
            .option("kafka.bootstrap.servers", node.bootstrap)
            .option("topic", f"{topic}-out")
            .option("delivery", delivery)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        run_to_end(writer.start)
    found = sorted(int(value) for value in topics.committed_values(node, f"{topic}-out"))
    assert found == list(range(80))


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        (["id"], {"topic": "t"}, "needs the column value"),
        (["id AS value"], {"topic": "t"}, "column value is bigint: it must be text or binary"),
        (["string(id) AS value"], {}, "Set the option topic, or select a column topic"),
        (["string(id) AS value", "id AS partition"], {"topic": "t"}, "cast it to int"),
        (["string(id) AS value", "map('a', 'b') AS headers"], {"topic": "t"}, "array<struct<key:string,value:binary>>"),
        (["string(id) AS value"], {"topic": "t", "delivery": "twice"}, "must be one of at-least-once, exactly-once"),
        (["string(id) AS value"], {"topic": "t", "writeTimestamps": "true"}, "needs the column timestamp"),
        (["string(id) AS value"], {"topic": "t", "kafka.transactional.id": "x"}, "transactionalIdPrefix"),
        (["string(id) AS value"], {"topic": "t", "delivery": "exactly-once", "kafka.acks": "1"}, "kafka.acks"),
        (["string(id) AS value"], {"topic": "t", "runId": "a b"}, "letters, digits"),
        (["string(id) AS value"], {"topic": "t", "delivry": "exactly-once"}, "did you mean delivery"),
    ],
)
def test_what_cannot_be_written_is_refused_before_anything_is(
    spark: Any, moldau_node: Node, columns: list[str], options: dict[str, str], sentence: str
) -> None:
    """With a sentence that says what to do."""
    with pytest.raises(Exception, match=sentence):
        write(spark.range(1).selectExpr(*columns), moldau_node, **options)


def test_rows_without_a_topic_and_other_modes_are_refused(spark: Any, moldau_node: Node) -> None:
    """A null topic names no place, and a topic cannot be overwritten."""
    rows = spark.sql("SELECT string(null) AS topic, 'v' AS value")
    with pytest.raises(Exception, match="column topic is null"):
        write(rows, moldau_node)
    with pytest.raises(Exception, match="cannot be overwritten"):
        options = {"kafka.bootstrap.servers": moldau_node.bootstrap, "topic": "t"}
        spark.range(1).selectExpr("'v' AS value").write.format("moldau").options(**options).mode("overwrite").save()
