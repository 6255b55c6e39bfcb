"""The coordinators of one broker: which shards it leads, by the metadata; routing of requests to them; their timers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.routing import partition_for
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import Done
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.node.coordinator_log import PartitionLog
from moldau.node.replicas import Replicas
from moldau.node.share.coordinator import ShareCoordinator
from moldau.node.transaction_coordinator import TransactionCoordinator
from moldau.protocol.topic_names import GROUP_TOPIC
from moldau.records.clocks import WallClock
from moldau.records.random_source import RandomSource

# A step of loading holds up everyone else, so it is kept short whatever offsets.load.buffer.size says.
LOAD_STEP_BYTES_MAX: Final = 512 * 1024

GroupVerb = Callable[[GroupMachine], Outcome]


class GroupCoordinator:
    """The groups that this broker coordinates."""

    def __init__(self, config: BrokerConfig, rng: RandomSource, wall: WallClock) -> None:
        self.settings = GroupSettings(config)
        self._rng = rng
        load_bytes = min(config.get_int("offsets.load.buffer.size"), LOAD_STEP_BYTES_MAX)
        codec = config.get_int("offsets.topic.compression.codec")
        self.runtime = CoordinatorRuntime(GROUP_TOPIC, self._make_machine, load_bytes, codec, wall)
        self.runtime.write_timeout_ms = config.get_int("offsets.commit.timeout.ms")
        self._partitions_default = config.get_int("offsets.topic.num.partitions")
        self.partitions = self._partitions_default

    def _make_machine(self, index: int, timers: Timers) -> GroupMachine:
        return GroupMachine(index, timers, self.settings, self._rng, self.runtime.wall)

    def follow(self, image: MetadataImage) -> None:
        topic = image.topics_by_name.get(GROUP_TOPIC)
        self.partitions = self._partitions_default if topic is None else len(topic.partitions)

    def partition_for(self, group_id: str) -> int:
        """The partition of __consumer_offsets that holds what is known about this group."""
        return partition_for(group_id, self.partitions)

    def run(self, group_id: str, verb: GroupVerb, done: Done, now_ms: int) -> None:
        """Runs a verb on the machine that has this group; `done` gets the response or a KafkaError as it was raised."""
        self.run_at(self.partition_for(group_id), verb, done, now_ms)

    def run_at(self, index: int, verb: GroupVerb, done: Done, now_ms: int) -> None:
        """The same on a shard by its index, for what concerns many groups."""
        self.runtime.run(index, cast(Callable[[CoordinatorMachine], Outcome], verb), done, now_ms)


class Coordinators:
    """All coordinators of this broker; follows the metadata once the broker takes part in the cluster."""

    def __init__(self, config: BrokerConfig, replicas: Replicas, rng: RandomSource) -> None:
        self.groups = GroupCoordinator(config, rng, replicas.logs.wall)
        self.transactions = TransactionCoordinator(config, replicas.logs.wall)
        self.shares = ShareCoordinator(config, replicas)
        self._runtimes = [self.groups.runtime, self.transactions.runtime, self.shares.runtime]
        self._replicas = replicas
        self._started = False
        self.on_deadline: Callable[[int], None] | None = None
        """Told when something is due before the time that `poll` returned."""
        for runtime in self._runtimes:
            runtime.on_new_deadline = self._wake

    def _wake(self, due_ms: int) -> None:
        if self.on_deadline is not None:
            self.on_deadline(due_ms)

    def update_config(self, config: BrokerConfig) -> None:
        self.groups.settings.update(config)
        self.transactions.settings.update(config)

    def start(self, image: MetadataImage, now_ms: int) -> None:
        """The broker has joined: takes up what the metadata says it leads."""
        self._started = True
        self._follow(image)
        for runtime in self._runtimes:
            topic = image.topics_by_name.get(runtime.topic)
            if topic is not None:
                for index, registration in topic.partitions.items():
                    self._follow_partition(
                        runtime, index, registration.leader, registration.leader_epoch, image, now_ms
                    )

    def apply(self, delta: MetadataDelta, image: MetadataImage, now_ms: int) -> None:
        """Called after the replicas have followed the same delta."""
        if not self._started:
            return
        self._follow(image)
        for runtime in self._runtimes:
            if any(topic.name == runtime.topic for topic in delta.deleted_topics.values()):
                runtime.resign_all(now_ms)
            # Shards that are there see the change before new ones are loaded: those start from the new image.
            runtime.on_metadata(delta, image, now_ms)
        for changed in delta.changed_topics.values():
            for runtime in self._runtimes:
                if changed.name == runtime.topic:
                    for index, registration in changed.changed_partitions.items():
                        self._follow_partition(
                            runtime, index, registration.leader, registration.leader_epoch, image, now_ms
                        )

    def _follow(self, image: MetadataImage) -> None:
        self.groups.follow(image)
        self.transactions.follow(image)
        self.shares.follow(image)

    def _follow_partition(
        self,
        runtime: CoordinatorRuntime,
        index: int,
        leader: int,
        leader_epoch: int,
        image: MetadataImage,
        now_ms: int,
    ) -> None:
        partition = self._replicas.find(runtime.topic, index)
        if leader == self._replicas.broker_id and partition is not None:
            log = PartitionLog(partition, leader_epoch)
            runtime.lead(index, leader_epoch, log, image, now_ms)
        else:
            runtime.resign(index, now_ms)

    def poll(self, now_ms: int) -> int:
        return min([runtime.poll(now_ms) for runtime in self._runtimes])

    def stop(self, now_ms: int) -> None:
        """The broker ends: whoever still waits is told to look elsewhere."""
        self._started = False
        for runtime in self._runtimes:
            runtime.resign_all(now_ms)
