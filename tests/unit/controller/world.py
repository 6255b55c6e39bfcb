"""A controller with brokers, without a quorum: verbs are replayed at once, as if every append were committed."""

from __future__ import annotations

import random
from typing import Any

from moldau.config.broker_config import BrokerConfig
from moldau.config.dynamic import DynamicBrokerConfig
from moldau.controller.bootstrap import bootstrap_records
from moldau.controller.controller import Controller
from moldau.controller.result import Result, VersionedRecord
from moldau.controller.state import ControllerState
from moldau.metadata.features import (
    LATEST_METADATA_VERSION,
    METADATA_VERSION,
    SUPPORTED_FEATURES,
    default_feature_levels,
)
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import PartitionRegistration
from moldau.protocol.messages.broker_heartbeat_request import BrokerHeartbeatRequest
from moldau.protocol.messages.broker_registration_request import BrokerRegistrationRequest, Feature, Listener
from moldau.protocol.messages.create_topics_request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from moldau.protocol.stored.metadata_records import FeatureLevelRecord, decode_metadata_record, encode_metadata_record

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def config(**values: str) -> BrokerConfig:
    settings = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
        "log.dirs": "/data",
    }
    settings.update({key.replace("_", "."): value for key, value in values.items()})
    return BrokerConfig(settings, warn=False)


class World:
    def __init__(self, seed: int = 1, **settings: str) -> None:
        self.now_ms = 1_000_000
        self.records: list[VersionedRecord] = []
        """What the last call appended."""
        state = ControllerState(
            CLUSTER, 1, DynamicBrokerConfig(config(**settings)), random.Random(seed), MetadataImage()
        )
        self.controller = Controller(state)
        levels = {METADATA_VERSION: LATEST_METADATA_VERSION, **default_feature_levels(LATEST_METADATA_VERSION)}
        self.commit(bootstrap_records([FeatureLevelRecord(name, level) for name, level in levels.items()], 1))

    @property
    def image(self) -> MetadataImage:
        return self.controller.image

    def commit(self, records: list[VersionedRecord]) -> None:
        """Replays records as they come back from the log."""
        self.records = records
        if records:
            decoded = [(decode_metadata_record(encode_metadata_record(r, v)), v) for r, v in records]
            self.controller.replay(decoded, self.controller.state.next_offset, 1, self.now_ms)

    def fail_over(self) -> None:
        """Another controller is active: it knows what the records say, and nothing else."""
        state = self.controller.state
        rng = random.Random(2)
        successor = ControllerState(CLUSTER, 2, state.dynamic_config, rng, state.image, state.next_offset)
        self.controller = Controller(successor)

    def run(self, result: Result) -> Any:
        self.commit(result.records)
        return result.response

    def register(
        self,
        broker_id: int,
        rack: str | None = None,
        previous_epoch: int = -1,
        incarnation: int = 1,
        log_dirs: list[bytes] | None = None,
        listeners: list[Listener] | None = None,
    ) -> int:
        request = BrokerRegistrationRequest(
            broker_id,
            CLUSTER,
            bytes([broker_id, incarnation]) + bytes(14),
            [Listener("PLAINTEXT", "localhost", 9090 + broker_id, 0)] if listeners is None else listeners,
            [Feature(name, low, high) for name, (low, high) in SUPPORTED_FEATURES.items()],
            rack,
            log_dirs=[directory(broker_id)] if log_dirs is None else log_dirs,
            previous_broker_epoch=previous_epoch,
        )
        epoch: int = self.run(self.controller.register_broker(request, self.now_ms)).broker_epoch
        return epoch

    def heartbeat(self, broker_id: int, want_shut_down: bool = False, offset: int | None = None) -> Any:
        epoch = self.image.brokers[broker_id].broker_epoch
        request = BrokerHeartbeatRequest(
            broker_id, epoch, self.image.offset if offset is None else offset, want_shut_down=want_shut_down
        )
        request.cordoned_log_dirs = []
        return self.run(self.controller.broker_heartbeat(request, self.now_ms))

    def add_brokers(self, *broker_ids: int, racks: dict[int, str] | None = None) -> None:
        for broker_id in broker_ids:
            self.register(broker_id, (racks or {}).get(broker_id))
            self.heartbeat(broker_id)

    def create(
        self,
        name: str,
        partitions: int = -1,
        factor: int = -1,
        assignments: list[list[int]] | None = None,
        configs: dict[str, str | None] | None = None,
        validate_only: bool = False,
    ) -> Any:
        """The one result of a CreateTopics request."""
        topic = CreatableTopic(name, partitions, factor)
        topic.assignments = [CreatableReplicaAssignment(i, ids) for i, ids in enumerate(assignments or [])]
        topic.configs = [CreatableTopicConfig(key, value) for key, value in (configs or {}).items()]
        request = CreateTopicsRequest([topic], validate_only=validate_only)
        return self.run(self.controller.create_topics(request, self.now_ms)).topics[0]

    def partition(self, topic: str, index: int = 0) -> PartitionRegistration:
        return self.image.topics_by_name[topic].partitions[index]

    def record_names(self) -> list[str]:
        return [type(record).__name__ for record, _ in self.records]


def directory(broker_id: int) -> bytes:
    return bytes([0xAA, broker_id]) + bytes(14)
