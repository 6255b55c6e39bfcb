"""Connections that the node opens to other nodes: the outbox on sockets.

Nothing here tries again by itself: a connection is made for the next request, and what breaks is told to whoever waits
for a response. All callbacks run in a turn of the event loop of their own, never inside `send`; one that raises is
reported to the loop's exception handler, and the others are called all the same. Where there is TLS, the handshake is
part of connecting (`net/handshakes.py`); where the other side wants a login, requests wait for it
(`net/outbound_login.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import re
import socket
import ssl
from collections import deque
from collections.abc import Callable
from typing import Final

from moldau.metrics.traffic import Traffic
from moldau.net.framing import FrameError, FrameReader, Scratch
from moldau.net.handshakes import DONE, FAILED, Handshake, HandshakeThreads
from moldau.net.log_limit import LogLimit
from moldau.net.low_water import LargeReads
from moldau.net.outbound_login import RENEW_PERCENT, LoginTalk, OutboundLogin
from moldau.net.resolver import Resolver
from moldau.net.tls import RECORD_BYTES_MAX, TlsMisuse, TlsSocket
from moldau.net.turns import RESPONSE, Turns
from moldau.node.outbox import CLOSED, REFUSED, TIMED_OUT, UNREACHABLE, Channel, NoResponse, OnResponse, Outbox
from moldau.protocol import api_keys
from moldau.protocol.errors import UNSUPPORTED_VERSION
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.primitives import DecodeError, Message, Reader, Writer
from moldau.records.clocks import NEVER_MS
from moldau.security.exchange import LoginRefused

# For each address of a name. A process that is there responds at once, whatever else it does: the kernel does it.
CONNECT_TIMEOUT_MS: Final = 1500
# A handshake is work for the process itself, and it may have much of it.
HANDSHAKE_TIMEOUT_MS: Final = 5000
NOT_TRUSTED: Final = "Connection to %s:%d (%s) failed authentication due to: SSL handshake failed: %s"
TLS_ALERT: Final = re.compile("alert [a-z ]+[a-z]")
RESPONSE_BYTES_MAX: Final = 1 << 30

IDLE: Final = 0
RESOLVING: Final = 1
CONNECTING: Final = 2
CONNECTED: Final = 3
FAILING: Final = 4  # a turn that tells everybody is on its way
SHAKING_HANDS: Final = 5
LOGGING_IN: Final = 6
LOGIN_TIMEOUT_MS: Final = 10_000

API_VERSIONS: Final = 18

# Family, address; what socket.connect wants.
Address = tuple[int, tuple[str, int]]

log = logging.getLogger("moldau.net")
log.addFilter(LogLimit())


class OutboundTls:
    """TLS for connections to other nodes: the context of the moment, and the threads for handshakes."""

    def __init__(self, context: Callable[[], ssl.SSLContext], threads: HandshakeThreads) -> None:
        self.context = context
        self.threads = threads


class AwaitedResponse:
    """A request that was sent, or will be as soon as there is a connection."""

    def __init__(
        self, correlation_id: int, api_key: int, version: int, deadline_ms: int, on_response: OnResponse
    ) -> None:
        self.correlation_id = correlation_id
        self.api_key = api_key
        self.version = version
        self.deadline_ms = deadline_ms
        self.on_response = on_response


class SocketChannel(Channel):
    """See the module."""

    def __init__(self, outbox: SocketOutbox, purpose: str, host: str, port: int) -> None:
        self.purpose = purpose
        self.host = host
        self.port = port
        self._outbox = outbox
        self._turns = outbox.scratch.turns
        self._loop = outbox.loop
        self._clock = outbox.clock
        self._client_id = f"{outbox.client_id}-{purpose}"
        self._state = IDLE
        self._closed = False
        # Counts connections, so that news of an earlier one does not reach a later one.
        self._attempt = 0
        self._sock: socket.socket | TlsSocket | None = None
        self._tls: TlsSocket | None = None
        self._handshake: Handshake | None = None
        self._reads_pending = False
        self._fd = -1
        self._addresses: list[Address] = []
        self._reason = UNREACHABLE
        self._traffic = outbox.traffic_of(purpose)
        self._frames = FrameReader(outbox.scratch, RESPONSE_BYTES_MAX)
        self._large_reads = LargeReads()
        self._awaited: deque[AwaitedResponse] = deque()
        self._unsent: deque[bytes | memoryview] = deque()
        self._writing = False
        self._login: LoginTalk | None = None
        # Requests that were sent before the login that goes on, and what the login itself sends.
        self._before_login: deque[AwaitedResponse] = deque()
        self._login_unsent: deque[bytes | memoryview] = deque()
        self._renew_ms = NEVER_MS
        self._was_logged_in = False
        self._next_correlation_id = 0
        self._connect_deadline_ms = NEVER_MS
        self._timer: asyncio.TimerHandle | None = None
        self._timer_ms = NEVER_MS

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, on_response: OnResponse) -> None:
        assert not self._closed, "a closed channel was asked to send"
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        frame = encode_request(api_key, version, correlation_id, self._client_id, request)
        now_ms = self._clock()
        deadline_ms = now_ms + timeout_ms
        if now_ms >= self._renew_ms and self._state == CONNECTED and not self._unsent:
            self._log_in()
        self._awaited.append(AwaitedResponse(correlation_id, api_key, version, deadline_ms, on_response))
        self._unsent.append(frame)
        self._traffic.requests += 1
        if deadline_ms < self._timer_ms:
            self._set_timer(deadline_ms)
        if self._state == CONNECTED:
            if not self._writing:
                self._flush()
        elif self._state == IDLE:
            self._begin()

    def close(self) -> None:
        self._closed = True
        self._awaited.clear()
        self._before_login.clear()
        self._drop_connection()
        self._state = IDLE
        self._cancel_timer()
        self._outbox.resolver.forget(self.host, self)
        self._outbox.forget(self)

    # Connecting

    def _begin(self) -> None:
        self._attempt += 1
        self._reason = UNREACHABLE
        literal = literal_address(self.host, self.port)
        if literal is not None:
            self._addresses = [literal]
            self._connect_next()
            return
        self._state = RESOLVING
        self._set_connect_deadline()
        self._outbox.resolver.resolve(self.host, self, self._attempt, self._on_resolved)

    def _on_resolved(self, attempt: int, found: list[tuple[int, str]]) -> None:
        if attempt != self._attempt or self._state != RESOLVING:
            return
        self._turns.begin()
        self._addresses = [(family, (address, self.port)) for family, address in found]
        self._connect_next()
        self._end_turn()

    def _end_turn(self) -> None:
        if self._turns.end():
            self._turns.tell(RESPONSE, self.purpose, f"the connection to {self.host}:{self.port} ({self.purpose})")

    def _connect_next(self) -> None:
        """Tries the next address; when there is none left, everybody is told."""
        while self._addresses:
            family, address = self._addresses.pop(0)
            try:
                sock = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                self._reason = reason_of(error.errno)
                continue
            sock.setblocking(False)
            code = connect_code(sock, address)
            if code in (0, errno.EINPROGRESS, errno.EINTR):
                self._sock = sock
                self._fd = sock.fileno()
                self._state = CONNECTING
                self._set_connect_deadline()
                # Also when it is there already: the first bytes leave in a turn of their own, together.
                self._writing = True
                self._loop.add_writer(self._fd, self._on_writable)
                return
            sock.close()
            self._reason = reason_of(code)
        self._fail_soon(self._reason)

    def _on_connected(self) -> None:
        sock = self._sock
        assert isinstance(sock, socket.socket)
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            self._drop_socket()
            self._reason = reason_of(code)
            self._connect_next()
            return
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._addresses = []
        if self._outbox.tls is not None:
            self._shake_hands(sock, self._outbox.tls)
            return
        self._on_open()

    def _on_open(self) -> None:
        self._state = CONNECTED
        self._connect_deadline_ms = NEVER_MS
        self._loop.add_reader(self._fd, self._on_readable)
        if self._outbox.login is not None:
            self._log_in()

    # Logging in

    def _log_in(self) -> None:
        """What was sent before is answered first, what comes meanwhile waits."""
        login = self._outbox.login
        assert login is not None and not self._login_unsent
        self._state = LOGGING_IN
        if self._was_logged_in:
            self._before_login, self._awaited = self._awaited, deque()
        self._set_connect_deadline(LOGIN_TIMEOUT_MS)
        self._login = login.begin(self._client_id, self._send_login, self._on_logged_in)
        self._login.on_failed = self._on_login_failed
        self._login.start()

    def _send_login(self, frame: bytes) -> None:
        self._login_unsent.append(frame)
        if not self._writing:
            self._flush()

    def _on_logged_in(self, lifetime_ms: int) -> None:
        self._turns.begin()
        self._login = None
        if self._login_unsent:
            self._refused("it sent a response without a request")
            self._end_turn()
            return
        self._was_logged_in = True
        self._state = CONNECTED
        self._connect_deadline_ms = NEVER_MS
        self._renew_ms = self._clock() + lifetime_ms * RENEW_PERCENT // 100 if lifetime_ms > 0 else NEVER_MS
        if not self._writing:
            self._flush()
        self._end_turn()

    def _on_login_failed(self, reason: str) -> None:
        self._turns.begin()
        self._refused(reason)
        self._end_turn()

    def _refused(self, reason: str) -> None:
        where = (self.host, self.port, self.purpose)
        log.error("Connection to %s:%d (%s) failed authentication due to: %s", *where, reason)
        self._fail(CLOSED)

    def _shake_hands(self, sock: socket.socket, tls: OutboundTls) -> None:
        self._stop_writing()
        self._sock = None
        self._state = SHAKING_HANDS
        self._set_connect_deadline(HANDSHAKE_TIMEOUT_MS)
        self._handshake = Handshake(sock, tls.threads, tls.context, self.host, self._on_handshake_ended, NEVER_MS)

    def _on_handshake_ended(self, handshake: Handshake) -> None:
        if handshake is not self._handshake:
            return
        self._handshake = None
        if handshake.outcome != DONE:
            level = logging.ERROR if handshake.outcome == FAILED else logging.DEBUG
            log.log(level, NOT_TRUSTED, self.host, self.port, self.purpose, handshake.reason)
            self._fail(CLOSED)
            return
        self._sock = self._tls = handshake.take_socket()
        self._fd = self._tls.fileno()
        self._on_open()
        self._flush()
        self._maybe_read_pending()

    # Sending

    def _on_writable(self) -> None:
        self._turns.begin()
        if self._state == CONNECTING:
            self._on_connected()
        if self._state in (CONNECTED, LOGGING_IN):
            self._flush()
        self._end_turn()

    def _flush(self) -> None:
        sock = self._sock
        assert sock is not None
        unsent = self._login_unsent if self._state == LOGGING_IN else self._unsent
        try:
            while unsent:
                part = unsent.popleft()
                if unsent and isinstance(part, bytes):
                    parts = [part, *unsent]
                    unsent.clear()
                    part = b"".join(parts)
                try:
                    sent = sock.send(part)
                except (BlockingIOError, InterruptedError):
                    unsent.appendleft(part)
                    raise
                self._traffic.bytes_out += sent
                if sent < len(part):
                    unsent.appendleft(memoryview(part)[sent:])
        except (BlockingIOError, InterruptedError):
            if not self._writing:
                self._writing = True
                self._loop.add_writer(self._fd, self._on_writable)
            return
        except OSError:
            # What it had sent before it closed may still be there to read, but nothing in it is owed to us now.
            self._fail_soon(CLOSED)
            return
        self._stop_writing()

    def _stop_writing(self) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(self._fd)

    # Receiving

    def _on_readable(self) -> None:
        self._turns.begin()
        self._receive()
        self._maybe_read_pending()
        self._end_turn()

    def _maybe_read_pending(self) -> None:
        """What TLS has and the system tells nobody of."""
        tls = self._tls
        if tls is not None and not self._reads_pending and tls.pending:
            self._reads_pending = True
            self._loop.call_soon(self._on_pending, self._attempt)

    def _on_pending(self, attempt: int) -> None:
        self._reads_pending = False
        if attempt == self._attempt and self._state in (CONNECTED, LOGGING_IN):
            self._on_readable()

    def _receive(self) -> None:
        sock = self._sock
        if sock is None:
            return
        frames = self._frames
        try:
            while True:
                wanted = frames.piece_wanted if self._tls is None else 0
                is_last = False  # after small records others have their turn
                if wanted > 0:
                    assert isinstance(sock, socket.socket)
                    there = self._large_reads.receive(sock, wanted)
                    if there is None:
                        return
                    piece = there
                    count = len(piece)
                else:
                    window = frames.window()
                    count = sock.recv_into(window)
                    is_last = self._tls is not None and count < RECORD_BYTES_MAX and count < len(window)
                self._traffic.bytes_in += count
                if count == 0:
                    self._fail(CLOSED)
                    return
                complete = frames.received_piece(piece) if wanted > 0 else frames.received(count)
                if complete:
                    attempt = self._attempt
                    for data, start, end in complete:
                        self._on_frame(data, start, end)
                        if self._attempt != attempt or self._state not in (CONNECTED, LOGGING_IN):
                            return
                    return
                if is_last or not frames.wants_more:
                    return
        except (BlockingIOError, InterruptedError):
            return
        except (FrameError, DecodeError, TlsMisuse) as error:
            log.warning("closing the connection to %s:%d (%s): %s", self.host, self.port, self.purpose, error)
            self._fail(CLOSED)
        except OSError as failure:
            self._maybe_tell_alert(failure)
            self._fail(CLOSED)

    def _on_frame(self, data: bytes, start: int, end: int) -> None:
        awaited = self._awaited
        if self._state == LOGGING_IN:
            awaited = self._before_login
            if not awaited:
                self._on_login_frame(data, start, end)
                return
        if not awaited or awaited[0].correlation_id != int.from_bytes(data[start : start + 4], "big", signed=True):
            raise DecodeError("it is no response to a request of ours")
        response = decode_response(awaited[0].api_key, awaited[0].version, data, start, end)
        self._traffic.responses += 1
        self._tell(awaited.popleft(), response, self._clock())

    def _on_login_frame(self, data: bytes, start: int, end: int) -> None:
        assert self._login is not None
        try:
            self._login.receive(data, start, end)
        except LoginRefused as refused:
            self._refused(str(refused))

    def _maybe_tell_alert(self, error: OSError) -> None:
        """In TLS 1.3 our own certificate is refused when the handshake is over for us."""
        alert = TLS_ALERT.search(str(error)) if self._tls is not None else None
        if alert is not None:
            log.error(NOT_TRUSTED, self.host, self.port, self.purpose, alert[0])

    # Failing

    def _fail_soon(self, reason: int) -> None:
        """The connection is gone, and those who wait are told in a turn of their own: this may be inside `send`."""
        self._drop_socket()
        self._state = FAILING
        self._reason = reason
        self._attempt += 1
        self._loop.call_soon(self._on_failed, self._attempt)

    def _on_failed(self, attempt: int) -> None:
        if attempt == self._attempt and self._state == FAILING:
            self._turns.begin()
            self._fail(self._reason)
            self._end_turn()

    def _fail(self, reason: int) -> None:
        self._drop_connection()
        self._state = IDLE
        self._cancel_timer()
        pending = [*self._before_login, *self._awaited]
        # What a callback sends is for the next connection.
        self._before_login = deque()
        self._awaited = deque()
        now_ms = self._clock()
        for awaited in pending:
            if self._closed:
                return
            self._tell(awaited, NoResponse(reason), now_ms)

    def _tell(self, awaited: AwaitedResponse, response: Message | NoResponse, now_ms: int) -> None:
        try:
            awaited.on_response(response, now_ms)
        except Exception as error:
            self._loop.call_exception_handler(
                {
                    "message": f"a response of {self.host}:{self.port} ({self.purpose}) was not handled",
                    "exception": error,
                }
            )

    def _drop_connection(self) -> None:
        self._attempt += 1
        self._drop_socket()
        self._addresses = []
        self._unsent.clear()
        self._login_unsent.clear()
        self._connect_deadline_ms = NEVER_MS

    def _drop_socket(self) -> None:
        if self._handshake is not None:
            self._handshake.close()
            self._handshake = None
        if self._login is not None:
            self._login.is_over = True
            self._login = None
        self._was_logged_in = False
        self._renew_ms = NEVER_MS
        sock = self._sock
        if sock is None:
            return
        self._sock = None
        self._tls = None
        self._reads_pending = False
        self._stop_writing()
        self._loop.remove_reader(self._fd)
        sock.close()
        self._frames = FrameReader(self._outbox.scratch, RESPONSE_BYTES_MAX)
        self._large_reads = LargeReads()

    # Deadlines: one timer, which is set again when it comes too early, not with every request

    def _set_connect_deadline(self, timeout_ms: int = CONNECT_TIMEOUT_MS) -> None:
        self._connect_deadline_ms = self._clock() + timeout_ms
        if self._connect_deadline_ms < self._timer_ms:
            self._set_timer(self._connect_deadline_ms)

    def _set_timer(self, deadline_ms: int) -> None:
        self._cancel_timer()
        self._timer_ms = deadline_ms
        self._timer = self._loop.call_later(max(0, deadline_ms - self._clock()) / 1000.0, self._on_timer)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._timer_ms = NEVER_MS

    def _on_timer(self) -> None:
        self._turns.begin()
        self._look_at_deadlines()
        self._end_turn()

    def _look_at_deadlines(self) -> None:
        self._timer = None
        self._timer_ms = NEVER_MS
        now_ms = self._clock()
        earliest_ms = NEVER_MS
        for awaited in (*self._before_login, *self._awaited):
            earliest_ms = min(earliest_ms, awaited.deadline_ms)
        if earliest_ms <= now_ms:
            self._fail(TIMED_OUT)
        elif self._connect_deadline_ms <= now_ms:
            self._on_connect_timeout()
        else:
            earliest_ms = min(earliest_ms, self._connect_deadline_ms)
            if earliest_ms < NEVER_MS:
                self._set_timer(earliest_ms)

    def _on_connect_timeout(self) -> None:
        self._connect_deadline_ms = NEVER_MS
        if self._state == CONNECTING and self._addresses:
            self._drop_socket()
            self._reason = TIMED_OUT
            self._connect_next()
        else:
            self._fail(UNREACHABLE if self._state == RESOLVING else TIMED_OUT)


class SocketOutbox(Outbox):
    """Channels on one event loop. `client_id` tells the other side who asks."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Callable[[], int],
        client_id: str,
        turns: Turns | None = None,
        tls: OutboundTls | None = None,
        resolver: Resolver | None = None,
    ) -> None:
        self.loop = loop
        self.clock = clock
        self.client_id = client_id
        self.scratch = Scratch(turns=turns)
        self.resolver = resolver if resolver is not None else Resolver(loop)
        self.tls = tls
        self.login: OutboundLogin | None = None
        self._channels: set[SocketChannel] = set()
        self.traffic: dict[str, Traffic] = {}
        """By purpose, of all connections since the start."""

    def traffic_of(self, purpose: str) -> Traffic:
        return self.traffic.setdefault(purpose, Traffic())

    def channels(self) -> list[SocketChannel]:
        return list(self._channels)

    def open(self, purpose: str, host: str, port: int) -> Channel:
        channel = SocketChannel(self, purpose, host, port)
        self._channels.add(channel)
        return channel

    def forget(self, channel: SocketChannel) -> None:
        self._channels.discard(channel)

    def close(self) -> None:
        for channel in list(self._channels):
            channel.close()
        if self.login is not None:
            self.login.close()


