"""Puts a node on a simulated host: frames in, replies out, its deadlines and its end passed on."""

from __future__ import annotations

from collections.abc import Callable

from moldau.api.dispatch import Dispatcher
from moldau.config.broker_config import BrokerConfig
from moldau.node.context import ClientContext
from moldau.node.node import Node
from moldau.node.outbox import Outbox
from moldau.node.reply import Reply
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import DecodeError
from moldau.protocol.records_data import FileRecords
from moldau.sim.kernel.disk import SimFile
from moldau.sim.kernel.host import BadFrame, Halted, Host, Program, Slot
from moldau.sim.kernel.network import CLIENT_LISTENER, CONTROLLER_LISTENER, OUTER_LISTENER
from moldau.sim.node.compaction_worker import CompactionWorker


class NodeProgram(Program):
    def __init__(self, host: Host, config: BrokerConfig, outbox: Outbox | None = None) -> None:
        self.host = host
        worker = CompactionWorker(host.disk)
        self.node = Node(
            config,
            host.disk,
            host.rng,
            host.rng.randbytes(16),
            compaction_workers=worker,
            outbox=outbox,
            wall=host.wall,
        )
        self.node.logs.logs_per_turn = 1  # so that much can happen before all of them are open
        self.dispatcher = Dispatcher(self.node)
        self._fatal: str | None = None
        self.node.on_fatal = self._on_fatal
        self.node.set_wake_up(host.wake_at)
        for endpoint in config.listeners:
            self.node.bound_port(endpoint.name, endpoint.port)

    def start(self, now_ms: int) -> None:
        self.node.start(now_ms)

    def poll(self, now_ms: int) -> int:
        return self.node.poll(now_ms)

    def stop(self, now_ms: int) -> None:
        self.node.stop(now_ms)

    def accepts(self, listener: str) -> bool:
        """Clients may come when the broker takes part in the cluster, other nodes at once."""
        if listener == OUTER_LISTENER:
            return False
        return listener == CONTROLLER_LISTENER or self.node.is_ready

    def serves(self) -> bool:
        return self.node.is_ready

    def begin_stop(self, now_ms: int, finished: Callable[[], None]) -> None:
        self.node.begin_shutdown(now_ms, finished)

    def open_connection(self, name: str, listener: str = CLIENT_LISTENER) -> object:
        return ClientContext(listener, name, listener == CONTROLLER_LISTENER)

    def close_connection(self, connection: object) -> None:
        assert isinstance(connection, ClientContext)
        connection.closed(self.host.now_ms)

    def handle(self, connection: object, frame: bytes, now_ms: int, slot: Slot) -> None:
        assert isinstance(connection, ClientContext)
        try:
            reply = self.dispatcher.handle(connection, frame, 0, len(frame), now_ms)
        except DecodeError as error:
            raise BadFrame(str(error)) from error
        if reply.done:
            send(reply, slot)
        else:
            reply.on_done = lambda finished: send(finished, slot)

    def _on_fatal(self, reason: str) -> None:
        self._fatal = reason

    def ends_with(self, error: Exception) -> bool:
        """As in the server: a disk that fails where nobody expected it ends the process, and the next one recovers."""
        return isinstance(error, (OSError, KafkaError))

    def check_alive(self) -> None:
        if self._fatal is not None:
            raise Halted(self._fatal)


def send(reply: Reply, slot: Slot) -> None:
    try:
        payload = None if reply.parts is None else joined(reply.parts)
        slot.respond(payload, close=reply.close_connection, mute_ms=reply.mute_ms)
    except OSError:
        # The disk fails while records are sent from it: the stream cannot be mended.
        slot.respond(None, close=True)


def joined(parts: list[bytes | FileRecords]) -> bytes:
    """The bytes of a reply without its size field, which must tell the truth."""
    chunks: list[bytes] = []
    for part in parts:
        if isinstance(part, FileRecords):
            file = part.file
            assert isinstance(file, SimFile)
            data = file.read_as_asked(part.position, part.size)
            assert len(data) == part.size, f"{file.path} ends before {part.position} + {part.size}"
            chunks.append(data)
        else:
            chunks.append(part)
    frame = b"".join(chunks)
    size = int.from_bytes(frame[:4], "big")
    assert size == len(frame) - 4, f"a reply of {len(frame) - 4} bytes says that it has {size}"
    return frame[4:]
