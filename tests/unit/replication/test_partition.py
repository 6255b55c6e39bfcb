"""A partition on its broker: who leads it in which epoch, what is committed, what readers may see, who waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.replication.partition import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    Partition,
    PartitionRead,
)
from moldau.replication.waiter import PartitionWaiter
from moldau.storage.validation import CLIENT, COORDINATOR
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, batch, config, marker, new_log

BROKER = 1
PLENTY = 1 << 20


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    made = Partition("topic", TOPIC_ID, 0, BROKER, new_log(tmp_path))
    made.update(BROKER, 5, 0, [BROKER], [BROKER], NOW_MS)
    return made


def append(partition: Partition, values: int = 1, acks: int = 1) -> int:
    data = batch([b"value"] * values)
    return partition.append_as_leader(MemoryRecords(data, 0, len(data)), acks, NOW_MS, CLIENT).first_offset


def read(partition: Partition, offset: int, current_epoch: int = -1, last_epoch: int = -1) -> PartitionRead:
    return partition.read(offset, PLENTY, True, READ_UNCOMMITTED, current_epoch, last_epoch)


def code_of(action: Callable[[], object]) -> int:
    with pytest.raises(KafkaError) as raised:
        action()
    return raised.value.code


class Waiter(PartitionWaiter):
    def __init__(self, finish: bool = False) -> None:
        super().__init__()
        self.moves = 0
        self.finish = finish

    def on_partition_moved(self, now_ms: int) -> None:
        self.moves += 1
        self.finished = self.finish


# Leadership


def test_who_does_not_lead_refuses_reads_and_writes(partition: Partition) -> None:
    append(partition)
    partition.update(2, 6, 1, [BROKER, 2], [BROKER, 2], NOW_MS)
    assert code_of(lambda: append(partition)) == errors.NOT_LEADER_OR_FOLLOWER
    assert code_of(lambda: read(partition, 0)) == errors.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("epoch", "code"), [(4, errors.FENCED_LEADER_EPOCH), (6, errors.UNKNOWN_LEADER_EPOCH)])
def test_clients_of_another_epoch_are_told(partition: Partition, epoch: int, code: int) -> None:
    assert code_of(lambda: read(partition, 0, current_epoch=epoch)) == code
    assert read(partition, 0, current_epoch=5).records is None


def test_older_news_are_ignored(partition: Partition) -> None:
    partition.update(2, 6, 3, [BROKER, 2], [BROKER, 2], NOW_MS)
    partition.update(BROKER, 5, 2, [BROKER], [BROKER], NOW_MS)
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (2, 6, 3)


def test_a_new_epoch_begins_at_the_end_of_the_log(partition: Partition) -> None:
    append(partition, 3)
    partition.update(BROKER, 7, 1, [BROKER], [BROKER], NOW_MS)
    append(partition, 2)
    assert partition.log is not None and partition.log.leader_epochs.entries() == [(5, 0), (7, 3)]
    assert partition.end_offset_for_epoch(7, 5) == (5, 3)
    assert partition.end_offset_for_epoch(7, 7) == (7, 5)


def test_without_a_log_everything_is_a_storage_error() -> None:
    offline = Partition("topic", TOPIC_ID, 0, BROKER, None)
    offline.update(BROKER, 0, 0, [BROKER], [BROKER], NOW_MS)
    assert code_of(lambda: append(offline)) == errors.KAFKA_STORAGE_ERROR
    assert code_of(lambda: read(offline, 0)) == errors.KAFKA_STORAGE_ERROR
    assert code_of(lambda: offline.delete_records(-1, NOW_MS)) == errors.KAFKA_STORAGE_ERROR


# The high watermark


def test_alone_in_sync_everything_is_committed_at_once(partition: Partition) -> None:
    append(partition, 4)
    assert partition.high_watermark.offset == 4


def test_with_others_in_sync_nothing_is_committed_or_seen_until_they_leave(partition: Partition) -> None:
    append(partition)
    partition.update(BROKER, 5, 1, [BROKER, 2], [BROKER, 2], NOW_MS)
    append(partition, 2)
    assert partition.high_watermark.offset == 1
    assert read(partition, 1).records is None
    assert code_of(lambda: read(partition, 4)) == errors.OFFSET_OUT_OF_RANGE
    partition.update(BROKER, 5, 2, [BROKER, 2], [BROKER], NOW_MS)
    assert partition.high_watermark.offset == 3
    assert read(partition, 1).records is not None


def test_finished_transactions_are_forgotten_when_they_are_committed(partition: Partition) -> None:
    """Also when nobody reads, so that nobody asks what is stable."""
    partition.update(BROKER, 5, 1, [BROKER, 2], [BROKER, 2], NOW_MS)
    records = batch(producer_id=1, epoch=0, sequence=0, transactional=True)
    for data in (records, marker(1, 0, commit=True)):
        partition.append_as_leader(MemoryRecords(data), 1, NOW_MS, COORDINATOR)
    assert partition.log is not None and partition.log.producers.unreplicated == {0: 1}
    partition.update(BROKER, 5, 2, [BROKER, 2], [BROKER], NOW_MS)
    assert partition.high_watermark.offset == 2 and partition.log.producers.unreplicated == {}


def test_acks_all_needs_enough_replicas_in_sync(tmp_path: Path) -> None:
    partition = Partition("topic", TOPIC_ID, 0, BROKER, new_log(tmp_path, config(min_insync_replicas=2)))
    partition.update(BROKER, 0, 0, [BROKER], [BROKER], NOW_MS)
    assert append(partition, acks=-1) == 0, "one replica can have no more than one in sync"
    partition.update(BROKER, 0, 1, [BROKER, 2], [BROKER], NOW_MS)
    assert code_of(lambda: append(partition, acks=-1)) == errors.NOT_ENOUGH_REPLICAS
    assert append(partition, acks=1) == 1


# Reading


@pytest.mark.parametrize("offset", [-1, 4, 1 << 62])
def test_offsets_outside_the_log(partition: Partition, offset: int) -> None:
    append(partition, 3)
    assert code_of(lambda: read(partition, offset)) == errors.OFFSET_OUT_OF_RANGE


def test_a_reader_whose_log_parted_from_this_one_is_told_where(partition: Partition) -> None:
    append(partition, 3)
    partition.update(BROKER, 7, 1, [BROKER], [BROKER], NOW_MS)
    append(partition, 3)
    assert read(partition, 2, last_epoch=5).records is not None
    parted = read(partition, 5, last_epoch=5)
    assert (parted.records, parted.diverging_epoch, parted.diverging_end_offset) == (None, 5, 3)
    parted = read(partition, 5, last_epoch=6)
    assert (parted.diverging_epoch, parted.diverging_end_offset) == (5, 3)
    assert code_of(lambda: read(partition, 5, last_epoch=9)) == errors.OFFSET_OUT_OF_RANGE


def test_offsets_by_time_and_name(partition: Partition) -> None:
    append(partition, 3)
    find = partition.find_offset
    assert find(LATEST_TIMESTAMP, READ_UNCOMMITTED, -1, -1).offset == 3
    assert find(LATEST_TIMESTAMP, READ_COMMITTED, -1, -1).offset == 3
    assert find(EARLIEST_TIMESTAMP, READ_UNCOMMITTED, -1, -1).offset == 0
    assert find(MAX_TIMESTAMP, READ_UNCOMMITTED, -1, -1).offset == 2
    assert find(NOW_MS + 1, READ_UNCOMMITTED, -1, -1).offset == 1
    assert find(NOW_MS + 9, READ_UNCOMMITTED, -1, -1).offset == -1


# Deleting records


def test_records_are_deleted_up_to_an_offset(partition: Partition) -> None:
    append(partition, 5)
    assert partition.delete_records(3, NOW_MS) == 3
    assert partition.delete_records(2, NOW_MS) == 3, "the log start never goes back"
    assert code_of(lambda: read(partition, 2)) == errors.OFFSET_OUT_OF_RANGE
    assert partition.delete_records(-1, NOW_MS) == 5
    assert read(partition, 5).records is None


@pytest.mark.parametrize("offset", [-2, 6, 1 << 62])
def test_records_beyond_the_high_watermark_cannot_be_deleted(partition: Partition, offset: int) -> None:
    append(partition, 5)
    assert code_of(lambda: partition.delete_records(offset, NOW_MS)) == errors.OFFSET_OUT_OF_RANGE


def test_a_compacted_log_keeps_its_records(tmp_path: Path) -> None:
    partition = Partition("topic", TOPIC_ID, 0, BROKER, new_log(tmp_path, config(delete=False, compact=True)))
    partition.update(BROKER, 0, 0, [BROKER], [BROKER], NOW_MS)
    assert code_of(lambda: partition.delete_records(-1, NOW_MS)) == errors.POLICY_VIOLATION


# Waiting


def test_waiters_hear_of_appends_deletions_and_new_leaders(partition: Partition) -> None:
    waiter = Waiter()
    partition.waiters.append(waiter)
    append(partition)
    assert waiter.moves == 1
    partition.delete_records(-1, NOW_MS)
    assert waiter.moves == 2
    partition.update(2, 6, 1, [BROKER, 2], [2], NOW_MS)
    assert waiter.moves == 3 and partition.waiters == [waiter]


def test_finished_waiters_are_let_go(partition: Partition) -> None:
    once, gone, patient = Waiter(finish=True), Waiter(), Waiter()
    partition.waiters += [once, gone, patient]
    gone.finished = True
    append(partition)
    assert partition.waiters == [patient]
    assert (once.moves, gone.moves, patient.moves) == (1, 0, 1)


def test_a_waiter_that_comes_while_the_others_are_told_is_kept(partition: Partition) -> None:
    late = Waiter()

    class Inviting(Waiter):
        def on_partition_moved(self, now_ms: int) -> None:
            super().on_partition_moved(now_ms)
            partition.waiters.append(late)

    partition.waiters.append(Inviting(finish=True))
    append(partition)
    assert partition.waiters == [late] and late.moves == 0


# Invariants


def test_a_leader_epoch_never_falls(partition: Partition) -> None:
    with pytest.raises(AssertionError, match="goes back to leader epoch 4"):
        partition.update(BROKER, 4, 1, [BROKER], [BROKER], NOW_MS)


def test_nobody_leads_with_a_high_watermark_beyond_its_log(partition: Partition) -> None:
    partition.high_watermark.restart_at(7)
    with pytest.raises(AssertionError, match="high watermark 7"):
        partition.update(BROKER, 6, 1, [BROKER], [BROKER], NOW_MS)