class Wording:
    """How requests and responses of one api in one version are written."""

    def __init__(self, api_key: int, version: int) -> None:
        self.request_header_version: int = api_keys.request_header_version(api_key, version)
        self.response_header_version: int = api_keys.response_header_version(api_key, version)
        self.response_class: type[Message] = api_keys.response_class(api_key)


_wordings: Final[dict[int, Wording]] = {}


def wording(api_key: int, version: int) -> Wording:
    key = api_key << 16 | version
    found = _wordings.get(key)
    if found is None:
        found = _wordings[key] = Wording(api_key, version)
    return found


def encode_request(api_key: int, version: int, correlation_id: int, client_id: str, request: Message) -> bytes:
    writer = Writer()
    writer.int32(0)
    header = RequestHeader(api_key, version, correlation_id, client_id)
    header.encode(writer, wording(api_key, version).request_header_version)
    request.encode(writer, version)
    writer.set_int32(0, writer.size - 4)
    return writer.to_bytes()


def decode_response(api_key: int, version: int, data: bytes, start: int, end: int) -> Message:
    """The response; its records stay where they are in the frame."""
    words = wording(api_key, version)
    reader = Reader(data, start, end)
    ResponseHeader.decode(reader, words.response_header_version)
    if api_key == API_VERSIONS and int.from_bytes(data[start + 4 : start + 6], "big") == UNSUPPORTED_VERSION:
        version = 0  # KIP-511: so that everybody can read which versions there are
    response: Message = words.response_class.decode(reader, version)
    return response


def reason_of(code: int | None) -> int:
    if code == errno.ECONNREFUSED:
        return REFUSED
    if code == errno.ETIMEDOUT:
        return TIMED_OUT
    if code in (errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE):
        return CLOSED
    return UNREACHABLE


def connect_code(sock: socket.socket, address: tuple[str, int]) -> int:
    try:
        return sock.connect_ex(address)
    except OSError as error:
        return error.errno or errno.EHOSTUNREACH


def literal_address(host: str, port: int) -> Address | None:
    """The address when it is written in digits, so that nobody need be asked."""
    for family in (socket.AF_INET, socket.AF_INET6):
        with contextlib.suppress(OSError, ValueError):
            socket.inet_pton(family, host)
            return int(family), (host, port)
    return None
