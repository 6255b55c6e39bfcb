"""The door between the clients under test and a broker: passes frames on, and does to them what faults say.

It runs in a thread of the test process. Without faults bytes pass as they come, and only the head of each frame is
looked at; with faults a request is taken whole before it is decided. Responses leave in the order of their requests,
also those that the door gives itself. What is no Kafka frame, such as TLS, passes unread: such a connection can only
be cut.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from moldau.protocol.api_keys import BY_KEY, response_class, response_header_version
from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, Writer
from moldau.testing.error_responses import (
    ASKS_ONLY,
    build_response,
    decode_request,
    is_part_of_session,
    write_error,
)
from moldau.testing.faults import CUT, DELAY, FAIL, HANG, LOSE, Fault
from moldau.testing.frames import SIZE_BYTES, TLS_HANDSHAKE, Incomplete, RequestHead, read_head
from moldau.testing.ports import HeldPort

T = TypeVar("T")

CALL_TIMEOUT_S = 10.0
WRITE_BUFFER_BYTES = 1 << 20


class Proxy:
    """All doors of a cluster, and the faults that are in force; its methods may be called from any thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._doors: list[Door] = []
        self._thread = threading.Thread(target=self._run, name="moldau-testing-proxy", daemon=True)
        self._thread.start()

    def door(self, front: HeldPort, host: str, port: int) -> Door:
        """A door before an address, shut until it is opened."""
        door = Door(self, front, host, port)
        self._doors.append(door)
        return door

    def add(self, fault: Fault, doors: list[Door] | None = None) -> Fault:
        """Puts a fault in force, for some doors or for all."""
        fault.on_end = self.remove
        self.run(self._add(fault, self._doors if doors is None else doors))
        return fault

    def remove(self, fault: Fault) -> None:
        self.run(self._remove([fault]))

    def heal(self) -> None:
        """Ends all faults."""
        self.run(self._remove(list({fault for door in self._doors for fault in door.faults})))

    @property
    def has_faults(self) -> bool:
        return any(not fault.is_over for door in self._doors for fault in door.faults)

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CALL_TIMEOUT_S)
        self._loop.close()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(CALL_TIMEOUT_S)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def _add(self, fault: Fault, doors: list[Door]) -> None:
        for door in doors:
            door.faults = (*door.faults, fault)
            for connection in list(door.connections):
                connection.on_fault(fault)

    async def _remove(self, faults: list[Fault]) -> None:
        for door in self._doors:
            door.faults = tuple(fault for fault in door.faults if fault not in faults)
            for connection in list(door.connections):
                connection.on_healed(faults)

    async def _close(self) -> None:
        for door in self._doors:
            await door.shut_now()
        for _ in range(2):  # sockets are closed in the turn after
            await asyncio.sleep(0)


