"""Reads as much of a request as the proxy needs to know: whose it is, which API, and whether a response will come."""

from __future__ import annotations

import struct
from typing import NamedTuple

from moldau.protocol.api_keys import BY_KEY
from moldau.protocol.api_table import PRODUCE

SIZE_BYTES = 4
_HEADER = struct.Struct(">hhih")
_INT16 = struct.Struct(">h")
# What cannot be the beginning of a frame: TLS greets with 0x16, and no request is so large.
TLS_HANDSHAKE = 0x16


class Incomplete(Exception):
    """More bytes are needed to tell."""


class RequestHead(NamedTuple):
    """The header of a request, and where its body begins."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    has_response: bool
    body_position: int


def read_head(data: bytes | bytearray, size: int) -> RequestHead:
    """The head of the frame at the beginning of `data`, its size field included. Incomplete, or ValueError."""
    end = SIZE_BYTES + size
    if size < _HEADER.size:
        raise ValueError("a frame without a header")
    if len(data) < SIZE_BYTES + _HEADER.size:
        raise Incomplete
    api_key, version, correlation_id, length = _HEADER.unpack_from(data, SIZE_BYTES)
    position = SIZE_BYTES + _HEADER.size
    client_id = ""
    if length > 0:
        client_id = bytes(_slice(data, position, length, end)).decode(errors="replace")
        position += length
    api = BY_KEY.get(api_key)
    if api is None:
        return RequestHead(api_key, version, correlation_id, client_id, True, position)
    flexible = version >= api.first_flexible_version
    if flexible:
        position = _skip_tags(data, position, end)
    has_response = api_key != PRODUCE or _acks(data, position, end, flexible) != 0
    return RequestHead(api_key, version, correlation_id, client_id, has_response, position)


def _acks(data: bytes | bytearray, position: int, end: int, flexible: bool) -> int:
    """The acks of a Produce request stand behind its transactional id."""
    if flexible:
        length, position = _uvarint(data, position, end)
        length -= 1
    else:
        (length,) = _INT16.unpack(_slice(data, position, 2, end))
        position += 2
    position += max(0, length)
    found: tuple[int] = _INT16.unpack(_slice(data, position, 2, end))
    return found[0]


def _skip_tags(data: bytes | bytearray, position: int, end: int) -> int:
    count, position = _uvarint(data, position, end)
    for _ in range(count):
        _, position = _uvarint(data, position, end)
        size, position = _uvarint(data, position, end)
        position += size
    return position


def _uvarint(data: bytes | bytearray, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        (byte,) = _slice(data, position, 1, end)
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
        if shift > 28:
            raise ValueError("a number that is too long")


def _slice(data: bytes | bytearray, position: int, length: int, end: int) -> bytes | bytearray:
    if position + length > end:
        raise ValueError("a frame that is too short")
    if position + length > len(data):
        raise Incomplete
    return data[position : position + length]
