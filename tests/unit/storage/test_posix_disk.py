"""The POSIX disk: appends, reads, renames under open files, few descriptors, atomic files, locks, syncs."""

from __future__ import annotations

import gc
import os
import queue
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.server.posix_calls import write_all
from moldau.server.posix_disk import PosixDisk
from tests.pace import patience


@pytest.fixture
def disk() -> PosixDisk:
    return PosixDisk()


def test_appends_go_to_the_end_in_order(disk: PosixDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "f"), create=True)
    assert file.append([b"one"]) == 3
    assert file.append([b"two", memoryview(b"three"), b""]) == 8
    assert file.append([b"x"] * 2000) == 2000
    assert file.size() == 2011
    assert file.read(0, 11) == b"onetwothree"
    assert file.read(2009, 100) == b"xx"
    assert file.read(5000, 10) == b""


def test_a_short_write_goes_on_where_it_stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = os.writev
    monkeypatch.setattr(os, "writev", lambda fd, parts: real(fd, [bytes(parts[0])[:2]]))
    descriptor = os.open(tmp_path / "f", os.O_RDWR | os.O_CREAT)
    assert write_all(descriptor, [b"abcde", b"", b"fgh"]) == 8
    assert (tmp_path / "f").read_bytes() == b"abcdefgh"
    os.close(descriptor)


def test_an_append_of_parts_survives_a_short_write(
    disk: PosixDisk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    real = os.writev
    file = disk.open(str(tmp_path / "f"), create=True)
    monkeypatch.setattr(os, "writev", lambda fd, parts: real(fd, [bytes(parts[0])[:3]]))
    assert file.append([b"abcde", b"fgh"]) == 8
    assert (tmp_path / "f").read_bytes() == b"abcdefgh"


def test_a_missing_file_is_not_opened(disk: PosixDisk, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        disk.open(str(tmp_path / "missing"))


def test_files_follow_when_they_or_their_folder_are_renamed(tmp_path: Path) -> None:
    """Even when their descriptor was closed in between, because there may be only one."""
    disk = PosixDisk(open_files_max=1)
    folder = str(tmp_path / "a")
    disk.make_directory(folder)
    first = disk.open(f"{folder}/1", create=True)
    first.append([b"first"])
    second = disk.open(f"{folder}/2", create=True)
    second.append([b"second"])
    assert disk.open_files() == 1
    disk.rename(f"{folder}/1", f"{folder}/1.deleted")
    disk.rename(folder, str(tmp_path / "b"))
    assert first.path == str(tmp_path / "b" / "1.deleted")
    assert first.read(0, 10) == b"first"
    assert second.read(0, 10) == b"second"
    first.append([b"!"])
    assert (tmp_path / "b" / "1.deleted").read_bytes() == b"first!"


def test_the_number_of_descriptors_is_bounded_and_used_ones_stay(tmp_path: Path) -> None:
    disk = PosixDisk(open_files_max=4)
    files = [disk.open(str(tmp_path / str(number)), create=True) for number in range(20)]
    for file in files:
        file.append([file.path.encode()])
        assert disk.open_files() <= 4
    hot = files[0].fileno()
    for file in files[1:4]:
        file.fileno()
        assert files[0].fileno() == hot
    assert all(file.read(0, 500) == file.path.encode() for file in files)


def test_a_file_nobody_holds_gives_its_descriptor_back(disk: PosixDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "f"), create=True)
    file.append([b"x"])
    assert disk.open_files() == 1
    del file
    gc.collect()
    assert disk.open_files() == 0


def test_small_files_are_replaced_as_a_whole(disk: PosixDisk, tmp_path: Path) -> None:
    path = str(tmp_path / "f")
    disk.write_file(path, b"old", mode=0o400)
    assert os.stat(path).st_mode & 0o777 == 0o400
    disk.write_file(path, b"new", sync=False)
    assert disk.read_file(path) == b"new"
    assert disk.list(str(tmp_path)) == ["f"]


def test_listing_has_sizes_and_marks_folders(disk: PosixDisk, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"12345")
    (tmp_path / "d").mkdir()
    assert disk.list_with_sizes(str(tmp_path)) == {"f": 5, "d": -1}


def test_folders_and_removals(disk: PosixDisk, tmp_path: Path) -> None:
    folder = str(tmp_path / "x" / "y" / "z")
    disk.make_directory(folder)
    disk.make_directory(folder)
    assert disk.is_directory(folder)
    disk.remove(f"{folder}/missing")
    disk.open(f"{folder}/f", create=True).append([b"1"])
    disk.remove_tree(str(tmp_path / "x"))
    assert not disk.exists(folder)
    assert disk.free_bytes(str(tmp_path)) > 0


def test_a_lock_keeps_other_processes_and_a_second_start_out(disk: PosixDisk, tmp_path: Path) -> None:
    disk.lock_directory(str(tmp_path))
    with pytest.raises(BlockingIOError):
        disk.lock_directory(str(tmp_path))
    code = (
        "import sys\nfrom moldau.server.posix_disk import PosixDisk\n"
        "try: PosixDisk().lock_directory(sys.argv[1])\nexcept BlockingIOError: sys.exit(7)"
    )
    source = str(Path(__file__).resolve().parents[3] / "src")
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], env={**os.environ, "PYTHONPATH": source})
    assert done.returncode == 7
    disk.unlock_directory(str(tmp_path))
    assert not (tmp_path / ".lock").exists()


def test_sync_later_reports_in_the_owners_turn(tmp_path: Path) -> None:
    posted: queue.Queue[Callable[[], None]] = queue.Queue()
    disk = PosixDisk(post=posted.put, open_files_max=1)
    file = disk.open(str(tmp_path / "f"), create=True)
    file.append([b"x"])
    results: list[OSError | None] = []
    disk.sync_later(file, results.append)
    file.close()  # the sync works on a descriptor of its own
    assert results == []
    posted.get(timeout=patience(10))()
    assert results == [None]
    os.remove(tmp_path / "f")
    disk.sync_later(file, results.append)
    posted.get(timeout=patience(10))()
    assert isinstance(results[1], FileNotFoundError)
    disk.close()


def test_closing_the_disk_leaves_files_usable(disk: PosixDisk, tmp_path: Path) -> None:
    file = disk.open(str(tmp_path / "f"), create=True)
    file.append([b"abc"])
    file.truncate(2)
    disk.sync_file(file.path)
    disk.sync_directory(str(tmp_path))
    disk.close()
    assert disk.open_files() == 0
    assert file.read(0, 10) == b"ab"


def test_read_later_reports_in_the_owners_turn(tmp_path: Path) -> None:
    posted: queue.Queue[Callable[[], None]] = queue.Queue()
    disk = PosixDisk(post=posted.put)
    file = disk.open(str(tmp_path / "f"), create=True)
    file.append([b"abcdef"])
    results: list[bytes | OSError] = []
    disk.read_later(file, 2, 3, results.append)
    disk.read_later(file, 4, 30, results.append)
    for _ in range(2):
        posted.get(timeout=patience(10))()
    assert sorted(results, key=str) == [b"cde", b"ef"]
    file.close()
    os.remove(tmp_path / "f")
    disk.read_later(file, 0, 1, results.append)
    posted.get(timeout=patience(10))()
    assert isinstance(results[2], FileNotFoundError)
    disk.close()
