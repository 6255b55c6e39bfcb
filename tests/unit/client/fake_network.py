"""A network without sockets: real frames to scripted brokers, on a clock that jumps instead of waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from moldau.client.connection.transport import Address, Network, address_text
from moldau.client.connection.wire import Call, Connection
from moldau.client.errors import NetworkError, RequestTimeoutError
from moldau.client.metrics.meters import NetworkMeter
from moldau.client.metrics.window import Window
from moldau.protocol import api_keys
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from moldau.protocol.primitives import Message, Reader, Writer

DISCONNECT = object()
SILENCE = object()

Handler = Callable[[Message, int], object]


def frame(message: Message, key: int, version: int, correlation_id: int) -> bytes:
    """A response as a broker sends it."""
    writer = Writer()
    writer.int32(0)
    ResponseHeader(correlation_id=correlation_id).encode(writer, api_keys.response_header_version(key, version))
    message.encode(writer, version)
    writer.set_int32(0, writer.size - 4)
    return writer.to_bytes()


def split_request(data: bytes) -> tuple[RequestHeader, Message]:
    """A request frame, its size included, as a broker reads it."""
    reader = Reader(data, 4)
    key, version = int.from_bytes(data[4:6], "big"), int.from_bytes(data[6:8], "big")
    header = RequestHeader.decode(reader, api_keys.request_header_version(key, version))
    return header, api_keys.request_class(key).decode(reader, version)


class ScriptedBroker:
    """Answers by handlers per request class; a handler gives a response, DISCONNECT or SILENCE."""

    def __init__(self, highest: dict[int, int] | None = None) -> None:
        self.handlers: dict[type[Message], Handler] = {}
        self.seen: list[tuple[int, Message]] = []
        self.highest = highest or {}
        self.up = True

    def on(self, request_class: type[Message], handler: Handler) -> None:
        self.handlers[request_class] = handler

    def versions(self) -> ApiVersionsResponse:
        rows = [
            ApiVersion(api_key=api.key, min_version=api.lowest_advertised, max_version=self._highest(api))
            for api in api_keys.advertised(api_keys.BROKER)
            # Not offered unless scripted: topics are then described from Metadata, which every script has.
            if api.name != "DescribeTopicPartitions" or api_keys.request_class(api.key) in self.handlers
        ]
        return ApiVersionsResponse(api_keys=rows)

    def _highest(self, api: api_keys.Api) -> int:
        return min(api.highest_advertised, self.highest.get(api.key, api.highest_advertised))

    def answer(self, data: bytes) -> bytes | object:
        header, request = split_request(data)
        version = header.request_api_version
        self.seen.append((version, request))
        if isinstance(request, ApiVersionsRequest):
            answer: object = self.versions()
        else:
            answer = self.handlers[type(request)](request, version)
        if not isinstance(answer, Message):
            return answer
        return frame(answer, header.request_api_key, version, header.correlation_id)


class FakeNetwork(Network):
    """Time passes only in poll(), unless real_time: then poll() waits, as a producer's thread needs it."""

    def __init__(self, brokers: dict[Address, ScriptedBroker], real_time: bool = False) -> None:
        self.brokers = brokers
        self.real_time = real_time
        # Host names that stand for no address.
        self.unresolved: set[str] = set()
        self.clock_ms = 1_000
        self.closed = False
        self._connections: dict[Address, Connection] = {}
        self._woken = threading.Event()
        self._meter = NetworkMeter(Window(self.now_ms()))

    def now_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000 if self.real_time else self.clock_ms

    def submit(self, address: Address, call: Call[Message]) -> None:
        broker = self.brokers.get((address[0], address[1]))
        if broker is None and address[0] in self.unresolved:
            call.finish(None, NetworkError(f"The host name {address[0]} cannot be resolved: Name not known."))
            return
        if broker is None or not broker.up:
            call.finish(None, NetworkError(f"No connection to {address_text(address)}: Connection refused."))
            return
        connection = self._connections.get(address)
        if connection is None or connection.closed:
            connection = self._connections[address] = Connection(
                address_text(address),
                "test",
                clock=self.now_ms,
                meter=self._meter,
                node_meter=self._meter.node(address),
            )
            connection.start(self.now_ms(), 30_000)
        connection.submit(call, self.now_ms())

    def drop(self, address: Address) -> None:
        """The connection is lost."""
        self._connections.pop(address).close(NetworkError("The connection was lost."))

    def in_flight_count(self, address: Address) -> int:
        connection = self._connections.get(address)
        return 0 if connection is None else connection.in_flight_count

    def is_ready(self, address: Address) -> bool:
        connection = self._connections.get(address)
        ready = connection is not None and connection.negotiated and not connection.closed
        return ready and self.throttled_ms(address) == 0

    def throttled_ms(self, address: Address) -> int:
        connection = self._connections.get(address)
        return 0 if connection is None or connection.closed else connection.throttled_ms(self.now_ms())

    def meter(self) -> NetworkMeter:
        return self._meter

    def wake(self) -> None:
        self._woken.set()

    def poll(self, timeout_ms: int) -> None:
        if self._carry():
            self.clock_ms += 1
            return
        if self.real_time:
            self._woken.wait(min(timeout_ms, 50) / 1000)
            self._woken.clear()
            self._expire()
            return
        deadlines = [connection.next_deadline_ms() for connection in self._connections.values()]
        nearest = min([self.clock_ms + timeout_ms, *(item for item in deadlines if item is not None)])
        self.clock_ms = max(self.clock_ms + (timeout_ms == 0), nearest)
        self._expire()

    def _expire(self) -> None:
        for connection in list(self._connections.values()):
            if connection.expired(self.now_ms()):
                connection.close(RequestTimeoutError("The broker did not respond in time."))
            else:
                connection.tick(self.now_ms())

    def close(self) -> None:
        self.closed = True

    def _carry(self) -> bool:
        """Carries requests to brokers and answers back, once; tells whether there were any."""
        moved = False
        self._meter.window.tick(self.now_ms())
        for address, connection in list(self._connections.items()):
            data = connection.take_outgoing()
            while data and not connection.closed:
                moved = True
                size = int.from_bytes(data[:4], "big") + 4
                answer = self.brokers[address[0], address[1]].answer(data[:size])
                data = data[size:]
                if isinstance(answer, bytes):
                    connection.receive(answer)
                elif answer is DISCONNECT:
                    connection.close(NetworkError("The connection was lost."))
        return moved


HOME: Address = ("broker", 9092)
TOPIC_ID = bytes(range(16))


def metadata(topics: dict[str, int | list[int]], brokers: dict[int, Address] | None = None) -> Handler:
    """A Metadata handler: topic -> error code (int) or the leaders of its partitions (list)."""

    def handle(request: Message, version: int) -> MetadataResponse:
        assert isinstance(request, MetadataRequest)
        names = list(topics) if request.topics is None else [row.name or "" for row in request.topics]
        rows = []
        for name in names:
            found = topics.get(name, 3)
            leaders = found if isinstance(found, list) else []
            rows.append(
                MetadataResponseTopic(
                    error_code=found if isinstance(found, int) else 0,
                    name=name,
                    topic_id=TOPIC_ID if version >= 10 else bytes(16),
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=leader,
                            leader_epoch=7 if version >= 7 else -1,
                            replica_nodes=[leader],
                            isr_nodes=[leader],
                        )
                        for index, leader in enumerate(leaders)
                    ],
                )
            )
        known = brokers or {1: HOME}
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=key, host=at[0], port=at[1]) for key, at in known.items()],
            cluster_id="test-cluster",
            controller_id=1,
            topics=rows,
        )

    return handle
