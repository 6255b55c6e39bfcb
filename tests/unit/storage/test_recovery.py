"""Opening a folder again: after a clean stop, after a crash at any byte, with damaged or missing files."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.protocol.uuids import ZERO_UUID
from moldau.server.posix_disk import PosixDisk
from moldau.sim.kernel.disk import SimDisk
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import (
    NOW_MS,
    TOPIC_ID,
    append,
    append_marker,
    batch,
    config,
    names,
    new_log,
    read_all,
    reopen,
)

SMALL = config(segment_bytes=400, index_interval_bytes=100)


def filled(path: Path, count: int = 20) -> Log:
    log = new_log(path, SMALL)
    for number in range(count):
        append(log, b"value %d" % number, timestamp=NOW_MS + number, producer_id=1, epoch=0, sequence=number)
    return log


def segment_path(log: Log, number: int, suffix: str = ".log") -> Path:
    return Path(log.directory) / f"{log.base_offsets[number]:020d}{suffix}"


def index_bytes(log: Log) -> dict[str, bytes]:
    folder = Path(log.directory)
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".index", ".timeindex")}


def test_after_a_clean_stop_everything_is_as_it_was(tmp_path: Path) -> None:
    log = filled(tmp_path)
    expected = read_all(log)
    log.close(NOW_MS)
    again = reopen(log, clean=True)
    assert again.log_end_offset == again.recovery_point == 20
    assert again.size_bytes == log.size_bytes
    assert again.topic_id == TOPIC_ID
    assert again.leader_epochs.entries() == [(0, 0)]
    assert again.producers.entries[1].last_sequence == 19
    assert read_all(again) == expected
    append(again, b"more", producer_id=1, epoch=0, sequence=20, timestamp=NOW_MS + 20)
    again.close(NOW_MS)
    assert read_all(reopen(again, clean=True)) == [*expected, (20, b"more")]


def test_a_clean_start_opens_no_data_file(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close(NOW_MS)
    again = reopen(log, clean=True)
    assert isinstance(again.disk, PosixDisk)
    assert again.disk.open_files() == 0
    assert all(segment.file is None for segment in again.segments)


def test_the_files_of_a_clean_stop_do_not_change_when_nothing_is_appended(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close(NOW_MS)
    before = {name: (Path(log.directory) / name).read_bytes() for name in names(log)}
    again = reopen(log, clean=True)
    read_all(again)
    again.close(NOW_MS)
    assert {name: (Path(log.directory) / name).read_bytes() for name in names(log)} == before


def test_indexes_built_by_recovery_equal_those_written_by_appending(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close(NOW_MS)
    expected = index_bytes(log)
    assert any(len(data) > 8 for data in expected.values())
    for name in expected:
        os.remove(Path(log.directory) / name)
    again = reopen(log, recovery_point=0)
    again.close(NOW_MS)
    assert index_bytes(again) == expected


@pytest.mark.parametrize("clean", [False, True])
def test_a_crash_loses_nothing_that_was_written(tmp_path: Path, clean: bool) -> None:
    """Also when someone claims that the stop was clean although no snapshot was written."""
    log = filled(tmp_path)
    again = reopen(log, clean=clean)
    assert read_all(again) == read_all(log)
    assert again.producers.entries[1].last_sequence == 19
    assert append(again, b"value 19", producer_id=1, epoch=0, sequence=19, timestamp=NOW_MS + 19).duplicate


def test_a_tail_cut_at_any_byte_ends_the_log_before_the_torn_batch(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    path = segment_path(log, 0)
    data = path.read_bytes()
    last = log.active.find_batch(2)[0]
    for size in range(last, len(data)):
        path.write_bytes(data[:size])
        again = reopen(log)
        assert again.log_end_offset == 2
        assert path.stat().st_size == last
        assert [offset for offset, _ in read_all(again)] == [0, 1]
        assert again.producers.entries[1].last_sequence == 1
    append(again, b"new", producer_id=1, epoch=0, sequence=2)
    assert read_all(reopen(again))[-1] == (2, b"new")


def test_any_flipped_bit_in_the_last_batch_is_noticed(tmp_path: Path) -> None:
    """Except in the base offset and leader epoch, which the checksum does not cover."""
    log = filled(tmp_path, 3)
    path = segment_path(log, 0)
    data = path.read_bytes()
    last = log.active.find_batch(2)[0]
    for position in [*range(last + 8, last + 12), *range(last + 16, len(data))]:
        broken = bytearray(data)
        broken[position] ^= 0x04
        path.write_bytes(broken)
        again = reopen(log)
        assert again.log_end_offset == 2, position - last


def test_garbage_and_zeros_at_the_end_are_cut(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    path = segment_path(log, 0)
    data = path.read_bytes()
    for tail in (b"\x00" * 5000, b"\xff" * 5000, os.urandom(3000), data):
        path.write_bytes(data + tail)
        again = reopen(log)
        assert again.log_end_offset == 3
        assert path.read_bytes() == data


def test_segments_behind_a_damaged_one_go(tmp_path: Path) -> None:
    log = filled(tmp_path)
    assert len(log.segments) > 3
    path = segment_path(log, 1)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    again = reopen(log, recovery_point=0)
    assert again.base_offsets == log.base_offsets[:2]
    assert again.log_end_offset == log.base_offsets[2] - 1
    assert read_all(again) == [(number, b"value %d" % number) for number in range(again.log_end_offset)]
    assert {name[:20] for name in names(again) if name.endswith(".log")} == {f"{o:020d}" for o in log.base_offsets[:2]}


def test_flushed_segments_are_not_walked(tmp_path: Path) -> None:
    log = filled(tmp_path)
    path = segment_path(log, 0)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert reopen(log).log_end_offset == 20


def test_a_recovery_point_beyond_the_log_still_walks_the_last_segment(tmp_path: Path) -> None:
    """It may be left from a deleted topic of the same name."""
    log = filled(tmp_path, 3)
    path = segment_path(log, 0)
    path.write_bytes(path.read_bytes()[:-3])
    again = reopen(log, recovery_point=1000)
    assert again.log_end_offset == again.recovery_point == 2


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("damage", ["missing", "empty", "odd", "zeros", "huge"])
def test_indexes_of_flushed_segments_are_built_anew(tmp_path: Path, suffix: str, damage: str) -> None:
    log = filled(tmp_path)
    expected = read_all(log)
    log.close(NOW_MS)
    path = segment_path(log, 0, suffix)
    good = path.read_bytes()
    if damage == "missing":
        os.remove(path)
    else:
        path.write_bytes({"empty": b"", "odd": good[:-1], "zeros": bytes(len(good)), "huge": good + bytes(960)}[damage])
    again = reopen(log, clean=True)
    assert read_all(again, max_bytes=1) == expected
    assert again.segments[0].largest_timestamp() == NOW_MS + again.base_offsets[1] - 1
    assert again.offset_for_timestamp(NOW_MS + 1, 20) == (1, NOW_MS + 1, 0)
    again.close(NOW_MS)
    if damage != "empty" or suffix == ".timeindex":  # an offset index without entries is right, and of little use
        assert path.read_bytes() == good, "and need not be built the next time"


@pytest.mark.parametrize("data", [None, b"", b"garbage", b"0\n5\n1 0\n"])
@pytest.mark.parametrize("clean", [False, True])
def test_lost_leader_epochs_are_learned_from_the_batches(tmp_path: Path, data: bytes | None, clean: bool) -> None:
    log = new_log(tmp_path, SMALL)
    for number in range(12):
        append(log, leader_epoch=number // 4)
    log.close(NOW_MS)
    path = tmp_path / "topic-0" / "leader-epoch-checkpoint"
    os.remove(path)
    if data is not None:
        path.write_bytes(data)
    again = reopen(log, clean=clean)
    assert again.leader_epochs.entries() == [(0, 0), (1, 4), (2, 8)]


def test_epochs_beyond_the_end_of_the_log_go(tmp_path: Path) -> None:
    log = filled(tmp_path, 2)
    log.leader_epochs.assign(7, 2)
    log.close(NOW_MS)
    assert reopen(log, clean=True).leader_epochs.entries() == [(0, 0)]


def test_a_damaged_topic_id_is_no_reason_to_fail(tmp_path: Path) -> None:
    log = filled(tmp_path, 2)
    (tmp_path / "topic-0" / "partition.metadata").write_bytes(b"\x00\x01")
    assert reopen(log).topic_id == ZERO_UUID


@pytest.mark.parametrize("lost", ["none", "newest", "all"])
def test_producer_state_is_rebuilt_from_what_is_left(tmp_path: Path, lost: str) -> None:
    log = filled(tmp_path)
    append(log, producer_id=7, epoch=2, sequence=5, transactional=True)
    log.close(NOW_MS)
    snapshots = sorted(Path(log.directory).glob("*.snapshot"))
    assert len(snapshots) > 2
    for path in {"none": [], "newest": snapshots[-1:], "all": snapshots}[lost]:
        path.write_bytes(b"damaged")
    again = reopen(log, clean=True)
    assert again.producers.entries[1].last_sequence == 19
    assert again.producers.first_unstable_offset() == 20
    assert (again.producers.entries[7].epoch, again.producers.entries[7].last_sequence) == (2, 5)


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    log = filled(tmp_path, 2)
    log.close(NOW_MS)
    assert reopen(log, clean=True, now_ms=NOW_MS + 90_000_000).producers.entries == {}


def test_the_transaction_index_is_rebuilt(tmp_path: Path) -> None:
    log = new_log(tmp_path, SMALL)
    append(log, producer_id=1, epoch=0, sequence=0, transactional=True)
    append(log, producer_id=2, epoch=0, sequence=0, transactional=True)
    for _ in range(6):
        append(log, bytes(40))
    append_marker(log, 1, 0, commit=False)
    append_marker(log, 2, 0, commit=True)
    assert len(log.segments) > 1
    paths = list(Path(log.directory).glob("*.txnindex"))
    assert len(paths) == 1
    expected = paths[0].read_bytes()
    log.close(NOW_MS)
    for damage in (expected[:-1], expected + b"x" * 34, bytes(34)):
        paths[0].write_bytes(damage)
        again = reopen(log, clean=True)
        assert again.aborted_transactions(0, 100) == [(1, 0)]
        again.close(NOW_MS)
        assert paths[0].read_bytes() == expected


def test_a_log_start_inside_the_log_is_kept(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.advance_log_start(5)
    again = reopen(log)
    assert again.log_start_offset == 5
    assert again.leader_epochs.entries() == [(0, 5)]
    assert read_all(again)[0][0] == 5


def test_a_log_that_ends_before_its_start_begins_anew(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    again = reopen(log, log_start=10)
    assert (again.log_start_offset, again.log_end_offset, again.base_offsets) == (10, 10, [10])
    assert append(again).first_offset == 10


def test_a_folder_without_segments_is_an_empty_log(tmp_path: Path) -> None:
    log = filled(tmp_path, 3)
    for name in names(log):
        os.remove(Path(log.directory) / name)
    again = reopen(log, log_start=0)
    assert (again.log_start_offset, again.log_end_offset) == (0, 0)


def test_leftovers_of_deletions_and_unfinished_compactions_go(tmp_path: Path) -> None:
    log = filled(tmp_path)
    expected = read_all(log)
    folder = Path(log.directory)
    for name in (f"{0:020d}.log.cleaned", f"{0:020d}.index.cleaned", f"{3:020d}.log.deleted", "x.tmp"):
        (folder / name).write_bytes(b"rubbish")
    (folder / f"{0:020d}.timeindex.swap").write_bytes(b"was cleaned before, and the log is not renamed yet")
    (folder / f"{99:020d}.index").write_bytes(b"orphan")
    again = reopen(log)
    assert read_all(again) == expected
    assert not [name for name in names(again) if name.endswith((".cleaned", ".deleted", ".swap", ".tmp"))]
    assert f"{99:020d}.index" not in names(again)


def test_a_complete_compaction_is_finished(tmp_path: Path) -> None:
    """The .swap segment covers the first two; they may have been renamed already or not."""
    log = filled(tmp_path)
    folder = Path(log.directory)
    merged = segment_path(log, 0).read_bytes() + segment_path(log, 1).read_bytes()
    (folder / f"{0:020d}.log.swap").write_bytes(merged)
    os.rename(segment_path(log, 0), str(segment_path(log, 0)) + ".deleted")
    again = reopen(log)
    assert again.base_offsets == [0, *log.base_offsets[2:]]
    assert read_all(again) == [(number, b"value %d" % number) for number in range(20)]


def test_snapshots_that_belong_to_no_segment_go(tmp_path: Path) -> None:
    log = filled(tmp_path)
    log.close(NOW_MS)
    stray = Path(log.directory) / f"{1:020d}.snapshot"
    stray.write_bytes((Path(log.directory) / f"{20:020d}.snapshot").read_bytes())
    again = reopen(log, clean=True)
    assert not stray.exists()
    assert again.snapshots.offsets == [*log.base_offsets[1:], 20]


def test_a_start_makes_durable_what_a_killed_process_has_renamed() -> None:
    """Else segments that were cut off come back at a power loss, behind what was appended since."""
    later: list[Callable[[], None]] = []
    disk = SimDisk(1, lambda delay_ms, action: later.append(action))
    disk.make_directory("data")
    settings = config(segment_bytes=200)
    logs = LogManager(disk, ["data"], lambda _: settings)
    logs.load(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(6):
        append(log)
    log.flush()
    logs.truncate(log, 1, NOW_MS)
    disk.process_crash()
    lines: list[str] = []
    disk.observer = lines.append
    again = LogManager(disk, ["data"], lambda _: settings)
    again.load(NOW_MS)
    assert again.logs[("t", 0)].log_end_offset <= 2
    last_removal = max(number for number, line in enumerate(lines) if line.endswith(".deleted"))
    assert "sync_directory data/t-0" in lines[last_removal:]
    again.logs[("t", 0)].truncate_to(1)
    append(again.logs[("t", 0)], b"new", leader_epoch=1)
    disk.power_loss(random.Random(3))
    assert [name for name in disk.list("data/t-0") if name.endswith((".log", ".log.deleted"))] == [
        "00000000000000000000.log"
    ]


def test_a_segment_that_begins_within_the_one_before_goes(tmp_path: Path) -> None:
    """It was deleted, and came back at a power loss in the place of what was appended since."""
    log = filled(tmp_path)
    expected = read_all(log)
    end, last = log.log_end_offset, log.segments[-1]
    log.close(NOW_MS)
    stale = Path(log.directory) / f"{end - 1:020d}.log"
    assert stale != Path(last.path(".log"))
    stale.write_bytes(batch((b"stale",), base_offset=end - 1, leader_epoch=0))
    again = reopen(log, recovery_point=0)
    assert again.log_end_offset == end
    assert again.producers.end_offset == end and again.producers.entries[1].last_sequence == 19
    assert read_all(again) == expected
    assert not stale.exists()
    append(again, b"more", producer_id=1, epoch=0, sequence=20, timestamp=NOW_MS + 20)
    assert read_all(again) == [*expected, (end, b"more")]


def test_segments_that_recovery_deletes_do_not_come_back() -> None:
    """Else a power loss puts them into the place of what was appended since."""
    disk = SimDisk(1, lambda delay_ms, action: None)
    disk.make_directory("data")
    settings = config(segment_bytes=200)
    logs = LogManager(disk, ["data"], lambda _: settings)
    logs.load(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(6):
        append(log)
    log.flush()
    disk.flip_bit(log.segments[0].path(".log"), 100, 0)
    disk.process_crash()
    lines: list[str] = []
    disk.observer = lines.append
    LogManager(disk, ["data"], lambda _: settings).load(NOW_MS)
    deleted = [number for number, line in enumerate(lines) if line.startswith("remove") and line.endswith(".log")]
    assert deleted and "sync_directory data/t-0" in lines[deleted[-1] :]
