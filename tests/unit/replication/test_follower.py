"""One followed partition: what it takes over from an answer, where it cuts, when it waits and when it gives up."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from moldau.protocol import errors
from moldau.protocol.messages.fetch_response import EpochEndOffset, PartitionData
from moldau.protocol.records_data import MemoryRecords
from moldau.records.builder import BatchBuilder
from moldau.replication.follower import DELAYED, FAILED, FETCHING, TRUNCATING, Follower
from moldau.replication.partition import Partition
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, FaultyDisk, batch, config, marker, read_all

BACKOFF_MS = 1000


class World:
    def __init__(self, path: Path) -> None:
        self.disk = FaultyDisk()
        self.logs = LogManager(self.disk, [str(path)], lambda topic: config())
        self.logs.load(NOW_MS)
        self.log = self.logs.create("t", 0, TOPIC_ID, NOW_MS)
        self.partition = Partition("t", TOPIC_ID, 0, 1, self.log)
        self.follower = Follower(self.partition, self.logs)
        self.follower.begin(5)
        self.number = 0

    def take(self, data: PartitionData) -> bool:
        """Asks, and gets this answer."""
        self.number += 1
        self.follower.fetch_partition(self.log, 1 << 20, self.number)
        return self.follower.take(data, NOW_MS, BACKOFF_MS)

    def fill(self, *epochs: int) -> None:
        """One record of each epoch."""
        for epoch in epochs:
            assert self.take(answer(batch(base_offset=self.log.log_end_offset, leader_epoch=epoch)))


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def answer(data: bytes = b"", high_watermark: int = 0, log_start: int = 0) -> PartitionData:
    return PartitionData(high_watermark=high_watermark, log_start_offset=log_start, records=MemoryRecords(data))


def parted(epoch: int, end_offset: int) -> PartitionData:
    return PartitionData(high_watermark=0, log_start_offset=0, diverging_epoch=EpochEndOffset(epoch, end_offset))


def test_the_high_watermark_is_the_leaders_but_not_beyond_the_own_end_and_never_goes_back(world: World) -> None:
    world.take(answer(batch([b"a", b"b"], leader_epoch=5), high_watermark=1))
    assert world.partition.high_watermark.offset == 1 and world.follower.lag == 0
    assert world.take(answer(high_watermark=9))
    assert world.partition.high_watermark.offset == 2 and world.follower.lag == 7
    assert not world.take(answer(high_watermark=1))
    assert world.partition.high_watermark.offset == 2


def test_finished_transactions_are_forgotten_when_they_are_replicated(world: World) -> None:
    """Also when nobody reads here, so that nobody asks what is stable."""
    records = batch(producer_id=1, epoch=0, sequence=0, transactional=True, leader_epoch=5)
    world.take(answer(records + marker(1, 0, commit=True, base_offset=1), high_watermark=1))
    assert world.log.producers.unreplicated == {0: 1}
    world.take(answer(high_watermark=2))
    assert world.log.producers.unreplicated == {}


def test_the_log_start_follows_the_leaders(world: World) -> None:
    world.fill(5, 5, 5)
    assert world.take(answer(high_watermark=3, log_start=2))
    assert world.log.log_start_offset == 2
    assert not world.take(answer(high_watermark=3, log_start=1))
    assert world.log.log_start_offset == 2


@pytest.mark.parametrize(
    ("epochs", "told", "left"),
    [
        ([1, 1, 3], (1, 1), 1),  # both know epoch 1, and it ends earlier there
        ([1, 1, 3], (1, 7), 2),  # it ends earlier here
        ([1, 1, 4, 4], (3, 3), 2),  # epoch 3 is not known here: all of epoch 4 goes
        ([2, 4], (1, 3), 0),  # nothing here is as old as that
        ([1, 1], (1, 2), 2),  # nothing is to be cut
    ],
)
def test_where_the_logs_part_the_lesser_end_counts(
    world: World, epochs: list[int], told: tuple[int, int], left: int
) -> None:
    world.fill(*epochs)
    world.take(parted(*told))
    assert world.log.log_end_offset == left
    assert world.follower.state == (DELAYED if left == len(epochs) else FETCHING), "no progress is no reason to hurry"
    assert all(epoch <= told[0] for epoch, _ in world.log.leader_epochs.entries())


def test_a_cut_below_the_high_watermark_takes_it_along(world: World) -> None:
    world.fill(1, 2, 2)
    world.take(answer(high_watermark=3))
    world.take(parted(1, 1))
    assert world.partition.high_watermark.offset == 1


def test_a_cut_lowers_the_recovery_point_on_disk(world: World) -> None:
    world.fill(1, 2, 2)
    world.log.flush()
    world.logs.checkpoints.write_now()
    world.take(parted(1, 1))
    text = (Path(world.log.log_directory.path) / "recovery-point-offset-checkpoint").read_text()
    assert text.splitlines()[2:] == ["t 0 0"], "below the cut, and within the segment that is walked again"


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (10, 20, (10, 10)),  # the leader begins behind this log's end
        (0, 2, (0, 2)),  # an unclean election: it ends before
    ],
)
def test_out_of_range_goes_where_the_leaders_log_is(
    world: World, start: int, end: int, expected: tuple[int, int]
) -> None:
    world.fill(1, 1, 1)
    world.take(PartitionData(error_code=errors.OFFSET_OUT_OF_RANGE))
    assert world.follower.state == TRUNCATING
    world.follower.on_leader_offsets(start, end, NOW_MS, BACKOFF_MS)
    assert (world.log.log_start_offset, world.log.log_end_offset) == expected
    assert world.follower.state == FETCHING
    assert world.partition.high_watermark.offset <= world.log.log_end_offset


def test_out_of_range_within_the_leaders_range_is_asked_again_later(world: World) -> None:
    world.fill(1, 1, 1)
    world.take(PartitionData(error_code=errors.OFFSET_OUT_OF_RANGE))
    world.follower.on_leader_offsets(0, 20, NOW_MS, BACKOFF_MS)
    assert world.follower.state == DELAYED and world.log.log_end_offset == 3


def corrupt(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def control_batch() -> bytes:
    """Says that it ends a transaction, and holds something else."""
    builder = BatchBuilder(1)
    builder.append(NOW_MS, b"k", b"v")
    return builder.build(producer_id=7, producer_epoch=0, partition_leader_epoch=5, transactional=True, control=True)


@pytest.mark.parametrize(
    "data",
    [
        corrupt(batch(base_offset=1, leader_epoch=5)),
        batch(base_offset=0, leader_epoch=5),
        batch(base_offset=1, leader_epoch=6),
        batch(base_offset=1, leader_epoch=5)[:-1],
        b"\xff" * 80,
        control_batch(),
    ],
    ids=["flipped bit", "old offset", "later epoch", "part of a batch", "garbage", "no marker"],
)
def test_what_is_not_sound_or_does_not_go_on_from_the_end_is_never_appended(world: World, data: bytes) -> None:
    world.fill(5)
    assert not world.take(answer(data, high_watermark=2))
    assert world.follower.state == DELAYED
    assert read_all(world.log) == [(0, b"value")] and world.partition.high_watermark.offset == 0
    world.follower.resume()
    assert world.take(answer(batch(base_offset=1, leader_epoch=5), high_watermark=2))


def test_a_full_disk_is_waited_for_and_a_broken_one_ends_following(world: World) -> None:
    world.disk.bytes_left = 0
    assert not world.take(answer(batch(leader_epoch=5)))
    assert world.follower.state == DELAYED
    world.follower.resume()
    world.disk.error = errno.EIO
    assert not world.take(answer(batch(leader_epoch=5)))
    assert world.follower.state == FAILED
    world.follower.begin(6)
    assert world.follower.state == FAILED, "a new epoch does not mend the disk"


def test_a_full_disk_is_told_in_one_line_for_all_partitions(world: World, caplog: pytest.LogCaptureFixture) -> None:
    other = Follower(Partition("u", TOPIC_ID, 1, 1, world.logs.create("u", 1, TOPIC_ID, NOW_MS)), world.logs)
    world.disk.bytes_left = 0
    now_ms = NOW_MS
    for _ in range(61):
        for follower in (world.follower, other):
            follower.begin(5)
            log = follower.partition.log
            assert log is not None
            follower.fetch_partition(log, 1 << 20, 1)
            follower.take(answer(batch(leader_epoch=5)), now_ms, BACKOFF_MS)
        now_ms += 1000
    told = [record.getMessage() for record in caplog.records if "has no space for fetched records" in record.message]
    assert len(told) == 2, "one at once, one after a minute"
    assert "failed once" in told[0] and "failed 120 times" in told[1] and "No space for" in told[1]
    assert len([record for record in caplog.records if record.levelname == "ERROR"]) <= 3


def test_an_empty_log_begins_with_the_batch_in_which_the_leaders_log_begins(world: World) -> None:
    world.logs.truncate_fully_and_start_at(world.log, 12, NOW_MS)
    assert world.take(
        answer(batch([b"a", b"b", b"c"], base_offset=10, leader_epoch=5), high_watermark=13, log_start=12)
    )
    assert (world.log.log_start_offset, world.log.log_end_offset) == (12, 13)
    assert world.partition.high_watermark.offset == 13


def test_what_the_leader_has_deleted_and_cannot_compare_is_not_kept(world: World) -> None:
    """Its start offset may be lost in a crash, and the leader never had the last of these records."""
    world.fill(1, 1, 1)
    world.take(answer(high_watermark=2, log_start=3))
    assert world.log.base_offsets[0] == 0
    assert world.take(answer(batch(base_offset=3, leader_epoch=4), high_watermark=4, log_start=3))
    assert (world.log.base_offsets[0], world.log.log_end_offset) == (3, 3)
    assert world.take(answer(batch(base_offset=3, leader_epoch=4), high_watermark=4, log_start=3))
    assert (world.log.log_start_offset, world.log.log_end_offset) == (3, 4)
    assert [epoch for epoch, _ in world.log.leader_epochs.entries()] == [4]


def test_what_the_leader_has_deleted_in_the_same_epoch_leaves_producers_known(world: World) -> None:
    world.take(answer(batch(producer_id=1, epoch=0, sequence=0, leader_epoch=5), high_watermark=1, log_start=1))
    assert world.take(answer(batch(base_offset=1, leader_epoch=5), high_watermark=2, log_start=1))
    assert 1 in world.log.producers.entries


def test_a_log_that_begins_earlier_and_stays_empty_has_no_high_watermark_beyond_it(world: World) -> None:
    """The leader's log begins within a batch, and there is no space for that batch: this broker may lead next."""
    world.logs.truncate_fully_and_start_at(world.log, 12, NOW_MS)
    world.partition.high_watermark.restart_at(12)
    world.disk.bytes_left = 0
    world.take(answer(batch([b"value"] * 5, base_offset=10, leader_epoch=5), 15, 12))
    world.disk.bytes_left = None
    assert world.log.log_end_offset == 10
    world.partition.update(1, 6, 1, [1], [1], NOW_MS)
    assert world.partition.high_watermark.offset == 10
