"""Old data that is not in memory: threads read it, the one thread that serves everybody never waits for the medium."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
import struct
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from moldau.net.connection import COLD_TURN_BYTES_MAX, TURN_BYTES_MAX, WARMINGS_MAX, WINDOW_BYTES, Connection
from moldau.net.framing import Scratch
from moldau.node.context import ClientContext
from moldau.node.reply import Reply
from moldau.protocol.records_data import FileRecords
from moldau.server.clock import Clock
from moldau.server.cold_readers import ColdJob
from moldau.server.posix_disk import PosixDisk, PosixFile
from tests.pace import patience

PAGE = 4096
SIOCOUTQNSD = 0x894B


class Memory:
    """Which pages of files the system has, as the test wants it; uses of others on the loop's thread are counted."""

    def __init__(self) -> None:
        self.pages: dict[str, set[int]] = {}
        self.loop_thread = threading.get_ident()
        self.waited = 0
        self.is_short = False  # what was brought is gone again at once
        self.sent_in_turn: list[int] = []
        self.turn = 0
        self.turns_with_a_send: list[int] = []

    def count_turns(self) -> None:
        self.turn += 1
        asyncio.get_running_loop().call_soon(self.count_turns)

    def has(self, path: str, position: int, size: int) -> bool:
        known = self.pages.get(path, set())
        return all(page in known for page in range(position // PAGE, (position + size - 1) // PAGE + 1))

    def bring(self, path: str, position: int, size: int) -> None:
        assert threading.get_ident() != self.loop_thread, "the loop reads from the medium"
        if not self.is_short:
            self.pages.setdefault(path, set()).update(range(position // PAGE, (position + size - 1) // PAGE + 1))


class ModelFile(PosixFile):
    """Its residency is what the model says, not what this machine's page cache happens to hold."""

    disk: ModelDisk

    def is_resident(self, position: int, size: int) -> bool:
        return self.disk.memory.has(self.path, position, size)

    def read_now(self, position: int, size: int) -> bytes | bytearray | None:
        if not self.is_resident(position, size):
            return None
        return super().read(position, size)


class HeldReaders:
    """In the place of the reader threads: a read is done when the test says so, on a thread."""

    def __init__(self, disk: ModelDisk) -> None:
        self.disk = disk
        self.jobs: deque[tuple[str, ColdJob]] = deque()
        self.failure: OSError | None = None
        self.done: list[str] = []

    def submit(self, lane: str, job: ColdJob) -> None:
        self.jobs.append((os.readlink(f"/proc/self/fd/{job.descriptor}"), job))

    def do_next(self) -> None:
        path, job = self.jobs.popleft()
        self.done.append(path)

        def work() -> None:
            if self.failure is None and not job.cancelled:
                job.read(job.descriptor, job.position, job.size)
                self.disk.memory.bring(path, job.position, job.size)
            os.close(job.descriptor)

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        job.finished(self.failure)

    def close(self) -> None:
        while self.jobs:
            os.close(self.jobs.popleft()[1].descriptor)


class ModelDisk(PosixDisk):
    file_class = ModelFile

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        super().__init__(post)
        self.memory = Memory()
        self.readers = HeldReaders(self)
        self.cold_readers = self.readers  # type: ignore[assignment]


def tcp_pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        theirs = socket.create_connection(server.getsockname())
        ours, _ = server.accept()
    ours.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return ours, theirs


def bytes_held_back(sock: socket.socket) -> int:
    """That were given to the system and have not left it."""
    return int(struct.unpack("i", fcntl.ioctl(sock, SIOCOUTQNSD, bytes(4)))[0])


class Clients:
    """Connections whose every request is answered with the same parts."""

    def __init__(self, disk: ModelDisk) -> None:
        self.disk = disk
        self.connections: list[Connection] = []
        self.ours: list[socket.socket] = []
        self.sockets: list[socket.socket] = []

    def connect(self, *answers: list[bytes | FileRecords], over_tcp: bool = False) -> socket.socket:
        ours, theirs = tcp_pair() if over_tcp else socket.socketpair()
        ours.setblocking(False)
        theirs.setblocking(False)
        waiting = deque(answers)

        def handle(context: ClientContext, data: bytes, start: int, end: int, now_ms: int) -> Reply:
            reply = Reply()
            reply.complete(list(waiting.popleft()))
            return reply

        loop = asyncio.get_running_loop()
        context = ClientContext("L", f"test:{len(self.connections)}")
        self.connections.append(
            Connection(
                ours,
                loop,
                handle,
                context,
                scratch=Scratch(),
                frame_bytes_max=1 << 20,
                clock=Clock(),
                on_close=lambda connection: None,
            )
        )
        self.ours.append(ours)
        self.sockets.append(theirs)
        return theirs

    def close(self) -> None:
        for connection in self.connections:
            connection.close()
        for sock in self.sockets:
            sock.close()


Scenario = Callable[[ModelDisk, Clients], Awaitable[None]]


def run(scenario: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    real_sendfile = os.sendfile

    async def main() -> None:
        disk = ModelDisk(asyncio.get_running_loop().call_soon_threadsafe)
        clients = Clients(disk)

        def sendfile(out: int, file: int, position: int, count: int) -> int:
            path = os.readlink(f"/proc/self/fd/{file}")
            if not disk.memory.has(path, position, count):
                disk.memory.waited += 1
            sent = real_sendfile(out, file, position, count)
            disk.memory.sent_in_turn.append(sent)
            disk.memory.turns_with_a_send.append(disk.memory.turn)
            return sent

        monkeypatch.setattr(os, "sendfile", sendfile)
        try:
            await asyncio.wait_for(scenario(disk, clients), patience(60))
            assert disk.memory.waited == 0, "something cold was sent on the loop's thread"
        finally:
            clients.close()
            disk.readers.close()
            disk.close()

    asyncio.run(main())


def make_file(disk: ModelDisk, path: Path, size: int) -> tuple[ModelFile, bytes]:
    data = os.urandom(size)
    file = disk.open(str(path), create=True)
    assert isinstance(file, ModelFile)
    file.append([data])
    return file, data


async def ask(client: socket.socket) -> None:
    await asyncio.get_running_loop().sock_sendall(client, b"\x00\x00\x00\x01?")


async def receive(sock: socket.socket, size: int) -> bytes:
    loop = asyncio.get_running_loop()
    data = bytearray()
    while len(data) < size:
        chunk = await loop.sock_recv(sock, size - len(data))
        if not chunk:
            break
        data += chunk
    return bytes(data)


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def read_with_threads(disk: ModelDisk, client: socket.socket, size: int) -> bytes:
    """Receives so many bytes while threads do whatever is asked of them."""
    receiving = asyncio.create_task(receive(client, size))
    while not receiving.done():
        if disk.readers.jobs:
            disk.readers.do_next()
        await asyncio.sleep(0)
    return receiving.result()


def test_cold_records_arrive_whole_and_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large and small parts, cold and warm ones, between bytes, and a second answer behind them."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        file, data = make_file(disk, tmp_path / "old.log", 5_000_000)
        disk.memory.pages[file.path] = set(range(1_200_000 // PAGE))  # the beginning is warm
        large = FileRecords(file, 1000, 3_333_333)
        small = FileRecords(file, 4_500_001, 999)
        client = clients.connect([b"head", large, b"middle", small, b"tail"], [b"second"])
        await ask(client)
        await ask(client)
        expected = b"head" + data[1000:3_334_333] + b"middle" + data[4_500_001:4_501_000] + b"tail" + b"second"
        assert await read_with_threads(disk, client, len(expected)) == expected
        assert len(disk.readers.done) >= 3

    run(scenario, monkeypatch)


def test_what_was_cold_leaves_in_small_pieces_a_turn_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who reads cold data waits for the medium anyway: others do not wait until a whole window has left."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        file, data = make_file(disk, tmp_path / "old.log", 2 * WINDOW_BYTES)
        client = clients.connect([FileRecords(file, 0, 2 * WINDOW_BYTES)], over_tcp=True)
        disk.memory.count_turns()
        await ask(client)
        assert await read_with_threads(disk, client, 2 * WINDOW_BYTES) == data
        assert max(disk.memory.sent_in_turn) <= COLD_TURN_BYTES_MAX
        turns = disk.memory.turns_with_a_send
        assert len(turns) == len(set(turns)) >= 8, "two pieces left in one turn"

    run(scenario, monkeypatch)


def test_what_stands_before_cold_records_does_not_wait_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The head of a response shares a packet with its records, and whole responses may stand before it: they leave
    when a thread has to bring the records first."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        file, data = make_file(disk, tmp_path / "old.log", WINDOW_BYTES)
        client = clients.connect([b"whole"], [b"head", FileRecords(file, 0, WINDOW_BYTES)], over_tcp=True)
        await asyncio.get_running_loop().sock_sendall(client, b"\x00\x00\x00\x01?" * 2)
        while not disk.readers.jobs:
            await asyncio.sleep(0)
        assert bytes_held_back(clients.ours[0]) == 0
        assert await receive(client, 9) == b"wholehead"
        assert await read_with_threads(disk, client, WINDOW_BYTES) == data

    run(scenario, monkeypatch)


def test_a_window_at_a_time_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        file, _ = make_file(disk, tmp_path / "old.log", 4 * WINDOW_BYTES)
        client = clients.connect([FileRecords(file, 0, 4 * WINDOW_BYTES)])
        await ask(client)
        await settle()
        assert [job.size for _, job in disk.readers.jobs] == [WINDOW_BYTES]

    run(scenario, monkeypatch)


def test_cold_readers_get_their_turns_and_others_are_served_between(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twenty who read old data take turns window by window; one whose data is warm waits for none of them."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        cold = []
        for number in range(20):
            file, _ = make_file(disk, tmp_path / f"old-{number}.log", 3 * WINDOW_BYTES)
            cold.append(clients.connect([FileRecords(file, 0, 3 * WINDOW_BYTES)]))
        warm_file, warm_data = make_file(disk, tmp_path / "new.log", 100_000)
        disk.memory.pages[warm_file.path] = set(range(100_000 // PAGE + 1))
        warm = clients.connect(*[[FileRecords(warm_file, 0, 100_000)] for _ in range(60)])
        for client in cold:
            await ask(client)
        await settle()
        drains = [asyncio.create_task(receive(client, 3 * WINDOW_BYTES)) for client in cold]
        for _ in range(60):
            await ask(warm)
            assert await receive(warm, 100_000) == warm_data
            while not disk.readers.jobs:
                await asyncio.sleep(0)
            disk.readers.do_next()
        await asyncio.gather(*drains)
        for first in range(0, 60, 20):
            assert len(set(disk.readers.done[first : first + 20])) == 20, (
                "somebody had two turns before another had one"
            )

    run(scenario, monkeypatch)


def test_memory_that_is_too_short_to_keep_anything_stops_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was brought is gone before it is sent, again and again: then the bytes themselves are kept."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        disk.memory.is_short = True
        file, data = make_file(disk, tmp_path / "old.log", 2 * WINDOW_BYTES + 77)
        client = clients.connect([b"head", FileRecords(file, 7, 2 * WINDOW_BYTES), b"tail"])
        await ask(client)
        received = await read_with_threads(disk, client, 2 * WINDOW_BYTES + 8)
        assert received == b"head" + data[7 : 7 + 2 * WINDOW_BYTES] + b"tail"
        assert len(disk.readers.done) == 2 * (WARMINGS_MAX + 1)

    run(scenario, monkeypatch)


def test_a_connection_that_is_closed_leaves_no_descriptor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        file, _ = make_file(disk, tmp_path / "old.log", WINDOW_BYTES)
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(5):
            client = clients.connect([FileRecords(file, 0, WINDOW_BYTES)])
            await ask(client)
            await settle()
            clients.connections[-1].close()
            client.close()
        assert len(disk.readers.jobs) == 5 and all(job.cancelled for _, job in disk.readers.jobs)
        while disk.readers.jobs:
            disk.readers.do_next()
        assert disk.memory.pages == {}, "somebody read for a client that is gone"
        assert len(os.listdir("/proc/self/fd")) == before

    run(scenario, monkeypatch)


def test_a_medium_that_fails_ends_the_connection_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        told: list[tuple[str, int | None]] = []
        disk.on_read_failed = lambda path, error: told.append((path, error.errno))
        file, _ = make_file(disk, tmp_path / "old.log", WINDOW_BYTES)
        client = clients.connect([FileRecords(file, 0, WINDOW_BYTES)])
        await ask(client)
        await settle()
        disk.readers.failure = OSError(errno.EIO, "bad sector")
        disk.readers.do_next()
        assert await receive(client, 1) == b""
        assert told == [(file.path, errno.EIO)] and clients.connections[0].closed

    run(scenario, monkeypatch)


@pytest.mark.parametrize("is_short", [False, True])
def test_a_file_that_is_cut_while_it_is_read_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_short: bool
) -> None:
    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        disk.memory.is_short = is_short
        file, _ = make_file(disk, tmp_path / "old.log", WINDOW_BYTES)
        client = clients.connect([FileRecords(file, 0, WINDOW_BYTES)])
        await ask(client)
        await settle()
        file.truncate(0)
        assert await read_with_threads(disk, client, 1) == b""

    run(scenario, monkeypatch)


def test_a_file_that_is_deleted_while_it_is_read_is_sent_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As before: who has begun to read a segment that retention deletes gets the rest of it."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        file, data = make_file(disk, tmp_path / "old.log", WINDOW_BYTES)
        client = clients.connect([FileRecords(file, 0, WINDOW_BYTES)])
        await ask(client)
        await settle()
        disk.rename(file.path, f"{file.path}.deleted")
        renamed = disk.readers.jobs[0][1]
        disk.readers.jobs[0] = (file.path, renamed)
        assert await read_with_threads(disk, client, WINDOW_BYTES) == data

    run(scenario, monkeypatch)


def test_a_large_answer_does_not_keep_the_others_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However fast the client takes it, so many bytes leave in one turn and no more."""

    async def scenario(disk: ModelDisk, clients: Clients) -> None:
        monkeypatch.setattr(os, "sendfile", lambda out, file, position, count: sent.append(count) or count)
        file, _ = make_file(disk, tmp_path / "new.log", 20 * WINDOW_BYTES)
        disk.memory.pages[file.path] = set(range(20 * WINDOW_BYTES // PAGE))
        client = clients.connect([FileRecords(file, 0, 20 * WINDOW_BYTES)])
        await ask(client)
        turns = 0
        while sum(sent) < 20 * WINDOW_BYTES:
            before = sum(sent)
            await asyncio.sleep(0)
            assert sum(sent) - before <= TURN_BYTES_MAX
            turns += 1
        assert turns >= 20 * WINDOW_BYTES // TURN_BYTES_MAX

    sent: list[int] = []
    run(scenario, monkeypatch)
