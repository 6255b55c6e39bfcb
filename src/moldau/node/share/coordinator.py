"""Share partitions whose state this broker keeps: the runtime over __share_group_state, and what keeps that short."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, cast

from moldau.config.broker_config import BrokerConfig
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.routing import partition_for
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import ACTIVE, Done
from moldau.coordinator.share.machine import ShareMachine
from moldau.coordinator.share.settings import ShareCoordinatorSettings
from moldau.coordinator.share.share_state import SharePartitionKey
from moldau.coordinator.timers import Timers
from moldau.metadata.image import MetadataImage
from moldau.node.replicas import Replicas
from moldau.protocol.errors import KafkaError
from moldau.protocol.topic_names import SHARE_TOPIC
from moldau.protocol.uuids import uuid_to_text

log = logging.getLogger("moldau.node")

# A step of loading holds up everyone else, so it is kept short whatever share.coordinator.load.buffer.size says.
LOAD_STEP_BYTES_MAX: Final = 512 * 1024

ShareVerb = Callable[[ShareMachine], Outcome]


def coordinator_key(key: SharePartitionKey) -> str:
    """As FindCoordinator names a share partition."""
    group_id, topic_id, partition = key
    return f"{group_id}:{uuid_to_text(topic_id)}:{partition}"


class ShareCoordinator:
    """See the module."""

    def __init__(self, config: BrokerConfig, replicas: Replicas) -> None:
        self.settings = ShareCoordinatorSettings(config)
        self._replicas = replicas
        load_bytes = min(config.get_int("share.coordinator.load.buffer.size"), LOAD_STEP_BYTES_MAX)
        codec = config.get_int("share.coordinator.state.topic.compression.codec")
        self.runtime = CoordinatorRuntime(SHARE_TOPIC, self._make_machine, load_bytes, codec, replicas.logs.wall)
        self.runtime.write_timeout_ms = self.settings.write_timeout_ms
        self._partitions_default = config.get_int("share.coordinator.state.topic.num.partitions")
        self.partitions = self._partitions_default
        self.pruned_to: dict[int, int] = {}
        """Where each partition begins since it was last pruned."""
        # What was not needed any more at the last look, when the log ended there: true once all of that is committed.
        self._prunable: dict[int, tuple[CoordinatorMachine, int, int]] = {}

    def _make_machine(self, index: int, timers: Timers) -> ShareMachine:
        return ShareMachine(index, timers, self.settings, self.runtime.wall)

    def follow(self, image: MetadataImage) -> None:
        topic = image.topics_by_name.get(SHARE_TOPIC)
        self.partitions = self._partitions_default if topic is None else len(topic.partitions)

    def partition_for(self, key: SharePartitionKey) -> int:
        """The partition of __share_group_state that holds the state of this share partition."""
        return partition_for(coordinator_key(key), self.partitions)

    def run(self, key: SharePartitionKey, verb: ShareVerb, done: Done, now_ms: int) -> None:
        """Runs a verb on the machine that has this share partition."""
        index = self.partition_for(key)
        self.runtime.run(index, cast(Callable[[CoordinatorMachine], Outcome], verb), done, now_ms)

    def prune(self, now_ms: int) -> None:
        """Records before the oldest snapshot that still counts are deleted: nobody needs them to load the state."""
        for index, shard in self.runtime.shards.items():
            machine = shard.machine
            if shard.state != ACTIVE or not isinstance(machine, ShareMachine):
                continue
            partition = self._replicas.find(SHARE_TOPIC, index)
            if partition is None or partition.log is None:
                continue
            offset = self._unneeded_before(
                index, machine, partition.high_watermark.offset, partition.log.log_end_offset
            )
            if offset <= self.pruned_to.get(index, 0):
                continue
            try:
                partition.delete_records(offset, now_ms)
                self.pruned_to[index] = offset
            except KafkaError as error:
                log.warning("cannot prune %s-%d up to offset %d: %s", SHARE_TOPIC, index, offset, error)

    def _unneeded_before(self, index: int, machine: ShareMachine, high_watermark: int, end: int) -> int:
        """A snapshot that is not committed may be lost with this leader: the one before it is needed as long."""
        now = (machine, machine.first_needed_offset(), end)
        before = self._prunable.get(index)
        self._prunable[index] = now
        if end <= high_watermark:
            return now[1]
        if before is not None and before[0] is machine and before[2] <= high_watermark:
            return before[1]
        return -1
