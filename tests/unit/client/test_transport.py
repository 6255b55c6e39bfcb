"""Real sockets on loopback: what a client meets when things are not as they should be."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from moldau.client.connection.transport import SocketNetwork
from moldau.client.connection.wire import Call
from moldau.client.errors import ClientError, NetworkError, ProtocolError, RequestTimeoutError
from moldau.client.group.coordinator import AsideAddress, CoordinatorAddress
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse, MetadataResponseBroker
from tests.pace import patience, patience_ms
from tests.unit.client.fake_network import ScriptedBroker, metadata

PATIENCE_MS = patience_ms(10_000)


def read_frame(peer: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + int.from_bytes(data[:4], "big"):
        more = peer.recv(65536)
        if not more:
            return b""
        data += more
    return data


@contextmanager
def listening(behave: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server that lets behave() have the first connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            peer, _ = listener.accept()
        except OSError:
            return
        with peer:
            behave(peer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.close()
        thread.join(patience(5))


def ask(port: int, timeout_ms: int = PATIENCE_MS) -> MetadataResponse:
    network = SocketNetwork("test", connect_timeout_ms=PATIENCE_MS, request_timeout_ms=timeout_ms)
    call = Call(MetadataRequest(topics=None), MetadataResponse, timeout_ms)
    try:
        network.submit(("127.0.0.1", port), call)
        while not call.done:
            network.poll(100)
        return call.response()
    finally:
        network.close()


def test_an_answer_in_small_pieces_is_put_together() -> None:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, metadata({"t": [1]}))

    def behave(peer: socket.socket) -> None:
        for _ in range(2):
            answer = broker.answer(read_frame(peer))
            assert isinstance(answer, bytes)
            for start in range(0, len(answer), 100):
                peer.sendall(answer[start : start + 100])

    with listening(behave) as port:
        assert ask(port).topics[0].name == "t"


@pytest.mark.parametrize("pause_s", [0.0, 0.002])
def test_large_answers_arrive_whole_however_they_are_cut(pause_s: float) -> None:
    """Sizes go up and down past the one from which an answer is received in one piece."""
    sizes = [10, 400_000, 3_000_000, 300_000, 7, 900_000, 500_000, 5, 6]
    broker = ScriptedBroker()
    names = iter(sizes)
    broker.on(MetadataRequest, lambda request, version: metadata_of(next(names)))

    def behave(peer: socket.socket) -> None:
        for _ in range(1 + len(sizes)):
            answer = broker.answer(read_frame(peer))
            assert isinstance(answer, bytes)
            for start in range(0, len(answer), 111_111):
                peer.sendall(answer[start : start + 111_111])
                time.sleep(pause_s)

    with listening(behave) as port:
        network = SocketNetwork("test", connect_timeout_ms=PATIENCE_MS, request_timeout_ms=PATIENCE_MS)
        try:
            for size in sizes:
                call = Call(MetadataRequest(topics=None), MetadataResponse, PATIENCE_MS)
                network.submit(("127.0.0.1", port), call)
                while not call.done:
                    network.poll(100)
                assert [row.host for row in call.response().brokers] == [row.host for row in metadata_of(size).brokers]
        finally:
            network.close()


def metadata_of(size: int) -> MetadataResponse:
    """An answer of about so many bytes."""
    hosts = ["h" * min(10_000, size - start) for start in range(0, size, 10_000)]
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=n, host=host) for n, host in enumerate(hosts)])


def test_a_connection_lost_inside_a_large_answer_fails_its_call() -> None:
    broker = ScriptedBroker()
    broker.on(MetadataRequest, lambda request, version: metadata_of(600_000))

    def behave(peer: socket.socket) -> None:
        for number in range(3):
            answer = broker.answer(read_frame(peer))
            assert isinstance(answer, bytes)
            peer.sendall(answer if number < 2 else answer[:200_000])

    with listening(behave) as port:
        network = SocketNetwork("test", connect_timeout_ms=PATIENCE_MS, request_timeout_ms=PATIENCE_MS)
        try:
            calls = []
            for _ in range(2):
                calls.append(Call(MetadataRequest(topics=None), MetadataResponse, PATIENCE_MS))
                network.submit(("127.0.0.1", port), calls[-1])
                while not calls[-1].done:
                    network.poll(100)
            assert calls[0].error is None and isinstance(calls[1].error, NetworkError)
        finally:
            network.close()


def test_nobody_listening_is_a_network_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(NetworkError, match="Connection refused"):
        ask(port)


def test_a_host_that_does_not_exist_is_a_network_error() -> None:
    network = SocketNetwork("test")
    call = Call(MetadataRequest(topics=None), MetadataResponse, 1000)
    network.submit(("no-such-host.invalid", 9092), call)
    network.close()
    assert isinstance(call.error, NetworkError) and "cannot be resolved" in call.error.message


@pytest.mark.parametrize(
    ("behave", "kind"),
    [
        (lambda peer: None, NetworkError),
        (lambda peer: peer.sendall(b"HTTP/1.0 400 Bad Request\r\n\r\n"), ProtocolError),
        (lambda peer: peer.recv(100), NetworkError),
    ],
)
def test_a_peer_that_is_no_broker_is_noticed(behave: Callable[[socket.socket], None], kind: type[ClientError]) -> None:
    with listening(behave) as port, pytest.raises(kind):
        ask(port)


def test_a_peer_that_never_answers_costs_the_timeout() -> None:
    done = threading.Event()

    with listening(lambda peer: done.wait(patience(5)) and None) as port:
        with pytest.raises(RequestTimeoutError):
            ask(port, 150)
        done.set()


def test_a_coordinator_has_a_connection_of_its_own() -> None:
    """Brokers answer in order: a fetch that waits for records would hold up heartbeats."""
    with listening(lambda peer: None) as port:
        network = SocketNetwork("test")
        try:
            addresses = [
                ("127.0.0.1", port),
                CoordinatorAddress(("127.0.0.1", port)),
                AsideAddress(("127.0.0.1", port)),
            ]
            for address in addresses:
                network.submit(address, Call(MetadataRequest(topics=None), MetadataResponse, PATIENCE_MS))
            assert [network.in_flight_count(address) for address in addresses] == [1, 1, 1]
            meter = network.meter()
            assert meter is not None and len(meter.nodes) == 3
        finally:
            network.close()
