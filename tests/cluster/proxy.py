"""The network between the nodes, with switches: everything they say to each other passes through here.

Each node has front doors (one for brokers, one for controllers) whose addresses it tells the others. Who comes in is
known from the client id of the first request, so that traffic can be stopped for each pair of nodes and each direction.
Stopped means what it means in a network: bytes neither arrive nor are refused, and go on when the way is free again.
Under TLS nobody can be told from another, and only doors can be shut.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import re
import threading
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from tests.interop.nodes import free_ports
from tests.pace import patience

HOST = "127.0.0.1"
CHUNK_BYTES = 1 << 18
FIRST_FRAME_BYTES_MAX = 1 << 20
_CLIENT_ID = re.compile(r"moldau-(\d+)-")
UNKNOWN = -1
TLS_HANDSHAKE = 0x16

T = TypeVar("T")


class Door:
    """Where the others knock to reach a port of a node."""

    def __init__(self, node_id: int, inner_port: int, port: int) -> None:
        self.node_id = node_id
        self.inner_port = inner_port
        self.port = port
        self.server: asyncio.Server | None = None

    def shut(self) -> None:
        if self.server is not None:
            self.server.close()
            self.server = None


class ProxyNetwork:
    """Runs in a thread of its own; its methods may be called from any other."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._ways: dict[tuple[int, int], asyncio.Event] = {}
        self._pumps: set[asyncio.Task[None]] = set()
        self._doors: list[Door] = []
        self.strangers: set[str] = set()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()

    def door(self, node_id: int, port: int) -> int:
        """A front door to a port of a node, shut as long as the node does not run; returns the door's own port."""
        door = Door(node_id, port, free_ports(1)[0])
        self._doors.append(door)
        return door.port

    def open_doors(self, node_id: int) -> None:
        self._do(self._open_doors(node_id))

    def shut_doors(self, node_id: int) -> None:
        """The process behind them is gone: who knocks now is refused."""
        self._do(self._shut_doors(node_id))

    def block(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Nothing gets from the first to the second of each pair any more."""
        self._do(self._set(list(pairs), False))

    def heal(self) -> None:
        self._do(self._set(list(self._ways), True))

    def close(self) -> None:
        self._do(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(patience(5))
        self._loop.close()

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(patience(10))

    async def _close(self) -> None:
        for door in self._doors:
            door.shut()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _set(self, pairs: list[tuple[int, int]], is_free: bool) -> None:
        for pair in pairs:
            way = self._way(*pair)
            way.set() if is_free else way.clear()

    def _way(self, source: int, destination: int) -> asyncio.Event:
        way = self._ways.get((source, destination))
        if way is None:
            way = self._ways[source, destination] = asyncio.Event()
            way.set()
        return way

    async def _open_doors(self, node_id: int) -> None:
        for door in self._doors:
            if door.node_id == node_id and door.server is None:
                door.server = await asyncio.start_server(
                    functools.partial(self._on_connection, door), HOST, door.port, limit=CHUNK_BYTES
                )

    async def _shut_doors(self, node_id: int) -> None:
        for door in self._doors:
            if door.node_id == node_id:
                door.shut()

    def _on_connection(self, door: Door, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(door.node_id, door.inner_port, reader, writer))
        self._pumps.add(task)
        task.add_done_callback(self._pumps.discard)

    async def _serve(self, node_id: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._connect_through(node_id, port, reader, writer)
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass
        finally:
            reset(writer)

    async def _connect_through(
        self, node_id: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        first = await first_frame(reader)
        source = self._who(first)
        there, back = self._way(source, node_id), self._way(node_id, source)
        await there.wait()
        try:
            inner_reader, inner_writer = await asyncio.open_connection(HOST, port, limit=CHUNK_BYTES)
        except OSError:
            await back.wait()
            return
        try:
            inner_writer.write(first)
            await asyncio.gather(pump(reader, inner_writer, there), pump(inner_reader, writer, back))
        finally:
            reset(inner_writer)

    def _who(self, frame: bytes) -> int:
        if frame[0] == TLS_HANDSHAKE:
            return UNKNOWN
        length = int.from_bytes(frame[12:14], "big", signed=True)
        client_id = frame[14 : 14 + max(0, length)].decode(errors="replace")
        match = _CLIENT_ID.match(client_id)
        if match is None:
            self.strangers.add(client_id)
            return UNKNOWN
        return int(match[1])


async def first_frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    if size[0] == TLS_HANDSHAKE:
        return size
    length = int.from_bytes(size, "big")
    if length > FIRST_FRAME_BYTES_MAX:
        raise ValueError(f"a first request of {length} bytes")
    return size + await reader.readexactly(length)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: asyncio.Event) -> None:
    """Carries bytes while the way is free; raises EOFError at the end, so that the other direction ends as well."""
    while True:
        data = await reader.read(CHUNK_BYTES)
        if not way.is_set():
            await way.wait()
        if not data:
            raise ConnectionResetError("the end")
        writer.write(data)
        await writer.drain()


def reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(Exception):
        writer.transport.abort()
