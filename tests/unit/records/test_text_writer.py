"""Records as text: what is written is what a plain implementation with objects writes."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moldau.records import text_writer
from moldau.records.batch import HEADER_SIZE, CorruptBatch, read_header
from moldau.records.builder import BatchBuilder
from moldau.records.text_writer import TextWriter

Row = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]

BYTES = st.one_of(st.none(), st.binary(max_size=40), st.text(max_size=20).map(str.encode))
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2**44),
        BYTES,
        BYTES,
        st.lists(st.tuples(st.text(max_size=5), BYTES), max_size=3),
    ),
    min_size=1,
    max_size=10,
)


def add(writer: TextWriter, rows: list[Row], base_offset: int = 0, from_offset: int = 0) -> None:
    builder = BatchBuilder(base_offset=base_offset)
    for row in rows:
        builder.append(*row)
    data = builder.build()
    header = read_header(data, 0, len(data))
    writer.add_batch(data, HEADER_SIZE, len(data), header, from_offset)


def as_json(raw: bytes | None) -> object:
    if raw is None:
        return None
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_json_lines_hold_what_the_records_hold(rows: list[Row]) -> None:
    writer = TextWriter(b"", bytes([text_writer.JSON]), [b"\n"], b"")
    writer.begin('t"x', 3)
    add(writer, rows, base_offset=7)
    lines = writer.take().split(b"\n")
    assert lines.pop() == b""
    for number, (line, (timestamp, key, value, headers)) in enumerate(zip(lines, rows, strict=True)):
        expected = {
            "topic": 't"x',
            "partition": 3,
            "offset": 7 + number,
            "timestamp": timestamp,
            "key": as_json(key),
            "value": as_json(value),
            "headers": [{"name": name, "value": as_json(item)} for name, item in headers],
        }
        assert json.loads(line) == expected
        assert line == json.dumps(expected, ensure_ascii=False, separators=(",", ":")).encode()


@settings(max_examples=80, deadline=None)
@given(ROWS)
def test_every_field_of_a_format(rows: list[Row]) -> None:
    fields = bytes(range(1, 11))
    writer = TextWriter(b"<", fields, [b"|"] * 9 + [b">"], b"NIL")
    writer.begin("topic", 12)
    add(writer, rows)
    expected = b""
    for offset, (timestamp, key, value, headers) in enumerate(rows):
        sizes = [-1 if item is None else len(item) for item in (value, key)]
        pairs = [name.encode() + b"=" + (b"NULL" if item is None else item) for name, item in headers]
        parts = [
            b"NIL" if value is None else value,
            b"%d" % sizes[0],
            b"NIL" if key is None else key,
            b"%d" % sizes[1],
            b",".join(pairs),
            b"topic",
            b"12",
            b"%d" % offset,
            b"%d" % timestamp,
            sizes[0].to_bytes(4, "big", signed=True),
        ]
        expected += b"<" + b"|".join(parts) + b">"
    assert writer.take() == expected
    assert writer.take() == b""


def plain() -> TextWriter:
    writer = TextWriter(b"", bytes([text_writer.VALUE]), [b" "], b"")
    writer.begin("t", 0)
    return writer


def values(*texts: str) -> list[Row]:
    return [(1, None, text.encode(), []) for text in texts]


def test_records_before_the_start_and_from_the_end_on_are_left_out() -> None:
    writer = plain()
    writer.set_end("t", 0, 13)
    writer.begin("t", 0)
    add(writer, values("a", "b", "c", "d"), base_offset=10, from_offset=11)
    assert (writer.take(), writer.rows) == (b"b c ", 2)
    writer.begin("t", 1)
    add(writer, values("e"), base_offset=50)
    assert writer.take() == b"e "


def test_the_limit_stops_in_the_middle_of_a_batch() -> None:
    writer = plain()
    writer.limit = 2
    add(writer, values("a", "b", "c"))
    assert writer.full and writer.take() == b"a b "


def test_without_fields_records_are_counted() -> None:
    writer = TextWriter(b"", b"", [], b"")
    writer.begin("t", 0)
    add(writer, [(1, b"key", b"value", []), (2, None, None, [])])
    assert (writer.rows, writer.record_bytes, writer.take()) == (2, 8, b"")


def test_numbers_of_every_size() -> None:
    writer = TextWriter(b"", bytes([text_writer.TIMESTAMP]), [b" "], b"")
    writer.begin("t", 0)
    numbers = [0, 9, 10, 99, 100, 2**62, -1, -(2**62)]
    for number in numbers:
        add(writer, [(number, None, b"", [])])
    assert writer.take().split() == [b"%d" % number for number in numbers]


@settings(max_examples=150, deadline=None)
@given(ROWS, st.data())
def test_damaged_records_are_refused_or_read_but_nothing_else(rows: list[Row], data: st.DataObject) -> None:
    builder = BatchBuilder()
    for row in rows:
        builder.append(*row)
    damaged = bytearray(builder.build())
    index = data.draw(st.integers(HEADER_SIZE, len(damaged) - 1))
    damaged[index] = data.draw(st.integers(0, 255))
    raw = bytes(damaged)
    writer = TextWriter(b"", bytes([text_writer.JSON, text_writer.HEADERS]), [b"", b"\n"], b"")
    writer.begin("t", 0)
    try:
        writer.add_batch(raw, HEADER_SIZE, len(raw), read_header(raw, 0, len(raw)), 0)
    except CorruptBatch:
        return
    assert writer.rows <= len(rows)


def test_more_records_than_bytes_are_refused_before_anything_is_read() -> None:
    builder = BatchBuilder()
    builder.append(1, None, b"x", [])
    data = builder.build()
    header = read_header(data, 0, len(data))
    header.records_count = 1_000_000
    with pytest.raises(CorruptBatch):
        plain().add_batch(data, HEADER_SIZE, len(data), header, 0)
