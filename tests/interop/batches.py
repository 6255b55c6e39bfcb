"""Record batches built by hand, so that a test can make any byte of them wrong."""

from __future__ import annotations

import gzip
import struct
import time

import crc32c


def now_ms() -> int:
    return int(time.time() * 1000)


def varint(value: int) -> bytes:
    """Zigzag, then seven bits per byte."""
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    value: bytes | None,
    *,
    key: bytes | None = None,
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    headers: bytes = b"\0",
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(offset_delta) + field(key) + field(value) + headers
    return varint(len(body)) + body


def batch(
    values: list[bytes | None] | None = None,
    *,
    payload: bytes | None = None,
    key: bytes | None = None,
    base_offset: int = 0,
    partition_leader_epoch: int = -1,
    magic: int = 2,
    attributes: int = 0,
    count: int | None = None,
    last_offset_delta: int | None = None,
    timestamp: int | None = None,
    max_timestamp: int | None = None,
    timestamp_step: int = 0,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    length_error: int = 0,
    crc_error: int = 0,
) -> bytes:
    """One batch of version 2; `payload` replaces the records, the other arguments the fields of the same name."""
    values = [b"value"] if values is None else values
    if payload is None:
        payload = b"".join(
            record(value, key=key, offset_delta=i, timestamp_delta=i * timestamp_step) for i, value in enumerate(values)
        )
        if attributes & 7 == 1:
            payload = gzip.compress(payload)
    timestamp = now_ms() if timestamp is None else timestamp
    latest = timestamp + max(len(values) - 1, 0) * timestamp_step if max_timestamp is None else max_timestamp
    count = len(values) if count is None else count
    last = count - 1 if last_offset_delta is None else last_offset_delta
    tail = struct.pack(
        ">hiqqqhii", attributes, last, timestamp, latest, producer_id, producer_epoch, base_sequence, count
    )
    tail += payload
    crc = (crc32c.crc32c(tail) + crc_error) & 0xFFFFFFFF
    return struct.pack(">qiibI", base_offset, 9 + len(tail) + length_error, partition_leader_epoch, magic, crc) + tail
