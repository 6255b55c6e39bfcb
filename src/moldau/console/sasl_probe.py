"""Asks a listener whether it wants a login, before anything else is said to it.

A listener without SASL responds to a SaslHandshake with ILLEGAL_SASL_STATE, one with SASL with the mechanisms it has.
One with TLS does not respond to plain text at all: whoever uses TLS says so with security.protocol.
"""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from moldau.protocol.errors import ILLEGAL_SASL_STATE
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from moldau.protocol.primitives import DecodeError, Reader, Writer

TIMEOUT_S = 3.0
RESPONSE_BYTES_MAX = 64 * 1024
VERSION = 1


class Listener(NamedTuple):
    """Whether somebody responded, whether a login is wanted, and how one may log in."""

    responded: bool
    wants_login: bool = False
    mechanisms: tuple[str, ...] = ()


def ask_listener(bootstrap: str) -> Listener:
    """What the first of the addresses says that responds."""
    for text in bootstrap.split(","):
        host, _, port = text.strip().rpartition(":")
        try:
            found = _ask(host.strip("[]"), int(port))
        except (OSError, ValueError, DecodeError):
            continue
        if found is not None:
            return found
    return Listener(False)


def _ask(host: str, port: int) -> Listener | None:
    writer = Writer()
    writer.int16(SaslHandshakeRequest.API_KEY)
    writer.int16(VERSION)
    writer.int32(0)
    writer.nullable_string("moldau-console")
    SaslHandshakeRequest("PLAIN").encode(writer, VERSION)
    body = writer.to_bytes()
    with socket.create_connection((host, port), TIMEOUT_S) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.sendall(struct.pack(">i", len(body)) + body)
        size = struct.unpack(">i", _receive(connection, 4))[0]
        if not 4 <= size <= RESPONSE_BYTES_MAX:
            return None
        reader = Reader(_receive(connection, size))
    reader.int32()
    response = SaslHandshakeResponse.decode(reader, VERSION)
    if response.error_code == ILLEGAL_SASL_STATE:
        return Listener(True)
    return Listener(True, True, tuple(response.mechanisms))


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        piece = connection.recv(count - len(data))
        if not piece:
            raise ConnectionResetError("the listener closed the connection")
        data += piece
    return data
