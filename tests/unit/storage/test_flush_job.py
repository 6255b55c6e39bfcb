"""Syncs in the background: the recovery point moves when they are done, and not when the log was cut meanwhile."""

from __future__ import annotations

import queue
from collections.abc import Callable
from pathlib import Path

from moldau.server.posix_disk import PosixDisk
from moldau.storage.log import Log
from tests.pace import patience
from tests.unit.storage.helpers import append, config, new_log


class Turns:
    """Collects what sync threads post; `run` is the node's own turn."""

    def __init__(self) -> None:
        self.posted: queue.Queue[Callable[[], None]] = queue.Queue()

    def run(self, log: Log, until: int) -> None:
        while log.recovery_point < until:
            self.posted.get(timeout=patience(10))()

    def drain(self, disk: PosixDisk) -> None:
        disk.close()  # waits for the threads
        while not self.posted.empty():
            self.posted.get()()


def rolled(tmp_path: Path, turns: Turns) -> Log:
    log = new_log(tmp_path, config(segment_bytes=200), PosixDisk(post=turns.posted.put))
    for _ in range(4):
        append(log)
    assert len(log.segments) == 2
    return log


def test_a_roll_syncs_what_is_finished_in_the_background(tmp_path: Path) -> None:
    turns = Turns()
    log = rolled(tmp_path, turns)
    assert log.recovery_point == 0
    turns.run(log, until=2)
    assert log.recovery_point == log.base_offsets[1] == 2


def test_a_truncation_in_between_leaves_the_recovery_point_alone(tmp_path: Path) -> None:
    turns = Turns()
    log = rolled(tmp_path, turns)
    log.truncate_to(1)
    append(log, leader_epoch=1)
    assert isinstance(log.disk, PosixDisk)
    turns.drain(log.disk)
    assert log.recovery_point == 0


def test_a_sync_that_fails_takes_the_directory_offline(tmp_path: Path) -> None:
    turns = Turns()
    log = rolled(tmp_path, turns)
    assert isinstance(log.disk, PosixDisk)
    reported: list[OSError | None] = []
    log.disk.close()
    for path in (tmp_path / "topic-0").iterdir():
        path.unlink()
    log.flushing.later(log.log_end_offset, reported.append)
    while not reported:
        turns.posted.get(timeout=patience(10))()
    assert isinstance(reported[0], OSError)
    assert log.log_directory.failed
    turns.drain(log.disk)
