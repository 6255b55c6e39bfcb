"""The network of Moldau's own client in the simulated world: its connections run over the simulated ones.

Everything above the socket is the client's own code. A process that is stopped hears nothing until it goes on; one that
died leaves behind what it had sent, which may still arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from moldau.client.connection.transport import Address, Network, address_text
from moldau.client.connection.wire import Call, Connection, Features
from moldau.client.errors import ClientError, NetworkError, RequestTimeoutError
from moldau.client.produce.transactions import TRANSACTION_VERSION
from moldau.protocol.primitives import Message
from moldau.sim.cluster import network as cluster_network
from moldau.sim.transactions.sequence_check import SequenceCheck

if TYPE_CHECKING:
    from moldau.sim.kernel.world import World

CONNECT_TIMEOUT_MS = 1500
FOREVER_MS = 1 << 60


class Link:
    """One connection: the client's side of the protocol, and what carries its frames."""

    def __init__(self, address: Address, connection: Connection, deadline_ms: int) -> None:
        self.address = address
        self.connection = connection
        self.connect_deadline_ms = deadline_ms
        self.carrier: cluster_network.Connection | None = None


class ClientNetwork(Network):
    """See the module. `poll` never waits: whoever drives the client asks `due_ms` when to call again."""

    def __init__(
        self, network: cluster_network.Network, machine: int, name: str, transaction_version_max: int | None = None
    ) -> None:
        self._network = network
        self._world: World = network.world
        self._machine = machine
        self._name = name
        self._transaction_version_max = transaction_version_max
        self._links: dict[Address, Link] = {}
        self._left_behind: list[cluster_network.Connection] = []
        self._waits_until_ms = 0
        self._stopped = False
        self._backlog: list[Callable[[], None]] = []
        self.on_event: Callable[[], None] = _nothing
        self._sequences = SequenceCheck(name)

    # What the client calls

    def now_ms(self) -> int:
        return self._world.now_ms

    def submit(self, address: Address, call: Call[Message]) -> None:  # type: ignore[override]
        link = self._links.get(address)
        if link is None:
            link = self._open(address)
        self._sequences.watch(call)
        link.connection.submit(call, self.now_ms())

    def poll(self, timeout_ms: int) -> None:
        for link in list(self._links.values()):
            self._flush(link)
        self._waits_until_ms = self.now_ms() + timeout_ms

    def in_flight_count(self, address: Address) -> int:
        link = self._links.get(address)
        return 0 if link is None else link.connection.in_flight_count

    def is_ready(self, address: Address) -> bool:
        link = self._links.get(address)
        return link is not None and link.connection.negotiated and self.throttled_ms(address) == 0

    def throttled_ms(self, address: Address) -> int:
        link = self._links.get(address)
        return 0 if link is None else link.connection.throttled_ms(self.now_ms())

    def close(self) -> None:
        for link in list(self._links.values()):
            self._drop(link, NetworkError("The client was closed."))

    # What its driver calls

    @property
    def due_ms(self) -> int:
        """When something is to be done that no response brings."""
        due_ms = self._waits_until_ms
        for link in self._links.values():
            if link.carrier is not None and not link.carrier.connected:
                due_ms = min(due_ms, link.connect_deadline_ms)
            due_ms = min(due_ms, link.connection.next_deadline_ms() or FOREVER_MS)
        return due_ms

    def expire(self) -> None:
        """Gives up what took too long."""
        now_ms = self.now_ms()
        for link in list(self._links.values()):
            where = address_text(link.address)
            if link.carrier is not None and not link.carrier.connected and link.connect_deadline_ms <= now_ms:
                self._drop(link, NetworkError(f"No connection to {where}: no answer in time."))
            elif link.connection.expired(now_ms):
                self._drop(link, RequestTimeoutError(f"The broker at {where} did not respond in time."))
            elif link.connection.tick(now_ms):
                self._flush(link)

    @property
    def is_anything_on_the_way(self) -> bool:
        """Whether a request of a connection that was given up may still arrive."""
        self._left_behind = [carrier for carrier in self._left_behind if carrier.frames_on_the_way]
        return bool(self._left_behind)

    def stop(self) -> None:
        """The process is stopped."""
        self._stopped = True

    def go_on(self) -> None:
        self._stopped = False
        backlog, self._backlog = self._backlog, []
        for action in backlog:
            action()

    def die(self, *, powered: bool) -> None:
        """The process ends, and with it its connections; a machine without power does not even say so."""
        self._stopped = True
        self._backlog.clear()
        for link in self._links.values():
            if link.carrier is not None:
                if powered:
                    link.carrier.close()
                else:
                    link.carrier.on_origin_died(powered)
                self._left_behind.append(link.carrier)
        self._links.clear()

    # Connections

    def _open(self, address: Address) -> Link:
        now_ms = self.now_ms()
        link = Link(
            address, Connection(address_text(address), self._name, clock=self.now_ms), now_ms + CONNECT_TIMEOUT_MS
        )
        self._links[address] = link
        link.carrier = self._network.connect(
            self._machine,
            address[1],
            f"{self._name}->{address[1]}",
            lambda frame: self._hear(lambda: self._on_frame(link, frame)),
            lambda reason: self._hear(lambda: self._on_close(link)),
        )
        link.connection.start(now_ms, CONNECT_TIMEOUT_MS)
        return link

    def _flush(self, link: Link) -> None:
        data = link.connection.take_outgoing()
        while data and link.carrier is not None:
            end = int.from_bytes(data[:4], "big") + 4
            link.carrier.send(data[4:end])
            data = data[end:]

    def _hear(self, action: Callable[[], None]) -> None:
        if self._stopped:
            self._backlog.append(action)
        else:
            action()

    def _on_frame(self, link: Link, frame: bytes) -> None:
        if self._links.get(link.address) is not link:
            return
        link.connection.receive(len(frame).to_bytes(4, "big") + frame)
        limit, features = self._transaction_version_max, link.connection.features
        if limit is not None and features.levels.get(TRANSACTION_VERSION, 0) > limit:
            link.connection.features = Features(features.epoch, {**features.levels, TRANSACTION_VERSION: limit})
        if link.connection.closed:
            self._drop(link, NetworkError("The connection was closed."))
        self.on_event()

    def _on_close(self, link: Link) -> None:
        if self._links.get(link.address) is link:
            self._drop(link, NetworkError(f"The connection to {address_text(link.address)} was lost."))
            self.on_event()

    def _drop(self, link: Link, error: ClientError) -> None:
        del self._links[link.address]
        carrier = cast(cluster_network.Connection, link.carrier)
        carrier.close()
        self._left_behind.append(carrier)
        link.connection.close(error)


def _nothing() -> None:
    pass
