"""Simulated consumers: follow a partition by fetch, check every batch they get, and remember what they saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import CorruptBatch, has_valid_crc, split_batches
from moldau.records.walk import read_records
from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import ReadRecord
from moldau.sim.models.topics import PRESENT, TopicModel
from moldau.sim.node.client import SimClient

if TYPE_CHECKING:
    from moldau.sim.node.world import NodeWorld

FIRST_VERSION_WITH_TOPIC_IDS = 13
TRANSIENT_ERRORS = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.LEADER_NOT_AVAILABLE,
    errors.KAFKA_STORAGE_ERROR,
    errors.FETCH_SESSION_ID_NOT_FOUND,
    errors.INVALID_FETCH_SESSION_EPOCH,
    errors.INCONSISTENT_TOPIC_ID,
    errors.FETCH_SESSION_TOPIC_ID_ERROR,
)


def read_batches(name: str, data: bytes) -> list[ReadRecord]:
    """Every record in what a fetch returned; a batch that is cut off at the end is left out, a damaged one is not."""
    records: list[ReadRecord] = []
    try:
        headers = split_batches(data, 0, len(data))
    except CorruptBatch as error:
        raise Violation(f"no corrupt batch is served: {name}, {error}") from error
    for header in headers:
        if not has_valid_crc(data, header):
            raise Violation(f"no corrupt batch is served: {name} offset {header.base_offset}")
        for index, record in enumerate(read_records(data, header)):
            sequence = header.base_sequence + index if header.producer_id >= 0 else -1
            value = record.value if record.value is not None else b""
            records.append(ReadRecord(record.offset, record.timestamp, value, header.producer_id, sequence))
    return records


class SimConsumer:
    def __init__(self, setting: NodeWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.rng = setting.world.derived_rng(f"consumer {name}")
        self.client = SimClient(setting.world, setting.host, name)
        self.uses_session = self.rng.random() < 0.5
        self.session_id = 0
        self.session_epoch = 0
        self.topic: TopicModel | None = None
        self.partition = 0
        self.offset = 0
        self.high_watermark = 0
        self.losses_seen = 0
        self.fetching = False
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        self.world.schedule(self.rng.randint(20, 200), self.tick)
        if self.setting.paused or self.fetching:
            return
        if self.topic is None or self.topic.state != PRESENT or self.rng.random() < 0.03:
            self._choose_partition()
        if self.topic is not None:
            self._fetch(self.topic)

    def _choose_partition(self) -> None:
        topics = self.setting.model.present()
        self.topic = self.rng.choice(topics) if topics else None
        self.session_id = self.session_epoch = 0
        if self.topic is not None:
            self.partition = self.rng.randrange(len(self.topic.partitions))
            self.offset = self.rng.choice((0, self.topic.partitions[self.partition].acknowledged_end))
            self.high_watermark = 0
            self.losses_seen = self.setting.data_losses

    def _fetch(self, topic: TopicModel) -> None:
        version = (
            self.rng.choice((13, 15, 17)) if topic.transient or self.uses_session else self.rng.choice((4, 11, 12, 16))
        )
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        wanted = FetchTopic(
            topic="" if by_id else topic.name,
            topic_id=topic.topic_id if by_id else bytes(16),
            partitions=[
                FetchPartition(
                    partition=self.partition,
                    fetch_offset=self.offset,
                    partition_max_bytes=self.rng.choice((1, 200, 5000, 1 << 20)),
                )
            ],
        )
        request = FetchRequest(
            max_wait_ms=self.rng.choice((0, 50, 400)),
            min_bytes=self.rng.choice((0, 1, 1, 2000)),
            max_bytes=self.rng.choice((1, 10000, 1 << 20)),
            session_id=self.session_id if self.uses_session else 0,
            session_epoch=self.session_epoch if self.uses_session else -1,
            topics=[wanted],
        )
        self.fetching = True
        asked, partition, offset = topic, self.partition, self.offset
        self.client.call(request, version, lambda response: self._on_response(asked, partition, offset, response))

    def _on_response(self, topic: TopicModel, partition: int, offset: int, response: Message | None) -> None:
        self.fetching = False
        if response is None:
            self.session_id = self.session_epoch = 0
            return
        assert isinstance(response, FetchResponse)
        if response.error_code != errors.NONE:
            if response.error_code not in TRANSIENT_ERRORS:
                raise Violation(f"a fetch is answered: {self.name} got {errors.error_name(response.error_code)}")
            self.session_id = self.session_epoch = 0
            return
        if self.uses_session:
            self.session_id = response.session_id
            self.session_epoch = self.session_epoch + 1 if response.session_id else 0
        for result in (result for topic_rows in response.responses for result in topic_rows.partitions):
            if result.partition_index == partition and topic.state == PRESENT:
                self._on_result(topic, partition, offset, result)

    def _on_result(self, topic: TopicModel, partition: int, offset: int, result: PartitionData) -> None:
        model = topic.partitions[partition]
        if result.error_code == errors.OFFSET_OUT_OF_RANGE:
            self._on_out_of_range(topic, partition, offset, result)
            return
        if result.error_code != errors.NONE:
            if result.error_code not in TRANSIENT_ERRORS:
                raise Violation(f"a fetch is answered: {self.name} got {errors.error_name(result.error_code)}")
            return
        if self.losses_seen != self.setting.data_losses:
            self.losses_seen = self.setting.data_losses
            self.high_watermark = 0
        if result.high_watermark < self.high_watermark:
            raise Violation(
                f"the high watermark never goes back: {model.name} {result.high_watermark} after {self.high_watermark}"
            )
        self.high_watermark = result.high_watermark
        data = result.records.to_bytes() if isinstance(result.records, MemoryRecords) else b""
        self._on_records(topic, partition, offset, read_batches(model.name, data))

    def _on_records(self, topic: TopicModel, partition: int, offset: int, records: list[ReadRecord]) -> None:
        model = topic.partitions[partition]
        if records and records[-1].offset < offset:
            raise Violation(f"a fetch returns what was asked for: {model.name} up to {records[-1].offset} for {offset}")
        expected = offset
        for record in records:
            if record.offset >= self.high_watermark:
                raise Violation(f"nothing above the high watermark is served: {model.name} offset {record.offset}")
            if record.offset < offset:
                continue
            if record.offset != expected:
                raise Violation(f"a fetch has no gap: {model.name} {record.offset} where {expected} was due")
            model.on_read(record.offset, record.value)
            expected += 1
        self.setting.fetched_records += expected - offset
        if self.topic is topic and self.partition == partition:
            self.offset = expected

    def _on_out_of_range(self, topic: TopicModel, partition: int, offset: int, result: PartitionData) -> None:
        """Right when the log was truncated at its start, or lost its end with the power."""
        model = topic.partitions[partition]
        if offset >= model.start_high and not model.retention and self.losses_seen == self.setting.data_losses:
            raise Violation(f"an offset that was read is in range: {model.name} {offset} of {model.acknowledged_end}")
        self.losses_seen = self.setting.data_losses
        self.high_watermark = 0
        self.offset = max(0, result.log_start_offset)
