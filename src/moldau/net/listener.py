"""Accepts connections on one address, as its group's limits allow, and closes idle ones.

What is decided about a new connection, and in which order, is in `moldau.quota.connection_quotas`. One that has to wait
is held here, and the listener takes no other until it may go on; who comes meanwhile waits in the backlog. One whose
address comes too often is left alone, unread, and closed after its delay. Where there is TLS, a connection begins
with the end of its handshake; until then it is counted and has a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import socket
from collections.abc import Callable
from itertools import count, islice
from typing import TYPE_CHECKING

from moldau.api.login_gate import GateKeeper
from moldau.metrics.traffic import Traffic
from moldau.net.connection import Connection, Handle
from moldau.net.framing import Scratch
from moldau.net.handshakes import DONE, FAILED, HANDSHAKE_MS_MAX, Handshake, HandshakeThreads
from moldau.net.listener_group import CLOSED_PER_TURN_MAX, ListenerGroup
from moldau.net.tls import TlsSocket
from moldau.net.turns import ACCEPT
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.quota.connection_quotas import THROTTLED, TOO_MANY, ConnectionQuotas, address_key
from moldau.records.clocks import NEVER_MS

if TYPE_CHECKING:
    from moldau.net.tls_contexts import ServerTls

log = logging.getLogger("moldau.net")

ACCEPTS_PER_TURN_MAX = 64
# So many sockets of addresses that come too often are kept until their delay is over; more would cost descriptors.
THROTTLED_MAX = 1024


class ListenerLimits:
    """What the settings say about every connection; how many there may be is the group's matter."""

    def __init__(
        self,
        frame_bytes_max: int = 104857600,
        idle_ms_max: int = 600000,
        backlog: int = 50,
        send_buffer_bytes: int = 102400,
        receive_buffer_bytes: int = 102400,
    ) -> None:
        self.frame_bytes_max = frame_bytes_max
        self.idle_ms_max = idle_ms_max
        self.backlog = backlog
        self.send_buffer_bytes = send_buffer_bytes
        self.receive_buffer_bytes = receive_buffer_bytes
        # A socket with a higher number than this is refused: a disk without descriptors would count as failed.
        self.descriptors_max = 1 << 31


class Arrival:
    """A connection that waits until it may go on."""

    def __init__(self, sock: socket.socket, host: str, port: int, now_ms: int, delay_ms: int) -> None:
        self.sock = sock
        self.host = host
        self.port = port
        self.since_ms = now_ms
        self.end_ms = now_ms + delay_ms
        self.peer = f"{host}:{port}"
        self.channel_id = ""


