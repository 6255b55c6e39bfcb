"""Requests to other nodes: answers in order, every failure told once with its reason, nothing tried again by itself."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from moldau.net import outbound
from moldau.net.outbound import SocketOutbox
from moldau.node.outbox import CLOSED, REFUSED, TIMED_OUT, UNREACHABLE, NoResponse
from moldau.protocol import api_keys
from moldau.protocol.messages.api_versions_request import ApiVersionsRequest
from moldau.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from moldau.protocol.messages.envelope_request import EnvelopeRequest
from moldau.protocol.messages.envelope_response import EnvelopeResponse
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchableTopicResponse, FetchResponse, PartitionData
from moldau.protocol.messages.headers import RequestHeader, ResponseHeader
from moldau.protocol.messages.vote_request import VoteRequest
from moldau.protocol.messages.vote_response import VoteResponse
from moldau.protocol.primitives import Message, Reader, Writer
from moldau.protocol.records_data import MemoryRecords
from moldau.server.clock import Clock
from tests.pace import patience, patience_ms

FETCH, API_VERSIONS, VOTE, ENVELOPE = 1, 18, 52, 58
TIMEOUT_MS = patience_ms(5000)


def framed(correlation_id: int, api_key: int, version: int, answer: Message) -> bytes:
    writer = Writer()
    writer.int32(0)
    ResponseHeader(correlation_id).encode(writer, api_keys.response_header_version(api_key, version))
    answer.encode(writer, version)
    writer.set_int32(0, writer.size - 4)
    return writer.to_bytes()


class Peer:
    """The other node: accepts, reads requests, and sends what the test tells it to."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        self.listener = socket.socket()
        self.listener.setblocking(False)
        self.listener.bind((host, 0))
        self.listener.listen(10)
        self.port = self.listener.getsockname()[1]
        self.sock: socket.socket | None = None
        self._buffer = b""

    async def accept(self) -> None:
        self.sock, _ = await asyncio.get_running_loop().sock_accept(self.listener)
        self._buffer = b""

    async def _take(self, size: int) -> bytes:
        assert self.sock is not None
        while len(self._buffer) < size:
            data = await asyncio.get_running_loop().sock_recv(self.sock, 65536)
            if not data:
                raise EOFError
            self._buffer += data
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    async def request(self) -> tuple[RequestHeader, Message]:
        frame = await self._take(int.from_bytes(await self._take(4), "big"))
        api_key, version = int.from_bytes(frame[:2], "big"), int.from_bytes(frame[2:4], "big")
        reader = Reader(frame)
        header = RequestHeader.decode(reader, api_keys.request_header_version(api_key, version))
        return header, api_keys.request_class(api_key).decode(reader, version)

    async def send(self, data: bytes) -> None:
        assert self.sock is not None
        await asyncio.get_running_loop().sock_sendall(self.sock, data)

    def hang_up(self) -> None:
        assert self.sock is not None
        self.sock.close()

    def close(self) -> None:
        self.listener.close()
        if self.sock is not None:
            self.sock.close()


class Answers:
    """Collects what the callbacks are told."""

    def __init__(self) -> None:
        self.got: list[Any] = []
        self.changed = asyncio.Event()

    def __call__(self, answer: Message | NoResponse, now_ms: int) -> None:
        assert now_ms > 0
        self.got.append(answer)
        self.changed.set()

    async def count(self, number: int) -> list[Any]:
        async with asyncio.timeout(patience(8)):
            while len(self.got) < number:
                self.changed.clear()
                await self.changed.wait()
        return self.got

    def reasons(self) -> list[int]:
        return [answer.reason for answer in self.got]


Scenario = Callable[[SocketOutbox, Peer, Answers], Awaitable[None]]


