"""What the controller decides from: the image as of its own last record, its settings, and who was heard of when.

The image runs ahead of what is committed; a controller that loses its epoch is thrown away with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from moldau.config.broker_config import BrokerConfig
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.controller.colliding_names import CollidingNames
from moldau.controller.counts import ControllerCounts
from moldau.controller.known_acls import KnownAcls
from moldau.controller.partition_index import PartitionIndex
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BROKER_RESOURCE, TOPIC_RESOURCE
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource


@dataclass(slots=True)
class BrokerContact:
    """The last heartbeat of a broker that shows that it hears, and what it told."""

    broker_epoch: int
    last_heartbeat_ms: int
    metadata_offset: int = -1
    known_offset: int = -1
    """How far the metadata was known to any broker at that heartbeat."""
    controlled_shutdown_offset: int = -1
    is_connection_lost: bool = False
    """The connection that brought its heartbeats broke, and none came since."""


@dataclass(slots=True)
class ControllerState:
    cluster_id: str
    node_id: int
    dynamic_config: DynamicBrokerConfig
    rng: RandomSource
    image: MetadataImage
    next_offset: int = 0
    """Where the next record will be: the epoch of a broker that registers now."""
    wall: WallClock = field(default_factory=WallClock)
    contacts: dict[int, BrokerContact] = field(default_factory=dict)
    registration_offsets: dict[int, int] = field(default_factory=dict)
    counts: ControllerCounts = field(default_factory=ControllerCounts)
    partitions: PartitionIndex = field(init=False)
    topic_names: CollidingNames = field(init=False)
    acls: KnownAcls = field(init=False)

    def __post_init__(self) -> None:
        self.partitions = PartitionIndex(self.image)
        self.topic_names = CollidingNames(self.image)
        self.acls = KnownAcls(self.image)

    def advance(self, delta: MetadataDelta, image: MetadataImage, next_offset: int) -> None:
        """Takes over what the controller's own last records changed."""
        assert next_offset >= self.next_offset, f"the next record goes back from {self.next_offset} to {next_offset}"
        self.image = image
        self.next_offset = next_offset
        self.partitions.apply(delta)
        self.topic_names.apply(delta)
        self.acls.apply(delta)

    @property
    def config(self) -> BrokerConfig:
        """This node's settings, dynamic ones included."""
        return self.dynamic_config.current

    def effective_topic_config(self, topic: str, name: str, broker_key: str) -> str:
        """A topic's setting: its own, else the cluster-wide default, else this node's."""
        own = self.image.config(TOPIC_RESOURCE, topic).get(name)
        if own is not None:
            return own
        default = self.image.config(BROKER_RESOURCE, "").get(broker_key)
        return default if default is not None else str(self.config.get(broker_key))

    def min_insync_replicas(self, topic: str) -> int:
        return int(self.effective_topic_config(topic, "min.insync.replicas", "min.insync.replicas"))

    def unclean_election_enabled(self, topic: str) -> bool:
        value = self.effective_topic_config(topic, "unclean.leader.election.enable", "unclean.leader.election.enable")
        return value.lower() == "true"

    def is_active(self, broker_id: int) -> bool:
        broker = self.image.brokers.get(broker_id)
        return broker is not None and broker.is_active