class Listener:
    """One bound address of the node."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        *,
        is_controller: bool,
        handle: Handle,
        limits: ListenerLimits,
        scratch: Scratch,
        clock: Callable[[], int],
        group: ListenerGroup | None = None,
        tls: ServerTls | None = None,
        threads: HandshakeThreads | None = None,
        gate_keeper: GateKeeper | None = None,
    ) -> None:
        """`tls` is there where connections are encrypted, `gate_keeper` where clients have to log in."""
        assert tls is None or threads is not None, "handshakes need threads"
        self.name = name
        self.host = host
        self.port = port
        self.limits = limits
        self.is_controller = is_controller
        self._handle = handle
        self._scratch = scratch
        self._clock = clock
        self._socket: socket.socket | None = None
        self._started = False
        self._accepting = False
        self._group = group if group is not None else ListenerGroup(ConnectionQuotas(), scratch.turns)
        self._group.add(self)
        # In the order in which they came.
        self.connections: dict[Connection, None] = {}
        self.tls = tls
        self._threads = threads
        # Who has not yet shown that they speak TLS, in the order in which they came.
        self.handshakes: dict[Handshake, Arrival] = {}
        self.authenticated_total = 0
        self.failed_authentication_total = 0
        self.gate_keeper = gate_keeper
        # Those whose clients are not known yet, until when they may stay so, in the order in which they came.
        self._unauthenticated: dict[Connection, int] = {}
        self._waiting: Arrival | None = None
        # By the end of their delay.
        self._throttled: list[tuple[int, int, socket.socket]] = []
        self._numbers = count()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = 0
        self.accepted_total = 0
        self.traffic = Traffic()
        """That of connections that are closed."""
        self.refused_total = 0
        self.throttled_total = 0
        self.blocked_ms_total = 0

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
        if self._started and not self._accepting and self._socket is not None and self._waiting is None:
            self._accepting = True
            asyncio.get_running_loop().add_reader(self._socket.fileno(), self._on_acceptable)

    def _pause_accepting(self) -> None:
        if self._accepting and self._socket is not None:
            self._accepting = False
            asyncio.get_running_loop().remove_reader(self._socket.fileno())

    def _on_acceptable(self) -> None:
        turns = self._scratch.turns
        turns.begin()
        self._accept()
        if turns.end():
            turns.tell(ACCEPT, self.name, f"accepting connections (listener {self.name})")

    def _accept(self) -> None:
        assert self._socket is not None
        for _ in range(ACCEPTS_PER_TURN_MAX):
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
            if self._waiting is not None:
                return

    # A new connection

    def _welcome(self, sock: socket.socket, host: str, port: int) -> None:
        host = address_key(host) or host
        now_ms = self._clock()
        delay_ms = self._group.quotas.arrive(self.name, now_ms)
        arrival = Arrival(sock, host, port, now_ms, delay_ms)
        if delay_ms == 0 and self._group.quotas.has_slot(self.name):
            self._admit(arrival, now_ms)
            return
        self._waiting = arrival
        self._pause_accepting()
        if delay_ms > 0:
            self._wake_at(arrival.end_ms, now_ms)

    @property
    def is_waiting(self) -> bool:
        """Whether a connection waits here that others can let in by going."""
        return self._waiting is not None

    def go_on(self) -> None:
        """Lets the connection in that waits, if its time has come and there is room for it."""
        arrival = self._waiting
        now_ms = self._clock()
        if arrival is None or now_ms < arrival.end_ms or not self._group.quotas.has_slot(self.name):
            return
        self._waiting = None
        self.blocked_ms_total += now_ms - arrival.since_ms
        self._admit(arrival, now_ms)
        self._resume_accepting()

    def _admit(self, arrival: Arrival, now_ms: int) -> None:
        sock, host = arrival.sock, arrival.host
        if sock.fileno() >= self.limits.descriptors_max:
            self._refuse(sock, f"refusing a connection from {host}: too many open files, raise the limit (ulimit -n)")
            return
        admission = self._group.quotas.admit(self.name, host, now_ms)
        if admission.verdict == THROTTLED:
            self._keep_unread(sock, now_ms, admission.delay_ms)
        elif admission.verdict == TOO_MANY:
            self._refuse(sock, f"refusing a connection from {host}: it has {admission.allowed} already")
        else:
            self._connect(arrival)

    def _refuse(self, sock: socket.socket, reason: str) -> None:
        self.refused_total += 1
        log.warning("%s", reason)
        sock.close()

    def _connect(self, arrival: Arrival) -> None:
        sock = arrival.sock
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if self.limits.send_buffer_bytes > 102400:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        self.accepted_total += 1
        if self.tls is None:
            self._open(sock, arrival, ClientContext(self.name, arrival.peer, self.is_controller), self._handle)
        else:
            self._shake_hands(self.tls, arrival)

    def _open(self, sock: socket.socket | TlsSocket, arrival: Arrival, context: ClientContext, handle: Handle) -> None:
        connection = Connection(
            sock,
            asyncio.get_running_loop(),
            handle,
            context,
            scratch=self._scratch,
            frame_bytes_max=self.limits.frame_bytes_max,
            clock=self._clock,
            on_close=self._on_connection_closed,
        )
        self.connections[connection] = None
        if self.gate_keeper is not None:
            self._close_gate(self.gate_keeper, connection)
        self._group.changed()

    # Handshakes

    def _shake_hands(self, tls: ServerTls, arrival: Arrival) -> None:
        assert self._threads is not None
        now_ms = self._clock()
        deadline_ms = now_ms + HANDSHAKE_MS_MAX
        local_host, local_port = arrival.sock.getsockname()[:2]
        arrival.channel_id = f"{local_host}:{local_port}-{arrival.peer}-0-{self.accepted_total}"
        handshake = Handshake(
            arrival.sock, self._threads, lambda: tls.context, None, self._on_handshake_ended, deadline_ms
        )
        self.handshakes[handshake] = arrival
        self._wake_at(deadline_ms, now_ms)
        self._group.changed()

    def _on_handshake_ended(self, handshake: Handshake) -> None:
        arrival = self.handshakes.pop(handshake, None)
        if arrival is None:
            return
        if handshake.outcome == DONE:
            self._welcome_authenticated(handshake, arrival)
            return
        if handshake.outcome == FAILED:
            self._tell_failed(arrival, handshake.reason)
        else:
            log.debug("connection from %s ended before its TLS handshake did: %s", arrival.peer, handshake.reason)
        self._group.quotas.release(self.name, arrival.host)
        self._group.changed()

    def _tell_failed(self, arrival: Arrival, reason: str) -> None:
        self.failed_authentication_total += 1
        log.warning(
            "Failed authentication with /%s (channelId=%s) (SSL handshake failed): %s",
            arrival.host,
            arrival.channel_id,
            reason,
        )

    def _welcome_authenticated(self, handshake: Handshake, arrival: Arrival) -> None:
        assert self.tls is not None
        context = ClientContext(self.name, arrival.peer, self.is_controller)
        handle = self._handle
        principal = self.tls.principal(handshake)
        if principal is None:
            handle = refuse_unnamed
        else:
            context.principal = principal
            if self.tls.settings.names_principals:  # where one logs in as well, the login counts
                self.authenticated_total += 1
        self._open(handshake.take_socket(), arrival, context, handle)

    def _close_handshake(self, handshake: Handshake) -> None:
        arrival = self.handshakes.pop(handshake)
        handshake.close()
        self._group.quotas.release(self.name, arrival.host)
        self._group.changed()

    def close_handshakes(self, count: int) -> int:
        """Closes the oldest, so many at the most; returns how many."""
        leaving = list(islice(self.handshakes, count))
        for handshake in leaving:
            self._close_handshake(handshake)
        return len(leaving)

    def _close_late_handshakes(self) -> None:
        now_ms = self._clock()
        for handshake in [one for one in self.handshakes if one.deadline_ms <= now_ms]:
            self._tell_failed(self.handshakes[handshake], "it did not end in time")
            self._close_handshake(handshake)

    # Logins

    def _close_gate(self, keeper: GateKeeper, connection: Connection) -> None:
        """Nothing but a login is read until it is complete, and that for a limited time."""
        gate = keeper.new_gate(connection.context)
        gate.on_open = lambda handle: self._on_login(connection, handle)
        connection.handle_with(gate.handle, keeper.receive_bytes_max, "sasl.server.max.receive.size")
        now_ms = self._clock()
        self._unauthenticated[connection] = now_ms + keeper.timeout_ms
        self._wake_at(now_ms + keeper.timeout_ms, now_ms)

    def _on_login(self, connection: Connection, handle: Handle) -> None:
        self._unauthenticated.pop(connection, None)
        connection.handle_with(handle, self.limits.frame_bytes_max, "socket.request.max.bytes")

    @property
    def unauthenticated_count(self) -> int:
        return len(self._unauthenticated)

    def _close_unauthenticated(self, now_ms: int) -> None:
        for connection, deadline_ms in list(islice(self._unauthenticated.items(), CLOSED_PER_TURN_MAX)):
            if deadline_ms > now_ms:
                return
            log.warning("closing connection from %s: authentication timed out", connection.context.peer)
            connection.close()

    def change_limits(self, limits: ListenerLimits) -> None:
        self.limits = limits

    def _on_connection_closed(self, connection: Connection) -> None:
        if connection in self.connections:
            del self.connections[connection]
            self.traffic.add(connection.traffic)
            self._unauthenticated.pop(connection, None)
            self._group.quotas.release(self.name, connection.context.peer.rpartition(":")[0])
            self._group.changed()

    # Addresses that come too often

    def _keep_unread(self, sock: socket.socket, now_ms: int, delay_ms: int) -> None:
        self.throttled_total += 1
        end_ms = now_ms + delay_ms
        heapq.heappush(self._throttled, (end_ms, next(self._numbers), sock))
        if len(self._throttled) > THROTTLED_MAX:
            heapq.heappop(self._throttled)[2].close()
        self._wake_at(end_ms, now_ms)

    @property
    def throttled_count(self) -> int:
        return len(self._throttled)

    def _close_throttled(self, now_ms: int) -> None:
        throttled = self._throttled
        while throttled and throttled[0][0] <= now_ms:
            heapq.heappop(throttled)[2].close()

    # Its only timer

    def _wake_at(self, due_ms: int, now_ms: int) -> None:
        if self._timer is not None:
            if self._timer_ms <= due_ms:
                return
            self._timer.cancel()
        self._timer_ms = due_ms
        delay_s = max(0, due_ms - now_ms) / 1000
        self._timer = asyncio.get_running_loop().call_later(delay_s, self._scratch.turns.run, ACCEPT, self.on_timer)

    def on_timer(self) -> None:
        """Does what is due of what waits here."""
        self._timer = None
        now_ms = self._clock()
        self._close_throttled(now_ms)
        self._close_unauthenticated(now_ms)
        self._close_late_handshakes()
        self.go_on()
        if self.handshakes:
            self._wake_at(next(iter(self.handshakes)).deadline_ms, now_ms)
        if self._unauthenticated:
            self._wake_at(next(iter(self._unauthenticated.values())), now_ms)
        if self._throttled:
            self._wake_at(self._throttled[0][0], now_ms)
        if self._waiting is not None and self._waiting.end_ms > now_ms:
            self._wake_at(self._waiting.end_ms, now_ms)

    @property
    def connection_count(self) -> int:
        return len(self.connections)

    def close_idle(self) -> None:
        """Closes connections on which nothing happened for `connections.max.idle.ms`."""
        if self.limits.idle_ms_max < 0:
            return
        oldest_ms = self._clock() - self.limits.idle_ms_max
        for connection in [c for c in self.connections if c.last_active_ms < oldest_ms]:
            connection.close()

    def stop_accepting(self) -> None:
        self._pause_accepting()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._waiting is not None:
            self._waiting.sock.close()
            self._waiting = None
        self._close_throttled(NEVER_MS)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        self.stop_accepting()
        self.close_handshakes(len(self.handshakes))
        for connection in list(self.connections):
            connection.close()


def refuse_unnamed(context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
    """In the dispatcher's place where no rule makes a principal of a certificate: the first request is the last."""
    log.warning(
        "closing connection from %s: ssl.principal.mapping.rules match no name of its certificate", context.peer
    )
    reply = Reply()
    reply.close_connection = True
    reply.complete(None)
    return reply
