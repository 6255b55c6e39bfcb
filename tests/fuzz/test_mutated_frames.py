"""Mutated frames do not end the server, do not swell it, and do not disturb a good client.

MOLDAU_FUZZ_FRAMES says how many (the full run: 100000); MOLDAU_FUZZ_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import selectors
import socket
import struct
import subprocess
import threading
import time
from pathlib import Path

from tests.crash.raw import LATEST, RawConnection, build_batch, parse_batches, parse_produce_answer
from tests.fuzz.corpus import DECOY_TOPIC, build_corpus, mutate
from tests.interop.nodes import HOST, MoldauNode
from tests.pace import patience

FRAMES = int(os.environ.get("MOLDAU_FUZZ_FRAMES", "10000"))
SEED = int(os.environ.get("MOLDAU_FUZZ_SEED", str(random.SystemRandom().randrange(1 << 30))))
CONNECTIONS = 64
ANSWER_SECONDS_MAX = 0.1
MEMORY_GROWTH_BYTES_MAX = 64 << 20
GOOD_TOPIC = "good"
# No damage makes this number of another one: whoever may unregister a broker and names ours is obeyed.
NODE_ID = 0x2AAAAAAA


class Attacker:
    """Many connections, one mutated frame outstanding on each; a connection that is closed is opened again."""

    def __init__(self, ports: list[int], frames: int, served: set[int], rng: random.Random) -> None:
        self.ports = ports
        self.left = frames
        self.rng = rng
        self.corpus = build_corpus(rng, 8)
        self.served = [frame for frame in self.corpus if struct.unpack_from(">h", frame)[0] in served]
        self.selector = selectors.DefaultSelector()
        self.deadlines: dict[socket.socket, float] = {}
        self.received: dict[socket.socket, bytearray] = {}
        self.answered = self.closed = self.silent = self.refused = 0

    def run(self) -> None:
        for _ in range(min(CONNECTIONS, self.left)):
            self.open()
        while self.deadlines:
            for key, _ in self.selector.select(0.02):
                assert isinstance(key.fileobj, socket.socket)
                self.on_readable(key.fileobj)
            now = time.monotonic()
            for sock in [sock for sock, deadline in self.deadlines.items() if deadline < now]:
                self.silent += 1
                self.drop(sock)

    def open(self) -> None:
        if self.left == 0:
            return
        sock = socket.create_connection((HOST, self.rng.choice(self.ports)), patience(10))
        self.selector.register(sock, selectors.EVENT_READ)
        self.received[sock] = bytearray()
        self.send(sock)

    def send(self, sock: socket.socket) -> None:
        if self.left == 0:
            self.drop(sock)
            return
        self.left -= 1
        self.received[sock].clear()
        self.deadlines[sock] = time.monotonic() + ANSWER_SECONDS_MAX
        try:
            # Most frames are of APIs that are served: the others do not get past the front door.
            frames = self.served if self.rng.random() < 0.9 else self.corpus
            sock.sendall(mutate(self.rng.choice(frames), self.corpus, self.rng))
        except OSError:
            self.refused += 1
            self.drop(sock)

    def drop(self, sock: socket.socket) -> None:
        self.selector.unregister(sock)
        del self.deadlines[sock]
        del self.received[sock]
        sock.close()
        self.open()

    def on_readable(self, sock: socket.socket) -> None:
        try:
            chunk = sock.recv(1 << 18)
        except OSError:
            chunk = b""
        if not chunk:
            self.closed += 1
            self.drop(sock)
            return
        buffer = self.received[sock]
        buffer += chunk
        if len(buffer) >= 4 and len(buffer) >= 4 + struct.unpack_from(">i", buffer)[0]:
            self.answered += 1
            self.send(sock)


class GoodClient(threading.Thread):
    """Produces and fetches all the time, and remembers the first thing that went wrong."""

    def __init__(self, port: int) -> None:
        super().__init__(name="good client", daemon=True)
        self.port = port
        self.stopping = threading.Event()
        self.failure: BaseException | None = None
        self.rounds = 0
        self.slowest = 0.0

    def run(self) -> None:
        try:
            with RawConnection(self.port, timeout=10) as connection:
                while not self.stopping.is_set():
                    started = time.monotonic()
                    self.round(connection)
                    self.slowest = max(self.slowest, time.monotonic() - started)
                    self.rounds += 1
                    time.sleep(0.005)
        except BaseException as failure:
            self.failure = failure

    def round(self, connection: RawConnection) -> None:
        value = b"round %d" % self.rounds
        connection.send_produce(GOOD_TOPIC, 0, build_batch([(1_700_000_000_000 + self.rounds, value)]))
        _, answer = connection.receive()
        assert parse_produce_answer(answer, GOOD_TOPIC) == (0, 0, self.rounds)
        _, data = connection.fetch(GOOD_TOPIC, 0, self.rounds)
        assert [record.value for record in parse_batches(data)[-1].records] == [value]
        assert connection.list_offset(GOOD_TOPIC, 0, LATEST)[0] == self.rounds + 1


def resident_bytes(pid: int) -> int:
    output = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True, check=True)
    return int(output.stdout) * 1024


def test_mutated_frames_disturb_nobody(tmp_path: Path) -> None:
    print(f"MOLDAU_FUZZ_SEED={SEED}")
    # Connections come and go faster than the default backlog of 50 lets them; a full one costs a second each.
    settings = {"auto.create.topics.enable": "false", "socket.listen.backlog.size": "1000"}
    node = MoldauNode(tmp_path / "node")
    voter = f"{NODE_ID}@{HOST}:{node.controller_port}"
    node.write_properties({**settings, "node.id": str(NODE_ID), "controller.quorum.voters": voter})
    node.format()
    node.start()
    try:
        assert node.process is not None
        with RawConnection(node.port) as connection:
            # Its records are years old: retention, which first looks after 30 s, would take them away.
            connection.create_topic(GOOD_TOPIC, 1, {"retention.ms": "-1"})
            connection.create_topic(DECOY_TOPIC, 2, {})
            connection.await_topic(GOOD_TOPIC, 1)
            served = connection.api_keys()
        good = GoodClient(node.port)
        good.start()
        attacker = Attacker([node.port] * 9 + [node.controller_port], FRAMES, served, random.Random(SEED))
        before = resident_bytes(node.process.pid)
        started = time.monotonic()
        attacker.run()
        seconds = time.monotonic() - started
        good.stopping.set()
        good.join(patience(15))
        growth = resident_bytes(node.process.pid) - before
        print(
            f"{FRAMES} frames in {seconds:.1f} s: {attacker.answered} answered, {attacker.closed} closed,"
            f" {attacker.silent} without an answer; good client {good.rounds} rounds, slowest"
            f" {good.slowest:.3f} s; memory {growth / 2**20:+.1f} MB"
        )
        assert node.process.poll() is None, f"the server ended:\n{node.output()[-3000:]}"
        assert good.failure is None, f"the good client failed: {good.failure!r}\n{node.output()[-3000:]}"
        assert good.rounds > 0
        output = node.output()
        first = output.find("Traceback")
        assert first < 0, f"a frame met an error that nobody expected:\n{output[max(0, first - 300) : first + 3000]}"
        assert growth < MEMORY_GROWTH_BYTES_MAX, f"memory grew by {growth / 2**20:.1f} MB"
        assert node.stop() == 0
    finally:
        node.kill()
