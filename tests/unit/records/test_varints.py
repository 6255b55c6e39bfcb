"""Zigzag varints: every width, both signs, and what is too long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from librt.strings import BytesWriter

from moldau.records.batch import CorruptBatch
from moldau.records.varints import read_varint, read_varlong, varint_size, write_varint
from tests.unit.records.raw_batches import varint


def written(value: int) -> bytes:
    writer = BytesWriter()
    write_varint(writer, value)
    return writer.getvalue()


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1))
def test_a_64_bit_number_comes_back(value: int) -> None:
    """The bytes are those of an independent encoder, and the reader stops behind them."""
    data = written(value)
    assert data == varint(value)
    assert varint_size(value) == len(data)
    assert read_varlong(b"\xff" + data + b"\xff", 1) == (value, 1 + len(data))


@settings(deadline=None)
@given(st.integers(-(2**31), 2**31 - 1))
def test_a_32_bit_number_comes_back(value: int) -> None:
    """32 bits need at most five bytes."""
    data = written(value)
    assert len(data) <= 5
    assert read_varint(data, 0) == (value, len(data))


@pytest.mark.parametrize("bit", range(63))
def test_the_edges_of_every_width_come_back(bit: int) -> None:
    """Where the number of bytes changes, nothing is lost."""
    for value in (2**bit - 1, 2**bit, -(2**bit), -(2**bit) - 1):
        assert read_varlong(written(value), 0) == (value, varint_size(value))


def test_longer_forms_are_read_as_java_reads_them() -> None:
    """Zeros on top are harmless, bits above the 32nd are dropped, a sixth or eleventh byte is an error."""
    assert read_varint(b"\x80\x00", 0) == (0, 2)
    assert read_varint(b"\x80\x80\x80\x80\x70", 0) == (0, 5)
    assert read_varint(b"\xff\xff\xff\xff\x0f", 0) == (-(2**31), 5)
    with pytest.raises(CorruptBatch):
        read_varint(b"\x80\x80\x80\x80\x80\x00", 0)
    with pytest.raises(CorruptBatch):
        read_varlong(b"\x80" * 10 + b"\x00", 0)


def test_the_end_of_the_data_stops_the_reader() -> None:
    """A number without its last byte is an IndexError, which callers turn into a corrupt batch."""
    for data in (b"", b"\x80", b"\xff\xff"):
        with pytest.raises(IndexError):
            read_varint(data, 0)
        with pytest.raises(IndexError):
            read_varlong(data, 0)
