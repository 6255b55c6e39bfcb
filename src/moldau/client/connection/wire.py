"""One connection to one broker without a socket: requests become bytes, bytes become responses.

The owner moves the bytes: it sends what take_outgoing() gives, hands what arrives to receive(), and calls close() when
the socket is gone. A connection first asks ApiVersions; calls that are submitted before its response wait for it, since
only then the version of their request can be chosen. Brokers respond in the order of the requests, so the responses are
matched from the head of a queue and a correlation id that does not fit ends the connection.

Where brokers want to know who asks, a login follows the negotiation, and the calls wait for it too. A session of a
limited time (KIP-368) is renewed on the same connection, behind the requests that are on their way, before it is over.

While the broker throttles the client (KIP-219) nothing is sent: calls wait, each at most for its own timeout, and leave
in their order with the tick() that finds the time over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar, cast

from moldau import __version__
from moldau.client.connection.throttle import is_honoured
from moldau.client.errors import (
    ClientError,
    NetworkError,
    ProtocolError,
    RequestTimeoutError,
    UnsupportedVersionError,
    error_for,
)
from moldau.client.metrics.meters import EVERY_API, NetworkMeter, NodeMeter
from moldau.protocol import api_keys
from moldau.protocol.errors import UNSUPPORTED_VERSION
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersionsResponse
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.sasl_authenticate_request import SaslAuthenticateRequest
from moldau.protocol.messages.sasl_authenticate_response import SaslAuthenticateResponse
from moldau.protocol.messages.sasl_handshake_request import SaslHandshakeRequest
from moldau.protocol.messages.sasl_handshake_response import SaslHandshakeResponse
from moldau.protocol.primitives import DecodeError, EncodeError, Message, Reader, Writer

if TYPE_CHECKING:
    from moldau.client.connection.sasl import Login

Response = TypeVar("Response", bound=Message)
Piece = bytes | memoryview

# Before the negotiation the peer may be anything; the response to ApiVersions takes about 600 bytes.
FIRST_RESPONSE_BYTES_MAX: Final = 1 << 20
RESPONSE_BYTES_MAX: Final = 0x7FFFFFFF

# A connection's buffer grows to the size of the response that arrives, and shrinks again after a large one.
SPACE_BYTES_MIN: Final = 1 << 16
SPACE_BYTES_KEPT: Final = 1 << 22
# From this size on, a response that follows one of such a size is received in one piece, and not copied.
LARGE_RESPONSE_BYTES: Final = 1 << 18

API_VERSIONS: Final = 18

# Java's client renews a session when 85 to 95 % of its time are over.
RENEW_PERCENT: Final = 85


class Features(NamedTuple):
    """The feature levels that a broker says are finalized, and the epoch of that knowledge (-1: none)."""

    epoch: int
    levels: dict[str, int]


NO_FEATURES: Final = Features(-1, {})


class Call(Generic[Response]):
    """One request on its way: done once it has a response or an error."""

    def __init__(
        self,
        request: Message,
        response_class: type[Response],
        timeout_ms: int,
        highest_version: int | None = None,
        expects_response: bool = True,
        when_done: Callable[[Call[Response]], None] | None = None,
    ) -> None:
        self.request: Message = request
        self.response_class: type[Response] = response_class
        self.timeout_ms: int = timeout_ms
        self.highest_version: int = request.HIGHEST_VERSION if highest_version is None else highest_version
        self.expects_response: bool = expects_response
        self.when_done: Callable[[Call[Response]], None] | None = when_done
        self.version: int = -1
        self.correlation_id: int = -1
        self.deadline_ms: int = 0
        self.done: bool = False
        self.error: ClientError | None = None
        # What somebody who knows more than the network makes of an error.
        self.explain: Callable[[ClientError], ClientError] | None = None
        # What the connection that carried the call knows of the cluster's features.
        self.features: Features = NO_FEATURES
        self._response: Response | None = None

    def response(self) -> Response:
        """The response, or the error raised; only once the call is done, and not for a call that expects none."""
        if self.error is not None:
            raise self.error
        assert self._response is not None
        return self._response

    def finish(self, response: Response | None, error: ClientError | None = None) -> None:
        if self.done:
            return
        self.done = True
        self._response = response
        self.error = error if error is None or self.explain is None else self.explain(error)
        if self.when_done is not None:
            self.when_done(self)


class Connection:
    """The protocol's side of one connection."""

    def __init__(
        self,
        name: str,
        client_id: str,
        new_login: Callable[[], Login | None] | None = None,
        clock: Callable[[], int] | None = None,
        meter: NetworkMeter | None = None,
        node_meter: NodeMeter | None = None,
    ) -> None:
        """new_login: what begins a login; None where brokers take everybody. clock: tells the time of a response, from
        which its throttle time counts; without one, that of the last call counts. meter, node_meter: where logins,
        requests and responses are counted, both or neither."""
        self.name: str = name
        self.client_id: str = client_id
        self._new_login: Callable[[], Login | None] | None = new_login
        self._login: Login | None = None
        self._login_call: Call[Message] | None = None
        self._login_timeout_ms: int = 0
        self._renew_at_ms: int = 0
        self._was_ready: bool = False
        self._clock: Callable[[], int] | None = clock
        self._meter: NetworkMeter | None = meter
        self._node_meter: NodeMeter | None = node_meter
        # The latencies of these requests are counted.
        self._latency_api: int = EVERY_API if meter is None else meter.latency_api
        # Since when the client logs in again.
        self._renewing_since_ms: int = 0
        # Until then nothing is sent; 0 when the broker does not throttle the client.
        self.throttled_until_ms: int = 0
        self._now_ms: int = 0
        self.closed: bool = False
        # Why there was no login.
        self.refusal: ClientError | None = None
        self.negotiated: bool = False
        # api key -> lowest and highest version that the broker offers
        self.versions: dict[int, tuple[int, int]] = {}
        self.features: Features = NO_FEATURES
        self._waiting: deque[Call[Message]] = deque()
        self._in_flight: deque[Call[Message]] = deque()
        self._outgoing: list[Piece] = []
        # What arrived and is not a whole frame yet lies at the start of the buffer; so many bytes are needed to go on.
        self._buffer: bytearray = bytearray(SPACE_BYTES_MIN)
        self._filled: int = 0
        self._needed: int = 4
        self._expects_large: bool = False
        self._next_correlation_id: int = 0

    @property
    def in_flight_count(self) -> int:
        return len(self._in_flight) + len(self._waiting)

    def start(self, now_ms: int, timeout_ms: int) -> None:
        """Asks for the broker's versions; nothing else is sent before the response."""
        # Whoever gave up meanwhile needs no response, and its deadline must not end the connection.
        self._waiting = deque(call for call in self._waiting if not call.done)
        self._now_ms = now_ms
        self._login_timeout_ms = timeout_ms
        self._ask_versions(ApiVersionsRequest.HIGHEST_VERSION, now_ms + timeout_ms)

    def submit(self, call: Call[Response], now_ms: int) -> None:
        call.deadline_ms = now_ms + call.timeout_ms
        self._now_ms = now_ms
        generic = cast("Call[Message]", call)
        if self.negotiated and now_ms >= self.throttled_until_ms:
            self._maybe_renew(now_ms)
        if self.closed:
            call.finish(None, NetworkError(f"The connection to {self.name} is closed."))
        elif self.negotiated and now_ms >= self.throttled_until_ms:
            if self._waiting:
                self._send_waiting()  # they were here before
            self._send(generic)
        else:
            self._waiting.append(generic)

    def throttled_ms(self, now_ms: int) -> int:
        """For how long the broker still throttles the client."""
        return max(0, self.throttled_until_ms - now_ms)

    def tick(self, now_ms: int) -> bool:
        """What time brings while the broker throttles: calls that waited too long end, and when the broker is done the
        others leave. True when there is something to send."""
        if self.throttled_until_ms == 0 or not self.negotiated:
            return False
        if now_ms >= self.throttled_until_ms:
            self.throttled_until_ms = 0
            self._now_ms = now_ms
            if not self._maybe_renew(now_ms):
                self._send_waiting()
            return True
        late = [call for call in self._waiting if call.done or call.deadline_ms <= now_ms]
        if late:
            self._waiting = deque(call for call in self._waiting if not call.done and call.deadline_ms > now_ms)
            left_ms = self.throttled_until_ms - now_ms
            sentence = f"The broker at {self.name} throttles this client for another {left_ms} ms: nothing was sent."
            for call in late:
                call.finish(None, RequestTimeoutError(sentence))
        return False

    def take_parts(self) -> list[Piece]:
        """What is to be sent, in pieces that belong one behind the other."""
        parts = self._outgoing
        self._outgoing = []
        return parts

    def take_outgoing(self) -> bytes:
        return b"".join(self.take_parts())

    def receive(self, data: bytes) -> None:
        """Takes bytes from the broker and finishes the calls that they are responses to. Closes itself on anything
        malformed."""
        while data and not self.closed:
            with self.space(len(data)) as space:
                count = min(len(space), len(data))
                space[:count] = data[:count]
            self.received(count)
            data = data[count:]

    def space(self, size: int = SPACE_BYTES_MIN) -> memoryview:
        """Where the next bytes are to be put; to be released before received() is called."""
        wanted = max(self._needed, self._filled + size)
        if len(self._buffer) < wanted:
            self._buffer += bytes(wanted - len(self._buffer))
        # The size of a large response is read alone, so that the rest can be had in one piece.
        end = 4 if self._expects_large and self._filled < 4 else len(self._buffer)
        return memoryview(self._buffer)[self._filled : end]

    @property
    def piece_wanted(self) -> int:
        """So many bytes may be given to received_piece(), better all of them at once; 0: they go into space()."""
        size = self._needed - 4
        return size if self._expects_large and self._filled == 4 and size >= LARGE_RESPONSE_BYTES else 0

    def received_piece(self, piece: bytes) -> None:
        """Takes a response without its size; one that is not whole goes on in space()."""
        if len(piece) < self._needed - 4:
            self._expects_large = False
            self.receive(piece)
            return
        self._filled = 0
        self._needed = 4
        self._on_frame(piece, 0, len(piece))

    def received(self, count: int) -> None:
        """So many bytes were put into space()."""
        self._filled += count
        if self._filled < self._needed:
            return
        with memoryview(self._buffer) as view:
            data = bytes(view[: self._filled])
        position = 0
        while not self.closed:
            size = self._frame_size(data, position)
            if size < 0:
                break
            position += 4 + size
            self._expects_large = size >= LARGE_RESPONSE_BYTES
            self._on_frame(data, position - size, position)
        self._filled = len(data) - position
        if len(self._buffer) > SPACE_BYTES_KEPT and self._filled < SPACE_BYTES_MIN:
            self._buffer = bytearray(SPACE_BYTES_MIN)
        self._buffer[: self._filled] = data[position:]

    def expired(self, now_ms: int) -> bool:
        """True when a call has waited too long; the owner then closes, as nothing after it can be answered either."""
        if self._in_flight and self._in_flight[0].deadline_ms <= now_ms:
            return True
        # Calls that wait until the broker throttles no more end one by one; the connection is as good as before.
        return not self._is_throttled and any(call.deadline_ms <= now_ms for call in self._waiting)

    @property
    def _is_throttled(self) -> bool:
        return self.negotiated and self.throttled_until_ms > 0

    def next_deadline_ms(self) -> int | None:
        """When tick() or expired() has something to say."""
        deadlines = [call.deadline_ms for call in self._waiting]
        if self._is_throttled:
            deadlines.append(self.throttled_until_ms)
        if self._in_flight:
            deadlines.append(self._in_flight[0].deadline_ms)
        return min(deadlines) if deadlines else None

    def close(self, error: ClientError) -> None:
        """Ends the connection; every call that has no response yet fails with the error."""
        self.closed = True
        pending = [*self._in_flight, *self._waiting]
        self._in_flight.clear()
        self._waiting.clear()
        self._outgoing.clear()
        for call in pending:
            call.finish(None, error)

    def choose_version(self, request: Message, highest: int) -> int:
        """The highest version that both sides have."""
        name = type(request).__name__.removesuffix("Request")
        offered = self.versions.get(request.API_KEY)
        if offered is None:
            raise UnsupportedVersionError(f"The broker at {self.name} does not offer {name}.")
        version = min(offered[1], highest)
        if version < max(offered[0], request.LOWEST_VERSION):
            raise UnsupportedVersionError(
                f"The broker at {self.name} offers {name} in versions {offered[0]} to {offered[1]}, this client speaks"
                f" {request.LOWEST_VERSION} to {highest}."
            )
        return version

    def _ask_versions(self, version: int, deadline_ms: int) -> None:
        request = ApiVersionsRequest(client_software_name="moldau", client_software_version=__version__)
        call: Call[Message] = Call(request, cast("type[Message]", ApiVersionsResponse), self._login_timeout_ms)
        call.deadline_ms = deadline_ms
        self._write(call, version)

    def _send(self, call: Call[Message]) -> None:
        try:
            self._write(call, self.choose_version(call.request, call.highest_version))
        except UnsupportedVersionError as error:
            call.finish(None, error)
        except EncodeError as refusal:
            call.finish(None, UnsupportedVersionError(f"The request cannot be sent to {self.name}: {refusal}."))

    def _write(self, call: Call[Message], version: int) -> None:
        call.version = version
        call.features = self.features
        call.correlation_id = self._next_correlation_id
        key = call.request.API_KEY
        writer = Writer()
        writer.int32(0)
        header = RequestHeader(
            request_api_key=key,
            request_api_version=version,
            correlation_id=call.correlation_id,
            client_id=self.client_id,
        )
        header.encode(writer, api_keys.request_header_version(key, version))
        call.request.encode(writer, version)
        writer.set_int32(0, writer.size - 4)
        if self._node_meter is not None:
            self._node_meter.requests.record(writer.size)
        for part in writer.finish():
            if isinstance(part, bytes):
                self._outgoing.append(part)
            else:
                # Records of the client are a list of pieces in place of a file, and are sent without a copy.
                self._outgoing.extend(cast("list[Piece]", part.file))
        self._next_correlation_id = (self._next_correlation_id + 1) & 0x7FFFFFFF
        if call.expects_response:
            self._in_flight.append(call)
        else:
            call.finish(None)

    def _frame_size(self, data: bytes, position: int) -> int:
        """The size of the frame at the position if it is there whole; otherwise -1, and how much is needed is noted."""
        available = len(data) - position
        self._needed = 4
        if available < 4:
            return -1
        size = int.from_bytes(data[position : position + 4], "big", signed=True)
        limit = RESPONSE_BYTES_MAX if self._was_ready else FIRST_RESPONSE_BYTES_MAX
        if size < 4 or size > limit:
            self.close(self._not_kafka())
            return -1
        if available < size + 4:
            self._needed = size + 4
            return -1
        return size

    def _not_kafka(self) -> ClientError:
        if self.negotiated:
            # A broker that has spoken well before is worth another try, on another connection.
            return NetworkError(f"The broker at {self.name} sent a response that is not in Kafka's protocol.")
        return ProtocolError(
            f"What listens at {self.name} does not speak Kafka's protocol in plain text: it may be another service,"
            " or a listener with TLS."
        )

    def _on_frame(self, data: bytes, start: int, end: int) -> None:
        if self._node_meter is not None:
            self._node_meter.responses.add(end - start + 4)
        call = self._in_flight.popleft() if self._in_flight else None
        if call is None or int.from_bytes(data[start : start + 4], "big", signed=True) != call.correlation_id:
            if call is not None:
                self._in_flight.appendleft(call)
            self.close(self._not_kafka())
            return
        if not self.versions:
            self._on_versions(data[start:end], call)
            return
        reader = Reader(data, start, end)
        try:
            ResponseHeader.decode(reader, api_keys.response_header_version(call.request.API_KEY, call.version))
            response = call.response_class.decode(reader, call.version)
        except DecodeError:
            self._in_flight.appendleft(call)
            self.close(self._not_kafka())
            return
        if call is self._login_call:
            self._on_login_response(response)
            return
        self._note_response(call, getattr(response, "throttle_time_ms", 0))
        call.finish(response)

    def _note_response(self, call: Call[Message], throttle_ms: int) -> None:
        """Before the call is done: whoever sends next knows for how long the broker throttles the client."""
        meter = self._node_meter
        if throttle_ms <= 0 and meter is None:
            return
        now_ms = self._now_ms if self._clock is None else self._clock()
        api_key = call.request.API_KEY
        if meter is not None:
            meter.throttle_times_ms.record(max(0, throttle_ms))
            if self._latency_api == api_key or self._latency_api == EVERY_API:
                meter.latencies_ms.record(max(0, now_ms - (call.deadline_ms - call.timeout_ms)))
        if throttle_ms > 0 and is_honoured(api_key, call.version):
            self.throttled_until_ms = max(self.throttled_until_ms, now_ms + throttle_ms)

    def _on_versions(self, frame: bytes, call: Call[Message]) -> None:
        """KIP-511: a broker that does not know our version of ApiVersions responds in version 0 with its own range."""
        refused = int.from_bytes(frame[4:6], "big", signed=True) == UNSUPPORTED_VERSION
        try:
            response = ApiVersionsResponse.decode(Reader(frame, 4), 0 if refused else call.version)
        except DecodeError:
            self.close(self._not_kafka())
            return
        offered = {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}
        if refused and call.version > 0:
            highest = offered.get(API_VERSIONS, (0, 0))[1]
            self._ask_versions(min(highest, call.version - 1), call.deadline_ms)
            return
        if response.error_code != 0:
            self.close(self._not_kafka())
            return
        self.versions = offered
        levels = {row.name: row.max_version_level for row in response.finalized_features}
        self.features = Features(response.finalized_features_epoch, levels)
        self._note_response(call, response.throttle_time_ms)
        if self._meter is not None and self._meter.on_versions is not None:
            self._meter.on_versions(offered)
        self._begin_login()

    def _maybe_renew(self, now_ms: int) -> bool:
        """Logs in again before the session is over; the calls wait for it."""
        if not self._renew_at_ms or now_ms < self._renew_at_ms:
            return False
        self.negotiated = False
        self._renewing_since_ms = now_ms
        self._begin_login()
        return True

    def _begin_login(self) -> None:
        try:
            self._login = None if self._new_login is None else self._new_login()
        except ClientError as error:
            # There is nothing to log in with: a token could not be had.
            self._refuse(error)
            return
        if self._login is None:
            self._ready()
        else:
            self._say(
                SaslHandshakeRequest(mechanism=self._login.mechanism), cast("type[Message]", SaslHandshakeResponse)
            )

    def _say(self, request: Message, response_class: type[Message]) -> None:
        """Sends a request of the login itself; the others wait."""
        call: Call[Message] = Call(request, response_class, 0)
        call.deadline_ms = self._now_ms + self._login_timeout_ms
        self._login_call = call
        try:
            self._write(call, self.choose_version(request, request.HIGHEST_VERSION))
        except UnsupportedVersionError as error:
            self.close(error)

    def _on_login_response(self, response: Message) -> None:
        login = self._login
        assert login is not None
        try:
            if isinstance(response, SaslHandshakeResponse):
                if response.error_code != 0:
                    offered = ", ".join(response.mechanisms) or "no mechanism"
                    sentence = f"The broker at {self.name} does not take {login.mechanism}: it offers {offered}."
                    raise error_for(response.error_code, sentence)
                said: bytes | None = login.first()
            else:
                assert isinstance(response, SaslAuthenticateResponse)
                if response.error_code != 0:
                    raise error_for(response.error_code, response.error_message or None)
                said = login.next(response.auth_bytes)
                lifetime_ms = response.session_lifetime_ms
                self._renew_at_ms = self._now_ms + lifetime_ms * RENEW_PERCENT // 100 if lifetime_ms > 0 else 0
        except ClientError as error:
            self._refuse(error)
            return
        if said is None:
            self._login_call = None
            self._note_login()
            self._ready()
        else:
            self._say(SaslAuthenticateRequest(auth_bytes=said), cast("type[Message]", SaslAuthenticateResponse))

    def _refuse(self, error: ClientError) -> None:
        if self._meter is not None:
            (self._meter.failed_reauthentications if self._was_ready else self._meter.failed_authentications).add(1)
        self.refusal = error
        self.close(error)

    def _note_login(self) -> None:
        meter = self._meter
        if meter is not None and self._was_ready:
            now_ms = self._now_ms if self._clock is None else self._clock()
            meter.reauthentications.record(max(0, now_ms - self._renewing_since_ms))
        elif meter is not None:
            meter.authentications.add(1)

    def _ready(self) -> None:
        self.negotiated = True
        self._was_ready = True
        if self.throttled_until_ms == 0:
            self._send_waiting()

    def _send_waiting(self) -> None:
        waiting = list(self._waiting)
        self._waiting.clear()
        for item in waiting:
            if not item.done:
                self._send(item)