def run(scenario: Scenario, peer_host: str = "127.0.0.1") -> list[dict[str, Any]]:
    """Runs a scenario; returns what was reported to the loop's exception handler."""
    reported: list[dict[str, Any]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        outbox, peer = SocketOutbox(loop, Clock(), "moldau-1"), Peer(peer_host)
        try:
            await asyncio.wait_for(scenario(outbox, peer, Answers()), patience(10))
        finally:
            outbox.close()
            peer.close()

    asyncio.run(main())
    return reported


def test_pipelined_requests_get_their_answers_in_order() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("raft", "127.0.0.1", peer.port)
        for epoch in range(3):
            channel.send(VOTE, 2, VoteRequest(cluster_id=str(epoch)), TIMEOUT_MS, answers)
        assert answers.got == []
        await peer.accept()
        for expected in range(3):
            header, request = await peer.request()
            assert (header.client_id, request.cluster_id) == ("moldau-1-raft", str(expected))  # type: ignore[attr-defined]
            await peer.send(framed(header.correlation_id, VOTE, 2, VoteResponse(error_code=expected)))
        assert [answer.error_code for answer in await answers.count(3)] == [0, 1, 2]

    assert run(scenario) == []


def test_the_records_of_an_answer_are_not_copied_out_of_its_frame() -> None:
    records = bytes(range(256)) * 4096
    partition = PartitionData(partition_index=0, records=MemoryRecords(records, 0, len(records)))
    answer = FetchResponse(responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=[partition])])

    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("replication", "127.0.0.1", peer.port)
        channel.send(FETCH, 17, FetchRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        header, _ = await peer.request()
        await peer.send(framed(header.correlation_id, FETCH, 17, answer))
        got = (await answers.count(1))[0].responses[0].partitions[0].records
        assert isinstance(got, MemoryRecords)
        assert len(got.data) > got.size == len(records)
        assert got.to_bytes() == records

    assert run(scenario) == []


def test_nobody_there_is_refused_and_never_inside_send() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        peer.close()
        channel = outbox.open("probe", "127.0.0.1", peer.port)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        assert answers.got == []
        await answers.count(2)
        assert answers.reasons() == [REFUSED, REFUSED]

    assert run(scenario) == []


def test_a_name_that_does_not_resolve_is_unreachable() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        outbox.open("raft", "no such host.invalid", 1).send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await answers.count(1)
        assert answers.reasons() == [UNREACHABLE]

    assert run(scenario) == []


def test_every_address_of_a_name_is_tried() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        outbox.open("raft", "localhost", peer.port).send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        header, _ = await peer.request()
        await peer.send(framed(header.correlation_id, VOTE, 2, VoteResponse()))
        assert isinstance((await answers.count(1))[0], VoteResponse)

    assert run(scenario) == []


def test_a_connection_that_breaks_fails_all_that_wait_and_the_next_request_makes_a_new_one() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("raft", "127.0.0.1", peer.port)
        again = Answers()

        def ask_again(answer: Message | NoResponse, now_ms: int) -> None:
            answers(answer, now_ms)
            channel.send(VOTE, 2, VoteRequest(cluster_id="again"), TIMEOUT_MS, again)

        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, ask_again)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        await peer.request()
        peer.hang_up()
        await answers.count(2)
        assert answers.reasons() == [CLOSED, CLOSED]
        await peer.accept()
        header, request = await peer.request()
        assert request.cluster_id == "again"  # type: ignore[attr-defined]
        await peer.send(framed(header.correlation_id, VOTE, 2, VoteResponse(error_code=7)))
        assert (await again.count(1))[0].error_code == 7

    assert run(scenario) == []


def test_a_connection_closed_while_nothing_is_asked_is_nobodys_business() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("raft", "127.0.0.1", peer.port)
        for _ in range(2):
            channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
            await peer.accept()
            header, _ = await peer.request()
            await peer.send(framed(header.correlation_id, VOTE, 2, VoteResponse()))
            peer.hang_up()
            await asyncio.sleep(0.05)
        assert all(isinstance(answer, VoteResponse) for answer in await answers.count(2))

    assert run(scenario) == []


