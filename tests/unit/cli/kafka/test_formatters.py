"""Records look as in Kafka's own console consumer."""

from __future__ import annotations

import struct

import pytest

from moldau.cli.kafka.deserializers import find
from moldau.cli.kafka.formatters import DEFAULT, FORMATTERS, PACKAGE, new_formatter
from moldau.cli.kafka.options import JavaFailure
from moldau.client.record import ConsumerRecord
from moldau.protocol.stored.group_records import (
    OffsetCommitKey,
    OffsetCommitValue,
    encode_group_key,
    encode_group_value,
)

SERIALIZATION = "org.apache.kafka.common.serialization."


def record(
    key: bytes | None = b"k", value: bytes | None = b"v", headers: list[tuple[str, bytes | None]] | None = None
) -> ConsumerRecord:
    return ConsumerRecord(
        "orders", 2, 7, timestamp=1234, timestamp_type=0, key=key, value=value, headers=headers, leader_epoch=3
    )


def shown(settings: dict[str, str], *records: ConsumerRecord) -> bytes:
    return new_formatter(DEFAULT, settings).write_all(records or [record()])


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, b"v\n"),
        ({"print.key": "true"}, b"k\tv\n"),
        ({"print.value": "false"}, b""),
        ({"print.value": "false", "print.key": "true", "line.separator": "|"}, b"k|"),
        ({"print.offset": "true", "print.partition": "true", "key.separator": "-"}, b"Partition:2-Offset:7-v\n"),
        ({"print.timestamp": " True"}, b"CreateTime:1234\tv\n"),
        ({"print.epoch": "true", "print.delivery": "true"}, b"Delivery:NOT_PRESENT\tEpoch:NOT_PRESENT\tv\n"),
        ({"print.headers": "true"}, b"NO_HEADERS\tv\n"),
    ],
)
def test_parts_of_a_record_stand_in_a_fixed_order(settings: dict[str, str], text: bytes) -> None:
    assert shown(settings) == text
    writer = new_formatter(DEFAULT, settings).text_writer()
    assert (writer is None) == (not text or b"Time" in text or b"PRESENT" in text or b"HEADERS" in text)


def test_headers_and_null_have_texts_of_their_own() -> None:
    settings = {"print.headers": "true", "print.key": "true", "null.literal": "-", "headers.separator": ";"}
    assert shown(settings, record(None, None, [("a", b"1"), ("b", None)])) == b"a:1;b:-\t-\t-\n"


def test_a_record_that_was_appended_by_the_broker_says_so() -> None:
    appended = ConsumerRecord(
        "orders", 0, 0, timestamp=99, timestamp_type=1, key=None, value=b"v", headers=None, leader_epoch=0
    )
    assert shown({"print.timestamp": "true"}, appended) == b"LogAppendTime:99\tv\n"


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("StringDeserializer", b"a\xff", "a\ufffd"),
        ("LongDeserializer", struct.pack(">q", -5), "-5"),
        ("IntegerDeserializer", struct.pack(">i", 70000), "70000"),
        ("ShortDeserializer", struct.pack(">h", -2), "-2"),
        ("FloatDeserializer", struct.pack(">f", 0.1), "0.1"),
        ("FloatDeserializer", struct.pack(">f", 1e10), "1.0E10"),
        ("DoubleDeserializer", struct.pack(">d", 1234567.5), "1234567.5"),
        ("DoubleDeserializer", struct.pack(">d", 1e7), "1.0E7"),
        ("DoubleDeserializer", struct.pack(">d", 0.00012), "1.2E-4"),
        ("DoubleDeserializer", struct.pack(">d", 0.001), "0.001"),
        ("DoubleDeserializer", struct.pack(">d", float("nan")), "NaN"),
        ("DoubleDeserializer", struct.pack(">d", -0.0), "-0.0"),
        ("BooleanDeserializer", b"\x01", "true"),
        ("BytesDeserializer", b"a\\\x00\xff~", "a\\x5C\\x00\\xFF~"),
        ("ByteBufferDeserializer", b"abc", "java.nio.HeapByteBuffer[pos=0 lim=3 cap=3]"),
        ("UUIDDeserializer", b"1-2-3-4-ABC", "00000001-0002-0003-0004-000000000abc"),
    ],
)
def test_deserializers_show_what_java_shows(name: str, data: bytes, text: str) -> None:
    assert find(SERIALIZATION + name, {}, False)(data) == text


