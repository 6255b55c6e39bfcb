"""Reader and Writer on their own: every primitive at its edges."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from moldau.protocol.primitives import DecodeError, EncodeError, Reader, Writer
from moldau.protocol.records_data import FileRecords, MemoryRecords, Records


def written(write: Callable[[Writer], None]) -> bytes:
    writer = Writer()
    write(writer)
    return writer.to_bytes()


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("int8", -(2**7), 2**7 - 1),
        ("int16", -(2**15), 2**15 - 1),
        ("uint16", 0, 2**16 - 1),
        ("int32", -(2**31), 2**31 - 1),
        ("uint32", 0, 2**32 - 1),
        ("int64", -(2**63), 2**63 - 1),
        ("uvarint", 0, 2**32 - 1),
        ("varint", -(2**31), 2**31 - 1),
        ("varlong", -(2**63), 2**63 - 1),
    ],
)
def test_integers_survive_within_their_range_and_are_refused_outside(kind: str, low: int, high: int) -> None:
    chance = random.Random(kind)
    middle = [low, high, 0, 1, 127, 300 % high, *[chance.randint(low, high) for _ in range(50)]]
    for value in middle + ([-1, -128] if low < 0 else []):
        writer = Writer()
        getattr(writer, kind)(value)
        reader = Reader(writer.to_bytes())
        assert getattr(reader, kind)() == value
        assert reader.remaining == 0
    for value in (low - 1, high + 1) if kind != "varlong" else ():
        with pytest.raises((ValueError, OverflowError, TypeError)):
            getattr(Writer(), kind)(value)


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, "00"), (1, "01"), (127, "7f"), (128, "8001"), (300, "ac02"), (2**32 - 1, "ffffffff0f")],
)
def test_unsigned_varints_are_seven_bits_a_byte_low_group_first(number: int, data: str) -> None:
    assert written(lambda writer: writer.uvarint(number)).hex() == data


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (-65, "8101"), (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ff" * 9 + "01")],
)
def test_signed_varints_are_zigzag(number: int, data: str) -> None:
    assert written(lambda writer: writer.varlong(number)).hex() == data


@pytest.mark.parametrize("data", ["", "80", "ffffffff", "ffffffff10", "ffffffffff", "8080808080"])
def test_varints_that_end_too_late_or_never_are_refused(data: str) -> None:
    for method in ("uvarint", "varint"):
        with pytest.raises(DecodeError):
            getattr(Reader(bytes.fromhex(data)), method)()


@pytest.mark.parametrize("data", ["", "80", "ff" * 9, "ff" * 9 + "02", "ff" * 10 + "00"])
def test_long_varints_that_end_too_late_or_never_are_refused(data: str) -> None:
    with pytest.raises(DecodeError):
        Reader(bytes.fromhex(data)).varlong()


def test_floats_survive_infinity_and_nan_included() -> None:
    for value in (0.0, -1.5, 1e308, math.inf, -math.inf):
        assert Reader(written(lambda writer, value=value: writer.float64(value))).float64() == value  # type: ignore[misc]
    assert math.isnan(Reader(written(lambda writer: writer.float64(math.nan))).float64())


def test_any_byte_but_zero_is_true() -> None:
    assert [Reader(bytes([byte])).boolean() for byte in (0, 1, 2, 255)] == [False, True, True, True]


def test_null_is_refused_where_it_may_not_be() -> None:
    for method, data in (
        ("string", b"\xff\xff"),
        ("compact_string", b"\x00"),
        ("bytes_", b"\xff\xff\xff\xff"),
        ("compact_bytes", b"\x00"),
        ("records", b"\xff\xff\xff\xff"),
        ("compact_records", b"\x00"),
        ("array_length", b"\xff\xff\xff\xff"),
        ("compact_array_length", b"\x00"),
    ):
        with pytest.raises(DecodeError, match="null"):
            getattr(Reader(data), method)()


def test_text_that_is_not_utf_8_is_replaced_as_kafka_does() -> None:
    assert Reader(b"\x00\x03a\xffb").string() == "a\ufffdb"


def test_a_string_longer_than_32767_bytes_cannot_be_sent() -> None:
    for method in ("string", "compact_string"):
        getattr(Writer(), method)("x" * 32767)
        with pytest.raises(EncodeError, match="too long"):
            getattr(Writer(), method)("ä" * 16384)


@pytest.mark.parametrize("kind", ["compact_string", "compact_nullable_string"])
def test_a_string_longer_than_32767_bytes_cannot_be_read(kind: str) -> None:
    """As in Kafka, also where the format could say more."""
    for length in (0x7FFF, 0x8000):
        writer = Writer()
        writer.uvarint(length + 1)
        read = getattr(Reader(writer.to_bytes() + b"x" * length), kind)
        if length == 0x7FFF:
            assert read() == "x" * length
        else:
            with pytest.raises(DecodeError):
                read()


def test_a_uuid_has_sixteen_bytes() -> None:
    with pytest.raises(EncodeError):
        Writer().uuid(b"short")


def test_a_reader_keeps_to_its_part_of_the_data() -> None:
    reader = Reader(b"\x00\x00\x00\x01\x00\x00\x00\x02", 2, 5)
    assert reader.remaining == 3
    with pytest.raises(DecodeError):
        reader.int32()
    assert (reader.int16(), reader.int8()) == (1, 0)
    for start, end in ((-1, 4), (5, 4), (0, 9)):
        with pytest.raises(DecodeError):
            Reader(b"12345678", start, end)


def test_decoded_records_are_not_copied() -> None:
    data = b"\x00\x00\x00\x05hello"
    records = Reader(data).records()
    assert isinstance(records, MemoryRecords)
    assert records.data is data
    assert (records.start, records.end, records.size, records.to_bytes()) == (4, 9, 5, b"hello")


def test_records_in_a_file_become_a_part_of_their_own() -> None:
    file = object()
    writer = Writer()
    writer.int32(0)
    writer.records(FileRecords(file, 100, 1000))
    writer.compact_records(FileRecords(file, 200, 300))
    writer.compact_nullable_records(FileRecords(file, 0, 0))
    writer.int8(7)
    assert writer.size == 4 + 4 + 1000 + 2 + 300 + 1 + 1
    writer.set_int32(0, writer.size - 4)
    with pytest.raises(EncodeError):
        writer.to_bytes()
    head, first, between, second, tail = writer.finish()
    assert head == (writer.size - 4).to_bytes(4, "big") + b"\x00\x00\x03\xe8"
    assert (first, second) == (FileRecords(file, 100, 1000), FileRecords(file, 200, 300))
    assert (between, tail) == (b"\xad\x02", b"\x01\x07")


def test_records_of_an_unknown_kind_and_missing_records_cannot_be_sent() -> None:
    for value in (None, Records(5)):
        with pytest.raises(EncodeError):
            Writer().records(value)
        with pytest.raises(EncodeError):
            Writer().compact_records(value)


def test_only_the_beginning_can_be_written_over() -> None:
    writer = Writer()
    writer.int32(0)
    for position in (-1, 1, 4):
        with pytest.raises(EncodeError):
            writer.set_int32(position, 5)
    writer.set_int32(0, -2)
    assert writer.to_bytes() == b"\xff\xff\xff\xfe"


def test_unknown_tagged_fields_are_merged_in_the_order_of_tags() -> None:
    writer = Writer()
    writer.tags([(1, b"one"), (3, b"three")], [(0, b"zero"), (2, b""), (400, b"x")])
    assert writer.to_bytes() == b"\x05\x00\x04zero\x01\x03one\x02\x00\x03\x05three\x90\x03\x01x"
    assert Reader(writer.to_bytes()).unknown_tags() == [(0, b"zero"), (1, b"one"), (2, b""), (3, b"three"), (400, b"x")]