def test_no_answer_in_time_ends_the_connection_so_that_nothing_late_is_taken_for_the_next() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("raft", "127.0.0.1", peer.port)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        await peer.request()
        channel.send(VOTE, 2, VoteRequest(), 50, answers)
        await answers.count(2)
        assert answers.reasons() == [TIMED_OUT, TIMED_OUT]
        await peer.request()
        with pytest.raises(EOFError):
            await peer.request()
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        header, _ = await peer.request()
        await peer.send(framed(header.correlation_id, VOTE, 2, VoteResponse(error_code=3)))
        assert (await answers.count(3))[2].error_code == 3

    assert run(scenario) == []


def test_an_address_that_swallows_connections_times_out_before_the_request_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outbound, "CONNECT_TIMEOUT_MS", 200)

    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        full = socket.socket()
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = []
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(full.getsockname())
            fillers.append(filler)
        outbox.open("raft", "127.0.0.1", full.getsockname()[1]).send(VOTE, 2, VoteRequest(), 60_000, answers)
        await answers.count(1)
        assert answers.reasons() == [TIMED_OUT]
        for sock in (*fillers, full):
            sock.close()

    assert run(scenario) == []


@pytest.mark.parametrize(
    "nonsense", [b"HTTP/1.1 400 Bad\r\n", b"\x00\x00\x00\x04\x00\x00\x00\x63", b"\x00\x00\x00\x05\x00\x00\x00\x00\x00"]
)
def test_an_answer_that_is_none_ends_the_connection(nonsense: bytes) -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        outbox.open("raft", "127.0.0.1", peer.port).send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        await peer.request()
        await peer.send(nonsense)
        await answers.count(1)
        assert answers.reasons() == [CLOSED]

    assert run(scenario) == []


def test_a_node_that_knows_only_older_versions_of_api_versions_still_answers_the_probe() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        outbox.open("probe", "127.0.0.1", peer.port).send(API_VERSIONS, 4, ApiVersionsRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        header, _ = await peer.request()
        answer = ApiVersionsResponse(error_code=35, api_keys=[ApiVersion(18, 0, 2)])
        await peer.send(framed(header.correlation_id, API_VERSIONS, 0, answer))
        got = (await answers.count(1))[0]
        assert (got.error_code, got.api_keys[0].max_version) == (35, 2)

    assert run(scenario) == []


def test_an_error_in_a_callback_is_reported_and_the_others_are_called() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        def broken(answer: Message | NoResponse, now_ms: int) -> None:
            raise ZeroDivisionError("a bug")

        channel = outbox.open("raft", "127.0.0.1", peer.port)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, broken)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        await peer.request()
        peer.hang_up()
        await answers.count(1)
        assert answers.reasons() == [CLOSED]

    (reported,) = run(scenario)
    assert isinstance(reported["exception"], ZeroDivisionError)
    assert "raft" in reported["message"]


def test_a_closed_channel_tells_nobody() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("raft", "127.0.0.1", peer.port)
        channel.send(VOTE, 2, VoteRequest(), TIMEOUT_MS, answers)
        await peer.accept()
        header, _ = await peer.request()
        channel.send(VOTE, 2, VoteRequest(), 20, answers)
        channel.close()
        await peer.send(framed(header.correlation_id, VOTE, 2, VoteResponse()))
        refused = outbox.open("raft", "127.0.0.1", 1)
        refused.send(VOTE, 2, VoteRequest(), 20, answers)
        refused.close()
        await asyncio.sleep(0.06)
        assert answers.got == []

    assert run(scenario) == []


def test_a_large_request_leaves_in_pieces() -> None:
    async def scenario(outbox: SocketOutbox, peer: Peer, answers: Answers) -> None:
        channel = outbox.open("forward", "127.0.0.1", peer.port)
        for number in range(3):
            channel.send(ENVELOPE, 0, EnvelopeRequest(request_data=bytes([number]) * 4_000_000), TIMEOUT_MS, answers)
        await peer.accept()
        await asyncio.sleep(0.05)
        for number in range(3):
            header, request = await peer.request()
            assert request.request_data == bytes([number]) * 4_000_000  # type: ignore[attr-defined]
            await peer.send(framed(header.correlation_id, ENVELOPE, 0, EnvelopeResponse(error_code=number)))
        assert [answer.error_code for answer in await answers.count(3)] == [0, 1, 2]

    assert run(scenario) == []