@pytest.mark.parametrize(
    ("name", "data", "sentence"),
    [
        ("LongDeserializer", b"null", "Size of data received by LongDeserializer is not 8"),
        ("BooleanDeserializer", b"\x80", "Unexpected byte received by BooleanDeserializer: -128"),
        ("UUIDDeserializer", b"x", "Error parsing data into UUID"),
        ("VoidDeserializer", b"x", "Data should be null for a VoidDeserializer."),
    ],
)
def test_deserializers_refuse_what_java_refuses(name: str, data: bytes, sentence: str) -> None:
    with pytest.raises(JavaFailure) as failure:
        find(SERIALIZATION + name, {}, False)(data)
    assert failure.value.message == sentence


def test_the_encoding_of_strings_can_be_chosen() -> None:
    settings = {"print.key": "true", "key.deserializer": SERIALIZATION + "StringDeserializer"}
    settings["key.deserializer.key.deserializer.encoding"] = "ISO-8859-1"
    assert shown(settings, record(b"\xe4")) == "ä\tv\n".encode()


def test_an_unknown_deserializer_is_told_of_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert shown({"value.deserializer": "no.such.Class"}) == b"v\n"
    assert "Unable to instantiate a deserializer from no.such.Class" in capsys.readouterr().err


def test_every_formatter_of_the_table_can_be_made() -> None:
    for name in FORMATTERS:
        assert new_formatter(name, {}).write_all([]) == b""
    with pytest.raises(JavaFailure, match=r"^no\.such\.Formatter$"):
        new_formatter("no.such.Formatter", {})


def test_committed_offsets_are_json_without_line_ends() -> None:
    formatter = new_formatter(PACKAGE + "OffsetsMessageFormatter", {})
    key = encode_group_key(OffsetCommitKey(group="g", topic="t", partition=1))
    value = encode_group_value(OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9), 3)
    expected = (
        b'{"key":{"type":1,"data":{"group":"g","topic":"t","partition":1}},"value":{"version":3,"data":'
        b'{"offset":5,"leaderEpoch":2,"metadata":"m","commitTimestamp":9}}}'
    )
    assert formatter.write_all([record(key, value)]) == expected
    assert formatter.write_all([record(key, None)]).endswith(b'"value":null}')


@pytest.mark.parametrize("name", ["GroupMetadataMessageFormatter", "ShareGroupMessageFormatter"])
def test_other_records_of_a_coordinator_are_left_out(name: str) -> None:
    key = encode_group_key(OffsetCommitKey(group="g", topic="t", partition=1))
    formatter = new_formatter(PACKAGE + name, {})
    assert formatter.write_all([record(key, None), record(None, b"x"), record(b"\x7f\xff", b"x")]) == b""


def test_a_damaged_record_of_a_coordinator_is_an_error_with_its_offset() -> None:
    formatter = new_formatter(PACKAGE + "TransactionLogMessageFormatter", {})
    with pytest.raises(JavaFailure, match=r"^Could not read record at offset 7 due to: "):
        formatter.write(record(b"\x00", b"x"), [])


def test_what_was_shown_before_an_error_stays() -> None:
    formatter = new_formatter(DEFAULT, {"print.key": "true", "value.deserializer": SERIALIZATION + "LongDeserializer"})
    out: list[bytes] = []
    with pytest.raises(JavaFailure):
        formatter.write(record(), out)
    assert b"".join(out) == b"k\t"
