"""While a node serves, nothing waits for the medium in its own turn: no sync, no removal of data."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from moldau.config.log_config import LogConfig
from moldau.protocol.errors import KAFKA_STORAGE_ERROR, KafkaError
from moldau.protocol.records_data import MemoryRecords
from moldau.server.posix_disk import PosixDisk, PosixFile
from moldau.storage.compaction.cleaner import CleanerSettings, CompactionWorkers, Done, LogCleaner
from moldau.storage.compaction.compact import compact
from moldau.storage.compaction.task import CompactionTask
from moldau.storage.log import Log
from moldau.storage.log_flushing import WRITE_BACK_BYTES
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append, batch, config
from tests.unit.storage.turns import Turns, files_in


@pytest.fixture
def turns(monkeypatch: pytest.MonkeyPatch) -> Iterator[Turns]:
    turns = Turns(monkeypatch)
    yield turns
    turns.disk.close()


class Broker:
    """Logs of one topic in one directory, under a node that takes turns."""

    def __init__(self, path: Path, turns: Turns, partitions: int, settings: LogConfig) -> None:
        self.turns = turns
        self.settings = settings
        self.logs = LogManager(turns.disk, [str(path)], lambda _: self.settings)
        self.logs.load(NOW_MS)
        for partition in range(partitions):
            self.logs.create("topic", partition, TOPIC_ID, NOW_MS)
        turns.settle()
        turns.forget()

    def all(self) -> list[Log]:
        return list(self.logs.logs.values())


def test_rolls_sync_everything_on_threads(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 8, config(segment_bytes=200))
    for log in broker.all():
        for _ in range(8):
            append(log)
        assert len(log.segments) == 4
    turns.settle()
    assert [log.recovery_point for log in broker.all()] == [6] * 8
    assert turns.blocked == []
    assert any(line.endswith("leader-epoch-checkpoint") for line in turns.elsewhere)
    assert any(line.endswith("partition.metadata") for line in turns.elsewhere)
    assert f"fsync {broker.all()[0].directory}" in turns.elsewhere
    assert f"fsync {tmp_path}" in turns.elsewhere


def test_a_log_flushes_once_at_a_time_and_what_is_asked_for_meanwhile_shares_the_next(
    tmp_path: Path, turns: Turns
) -> None:
    broker = Broker(tmp_path, turns, 1, config(segment_bytes=200))
    log = broker.all()[0]
    for _ in range(100):
        append(log)
    turns.settle()
    assert log.recovery_point == 98
    folder_syncs = [line for line in turns.elsewhere if line == f"fsync {log.directory}"]
    assert 1 <= len(folder_syncs) < 10


def test_a_checkpoint_stays_within_a_segment_until_its_indexes_are_on_the_medium(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config())
    log = broker.all()[0]
    for _ in range(4):
        append(log)
    log.flushing.start()
    turns.settle()
    assert (log.recovery_point, log.flushing.checkpoint_offset()) == (4, 3), "the active segment has no indexes yet"
    log.roll(NOW_MS)
    assert (log.recovery_point, log.flushing.checkpoint_offset()) == (4, 3), "a start would not walk it and find none"
    turns.settle()
    assert log.flushing.checkpoint_offset() == 4
    assert f"fdatasync {log.segments[0].path('.timeindex')}" in turns.elsewhere
    assert turns.blocked == []


def test_large_segments_begin_to_be_written_before_they_roll(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(max_message_bytes=WRITE_BACK_BYTES))
    log = broker.all()[0]
    began: list[tuple[int, int]] = []
    turns.disk.write_back_later = lambda file, position, size, done: (  # type: ignore[method-assign]
        began.append((position, size)),
        done(None),
    )[1]
    for _ in range(12):
        append(log, bytes(WRITE_BACK_BYTES // 4))
    assert [position // WRITE_BACK_BYTES for position, _ in began] == [0, 1, 2]
    assert began[0][1] == began[1][0] >= WRITE_BACK_BYTES
    assert began[2][0] + began[2][1] == log.size_bytes


def test_of_a_log_one_write_back_at_a_time_is_under_way(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 4, config(max_message_bytes=2 * WRITE_BACK_BYTES))
    pending = []
    turns.disk.write_back_later = lambda file, position, size, done: pending.append(done)  # type: ignore[method-assign]
    for log in broker.all():
        for _ in range(3):
            append(log, bytes(WRITE_BACK_BYTES))
    assert len(pending) == 2, "and of a directory two"
    for done in pending:
        done(None)
    append(broker.all()[3], bytes(WRITE_BACK_BYTES))
    assert len(pending) == 3


def fill(log: Log, batches: int, producer_id: int = -1, size: int = 100_000) -> None:
    for number in range(batches):
        append(log, bytes(size), producer_id=producer_id, epoch=0 if producer_id >= 0 else -1, sequence=number)


def count_bytes_read(turns: Turns, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    sizes: list[int] = []
    read = PosixFile.read

    def counted(self: PosixFile, position: int, size: int) -> bytes:
        data = read(self, position, size)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(PosixFile, "read", counted)
    return sizes


@pytest.mark.parametrize("producer_id", [-1, 5])
def test_a_truncation_reads_little_however_large_the_segment_is(
    tmp_path: Path, turns: Turns, monkeypatch: pytest.MonkeyPatch, producer_id: int
) -> None:
    broker = Broker(tmp_path, turns, 1, config())
    log = broker.all()[0]
    fill(log, 400, producer_id)
    assert len(log.segments) == 1 and log.size_bytes > 40_000_000
    turns.settle()
    sizes = count_bytes_read(turns, monkeypatch)
    for offset in (399, 390, 250):
        broker.logs.truncate(log, offset, NOW_MS)
        assert sum(sizes) < 2 * WRITE_BACK_BYTES, f"at {offset}"
        sizes.clear()
        if producer_id >= 0:
            assert log.producers.entries[producer_id].last_sequence == offset - 1
    turns.settle()
    assert turns.blocked == []
    append(log, b"x", producer_id=producer_id, epoch=0 if producer_id >= 0 else -1, sequence=250)


def test_only_the_truncated_log_waits_until_its_cut_is_on_the_medium(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 2, config(segment_bytes=200))
    cut, other = broker.all()
    released: list[Log] = []
    broker.logs.on_released = released.append
    for log in (cut, other):
        for _ in range(8):
            append(log)
    turns.settle()
    broker.logs.checkpoints.write()
    turns.settle()
    turns.forget()
    broker.logs.truncate(cut, 3, NOW_MS)
    assert cut.log_end_offset == 3
    with pytest.raises(KafkaError) as refused:
        append(cut)
    assert refused.value.code == KAFKA_STORAGE_ERROR, "clients try again"
    with pytest.raises(KafkaError):
        cut.append_as_follower(MemoryRecords(batch(base_offset=3)), NOW_MS)
    append(other)
    turns.run(lambda: bool(released))
    assert released == [cut] and turns.blocked == []
    order = [line.split("/")[-1].replace(".job.tmp", "") for line in turns.elsewhere]
    checkpoint, folder = order.index("recovery-point-offset-checkpoint"), order.index(cut.directory.split("/")[-1])
    assert checkpoint < folder < order.index("00000000000000000002.log"), order
    assert append(cut, leader_epoch=1).first_offset == 3
    turns.settle()
    assert turns.blocked == []


def test_many_truncations_of_one_turn_share_their_checkpoints(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 50, config())
    for log in broker.all():
        append(log, b"a", b"b")
        append(log)
        log.flushing.start()
    turns.settle()
    broker.logs.checkpoints.write()
    turns.settle()
    turns.forget()
    for log in broker.all():
        broker.logs.truncate(log, 0, NOW_MS)
    turns.settle()
    assert [log.holds for log in broker.all()] == [0] * 50
    assert turns.blocked == []
    assert len([line for line in turns.elsewhere if "checkpoint" in line]) <= 6, "three files, twice at most"


def test_a_log_that_is_emptied_waits_too(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(segment_bytes=200))
    log = broker.all()[0]
    for _ in range(8):
        append(log)
    turns.settle()
    turns.forget()
    broker.logs.truncate_fully_and_start_at(log, 100, NOW_MS)
    assert (log.log_start_offset, log.log_end_offset, log.holds) == (100, 100, 1)
    turns.settle()
    assert log.holds == 0 and turns.blocked == []
    assert append(log).first_offset == 100


def test_a_stop_in_the_middle_of_a_truncation_ends_it(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(segment_bytes=200))
    log = broker.all()[0]
    for _ in range(8):
        append(log)
    turns.settle()
    broker.logs.checkpoints.write()
    turns.settle()
    broker.logs.truncate(log, 3, NOW_MS)
    broker.logs.shutdown(NOW_MS)
    again = LogManager(PosixDisk(), [str(tmp_path)], lambda _: broker.settings)
    again.load(NOW_MS)
    assert again.logs[("topic", 0)].log_end_offset == 3


def test_deletions_of_compacted_logs_write_their_checkpoint_once_or_twice(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 50, config(compact=True, file_delete_delay_ms=0))
    for partition in range(50):
        append(broker.logs.logs[("topic", partition)])
        broker.logs.checkpoints.set_cleaned_to(("topic", partition), 1)
    turns.settle()
    turns.forget()
    for partition in range(50):
        broker.logs.delete("topic", partition, NOW_MS)
    broker.logs.housekeeping(NOW_MS)
    turns.settle()
    assert turns.blocked == []
    assert len([line for line in turns.elsewhere if "cleaner-offset" in line]) <= 2
    assert files_in(str(tmp_path), "*-delete") == []
    assert (tmp_path / "cleaner-offset-checkpoint").read_text() == "0\n0\n"


def test_a_folder_that_goes_is_known_until_it_is_gone(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 3, config(file_delete_delay_ms=0))
    for partition in range(3):
        broker.logs.delete("topic", partition, NOW_MS)
    broker.logs.housekeeping(NOW_MS)
    assert len(broker.logs._deleted._logs) == 3
    turns.settle()
    assert broker.logs._deleted._logs == [] and files_in(str(tmp_path), "*-delete") == []
    assert turns.blocked == []


def test_a_log_of_the_same_name_takes_records_when_the_offsets_of_the_old_one_are_gone(
    tmp_path: Path, turns: Turns
) -> None:
    broker = Broker(tmp_path, turns, 1, config(segment_bytes=200))
    for _ in range(8):
        append(broker.all()[0])
    turns.settle()
    broker.logs.checkpoints.write()
    turns.settle()
    assert "topic 0 6" in (tmp_path / "recovery-point-offset-checkpoint").read_text()
    broker.logs.delete("topic", 0, NOW_MS)
    turns.forget()
    new = broker.logs.create("topic", 0, TOPIC_ID, NOW_MS)
    with pytest.raises(KafkaError):
        append(new)
    turns.run(lambda: new.holds == 0)
    assert turns.blocked == []
    assert "topic 0 6" not in (tmp_path / "recovery-point-offset-checkpoint").read_text()
    append(new)


def test_retention_removes_files_on_a_thread(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(segment_bytes=200, retention_bytes=0, file_delete_delay_ms=0))
    log = broker.all()[0]
    for _ in range(8):
        append(log)
    turns.settle()
    turns.forget()
    broker.logs.apply_retention(NOW_MS, lambda one: one.log_end_offset)
    turns.settle()
    assert any(line.startswith("remove") and line.endswith(".log.deleted") for line in turns.elsewhere)
    assert files_in(log.directory, "*.deleted") == [] and log.retired.is_empty
    assert turns.blocked == []


def test_a_compaction_is_put_to_use_without_waiting(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(compact=True, delete=False, segment_bytes=1000))
    broker.settings.min_cleanable_dirty_ratio = 0.0
    log = broker.all()[0]
    for _ in range(30):
        append(log, bytes(200))
    turns.settle()
    workers = WaitingWorkers()
    cleaner = LogCleaner(broker.logs, workers, CleanerSettings(backoff_ms=1), lambda one: one.log_end_offset)
    cleaner.poll(NOW_MS)
    cleaner.on_deadline = lambda deadline_ms: turns.post(lambda: cleaner.poll(NOW_MS))
    task, done = workers.submitted[0]
    result = compact(PosixDisk(), task, lambda size: None)
    size = log.size_bytes
    turns.forget()
    done(result)
    assert log.compacting and turns.blocked == []
    turns.run(lambda: not log.compacting)
    assert turns.blocked == []
    assert log.size_bytes < size
    assert f"topic 0 {result.end_offset}" in (tmp_path / "cleaner-offset-checkpoint").read_text()
    assert files_in(log.directory, "*.cleaned") == files_in(log.directory, "*.swap") == []


def test_a_truncation_while_a_compaction_waits_for_the_disk_ends_it(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(compact=True, delete=False, segment_bytes=1000))
    broker.settings.min_cleanable_dirty_ratio = 0.0
    log = broker.all()[0]
    for _ in range(30):
        append(log, bytes(200))
    turns.settle()
    workers = WaitingWorkers()
    cleaner = LogCleaner(broker.logs, workers, CleanerSettings(backoff_ms=1), lambda one: one.log_end_offset)
    cleaner.poll(NOW_MS)
    cleaner.on_deadline = lambda deadline_ms: turns.post(lambda: cleaner.poll(NOW_MS))
    task, done = workers.submitted[0]
    result = compact(PosixDisk(), task, lambda size: None)
    turns.forget()
    done(result)
    assert log.compacting
    broker.logs.truncate(log, 5, NOW_MS)
    turns.run(lambda: not log.compacting)
    assert log.log_end_offset == 5
    assert files_in(log.directory, "*.cleaned") == files_in(log.directory, "*.swap") == []
    assert broker.logs.checkpoints.cleaned_to.get(("topic", 0), 0) <= 5
    assert turns.blocked == []


class WaitingWorkers(CompactionWorkers):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.submitted: list[tuple[CompactionTask, Done]] = []

    def submit(self, task: CompactionTask, bytes_per_second: float, done: Done) -> None:
        self.submitted.append((task, done))

    def cancel(self, task: CompactionTask) -> None:
        """Its result is thrown away by the cleaner."""


def test_a_clean_stop_in_the_middle_of_a_compaction_leaves_nothing_of_it(tmp_path: Path, turns: Turns) -> None:
    broker = Broker(tmp_path, turns, 1, config(compact=True, delete=False, segment_bytes=1000))
    broker.settings.min_cleanable_dirty_ratio = 0.0
    log = broker.all()[0]
    for _ in range(30):
        append(log, bytes(200))
    turns.settle()
    workers = WaitingWorkers()
    settings = CleanerSettings(backoff_ms=1)
    LogCleaner(broker.logs, workers, settings, lambda one: one.log_end_offset).poll(NOW_MS)
    compact(PosixDisk(), workers.submitted[0][0], lambda size: None)
    assert files_in(log.directory, "*.cleaned") != [], "the worker has not said that it is done"
    broker.logs.shutdown(NOW_MS)
    assert files_in(log.directory, "*.cleaned") == []
