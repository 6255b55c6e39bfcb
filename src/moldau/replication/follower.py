"""One partition that this broker follows: what its next fetch says, and what the leader's response does to its log.

A follower always fetches from the end of its own log and says which epoch wrote the last record there. A response
either has records that go on from that place, or tells where the two logs diverge (KIP-595); then the log is truncated
to what both have and the fetch is made again. Nothing is truncated by the high watermark (KIP-101, 279). Kafka:
AbstractFetcherThread, ReplicaFetcherThread.
"""

from __future__ import annotations

import logging
from typing import Final

from librt.strings import read_i32_be, read_i64_be

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchPartition
from moldau.protocol.messages.fetch_response import PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import CorruptBatch
from moldau.replication.partition import Partition
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager

FETCHING: Final = 0
"""Part of the next fetch."""
TRUNCATING: Final = 1
"""Its end is not within the leader's log: where that begins and ends must be asked before anything is truncated."""
DELAYED: Final = 2
"""Something went wrong: fetched again at `delayed_until_ms`."""
FAILED: Final = 3
"""Not fetched until the metadata names a new leader epoch, or the node starts again."""

STATES: Final = {FETCHING: "fetching", TRUNCATING: "truncating", DELAYED: "delayed", FAILED: "failed"}

UNKNOWN_LAG: Final = -1
EPOCH_FIELD: Final = 12
"""Where a batch has the epoch of the leader that it was written by."""
FIRST_DELAY_MS: Final = 20
"""A leader that has not heard of its leadership yet will do so soon; it is asked again in growing steps."""

NOT_YET_LEADER: Final = (
    errors.UNKNOWN_LEADER_EPOCH,
    errors.NOT_LEADER_OR_FOLLOWER,
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
)

logger = logging.getLogger("moldau.replication")


