"""What rows look like: schemas in Spark's words, decoded values as columns, files of every size and partition."""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from moldau.client import Producer
from moldau.lake import file_writer
from moldau.lake.ddl import parse_schema
from moldau.lake.errors import LakeError
from moldau.lake.file_writer import FileWriter, WriteSettings
from moldau.lake.load import Load, LoadSettings
from moldau.lake.open_table import open_table
from moldau.lake.reading import read_table
from moldau.lake.table import Partitioning
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


def numbered(first: int, behind: int, groups: int) -> Any:
    return pa.RecordBatch.from_pydict(
        {"offset": list(range(first, behind)), "group": [number % groups for number in range(first, behind)]}
    )


def read_offsets(folder: str, paths: list[str]) -> list[int]:
    tables = [parquet.ParquetFile(os.path.join(folder, path)).read() for path in paths]
    return sorted(number for table in tables for number in table.column("offset").to_pylist())


def test_more_partitions_than_files_may_be_open(lake: str) -> None:
    """The files that were not written to for longest are closed, and others go on; no row is lost."""
    writer = FileWriter(WriteSettings(lake, partitioning=Partitioning(("group",))))
    for first in (0, 300, 600):
        writer.write(numbered(first, first + 300, 120))
    files = writer.finish()
    assert len(files) > 120 and sum(file.rows for file in files) == 900
    assert read_offsets(lake, [file.path for file in files]) == list(range(900))


def test_long_files_are_cut_and_row_groups_stay_small(lake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_writer, "GROUP_BYTES", 16_000)
    writer = FileWriter(WriteSettings(lake, file_bytes_max=10_000, compression="none"))
    for first in range(0, 10_000, 500):
        writer.write(numbered(first, first + 500, 7))
    files = writer.finish()
    assert len(files) > 5 and all(
        file.ranges["offset"][1] - file.ranges["offset"][0] == file.rows - 1 for file in files
    )
    assert read_offsets(lake, [file.path for file in files]) == list(range(10_000))
    assert all(file.size == os.path.getsize(os.path.join(lake, file.path)) for file in files)


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
