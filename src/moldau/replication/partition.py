"""One partition's replicas as this broker sees them: leader state, in-sync replicas, appends, reads within bounds.

A partition object exists for every replica that the metadata places on this broker. Kafka keeps the same in
Partition.scala. Errors are KafkaError with the code the client gets.
"""

from __future__ import annotations

from typing import Final

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords, Records
from moldau.replication.high_watermark import HighWatermark
from moldau.replication.waiter import PartitionWaiter
from moldau.storage.log import AppendResult, Log

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
CONSUMER_REPLICA: Final = -1

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5
EARLIEST_PENDING_UPLOAD_TIMESTAMP: Final = -6


class PartitionRead:
    """What one partition contributes to a fetch."""

    def __init__(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        self.error = 0
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records: Records | None = None
        self.aborted: list[tuple[int, int]] | None = None
        self.diverging_epoch = NO_EPOCH
        self.diverging_end_offset = -1


class FoundOffset:
    """The answer to one ListOffsets question."""

    def __init__(self, offset: int, timestamp: int, leader_epoch: int) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.leader_epoch = leader_epoch


class Partition:
    """See the module. `log` is None while the partition's directory is offline."""

    def __init__(self, topic: str, topic_id: bytes, index: int, broker_id: int, log: Log | None) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.broker_id = broker_id
        self.log = log
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.leader_epoch_start_offset = 0
        self.replicas: list[int] = []
        self.in_sync_replicas: list[int] = []
        self.high_watermark = HighWatermark()
        self.waiters: list[PartitionWaiter] = []

    # Leadership

    @property
    def is_leader(self) -> bool:
        return self.leader == self.broker_id

    def update(
        self, leader: int, leader_epoch: int, partition_epoch: int, replicas: list[int], isr: list[int], now_ms: int
    ) -> None:
        """Takes over what the metadata says; older news than what is known already is ignored."""
        if partition_epoch < self.partition_epoch:
            return
        new_epoch = leader_epoch > self.leader_epoch
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.in_sync_replicas = isr
        if leader == self.broker_id and new_epoch and self.log is not None:
            self._begin_leader_epoch(self.log)
        self.advance_high_watermark(now_ms)
        if new_epoch:
            self.notify_waiters(now_ms)

    def _begin_leader_epoch(self, log: Log) -> None:
        self.leader_epoch_start_offset = log.log_end_offset
        log.leader_epochs.begin(self.leader_epoch, log.log_end_offset)

    def check_leader(self, current_leader_epoch: int) -> Log:
        """The log, when this broker leads the partition in the epoch the client believes in."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(errors.FENCED_LEADER_EPOCH)
            raise KafkaError(errors.UNKNOWN_LEADER_EPOCH)
        if self.leader != self.broker_id:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        return self.check_online()

    def check_online(self) -> Log:
        log = self.log
        if log is None:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR)
        return log

    # Writing

    def append_as_leader(self, records: MemoryRecords, acks: int, now_ms: int, origin: int) -> AppendResult:
        """Appends what a client or coordinator sent. Waiting for replicas is the caller's business."""
        log = self.check_leader(NO_EPOCH)
        if acks == -1 and len(self.in_sync_replicas) < self.min_in_sync_replicas(log):
            raise KafkaError(
                errors.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR : {len(self.in_sync_replicas)} is insufficient to satisfy the min.isr "
                f"requirement of {self.min_in_sync_replicas(log)} for partition {self.topic}-{self.index}",
            )
        result = log.append_as_leader(records, self.leader_epoch, now_ms, origin)
        self.advance_high_watermark(now_ms)
        return result

    def min_in_sync_replicas(self, log: Log) -> int:
        """`min.insync.replicas`, but never more than there are replicas (KIP-966)."""
        return min(log.config.min_insync_replicas, max(1, len(self.replicas)))

    def advance_high_watermark(self, now_ms: int) -> None:
        log = self.log
        if log is None or self.leader != self.broker_id:
            return
        end_offset = log.log_end_offset
        if log.flush_target > log.recovery_point:
            # Where `flush.messages` asks for a flush, nobody reads or is told about records that it has not reached.
            end_offset = log.recovery_point
        # The leader is the only in-sync replica this broker knows the position of.
        if len(self.in_sync_replicas) == 1 and self.high_watermark.advance_to(end_offset) and self.waiters:
            self.notify_waiters(now_ms)

    def on_durable(self, now_ms: int) -> None:
        """A flush of the log is over: whoever waited for it, and for the high watermark behind it, is told."""
        before = self.high_watermark.offset
        self.advance_high_watermark(now_ms)
        if self.high_watermark.offset == before:
            self.notify_waiters(now_ms)

    def is_durable(self, offset: int) -> bool:
        """Whether the records below `offset` are flushed, as far as `flush.messages` asks for that."""
        log = self.log
        return log is not None and log.is_durable(offset)

    def is_online(self) -> bool:
        return self.log is not None and not self.log.log_directory.failed

    def delete_records(self, offset: int, now_ms: int) -> int:
        """Moves the log start to `offset` (-1: the high watermark); returns the low watermark."""
        log = self.check_leader(NO_EPOCH)
        if not log.config.delete:
            raise KafkaError(errors.POLICY_VIOLATION)
        target = self.high_watermark.offset if offset == -1 else offset
        if target < 0 or target > self.high_watermark.offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        log.advance_log_start(target)
        self.notify_waiters(now_ms)
        return log.log_start_offset

    # Reading

    def last_stable_offset(self, log: Log) -> int:
        return log.last_stable_offset(self.high_watermark.offset)

    def read(
        self,
        fetch_offset: int,
        max_bytes: int,
        min_one_batch: bool,
        isolation: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> PartitionRead:
        """A consumer's read, bounded by the high watermark or the last stable offset."""
        log = self.check_leader(current_leader_epoch)
        high_watermark = self.high_watermark.offset
        stable = log.last_stable_offset(high_watermark)
        result = PartitionRead(high_watermark, stable, log.log_start_offset)
        if last_fetched_epoch != NO_EPOCH and self._diverges(log, fetch_offset, last_fetched_epoch, result):
            return result
        if fetch_offset < log.log_start_offset or fetch_offset > log.log_end_offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        bound = stable if isolation == READ_COMMITTED else high_watermark
        if fetch_offset < bound:
            found = log.read(fetch_offset, max_bytes, bound, min_one_batch)
            result.records = found.records
        if isolation == READ_COMMITTED:
            result.aborted = log.aborted_transactions(fetch_offset, bound)
        return result

    def _diverges(self, log: Log, fetch_offset: int, last_fetched_epoch: int, result: PartitionRead) -> bool:
        """The client's log parted from this one (KIP-320): tells it where."""
        epoch, end_offset = log.leader_epochs.end_offset_for_epoch(last_fetched_epoch, log.log_end_offset)
        if end_offset == -1:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            result.diverging_epoch = epoch
            result.diverging_end_offset = end_offset
            return True
        return False

    def end_offset_for_epoch(self, current_leader_epoch: int, leader_epoch: int) -> tuple[int, int]:
        log = self.check_leader(current_leader_epoch)
        return log.leader_epochs.end_offset_for_epoch(leader_epoch, log.log_end_offset)

    def find_offset(self, timestamp: int, isolation: int, current_leader_epoch: int, replica_id: int) -> FoundOffset:
        """ListOffsets: by timestamp, or one of the special values. Offset -1 means there is none."""
        log = self.check_leader(current_leader_epoch)
        if replica_id == CONSUMER_REPLICA:
            bound = self.last_stable_offset(log) if isolation == READ_COMMITTED else self.high_watermark.offset
        else:
            bound = log.log_end_offset
        if timestamp == LATEST_TIMESTAMP:
            return FoundOffset(bound, -1, self.leader_epoch)
        if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
            start = log.log_start_offset
            return FoundOffset(start, -1, log.leader_epochs.epoch_for_offset(start))
        if timestamp in (LATEST_TIERED_TIMESTAMP, EARLIEST_PENDING_UPLOAD_TIMESTAMP):
            return FoundOffset(-1, -1, NO_EPOCH)
        if timestamp == MAX_TIMESTAMP:
            found = log.offset_of_max_timestamp(bound)
        else:
            found = log.offset_for_timestamp(timestamp, bound)
        if found is None:
            return FoundOffset(-1, -1, NO_EPOCH)
        return FoundOffset(found[0], found[1], found[2])

    # Waiting

    def notify_waiters(self, now_ms: int) -> None:
        """Tells everyone who waits for this partition that something moved."""
        waiters = self.waiters
        if not waiters:
            return
        self.waiters = []
        for waiter in waiters:
            if not waiter.finished:
                waiter.on_partition_moved(now_ms)
        for waiter in waiters:
            if not waiter.finished:
                self.waiters.append(waiter)

    def drop_finished_waiters(self) -> None:
        self.waiters = [waiter for waiter in self.waiters if not waiter.finished]
