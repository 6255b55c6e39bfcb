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
from moldau.sim.kernel.disk import SimDisk
from moldau.sim.kernel.world import World
from moldau.storage.killed_broker import DirectoryEnds, KilledRun, forget_run, note_run
from moldau.storage.log_manager import LogManager
from tests.unit.storage.helpers import NOW_MS, TOPIC_ID, append
from tests.unit.storage.test_log_manager import manager

REAL_MOUNT_ID = machine_memory._mount_id


@pytest.fixture(autouse=True)
def memory(no_memory: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own in the place of tmpfs."""
    folder = tmp_path_factory.mktemp("memory")
    monkeypatch.setattr("moldau.server.posix_disk.find_memory_directory", lambda: str(folder))
    if not Path(machine_memory.BOOT_ID_FILE).exists():
        boot_id = folder.parent / "boot_id"
        boot_id.write_text("1")
        monkeypatch.setattr(machine_memory, "BOOT_ID_FILE", str(boot_id))
    if not machine_memory._mount_id(str(folder)):
        monkeypatch.setattr(machine_memory, "_mount_id", lambda path: "4000:7")
    return folder


# The simulated disk


def sim_disk() -> SimDisk:
    disk = SimDisk(1)
    disk.make_directory("data")
    disk.sync_directory("")
    return disk


def test_a_killed_run_on_a_machine_that_goes_on_is_remembered() -> None:
    disk = sim_disk()
    note_run(disk, "data", 7, DirectoryEnds().encoded())
    disk.process_crash()
    assert KilledRun(disk, "data").broker_epoch == 7


def test_after_a_power_loss_nothing_is_believed() -> None:
    disk = sim_disk()
    note_run(disk, "data", 7, DirectoryEnds().encoded())
    disk.sync_directory("data")
    disk.power_loss()
    assert KilledRun(disk, "data").broker_epoch == -1


def test_a_disk_that_failed_and_came_back_without_what_was_written_last_is_not_trusted() -> None:
    """The process that sees the failure forgets the run, and needs no disk for that."""
    disk = sim_disk()
    logs = LogManager(disk, ["data"], lambda topic: LogConfig())
    logs.load(NOW_MS)
    logs.runs.note_run(41)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, b"synced")
    log.flush()
    append(log, b"lost")
    disk.break_down()
    logs.directories[0].fail(OSError(errno.EIO, "seen by somebody"))
    disk.come_back()
    again = LogManager(disk, ["data"], lambda topic: LogConfig())
    again.load(NOW_MS)
    assert again.runs.previous_broker_epoch() == -1


# A real one


def test_what_is_remembered_is_told_to_the_next_process(tmp_path: Path, memory: Path) -> None:
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == "7"
    MachineMemory(str(memory)).remember(str(tmp_path), "8")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == "8"
    assert len(list(memory.iterdir())) == 2
    MachineMemory(str(memory)).forget(str(tmp_path))
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""
    assert list(memory.iterdir()) == [] and list(tmp_path.iterdir()) == []


def note_in(memory: Path) -> Path:
    (note,) = (path for path in memory.iterdir() if path.suffix != ".details")
    return note


def test_details_belong_to_the_note_they_were_written_with(tmp_path: Path, memory: Path) -> None:
    path = str(tmp_path)
    first = MachineMemory(str(memory))
    first.remember(path, "7", b"early")
    first.remember_details(path, b"late")
    assert MachineMemory(str(memory)).recall_details(path) == b"late"
    kept = Path(f"{note_in(memory)}.details").read_bytes()
    MachineMemory(str(memory)).remember(path, "8", b"of another run")
    Path(f"{note_in(memory)}.details").write_bytes(kept)
    assert MachineMemory(str(memory)).recall(path) == "8"
    assert MachineMemory(str(memory)).recall_details(path) == b""


def test_details_that_come_late_are_not_left_behind(tmp_path: Path, memory: Path) -> None:
    """As from a thread that was busy with them when the run ended."""
    known = MachineMemory(str(memory))
    known.remember(str(tmp_path), "7")
    known.forget(str(tmp_path))
    known.remember_details(str(tmp_path), b"late")
    assert list(memory.iterdir()) == []


def test_nothing_is_remembered_where_one_mount_cannot_be_told_from_the_next(
    tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before Linux 6.8 a disk that was ended and mounted again, without what was written last, has the same number."""
    monkeypatch.setattr(machine_memory, "STATX_MNT_ID_UNIQUE", 1 << 30)
    monkeypatch.setattr(machine_memory, "_mount_id", REAL_MOUNT_ID)
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""
    assert list(memory.iterdir()) == []


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
    note = note_in(memory)
    for text in (b"", b"[]", b"{}", b"\xff", note.read_bytes()[:-5]):
        note.write_bytes(text)
        assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""
    note.unlink()
    note.mkdir()  # somebody is in the way: nothing is remembered, and nothing fails
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    assert MachineMemory(str(memory)).recall(str(tmp_path)) == ""


def test_what_another_user_wrote_is_not_believed(tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    MachineMemory(str(memory)).remember(str(tmp_path), "7")
    note = note_in(memory)
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
    monkeypatch.setattr(machine_memory, "MEMORY_DIRECTORY", str(tmp_path))
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
        assert machine_memory.find_memory_directory() == found
    mounts.unlink()
    assert machine_memory.find_memory_directory() == ""


# All directories of a broker


def kill(logs: LogManager) -> None:
    """What the end of a process leaves behind: everything it wrote, and no lock."""
    for directory in logs.directories:
        logs.disk.unlock_directory(directory.path)


def test_a_broker_that_was_killed_says_that_it_has_lost_nothing(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    kill(logs)
    again = manager(tmp_path)
    assert again.runs.loaded_unclean
    assert again.runs.previous_broker_epoch() == 41


def test_a_killed_broker_whose_log_had_to_be_cut_says_nothing(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    with open(tmp_path / "one" / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    kill(logs)
    assert manager(tmp_path).runs.previous_broker_epoch() == -1


def test_a_directory_of_which_nothing_is_known_makes_the_whole_broker_uncertain(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    forget_run(PosixDisk(), str(tmp_path / "two"))
    kill(logs)
    assert manager(tmp_path).runs.previous_broker_epoch() == -1


def test_a_clean_stop_leaves_no_note(tmp_path: Path, memory: Path) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    assert len(list(memory.iterdir())) == 4, "a note and its details for each directory"
    logs.shutdown(NOW_MS, 41)
    assert not (tmp_path / "one" / ANCHOR_FILE).exists() and list(memory.iterdir()) == []
    assert manager(tmp_path).runs.previous_broker_epoch() == 41


def test_a_failed_directory_is_not_believed_again(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    logs.directories[0].fail(OSError(5, "no"))
    kill(logs)
    assert manager(tmp_path).runs.previous_broker_epoch() == -1


def test_a_directory_in_which_nothing_fits_any_more_is_not_a_failed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = manager(tmp_path)

    def full(path: str, data: bytes) -> None:
        raise OSError(errno.ENOSPC, "full", path)

    monkeypatch.setattr(machine_memory, "_replace", full)
    logs.runs.note_run(41)
    kill(logs)
    assert not any(directory.failed for directory in logs.directories)
    assert manager(tmp_path).runs.previous_broker_epoch() == -1


def test_a_broker_that_is_killed_before_it_has_registered_has_lost_nothing_either(tmp_path: Path) -> None:
    """Neither after a clean stop nor after a kill, however often."""
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    logs.shutdown(NOW_MS, 41)
    for _ in range(3):
        logs = manager(tmp_path)
        assert logs.runs.previous_broker_epoch() == 41
        kill(logs)


def test_what_was_cut_is_not_forgotten_by_a_second_kill(tmp_path: Path) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    append(logs.create("t", 0, TOPIC_ID, NOW_MS), b"x")
    with open(tmp_path / "one" / "t-0" / f"{0:020d}.log", "ab") as file:
        file.write(b"torn")
    for _ in range(2):
        kill(logs)
        logs = manager(tmp_path)
        assert logs.runs.previous_broker_epoch() == -1


# Where the logs ended


def killed_with_a_log_of(tmp_path: Path, records: int) -> LogManager:
    """A run that wrote so many records, which the note knows of."""
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(records):
        append(log, b"x")
    logs.housekeeping(NOW_MS)
    return logs


def restore(copy: Path, path: Path) -> None:
    """As `rsync -a` does: what has the same size and time is left alone, all else replaced."""
    for source in copy.rglob("*"):
        target = path / source.relative_to(copy)
        if not source.is_file():
            continue
        if target.exists():
            old, new = target.stat(), source.stat()
            if (old.st_size, old.st_mtime_ns) == (new.st_size, new.st_mtime_ns):
                continue
        shutil.copy2(source, f"{target}.new")
        os.replace(f"{target}.new", target)


def test_a_copy_that_was_made_while_the_broker_ran_and_restored_in_place_is_not_trusted(tmp_path: Path) -> None:
    logs = killed_with_a_log_of(tmp_path, 10)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    log = logs.get("t", 0)
    assert log is not None
    for _ in range(90):
        append(log, b"x")
    logs.housekeeping(NOW_MS + 1000)
    kill(logs)
    restore(tmp_path / "copy", tmp_path / "one")
    again = manager(tmp_path)
    found = again.get("t", 0)
    assert found is not None and found.log_end_offset == 10
    assert again.runs.previous_broker_epoch() == -1


def test_a_copy_as_long_as_the_log_and_of_an_older_epoch_is_not_trusted(tmp_path: Path) -> None:
    """What was there when the copy was made has been cut off since, and something else was written instead."""
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(10):
        append(log, b"x", leader_epoch=3)
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    logs.housekeeping(NOW_MS)
    logs.truncate(log, 5, NOW_MS)
    for _ in range(5):
        append(log, b"x", leader_epoch=4)
    logs.housekeeping(NOW_MS)
    kill(logs)
    restore(tmp_path / "copy", tmp_path / "one")
    (tmp_path / "one" / "t-0" / f"{0:020d}.log").write_bytes((tmp_path / "copy" / "t-0" / f"{0:020d}.log").read_bytes())
    again = manager(tmp_path)
    found = again.get("t", 0)
    assert found is not None and found.log_end_offset == 10
    assert again.runs.previous_broker_epoch() == -1


def test_a_log_that_is_not_there_any_more_costs_the_trust(tmp_path: Path) -> None:
    kill(killed_with_a_log_of(tmp_path, 3))
    shutil.rmtree(tmp_path / "one" / "t-0")
    assert manager(tmp_path).runs.previous_broker_epoch() == -1


def test_records_written_since_the_note_was_made_do_not_cost_the_trust(tmp_path: Path) -> None:
    logs = killed_with_a_log_of(tmp_path, 3)
    log = logs.get("t", 0)
    assert log is not None
    append(log, b"x")
    append(logs.create("u", 0, TOPIC_ID, NOW_MS), b"x")
    kill(logs)
    assert manager(tmp_path).runs.previous_broker_epoch() == 41


@pytest.mark.parametrize("is_noted", [True, False], ids=["the note knows", "killed before the note knows"])
@pytest.mark.parametrize("happens", ["cut", "deleted"])
def test_a_log_that_was_cut_or_deleted_costs_the_trust_only_until_the_note_knows(happens: str, is_noted: bool) -> None:
    """That is begun at once, and does not wait for the next round."""
    world = World(1)
    disk = SimDisk(1, world.schedule)
    disk.make_directory("data")
    logs = LogManager(disk, ["data"], lambda topic: LogConfig())
    logs.load(NOW_MS)
    logs.runs.note_run(41)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(3):
        append(log, b"x")
    logs.housekeeping(NOW_MS)
    world.run_for(500)
    if happens == "cut":
        logs.truncate(log, 1, NOW_MS)
    else:
        logs.delete("t", 0, NOW_MS)
    if is_noted:
        world.run_for(500)
    disk.process_crash()
    again = LogManager(disk, ["data"], lambda topic: LogConfig())
    again.load(NOW_MS)
    assert again.runs.previous_broker_epoch() == (41 if is_noted else -1)


def test_a_log_that_was_cut_and_went_on_in_a_later_epoch_does_not_cost_the_trust(tmp_path: Path) -> None:
    """No older copy ends in an epoch that the note had not heard of."""
    logs = killed_with_a_log_of(tmp_path, 3)
    log = logs.get("t", 0)
    assert log is not None
    logs.truncate(log, 1, NOW_MS)
    append(log, b"x", leader_epoch=7)
    assert log.log_end_offset == 2
    kill(logs)
    assert manager(tmp_path).runs.previous_broker_epoch() == 41


def test_a_node_that_leaves_the_logs_alone_leaves_the_note_as_it_was(tmp_path: Path) -> None:
    """A run that never got so far as to load them."""
    logs = killed_with_a_log_of(tmp_path, 3)
    append(logs.create("u", 0, TOPIC_ID, NOW_MS), b"in the other directory")
    logs.housekeeping(NOW_MS)
    kill(logs)
    untouched = manager(tmp_path, load=False)
    untouched.lock()
    untouched.runs.take_clean_shutdown_files()
    untouched.release()
    assert KilledRun(PosixDisk(), str(tmp_path / "one")).ends == {("t", 0): (3, 0)}
    assert manager(tmp_path).runs.previous_broker_epoch() == 41


def test_many_logs_are_looked_at_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moldau.storage.killed_broker.LOGS_PER_TURN", 2)
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    many = [logs.create("t", number, TOPIC_ID, NOW_MS, logs.directories[0]) for number in range(5)]
    logs.housekeeping(NOW_MS)
    for log in many:
        append(log, b"x")
    known = []
    for _ in range(3):
        logs.housekeeping(NOW_MS)
        ends = KilledRun(logs.disk, logs.directories[0].path).ends
        known.append(sum(ends["t", number][0] for number in range(5)))
    assert known[-1] == 5 and known[0] <= 2


# Writes that failed behind everybody's back


def test_a_write_that_failed_unseen_costs_the_trust_and_memory_is_not_believed() -> None:
    """The kernel could not write what it had taken, and told nobody before the broker was killed."""
    disk = sim_disk()
    logs = LogManager(disk, ["data"], lambda topic: LogConfig())
    logs.load(NOW_MS)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    append(log, b"synced")
    log.flush()
    logs.runs.note_run(41)
    append(log, b"lost")
    disk.fail_write_back("t-0/")
    assert disk.size(log.active.path(".log")) == log.size_bytes, "nobody sees it"
    disk.process_crash()
    again = LogManager(disk, ["data"], lambda topic: LogConfig())
    again.load(NOW_MS)
    assert again.runs.previous_broker_epoch() == -1
    found = again.get("t", 0)
    assert found is not None and found.log_end_offset == 1
    disk.evict()
    assert disk.size(found.active.path(".log")) == found.size_bytes, "the log ends where the medium does"


def test_only_what_is_not_known_to_be_on_the_medium_is_synced_before_a_broker_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = manager(tmp_path)
    logs.runs.note_run(41)
    log = logs.create("t", 0, TOPIC_ID, NOW_MS)
    for _ in range(3):
        append(log, b"x")
        log.roll(NOW_MS)
    log.flush()
    logs.checkpoints.write_now()
    append(log, b"x")
    log.roll(NOW_MS)
    append(log, b"x")
    kill(logs)
    synced: list[str] = []

    def sync(descriptor: int) -> None:
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if path.endswith(".log"):
            synced.append(os.path.basename(path))

    monkeypatch.setattr("moldau.server.posix_disk.sync_descriptor", sync)
    assert manager(tmp_path).runs.previous_broker_epoch() == 41
    assert sorted(set(synced)) == [f"{3:020d}.log", f"{4:020d}.log"]


def test_a_sync_that_tells_of_a_failed_write_costs_the_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kill(killed_with_a_log_of(tmp_path, 3))

    def sync(descriptor: int) -> None:
        raise OSError(errno.EIO, "what was written before could not be written back")

    with monkeypatch.context() as patch:
        patch.setattr("moldau.server.posix_disk.sync_descriptor", sync)
        lost = PosixDisk().sync_all([str(tmp_path / "one" / "t-0" / f"{0:020d}.log"), str(tmp_path / "missing")])
    assert lost == [str(tmp_path / "one" / "t-0" / f"{0:020d}.log")]
    monkeypatch.setattr(PosixDisk, "sync_all", lambda disk, paths: list(paths))
    again = manager(tmp_path)
    assert again.runs.previous_broker_epoch() == -1
    kill(again)
    monkeypatch.undo()
    assert manager(tmp_path).runs.previous_broker_epoch() == -1, "it is told once, and must not be forgotten"
