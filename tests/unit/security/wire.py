"""Frames as a client sends them before its login, and answers as it reads them."""

from __future__ import annotations

from typing import Any

from moldau.protocol.api_keys import request_header_version, response_class, response_header_version
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.primitives import Message, Reader, Writer


def frame(request: Message, version: int, correlation_id: int = 7) -> bytes:
    key = type(request).API_KEY
    writer = Writer()
    RequestHeader(key, version, correlation_id, "client").encode(writer, request_header_version(key, version))
    request.encode(writer, version)
    return writer.to_bytes()


def answer(data: bytes | None, key: int, version: int) -> Any:
    assert data is not None
    reader = Reader(data)
    header = ResponseHeader.decode(reader, response_header_version(key, version))
    assert header.correlation_id == 7
    response = response_class(key).decode(reader, version)
    assert reader.remaining == 0
    return response


def handshake(mechanism: str, version: int = 1) -> bytes:
    return frame(SaslHandshakeRequest(mechanism), version)


def authenticate(token: bytes, version: int = 2) -> bytes:
    return frame(SaslAuthenticateRequest(token), version)
