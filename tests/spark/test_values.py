"""Decoded values through a real Spark: columns of the right types, and bad records where they were told to go."""

from __future__ import annotations

import io
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from moldau.client import Consumer
from tests.interop.nodes import Node
from tests.spark import topics
from tests.spark.streams import Stream

pytestmark = pytest.mark.interop
pytest.importorskip("pyspark", reason="pyspark is missing: pip install 'moldau[spark]'")

DOCUMENTS = ['{"id":1,"tags":["a"],"at":"2024-01-02T03:04:05"}', "poison", None, '{"id":2}']


def reader(spark: Any, node: Node, topic: str, **options: str) -> Any:
    read = spark.read.format("moldau").option("kafka.bootstrap.servers", node.bootstrap).option("subscribe", topic)
    return read.options(**options)


JSON = {"valueFormat": "json", "valueSchema": "id BIGINT, tags ARRAY<STRING>, at TIMESTAMP"}


def test_json_becomes_columns_and_a_poison_record_stands_aside(spark: Any, moldau_node: Node, topic: str) -> None:
    topics.fill(moldau_node, topic, DOCUMENTS)
    frame = reader(spark, moldau_node, topic, **JSON, onBadRecord="deadLetter", includeHeaders="true").load()
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,tags:array<string>,at:timestamp>"
    rows = frame.orderBy("offset").select("value.*", "deadLetter").collect()
    assert [row.id for row in rows] == [1, None, None, 2]
    assert (rows[0].tags, rows[0].at) == (["a"], datetime(2024, 1, 2, 3, 4, 5))
    assert [row.deadLetter and bytes(row.deadLetter.value) for row in rows] == [None, b"poison", None, None]
    assert "JSON parse error" in rows[1].deadLetter.reason


def test_a_poison_record_fails_the_query_is_dropped_or_goes_to_a_topic(
    spark: Any, moldau_node: Node, topic: str
) -> None:
    topics.fill(moldau_node, topic, DOCUMENTS)
    with pytest.raises(Exception, match=rf"offset 1 of {topic}-0 cannot be decoded as json.*onBadRecord"):
        reader(spark, moldau_node, topic, **JSON).load().collect()
    ids = [
        row.id
        for row in reader(spark, moldau_node, topic, **JSON, onBadRecord="drop").load().select("value.id").collect()
    ]
    assert ids == [1, None, 2]
    letters = {"onBadRecord": "deadLetter", "deadLetterTopic": f"{topic}-bad"}
    assert reader(spark, moldau_node, topic, **JSON, **letters).load().count() == 3
    with Consumer(moldau_node.bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(consumer.partitions_for(f"{topic}-bad"))
        record = consumer.poll(30_000)[0]
    assert (record.key, record.value) == (b"1", b"poison")
    headers = {name: value for name, value in record.headers if name != "moldau.dead_letter.reason"}
    assert headers == {
        "moldau.dead_letter.topic": topic.encode(),
        "moldau.dead_letter.partition": b"0",
        "moldau.dead_letter.offset": b"1",
    }


def test_csv_text_and_a_schema_as_json(spark: Any, moldau_node: Node, topic: str) -> None:
    topics.fill(moldau_node, topic, ["1,x", "2,"])
    frame = reader(spark, moldau_node, topic, valueFormat="csv", valueSchema="id INT, name STRING").load()
    assert [tuple(row.value) for row in frame.orderBy("offset").collect()] == [(1, "x"), (2, None)]
    schema = frame.select("value.*").schema.json()
    frame = reader(spark, moldau_node, topic, valueFormat="csv", valueSchema=schema).load()
    assert [tuple(row.value) for row in frame.orderBy("offset").collect()] == [(1, "x"), (2, None)]
    frame = reader(spark, moldau_node, topic, valueFormat="string").load()
    assert [row.value for row in frame.orderBy("offset").collect()] == ["1,x", "2,"]


def test_avro_behind_a_schema_id(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    fastavro = pytest.importorskip("fastavro", reason="fastavro is missing: pip install 'moldau[formats]'")
    fields = [{"name": "id", "type": "long"}, {"name": "m", "type": {"type": "map", "values": "int"}}]
    schema = {"type": "record", "name": "Event", "fields": fields}
    (tmp_path / "7.avsc").write_text(json.dumps(schema))
    stream = io.BytesIO(b"\0\0\0\0\7")
    stream.seek(5)
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"id": 5, "m": {"a": 1}})
    topics.fill(moldau_node, topic, [stream.getvalue()])
    frame = reader(spark, moldau_node, topic, valueFormat="avro", valueSchemaDirectory=str(tmp_path)).load()
    assert frame.schema["value"].dataType.simpleString() == "struct<id:bigint,m:map<string,int>>"
    row = frame.collect()[0].value
    assert (row.id, row.m) == (5, {"a": 1})


def test_a_stream_decodes_too(spark: Any, moldau_node: Node, topic: str, tmp_path: Path) -> None:
    class Ids(Stream):
        """Keeps a field of the decoded values."""

        @staticmethod
        def text(value: Any) -> str:
            return str(value.id)

    topics.fill(moldau_node, topic, ['{"id":1}', '{"id":2}'])
    stream = Ids(spark, moldau_node, topic, tmp_path, valueFormat="json", valueSchema="id INT")
    stream.run()
    assert stream.values == ["1", "2"]
