"""Requests that the network keeps and delivers again: much later, on another connection, to whoever is there then.

Of transaction version 2 everything may come again at any time. Version 1 has nothing that tells the requests of two
transactions apart but the sequences of records and, for markers, the epoch of a coordinator: there only Produce comes
again, and markers where a later coordinator has written others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import api_table
from moldau.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from moldau.sim.cluster import network as cluster_network
from moldau.sim.node.client import decode_request

if TYPE_CHECKING:
    from moldau.sim.transactions.world import TransactionWorld

FIRST_VERSIONS = {
    api_table.PRODUCE: 0,
    api_table.TXN_OFFSET_COMMIT: 5,
    api_table.END_TXN: 5,
    api_table.ADD_PARTITIONS_TO_TXN: 4,
    api_table.WRITE_TXN_MARKERS: 0,
}
"""What comes again, and from which version on."""
SECOND_TRANSACTION_VERSION = 2
DELAYS_MS = (5, 50, 300, 1000, 4000)
MARKER_DELAYS_MS = (20, 60, 120, 250, 1000)
"""Most of the time within the transaction that follows: there a marker that comes again is most like one of its own."""
PATIENCE_MS = 3000
TRIES_MAX, WAIT_MS = 8, 400


class LateRequests:
    def __init__(self, setting: TransactionWorld) -> None:
        self.setting = setting
        self.world = setting.world
        self.rng = setting.world.derived_rng("late requests")
        self.probability = self.rng.choice((0.0, 0.1, 0.3))
        self.machine = setting.network.new_machine()
        self.count = 0
        self._open: list[cluster_network.Connection] = []
        setting.network.on_sent = self._on_sent

    def _on_sent(self, connection: cluster_network.Connection, frame: bytes) -> None:
        """Something is sent; the frame begins with api key and version."""
        api_key = int.from_bytes(frame[:2], "big")
        first = FIRST_VERSIONS.get(api_key)
        if first is None or int.from_bytes(frame[2:4], "big") < first or connection.origin == self.machine:
            return
        is_marker = api_key == api_table.WRITE_TXN_MARKERS
        if self.rng.random() >= self.probability * (3 if is_marker else 1):
            return
        port, origin = connection.port, connection.origin
        if self.rng.random() < (0.2 if is_marker else 0.5):
            port = self.rng.choice(list(self.setting.client_ports.values()))
        delay_ms = self.rng.choice(MARKER_DELAYS_MS if is_marker else DELAYS_MS)
        delay_ms = self.rng.randint(delay_ms // 2, delay_ms)
        self.world.schedule(delay_ms, lambda: self._deliver(origin, port, frame, TRIES_MAX))

    def _deliver(self, origin: int, port: int, frame: bytes, tries: int) -> None:
        if self.setting.quiet:
            return
        if self.is_indistinct(frame):
            # Until another coordinator has written there.
            if tries > 1:
                self.world.schedule(WAIT_MS, lambda: self._deliver(origin, port, frame, tries - 1))
            return
        self.count += 1
        self.world.note(f"request {int.from_bytes(frame[:2], 'big')} of {origin} comes again at {port}")
        connection = self.setting.network.connect(
            self.machine, port, f"again->{port}", lambda response: None, lambda reason: None
        )
        connection.send(frame)
        self._open.append(connection)
        self.world.schedule(PATIENCE_MS, connection.close)

    def is_indistinct(self, frame: bytes) -> bool:
        """Whether these are markers of version 1 that nothing tells from those of the next transaction: the partition
        has none of a later coordinator of that producer."""
        if int.from_bytes(frame[:2], "big") != api_table.WRITE_TXN_MARKERS:
            return False
        request = decode_request(frame)
        assert isinstance(request, WriteTxnMarkersRequest)
        return any(
            marker.transaction_version < SECOND_TRANSACTION_VERSION
            and self.setting.ledger.coordinator_epoch((topic.name, index), marker.producer_id)
            <= marker.coordinator_epoch
            for marker in request.markers
            for topic in marker.topics
            for index in topic.partition_indexes
        )

    def markers_left_behind(self) -> bool:
        """Whether such markers are on a connection that was given up, and may still arrive."""
        return any(self.is_indistinct(frame) for frame in self.setting.network.requests_of_nodes_left_behind())

    @property
    def is_anything_on_the_way(self) -> bool:
        self._open = [connection for connection in self._open if connection.frames_on_the_way]
        return bool(self._open)
