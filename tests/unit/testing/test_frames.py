"""What the proxy reads of a request, however few bytes of it have come."""

from __future__ import annotations

import pytest

from moldau.protocol.api_keys import request_class, request_header_version
from moldau.protocol.api_table import FETCH, PRODUCE
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.messages.produce_request import ProduceRequest
from moldau.protocol.primitives import Message, Writer
from moldau.testing.frames import SIZE_BYTES, Incomplete, RequestHead, read_head


def frame(key: int, version: int, request: Message, client_id: str | None = "me") -> bytes:
    writer = Writer()
    RequestHeader(key, version, 77, client_id).encode(writer, request_header_version(key, version))
    request.encode(writer, version)
    body = writer.to_bytes()
    return len(body).to_bytes(4, "big") + body


def head_of(data: bytes) -> RequestHead:
    return read_head(data, len(data) - SIZE_BYTES)


@pytest.mark.parametrize("version", [3, 8, 9, 13])
@pytest.mark.parametrize("acks", [0, 1, -1])
@pytest.mark.parametrize("transactional_id", [None, "", "a-long-transactional-id"])
def test_a_produce_without_acks_gets_no_response(version: int, acks: int, transactional_id: str | None) -> None:
    data = frame(PRODUCE, version, ProduceRequest(transactional_id=transactional_id, acks=acks))
    head = head_of(data)
    assert (head.api_key, head.version, head.correlation_id, head.client_id) == (PRODUCE, version, 77, "me")
    assert head.has_response is (acks != 0)


def test_where_the_body_begins() -> None:
    for version in (4, 12, 17):
        request = request_class(FETCH)()
        writer = Writer()
        request.encode(writer, version)
        data = frame(FETCH, version, request, client_id=None)
        assert data[head_of(data).body_position :] == writer.to_bytes()


def test_more_bytes_are_waited_for_and_nonsense_is_not() -> None:
    data = frame(PRODUCE, 9, ProduceRequest(transactional_id="t" * 40, acks=-1))
    needed = head_of(data).body_position + 43
    for length in range(SIZE_BYTES, needed):
        with pytest.raises(Incomplete):
            read_head(data[:length], len(data) - SIZE_BYTES)
    assert read_head(data[:needed], len(data) - SIZE_BYTES) == head_of(data)
    with pytest.raises(ValueError):
        read_head(b"\x00\x00\x00\x02\x00\x00", 2)
    with pytest.raises(ValueError):
        read_head(b"\x00\x00\x00\x0a" + b"\x00\x00\x00\x03\x00\x00\x00\x01\x00\x40", 10)
