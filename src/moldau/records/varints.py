"""Zigzag varints as records use them: 32 bits in up to five bytes, 64 bits in up to ten.

Readers return the value and the index behind it. They read past a record's end rather than check it at each byte:
`bytes` itself stops at the end of the data, and the caller compares the index with the record's end afterwards.
"""

from __future__ import annotations

from librt.strings import BytesWriter
from mypy_extensions import i64

from moldau.records.batch import CorruptBatch


def read_varint(data: bytes, index: i64) -> tuple[i64, i64]:
    """A 32-bit value and the index behind it; bits above the 32nd are dropped, as in Java."""
    byte = i64(data[index])
    index += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), index
    raw: i64 = byte & 0x7F
    shift: i64 = 7
    while shift < 35:
        byte = i64(data[index])
        index += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), index
        shift += 7
    raise CorruptBatch("a varint is longer than five bytes")


def read_varlong(data: bytes, index: i64) -> tuple[i64, i64]:
    """A 64-bit value and the index behind it."""
    byte = i64(data[index])
    index += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), index
    raw: i64 = byte & 0x7F
    shift: i64 = 7
    while shift < 63:
        byte = i64(data[index])
        index += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), index
        shift += 7
    byte = i64(data[index])
    index += 1
    if byte >= 0x80:
        raise CorruptBatch("a varlong is longer than ten bytes")
    # The tenth byte holds bit 63 alone. It is put in place after the zigzag shift: no step then leaves 64 bits.
    return ((raw >> 1) | ((byte & 1) << 62)) ^ -(raw & 1), index


def write_varint(writer: BytesWriter, value: i64) -> None:
    """Writes a value of up to 64 bits; a value of 32 bits gets the same bytes from Java's 32-bit writer."""
    if value >= 0x4000000000000000 or value < -0x4000000000000000:
        _write_wide(writer, value)
        return
    raw = (value << 1) ^ (value >> 63)
    while raw >= 0x80:
        writer.append((raw & 0x7F) | 0x80)
        raw >>= 7
    writer.append(raw)


def _write_wide(writer: BytesWriter, value: i64) -> None:
    """A value that needs all 64 bits: ten bytes, the last one a single bit."""
    folded = value if value >= 0 else ~value
    sign: i64 = 0 if value >= 0 else 1
    writer.append(((folded << 1) & 0x7E) | sign | 0x80)
    folded >>= 6
    for _ in range(8):
        writer.append((folded & 0x7F) | 0x80)
        folded >>= 7
    writer.append(folded)


def varint_size(value: i64) -> i64:
    """How many bytes write_varint writes."""
    folded = value if value >= 0 else ~value
    folded >>= 6
    size: i64 = 1
    while folded > 0:
        size += 1
        folded >>= 7
    return size
