"""Raw requests over a plain socket, encoded and decoded with Moldau's own message classes."""

from __future__ import annotations

import os
import re
import socket
import struct
from typing import Any

from moldau.protocol import api_keys
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.records_data import MemoryRecords, Records
from tests.pace import patience

SECONDS = patience(20)
COMPARE_TEXTS = os.environ.get("MOLDAU_COMPARE_TEXTS") == "1"
CLOSED = "connection closed"


class Wire:
    """One connection. Answers come in the order of the requests."""

    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), SECONDS)
        self.socket.settimeout(SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.correlation_id = 0

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send_frame(self, frame: bytes) -> None:
        self.socket.sendall(struct.pack(">i", len(frame)) + frame)

    def receive_frame(self) -> bytes | None:
        """The next frame, or None when the other side has closed the connection."""
        head = self._exactly(4)
        if head is None:
            return None
        return self._exactly(struct.unpack(">i", head)[0])

    def _exactly(self, count: int) -> bytes | None:
        parts = []
        while count:
            try:
                part = self.socket.recv(min(count, 1 << 20))
            except ConnectionResetError:
                return None
            if not part:
                return None
            parts.append(part)
            count -= len(part)
        return b"".join(parts)

    def send(self, request: Message, version: int, client_id: str | None = "wire") -> None:
        """Encodes one request with its header."""
        key = type(request).API_KEY
        self.correlation_id += 1
        writer = Writer()
        header = RequestHeader(key, version, self.correlation_id, client_id)
        header.encode(writer, api_keys.request_header_version(key, version))
        request.encode(writer, version)
        self.send_frame(writer.to_bytes())

    def receive(self, key: int, version: int) -> Any:
        """The answer to a request of that key and version; CLOSED when there is none."""
        frame = self.receive_frame()
        if frame is None:
            return CLOSED
        reader = Reader(frame)
        header = ResponseHeader.decode(reader, api_keys.response_header_version(key, version))
        assert header.correlation_id == self.correlation_id
        response = api_keys.response_class(key).decode(reader, version)
        assert reader.remaining == 0, f"{reader.remaining} bytes are left after {response!r}"
        return response

    def ask(self, request: Message, version: int, client_id: str | None = "wire") -> Any:
        self.send(request, version, client_id)
        return self.receive(type(request).API_KEY, version)


_TEXT_FIELDS = {"error_message", "message", "batch_index_error_message", "acknowledge_error_message", "documentation"}


def plain(value: Any, hide: frozenset[str] | set[str] = frozenset()) -> Any:
    """A message as dictionaries and lists, for comparing: what differs between any two clusters is masked.

    Masked are the fields named in `hide`, uuids that are not zero, and (unless MOLDAU_COMPARE_TEXTS=1) the wording of
    messages, of which only their presence counts.
    """
    if isinstance(value, Message):
        fields = {name: _field(name, getattr(value, name), hide) for name in type(value).FIELDS}
        if value.unknown_tags:
            fields["unknown_tags"] = value.unknown_tags
        return fields
    if isinstance(value, Records):
        return f"<{value.size} bytes of records>"
    if isinstance(value, bytes):
        return value if len(value) != 16 or not any(value) else "<uuid>"
    if isinstance(value, list):
        return [plain(item, hide) for item in value]
    return value


def _field(name: str, value: Any, hide: frozenset[str] | set[str]) -> Any:
    if name in hide:
        return f"<{name}>"
    if name in _TEXT_FIELDS and isinstance(value, str) and value:
        return re.sub(r"[\w-]{22}(?![\w-])", "<uuid>", value) if COMPARE_TEXTS else "<text>"
    return plain(value, hide)


def records_of(value: Records | None) -> bytes:
    """The bytes of a records field."""
    if value is None:
        return b""
    assert isinstance(value, MemoryRecords)
    return value.to_bytes()