class Follower:
    """See the module. The fetcher that sends its fetches keeps the `told` fields and `in_session`."""

    def __init__(self, partition: Partition, logs: LogManager) -> None:
        self.partition = partition
        self.topic_id = partition.topic_id
        self.index = partition.index
        self.logs = logs
        self.leader_epoch = -1
        self.state = FAILED
        self.delayed_until_ms = 0
        self.errors_in_a_row = 0
        self.lag = UNKNOWN_LAG
        # What the leader was told last, and whether its session with this broker has the partition.
        self.in_session = False
        self.queued = False
        self.sent_offset = -1
        self.sent_leader_epoch = -1
        self.sent_last_epoch = -1
        self.sent_log_start = -1
        self.sent_in_request = -1  # the number of the request that told it

    def begin(self, leader_epoch: int) -> None:
        """Follows the leader of this epoch from now on; responses to what was asked before no longer count."""
        self.leader_epoch = leader_epoch
        self.errors_in_a_row = 0
        self.lag = UNKNOWN_LAG
        self.sent_leader_epoch = -1
        self.state = FETCHING if self.partition.is_online() else FAILED

    def stop(self) -> None:
        self.state = FAILED

    # What the next fetch says

    def must_send(self) -> bool:
        """Whether the leader believes something else than what is so now."""
        log = self.partition.log
        if log is None:
            return False
        return (
            not self.in_session
            or log.log_end_offset != self.sent_offset
            or self.leader_epoch != self.sent_leader_epoch
            or log.leader_epochs.latest_epoch != self.sent_last_epoch
            or log.log_start_offset != self.sent_log_start
        )

    def fetch_partition(self, log: Log, max_bytes: int, request_number: int) -> FetchPartition:
        """This partition's part of the next fetch."""
        self.sent_in_request = request_number
        self.sent_offset = log.log_end_offset
        self.sent_leader_epoch = self.leader_epoch
        self.sent_last_epoch = log.leader_epochs.latest_epoch
        self.sent_log_start = log.log_start_offset
        return FetchPartition(
            self.index,
            self.sent_leader_epoch,
            self.sent_offset,
            self.sent_last_epoch,
            self.sent_log_start,
            max_bytes,
        )

    # What a response does

    def take(self, data: PartitionData, now_ms: int, backoff_ms: int) -> bool:
        """Takes over what the leader responded; True when this log or its high watermark moved."""
        log = self.partition.log
        if self.state != FETCHING or log is None or self.sent_leader_epoch != self.leader_epoch:
            return False  # asked in another life: the leader changed meanwhile
        if log.holds > 0:
            return False  # it is asked for again when the log takes records
        try:
            if data.error_code != 0:
                self._on_error(data.error_code, now_ms, backoff_ms)
                return False
            if log.log_end_offset != self.sent_offset:
                return False
            if data.diverging_epoch.end_offset >= 0 or data.diverging_epoch.epoch >= 0:
                self._truncate_to_divergence(
                    log, data.diverging_epoch.epoch, data.diverging_epoch.end_offset, now_ms, backoff_ms
                )
                return True
            return self._append(log, data, now_ms, backoff_ms)
        except KafkaError as error:
            self._on_own_failure(log, error, now_ms, backoff_ms)
            return False
        except CorruptBatch as damage:
            self._on_own_failure(log, KafkaError(errors.CORRUPT_MESSAGE, str(damage)), now_ms, backoff_ms)
            return False

    def _append(self, log: Log, data: PartitionData, now_ms: int, backoff_ms: int) -> bool:
        partition = self.partition
        records = data.records
        moved = False
        if records is not None and records.size > 0:
            assert isinstance(records, MemoryRecords)
            if self._cannot_be_compared(log, data.log_start_offset, records):
                self.logs.truncate_fully_and_start_at(log, log.log_end_offset, now_ms)
                self._lower_high_watermark(log)
                return True
            if log.log_end_offset == log.log_start_offset:
                self._maybe_start_earlier(log, records, now_ms)
            if log.append_as_follower(records, now_ms, self.leader_epoch) is None:
                # Only records of an epoch that this broker has not heard of, or less than a batch.
                self.delay(now_ms, backoff_ms)
                return False
            partition.count_followed(records.size)
            moved = True
        self.errors_in_a_row = 0
        end_offset = log.log_end_offset
        high_watermark = data.high_watermark
        self.lag = high_watermark - end_offset if high_watermark > end_offset else 0
        if partition.high_watermark.advance_to(high_watermark if high_watermark < end_offset else end_offset):
            log.producers.on_high_watermark(partition.high_watermark.offset)
            moved = True
        if data.log_start_offset > log.log_start_offset:
            log.advance_log_start(min(data.log_start_offset, end_offset))
            moved = True
        return moved

    def _cannot_be_compared(self, log: Log, leader_log_start: int, records: MemoryRecords) -> bool:
        """Whether the leader's log begins where this one ends, with a later epoch: the leader cannot tell what it has
        deleted from what it never had. All that is here lies below the log's start then; it goes, as a crash may take
        the start offset back and let it be served."""
        if leader_log_start != log.log_end_offset or log.base_offsets[0] == leader_log_start:
            return False
        if records.size < EPOCH_FIELD + 4:
            return False
        return int(read_i32_be(records.data, records.start + EPOCH_FIELD)) > log.leader_epochs.latest_epoch

    def _maybe_start_earlier(self, log: Log, records: MemoryRecords, now_ms: int) -> None:
        """The leader's log may begin within a batch: an empty log that was to begin there begins with the batch."""
        if records.size < 8:
            return
        first_offset = read_i64_be(records.data, records.start)
        if 0 <= first_offset < log.log_end_offset:
            self.logs.start_empty_log_at(log, int(first_offset), now_ms)
            self._lower_high_watermark(log)

    def _truncate_to_divergence(self, log: Log, epoch: int, end_offset: int, now_ms: int, backoff_ms: int) -> None:
        """The leader's largest epoch that is not above the last one here, and where it ends there: truncates to the
        lesser end of the two, or, if the epoch is not known here, to the end of the next lower one, and asks again."""
        own_epoch, own_end = log.leader_epochs.end_offset_for_epoch(epoch, log.log_end_offset)
        target = end_offset
        if own_end >= 0:
            target = own_end if own_epoch != epoch else min(own_end, end_offset)
        self._truncate(log, max(0, target), now_ms, backoff_ms)

    def _truncate(self, log: Log, offset: int, now_ms: int, backoff_ms: int) -> None:
        end_offset, latest_epoch = log.log_end_offset, log.leader_epochs.latest_epoch
        target = min(offset, end_offset)
        high_watermark = self.partition.high_watermark
        if target < high_watermark.offset:
            logger.warning(
                "truncating %s-%d to offset %d, below its high watermark %d: an unclean leader election lost "
                "the records between",
                self.partition.topic,
                self.index,
                target,
                high_watermark.offset,
            )
        self.logs.truncate(log, target, now_ms)
        self._lower_high_watermark(log)
        if log.log_end_offset == end_offset and log.leader_epochs.latest_epoch == latest_epoch:
            self.delay(now_ms, backoff_ms)  # the same question would get the same response

    def _lower_high_watermark(self, log: Log) -> None:
        high_watermark = self.partition.high_watermark
        if high_watermark.offset > log.log_end_offset or high_watermark.offset < log.log_start_offset:
            high_watermark.restart_at(log.log_end_offset)

    def on_leader_offsets(self, start_offset: int, end_offset: int, now_ms: int, backoff_ms: int) -> None:
        """Where the leader's log begins and ends, after it said that this one's end is out of range.

        This log is longer only after an unclean election: then the leader's end counts. It ends before the leader's
        begins when this broker was away for long: then it begins anew.
        """
        log = self.partition.log
        if self.state != TRUNCATING or log is None:
            return
        self.state = FETCHING
        try:
            if end_offset < log.log_end_offset:
                self._truncate(log, end_offset, now_ms, backoff_ms)
            elif start_offset > log.log_end_offset:
                self.logs.truncate_fully_and_start_at(log, start_offset, now_ms)
                self._lower_high_watermark(log)
            else:
                self.delay(now_ms, backoff_ms)
        except KafkaError as error:
            self._on_own_failure(log, error, now_ms, backoff_ms)

    # What goes wrong

    def _on_error(self, code: int, now_ms: int, backoff_ms: int) -> None:
        if code == errors.OFFSET_OUT_OF_RANGE:
            self.state = TRUNCATING
        elif code == errors.FENCED_LEADER_EPOCH:
            self.state = FAILED
            logger.info(
                "%s-%d has a newer leader epoch than %d: waiting for newer metadata",
                self.partition.topic,
                self.index,
                self.leader_epoch,
            )
        elif code in NOT_YET_LEADER:
            self.delay(now_ms, min(backoff_ms, FIRST_DELAY_MS << min(self.errors_in_a_row, 16)))
        else:
            logger.warning(
                "cannot fetch %s-%d: %s, trying again", self.partition.topic, self.index, errors.error_name(code)
            )
            self.delay(now_ms, backoff_ms)

    def on_leader_offsets_failed(self, code: int, now_ms: int, backoff_ms: int) -> None:
        if self.state == TRUNCATING:
            self.state = FETCHING
            self._on_error(code if code != errors.OFFSET_OUT_OF_RANGE else -1, now_ms, backoff_ms)

    def fetch_again(self) -> None:
        """Nobody told where the leader's log begins and ends: it is fetched as if nothing had been said."""
        if self.state == TRUNCATING:
            self.state = FETCHING

    def _on_own_failure(self, log: Log, error: KafkaError, now_ms: int, backoff_ms: int) -> None:
        if log.log_directory.failed:
            self.state = FAILED
            return
        if error.code == errors.KAFKA_STORAGE_ERROR:
            # The directory works, so it is full, and the other partitions in it meet with the same.
            log.log_directory.on_replica_not_written(error.message, now_ms)
        else:
            logger.error(
                "cannot append fetched records to %s-%d, fetching them again: %s",
                self.partition.topic,
                self.index,
                error.message,
            )
        self.delay(now_ms, backoff_ms)

    def delay(self, now_ms: int, delay_ms: int) -> None:
        self.errors_in_a_row += 1
        self.state = DELAYED
        self.delayed_until_ms = now_ms + max(1, delay_ms)

    def hold_back(self, until_ms: int) -> None:
        """Nothing is wrong, but its throttle has had enough for now."""
        self.state = DELAYED
        self.delayed_until_ms = until_ms

    def resume(self) -> None:
        if self.state == DELAYED:
            self.state = FETCHING
