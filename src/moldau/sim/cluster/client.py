"""A client of a simulated cluster: a connection to each node, and what it knows of who leads which partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moldau.node.outbox import CLOSED, NoResponse
from moldau.protocol import errors
from moldau.protocol.messages.metadata_request import MetadataRequest
from moldau.protocol.messages.metadata_response import MetadataResponse
from moldau.protocol.primitives import Message
from moldau.sim.cluster.outbox import Pipe

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

REQUEST_TIMEOUT_MS = 2500
METADATA_TIMEOUT_MS = 800
NOBODY = -1

Place = tuple[bytes, int]
"""Topic id and partition."""


class Leadership:
    """Who leads a partition, as far as a client knows."""

    __slots__ = ("epoch", "leader", "replicas")

    def __init__(self, leader: int, epoch: int, replicas: list[int]) -> None:
        self.leader = leader
        self.epoch = epoch
        self.replicas = replicas


class ClusterClient:
    def __init__(self, setting: ClusterWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.rng = setting.world.derived_rng(f"client {name}")
        self.machine = setting.network.new_machine()
        self.leaders: dict[Place, Leadership] = {}
        self.topic_ids: dict[str, bytes] = {}
        self._pipes: dict[int, Pipe] = {}
        self._refreshing = False

    def pipe(self, node_id: int) -> Pipe:
        found = self._pipes.get(node_id)
        if found is None:
            port = self.setting.client_ports[node_id]
            found = Pipe(self.setting.network, self.machine, port, f"{self.name}->{node_id}", run_now)
            self._pipes[node_id] = found
        return found

    def any_node(self) -> int:
        return self.rng.choice(self.setting.broker_ids)

    def ask(
        self,
        node_id: int,
        request: Message,
        version: int,
        on_response: Callable[[Message | None], None],
        timeout_ms: int = REQUEST_TIMEOUT_MS,
    ) -> None:
        """`on_response` gets None when there was no response."""
        self.pipe(node_id).call(
            request,
            version,
            timeout_ms,
            lambda outcome: on_response(None if isinstance(outcome, NoResponse) else outcome),
        )

    def disconnect(self, node_id: int) -> None:
        pipe = self._pipes.get(node_id)
        if pipe is not None:
            pipe.fail(CLOSED)

    @property
    def requests_on_the_way(self) -> int:
        """Requests of connections that were given up and that may still arrive."""
        return sum(pipe.frames_on_the_way for pipe in self._pipes.values())

    # Who leads

    def leadership(self, topic_id: bytes, partition: int) -> Leadership | None:
        return self.leaders.get((topic_id, partition))

    def leader_of(self, topic_id: bytes, partition: int) -> int:
        known = self.leaders.get((topic_id, partition))
        return NOBODY if known is None else known.leader

    def refresh(self) -> None:
        """Asks somebody for the metadata; a response that knows of older epochs than this client is not believed."""
        if self._refreshing:
            return
        self._refreshing = True
        self.ask(self.any_node(), MetadataRequest(None, False), 12, self._on_metadata, METADATA_TIMEOUT_MS)

    def _on_metadata(self, response: Message | None) -> None:
        self._refreshing = False
        if not isinstance(response, MetadataResponse):
            return
        for topic in response.topics:
            if topic.name is not None and topic.error_code == errors.NONE:
                self.topic_ids[topic.name] = topic.topic_id
            for row in topic.partitions:
                place = (topic.topic_id, row.partition_index)
                known = self.leaders.get(place)
                if known is None or row.leader_epoch >= known.epoch:
                    self.leaders[place] = Leadership(row.leader_id, row.leader_epoch, list(row.replica_nodes))


def run_now(action: Callable[[], None]) -> None:
    action()
