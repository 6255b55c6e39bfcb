"""What rows look like: schemas in Spark's words, decoded values as columns, files of every size and partition."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from moldau.client import Producer
from moldau.lake.ddl import parse_schema
from moldau.lake.errors import LakeError
from moldau.lake.load import Load, LoadSettings
from moldau.lake.reading import read_table
from moldau.lake.table import open_table
from moldau.lake.tasks import run_here
from moldau.spark.lookup import ReadError
from tests.lake.conftest import MakeTopic, Topic


def test_schemas_are_read_as_spark_writes_them() -> None:
    found = parse_schema(
        "id BIGINT NOT NULL, `a b` string COMMENT 'it, is', m MAP<STRING, ARRAY<INT>>, d DECIMAL(12,2)"
    )
    assert found == pa.struct(
        [
            ("id", pa.int64()),
            ("a b", pa.string()),
            ("m", pa.map_(pa.string(), pa.list_(pa.int32()))),
            ("d", pa.decimal128(12, 2)),
        ]
    )
    assert parse_schema("struct<a: struct<b: timestamp>>").field("a").type.field("b").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    "text", ["", "id", "id whatever", "id BIGINT,", "a ARRAY<INT", "a INT, A INT", "a INT )", "a " + "ARRAY<" * 99]
)
def test_schemas_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(LakeError, match="cannot be read"):
        parse_schema(text)


def load(topic: Topic, lake: str, **options: str) -> list[dict[str, Any]]:
    given = {"kafka.bootstrap.servers": topic.bootstrap, "subscribe": topic.name, **options}
    with Load(LoadSettings(given, lake), run_here) as running:
        list(running.run_once())
    rows: list[dict[str, Any]] = read_table(open_table(lake)).to_pylist()
    return sorted(rows, key=lambda row: row["offset"])


def send(topic: Topic, *values: bytes | None) -> None:
    with Producer(topic.bootstrap) as producer:
        for value in values:
            producer.send(topic.name, value, b"k", partition=0)


def test_values_become_columns(make_topic: MakeTopic, lake: str) -> None:
    """Names that records have already get a prefix; a null value gives nulls."""
    topic = make_topic(1)
    send(topic, b'{"id": 1, "offset": 77, "tags": ["x"], "more": 5}', None, b'{"id": 2}')
    rows = load(topic, lake, valueFormat="json", valueSchema="id BIGINT, offset INT, tags ARRAY<STRING>")
    assert [(row["id"], row["offset"], row["value_offset"], row["tags"]) for row in rows] == [
        (1, 0, 77, ["x"]),
        (None, 1, None, None),
        (2, 2, None, None),
    ]
    assert "value" not in rows[0] and rows[0]["key"] == b"k"


def test_a_poison_record_stops_the_load_or_is_left_out(make_topic: MakeTopic, lake: str) -> None:
    topic, letters = make_topic(1), make_topic(1)
    send(topic, b'{"id": 1}', b"poison", b'{"id": 3}')
    options = {"valueFormat": "json", "valueSchema": "id BIGINT"}
    with pytest.raises((LakeError, ReadError), match="offset 1 of"):
        load(topic, lake, **options)
    rows = load(topic, lake, onBadRecord="deadLetter", deadLetterTopic=letters.name, **options)
    assert [row["id"] for row in rows] == [1, 3]
    found = load(letters, f"{lake}-letters")
    assert [row["value"] for row in found] == [b"poison"]


def test_a_schema_that_grew_adds_columns(make_topic: MakeTopic, lake: str) -> None:
    topic = make_topic(1)
    send(topic, b'{"id": 1, "name": "a"}')
    load(topic, lake, valueFormat="json", valueSchema="id BIGINT")
    send(topic, b'{"id": 2, "name": "b"}')
    rows = load(topic, lake, valueFormat="json", valueSchema="id BIGINT, name STRING")
    assert [(row["id"], row["name"]) for row in rows] == [(1, None), (2, "b")]
    with pytest.raises(LakeError, match=r"Column id of .* is int64, and what is loaded now is string"):
        send(topic, b'{"id": 3}')
        load(topic, lake, valueFormat="json", valueSchema="id STRING")
