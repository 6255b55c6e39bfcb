"""The log: appends, reads, rolling, lookups by time, truncation, retention, failing disks."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import split_batches
from moldau.storage.disk import File
from moldau.storage.log import Log
from tests.unit.storage.helpers import (
    NOW_MS,
    FaultyDisk,
    append,
    append_marker,
    batch,
    config,
    content,
    marker,
    names,
    new_log,
    read_all,
    reopen,
)


def code_of(caught: pytest.ExceptionInfo[KafkaError]) -> int:
    return caught.value.code


def fill(log: Log, count: int, size: int = 10, step_ms: int = 0) -> None:
    for number in range(count):
        append(log, b"%0*d" % (size, number), timestamp=NOW_MS + number * step_ms, now_ms=NOW_MS + number * step_ms)


# Appending and reading


def test_a_leader_numbers_the_records(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    first = append(log, b"a", b"b")
    second = append(log, b"c", leader_epoch=3)
    assert (first.first_offset, first.last_offset, second.first_offset) == (0, 1, 2)
    assert (first.append_time_ms, first.max_timestamp) == (-1, NOW_MS + 1)
    assert log.log_end_offset == 3
    assert read_all(log) == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.leader_epochs.entries() == [(0, 0), (3, 2)]
    data = (tmp_path / "topic-0" / "00000000000000000000.log").read_bytes()
    assert len(data) == log.size_bytes
    headers = split_batches(data, 0, len(data))
    assert [(h.base_offset, h.partition_leader_epoch) for h in headers] == [(0, 0), (2, 3)]


def test_a_new_folder_has_what_kafka_expects(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    assert names(log) == ["00000000000000000000.log", "partition.metadata"]


def test_reads_start_with_the_batch_that_holds_the_offset(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, b"a", b"b", b"c")
    append(log, b"d")
    result = log.read(1, 1000, 4, True)
    assert result.position == 0
    assert [header.base_offset for header in split_batches(content(result.records), 0, result.size)] == [0, 3]


def test_reads_stop_at_the_upper_bound(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 10)
    result = log.read(2, 1 << 20, 5, True)
    headers = split_batches(content(result.records), 0, result.size)
    assert [header.base_offset for header in headers] == [2, 3, 4]
    assert log.read(5, 1 << 20, 5, True).records is None
    assert log.read(10, 1 << 20, 10, True).records is None
    assert log.read(2, 1 << 20, 5, True).size == result.size


def test_offsets_outside_of_the_log_are_out_of_range(tmp_path: Path) -> None:
    log = new_log(tmp_path, start_offset=5)
    append(log)
    for offset in (4, 7):
        with pytest.raises(KafkaError) as caught:
            log.read(offset, 100, 6, True)
        assert code_of(caught) == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("reopened", [False, True])
def test_a_byte_limit_returns_whole_batches_and_at_least_one_if_asked(tmp_path: Path, reopened: bool) -> None:
    log = new_log(tmp_path)
    fill(log, 200, size=100)
    if reopened:  # then nothing about recent batches is in memory
        log.close(NOW_MS)
        log = reopen(log, clean=True)
    size = log.size_bytes // 200
    for offset in (0, 50, 190):
        for limit in (size, 3 * size + 5, 20 * size):
            data = content(log.read(offset, limit, 200, True).records)
            assert size <= len(data) <= limit
            assert len(data) % size == 0
        assert log.read(offset, size - 1, 200, False).records is None
        assert log.read(offset, 1, 200, True).size == size


def test_log_append_time_is_reported(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(message_timestamp_type="LogAppendTime"))
    result = append(log, timestamp=5, now_ms=NOW_MS)
    assert (result.append_time_ms, result.max_timestamp) == (NOW_MS, NOW_MS)


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=100))
    with pytest.raises(KafkaError) as caught:
        append(log, bytes(200))
    assert code_of(caught) == errors.RECORD_LIST_TOO_LARGE


def test_a_follower_keeps_offsets_and_epochs(tmp_path: Path) -> None:
    leader, follower = new_log(tmp_path / "a"), new_log(tmp_path / "b")
    append(leader, b"a", b"b")
    append(leader, b"c", leader_epoch=4)
    append(leader, b"t", producer_id=9, epoch=0, sequence=0, transactional=True, leader_epoch=4)
    append_marker(leader, 9, 0, commit=False, leader_epoch=4)
    data = content(leader.read(0, 1 << 20, 5, True).records)
    result = follower.append_as_follower(MemoryRecords(b"xx" + data + data[:30], 2))
    assert result is not None
    assert (result.first_offset, result.last_offset) == (0, 4)
    assert read_all(follower) == read_all(leader)
    assert follower.leader_epochs.entries() == leader.leader_epochs.entries()
    assert follower.aborted_transactions(0, 5) == [(9, 3)]
    assert follower.append_as_follower(MemoryRecords(data[:20])) is None


def test_a_follower_may_skip_offsets_but_not_go_back(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append_as_follower(MemoryRecords(batch([b"a"], base_offset=7, leader_epoch=1)))
    assert (log.log_start_offset, log.log_end_offset) == (0, 8)
    assert read_all(log) == [(7, b"a")]
    with pytest.raises(KafkaError):
        log.append_as_follower(MemoryRecords(batch([b"a"], base_offset=7, leader_epoch=1)))
    broken = bytearray(batch([b"a"], base_offset=8, leader_epoch=1))
    broken[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(MemoryRecords(bytes(broken)))
    assert code_of(caught) == errors.CORRUPT_MESSAGE
    assert log.log_end_offset == 8


def test_a_follower_leaves_batches_of_later_epochs_for_the_next_fetch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    data = batch([b"a"], leader_epoch=1) + batch([b"b"], base_offset=1, leader_epoch=2)
    log.append_as_follower(MemoryRecords(data), NOW_MS, leader_epoch=1)
    assert log.log_end_offset == 1


# Rolling


def test_a_full_segment_is_rolled_and_its_indexes_written(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=400, index_interval_bytes=100))
    fill(log, 12, size=20, step_ms=1)
    assert len(log.segments) > 2
    assert log.base_offsets[0] == 0
    base = log.base_offsets[1]
    found = names(log)
    for suffix in ("index", "timeindex"):
        assert f"{0:020d}.{suffix}" in found
    assert f"{base:020d}.snapshot" in found
    times = (tmp_path / "topic-0" / f"{0:020d}.timeindex").read_bytes()
    last_timestamp, last_offset = int.from_bytes(times[-12:-4], "big"), int.from_bytes(times[-4:], "big")
    assert (last_timestamp, last_offset) == (NOW_MS + base - 1, base - 1)
    assert [offset for offset, _ in read_all(log)] == list(range(12))
    assert log.recovery_point == log.base_offsets[-1], "rolled segments are flushed"


def test_segments_roll_by_record_time_not_by_the_clock(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_ms=1000))
    append(log, timestamp=NOW_MS, now_ms=NOW_MS)
    append(log, timestamp=NOW_MS + 1000, now_ms=NOW_MS + 10**7)
    assert log.base_offsets == [0]
    append(log, timestamp=NOW_MS + 1001, now_ms=NOW_MS)
    assert log.base_offsets == [0, 2]


def test_jitter_makes_segments_roll_earlier(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_ms=1000, segment_jitter_ms=500))
    log.random_below = lambda limit: limit - 1
    log.roll(NOW_MS)
    append(log)
    log.roll(NOW_MS)
    assert log.active.roll_jitter_ms == 499
    append(log, timestamp=NOW_MS)
    append(log, timestamp=NOW_MS + 502)
    assert log.base_offsets == [0, 1, 2]


def test_a_full_index_and_a_far_offset_roll(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_index_bytes=36, index_interval_bytes=0))
    fill(log, 7)  # four entries fit, and the first batch of a segment has none
    assert log.base_offsets == [0, 5]
    log.append_as_follower(MemoryRecords(batch(base_offset=2**31 + 10)))
    assert log.base_offsets == [0, 5, 2**31 + 10]


def test_an_empty_segment_is_not_rolled(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.roll(NOW_MS)
    assert log.base_offsets == [0]
    append(log)
    log.roll(NOW_MS)
    log.roll(NOW_MS)
    assert log.base_offsets == [0, 1]


# Times


def test_offsets_are_found_by_timestamp(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=400, index_interval_bytes=100))
    fill(log, 30, size=20, step_ms=10)
    for _ in range(2):
        assert log.offset_for_timestamp(0, 30) == (0, NOW_MS, 0)
        assert log.offset_for_timestamp(NOW_MS + 155, 30) == (16, NOW_MS + 160, 0)
        assert log.offset_for_timestamp(NOW_MS + 290, 30) == (29, NOW_MS + 290, 0)
        assert log.offset_for_timestamp(NOW_MS + 290, 29) is None, "not replicated yet"
        assert log.offset_for_timestamp(NOW_MS + 291, 30) is None
        log.close(NOW_MS)
        log = reopen(log, clean=True)
    log.advance_log_start(10)
    assert log.offset_for_timestamp(0, 30) == (10, NOW_MS + 100, 0)


def test_the_largest_timestamp_is_that_of_its_first_record(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=300))
    assert log.offset_of_max_timestamp(0) is None
    for timestamp in (5, 90, 7, 90, 8):
        append(log, timestamp=NOW_MS + timestamp)
    assert log.offset_of_max_timestamp(5) == (1, NOW_MS + 90, 0)


# Cutting


def test_truncation_removes_whole_batches_and_what_depends_on_them(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=300, index_interval_bytes=50))
    for number in range(20):
        append(log, b"%d" % number, leader_epoch=number // 5, producer_id=1, epoch=0, sequence=number)
    assert log.truncate_to(7)
    assert log.log_end_offset == 7
    assert read_all(log) == [(number, b"%d" % number) for number in range(7)]
    assert log.leader_epochs.entries() == [(0, 0), (1, 5)]
    assert log.producers.entries[1].last_sequence == 6
    assert log.recovery_point <= 7
    assert log.size_bytes == sum(path.stat().st_size for path in (tmp_path / "topic-0").glob("*.log"))
    append(log, b"new", leader_epoch=9, producer_id=1, epoch=0, sequence=7)
    assert read_all(log)[-1] == (7, b"new")
    assert not log.truncate_to(100)
    assert any(name.endswith(".log.deleted") for name in names(log))
    log.housekeeping(NOW_MS)
    log.housekeeping(NOW_MS + 60_000)
    assert not any(name.endswith(".deleted") for name in names(log))


def test_truncation_inside_a_batch_removes_the_batch(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, b"a")
    append(log, b"b", b"c", b"d")
    log.truncate_to(2)
    assert log.log_end_offset == 2
    assert read_all(log) == [(0, b"a")]
    assert append(log, b"e").first_offset == 2


def test_truncation_forgets_transactions(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log, producer_id=1, epoch=0, sequence=0, transactional=True)
    append_marker(log, 1, 0, commit=False)
    append(log, producer_id=2, epoch=0, sequence=0, transactional=True)
    log.truncate_to(1)
    assert log.aborted_transactions(0, 10) == []
    assert log.producers.first_unstable_offset() == 0
    assert 2 not in log.producers.entries


def test_the_largest_timestamp_after_truncation(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(index_interval_bytes=100))
    for timestamp in (10, 30, 20, 50, 40):
        append(log, timestamp=NOW_MS + timestamp)
    log.truncate_to(3)
    assert log.active.largest_timestamp() == NOW_MS + 30
    log.truncate_to(0)
    assert log.offset_of_max_timestamp(5) is None


def test_a_log_can_start_again_elsewhere(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=200))
    for number in range(5):
        append(log, producer_id=1, epoch=0, sequence=number)
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (100, 100, 0)
    assert log.producers.entries == {}
    assert log.leader_epochs.entries() == []
    assert append(log, b"x").first_offset == 100
    log.close(NOW_MS)
    again = reopen(log, clean=True)
    assert read_all(again) == [(100, b"x")]


def test_truncating_below_the_first_segment_starts_there(tmp_path: Path) -> None:
    log = new_log(tmp_path, start_offset=50)
    append(log)
    assert log.truncate_to(20)
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


def test_records_below_the_log_start_are_gone(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=200, retention_ms=-1))
    for number in range(10):
        append(log, b"%d" % number, leader_epoch=number)
    assert log.advance_log_start(5)
    assert not log.advance_log_start(3)
    with pytest.raises(KafkaError) as caught:
        log.read(4, 100, 10, True)
    assert code_of(caught) == errors.OFFSET_OUT_OF_RANGE
    assert log.leader_epochs.entries()[0] == (5, 5)
    below = [base for base in log.base_offsets[1:] if base <= 5]
    assert log.apply_retention(NOW_MS, 10) == len(below) > 0
    assert log.base_offsets[0] == below[-1]
    with pytest.raises(KafkaError) as caught:
        log.advance_log_start(11)
    assert code_of(caught) == errors.OFFSET_OUT_OF_RANGE


# Retention


def test_retention_by_time_uses_the_largest_timestamp(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=200, retention_ms=1000))
    fill(log, 9, size=20, step_ms=1000)
    assert log.base_offsets == [0, 2, 4, 6, 8]
    assert log.apply_retention(NOW_MS + 8000, 9) == 3, "the fourth has a record that is 1000 ms old"
    assert (log.base_offsets, log.log_start_offset) == ([6, 8], 6)
    assert [offset for offset, _ in read_all(log)] == [6, 7, 8]


def test_retention_waits_for_the_high_watermark(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=100, retention_ms=0))
    fill(log, 4)
    assert log.apply_retention(NOW_MS + 10, 2) == 2
    assert log.log_start_offset == 2


def test_when_everything_is_expired_the_active_segment_is_rolled(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(retention_ms=10))
    append(log)
    append(log)
    assert log.apply_retention(NOW_MS + 100, 2) == 1
    assert (log.base_offsets, log.log_start_offset, log.log_end_offset) == ([2], 2, 2)
    assert log.apply_retention(NOW_MS + 100, 2) == 0, "an empty active segment stays"
    deleted = [name for name in names(log) if name.endswith(".deleted")]
    assert deleted == [f"{0:020d}.{suffix}.deleted" for suffix in ("index", "log", "timeindex")]
    log.housekeeping(NOW_MS + 100 + 59_999)
    assert len([name for name in names(log) if name.endswith(".deleted")]) == 3
    log.housekeeping(NOW_MS + 100 + 60_000)
    assert names(log) == [
        f"{2:020d}.log",
        f"{2:020d}.snapshot",
        "leader-epoch-checkpoint",
        "partition.metadata",
    ]


def test_retention_by_size_keeps_at_least_that_much(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=100, retention_ms=-1))
    fill(log, 10)
    size = log.size_bytes // 10
    log.config.retention_bytes = 4 * size + 1
    assert log.apply_retention(NOW_MS, 10) == 5
    assert log.size_bytes == 5 * size
    assert log.apply_retention(NOW_MS, 10) == 0


def test_a_compacted_log_keeps_what_is_old(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=100, retention_ms=0, retention_bytes=0, compact=True, delete=False))
    fill(log, 5)
    assert log.apply_retention(NOW_MS + 10**9, 5) == 0
    log.advance_log_start(3)
    assert log.apply_retention(NOW_MS, 5) == 3


def test_deleted_segments_can_still_be_read_by_those_who_hold_them(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(retention_ms=10))
    append(log, b"held")
    result = log.read(0, 1000, 1, True)
    log.apply_retention(NOW_MS + 100, 1)
    assert b"held" in content(result.records)


# Flushing


def test_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    fill(log, 3)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 3


def test_what_must_be_compacted_soon_does_not_stay_in_the_active_segment(tmp_path: Path) -> None:
    """`max.compaction.lag.ms` shortens `segment.ms`, for compacted logs only."""
    for compact, segments in ((True, 2), (False, 1)):
        log = new_log(tmp_path / str(compact), config(compact=compact, segment_ms=10_000, max_compaction_lag_ms=1000))
        for timestamp in (NOW_MS, NOW_MS + 1000, NOW_MS + 1001):
            append(log, timestamp=timestamp)
        assert len(log.segments) == segments


def test_flush_by_count_and_by_time(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(flush_messages=2, flush_ms=1000))
    append(log)
    assert log.recovery_point == 0
    append(log)
    assert log.recovery_point == 2
    append(log)
    log.housekeeping(NOW_MS + 999)
    assert log.recovery_point == 2
    log.housekeeping(NOW_MS + 1000)
    assert log.recovery_point == 3


def test_flush_later_reports_when_everything_is_durable(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=200))
    fill(log, 5)
    reported: list[OSError | None] = []
    log.flushing.later(log.log_end_offset, reported.append)
    assert reported == [None]
    assert log.recovery_point == 5


def test_a_closed_log_refuses_everything(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    append(log)
    log.close(NOW_MS)
    log.close(NOW_MS)
    with pytest.raises(KafkaError):
        append(log)
    with pytest.raises(KafkaError):
        log.read(0, 1, 1, True)


# Failing disks


@pytest.mark.parametrize("torn", [0, 1, 60, 70])
def test_a_full_disk_refuses_the_append_and_leaves_no_trace(tmp_path: Path, torn: int) -> None:
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    append(log, b"kept", producer_id=1, epoch=0, sequence=0)
    size = log.size_bytes
    disk.bytes_left = torn
    with pytest.raises(KafkaError) as caught:
        append(log, b"lost", producer_id=1, epoch=0, sequence=1)
    assert code_of(caught) == errors.KAFKA_STORAGE_ERROR
    assert not log.log_directory.failed
    assert (tmp_path / "topic-0" / f"{0:020d}.log").stat().st_size == size
    disk.bytes_left = None
    append(log, b"retried", producer_id=1, epoch=0, sequence=1)
    assert read_all(log) == [(0, b"kept"), (1, b"retried")]


def test_torn_bytes_that_cannot_be_cut_take_the_directory_offline(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    append(log, b"kept")
    disk.bytes_left, disk.truncate_fails = 10, True
    with pytest.raises(KafkaError):
        append(log, b"lost")
    assert log.log_directory.failed
    disk.bytes_left, disk.truncate_fails = None, False
    with pytest.raises(KafkaError) as caught:
        append(log, b"refused")
    assert code_of(caught) == errors.KAFKA_STORAGE_ERROR
    assert read_all(reopen(log)) == [(0, b"kept")]


@pytest.mark.parametrize("torn", [60, 70])
def test_a_full_disk_takes_back_a_segment_that_began_behind_compacted_offsets(tmp_path: Path, torn: int) -> None:
    """A follower rolled at the offset of the batch for which there was no space; as leader it writes below that."""
    disk = FaultyDisk()
    log = new_log(tmp_path, config(segment_bytes=100), disk=disk)
    append(log, b"kept")
    disk.bytes_left = torn
    with pytest.raises(KafkaError):
        log.append_as_follower(MemoryRecords(batch([b"x" * 20], base_offset=10)))
    disk.bytes_left = None
    assert (log.base_offsets, log.log_end_offset) == ([0], 1)
    assert log.recovery_point <= 1 and log.producers.end_offset == 1
    append(log, b"a")
    append(log, b"b")
    assert log.base_offsets == [0, 1, 2]
    expected = [(0, b"kept"), (1, b"a"), (2, b"b")]
    assert read_all(log) == expected
    assert read_all(reopen(log)) == expected


class DiskWithoutSegments(FaultyDisk):
    """Has no space for another segment."""

    is_full = False

    def open(self, path: str, create: bool = False) -> File:
        if self.is_full and create and path.endswith(".log"):
            raise OSError(errno.ENOSPC, "full", path)
        return super().open(path, create)


def test_a_roll_behind_compacted_offsets_that_finds_no_space_leaves_no_snapshot(tmp_path: Path) -> None:
    disk = DiskWithoutSegments()
    log = new_log(tmp_path, config(segment_bytes=100), disk=disk)
    append(log, b"kept", producer_id=1, epoch=0, sequence=0)
    disk.is_full = True
    with pytest.raises(KafkaError):
        log.append_as_follower(MemoryRecords(batch([b"x" * 20], base_offset=10)))
    disk.is_full = False
    assert (log.base_offsets, log.producers.end_offset, log.snapshots.latest()) == ([0], 1, -1)
    append(log, b"next", producer_id=1, epoch=0, sequence=1)
    assert read_all(log) == [(0, b"kept"), (1, b"next")]


def test_an_io_error_takes_the_directory_offline(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    append(log, b"kept")
    disk.bytes_left, disk.error = 0, errno.EIO
    with pytest.raises(KafkaError) as caught:
        append(log)
    assert code_of(caught) == errors.KAFKA_STORAGE_ERROR
    assert log.log_directory.failed
    assert log.log_end_offset == 1


def test_a_failing_read_takes_the_directory_offline(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = new_log(tmp_path, disk=disk)
    fill(log, 200)
    disk.read_fails = True
    with pytest.raises(KafkaError) as caught:
        log.read(0, 100, 200, True)
    assert code_of(caught) == errors.KAFKA_STORAGE_ERROR
    assert log.log_directory.failed


def test_no_space_for_a_new_segment_is_survived(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = new_log(tmp_path, config(segment_bytes=200), disk=disk)
    fill(log, 2)
    disk.bytes_left = 0
    for _ in range(2):
        with pytest.raises(KafkaError):
            fill(log, 1)
    disk.bytes_left = None
    fill(log, 3)
    assert [offset for offset, _ in read_all(log)] == list(range(5))
    assert len(log.segments) > 1


def test_an_index_that_lies_is_built_anew(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(index_interval_bytes=100))
    fill(log, 100)
    log.close(NOW_MS)
    path = tmp_path / "topic-0" / f"{0:020d}.index"
    data = bytearray(path.read_bytes())
    for entry in range(0, len(data), 8):  # positions that are no batch starts
        data[entry + 4 : entry + 8] = (int.from_bytes(data[entry + 4 : entry + 8], "big") + 3).to_bytes(4, "big")
    path.write_bytes(data)
    assert [offset for offset, _ in read_all(reopen(log, clean=True), max_bytes=1)] == list(range(100))


def test_indexes_of_old_segments_are_not_in_memory(tmp_path: Path) -> None:
    log = new_log(tmp_path, config(segment_bytes=1000, index_interval_bytes=100))
    fill(log, 30)
    assert [offset for offset, _ in read_all(log)] == list(range(30))
    for segment in log.segments[:-1]:
        assert segment.offset_entries is not None and segment.time_entries is not None
        assert segment.offset_entries.count_all() > 1
        assert len(segment.offset_entries.offsets) == len(segment.time_entries.offsets) == 0


def test_a_commit_marker_alone_leaves_no_transaction(tmp_path: Path) -> None:
    log = new_log(tmp_path)
    log.append_as_follower(MemoryRecords(marker(5, 0, True)))
    assert log.last_stable_offset(1) == 1
    assert log.producers.entries[5].coordinator_epoch == 0
