"""One shard of the group coordinator on a log in memory, with verbs called directly."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from moldau.config.broker_config import BrokerConfig, single_node_values
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.group.offset_records import encode_offset_key, encode_offset_value
from moldau.coordinator.group.settings import GroupSettings
from moldau.coordinator.machine import CoordinatorMachine
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import Shard
from moldau.coordinator.timers import Timers
from moldau.metadata.delta import MetadataDelta
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import TopicImage
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from moldau.protocol.messages.offset_fetch_request import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from moldau.protocol.primitives import Message
from moldau.protocol.uuids import ZERO_UUID
from moldau.records.clocks import WallClock
from tests.unit.coordinator.memory_log import MemoryLog

HOUR_MS = 3_600_000
LOAD_BYTES = 4096


def offsets_of(machine: GroupMachine) -> dict[str, Any]:
    """Everything the machine knows about offsets, for comparing."""
    table = machine.state.offsets
    return {"committed": table.by_group, "pending": table.pending, "open": table._open}


class GroupWorld:
    def __init__(self, **settings: str) -> None:
        values = {**single_node_values(), "log.dirs": "/data"}
        values.update({name.replace("_", "."): value for name, value in settings.items()})
        self.settings = GroupSettings(BrokerConfig(values, warn=False))
        self.now_ms = 1_700_000_000_000
        self.log = MemoryLog()
        self.image = MetadataImage()
        self.wall = WallClock()
        self.epoch = 0
        self.runtime = CoordinatorRuntime("__consumer_offsets", self._make, LOAD_BYTES, 0, self.wall)
        self.lead()

    def _make(self, index: int, timers: Timers) -> GroupMachine:
        return GroupMachine(index, timers, self.settings, random.Random(1), self.wall)

    def lead(self) -> None:
        """Takes the partition up anew, from what is in the log."""
        self.epoch += 2
        self.runtime.lead(0, self.epoch, self.log, self.image, self.now_ms)
        while self.runtime.poll(self.now_ms) == self.now_ms:
            pass

    @property
    def shard(self) -> Shard:
        return self.runtime.shards[0]

    @property
    def machine(self) -> GroupMachine:
        machine = self.shard.machine
        assert isinstance(machine, GroupMachine)
        return machine

    def run(self, verb: Callable[[GroupMachine], Outcome]) -> Any:
        """The answer; errors are raised."""
        answers: list[Message | KafkaError] = []

        def typed(machine: CoordinatorMachine) -> Outcome:
            assert isinstance(machine, GroupMachine)
            return verb(machine)

        self.runtime.run(0, typed, answers.append, self.now_ms)
        (answer,) = answers
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def sleep(self, ms: int) -> None:
        """Lets time pass, timer by timer."""
        end_ms = self.now_ms + ms
        while True:
            next_ms = self.runtime.poll(self.now_ms)
            if next_ms > end_ms:
                break
            self.now_ms = max(next_ms, self.now_ms + 1)
        self.now_ms = end_ms
        self.runtime.poll(end_ms)

    # Offsets

    def commit(
        self,
        group_id: str,
        topic: str,
        partition: int,
        offset: int,
        metadata: str | None = "",
        topic_id: bytes = ZERO_UUID,
        version: int = 9,
        **fields: Any,
    ) -> int:
        """The error code of the partition."""
        row = OffsetCommitRequestPartition(partition, offset, -1, metadata)
        request = OffsetCommitRequest(
            group_id=group_id, topics=[OffsetCommitRequestTopic(topic, topic_id, [row])], **fields
        )
        answer = self.run(lambda machine: machine.offsets.commit(request, version, self.now_ms))
        code: int = answer.topics[0].partitions[0].error_code
        return code

    def commit_in_transaction(self, producer_id: int, group_id: str, topic: str, partition: int, offset: int) -> None:
        """What TxnOffsetCommit writes."""
        key = encode_offset_key(group_id, topic, partition)
        value = encode_offset_value(offset, -1, "", self.now_ms, -1, ZERO_UUID)
        self.run(lambda machine: Outcome([(key, value)], OffsetFetchRequestGroup(), True, None, producer_id, 0))

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        self.log.add_marker(producer_id, 0, commit)
        self.shard.on_marker_written(producer_id, 0, commit, self.log.end)

    def fetch(self, group_id: str, topic: str, partition: int, stable: bool = False) -> tuple[int, int]:
        """Offset and error code."""
        request = OffsetFetchRequestGroup(
            group_id=group_id, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[partition])]
        )
        answer = self.run(lambda machine: Outcome(response=machine.offsets.fetch(request, stable)))
        row = answer.topics[0].partitions[0]
        return row.committed_offset, row.error_code

    def delete_topic(self, name: str, topic_id: bytes) -> None:
        delta = MetadataDelta(self.image)
        delta.deleted_topics[topic_id] = TopicImage(name, topic_id, {})
        self.runtime.on_metadata(delta, self.image, self.now_ms)

    def reloaded(self) -> GroupMachine:
        """A machine that has replayed the same log from its beginning."""
        machine = self._make(0, Timers())
        shard = Shard("again", 1, self.log, machine, Timers(), 0, WallClock())
        while not shard.load_step(LOAD_BYTES):
            pass
        return machine
