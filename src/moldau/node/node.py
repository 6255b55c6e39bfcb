"""One node: its logs, replicas, metadata and waiting requests, driven from outside by frames, timers and the disk.

Everything here runs in one turn at a time, on the time it is given. A server process and the simulator drive the same
object: `start`, then `poll` whenever the deadline it returned has come, `begin_shutdown` and `stop` at the end.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.config.broker_config import BrokerConfig
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.config.log_config import LogConfig, log_config_for
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.features import SUPPORTED_FEATURES
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import BROKER_RESOURCE, TOPIC_RESOURCE
from moldau.node.fetch_session import FetchSessionCache
from moldau.node.metadata_node import MetadataNode
from moldau.node.producer_ids import ProducerIds
from moldau.node.replicas import Replicas
from moldau.node.schedule import Schedule
from moldau.node.waiting import WaitingRoom
from moldau.raft.core import RandomSource
from moldau.storage.disk import Disk
from moldau.storage.log_manager import LogManager

log = logging.getLogger("moldau.node")


class Node:
    """See the module."""

    def __init__(self, config: BrokerConfig, disk: Disk, rng: RandomSource, incarnation_id: bytes) -> None:
        self.static_config = config
        self.node_id = config.node_id
        self.dynamic = DynamicBrokerConfig(config)
        self.disk = disk
        self.incarnation_id = incarnation_id
        self._rng = rng
        self.on_ready: Callable[[], None] | None = None
        self.on_fatal: Callable[[str], None] | None = None
        self.is_ready = False
        self.image = MetadataImage()
        self.waiting = WaitingRoom()
        self.fetch_sessions = FetchSessionCache(config.get_int("max.incremental.fetch.session.cache.slots"))
        self.fetch_bytes_max = config.get_int("fetch.max.bytes")
        self.topics_in_creation: set[str] = set()
        self.logs = LogManager(disk, config.log_dirs, self.log_config_of)
        self.replicas = Replicas(self.node_id, self.logs, self.log_config_of)
        self.metadata = MetadataNode(config, disk, rng, incarnation_id)
        self.cluster_id = ""
        self.producer_ids = ProducerIds(self.metadata.allocate_producer_ids)
        self._schedule = Schedule()
        self._bound_ports: dict[str, int] = {}

    @property
    def config(self) -> BrokerConfig:
        """The configuration in force, dynamic changes included."""
        return self.dynamic.current
