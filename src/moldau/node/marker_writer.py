"""Writes transaction markers into the partitions that this broker leads, and tells when they are committed.

Used by WriteTxnMarkers and, without a request, by the coordinator on the same broker. A marker in __consumer_offsets
also ends what the group coordinator has pending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.coordinator.runtime import CoordinatorRuntime
from moldau.coordinator.shard import ACTIVE
from moldau.node.replicas import Replicas
from moldau.node.waiting import TimedWaiter, WaitingRoom
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.topic_names import GROUP_TOPIC
from moldau.records.builder import end_transaction_batch
from moldau.replication.partition import Partition
from moldau.storage.validation import COORDINATOR

ALL_IN_SYNC: Final = -1


class Marker:
    """The end of one producer's transaction, for some partitions."""

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int,
        commit: bool,
        coordinator_epoch: int,
        transaction_version: int,
        partitions: list[tuple[str, int]],
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.commit = commit
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version
        self.partitions = partitions


Results = list[dict[tuple[str, int], int]]
"""Error codes by partition, for each marker."""
Done = Callable[[Results, int], None]


class AwaitedMarker:
    def __init__(self, number: int, partition: Partition, offset: int) -> None:
        self.number = number
        self.partition = partition
        self.led_since_epoch = partition.led_since_epoch
        self.offset = offset


class MarkerWait(TimedWaiter):
    """Waits until all markers of one request are committed."""

    def __init__(self, results: Results, awaited: list[AwaitedMarker], done: Done) -> None:
        super().__init__()
        self._results = results
        self._awaited = awaited
        self._done = done

    def on_partition_moved(self, now_ms: int) -> None:
        still: list[AwaitedMarker] = []
        for one in self._awaited:
            partition = one.partition
            place = (partition.topic, partition.index)
            if not partition.is_leader or partition.led_since_epoch != one.led_since_epoch:
                self._results[one.number][place] = errors.NOT_LEADER_OR_FOLLOWER
            elif not partition.is_online():
                self._results[one.number][place] = errors.KAFKA_STORAGE_ERROR
            elif partition.high_watermark.offset < one.offset:
                still.append(one)
        self._awaited = still
        if not still and not self.finished:
            self.finished = True
            self._done(self._results, now_ms)

    def on_deadline(self, now_ms: int) -> None:
        self.finished = True
        for one in self._awaited:
            self._results[one.number][(one.partition.topic, one.partition.index)] = errors.REQUEST_TIMED_OUT
            one.partition.drop_finished_waiters()
        self._done(self._results, now_ms)


class MarkerWriter:
    def __init__(self, replicas: Replicas, groups: CoordinatorRuntime, waiting: WaitingRoom, timeout_ms: int) -> None:
        self._replicas = replicas
        self._groups = groups
        self._waiting = waiting
        self._timeout_ms = timeout_ms

    def write(self, markers: list[Marker], done: Done, now_ms: int) -> None:
        """`done` may be called inside this call."""
        results: Results = [{} for _ in markers]
        awaited: list[AwaitedMarker] = []
        for number, marker in enumerate(markers):
            for topic, index in marker.partitions:
                try:
                    partition, offset = self._append(marker, topic, index, now_ms)
                except KafkaError as error:
                    results[number][(topic, index)] = error.code
                    continue
                results[number][(topic, index)] = errors.NONE
                if partition.high_watermark.offset < offset:
                    awaited.append(AwaitedMarker(number, partition, offset))
        context = self._replicas.context
        if context.woken:
            context.serve_woken(now_ms)
        if not awaited:
            done(results, now_ms)
            return
        wait = MarkerWait(results, awaited, done)
        for one in awaited:
            one.partition.waiters.append(wait)
        self._waiting.call_at(now_ms + self._timeout_ms, wait)
        wait.on_partition_moved(now_ms)

    def _append(self, marker: Marker, topic: str, index: int, now_ms: int) -> tuple[Partition, int]:
        """The partition, and the offset that its high watermark must reach."""
        partition = self._replicas.find(topic, index)
        if partition is None:
            raise self._replicas.why_missing(topic, index)
        batch = end_transaction_batch(
            0,
            0,
            self._replicas.logs.wall.at(now_ms),
            marker.producer_id,
            marker.producer_epoch,
            marker.commit,
            marker.coordinator_epoch,
        )
        records = MemoryRecords(batch, 0, len(batch))
        result = partition.append_as_leader(records, ALL_IN_SYNC, now_ms, COORDINATOR, marker.transaction_version)
        if topic == GROUP_TOPIC:
            self._tell_groups(marker, index, result.last_offset + 1)
        return partition, result.last_offset + 1

    def _tell_groups(self, marker: Marker, index: int, end_offset: int) -> None:
        """A shard that still loads finds the marker in the log."""
        shard = self._groups.shards.get(index)
        if shard is not None and shard.state == ACTIVE:
            shard.on_marker_written(marker.producer_id, marker.producer_epoch, marker.commit, end_offset)
