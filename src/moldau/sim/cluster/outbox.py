"""The outbox of a node in the simulated world, and the requests and responses on one simulated connection."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from moldau.node.outbox import TIMED_OUT, Channel, NoResponse, OnResponse, Outbox
from moldau.protocol.primitives import Message
from moldau.sim.cluster.network import Connection, Network
from moldau.sim.kernel.host import Host
from moldau.sim.kernel.world import Event, Violation
from moldau.sim.node.client import decode_response, encode_request

CONNECT_TIMEOUT_MS = 1500

OnOutcome = Callable[[Message | NoResponse], None]
Turn = Callable[[Callable[[], None]], None]


class Awaited:
    __slots__ = ("api_key", "correlation_id", "on_outcome", "timer", "version")

    def __init__(self, api_key: int, version: int, correlation_id: int, on_outcome: OnOutcome) -> None:
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.on_outcome = on_outcome
        self.timer: Event | None = None


class Pipe:
    """Requests to one port over one connection at a time; what breaks or takes too long is told to all who wait."""

    def __init__(self, network: Network, origin: int, port: int, name: str, turn: Turn) -> None:
        self.network = network
        self.origin = origin
        self.port = port
        self.name = name
        self._turn = turn
        self._connection: Connection | None = None
        self._left_behind: list[Connection] = []
        self._attempt = 0
        self._awaited: deque[Awaited] = deque()
        self._correlation_id = 0

    @property
    def in_flight(self) -> int:
        return len(self._awaited)

    @property
    def frames_on_the_way(self) -> int:
        """Of connections that were given up: requests which may still arrive."""
        self._left_behind = [connection for connection in self._left_behind if connection.frames_on_the_way]
        return len(self._left_behind)

    def call(self, request: Message, version: int, timeout_ms: int, on_outcome: OnOutcome) -> None:
        awaited = Awaited(request.API_KEY, version, self._correlation_id + 1, on_outcome)
        self._awaited.append(awaited)
        self.tell(request, version)
        attempt = self._attempt
        awaited.timer = self.network.world.schedule(timeout_ms, lambda: self._turn(lambda: self._expire(attempt)))

    def tell(self, request: Message, version: int) -> None:
        """A request that has no response (produce with acks=0)."""
        self._correlation_id += 1
        self._connect().send(encode_request(request, version, self._correlation_id, self.name))

    def close(self) -> None:
        """Nobody wants answers any more."""
        for awaited in self._awaited:
            if awaited.timer is not None:
                awaited.timer.cancelled = True
        self._awaited.clear()
        self._drop()

    def fail(self, reason: int) -> None:
        """Gives the connection up and tells everybody who waits."""
        awaited, self._awaited = self._awaited, deque()
        self._drop()
        for entry in awaited:
            if entry.timer is not None:
                entry.timer.cancelled = True
        for entry in awaited:
            entry.on_outcome(NoResponse(reason))

    def _connect(self) -> Connection:
        connection = self._connection
        if connection is None:
            self._attempt += 1
            attempt = self._attempt
            connection = self.network.connect(
                self.origin,
                self.port,
                self.name,
                lambda frame: self._turn(lambda: self._on_frame(attempt, frame)),
                lambda reason: self._turn(lambda: self._on_close(attempt, reason)),
            )
            self._connection = connection
            self.network.world.schedule(CONNECT_TIMEOUT_MS, lambda: self._turn(lambda: self._give_up(attempt)))
        return connection

    def _drop(self) -> None:
        self._attempt += 1
        connection = self._connection
        if connection is not None:
            self._connection = None
            connection.close()
            self._left_behind.append(connection)

    def _give_up(self, attempt: int) -> None:
        if attempt == self._attempt and self._connection is not None and not self._connection.connected:
            self.fail(TIMED_OUT)

    def _expire(self, attempt: int) -> None:
        if attempt == self._attempt and self._awaited:
            self.fail(TIMED_OUT)

    def _on_close(self, attempt: int, reason: int) -> None:
        if attempt == self._attempt:
            self.fail(reason)

    def _on_frame(self, attempt: int, frame: bytes) -> None:
        if attempt != self._attempt:
            return
        if not self._awaited:
            raise Violation(f"nobody is answered who did not ask: {self.name}")
        awaited = self._awaited.popleft()
        if awaited.timer is not None:
            awaited.timer.cancelled = True
        response = decode_response(frame, awaited.api_key, awaited.version, awaited.correlation_id)
        awaited.on_outcome(response)


class SimChannel(Channel):
    """A pipe whose responses come in turns of the host that asks, as long as the process that asked lives."""

    def __init__(self, outbox: SimOutbox, purpose: str, host_name: str, port: int) -> None:
        host, life = outbox.host, outbox.life
        self._host = host
        self._pipe = Pipe(
            outbox.network,
            host.host_id,
            port,
            f"{host.host_id}-{purpose}->{port}",
            lambda action: host.turn_of(life, action),
        )
        self._closed = False

    def send(self, api_key: int, version: int, request: Message, timeout_ms: int, on_response: OnResponse) -> None:
        assert not self._closed, "a closed channel was asked to send"
        assert api_key == request.API_KEY, f"{request!r} was sent as api {api_key}"
        self._pipe.call(request, version, timeout_ms, lambda outcome: self._tell(outcome, on_response))

    def _tell(self, outcome: Message | NoResponse, on_response: OnResponse) -> None:
        if not self._closed:
            on_response(outcome, self._host.now_ms)

    def close(self) -> None:
        self._closed = True
        self._pipe.close()


class SimOutbox(Outbox):
    """The outbox of one life of a host's process."""

    def __init__(self, network: Network, host: Host) -> None:
        self.network = network
        self.host = host
        self.life = host.lives

    def open(self, purpose: str, host: str, port: int) -> Channel:
        return SimChannel(self, purpose, host, port)
