"""Record batches put together field by field, by code that shares nothing with the package under test."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

import cramjam
from crc32c import crc32c

RawHeader = tuple[bytes, bytes | None]
NOW = 1_794_719_334_386


def varint(number: int) -> bytes:
    zigzag = ((number << 1) ^ (number >> 63)) & 0xFFFFFFFFFFFFFFFF
    out = b""
    while zigzag > 127:
        out += bytes([zigzag & 127 | 128])
        zigzag >>= 7
    return out + bytes([zigzag])


def sized(value: bytes | None) -> bytes:
    return varint(-1) if value is None else varint(len(value)) + value


def record(
    offset_delta: int,
    timestamp_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[RawHeader] = (),
    attributes: int = 0,
) -> bytes:
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta) + sized(key) + sized(value)
    body += varint(len(headers)) + b"".join(sized(name) + sized(header_value) for name, header_value in headers)
    return varint(len(body)) + body


def framed(body: bytes) -> bytes:
    """A record of any content with a length that fits."""
    return varint(len(body)) + body


def batch(
    records: Sequence[bytes] | bytes,
    *,
    base_offset: int = 0,
    attributes: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = NOW,
    max_timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    count: int | None = None,
    magic: int = 2,
    leader_epoch: int = -1,
    crc: int | None = None,
    length: int | None = None,
) -> bytes:
    body = records if isinstance(records, bytes) else b"".join(records)
    if count is None:
        count = len(records)
    if last_offset_delta is None:
        last_offset_delta = count - 1
    if max_timestamp is None:
        max_timestamp = base_timestamp
    tail = struct.pack(
        ">hiqqqhii",
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    )
    tail += body
    length = 9 + len(tail) if length is None else length
    return struct.pack(">qiibI", base_offset, length, leader_epoch, magic, crc32c(tail) if crc is None else crc) + tail


def gzip(data: bytes) -> bytes:
    return zlib.compress(data, 6, wbits=31)


def snappy(data: bytes) -> bytes:
    out = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    for start in range(0, len(data), 32768):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + 32768]))
        out += struct.pack(">i", len(block)) + block
    return out


def raw_snappy(data: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(data))


def lz4(data: bytes, linked: bool = False) -> bytes:
    """A frame with block checksums and a content checksum."""
    compressor = cramjam.lz4.Compressor(block_linked=linked)
    compressor.compress(data)
    return bytes(compressor.finish())


def zstd(data: bytes) -> bytes:
    """A stream whose frame does not declare its size."""
    compressor = cramjam.zstd.Compressor(level=3)
    compressor.compress(data)
    return bytes(compressor.finish())


PACKERS = {1: gzip, 2: snappy, 3: lz4, 4: zstd}


def packed_batch(records: Sequence[bytes], codec: int, *, flags: int = 0, **fields: int) -> bytes:
    return batch(PACKERS[codec](b"".join(records)), attributes=codec | flags, count=len(records), **fields)
