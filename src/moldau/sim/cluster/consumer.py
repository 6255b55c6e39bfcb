"""Consumers of a simulated cluster: they read from leaders and followers, and what one of them saw stays so for all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moldau.protocol import errors
from moldau.protocol.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from moldau.protocol.messages.fetch_response import FetchResponse, PartitionData
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from moldau.protocol.messages.list_offsets_response import ListOffsetsResponse
from moldau.protocol.primitives import Message
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import split_batches
from moldau.sim.cluster.client import NOBODY, ClusterClient
from moldau.sim.kernel.world import Violation
from moldau.sim.models.partition import ReadRecord
from moldau.sim.models.replicated_topics import PRESENT, ReplicatedTopic
from moldau.sim.node.consumer import read_batches

if TYPE_CHECKING:
    from moldau.sim.cluster.world import ClusterWorld

LATEST = -1
FETCH_VERSION = 17
LIST_OFFSETS_VERSION = 8
NO_EPOCH = -1
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
    errors.FENCED_LEADER_EPOCH,
    errors.UNKNOWN_LEADER_EPOCH,
    errors.OFFSET_NOT_AVAILABLE,
    errors.REPLICA_NOT_AVAILABLE,
)


class Fetch:
    """One question, as it was asked."""

    def __init__(self, topic: ReplicatedTopic, partition: int, offset: int, node_id: int, epoch: int) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.node_id = node_id
        self.epoch = epoch


class ClusterConsumer:
    def __init__(self, setting: ClusterWorld, name: str) -> None:
        self.setting = setting
        self.world = setting.world
        self.name = name
        self.client = ClusterClient(setting, name)
        self.rng = self.client.rng
        self.rack = self.rng.choice(("", "", f"rack{self.rng.randint(1, 3)}"))
        self.likes_followers = self.rng.random() < 0.4
        self.topic: ReplicatedTopic | None = None
        self.partition = 0
        self.offset = 0
        self.latest_seen = 0
        self.preferred = NOBODY
        self.busy = False
        # The epoch of the last record that was read: the leader tells when its log has parted from it.
        self.last_epoch = NO_EPOCH
        self.world.schedule(self.rng.randint(0, 100), self.tick)

    def tick(self) -> None:
        if self.setting.finished:
            return
        self.world.schedule(self.rng.randint(30, 250), self.tick)
        if self.busy:
            return
        if self.topic is None or self.topic.state != PRESENT or self.rng.random() < 0.04:
            self._choose_partition()
        if self.topic is None:
            return
        known = self.client.leadership(self.topic.topic_id, self.partition)
        if known is None or known.leader == NOBODY:
            self.client.refresh()
        elif self.rng.random() < 0.15:
            self._list_latest(self.topic, known.leader, known.epoch)
        elif self.preferred != NOBODY:
            self._fetch(self.topic, self.preferred, NO_EPOCH)
        elif self.likes_followers and self.rng.random() < 0.5:
            self._fetch(self.topic, self.rng.choice(known.replicas), NO_EPOCH)
        else:
            self._fetch(self.topic, known.leader, known.epoch if self.rng.random() < 0.8 else NO_EPOCH)

    def _choose_partition(self) -> None:
        topics = self.setting.model.present()
        self.topic = self.rng.choice(topics) if topics else None
        self.latest_seen = 0
        self.preferred = NOBODY
        self.last_epoch = NO_EPOCH
        if self.topic is not None:
            self.partition = self.rng.randrange(len(self.topic.partitions))
            model = self.topic.partitions[self.partition]
            self.offset = self.rng.choice((model.start_high, max(model.start_high, model.acknowledged_end)))

    # Reading

    def _fetch(self, topic: ReplicatedTopic, node_id: int, epoch: int) -> None:
        wanted = FetchPartition(
            partition=self.partition,
            current_leader_epoch=epoch,
            fetch_offset=self.offset,
            last_fetched_epoch=self.last_epoch if epoch != NO_EPOCH else NO_EPOCH,
            partition_max_bytes=self.rng.choice((1, 500, 1 << 20)),
        )
        request = FetchRequest(
            max_wait_ms=self.rng.choice((0, 50, 400)),
            min_bytes=self.rng.choice((0, 1, 1, 2000)),
            session_epoch=-1,
            topics=[FetchTopic(topic_id=topic.topic_id, partitions=[wanted])],
            rack_id=self.rack,
        )
        self.busy = True
        asked = Fetch(topic, self.partition, self.offset, node_id, epoch)
        self.client.ask(node_id, request, FETCH_VERSION, lambda response: self._on_fetched(asked, response))

    def _on_fetched(self, asked: Fetch, response: Message | None) -> None:
        self.busy = False
        self.preferred = NOBODY
        if not isinstance(response, FetchResponse):
            self.client.refresh()
            return
        if response.error_code != errors.NONE:
            self._on_error(response.error_code)
            return
        for result in (result for topic_rows in response.responses for result in topic_rows.partitions):
            if asked.topic.state == PRESENT:
                self._on_result(asked, result)

    def _on_error(self, error_code: int) -> None:
        if error_code not in TRANSIENT_ERRORS:
            raise Violation(f"a fetch is answered: {self.name} got {errors.error_name(error_code)}")
        self.client.refresh()

    def _on_result(self, asked: Fetch, result: PartitionData) -> None:
        if result.error_code == errors.OFFSET_OUT_OF_RANGE:
            self._on_out_of_range(asked, result)
            return
        if result.error_code != errors.NONE:
            self._on_error(result.error_code)
            return
        if result.diverging_epoch is not None and result.diverging_epoch.end_offset >= 0:
            self._on_diverging(asked, result)
            return
        if result.preferred_read_replica >= 0:
            self.preferred = result.preferred_read_replica
        data = result.records.to_bytes() if isinstance(result.records, MemoryRecords) else b""
        records = read_batches(asked.topic.partitions[asked.partition].name, data)
        self._on_records(asked, records, result.high_watermark)
        if records and self.topic is asked.topic and self.partition == asked.partition:
            # Only a leader that this client believes in binds the leaders after it, for this client.
            epochs = [int(header.partition_leader_epoch) for header in split_batches(data, 0, len(data))]
            self.last_epoch = epochs[-1] if asked.epoch != NO_EPOCH else NO_EPOCH
            if asked.epoch != NO_EPOCH:
                self.latest_seen = max(self.latest_seen, self.offset)

    def _on_records(self, asked: Fetch, records: list[ReadRecord], high_watermark: int) -> None:
        topic = asked.topic
        model = topic.partitions[asked.partition]
        expected = asked.offset
        for record in records:
            if record.offset >= high_watermark:
                raise Violation(f"nothing above the high watermark is served: {model.name} offset {record.offset}")
            if record.offset < asked.offset:
                continue
            if record.offset != expected:
                raise Violation(f"a fetch has no gap: {model.name} {record.offset} where {expected} was due")
            if topic.trusted:
                model.on_read(record.offset, record.value)
            expected += 1
        self.setting.fetched_records += expected - asked.offset
        if self.topic is topic and self.partition == asked.partition:
            self.offset = expected

    def _on_diverging(self, asked: Fetch, result: PartitionData) -> None:
        model = asked.topic.partitions[asked.partition]
        if asked.topic.trusted:
            raise Violation(f"what was read is never cut off: {model.name} {asked.offset} {result.diverging_epoch!r}")
        self._start_over(asked, 0)

    def _on_out_of_range(self, asked: Fetch, result: PartitionData) -> None:
        """Right when the log was truncated at its start; a follower may be behind, and so may a leader that is none."""
        model = asked.topic.partitions[asked.partition]
        known = model.start_high <= asked.offset <= self.latest_seen and self.topic is asked.topic
        if asked.topic.trusted and asked.epoch != NO_EPOCH and known and self.partition == asked.partition:
            raise Violation(f"an offset that was read is in range: {model.name} {asked.offset} at {asked.node_id}")
        if asked.offset < model.start_high or not asked.topic.trusted:
            self._start_over(asked, max(0, result.log_start_offset))

    def _start_over(self, asked: Fetch, offset: int) -> None:
        if self.topic is asked.topic and self.partition == asked.partition:
            self.offset = offset
            self.last_epoch = NO_EPOCH

    # Where the log ends

    def _list_latest(self, topic: ReplicatedTopic, leader: int, epoch: int) -> None:
        wanted = ListOffsetsTopic(topic.name, [ListOffsetsPartition(self.partition, epoch, LATEST)])
        request = ListOffsetsRequest(-1, 0, [wanted])
        partition = self.partition
        self.busy = True
        self.client.ask(
            leader, request, LIST_OFFSETS_VERSION, lambda response: self._on_latest(topic, partition, response)
        )

    def _on_latest(self, topic: ReplicatedTopic, partition: int, response: Message | None) -> None:
        self.busy = False
        if not isinstance(response, ListOffsetsResponse):
            self.client.refresh()
            return
        result = response.topics[0].partitions[0]
        if result.error_code != errors.NONE:
            self._on_error(result.error_code)
            return
        if topic is not self.topic or partition != self.partition or topic.state != PRESENT or not topic.trusted:
            return
        name = topic.partitions[partition].name
        if result.offset < self.latest_seen:
            raise Violation(
                f"what a client saw as latest never shrinks: {name} {result.offset} after {self.latest_seen}"
            )
        self.latest_seen = result.offset
