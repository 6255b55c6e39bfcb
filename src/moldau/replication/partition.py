"""One partition's replicas as this broker sees them: leader state, in-sync replicas, appends, reads within bounds.

A partition object exists for every replica that the metadata places on this broker. Kafka keeps the same in
Partition.scala. Errors are KafkaError with the code the client gets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.metrics.topic_counts import BrokerCounts, TopicCounts
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords, Records
from moldau.replication.high_watermark import HighWatermark
from moldau.replication.in_sync import InSyncReplicas
from moldau.replication.leader import UNKNOWN, FollowerPosition, LeaderState, OtherBrokers
from moldau.replication.replica_selector import NO_PREFERENCE, select_in_rack
from moldau.replication.throttle import ReplicationQuota, is_throttled
from moldau.replication.waiter import LogListener, PartitionWaiter
from moldau.storage.log import Log
from moldau.storage.log_results import AppendResult

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
CONSUMER_REPLICA: Final = -1
DEBUGGING_REPLICA: Final = -2

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
        self.preferred_read_replica = NO_PREFERENCE
        self.counts: TopicCounts | None = None
        """Where its bytes are counted when they leave."""


class FoundOffset:
    """The response to one ListOffsets question."""

    def __init__(self, offset: int, timestamp: int, leader_epoch: int) -> None:
        self.offset = offset
        self.timestamp = timestamp
        self.leader_epoch = leader_epoch


class ReplicationContext:
    """What all partitions of one broker share: what they know of other brokers, and whom they tell about new ISRs."""

    def __init__(self) -> None:
        self.brokers = OtherBrokers()
        # Partitions that want their ISR changed, until somebody takes them to the controller.
        self.proposals: list[Partition] = []
        self.on_proposal: Callable[[int], None] | None = None
        self.leader_quota = ReplicationQuota()
        # Whether consumers are sent to a replica in their rack (`replica.selector.class`).
        self.selects_by_rack = False
        self.sessions_opened = 0  # so that a follower's later fetch session is known from an earlier one
        # Parked fetches of followers that have something to read since the last append.
        self.woken: list[PartitionWaiter] = []
        self.counts = BrokerCounts()

    def serve_woken(self, now_ms: int) -> None:
        """Whoever appends calls this when a request is done: one response then has all that it brought."""
        woken, self.woken = self.woken, []
        for waiter in woken:
            if not waiter.finished:
                waiter.on_partition_moved(now_ms)

    def propose(self, partition: Partition, now_ms: int) -> None:
        self.proposals.append(partition)
        if self.on_proposal is not None:
            self.on_proposal(now_ms)


class Partition:
    """See the module. `log` is None while the partition's directory is offline."""

    def __init__(
        self,
        topic: str,
        topic_id: bytes,
        index: int,
        broker_id: int,
        log: Log | None,
        context: ReplicationContext | None = None,
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.index = index
        self.broker_id = broker_id
        self.log = log
        self.context = ReplicationContext() if context is None else context
        self.counts = TopicCounts()
        """Those of its topic, which all partitions of it share that this broker has."""
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.partition_epoch = NO_EPOCH
        self.led_since_epoch = NO_EPOCH  # this broker has led from that epoch on, without a break
        self.leader_epoch_start_offset = 0
        self.replicas: list[int] = []
        self.adding_replicas: list[int] = []
        self.is_reassigning = False
        self.in_sync_replicas: list[int] = []
        # None while this broker does not lead, or is the only replica.
        self.leader_state: LeaderState | None = None
        self.high_watermark = HighWatermark()
        self.waiters: list[PartitionWaiter] = []
        self.listeners: list[LogListener] = []

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
        # Where epochs were passed over, as in a snapshot of the metadata, somebody else may have led in between.
        was_leader = self.is_leader and leader_epoch <= self.leader_epoch + 1
        new_epoch = leader_epoch > self.leader_epoch
        assert leader_epoch >= self.leader_epoch, f"{self} goes back to leader epoch {leader_epoch}"
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.partition_epoch = partition_epoch
        self.replicas = replicas
        self.in_sync_replicas = isr
        if leader == self.broker_id and not was_leader:
            self.led_since_epoch = leader_epoch
        if leader == self.broker_id and new_epoch and self.log is not None:
            self._begin_leader_epoch(self.log)
        self._update_leader_state(was_leader, new_epoch, now_ms)
        self.advance_high_watermark(now_ms)
        if new_epoch:
            self.notify_changed(now_ms)
        elif self.waiters and self.leader_state is not None:
            self.notify_waiters(now_ms)  # the low watermark and the number of in-sync replicas may be others
        if self.leader_state is not None:
            self.maybe_expand_in_sync_replicas(now_ms)

    def _begin_leader_epoch(self, log: Log) -> None:
        high_watermark = self.high_watermark.offset
        assert log.log_start_offset <= high_watermark <= log.log_end_offset, f"{self} leads with {log}"
        self.leader_epoch_start_offset = log.log_end_offset
        log.leader_epochs.begin(self.leader_epoch, log.log_end_offset)

    def _update_leader_state(self, was_leader: bool, new_epoch: bool, now_ms: int) -> None:
        if self.leader != self.broker_id or (len(self.replicas) <= 1 and len(self.in_sync_replicas) <= 1):
            self.leader_state = None
            return
        state = self.leader_state
        if state is None or not was_leader:
            state = LeaderState(self.broker_id, InSyncReplicas(self.in_sync_replicas, self.partition_epoch))
            self.leader_state = state
        before = state.in_sync.committed
        state.in_sync.commit(self.in_sync_replicas, self.partition_epoch)
        state.drop(before, now_ms)
        state.assign(self.replicas, now_ms)
        if new_epoch:
            if state.in_sync.is_changing:
                state.in_sync.withdraw()  # the controller refuses what was asked in an older epoch
            if self.log is not None:
                state.begin_epoch(self.log.log_end_offset, now_ms)

    def check_leader(self, current_leader_epoch: int) -> Log:
        """The log, when this broker leads the partition in the epoch the client believes in."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(errors.FENCED_LEADER_EPOCH)
            raise KafkaError(errors.UNKNOWN_LEADER_EPOCH)
        if self.leader != self.broker_id:
            raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
        return self.check_online()

    def check_replica(self, current_leader_epoch: int) -> Log:
        """The log, whether this broker leads or follows, in the epoch the client believes in."""
        if current_leader_epoch != NO_EPOCH and current_leader_epoch != self.leader_epoch:
            return self.check_leader(current_leader_epoch)
        return self.check_online()

    def check_online(self) -> Log:
        log = self.log
        if log is None:
            raise KafkaError(errors.KAFKA_STORAGE_ERROR)
        return log

    # Writing

    def append_as_leader(
        self, records: MemoryRecords, acks: int, now_ms: int, origin: int, transaction_version: int = 0
    ) -> AppendResult:
        """Appends what a client or coordinator sent. Waiting for replicas is the caller's business."""
        counts = self.counts
        counts.produce_requests += 1
        log = self.check_leader(NO_EPOCH)
        if acks == -1 and len(self.in_sync_replicas) < self.min_in_sync_replicas(log):
            raise KafkaError(
                errors.NOT_ENOUGH_REPLICAS,
                f"The size of the current ISR : {len(self.in_sync_replicas)} is insufficient to satisfy the min.isr "
                f"requirement of {self.min_in_sync_replicas(log)} for partition {self.topic}-{self.index}",
            )
        try:
            result = log.append_as_leader(records, self.leader_epoch, now_ms, origin, transaction_version)
        except KafkaError as error:
            self._count_refused(error, records.size)
            raise
        counts.bytes_in += records.size
        counts.messages_in += result.last_offset - result.first_offset + 1
        for listener in self.listeners:
            listener.on_appended(now_ms)
        self.advance_high_watermark(now_ms)
        return result

    def _count_refused(self, error: KafkaError, size: int) -> None:
        """Too large or damaged is the client's bytes rejected; what else is wrong with records is a failed request."""
        code = error.code
        if code in (errors.MESSAGE_TOO_LARGE, errors.RECORD_LIST_TOO_LARGE, errors.CORRUPT_MESSAGE):
            self.counts.bytes_rejected += size
            if code == errors.CORRUPT_MESSAGE:
                self.context.counts.invalid_crc_records += 1
        elif code != errors.KAFKA_STORAGE_ERROR and code != errors.NOT_LEADER_OR_FOLLOWER:
            self.counts.failed_produce_requests += 1
            if code in (errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.DUPLICATE_SEQUENCE_NUMBER):
                self.context.counts.invalid_offset_or_sequence_records += 1

    def min_in_sync_replicas(self, log: Log) -> int:
        """`min.insync.replicas`, but never more than there are replicas (KIP-966)."""
        return min(log.config.min_insync_replicas, max(1, len(self.replicas)))

    def advance_high_watermark(self, now_ms: int) -> None:
        """The one way in which a leader's high watermark moves."""
        log = self.log
        if log is None or self.leader != self.broker_id:
            return
        end_offset = log.log_end_offset
        if log.flush_target > log.recovery_point:
            # Where `flush.messages` asks for a flush, nobody reads or is told about records that it has not reached.
            end_offset = log.recovery_point
        state = self.leader_state
        if state is None:
            if len(self.in_sync_replicas) != 1:
                return
        else:
            if len(state.in_sync.committed) < self.min_in_sync_replicas(log):
                return  # what is committed must be on enough replicas to survive (KIP-966)
            end_offset = state.committed_end(log.log_end_offset, end_offset, now_ms, self.context.brokers)
        if self.high_watermark.advance_to(end_offset):
            assert end_offset <= log.log_end_offset, f"{self} is above the end of {log}"
            log.producers.on_high_watermark(end_offset)
            if self.waiters:
                self.notify_waiters(now_ms)
            for listener in self.listeners:
                listener.on_high_watermark(now_ms)

    # Followers and who of them is in sync

    def check_follower_fetch(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
    ) -> tuple[Log, FollowerPosition, tuple[int, int] | None]:
        """Whether a follower may fetch like this: the log, its position, and where its log diverges from this one, if
        it does. Asked when its place is noted and whenever it is read for: a fetch that waits may have become
        another."""
        log = self.check_leader(current_leader_epoch)
        state = self.leader_state
        follower = None if state is None else state.find(replica_id)
        if follower is None:
            # Who knows the epoch has most likely heard of a reassignment earlier than this broker.
            raise KafkaError(
                errors.NOT_LEADER_OR_FOLLOWER if current_leader_epoch == NO_EPOCH else errors.UNKNOWN_LEADER_EPOCH
            )
        follower.check_broker_epoch(broker_epoch)
        if last_fetched_epoch != NO_EPOCH:
            divergence = self._find_divergence(log, fetch_offset, last_fetched_epoch)
            if divergence is not None:
                return log, follower, divergence
        if fetch_offset < log.log_start_offset or fetch_offset > log.log_end_offset:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        return log, follower, None

    def on_follower_fetch(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        log_start_offset: int,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        now_ms: int,
    ) -> FollowerPosition:
        """A follower has everything below `fetch_offset`. Raises what `read_as_follower` will raise."""
        log, follower, divergence = self.check_follower_fetch(
            replica_id, broker_epoch, fetch_offset, current_leader_epoch, last_fetched_epoch
        )
        if divergence is not None:
            follower.log_end_offset = UNKNOWN  # its log is about to be truncated: how far it really is is not known yet
            return follower
        before = follower.log_end_offset
        low_before = follower.log_start_offset
        follower.update(fetch_offset, log_start_offset, log.log_end_offset, broker_epoch, now_ms)
        state = self.leader_state
        if (
            state is not None
            and len(state.in_sync.committed) <= len(state.followers)
            and state.may_join(
                follower, self.high_watermark.offset, self.leader_epoch_start_offset, self.context.brokers
            )
        ):
            self._propose_adding(state, replica_id, now_ms)
        if fetch_offset != before:
            self.advance_high_watermark(now_ms)
        if log_start_offset > low_before and self.waiters:
            self.notify_waiters(now_ms)  # DeleteRecords waits for the least log start
        return follower

    def _propose_adding(self, state: LeaderState, replica_id: int, now_ms: int) -> None:
        state.in_sync.propose_adding(replica_id)
        state.note_epochs()
        self.context.propose(self, now_ms)

    def maybe_expand_in_sync_replicas(self, now_ms: int) -> bool:
        """Asks for a follower to be added that has had everything for a while, but could not join so far."""
        state = self.leader_state
        if state is None or self.log is None:
            return False
        follower = state.find_joinable(
            self.high_watermark.offset, self.leader_epoch_start_offset, now_ms, self.context.brokers
        )
        if follower is None:
            return False
        self._propose_adding(state, follower.replica_id, now_ms)
        return True

    def maybe_shrink_in_sync_replicas(self, now_ms: int) -> bool:
        """Asks for followers that lag for too long to be taken out of the ISR."""
        state, log = self.leader_state, self.log
        if state is None or log is None or state.in_sync.is_changing:
            return False
        lagging = state.lagging(log.log_end_offset, now_ms, self.context.brokers.lag_max_ms)
        if not lagging:
            return False
        state.in_sync.propose_removing(lagging)
        state.note_epochs()
        self.context.propose(self, now_ms)
        return True

    def on_proposal_accepted(
        self,
        sent_partition_epoch: int,
        leader_epoch: int,
        partition_epoch: int,
        in_sync_replicas: list[int],
        now_ms: int,
    ) -> None:
        """The controller's response to a proposal: it counts unless the metadata has told newer things already."""
        state = self.leader_state
        if state is None or leader_epoch != self.leader_epoch or partition_epoch < self.partition_epoch:
            return
        if partition_epoch == sent_partition_epoch:
            state.in_sync.withdraw()  # nothing to change: it was so already
        elif partition_epoch > self.partition_epoch and len(in_sync_replicas) < len(state.in_sync.committed):
            # Fewer replicas commit from now on. Whether they are enough depends on settings that may have changed
            # before and are still on their way here: the metadata brings both, in order.
            return
        elif state.in_sync.commit(in_sync_replicas, partition_epoch):
            self.partition_epoch = partition_epoch
            self.in_sync_replicas = in_sync_replicas
        self.advance_high_watermark(now_ms)
        self.maybe_expand_in_sync_replicas(now_ms)

    def on_proposal_refused(self, leader_epoch: int, sent_partition_epoch: int, now_ms: int) -> None:
        """The controller did not do, and will not do, what was asked at this partition epoch."""
        state = self.leader_state
        if state is not None and leader_epoch == self.leader_epoch and sent_partition_epoch == self.partition_epoch:
            state.in_sync.withdraw()
            self.advance_high_watermark(now_ms)

    def low_watermark(self, log: Log) -> int:
        """Below it no replica on a living broker has records any more."""
        state = self.leader_state
        if state is None:
            return log.log_start_offset
        return state.low_watermark(log.log_start_offset, self.context.brokers.alive)

    def has_enough_in_sync_replicas(self) -> bool:
        log = self.log
        return log is not None and len(self.in_sync_replicas) >= self.min_in_sync_replicas(log)

    # Durability

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
        for listener in self.listeners:
            listener.on_log_start(now_ms)
        self.context.serve_woken(now_ms)
        return self.low_watermark(log)

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
        only_leader: bool = True,
    ) -> PartitionRead:
        """A consumer's read, bounded by the high watermark or the last stable offset, here as the leader or a follower
        knows them."""
        counts = self.counts
        counts.fetch_requests += 1
        if only_leader or self.leader == self.broker_id:
            log = self.check_leader(current_leader_epoch)
        else:
            log = self.check_replica(current_leader_epoch)
        high_watermark = self.high_watermark.offset
        stable = log.last_stable_offset(high_watermark)
        result = PartitionRead(high_watermark, stable, log.log_start_offset)
        if last_fetched_epoch != NO_EPOCH:
            divergence = self._find_divergence(log, fetch_offset, last_fetched_epoch)
            if divergence is not None:
                result.diverging_epoch, result.diverging_end_offset = divergence
                return result
        if fetch_offset < log.log_start_offset or fetch_offset > log.log_end_offset:
            if fetch_offset > log.log_end_offset and self.leader != self.broker_id:
                raise KafkaError(errors.OFFSET_NOT_AVAILABLE)  # the leader most likely has it already (KIP-392)
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        bound = stable if isolation == READ_COMMITTED else high_watermark
        if isolation == READ_COMMITTED:
            result.aborted = []
        if fetch_offset < bound:
            found = log.read(fetch_offset, max_bytes, bound, min_one_batch)
            result.records = found.records
            result.counts = counts
            if isolation == READ_COMMITTED:
                result.aborted = log.aborted_within(fetch_offset, found)
        return result

    def find_preferred_replica(self, rack: str, fetch_offset: int) -> int:
        """The follower that a consumer in this rack should read from instead, -1 if there is none."""
        state = self.leader_state
        if state is None:
            return NO_PREFERENCE
        racks = self.context.brokers.racks
        return select_in_rack(state, rack, racks, racks.get(self.broker_id, ""), fetch_offset)

    def redirect(self, log: Log, preferred: int) -> PartitionRead:
        """No records, but where they should be read."""
        high_watermark = self.high_watermark.offset
        result = PartitionRead(high_watermark, log.last_stable_offset(high_watermark), log.log_start_offset)
        result.preferred_read_replica = preferred
        return result

    def read_as_follower(
        self,
        replica_id: int,
        broker_epoch: int,
        fetch_offset: int,
        max_bytes: int,
        *,
        min_one_batch: bool,
        current_leader_epoch: int,
        last_fetched_epoch: int,
        now_ms: int,
    ) -> PartitionRead:
        """A follower's read, up to the end of the log. One that is held back by a throttle gets no records now."""
        self.counts.fetch_requests += 1
        log, _, divergence = self.check_follower_fetch(
            replica_id, broker_epoch, fetch_offset, current_leader_epoch, last_fetched_epoch
        )
        high_watermark = self.high_watermark.offset
        result = PartitionRead(high_watermark, log.last_stable_offset(high_watermark), log.log_start_offset)
        if divergence is not None:
            result.diverging_epoch, result.diverging_end_offset = divergence
        elif fetch_offset < log.log_end_offset:
            if log.config.leader_throttled_replicas and self._is_held_back(log, replica_id, now_ms):
                return result
            result.records = log.read(fetch_offset, max_bytes, log.log_end_offset, min_one_batch).records
        return result

    def count_replicated(self, size: int, replica_id: int) -> None:
        """Records that leave for a follower."""
        counts = self.context.counts
        counts.replication_bytes_out += size
        if replica_id in self.adding_replicas:
            counts.reassignment_bytes_out += size

    def count_followed(self, size: int) -> None:
        """Records that this broker has fetched from the leader."""
        counts = self.context.counts
        counts.replication_bytes_in += size
        if self.broker_id in self.adding_replicas:
            counts.reassignment_bytes_in += size

    def is_throttled_as_leader(self) -> bool:
        log = self.log
        return log is not None and is_throttled(log.config.leader_throttled_replicas, self.index, self.broker_id)

    def _is_held_back(self, log: Log, replica_id: int, now_ms: int) -> bool:
        if replica_id in self.in_sync_replicas or not self.is_throttled_as_leader():
            return False
        return self.context.leader_quota.is_exceeded(now_ms)

    def _find_divergence(self, log: Log, fetch_offset: int, last_fetched_epoch: int) -> tuple[int, int] | None:
        """The largest epoch both logs may share and where it ends here, if the reader's log diverges from this one
        (KIP-320, KIP-595)."""
        if last_fetched_epoch == log.leader_epochs.latest_epoch and fetch_offset <= log.log_end_offset:
            return None
        epoch, end_offset = log.leader_epochs.end_offset_for_epoch(last_fetched_epoch, log.log_end_offset)
        if end_offset == -1:
            raise KafkaError(errors.OFFSET_OUT_OF_RANGE)
        if epoch < last_fetched_epoch or end_offset < fetch_offset:
            return epoch, end_offset
        return None

    def end_offset_for_epoch(self, current_leader_epoch: int, leader_epoch: int) -> tuple[int, int]:
        log = self.check_leader(current_leader_epoch)
        return log.leader_epochs.end_offset_for_epoch(leader_epoch, log.log_end_offset)

    def find_offset(self, timestamp: int, isolation: int, current_leader_epoch: int, replica_id: int) -> FoundOffset:
        """ListOffsets: by timestamp, or one of the special values. Offset -1 means there is none."""
        if replica_id == DEBUGGING_REPLICA:
            log = self.check_replica(current_leader_epoch)
        else:
            log = self.check_leader(current_leader_epoch)
        is_behind = False
        if replica_id == CONSUMER_REPLICA:
            bound = self.last_stable_offset(log) if isolation == READ_COMMITTED else self.high_watermark.offset
            # What was committed before this leader was elected may lie above what it knows to be committed.
            is_behind = self.high_watermark.offset < self.leader_epoch_start_offset
        else:
            bound = log.log_end_offset
        if timestamp == LATEST_TIMESTAMP:
            if is_behind:
                raise KafkaError(errors.OFFSET_NOT_AVAILABLE)
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
            if is_behind:
                raise KafkaError(errors.OFFSET_NOT_AVAILABLE)
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

    def notify_changed(self, now_ms: int) -> None:
        """The leader, its epoch or the log itself is another one."""
        listeners, self.listeners = self.listeners, []
        for listener in listeners:
            listener.on_detached(now_ms)
        self.notify_waiters(now_ms)
        if self.context.woken:
            self.context.serve_woken(now_ms)

    def drop_finished_waiters(self) -> None:
        self.waiters = [waiter for waiter in self.waiters if not waiter.finished]

    def __repr__(self) -> str:
        return (
            f"Partition({self.topic}-{self.index}, leader {self.leader} in epoch {self.leader_epoch}, high watermark "
            f"{self.high_watermark.offset})"
        )
