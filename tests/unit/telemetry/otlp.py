"""Writes OTLP metrics by hand, for tests of what reads them."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def field(number: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(number << 3 | 2) + varint(len(data)) + data


def double(number: int, value: float) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<d", value)


def fixed(number: int, value: int) -> bytes:
    return varint(number << 3 | 1) + struct.pack("<q", value)


def labels(number: int, **values: str) -> bytes:
    return b"".join(field(number, field(1, name) + field(2, field(1, value))) for name, value in values.items())


def gauge(name: str, value: float, **tags: str) -> bytes:
    return field(1, name) + field(5, field(1, double(4, value) + labels(7, **tags)))


def total(name: str, value: int, temporality: int = 1, is_monotonic: bool = True, **tags: str) -> bytes:
    """A sum; temporality 1 is delta, 2 cumulative."""
    point = field(1, fixed(6, value) + labels(7, **tags))
    return field(1, name) + field(7, point + number(2, temporality) + number(3, is_monotonic))


def histogram(name: str, count: int, amount: float) -> bytes:
    return field(1, name) + field(9, field(1, fixed(4, count) + double(5, amount)) + number(2, 2))


def metrics_data(*metrics: bytes) -> bytes:
    """Each with a resource of its own, as Java's client writes them."""
    return b"".join(field(1, field(1, labels(1, client_rack="r")) + field(2, field(2, each))) for each in metrics)