class Door:
    """Where clients knock to reach one broker. Shut, it refuses connections as a broker that is away does."""

    def __init__(self, proxy: Proxy, front: HeldPort, host: str, port: int) -> None:
        self.proxy = proxy
        self.host = host
        self.port = port
        self.faults: tuple[Fault, ...] = ()
        self.connections: set[Connection] = set()
        self._front = front
        self._server: asyncio.Server | None = None

    def open(self) -> None:
        self.proxy.run(self._open())

    def shut(self) -> None:
        self.proxy.run(self.shut_now())

    async def _open(self) -> None:
        if self._server is None:
            listening = self._front.listen()
            self._server = await asyncio.get_running_loop().create_server(
                lambda: Connection(self).client, sock=listening
            )

    async def shut_now(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for connection in list(self.connections):
            connection.abort()

    def find(self, kind: str, head: RequestHead) -> Fault | None:
        if any(fault.is_over for fault in self.faults):
            self.faults = tuple(fault for fault in self.faults if not fault.is_over)
        return next((f for f in self.faults if f.kind == kind and f.matches(head.api_key, head.client_id)), None)


class Exchange:
    """A request whose response is still to leave."""

    def __init__(self, head: RequestHead, own_response: bytes | None = None, fault: Fault | None = None) -> None:
        self.head = head
        self.own_response = own_response
        self.fault = fault


class Side(asyncio.Protocol):
    """One of the two sockets of a connection."""

    def __init__(
        self, connection: Connection, on_data: Callable[[bytes], None], on_made: Callable[[], None] | None = None
    ) -> None:
        self._connection = connection
        self._on_data = on_data
        self._on_made = on_made
        self.transport: asyncio.Transport | None = None
        self.other: Side | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.set_write_buffer_limits(WRITE_BUFFER_BYTES)
        found = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._on_made is not None:
            self._on_made()

    def data_received(self, data: bytes) -> None:
        self._on_data(data)

    def pause_writing(self) -> None:
        self._set_reading(False)

    def resume_writing(self) -> None:
        self._set_reading(True)

    def connection_lost(self, error: Exception | None) -> None:
        self._connection.on_lost(self)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def _set_reading(self, on: bool) -> None:
        """Who sends to this side waits while this side's peer does not take it."""
        if self.other is not None and self.other.transport is not None:
            self.other.set_reading(on)

    def set_reading(self, on: bool) -> None:
        if on and self._connection.is_hung:
            return
        if self.transport is not None and not self.transport.is_closing():
            with contextlib.suppress(RuntimeError):
                self.transport.resume_reading() if on else self.transport.pause_reading()


class Connection:
    """One client's connection and the one to the broker behind it."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self.client = Side(self, self._on_request_bytes, self._on_client)
        self.broker = Side(self, self._on_response_bytes)
        self.client.other, self.broker.other = self.broker, self.client
        self.client_id: str | None = None
        self._requests = bytearray()
        self._responses = bytearray()
        self._request_rest = 0
        self._response_rest = 0
        self._is_opaque = False
        self._hung: Fault | None = None
        self._delayed: deque[tuple[float, RequestHead, bytes]] = deque()
        self._exchanges: deque[Exchange] = deque()
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Task[None] | None = None
        self._ended = False

    def _on_client(self) -> None:
        self.door.connections.add(self)
        for fault in self.door.faults:
            if fault.is_for_all and fault.kind in (CUT, HANG):
                self.on_fault(fault)
        if self._ended:
            return
        self._task = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        try:
            await self._loop.create_connection(lambda: self.broker, self.door.host, self.door.port)
        except OSError:
            self.abort()
            return
        if self._ended:
            self.abort()
        else:
            self._on_request_bytes(b"")  # what came meanwhile

    # Faults that come and go

    @property
    def is_hung(self) -> bool:
        return self._hung is not None

    def on_fault(self, fault: Fault) -> None:
        if not fault.matches_client(self.client_id or ""):
            return
        if fault.kind == CUT:
            fault.happen()
            self.abort()
        elif fault.kind == HANG:
            self._hang(fault)

    def on_healed(self, faults: list[Fault]) -> None:
        if self._hung in faults:
            self.abort()  # what was lost meanwhile does not come back: the client has to begin anew
        if DELAY in [fault.kind for fault in faults]:
            self._let_delayed_go(at_once=True)

    def _hang(self, fault: Fault) -> None:
        fault.happen()
        self._hung = fault
        self.client.set_reading(False)
        self.broker.set_reading(False)

    def abort(self) -> None:
        self._ended = True
        self.door.connections.discard(self)
        for side in (self.client, self.broker):
            if side.transport is not None:
                side.transport.abort()

    def on_lost(self, side: Side) -> None:
        """What one has sent before it left still reaches the other."""
        self._ended = True
        self.door.connections.discard(self)
        other = side.other
        if other is not None and other.transport is not None:
            other.transport.close()

    # From the client

    def _on_request_bytes(self, data: bytes) -> None:
        self._requests += data
        if self.broker.transport is None:
            return
        if self._is_opaque:
            self._pass_unread()
            return
        try:
            self._take_requests()
        except Incomplete:
            pass
        except (ValueError, DecodeError, EncodeError):
            self._pass_unread()  # the broker knows what to say to it

    def _take_requests(self) -> None:
        while self._requests and not self._ended and self._hung is None:
            if self._request_rest:
                self._request_rest -= self._pass_on(self._requests, self._request_rest, self.broker)
                continue
            if self._requests[0] == TLS_HANDSHAKE and not self.client_id:
                self._pass_unread()
                return
            if len(self._requests) < SIZE_BYTES:
                return
            size = int.from_bytes(self._requests[:SIZE_BYTES], "big")
            head = read_head(self._requests, size)
            if self.client_id is None:
                self.client_id = head.client_id
                if self._is_cut_by_name(head):
                    return
            if not self.door.faults and not self._delayed:
                if head.has_response:
                    self._exchanges.append(Exchange(head))
                self._request_rest = SIZE_BYTES + size
                continue
            if len(self._requests) < SIZE_BYTES + size:
                return
            frame = bytes(self._requests[: SIZE_BYTES + size])
            del self._requests[: SIZE_BYTES + size]
            self._take_frame(head, frame)

    def _is_cut_by_name(self, head: RequestHead) -> bool:
        for fault in self.door.faults:
            if fault.kind in (CUT, HANG) and fault.matches_client(head.client_id):
                self.on_fault(fault)
                return True
        return False

    def _take_frame(self, head: RequestHead, frame: bytes) -> None:
        delay = self.door.find(DELAY, head)
        if delay is not None:
            delay.happen()
        if delay is None and not self._delayed:
            self._decide(head, frame)
            return
        now = self._loop.time()
        due = max(
            now + (delay.delay_ms / 1000 if delay is not None else 0.0), self._delayed[-1][0] if self._delayed else 0.0
        )
        self._delayed.append((due, head, frame))
        if len(self._delayed) == 1:
            self._loop.call_at(due, self._let_delayed_go)

    def _let_delayed_go(self, at_once: bool = False) -> None:
        while self._delayed and not self._ended:
            due, head, frame = self._delayed[0]
            if due > self._loop.time() and not at_once:
                self._loop.call_at(due, self._let_delayed_go)
                return
            self._delayed.popleft()
            self._decide(head, frame)

    def _decide(self, head: RequestHead, frame: bytes) -> None:
        """Refused here, passed on with something in store for its response, or just passed on."""
        fault = self.door.find(FAIL, head)
        if fault is not None and head.api_key not in ASKS_ONLY and self._refuse(head, frame, fault):
            return
        if fault is None or head.api_key not in ASKS_ONLY:
            fault = self.door.find(LOSE, head)
        if head.has_response:
            if fault is not None:
                fault.happen()
            self._exchanges.append(Exchange(head, fault=fault))
        self.broker.write(frame)

    def _refuse(self, head: RequestHead, frame: bytes, fault: Fault) -> bool:
        """Responds instead of the broker; False when the broker had better see this one."""
        api = BY_KEY.get(head.api_key)
        if api is None or not api.serves(head.version):
            return False
        try:
            request = decode_request(head.api_key, head.version, frame, head.body_position)
            if fault.only is not None and not fault.only(request, head.version):
                return False
            own_response = encode_response(head, build_response(head.api_key, head.version, request, fault.error))
        except (DecodeError, EncodeError):
            return False
        if not is_part_of_session(request):
            fault.happen()
        if head.has_response:
            self._exchanges.append(Exchange(head, own_response))
            self._send_own_responses()
        else:
            self.abort()  # as a broker does, which has no other way to say it
        return True

    # From the broker

    def _on_response_bytes(self, data: bytes) -> None:
        if self._is_opaque:
            self.client.write(data)
            return
        self._responses += data
        while self._responses and not self._ended:
            if self._response_rest:
                self._response_rest -= self._pass_on(self._responses, self._response_rest, self.client)
                if not self._response_rest:
                    self._send_own_responses()
                continue
            if len(self._responses) < SIZE_BYTES:
                return
            size = int.from_bytes(self._responses[:SIZE_BYTES], "big")
            fault = self._exchanges[0].fault if self._exchanges else None
            if fault is None:
                if self._exchanges:
                    self._exchanges.popleft()
                self._response_rest = SIZE_BYTES + size
                continue
            if len(self._responses) < SIZE_BYTES + size:
                return
            frame = bytes(self._responses[: SIZE_BYTES + size])
            del self._responses[: SIZE_BYTES + size]
            self._change(self._exchanges.popleft().head, frame, fault)

    def _change(self, head: RequestHead, frame: bytes, fault: Fault) -> None:
        if fault.kind == LOSE:
            self.abort()
            return
        try:
            reader = Reader(frame, SIZE_BYTES + 4)
            if response_header_version(head.api_key, head.version) > 0:
                reader.unknown_tags()
            response = response_class(head.api_key).decode(reader, head.version)
            if write_error(response, fault.error):
                frame = encode_response(head, response)
        except (DecodeError, EncodeError):
            pass  # this version has no place for the error
        self.client.write(frame)
        self._send_own_responses()

    def _send_own_responses(self) -> None:
        """Those that no response of the broker stands before any more."""
        while self._exchanges and not self._response_rest:
            own_response = self._exchanges[0].own_response
            if own_response is None:
                return
            self._exchanges.popleft()
            self.client.write(own_response)

    def _pass_on(self, buffer: bytearray, most: int, to: Side) -> int:
        count = min(most, len(buffer))
        to.write(bytes(buffer[:count]) if count < len(buffer) else bytes(buffer))
        del buffer[:count]
        return count

    def _pass_unread(self) -> None:
        self._is_opaque = True
        for buffer, to in ((self._requests, self.broker), (self._responses, self.client)):
            to.write(bytes(buffer))
            buffer.clear()


def encode_response(head: RequestHead, response: Message) -> bytes:
    """The frame of a response."""
    writer = Writer()
    writer.int32(head.correlation_id)
    if response_header_version(head.api_key, head.version) > 0:
        writer.unknown_tags(None)
    response.encode(writer, head.version)
    body = writer.to_bytes()
    return len(body).to_bytes(SIZE_BYTES, "big") + body
