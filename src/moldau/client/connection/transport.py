"""Carries calls to brokers: sockets that never block, one poll() that waits for all of them.

A call is submitted to an address and done when poll() says so; whoever wants to block polls until the call is done.
Calls of other parts that share the network go on meanwhile. One thread owns a network; wake() alone may be called
from another one.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import selectors
import socket
import time
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mypy_extensions import mypyc_attr

from moldau.client.connection.backoff import Backoff
from moldau.client.connection.wire import Call, Connection
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError, TlsError
from moldau.client.metrics.meters import NetworkMeter, NodeMeter
from moldau.client.metrics.window import Window
from moldau.protocol.primitives import Message

if TYPE_CHECKING:
    from moldau.client.connection.security import Security

logger = logging.getLogger("moldau.client")

# Host and port. Compiled code takes a tuple of known length apart and makes a plain one of it again, and the connection
# of a coordinator, which is told from others by the type of its address, would be the one of the broker.
Address = tuple[Any, ...]
Response = TypeVar("Response", bound=Message)

READS_AT_ONCE: Final = 16
PARTS_AT_ONCE: Final = 64
WAKES_AT_ONCE: Final = 4096
# For so much of a response is waited before it is read. Systems keep a few megabytes for a socket at the most.
LOW_WATER_MAX: Final = 2 * 1024 * 1024


@mypyc_attr(allow_interpreted_subclasses=True)
class Network:
    """What the rest of the client needs of a network; tests hand in one that has no sockets."""

    def now_ms(self) -> int:
        raise NotImplementedError

    def submit(self, address: Address, call: Call[Response]) -> None:
        """Puts the call on the way, opening a connection where there is none."""
        raise NotImplementedError

    def poll(self, timeout_ms: int) -> None:
        """Moves bytes until something happened or the timeout passed; finished calls are done on return."""
        raise NotImplementedError

    def in_flight_count(self, address: Address) -> int:
        raise NotImplementedError

    def is_ready(self, address: Address) -> bool:
        """Whether a call would leave at once: there is a connection that knows the broker's versions, and the broker
        does not throttle the client."""
        raise NotImplementedError

    def throttled_ms(self, address: Address) -> int:
        """For how long the broker does not want to hear from this client (KIP-219): calls wait until then."""
        return 0

    def meter(self) -> NetworkMeter | None:
        """What is counted of connections, bytes, requests and responses; None where nothing is."""
        return None

    def wake(self) -> None:
        """Makes a poll() that waits in another thread return."""

    def close(self) -> None:
        raise NotImplementedError


def address_text(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class _Trouble:
    """An address that could not be reached: how often in a row, when it may be tried again, and the last error."""

    def __init__(self) -> None:
        self.failures: int = 0
        self.not_before_ms: int = 0
        self.error: ClientError = NetworkError("")


class _Link:
    """One socket and the connection that lives on it."""

    def __init__(
        self,
        address: Address,
        connection: Connection,
        candidates: list[tuple[int, tuple[object, ...]]],
        meter: NodeMeter,
    ) -> None:
        self.address: Address = address
        self.connection: Connection = connection
        self.meter: NodeMeter = meter
        self.candidates: list[tuple[int, tuple[object, ...]]] = candidates
        self.socket: socket.socket | None = None
        self.connecting: bool = True
        # The socket is connected, and both sides are about to agree on TLS.
        self.shaking_hands: bool = False
        self.connect_deadline_ms: int = 0
        self.outgoing: list[memoryview] = []
        self.events: int = 0
        self.used_ms: int = 0
        # The socket is ready to be read once so many bytes have arrived.
        self.low_water: int = 1


class SocketNetwork(Network):
    """The network on real sockets."""

    def __init__(
        self,
        client_id: str,
        *,
        connect_timeout_ms: int = 10_000,
        request_timeout_ms: int = 30_000,
        send_buffer_bytes: int = -1,
        receive_buffer_bytes: int = -1,
        reconnect_backoff: Backoff | None = None,
        idle_max_ms: int = -1,
        connect_timeout_max_ms: int = 30_000,
        security: Security | None = None,
        meter: NetworkMeter | None = None,
    ) -> None:
        self._security: Security | None = security
        self._uses_tls: bool = security is not None and security.uses_tls
        self._client_id: str = client_id
        self._connect_timeout_ms: int = connect_timeout_ms
        self._request_timeout_ms: int = request_timeout_ms
        self._send_buffer_bytes: int = send_buffer_bytes
        self._receive_buffer_bytes: int = receive_buffer_bytes
        self._connect_timeout_max_ms: int = max(connect_timeout_ms, connect_timeout_max_ms)
        self._reconnect_backoff: Backoff = reconnect_backoff or Backoff(50, 1_000, random.random)
        self._idle_max_ms: int = idle_max_ms
        self._meter: NetworkMeter = NetworkMeter(Window(self.now_ms())) if meter is None else meter
        self._links: dict[Address, _Link] = {}
        self._troubles: dict[Address, _Trouble] = {}
        self._unsent: dict[Address, _Link] = {}
        self._selector: selectors.BaseSelector = selectors.DefaultSelector()
        wake_receiver, wake_sender = socket.socketpair()
        self._wake_receiver: socket.socket = wake_receiver
        self._wake_sender: socket.socket = wake_sender
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver, selectors.EVENT_READ, None)
        self._closed: bool = False

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def submit(self, address: Address, call: Call[Response]) -> None:
        link = self._links.get(address)
        now_ms = self.now_ms()
        if link is None:
            if self._closed:
                call.finish(None, NetworkError("The client was closed."))
                return
            trouble = self._troubles.get(address)
            if trouble is not None and now_ms < trouble.not_before_ms:
                call.finish(None, trouble.error)
                return
            try:
                link = self._open(address)
            except ClientError as error:
                self._remember(address, error)
                call.finish(None, error)
                return
        link.used_ms = now_ms
        link.connection.submit(call, now_ms)
        # Sent by the next poll(): requests that are submitted one behind the other leave together.
        self._unsent[address] = link

    def in_flight_count(self, address: Address) -> int:
        link = self._links.get(address)
        return 0 if link is None else link.connection.in_flight_count

    def is_ready(self, address: Address) -> bool:
        link = self._links.get(address)
        return link is not None and link.connection.negotiated and self.throttled_ms(address) == 0

    def throttled_ms(self, address: Address) -> int:
        link = self._links.get(address)
        if link is None or link.connection.throttled_until_ms == 0:
            return 0
        return link.connection.throttled_ms(self.now_ms())

    def meter(self) -> NetworkMeter | None:
        return self._meter

    def poll(self, timeout_ms: int) -> None:
        while self._unsent:
            self._flush(self._unsent.popitem()[1])
        meter = self._meter
        began_ns = time.monotonic_ns()
        wait_ms = max(0, min(timeout_ms, self._until_deadline_ms(began_ns // 1_000_000)))
        ready = self._selector.select(wait_ms / 1000)
        woke_ns = time.monotonic_ns()
        # Whatever is counted from here on belongs to this moment.
        meter.window.tick(woke_ns // 1_000_000)
        meter.wait_ns.add(woke_ns - began_ns)
        for key, events in ready:
            if key.data is None:
                self._drain_wakes()
            else:
                self._on_events(key.data, events)
        done_ns = time.monotonic_ns()
        meter.work_ns.add(done_ns - woke_ns)
        self._expire(done_ns // 1_000_000)

    def wake(self) -> None:
        try:
            self._wake_sender.send(b"w")
        except (BlockingIOError, OSError):
            pass  # a full pipe wakes as well, a closed one has nobody to wake

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for link in list(self._links.values()):
            self._drop(link, NetworkError("The client was closed."))
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def _remember(self, address: Address, error: ClientError) -> None:
        """Until a pause that grows is over, calls to the address fail at once with the same error."""
        trouble = self._troubles.setdefault(address, _Trouble())
        trouble.failures += 1
        trouble.not_before_ms = self.now_ms() + self._reconnect_backoff.delay_ms(trouble.failures)
        trouble.error = error

    def _until_deadline_ms(self, now_ms: int) -> int:
        nearest = 3_600_000
        for link in self._links.values():
            deadline = link.connect_deadline_ms if link.connecting else link.connection.next_deadline_ms()
            if deadline is not None:
                nearest = min(nearest, deadline - now_ms)
        return nearest

    def _drain_wakes(self) -> None:
        try:
            while len(self._wake_receiver.recv(WAKES_AT_ONCE)) == WAKES_AT_ONCE:
                pass
        except BlockingIOError:
            pass

    def _open(self, address: Address) -> _Link:
        host, port = address
        try:
            # A plain name goes as bytes: only others are worth the import of the codec that text would bring.
            name = host.encode() if host.isascii() else host
            found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        except socket.gaierror as error:
            raise NetworkError(f"The host name {host} cannot be resolved: {error.strerror}.") from None
        candidates = [(family, sockaddr) for family, _, _, _, sockaddr in found]
        new_login = None if self._security is None else self._security.new_login
        node_meter = self._meter.node(address)
        connection = Connection(address_text(address), self._client_id, new_login, self.now_ms, self._meter, node_meter)
        link = _Link(address, connection, list(reversed(candidates)), node_meter)
        self._connect_next(link, "it has no address")
        self._links[address] = link
        return link

    def _connect_next(self, link: _Link, reason: str) -> None:
        """Starts to connect to the next address that the host name stands for."""
        while link.candidates:
            family, sockaddr = link.candidates.pop()
            try:
                link.socket = self._new_socket(family)
                code = link.socket.connect_ex(sockaddr)
            except OSError as error:
                reason = error.strerror or str(error)
                continue
            if code in (0, errno.EINPROGRESS):
                link.connecting = True
                link.shaking_hands = False
                link.connect_deadline_ms = self.now_ms() + self._patience_ms(link.address)
                link.events = selectors.EVENT_WRITE
                self._selector.register(link.socket, link.events, link)
                return
            reason = os.strerror(code)
            link.socket.close()
        raise NetworkError(f"No connection to {address_text(link.address)}: {reason}.")

    def _patience_ms(self, address: Address) -> int:
        """How long to wait for a connection: doubled with each failure in a row."""
        trouble = self._troubles.get(address)
        failures = 0 if trouble is None else trouble.failures
        return min(self._connect_timeout_ms << min(failures, 20), self._connect_timeout_max_ms)

    def _new_socket(self, family: int) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        if self._receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self._receive_buffer_bytes)
        return sock

    def _on_events(self, link: _Link, events: int) -> None:
        if link.shaking_hands:
            self._shake_hands(link)
            return
        if link.connecting:
            self._on_connected(link)
            return
        if events & selectors.EVENT_READ:
            self._read(link)
        if link.socket is not None and events & selectors.EVENT_WRITE:
            self._flush(link)

    def _on_connected(self, link: _Link) -> None:
        assert link.socket is not None
        code = link.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._try_elsewhere(link, os.strerror(code))
            return
        if self._uses_tls:
            assert self._security is not None
            self._selector.unregister(link.socket)
            link.socket = self._security.wrap(link.socket, link.address[0])
            link.shaking_hands = True
            self._selector.register(link.socket, link.events, link)
            self._shake_hands(link)
        else:
            self._start(link)

    def _shake_hands(self, link: _Link) -> None:
        assert link.socket is not None and self._security is not None
        try:
            state = self._security.shake_hands(link.socket, address_text(link.address))
        except ClientError as error:
            self._meter.failed_authentications.add(1)
            self._drop(link, error)
            return
        except OSError as failure:
            self._drop(link, self._lost(link, failure.strerror or str(failure)))
            return
        if state == 0:
            link.shaking_hands = False
            if self._security.has_no_login:
                self._meter.authentications.add(1)
            self._start(link)
            return
        link.events = selectors.EVENT_READ if state == 1 else selectors.EVENT_WRITE
        self._selector.modify(link.socket, link.events, link)

    def _start(self, link: _Link) -> None:
        link.connecting = False
        self._meter.connections += 1
        self._meter.connections_created.add(1)
        link.connection.start(self.now_ms(), self._request_timeout_ms)
        self._flush(link)

    def _try_elsewhere(self, link: _Link, reason: str) -> None:
        assert link.socket is not None
        self._selector.unregister(link.socket)
        link.socket.close()
        link.socket = None
        try:
            self._connect_next(link, reason)
        except NetworkError as error:
            self._drop(link, error)

    def _read(self, link: _Link) -> None:
        connection = link.connection
        turn = 0
        while turn < READS_AT_ONCE:
            turn += 1
            assert link.socket is not None
            wanted = 0 if self._uses_tls else connection.piece_wanted
            if wanted > 0 and link.low_water == 1:
                # From here on it counts how much has arrived: what is there already is noticed by the next poll.
                self._set_low_water(link, min(wanted, LOW_WATER_MAX))
                break
            try:
                if wanted > 0:
                    piece = link.socket.recv(wanted)
                    count, room = len(piece), wanted
                else:
                    with connection.space() as space:
                        room = len(space)
                        count = link.socket.recv_into(space)
            except BlockingIOError:
                break
            except OSError as error:
                if self._uses_tls and _only_waits(error):
                    break
                self._drop(link, self._failed(link, error))
                return
            if not count:
                self._drop(link, self._lost(link, "the other side closed it"))
                return
            link.meter.bytes_in.add(count)
            if wanted > 0:
                self._set_low_water(link, 1)
                connection.received_piece(piece)
            else:
                connection.received(count)
            if connection.closed:
                self._forget(link)
                if connection.refusal is not None:
                    self._remember(link.address, connection.refusal)
                return
            if self._uses_tls:
                if _is_pending(link.socket):
                    turn = 0  # nobody would tell of what is decrypted already
            elif count < room:
                break
        if connection.negotiated and link.address in self._troubles:
            del self._troubles[link.address]
        self._flush(link)

    def _set_low_water(self, link: _Link, size: int) -> None:
        assert link.socket is not None
        try:
            link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, size)
        except OSError:
            pass  # then a response comes in several pieces, and is copied together
        link.low_water = size

    def _lost(self, link: _Link, reason: str) -> NetworkError:
        where = address_text(link.address)
        if link.connection.negotiated:
            return NetworkError(f"The connection to {where} was lost: {reason}.")
        other = "without TLS" if self._uses_tls else "that wants TLS or SASL"
        return NetworkError(
            f"The connection to {where} was lost before the first response: {reason}. It may be another service,"
            f" or a listener {other}."
        )

    def _failed(self, link: _Link, error: OSError) -> ClientError:
        """What to say of a socket that cannot be read or written any more."""
        if self._uses_tls and not link.connection.negotiated:
            from moldau.client.connection.security import refusal

            refused = refusal(error, address_text(link.address))
            if refused is not None:
                return refused
        return self._lost(link, error.strerror or str(error))

    def _flush(self, link: _Link) -> None:
        """Sends what the socket takes now and asks to be told when it takes more."""
        if link.connecting or link.socket is None:
            return
        try:
            while True:
                if not link.outgoing:
                    link.outgoing = [memoryview(part) for part in link.connection.take_parts()]
                    if not link.outgoing:
                        break
                if self._uses_tls:
                    sent = link.socket.send(link.outgoing[0])
                else:
                    sent = link.socket.sendmsg(link.outgoing[:PARTS_AT_ONCE])
                link.meter.bytes_out.add(sent)
                _drop_sent(link.outgoing, sent)
        except BlockingIOError:
            pass
        except OSError as error:
            if not self._uses_tls or not _only_waits(error):
                self._drop(link, self._failed(link, error))
                return
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if link.outgoing else 0)
        if events != link.events:
            link.events = events
            self._selector.modify(link.socket, events, link)

    def _expire(self, now_ms: int) -> None:
        for link in list(self._links.values()):
            if link.connecting:
                if link.connect_deadline_ms <= now_ms:
                    self._try_elsewhere(link, f"no response within {self._patience_ms(link.address)} ms")
            elif link.connection.expired(now_ms):
                where = address_text(link.address)
                self._drop(link, RequestTimeoutError(f"The broker at {where} did not respond in time."))
            elif link.connection.tick(now_ms):
                self._flush(link)
            elif 0 <= self._idle_max_ms < now_ms - link.used_ms and link.connection.in_flight_count == 0:
                where = address_text(link.address)
                self._drop(link, NetworkError(f"The connection to {where} was not used for {self._idle_max_ms} ms."))

    def _drop(self, link: _Link, error: ClientError) -> None:
        self._forget(link)
        if isinstance(error, NetworkError | TlsError) and not link.connection.negotiated and not self._closed:
            self._remember(link.address, error)
        logger.debug("connection to %s closed: %s", address_text(link.address), error)
        link.connection.close(error)

    def _forget(self, link: _Link) -> None:
        if self._links.get(link.address) is link:
            del self._links[link.address]
            if not link.connecting:
                self._meter.connections -= 1
                self._meter.connections_closed.add(1)
        if link.socket is not None:
            self._selector.unregister(link.socket)
            link.socket.close()
            link.socket = None


def _only_waits(error: OSError) -> bool:
    from moldau.client.connection.security import waits

    return waits(error)


def _is_pending(secured: socket.socket) -> bool:
    """Whether TLS has decrypted more than was read."""
    from moldau.client.connection.security import pending

    return pending(secured)


def _drop_sent(outgoing: list[memoryview], sent: int) -> None:
    """Takes away the bytes that are on their way."""
    done = 0
    while done < len(outgoing) and sent >= len(outgoing[done]):
        sent -= len(outgoing[done])
        done += 1
    del outgoing[:done]
    if sent:
        outgoing[0] = outgoing[0][sent:]
