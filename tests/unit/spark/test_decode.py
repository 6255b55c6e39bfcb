"""Decoding of values: columns from good ones, a reason for each bad one, and neighbours that are never mixed up."""

from __future__ import annotations

import datetime
import io
import json
import pickle
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pa = pytest.importorskip("pyarrow", reason="pyarrow is missing: pip install 'moldau[arrow]'")

from moldau.spark.decode import Decoder, StringDecoder  # noqa: E402
from moldau.spark.decode_text import CsvDecoder, JsonDecoder  # noqa: E402
from moldau.spark.decoders import make_decoder  # noqa: E402
from moldau.spark.options import OptionError, ValueOptions  # noqa: E402

UTC = datetime.UTC
TIME = pa.timestamp("us", tz="UTC")


def decode(decoder: Decoder, *values: bytes | None) -> list[Any]:
    """The results, with the reason in the place of each bad one, as an error."""
    decoder = pickle.loads(pickle.dumps(decoder))  # as executors get it
    found, reasons = decoder.decode(pa.array(values, pa.binary()))
    assert len(found) == len(values)
    assert found.type == decoder.result_type
    told = [None] * len(values) if reasons is None else reasons.to_pylist()
    assert all(value is None for value, reason in zip(found.to_pylist(), told, strict=True) if reason)
    return [Bad(reason) if reason else value for value, reason in zip(found.to_pylist(), told, strict=True)]


class Bad:
    """Equals any reason."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Bad)

    def __repr__(self) -> str:
        return f"Bad({self.reason!r})"


def test_json_becomes_columns() -> None:
    kind = pa.struct(
        [("id", pa.int64()), ("name", pa.string()), ("at", TIME), ("tags", pa.list_(pa.string())), ("day", pa.date32()),
         ("price", pa.decimal128(10, 2))]
    )  # fmt: skip
    good = {"id": 1, "name": "ä", "at": "2024-01-02T03:04:05Z", "tags": ["x"], "day": "2024-01-02", "price": "1.50"}
    without_zone = {"at": "2024-01-02 03:04:05", "more": {"x": 1}}
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    row = {"id": 1, "name": "ä", "at": at, "tags": ["x"], "day": at.date(), "price": Decimal("1.50")}
    found = decode(JsonDecoder(kind), json.dumps(good).encode(), json.dumps(without_zone).encode(), None, b"null")
    assert found == [row, {**dict.fromkeys(row), "at": at}, None, None]


ID = pa.struct([("id", pa.int64())])


@pytest.mark.parametrize(
    "value",
    [b"", b" ", b"{", b"}", b"x", b'{"id":"1"}', b'{"id":1.5}', b'{"id":1}{"id":2}', b'{"id":1}\n{"id":2}', b"[1]",
     b'{"id":1}}', b'{"id":1},"v":{"id":2}', b'{"id":1},"x":"', b"\xff", b"\0\0\0\0\1", b'{"id":99999999999999999999}'],
)  # fmt: skip
def test_a_bad_document_stands_alone(value: bytes) -> None:
    """Its neighbours are decoded as if it were not there, wherever it stands."""
    good = [{"id": number} for number in range(5)]
    values = [json.dumps(row).encode() for row in good]
    decoder = JsonDecoder(ID)
    assert decode(decoder, value) == [Bad()]
    for place in range(6):
        assert decode(decoder, *values[:place], value, *values[place:]) == [*good[:place], Bad(), *good[place:]]


def test_documents_cannot_be_completed_by_their_neighbours() -> None:
    """One that ends too early and one that begins too late would be two good ones together."""
    halves = [b'{"id":', b'1}{"id":2}']
    assert decode(JsonDecoder(ID), *halves) == [Bad(), Bad()]
    assert decode(JsonDecoder(ID), b'{"id":1}\n{"id":2}', b"") == [Bad(), Bad()]


def test_a_document_may_have_lines_and_a_schema_id_in_front() -> None:
    assert decode(JsonDecoder(ID), b'{\n"id":\n1}', b'\0\0\0\0\7{"id":2}') == [{"id": 1}, {"id": 2}]


def test_text_that_is_not_utf_8_is_bad() -> None:
    assert decode(JsonDecoder(pa.struct([("name", pa.string())])), b'{"name":"\xff"}') == [Bad()]
    assert decode(StringDecoder(), b"a", b"\xff", None, "ä".encode()) == ["a", Bad(), None, "ä"]


def test_maps_are_read_too() -> None:
    kind = pa.struct([("m", pa.map_(pa.string(), pa.int64())), ("at", TIME)])
    at = datetime.datetime(2024, 1, 2, tzinfo=UTC)
    found = decode(JsonDecoder(kind), b'{"m":{"a":1},"at":"2024-01-02T00:00:00"}', b'{"m":{"a":"x"}}', b'{"m":3}')
    assert found == [{"m": [("a", 1)], "at": at}, Bad(), Bad()]


documents = st.fixed_dictionaries({"id": st.integers(-(2**63), 2**63 - 1), "name": st.none() | st.text()})


@settings(max_examples=50, deadline=None)
@given(st.lists(st.none() | documents | st.binary(max_size=8), max_size=30))
def test_good_documents_are_decoded_whatever_lies_between_them(values: list[Any]) -> None:
    decoder = JsonDecoder(pa.struct([("id", pa.int64()), ("name", pa.string())]))
    as_bytes = [json.dumps(item).encode() if isinstance(item, dict) else item for item in values]
    for value, found in zip(values, decode(decoder, *as_bytes), strict=True):
        if isinstance(value, dict):
            assert found == value or "\\ud8" in json.dumps(value) or "\\udc" in json.dumps(value)


def test_csv_becomes_columns() -> None:
    decoder = CsvDecoder(pa.struct([("id", pa.int64()), ("name", pa.string()), ("at", TIME)]))
    at = datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)
    lines = [b"1,a,2024-01-02 03:04:05", b'2,"x,""y""",', b"3", b"x,y,", b'1,"a,', b"1,a\n,", b"", None, b",,"]
    good = {"id": 2, "name": 'x,"y"', "at": None}
    empty = dict.fromkeys(good)
    bad = [Bad()] * 5
    assert decode(decoder, *lines) == [{"id": 1, "name": "a", "at": at}, good, *bad, None, empty]
    assert decode(decoder, b'1,"a', b'b",\n5,c,') == [Bad(), Bad()]


