"""What a broker that was killed knows about what it has lost."""

from __future__ import annotations

import os
from pathlib import Path

from moldau.server.posix_disk import PosixDisk
from moldau.sim.disk import SimDisk
from moldau.storage.log_manager import LogManager
from moldau.storage.run_note import RUN_NOTE_FILE, epoch_of_killed_run, forget_run, write_run_note
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append
from tests.unit.storage.test_log_manager import manager


def test_a_killed_run_on_a_machine_that_goes_on_is_remembered() -> None:
    disk = SimDisk(1)
    disk.make_directory("data")
    write_run_note(disk, "data", 7)
    disk.process_crash()
    assert epoch_of_killed_run(disk, "data") == 7


def test_after_a_power_loss_nothing_is_believed() -> None:
    disk = SimDisk(1)
    disk.make_directory("data")
    disk.sync_directory("")
    write_run_note(disk, "data", 7)
    disk.sync_directory("data")
    disk.power_loss()
    assert epoch_of_killed_run(disk, "data") == -1


def test_damage_and_absence_are_not_believed() -> None:
    disk = SimDisk(1)
    disk.make_directory("data")
    assert epoch_of_killed_run(disk, "data") == -1
    for text in (b"", b"version=0\nmachine.run=run-0\n", b"version=1\nmachine.run=run-0\nbroker.epoch=3\n", b"\xff="):
        disk.write_file(f"data/{RUN_NOTE_FILE}", text)
        assert epoch_of_killed_run(disk, "data") == -1
    forget_run(disk, "data")
    forget_run(disk, "data")
    assert not disk.exists(f"data/{RUN_NOTE_FILE}")


def kill(logs: LogManager) -> None:
    """What the end of a process leaves behind: everything it wrote, and no lock."""
    for directory in logs.directories:
        logs.disk.unlock_directory(directory.path)


def test_a_broker_that_was_killed_says_that_it_has_lost_nothing(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    kill(logs)
    again = manager(tmp_path)
    assert again.loaded_unclean
    if PosixDisk().machine_run_id():
        assert again.previous_broker_epoch() == 41


def test_a_killed_broker_whose_log_had_to_be_cut_says_nothing(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    with open(tmp_path / "one" / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    kill(logs)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_directory_without_the_note_makes_the_whole_broker_uncertain(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    os.remove(tmp_path / "two" / RUN_NOTE_FILE)
    kill(logs)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_clean_stop_leaves_no_note(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    logs.shutdown(NOW_MS, 41)
    assert not (tmp_path / "one" / RUN_NOTE_FILE).exists()
    assert manager(tmp_path).previous_broker_epoch() == 41


def test_a_failed_directory_is_not_believed_again(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    logs.directories[0].fail(OSError(5, "no"))
    kill(logs)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_broker_that_is_killed_before_it_has_registered_has_lost_nothing_either(tmp_path: Path) -> None:
    """Neither after a clean stop nor after a kill, however often."""
    logs = manager(tmp_path)
    logs.note_run(41)
    logs.shutdown(NOW_MS, 41)
    for _ in range(3):
        logs = manager(tmp_path)
        if PosixDisk().machine_run_id():
            assert logs.previous_broker_epoch() == 41
        kill(logs)


def test_what_was_cut_is_not_forgotten_by_a_second_kill(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    with open(tmp_path / "one" / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    for _ in range(2):
        kill(logs)
        logs = manager(tmp_path)
        assert logs.previous_broker_epoch() == -1
