"""Bytes of records as people see them: what is guessed, what is told, and what cannot do any harm."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moldau.actions.decoding import Schema, read_schema, show, show_record, to_hex, visible
from moldau.actions.refusals import Refused
from moldau.client.record import ConsumerRecord
from moldau.protocol.primitives import Writer
from moldau.protocol.stored.group_records import OffsetCommitKey, OffsetCommitValue


def record(topic: str, key: bytes | None, value: bytes | None) -> ConsumerRecord:
    return ConsumerRecord(
        topic, 0, 7, timestamp=0, timestamp_type=0, key=key, value=value, headers=None, leader_epoch=0
    )


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (None, "null"),
        (b"", "text"),
        (b"plain text, \xc3\xa4", "text"),
        (b'{"a": 1}', "json"),
        (b"[1, 2]", "json"),
        (b"{not json", "text"),
        (b"\xff\xfe\x00", "hex"),
        (b"\x00\x00\x00\x00\x07\x02\x80", "hex"),
        (b"\x00\x01\x02\x03", "hex"),
    ],
)
def test_the_format_is_guessed(data: bytes | None, name: str) -> None:
    assert show(data, Schema()).format == name


def test_a_value_of_a_registry_is_told_as_one() -> None:
    assert "schema 7" in show(b"\x00\x00\x00\x00\x07\x02\x80", Schema()).note


def test_json_is_indented_and_keeps_every_digit() -> None:
    """A float would make 0.10000000000000000001 into something else, and 1e400 into nothing."""
    text = show(b'{"a":0.10000000000000000001,"b":[1e400,{}],"c":"x{,:y","d":[]}', Schema()).text
    assert '"a": 0.10000000000000000001' in text
    assert "1e400" in text
    assert '"c": "x{,:y"' in text
    assert '"d": []' in text
    assert text.splitlines()[0] == "{"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_indenting_changes_nothing_but_spaces(value: Any) -> None:
    data = json.dumps([value])
    shown = show(data.encode(), Schema("json")).text
    assert json.loads(shown.replace("\\x7f", "\x7f")) == [value] or "\\" in shown


@given(st.binary())
def test_nothing_that_is_shown_can_command_anything(data: bytes) -> None:
    for name in ("auto", "text", "hex", "base64", "json", "int32"):
        shown = show(data, Schema(name))
        assert not any(letter < " " and letter not in "\t\n" for letter in shown.text)
        assert "\u202e" not in shown.text and "\x7f" not in shown.text


def test_what_hides_or_turns_text_around_is_shown_as_an_escape() -> None:
    assert visible("a\x1b[31m\u202eb\u200b") == "a\\x1b[31m\\u202eb\\u200b"


def test_markup_stays_what_it_is() -> None:
    text = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    assert show(text.encode(), Schema()).text == text


def test_numbers_have_their_size() -> None:
    assert show((42).to_bytes(8, "big"), Schema("int64")).text == "42"
    assert show((-1).to_bytes(4, "big", signed=True), Schema("int32")).text == "-1"
    wrong = show(b"abc", Schema("int64"))
    assert wrong.format == "hex" and "3 bytes" in wrong.note


def test_hexadecimal_has_sixteen_bytes_a_line() -> None:
    lines = to_hex(bytes(range(20))).splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("00000010  10 11 12 13")


def test_records_of_kafkas_own_topics_are_decoded_together() -> None:
    writer = Writer()
    writer.int16(1)
    OffsetCommitKey("billing", "orders", 3).encode(writer, 0)
    key = writer.to_bytes()
    writer = Writer()
    writer.int16(3)
    OffsetCommitValue(offset=42, leader_epoch=1, metadata="", commit_timestamp=5).encode(writer, 3)
    shown_key, shown_value = show_record(record("__consumer_offsets", key, writer.to_bytes()), Schema(), Schema())
    assert shown_key.format == "kafka" and '"group": "billing"' in shown_key.text
    assert '"offset": 42' in shown_value.text
    assert show_record(record("orders", b"k", b"v"), Schema(), Schema())[1].text == "v"


def test_avro_with_and_without_the_prefix_of_a_registry() -> None:
    fastavro = pytest.importorskip("fastavro")
    import io

    schema = {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": "string"}],
    }
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), {"id": 7, "who": "anna"})
    wanted = Schema("avro", json.dumps(schema))
    for data in (stream.getvalue(), b"\x00\x00\x00\x00\x01" + stream.getvalue()):
        assert json.loads(show(data, wanted).text) == {"id": 7, "who": "anna"}
    assert show(b"\xff\xff", wanted).format == "hex"
    assert "schema" in show(stream.getvalue(), Schema("avro")).note
    file = io.BytesIO()
    fastavro.writer(file, fastavro.parse_schema(schema), [{"id": 1, "who": "ben"}])
    assert json.loads(show(file.getvalue(), Schema()).text) == [{"id": 1, "who": "ben"}]


def test_protobuf_with_a_descriptor_file() -> None:
    pytest.importorskip("google.protobuf")
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name="shop.proto", package="shop", syntax="proto3")
    message = file.message_type.add(name="Order")
    message.field.add(name="id", number=1, type=3, label=1)
    message.field.add(name="who", number=2, type=9, label=1)
    data = b"\x08\x07\x12\x04anna"
    schema = Schema("protobuf", "", files.SerializeToString(), "shop.Order")
    assert json.loads(show(data, schema).text) == {"id": "7", "who": "anna"}
    assert json.loads(show(b"\x00\x00\x00\x00\x01\x00" + data, schema).text) == {"id": "7", "who": "anna"}
    assert "no message" in show(data, schema._replace(message="shop.Nothing")).note
    assert "descriptor" in show(data, Schema("protobuf")).note


def test_a_schema_that_makes_no_sense_is_refused() -> None:
    assert read_schema(None) == Schema()
    found = read_schema({"format": "protobuf", "descriptors": base64.b64encode(b"x").decode(), "message": "a.B"})
    assert found == Schema("protobuf", "", b"x", "a.B")
    for wrong in ([], {"format": "xml"}, {"format": "avro", "avro": 3}, {"descriptors": "%"}):
        with pytest.raises(Refused):
            read_schema(wrong)
