"""What a broker that was killed knows about what it has lost."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from moldau.config.log_config import LogConfig
from moldau.server import machine_memory
from moldau.server.machine_memory import ANCHOR_FILE, MachineMemory
from moldau.server.posix_disk import PosixDisk
from moldau.sim.disk import SimDisk
from moldau.storage.log_manager import LogManager
from moldau.storage.run_note import epoch_of_killed_run, forget_run, note_run
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append
from tests.unit.storage.test_log_manager import manager


@pytest.fixture(autouse=True)
def memory(no_memory: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own in the place of tmpfs."""
    folder = tmp_path_factory.mktemp("memory")
    monkeypatch.setattr("moldau.server.posix_disk.find_memory_folder", lambda: str(folder))
    if not Path(machine_memory.BOOT_ID_FILE).exists():
        boot_id = folder.parent / "boot_id"
        boot_id.write_text("1")
        monkeypatch.setattr(machine_memory, "BOOT_ID_FILE", str(boot_id))
    return folder


# The simulated disk


def sim_disk() -> SimDisk:
    disk = SimDisk(1)
    disk.make_directory("data")
    disk.sync_directory("")
    return disk


def test_a_killed_run_on_a_machine_that_goes_on_is_remembered() -> None:
    disk = sim_disk()
    note_run(disk, "data", 7)
    disk.process_crash()
    assert epoch_of_killed_run(disk, "data") == 7


def test_after_a_power_loss_nothing_is_believed() -> None:
    disk = sim_disk()
    note_run(disk, "data", 7)
    disk.sync_directory("data")
    disk.power_loss()
    assert epoch_of_killed_run(disk, "data") == -1


def test_a_disk_that_failed_and_came_back_without_what_was_written_last_is_not_trusted() -> None:
    """The process that sees the failure forgets the run, and needs no disk for that."""
    disk = sim_disk()
    logs = LogManager(disk, ["data"], lambda topic: LogConfig())
    logs.load(NOW_MS)
    logs.note_run(41)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, b"synced")
    log.flush()
    append(log, b"lost")
    disk.break_down()
    logs.directories[0].fail(OSError(errno.EIO, "seen by somebody"))
    disk.come_back()
    again = LogManager(disk, ["data"], lambda topic: LogConfig())
    again.load(NOW_MS)
    assert again.previous_broker_epoch() == -1


# A real one


def test_what_is_remembered_is_told_to_the_next_process(tmp_path: Path, memory: Path) -> None:
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == "7"
    MachineMemory(str(memory)).remember(str(tmp_path), "8")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == "8"
    assert len(list(memory.iterdir())) == 1
    MachineMemory(str(memory)).forget(str(tmp_path))
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""
    assert list(memory.iterdir()) == [] and list(tmp_path.iterdir()) == []


def copied(path: Path) -> None:
    shutil.copytree(path, path.parent / "copy")
    shutil.rmtree(path)
    shutil.copytree(path.parent / "copy", path)


def restored_in_place(path: Path) -> None:
    (path / "backup").write_bytes((path / ANCHOR_FILE).read_bytes())
    os.replace(path / "backup", path / ANCHOR_FILE)


def changed(path: Path) -> None:
    (path / ANCHOR_FILE).write_bytes(b"0" * 32)


def removed(path: Path) -> None:
    (path / ANCHOR_FILE).unlink()


@pytest.mark.parametrize("happens", [copied, restored_in_place, changed, removed])
def test_a_directory_that_is_not_the_one_it_was_is_not_trusted(tmp_path: Path, memory: Path, happens: object) -> None:
    path = tmp_path / "data"
    path.mkdir()
    MachineMemory(str(memory)).remember(str(path), "7")
    assert callable(happens)
    happens(path)
    assert MachineMemory(str(memory)).recall(str(path)) == ""