def test_csv_has_no_columns_in_columns() -> None:
    with pytest.raises(OptionError, match="plain columns"):
        CsvDecoder(pa.struct([("a", pa.list_(pa.int32()))]))


AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"], "default": None},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    ],
}
ORDER = {
    "id": 7, "note": "x", "at": datetime.datetime(2024, 1, 2, tzinfo=UTC), "tags": {"a": 1}, "price": Decimal("1.25"),
}  # fmt: skip
ORDER_ROW = {**ORDER, "tags": [("a", 1)]}


def avro(schema: Any, row: Any, schema_id: int | None = None) -> bytes:
    fastavro = pytest.importorskip("fastavro", reason="fastavro is missing: pip install 'moldau[formats]'")
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), row)
    return (b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")) + stream.getvalue()


def test_avro_becomes_columns() -> None:
    value = avro(AVRO, ORDER)
    decoder = make_decoder(ValueOptions("avro", json.dumps(AVRO)))
    assert decoder is not None
    assert decode(decoder, value, value[:-1], b"", value + b"x", None) == [ORDER_ROW, Bad(), Bad(), Bad(), None]


def test_avro_values_name_their_schemas_by_id(tmp_path: Path) -> None:
    """An older record gets the defaults of the newest schema; an id that appears later is looked for."""
    old = {**AVRO, "fields": [AVRO["fields"][0], *AVRO["fields"][2:]]}
    (tmp_path / "3.avsc").write_text(json.dumps(old))
    (tmp_path / "12.avsc").write_text(json.dumps(AVRO))
    row = {name: value for name, value in ORDER.items() if name != "note"}
    values = [avro(old, row, 3), avro(AVRO, ORDER, 12), avro(AVRO, ORDER, 13), b"\0\0", avro(AVRO, ORDER)]
    decoder = make_decoder(ValueOptions("avro", schema_directory=str(tmp_path)))
    assert decoder is not None
    assert decode(decoder, *values) == [{**ORDER_ROW, "note": None}, ORDER_ROW, Bad(), Bad(), Bad()]
    (tmp_path / "13.avsc").write_text(json.dumps(AVRO))
    assert decode(decoder, values[2]) == [ORDER_ROW]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (ValueOptions("avro"), "needs valueSchema"),
        (ValueOptions("avro", "no-such-file.avsc"), "neither an Avro schema nor a file"),
        (ValueOptions("avro", '{"type":"nothing"}'), "cannot be read"),
        (ValueOptions("avro", '{"type":"record","name":"r","fields":[{"name":"a","type":["int","string"]}]}'), "union"),
        (ValueOptions("avro", schema_directory="no-such-directory"), "no directory"),
        (ValueOptions("json"), "needs valueSchema"),
        (ValueOptions("protobuf"), "valueSchemaMessage"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(options: ValueOptions, words: str) -> None:
    pytest.importorskip("fastavro", reason="fastavro is missing: pip install 'moldau[formats]'")
    pytest.importorskip("google.protobuf", reason="protobuf is missing: pip install 'moldau[formats]'")
    with pytest.raises(OptionError, match=words):
        make_decoder(options)


def descriptors() -> tuple[bytes, Any]:
    """A file with a message Order, as protoc would describe it."""
    pytest.importorskip("google.protobuf", reason="protobuf is missing: pip install 'moldau[formats]'")
    from google.protobuf import descriptor_pb2, timestamp_pb2

    from moldau.spark.decode_protobuf import message_class

    file = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    file.dependency.append("google/protobuf/timestamp.proto")
    message = file.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    message.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    message.field.add(name="tags", number=2, type=kinds.TYPE_STRING, label=kinds.LABEL_REPEATED)
    message.field.add(
        name="at", number=3, type=kinds.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp", label=kinds.LABEL_OPTIONAL
    )
    files = descriptor_pb2.FileDescriptorSet()
    timestamp_pb2.DESCRIPTOR.CopyToProto(files.file.add())
    files.file.append(file)
    data = files.SerializeToString()
    return data, message_class(data, "shop.Order")


def test_protobuf_becomes_columns(tmp_path: Path) -> None:
    data, order = descriptors()
    (tmp_path / "order.desc").write_bytes(data)
    value = order(id=5, tags=["a", "b"])
    value.at.seconds = 1_700_000_000
    decoder = make_decoder(ValueOptions("protobuf", str(tmp_path / "order.desc"), "shop.Order"))
    assert decoder is not None
    at = datetime.datetime.fromtimestamp(1_700_000_000, UTC)
    found = decode(decoder, value.SerializeToString(), b"\xff\xff", order().SerializeToString(), None)
    assert found == [{"id": 5, "tags": ["a", "b"], "at": at}, Bad(), {"id": 0, "tags": [], "at": None}, None]


def test_protobuf_values_name_their_schemas_by_id(tmp_path: Path) -> None:
    data, order = descriptors()
    (tmp_path / "4.desc").write_bytes(data)
    body = order(id=5).SerializeToString()
    decoder = make_decoder(ValueOptions("protobuf", "", "shop.Order", str(tmp_path)))
    assert decoder is not None
    first, nested, unknown = b"\0\0\0\0\4\0", b"\0\0\0\0\4\4\0\2", b"\0\0\0\0\5\0"
    row = {"id": 5, "tags": [], "at": None}
    assert decode(decoder, first + body, nested + body, unknown + body, b"\0\0\0\0\4", body) == [
        row,
        row,
        Bad(),
        Bad(),
        Bad(),
    ]
