"""Accepts connections on one address, within the limits on how many there may be, and closes idle ones."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections import Counter
from collections.abc import Callable

from moldau.net.connection import Connection, Handle
from moldau.net.framing import Scratch
from moldau.node.context import ClientContext

log = logging.getLogger("moldau.net")

ACCEPTS_PER_TURN_MAX = 64


class ListenerLimits:
    """What `max.connections`, `max.connections.per.ip` and friends say."""

    def __init__(
        self,
        frame_bytes_max: int = 104857600,
        connections_max: int = 2147483647,
        connections_per_address_max: int = 2147483647,
        per_address_overrides: dict[str, int] | None = None,
        idle_ms_max: int = 600000,
        backlog: int = 50,
        send_buffer_bytes: int = 102400,
        receive_buffer_bytes: int = 102400,
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.connections_max = connections_max
        self.connections_per_address_max = connections_per_address_max
        self.per_address_overrides = per_address_overrides or {}
        self.idle_ms_max = idle_ms_max
        self.backlog = backlog
        self.send_buffer_bytes = send_buffer_bytes
        self.receive_buffer_bytes = receive_buffer_bytes
        # A socket with a higher number than this is refused: a disk without descriptors would count as failed.
        self.descriptors_max = 1 << 31


class Listener:
    """One bound address of the node."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        is_controller: bool,
        handle: Handle,
        limits: ListenerLimits,
        scratch: Scratch,
        clock: Callable[[], int],
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.limits = limits
        self._is_controller = is_controller
        self._handle = handle
        self._scratch = scratch
        self._clock = clock
        self._socket: socket.socket | None = None
        self._started = False
        self._accepting = False
        self._connections: set[Connection] = set()
        self._per_address: Counter[str] = Counter()
        self.accepted_total = 0
        self.refused_total = 0

    def bind(self) -> None:
        """Takes the address, without accepting anyone yet. OSError when it is taken."""
        family = socket.AF_INET6 if ":" in self.host or not self.host else socket.AF_INET
        try:
            self._socket = self._bound_socket(family)
        except OSError:
            if self.host:
                raise
            self._socket = self._bound_socket(socket.AF_INET)
        self.port = self._socket.getsockname()[1]

    def _bound_socket(self, family: socket.AddressFamily) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if not self.host else 1)
            if self.limits.receive_buffer_bytes > 102400:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)
            sock.bind((self.host, self.port))
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        return sock

    def start(self) -> None:
        assert self._socket is not None, "bind first"
        self._socket.listen(self.limits.backlog)
        self._started = True
        self._resume_accepting()

    def _resume_accepting(self) -> None:
        if self._started and not self._accepting and self._socket is not None:
            self._accepting = True
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._on_acceptable)

    def _pause_accepting(self) -> None:
        if self._accepting and self._socket is not None:
            self._accepting = False
            asyncio.get_running_loop().remove_reader(self._socket.fileno())

    def _on_acceptable(self) -> None:
        assert self._socket is not None
        for _ in range(ACCEPTS_PER_TURN_MAX):
            if len(self._connections) >= self.limits.connections_max:
                # As Kafka's acceptor: the next client waits in the backlog until one of the others leaves.
                self._pause_accepting()
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                log.error("listener %s cannot accept: %s; trying again in a second", self.name, error)
                self._pause_accepting()
                asyncio.get_running_loop().call_later(1.0, self._resume_accepting)
                return
            self._welcome(sock, address[0], address[1])

    def _welcome(self, sock: socket.socket, host: str, port: int) -> None:
        host = host.removeprefix("::ffff:")
        allowed = self.limits.per_address_overrides.get(host, self.limits.connections_per_address_max)
        if self._per_address[host] >= allowed:
            self.refused_total += 1
            log.warning("refusing a connection from %s: it has %d already", host, allowed)
            sock.close()
            return
        if sock.fileno() >= self.limits.descriptors_max:
            self.refused_total += 1
            log.warning("refusing a connection from %s: too many open files, raise the limit (ulimit -n)", host)
            sock.close()
            return
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.limits.send_buffer_bytes > 102400:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        self.accepted_total += 1
        self._per_address[host] += 1
        context = ClientContext(self.name, f"{host}:{port}", self._is_controller)
        connection = Connection(
            sock,
            asyncio.get_running_loop(),
            self._handle,
            context,
            self._scratch,
            self.limits.frame_bytes_max,
            self._clock,
            self._on_connection_closed,
        )
        self._connections.add(connection)

    def change_limits(self, limits: ListenerLimits) -> None:
        self.limits = limits
        if len(self._connections) < limits.connections_max:
            self._resume_accepting()

    def _on_connection_closed(self, connection: Connection) -> None:
        self._connections.discard(connection)
        host = connection.context.peer.rpartition(":")[0]
        self._per_address[host] -= 1
        if self._per_address[host] <= 0:
            del self._per_address[host]
        if len(self._connections) < self.limits.connections_max:
            self._resume_accepting()

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    def close_idle(self) -> None:
        """Closes connections on which nothing happened for `connections.max.idle.ms`."""
        if self.limits.idle_ms_max < 0:
            return
        oldest_ms = self._clock() - self.limits.idle_ms_max
        for connection in [c for c in self._connections if c.last_active_ms < oldest_ms]:
            connection.close()

    def stop_accepting(self) -> None:
        self._pause_accepting()
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def close(self) -> None:
        self.stop_accepting()
        for connection in list(self._connections):
            connection.close()
