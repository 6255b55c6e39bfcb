"""Idempotence, epochs, transactions, and the snapshot files that keep them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.records.batch import split_batches
from moldau.records.clocks import WallClock
from moldau.server.posix_disk import PosixDisk
from moldau.storage import producer_window
from moldau.storage.log import Log
from moldau.storage.producer_snapshots import DamagedSnapshot, ProducerSnapshots, decode_snapshot, encode_snapshot
from moldau.storage.producer_state import ProducerState, first_sequence_of
from moldau.storage.recovery import load_log
from tests.unit.storage.helpers import NOW_MS, append, append_marker, config, new_log, read_all, reopen

DAY_MS = 86_400_000

# Real snapshots: an open transaction, one after a marker, and one of three idle producers.
OPEN_TRANSACTION = bytes.fromhex(
    "00019476901d0000000100000000000000080002000000000000000000000007000000000000018bcfe56fd0000000000000000000000007"
)
AFTER_MARKER = bytes.fromhex(
    "0001da04b5890000000100000000000003e90007ffffffffffffffffffffffff00000000000001a1dd4ba16a00000000ffffffffffffffff"
)


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return new_log(tmp_path)


def refused(code: int, log: Log, **arguments: object) -> None:
    end = log.log_end_offset
    with pytest.raises(KafkaError) as caught:
        append(log, **arguments)  # type: ignore[arg-type]
    assert caught.value.code == code
    assert log.log_end_offset == end


def test_sequences_follow_each_other(log: Log) -> None:
    append(log, b"a", b"b", producer_id=1, epoch=0, sequence=0)
    append(log, b"c", producer_id=1, epoch=0, sequence=2)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, producer_id=1, epoch=0, sequence=4)
    append(log, b"d", producer_id=1, epoch=0, sequence=3)
    assert [value for _, value in read_all(log)] == [b"a", b"b", b"c", b"d"]


def test_a_retried_batch_gets_its_first_offset_again(log: Log) -> None:
    """Within the window of the last five batches; one that is older is out of order."""
    for number in range(7):
        append(log, b"x", b"y", producer_id=1, epoch=0, sequence=2 * number)
    for number in (2, 6):
        result = append(log, b"x", b"y", producer_id=1, epoch=0, sequence=2 * number)
        assert result.duplicate
        assert (result.first_offset, result.last_offset) == (2 * number, 2 * number + 1)
    assert log.log_end_offset == 14
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, producer_id=1, epoch=0, sequence=0)


def test_a_batch_that_overlaps_an_old_one_is_no_duplicate(log: Log) -> None:
    append(log, b"x", b"y", producer_id=1, epoch=0, sequence=0)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, producer_id=1, epoch=0, sequence=0)


def test_an_unknown_producer_may_start_anywhere(log: Log) -> None:
    """Its state may have gone with old segments (KIP-360)."""
    append(log, producer_id=1, epoch=3, sequence=500)
    append(log, producer_id=1, epoch=3, sequence=501)


def test_a_new_epoch_starts_at_zero_and_an_old_one_is_fenced(log: Log) -> None:
    append(log, producer_id=1, epoch=0, sequence=0)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, producer_id=1, epoch=1, sequence=1)
    append(log, producer_id=1, epoch=1, sequence=0)
    refused(errors.INVALID_PRODUCER_EPOCH, log, producer_id=1, epoch=0, sequence=1)


def test_sequences_wrap_around(log: Log) -> None:
    append(log, b"a", b"b", producer_id=1, epoch=0, sequence=2**31 - 3)
    append(log, b"c", b"d", producer_id=1, epoch=0, sequence=2**31 - 1)  # its second record has sequence 0
    result = append(log, b"e", producer_id=1, epoch=0, sequence=1)
    assert result.first_offset == 4
    again = append(log, b"c", b"d", producer_id=1, epoch=0, sequence=2**31 - 1)
    assert again.duplicate
    assert again.first_offset == 2
    assert first_sequence_of(0, 1) == 2**31 - 1


def test_a_sequence_that_ends_at_the_largest_goes_on_at_zero(log: Log) -> None:
    append(log, b"a", producer_id=1, epoch=0, sequence=2**31 - 1)
    append(log, b"b", producer_id=1, epoch=0, sequence=0)


def test_an_open_transaction_holds_back_the_last_stable_offset(log: Log) -> None:
    append(log, b"plain")
    append(log, b"a", producer_id=1, epoch=0, sequence=0, transactional=True)
    append(log, b"b", producer_id=2, epoch=0, sequence=0, transactional=True)
    assert log.last_stable_offset(3) == 1
    append_marker(log, 1, 0, commit=True)
    assert log.last_stable_offset(3) == 1, "the marker is not replicated yet"
    assert log.last_stable_offset(4) == 2
    append_marker(log, 2, 0, commit=False)
    assert log.last_stable_offset(5) == 5
    assert log.aborted_transactions(0, 5) == [(2, 2)]
    assert log.aborted_transactions(0, 2) == []


@pytest.mark.parametrize("is_loaded", [False, True])
def test_a_read_names_the_aborted_transactions_within_it_and_hardly_more(tmp_path: Path, is_loaded: bool) -> None:
    """A long log has many: naming all of them with every read would cost more than the records."""
    log = new_log(tmp_path, config(index_interval_bytes=400, segment_bytes=20_000))
    for number in range(300):
        producer_id = number % 3
        append(log, b"x" * 50, producer_id=producer_id, epoch=number, sequence=0, transactional=True)
        if number >= 2:
            append_marker(log, (number - 2) % 3, number - 2, commit=number % 2 == 0)
    for number in (298, 299):
        append_marker(log, number % 3, number, commit=False)
    if is_loaded:
        log.close(NOW_MS)
        log = reopen(log, clean=True)
    assert len(log.segments) > 2
    end = log.log_end_offset
    every = log.collect_aborted(0, end)
    assert len(every) > 140
    offset = 0
    while offset < end:
        found = log.read(offset, 1000, end, True)
        assert found.records is not None
        data = found.records.file.read(found.records.position, found.records.size)  # type: ignore[attr-defined]
        last = split_batches(data, 0, len(data))[-1].last_offset
        named = log.aborted_within(offset, found)
        needed = [one for one in every if one.last_offset >= offset and one.first_offset <= last]
        assert {(one.producer_id, one.first_offset) for one in needed} <= set(named)
        assert len(named) <= len(needed) + 5
        assert named == sorted(named, key=lambda one: one[1])
        offset = last + 1
    assert log.aborted_within(end, log.read(end, 1000, end, True)) == []


def test_the_last_stable_offset_never_passes_the_high_watermark(log: Log) -> None:
    append(log, b"a")
    append(log, b"a", producer_id=1, epoch=0, sequence=0, transactional=True)
    assert log.last_stable_offset(1) == 1


def test_a_write_outside_of_the_open_transaction_is_refused(log: Log) -> None:
    append(log, producer_id=1, epoch=0, sequence=0, transactional=True)
    refused(errors.INVALID_TXN_STATE, log, producer_id=1, epoch=0, sequence=1)


def test_old_coordinators_and_old_epochs_cannot_end_a_transaction(log: Log) -> None:
    append(log, producer_id=1, epoch=5, sequence=0, transactional=True)
    append_marker(log, 1, 5, commit=True, coordinator_epoch=3)
    with pytest.raises(KafkaError) as caught:
        append_marker(log, 1, 5, commit=True, coordinator_epoch=2)
    assert caught.value.code == errors.TRANSACTION_COORDINATOR_FENCED
    with pytest.raises(KafkaError) as caught:
        append_marker(log, 1, 4, commit=True, coordinator_epoch=3)
    assert caught.value.code == errors.INVALID_PRODUCER_EPOCH


def test_after_a_marker_of_a_new_epoch_sequences_start_again(log: Log) -> None:
    """Transaction version 2: the marker carries an epoch that is one higher."""
    append(log, producer_id=1, epoch=0, sequence=0, transactional=True)
    append_marker(log, 1, 1, commit=True)
    entry = log.producers.entries[1]
    assert (entry.epoch, entry.last_sequence) == (1, -1)
    refused(errors.INVALID_PRODUCER_EPOCH, log, producer_id=1, epoch=0, sequence=1, transactional=True)
    append(log, producer_id=1, epoch=1, sequence=0, transactional=True)


def test_with_transaction_version_2_a_marker_must_raise_the_epoch_of_what_it_ends(log: Log) -> None:
    append(log, producer_id=1, epoch=5, sequence=0, transactional=True)
    with pytest.raises(KafkaError) as caught:
        append_marker(log, 1, 5, commit=True, transaction_version=2)
    assert caught.value.code == errors.INVALID_PRODUCER_EPOCH
    append_marker(log, 1, 6, commit=True, transaction_version=2)
    append_marker(log, 1, 6, commit=True, transaction_version=2)  # a retry ends nothing
    assert log.last_stable_offset(3) == 3


def test_after_a_marker_of_the_same_epoch_sequences_go_on(log: Log) -> None:
    """Transaction version 1."""
    append(log, producer_id=1, epoch=0, sequence=0, transactional=True)
    append_marker(log, 1, 0, commit=False)
    refused(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, log, producer_id=1, epoch=0, sequence=5, transactional=True)
    append(log, producer_id=1, epoch=0, sequence=1, transactional=True)


def test_silent_producers_are_forgotten_unless_they_are_in_a_transaction(log: Log) -> None:
    append(log, producer_id=1, epoch=0, sequence=0)
    append(log, producer_id=2, epoch=0, sequence=0, transactional=True)
    assert log.producers.expire(NOW_MS + 999, 1000) == 0
    assert log.producers.expire(NOW_MS + 1000, 1000) == 1
    assert list(log.producers.entries) == [2]


def test_snapshots_have_the_bytes_kafka_writes() -> None:
    for data in (OPEN_TRANSACTION, AFTER_MARKER):
        state = ProducerState()
        state.restore(decode_snapshot(data, "x"), 8)
        assert encode_snapshot(state) == data
    assert encode_snapshot(ProducerState()).hex() == "000148674bc700000000"


def test_a_snapshot_knows_open_transactions_and_duplicates() -> None:
    state = ProducerState()
    state.restore(decode_snapshot(OPEN_TRANSACTION, "x"), 8)
    assert state.first_unstable_offset() == 7
    entry = state.entries[8]
    assert (entry.epoch, entry.last_sequence, entry.last_offset, entry.coordinator_epoch) == (2, 0, 7, 0)


@pytest.mark.parametrize("position", range(len(OPEN_TRANSACTION)))
def test_any_flipped_byte_makes_a_snapshot_unusable(position: int) -> None:
    data = bytearray(OPEN_TRANSACTION)
    data[position] ^= 0x40
    with pytest.raises(DamagedSnapshot):
        decode_snapshot(bytes(data), "x")


def test_a_damaged_snapshot_is_skipped_for_the_one_before(tmp_path: Path) -> None:
    disk = PosixDisk()
    (tmp_path / "00000000000000000003.snapshot").write_bytes(OPEN_TRANSACTION)
    (tmp_path / "00000000000000000008.snapshot").write_bytes(AFTER_MARKER[:-1])
    (tmp_path / "00000000000000000099.snapshot").write_bytes(AFTER_MARKER)
    snapshots = ProducerSnapshots(disk, str(tmp_path), [3, 8, 99], WallClock())
    state = ProducerState()
    useless = snapshots.restore(state, 0, 10, NOW_MS, -1)
    assert (state.end_offset, list(state.entries)) == (3, [8])
    assert sorted(useless) == [str(tmp_path / f"{offset:020d}.snapshot") for offset in (8, 99)]
    assert snapshots.offsets == [3]


def test_a_snapshot_is_written_once_per_offset(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(PosixDisk(), str(tmp_path), [], WallClock())
    state = ProducerState()
    assert not snapshots.take(state), "nothing at offset 0"
    state.end_offset = 5
    assert snapshots.take(state)
    assert not snapshots.take(state)
    assert snapshots.offsets == [5]


# What the snapshots do not have


def five_batches(log: Log, first: int = 0, roll_after: int = -1) -> None:
    for number in range(first, first + 5):
        append(log, b"x", b"y", producer_id=1, epoch=3, sequence=2 * number)
        if number == roll_after:
            log.roll(NOW_MS)


def retries_are_known(log: Log, first: int = 0) -> None:
    end = log.log_end_offset
    for number in range(first, first + 5):
        result = append(log, b"x", b"y", producer_id=1, epoch=3, sequence=2 * number)
        assert (result.duplicate, result.first_offset) == (True, 2 * number), number
    assert log.log_end_offset == end


def test_a_clean_stop_keeps_the_window(log: Log) -> None:
    five_batches(log)
    log.close(NOW_MS)
    again = reopen(log, clean=True)
    retries_are_known(again)
    again.close(NOW_MS)
    retries_are_known(reopen(again, clean=True))  # nothing was written in between, and nothing is lost


def test_a_crash_after_a_roll_keeps_the_window(log: Log) -> None:
    five_batches(log)
    five_batches(log, 5, roll_after=8)
    retries_are_known(reopen(log, recovery_point=18), 5)
    retries_are_known(reopen(log, recovery_point=0), 5)


@pytest.mark.parametrize("end", [16, 18, 20, 24])
def test_what_is_known_after_a_cut_is_in_the_log(log: Log, end: int) -> None:
    """Before the start of a segment, at it, and behind it."""
    five_batches(log)
    five_batches(log, 5, roll_after=8)
    five_batches(log, 10)
    log.truncate_to(end, NOW_MS)
    known = [one.last_offset for one in log.producers.entries[1].batches]
    assert known == list(range(known[0], end, 2)) and known[-1] == end - 1
    append(log, b"x", b"y", producer_id=1, epoch=3, sequence=end)


def test_a_cut_of_the_newest_batch_keeps_the_four_before_it(log: Log) -> None:
    five_batches(log, roll_after=3)
    log.truncate_to(8, NOW_MS)
    assert [one.last_offset for one in log.producers.entries[1].batches] == [1, 3, 5, 7]


def window_of(log: Log) -> Path:
    return Path(log.directory) / producer_window.FILE


def test_a_window_of_another_snapshot_counts_for_nothing(log: Log) -> None:
    """Apache Kafka may have written in between, and cut the log and written the same offsets anew."""
    five_batches(log)
    log.close(NOW_MS)
    data = window_of(log).read_bytes()
    other = reopen(log, clean=True)
    other.truncate_to(8, NOW_MS)
    append(other, b"x", b"y", producer_id=2, epoch=0, sequence=0)
    other.close(NOW_MS)
    window_of(log).write_bytes(data)
    again = reopen(other, clean=True)
    assert [one.last_offset for one in again.producers.entries[1].batches] == [7]


def test_a_damaged_window_counts_for_nothing(log: Log) -> None:
    five_batches(log)
    log.close(NOW_MS)
    data = window_of(log).read_bytes()
    for position in range(len(data)):
        window_of(log).write_bytes(data[:position] + bytes([data[position] ^ 0x40]) + data[position + 1 :])
        assert len(reopen(log, clean=True).producers.entries[1].batches) == 1
        window_of(log).write_bytes(data[:position])
        assert len(reopen(log, clean=True).producers.entries[1].batches) == 1


def commit_one(log: Log) -> None:
    """Offsets 0 to 2; the last is the marker."""
    append(log, b"a", b"b", producer_id=1, epoch=0, sequence=0, transactional=True)
    append_marker(log, 1, 0, commit=True)


def is_held_back_until_replicated(log: Log) -> bool:
    return [log.last_stable_offset(high_watermark) for high_watermark in (1, 2, 3)] == [0, 0, 3]


def test_a_marker_that_is_not_replicated_holds_back_readers_after_a_clean_stop(log: Log) -> None:
    commit_one(log)
    log.close(NOW_MS)
    assert is_held_back_until_replicated(reopen(log, clean=True))


def test_a_marker_that_is_not_replicated_holds_back_readers_after_a_roll_and_a_crash(log: Log) -> None:
    commit_one(log)
    log.roll(NOW_MS)
    append(log, b"c")
    assert is_held_back_until_replicated(reopen(log, recovery_point=3))


def test_a_marker_that_is_not_replicated_holds_back_readers_after_a_crash_that_goes_back_to_an_older_snapshot(
    log: Log,
) -> None:
    commit_one(log)
    log.roll(NOW_MS)
    append(log, b"c", producer_id=2, epoch=0, sequence=0)
    log.roll(NOW_MS)
    assert is_held_back_until_replicated(reopen(log, recovery_point=3))


def test_a_marker_that_is_not_replicated_holds_back_readers_after_a_cut_behind_it(log: Log) -> None:
    commit_one(log)
    log.roll(NOW_MS)
    append(log, b"c", b"d")
    window_of(log).unlink()
    log.truncate_to(4, NOW_MS)
    assert is_held_back_until_replicated(log)


def test_a_marker_that_was_cut_off_leaves_its_transaction_open(log: Log) -> None:
    append(log, b"a", producer_id=1, epoch=0, sequence=0, transactional=True)
    log.roll(NOW_MS)
    append(log, b"b", producer_id=1, epoch=0, sequence=1, transactional=True)
    append_marker(log, 1, 0, commit=True)
    log.truncate_to(2, NOW_MS)
    assert log.producers.unreplicated == {} and log.producers.ongoing == {0: 1}


def test_a_replicated_marker_is_not_written_down(log: Log) -> None:
    commit_one(log)
    log.producers.on_high_watermark(3)
    log.close(NOW_MS)
    assert reopen(log, clean=True).last_stable_offset(1) == 1


def test_a_log_without_producers_has_no_file_for_them(log: Log) -> None:
    append(log, b"x")
    log.close(NOW_MS)
    assert not window_of(log).exists()
    retries_of_nobody = reopen(log, clean=True)
    assert retries_of_nobody.producers.entries == {}


def test_producers_are_forgotten_by_the_time_they_were_seen_and_not_by_their_timestamps(log: Log) -> None:
    """Whoever copies old records sends old timestamps."""
    old = NOW_MS - 90 * DAY_MS
    append(log, b"a", producer_id=1, epoch=0, sequence=0, timestamp=old)
    assert log.producers.expire(NOW_MS + DAY_MS - 1, DAY_MS) == 0
    assert append(log, b"a", producer_id=1, epoch=0, sequence=0, timestamp=old).duplicate
    append_marker(log, 2, 0, commit=True)
    assert log.producers.entries[1].last_timestamp == old, "what others see is the record's"
    assert log.producers.expire(NOW_MS + DAY_MS, DAY_MS) == 2


@pytest.mark.parametrize("clean", [True, False])
def test_a_start_does_not_forget_who_sent_old_timestamps(log: Log, clean: bool) -> None:
    append(log, b"a", producer_id=1, epoch=0, sequence=0, timestamp=NOW_MS - 90 * DAY_MS)
    if clean:
        log.close(NOW_MS)
    again = reopen(log, clean=clean, now_ms=NOW_MS + 5000)
    assert append(again, b"a", producer_id=1, epoch=0, sequence=0).duplicate


def test_a_clean_stop_keeps_when_a_producer_was_seen(log: Log) -> None:
    append(log, b"a", producer_id=1, epoch=0, sequence=0)
    log.close(NOW_MS)
    again = reopen(log, clean=True, now_ms=NOW_MS + DAY_MS - 1)
    assert list(again.producers.entries) == [1]
    assert reopen(log, clean=True, now_ms=NOW_MS + DAY_MS).producers.entries == {}


def test_when_a_producer_was_seen_is_written_in_calendar_time(log: Log) -> None:
    """The steady clock begins anew with every process; the calendar goes on."""
    append(log, producer_id=7, epoch=0, sequence=0, now_ms=NOW_MS)
    log.wall.offset_ms = 5_000
    log.close(NOW_MS)
    log.log_directory.wall = WallClock(3_600_000)
    again = load_log(
        PosixDisk(),
        log.log_directory,
        log.directory,
        "topic",
        0,
        config=log.config,
        now_ms=NOW_MS - 9_000,
        recovery_point=log.recovery_point,
        log_start_offset=0,
        clean=True,
    )
    passed_ms = (NOW_MS - 9_000 + 3_600_000) - (NOW_MS + 5_000)
    assert again.producers.entries[7].seen_ms == NOW_MS - 9_000 - passed_ms


def test_a_producer_that_was_seen_in_the_future_was_seen_now(log: Log) -> None:
    append(log, producer_id=7, epoch=0, sequence=0, now_ms=NOW_MS)
    log.close(NOW_MS)
    log.log_directory.wall = WallClock(-86_400_000)
    again = load_log(
        PosixDisk(),
        log.log_directory,
        log.directory,
        "topic",
        0,
        config=log.config,
        now_ms=NOW_MS + 10,
        recovery_point=log.recovery_point,
        log_start_offset=0,
        clean=True,
    )
    assert again.producers.entries[7].seen_ms == NOW_MS + 10
