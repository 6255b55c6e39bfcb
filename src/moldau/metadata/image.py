"""The cluster as every node sees it at one offset of the metadata log.

An image never changes; `MetadataDelta.apply` makes the next one and shares what stayed the same. Reading from it
needs no lock and no copy. Kafka keeps the same in MetadataImage.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.metadata.acl_map import AclMap
from moldau.metadata.features import ELR_VERSION, LATEST_METADATA_VERSION, METADATA_VERSION
from moldau.metadata.model import (
    BROKER_RESOURCE,
    BrokerRegistration,
    ControllerRegistration,
    PartitionRegistration,
    TopicImage,
)
from moldau.protocol.stored.metadata_records import DelegationTokenRecord

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity types with names, sorted by type; the name None is the default entity."""

ConfigResource = tuple[int, str]
"""Resource type and name; the broker resource with an empty name holds the cluster-wide defaults."""


class ScramCredential(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class MetadataImage:
    """Everything in the metadata log up to `offset`, by subject."""

    __slots__ = (
        "acls",
        "brokers",
        "client_quotas",
        "configs",
        "controllers",
        "epoch",
        "features",
        "next_producer_id",
        "offset",
        "scram",
        "timestamp_ms",
        "tokens",
        "topics_by_id",
        "topics_by_name",
    )

    def __init__(self) -> None:
        self.offset = -1
        """The last offset that is in this image; -1 when it is empty."""
        self.epoch = -1
        self.timestamp_ms = -1
        self.features: dict[str, int] = {}
        self.brokers: dict[int, BrokerRegistration] = {}
        self.controllers: dict[int, ControllerRegistration] = {}
        self.topics_by_id: dict[bytes, TopicImage] = {}
        self.topics_by_name: dict[str, TopicImage] = {}
        self.configs: dict[ConfigResource, dict[str, str]] = {}
        self.client_quotas: dict[QuotaEntity, dict[str, float]] = {}
        self.next_producer_id = 0
        self.acls = AclMap()
        self.scram: dict[tuple[int, str], ScramCredential] = {}
        """By mechanism (1: SHA-256, 2: SHA-512) and user."""
        self.tokens: dict[str, DelegationTokenRecord] = {}

    @property
    def is_empty(self) -> bool:
        return self.offset < 0

    @property
    def metadata_version(self) -> int:
        """The finalized metadata.version; the latest one before any was written."""
        return self.features.get(METADATA_VERSION, LATEST_METADATA_VERSION)

    @property
    def elr_enabled(self) -> bool:
        return self.features.get(ELR_VERSION, 0) >= 1

    def topic(self, name: str) -> TopicImage | None:
        return self.topics_by_name.get(name)

    def topic_by_id(self, topic_id: bytes) -> TopicImage | None:
        return self.topics_by_id.get(topic_id)

    def partition(self, topic_id: bytes, index: int) -> PartitionRegistration | None:
        topic = self.topics_by_id.get(topic_id)
        return None if topic is None else topic.partitions.get(index)

    def config(self, resource_type: int, name: str) -> dict[str, str]:
        """The overrides of one resource; not to be changed by the caller."""
        return self.configs.get((resource_type, name), {})

    def broker_defaults(self) -> dict[str, str]:
        """Dynamic settings of all brokers."""
        return self.configs.get((BROKER_RESOURCE, ""), {})

    def active_brokers(self) -> list[int]:
        return sorted(broker_id for broker_id, broker in self.brokers.items() if broker.is_active)