def test_another_mount_or_another_run_of_the_machine_is_not_trusted(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    monkeypatch.setattr(machine_memory, "_mount_id", lambda path: "4000:1")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""
    MachineMemory(str(memory)).remember(str(tmp_path), "8")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == "8"
    boot_id = tmp_path / "boot_id"
    boot_id.write_text("another")
    monkeypatch.setattr(machine_memory, "BOOT_ID_FILE", str(boot_id))
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""


def test_damage_is_not_believed(tmp_path: Path, memory: Path) -> None:
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    (note,) = memory.iterdir()
    for text in (b"", b"[]", b"{}", b"\xff", note.read_bytes()[:-5]):
        note.write_bytes(text)
        assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""
    note.unlink()
    note.mkdir()  # somebody is in the way: nothing is remembered, and nothing fails
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""


def test_what_another_user_wrote_is_not_believed(tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    (note,) = memory.iterdir()
    other = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: other)
    note.rename(str(note).replace(f"-{other - 1}-", f"-{other}-"))
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""


def test_a_run_is_forgotten_although_its_disk_says_nothing(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(tmp_path / "data")
    os.mkdir(path)
    MachineMemory(str(memory)).remember(path, "7")
    os.rename(path, path + ".unreachable")
    MachineMemory(str(memory)).forget(path)
    os.rename(path + ".unreachable", path)
    assert MachineMemory(str(memory)).recall(path) == "" and list(memory.iterdir()) == []


def test_without_tmpfs_nothing_is_remembered(tmp_path: Path) -> None:
    memory = MachineMemory("")
    memory.remember(str(tmp_path), "7")
    assert memory.recall(str(tmp_path)) == "" and list(tmp_path.iterdir()) == []
    memory.forget(str(tmp_path))


@pytest.mark.skipif(not Path(machine_memory.NAMESPACE_FILE).exists(), reason="only Linux has namespaces of mounts")
def test_notes_about_directories_that_are_gone_do_not_stay_for_ever(tmp_path: Path, memory: Path) -> None:
    for name in ("gone", "here", "elsewhere", "new"):
        (tmp_path / name).mkdir()
    for name in ("gone", "here", "elsewhere"):
        MachineMemory(str(memory)).remember(str(tmp_path / name), "7")
    for note in memory.iterdir():
        if "/elsewhere" in note.read_text():
            note.write_text(note.read_text().replace("mnt:[", "mnt:[9"))  # of somebody who sees other mounts
    shutil.rmtree(tmp_path / "gone")
    shutil.rmtree(tmp_path / "elsewhere")
    MachineMemory(str(memory)).remember(str(tmp_path / "new"), "8")
    left = "".join(note.read_text() for note in memory.iterdir())
    assert ["/gone" in left, "/here" in left, "/elsewhere" in left, "/new" in left] == [False, True, True, True]


def test_only_tmpfs_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mounts = tmp_path / "mountinfo"
    monkeypatch.setattr(machine_memory, "MOUNTS_FILE", str(mounts))
    monkeypatch.setattr(machine_memory, "MEMORY_FOLDER", str(tmp_path))
    shm = f"25 24 0:23 / {tmp_path} rw,relatime shared:3 - tmpfs tmpfs rw"
    disk = f"26 24 8:1 / {tmp_path} rw - ext4 /dev/sda1 rw"
    for lines, found in (
        ([], ""),
        ([shm], str(tmp_path)),
        ([disk], ""),
        ([disk, shm], str(tmp_path)),
        ([shm, disk], ""),
    ):
        mounts.write_text("".join(line + "\n" for line in lines))
        assert machine_memory.find_memory_folder() == found
    mounts.unlink()
    assert machine_memory.find_memory_folder() == ""


# All directories of a broker


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
    assert again.previous_broker_epoch() == 41


def test_a_killed_broker_whose_log_had_to_be_cut_says_nothing(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    with open(tmp_path / "one" / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    kill(logs)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_directory_of_which_nothing_is_known_makes_the_whole_broker_uncertain(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    forget_run(PosixDisk(), str(tmp_path / "two"))
    kill(logs)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_clean_stop_leaves_no_note(tmp_path: Path, memory: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    assert len(list(memory.iterdir())) == 2
    logs.shutdown(NOW_MS, 41)
    assert not (tmp_path / "one" / ANCHOR_FILE).exists() and list(memory.iterdir()) == []
    assert manager(tmp_path).previous_broker_epoch() == 41


def test_a_failed_directory_is_not_believed_again(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.note_run(41)
    logs.directories[0].fail(OSError(5, "no"))
    kill(logs)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_directory_in_which_nothing_fits_any_more_is_not_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = manager(tmp_path)

    def full(path: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "full", path)

    monkeypatch.setattr(machine_memory, "_replace", full)
    logs.note_run(41)
    kill(logs)
    assert not any(directory.failed for directory in logs.directories)
    assert manager(tmp_path).previous_broker_epoch() == -1


def test_a_broker_that_is_killed_before_it_has_registered_has_lost_nothing_either(tmp_path: Path) -> None:
    """Neither after a clean stop nor after a kill, however often."""
    logs = manager(tmp_path)
    logs.note_run(41)
    logs.shutdown(NOW_MS, 41)
    for _ in range(3):
        logs = manager(tmp_path)
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
