"""A simulated client's connection: requests out, responses matched in order, and a reconnect after every break."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.protocol import api_keys
from moldau.protocol.messages.headers import RequestHeader
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.network import Link
from moldau.sim.kernel.world import Violation, World

OnResponse = Callable[[Message | None], None]


class Pending:
    __slots__ = ("api_key", "correlation_id", "on_response", "version")

    def __init__(self, api_key: int, version: int, correlation_id: int, on_response: OnResponse) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.on_response = on_response


def encode_request(request: Message, version: int, correlation_id: int, client_id: str) -> bytes:
    """Header and body, without the size in front."""
    writer = Writer()
    writer.int16(request.API_KEY)
    writer.int16(version)
    writer.int32(correlation_id)
    writer.nullable_string(client_id)
    if api_keys.request_header_version(request.API_KEY, version) >= 2:
        writer.uvarint(0)
    request.encode(writer, version)
    return writer.to_bytes()


def decode_request(frame: bytes) -> Message:
    """The body of a request that `encode_request` or a client has made."""
    api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
    reader = Reader(frame)
    RequestHeader.decode(reader, api_keys.request_header_version(api_key, version))
    return api_keys.request_class(api_key).decode(reader, version)


def decode_response(frame: bytes, api_key: int, version: int, correlation_id: int) -> Message:
    reader = Reader(frame)
    response_id = reader.int32()
    if response_id != correlation_id:
        raise Violation(f"answers come in the order of their requests: {response_id} where {correlation_id} was due")
    if api_keys.response_header_version(api_key, version) >= 1:
        reader.unknown_tags()
    response = api_keys.response_class(api_key).decode(reader, version)
    if reader.remaining:
        raise Violation(f"an answer has no bytes left over: {reader.remaining} after {response!r}")
    return response


class SimClient:
    """One connection at a time. Every call is answered once: with a response, or with None when the link broke."""

    def __init__(self, world: World, host: Host, name: str) -> None:
        self.world = world
        self.host = host
        self.name = name
        self._link: Link | None = None
        self._connections = 0
        self._correlation_id = 0
        self._pending: deque[Pending] = deque()

    @property
    def in_flight(self) -> int:
        return len(self._pending)

    def call(self, request: Message, version: int, on_response: OnResponse) -> None:
        if not self._connect():
            self.world.schedule(5, lambda: on_response(None))
            return
        assert self._link is not None
        self._correlation_id += 1
        self._pending.append(Pending(request.API_KEY, version, self._correlation_id, on_response))
        self._link.send_to_host(encode_request(request, version, self._correlation_id, self.name))

    def tell(self, request: Message, version: int) -> None:
        """A request that has no response (produce with acks=0)."""
        if self._connect():
            assert self._link is not None
            self._correlation_id += 1
            self._link.send_to_host(encode_request(request, version, self._correlation_id, self.name))

    def disconnect(self, reason: str) -> None:
        if self._link is not None:
            self._link.cut(reason)

    def _connect(self) -> bool:
        if self._link is not None and self._link.open:
            return True
        if self._pending:
            # The break of the old connection is not known here yet.
            return False
        if not self.host.running:
            return False
        self._connections += 1
        number = self._connections
        name = f"{self.name}#{number}"
        self._link = Link(self.world, name, self.host, self._on_frame, lambda: self._on_close(number))
        return True

    def _on_frame(self, frame: bytes) -> None:
        if not self._pending:
            raise Violation(f"nobody is answered who did not ask: {self.name}")
        pending = self._pending.popleft()
        pending.on_response(decode_response(frame, pending.api_key, pending.version, pending.correlation_id))

    def _on_close(self, number: int) -> None:
        if number != self._connections:
            return
        pending = list(self._pending)
        self._pending.clear()
        for entry in pending:
            entry.on_response(None)
