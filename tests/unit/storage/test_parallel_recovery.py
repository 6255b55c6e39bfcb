"""Several logs recovered at a time, in processes: the same as one after the other, and no harm if a process dies."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.server import recovery_processes
from moldau.server.posix_disk import PosixDisk
from moldau.server.recovery_processes import RecoveryProcesses
from moldau.storage import log_loading
from moldau.storage.log import Log
from moldau.storage.log_manager import LogManager
from moldau.storage.recovery_task import bytes_to_walk
from tests.pace import patience, wait_until
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append, append_marker, config, read_all

SETTINGS = config(segment_bytes=2000, index_interval_bytes=200)
LOGS = 5


@pytest.fixture(autouse=True)
def every_log_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_loading, "SMALLEST_TASK_BYTES", 1)
    monkeypatch.setattr(log_loading, "WORTH_IT_BYTES", 1)


def crashed(tmp_path: Path) -> None:
    """Logs with producers, transactions and torn ends, and no clean stop."""
    disk = PosixDisk()
    logs = LogManager(disk, [str(tmp_path)], lambda topic: SETTINGS)
    logs.load(NOW_MS)
    for number in range(LOGS):
        log = logs.create("t", number, TOPIC_ID, NOW_MS)
        for sequence in range(30):
            append(log, b"%d/%d" % (number, sequence), producer_id=7, epoch=0, sequence=sequence)
        append(log, b"in doubt", producer_id=8, epoch=0, sequence=0, transactional=True)
        append_marker(log, 8, 0, commit=False)
        append(log, b"open", producer_id=9, epoch=0, sequence=0, transactional=True)
        with open(log.active.path(".log"), "ab") as file:
            file.write(b"torn" * number)
    disk.close()


def start(tmp_path: Path, parallel: bool) -> tuple[LogManager, PosixDisk]:
    disk = PosixDisk()
    logs = LogManager(disk, [str(tmp_path)], lambda topic: SETTINGS)
    if parallel:
        logs.recovery_workers = RecoveryProcesses(disk)
        logs.recovery_workers_max = 2
    logs.load(NOW_MS)
    return logs, disk


def state_of(log: Log) -> object:
    producers = {
        entry.producer_id: (entry.epoch, entry.transaction_first_offset, [one.last_sequence for one in entry.batches])
        for entry in log.producers.entries.values()
    }
    indexes = [(segment.offset_index().entries(), segment.time_index().entries()) for segment in log.segments[:-1]]
    return (
        read_all(log),
        log.base_offsets,
        log.log_start_offset,
        log.log_end_offset,
        log.last_stable_offset(log.log_end_offset),
        log.aborted_transactions(0, log.log_end_offset),
        log.leader_epochs.entries(),
        producers,
        indexes,
        log.recovery_point,
    )


def test_it_is_the_same_as_one_after_the_other(tmp_path: Path) -> None:
    states = []
    for parallel in (False, True):
        folder = tmp_path / str(parallel)
        crashed(folder)
        logs, disk = start(folder, parallel)
        states.append([state_of(logs.logs[("t", number)]) for number in range(LOGS)])
        disk.close()
    assert states[0] == states[1]


def test_a_producer_that_had_several_batches_on_their_way_is_recognised(tmp_path: Path) -> None:
    """A clean stop keeps the last batch of a producer only; after a crash up to five may be sent again."""
    crashed(tmp_path)
    logs, disk = start(tmp_path, parallel=True)
    log = logs.logs[("t", 3)]
    for sequence in (26, 27, 28, 29):
        assert append(log, b"again", producer_id=7, epoch=0, sequence=sequence).duplicate
    assert not append(log, b"new", producer_id=7, epoch=0, sequence=30).duplicate
    disk.close()


@pytest.mark.parametrize("program", ["import sys; sys.exit(1)", "import sys; sys.stdin.buffer.read(10); print('x')"])
def test_a_worker_that_dies_leaves_its_work_to_the_node(
    tmp_path: Path, program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dying(_: RecoveryProcesses) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    crashed(tmp_path)
    monkeypatch.setattr(recovery_processes.RecoveryProcesses, "_start", dying)
    logs, disk = start(tmp_path, parallel=True)
    assert {log.log_end_offset for log in logs.logs.values()} == {33}
    disk.close()


def test_a_worker_of_a_dead_node_keeps_others_out(tmp_path: Path) -> None:
    """It may still change files; the next node must not open them before it is gone."""
    reading, writing = os.pipe()
    node = (
        "import subprocess, sys\n"
        "from moldau.server.posix_disk import PosixDisk\n"
        "disk = PosixDisk()\n"
        "disk.lock_directory(sys.argv[1])\n"
        "worker = [sys.executable, '-c', 'import sys; sys.stdin.read()']\n"
        "subprocess.Popen(worker, stdin=int(sys.argv[2]), pass_fds=disk.lock_descriptors())\n"
        "import os; os._exit(0)\n"
    )
    subprocess.run([sys.executable, "-c", node, str(tmp_path), str(reading)], pass_fds=[reading], check=True)
    os.close(reading)
    disk = PosixDisk()
    with pytest.raises(BlockingIOError):
        disk.lock_directory(str(tmp_path))
    os.close(writing)

    def lock() -> bool:
        try:
            disk.lock_directory(str(tmp_path))
        except BlockingIOError:
            return False
        return True

    wait_until(lock, 10)
    assert disk.lock_descriptors()
    disk.close()


def test_how_much_there_is_to_walk() -> None:
    files = {f"{base:020d}.log": size for base, size in ((0, 10), (100, 20), (200, 40))}
    assert [bytes_to_walk(files, point) for point in (0, 99, 100, 150, 200, 999)] == [70, 70, 60, 60, 40, 40]
    assert bytes_to_walk({}, 5) == 0


def test_in_the_background_it_is_the_same(tmp_path: Path) -> None:
    crashed(tmp_path / "one")
    crashed(tmp_path / "two")
    plain, first = start(tmp_path / "one", parallel=False)
    disk = PosixDisk()
    posted: queue.Queue[Callable[[], None]] = queue.Queue()
    logs = LogManager(disk, [str(tmp_path / "two")], lambda topic: SETTINGS)
    logs.recovery_workers = RecoveryProcesses(disk, posted.put)
    logs.recovery_workers_max = 2
    loading = logs.begin_load()
    loading.run_turn(NOW_MS)
    assert not loading.has_work and not loading.is_done and logs.logs == {}
    posted.get(timeout=patience(60))()
    while not loading.is_done:
        loading.run_turn(NOW_MS)
    for number in range(LOGS):
        assert state_of(logs.logs[("t", number)]) == state_of(plain.logs[("t", number)])
    first.close()
    disk.close()


def test_processes_that_still_work_are_ended_with_the_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    started: queue.Queue[subprocess.Popen[bytes]] = queue.Queue()

    def hanging(_: RecoveryProcesses) -> subprocess.Popen[bytes]:
        program = "import sys, time; sys.stdin.buffer.read(10); time.sleep(600)"
        process = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.put(process)
        return process

    crashed(tmp_path)
    monkeypatch.setattr(recovery_processes.RecoveryProcesses, "_start", hanging)
    disk = PosixDisk()
    posted: queue.Queue[Callable[[], None]] = queue.Queue()
    logs = LogManager(disk, [str(tmp_path)], lambda topic: SETTINGS)
    workers = logs.recovery_workers = RecoveryProcesses(disk, posted.put)
    logs.recovery_workers_max = 2
    loading = logs.begin_load()
    loading.run_turn(NOW_MS)
    processes = [started.get(timeout=patience(60))]
    loading.abandon(NOW_MS)
    workers.close()
    posted.get(timeout=patience(60))()
    while not started.empty():
        processes.append(started.get())
    assert all(process.wait(patience(60)) != 0 for process in processes)
    assert not loading.has_work and logs.logs == {}
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []
    disk.close()
