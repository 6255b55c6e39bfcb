"""The threads that read cold data: in turn, small reads first, and never in the way of a node that stops."""

from __future__ import annotations

import errno
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from moldau.server import posix_disk
from moldau.server.cold_readers import SMALL_BYTES, THREADS_PER_LANE, ColdJob, ColdReaders
from moldau.server.posix_disk import PosixDisk, PosixFile
from moldau.server.residency import RWF_NOWAIT, count_cached_pages, is_here, read_and_leave_no_trace
from moldau.storage.disk import BroughtPiece, ColdRead
from tests.pace import patience

PATIENCE_S = patience(60)
LARGE = SMALL_BYTES + 1


class Turns:
    def __init__(self) -> None:
        self._posted: queue.Queue[Callable[[], None]] = queue.Queue()

    def post(self, function: Callable[[], None]) -> None:
        self._posted.put(function)

    def take(self, count: int) -> None:
        for _ in range(count):
            self._posted.get(timeout=PATIENCE_S)()


class Reads:
    """Reads that are recorded, and stuck until `go`."""

    def __init__(self) -> None:
        self.begun: queue.Queue[int] = queue.Queue()
        self.go = threading.Semaphore(0)
        self.failures: list[OSError | None] = []

    def job(self, number: int, size: int = LARGE) -> ColdJob:
        return ColdJob(os.open(os.devnull, os.O_RDONLY), number, size, self.read, self.failures.append)

    def read(self, descriptor: int, position: int, size: int) -> None:
        self.begun.put(position)
        self.go.acquire(timeout=PATIENCE_S)


def test_reads_of_one_device_are_done_in_turn_and_small_ones_first() -> None:
    turns, reads = Turns(), Reads()
    readers = ColdReaders(turns.post)
    for number in range(THREADS_PER_LANE):
        readers.submit("/a", reads.job(number))
    assert {reads.begun.get(timeout=PATIENCE_S) for _ in range(THREADS_PER_LANE)} == set(range(THREADS_PER_LANE))
    for number in range(100, 110):
        readers.submit("/a", reads.job(number))
    readers.submit("/a", reads.job(1, size=SMALL_BYTES))
    order = []
    for _ in range(11):
        reads.go.release()
        order.append(reads.begun.get(timeout=PATIENCE_S))
    assert order == [1, *range(100, 110)]
    reads.go.release(THREADS_PER_LANE)
    turns.take(THREADS_PER_LANE + 11)
    assert reads.failures == [None] * (THREADS_PER_LANE + 11)
    readers.close()


def test_a_device_that_hangs_holds_up_its_own_readers_only() -> None:
    turns, stuck, reads = Turns(), Reads(), Reads()
    readers = ColdReaders(turns.post)
    for number in range(20):
        readers.submit("/slow", stuck.job(number))
    readers.submit("/fast", reads.job(7))
    assert reads.begun.get(timeout=PATIENCE_S) == 7
    reads.go.release()
    turns.take(1)
    assert reads.failures == [None]
    readers.close()
    stuck.go.release(THREADS_PER_LANE)
    turns.take(THREADS_PER_LANE)


def test_stopping_does_not_wait_for_a_device_that_hangs() -> None:
    before = len(os.listdir("/proc/self/fd"))
    turns, stuck = Turns(), Reads()
    readers = ColdReaders(turns.post)
    for number in range(20):
        readers.submit("/slow", stuck.job(number))
    for _ in range(THREADS_PER_LANE):
        stuck.begun.get(timeout=PATIENCE_S)
    readers.close()
    assert stuck.failures == []
    stuck.go.release(THREADS_PER_LANE)
    turns.take(THREADS_PER_LANE)
    assert stuck.begun.empty(), "what nobody had begun is given up"
    assert len(os.listdir("/proc/self/fd")) == before


def test_whatever_goes_wrong_in_a_thread_is_told() -> None:
    turns = Turns()
    readers = ColdReaders(turns.post)
    failures: list[OSError | None] = []

    def fail(descriptor: int, position: int, size: int) -> None:
        raise ZeroDivisionError("a bug") if position else OSError(errno.ENOENT, "gone")

    for position in (0, 1):
        readers.submit("", ColdJob(os.open(os.devnull, os.O_RDONLY), position, 1, fail, failures.append))
    turns.take(2)
    readers.close()
    assert {failure.errno for failure in failures if failure is not None} == {errno.ENOENT, errno.EIO}


# What the system tells about its memory


def evict(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@contextmanager
def nothing_in_memory() -> Iterator[None]:
    """To ask brings it nearer, and on a fast disk it is there when it is asked for again: here it comes never."""
    really = os.preadv

    def never_there(descriptor: int, buffers: list[bytearray], position: int, flags: int = 0) -> int:
        if flags & RWF_NOWAIT:
            raise BlockingIOError(errno.EAGAIN, "not in memory")
        return really(descriptor, buffers, position, flags)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "preadv", never_there)
        yield


def refusal_of(read: Callable[[], bytes], path: Path) -> ColdRead:
    evict(path)
    with nothing_in_memory(), pytest.raises(ColdRead) as refusal:
        read()
    return refusal.value


@pytest.fixture
def cold_file(tmp_path: Path) -> Path:
    """A file of 4 MB that is not in the page cache."""
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(os.urandom(4 << 20))
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        if count_cached_pages(descriptor, 0, 4 << 20) != 0:
            pytest.skip("this file system keeps everything in memory, or the kernel does not tell")
    finally:
        os.close(descriptor)
    return path


def test_what_a_thread_has_read_is_found_in_memory(cold_file: Path) -> None:
    turns = Turns()
    disk = PosixDisk(turns.post)
    file = disk.open(str(cold_file))
    with nothing_in_memory():
        assert not file.is_resident(2 << 20, 1 << 20)
        assert file.read_now(1 << 20, 100) is None
    done: list[OSError | None] = []
    file.warm_later(2 << 20, 1 << 20, done.append)
    turns.take(1)
    assert done == [None]
    assert file.is_resident(2 << 20, 1 << 20)
    assert file.read_now((2 << 20) + 5, 100) == file.read((2 << 20) + 5, 100)
    disk.close()


def test_where_somebody_reads_cold_data_one_missing_page_makes_a_part_cold(cold_file: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    disk = PosixDisk()
    file = disk.open(str(cold_file))
    assert isinstance(file, PosixFile)
    file.cold_at = time.monotonic()
    descriptor = os.open(cold_file, os.O_RDWR)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    hole = (1 << 20) + 77 * page
    os.pread(descriptor, hole, 0)
    os.pread(descriptor, 4 << 20, hole + page)
    assert count_cached_pages(descriptor, 0, 4 << 20) == (4 << 20) // page - 1
    assert not file.is_resident(1 << 20, 1 << 20)
    assert file.is_resident(0, hole) and file.is_resident(2 << 20, 1 << 20)
    os.pread(descriptor, page, hole)
    assert file.is_resident(1 << 20, 1 << 20)
    os.close(descriptor)
    disk.close()


def test_a_thread_reads_what_it_was_asked_for_and_no_more(cold_file: Path) -> None:
    """Else whoever comes to the end of what the system has read ahead has to begin with the next part: the loop."""
    page = os.sysconf("SC_PAGE_SIZE")
    turns = Turns()
    disk = PosixDisk(turns.post)
    file = disk.open(str(cold_file))
    found: list[bytes | OSError] = []
    for position in range(0, 2 << 20, 64 << 10):  # one behind the other, as for somebody who reads on
        file.read_later(position, 61, found.append)
        turns.take(1)
    assert [len(data) for data in found if isinstance(data, bytes)] == [61] * 32
    assert count_cached_pages(file.fileno(), 0, 4 << 20) == 32
    file.warm_later(3 << 20, 200_000, lambda failure: None)
    turns.take(1)
    assert count_cached_pages(file.fileno(), 0, 4 << 20) == 32 + -(-200_000 // page)
    disk.close()


def test_a_request_that_must_not_wait_is_told_what_is_cold(cold_file: Path) -> None:
    disk = PosixDisk()
    file = disk.open(str(cold_file))
    disk.refuses_cold = True
    caught = refusal_of(lambda: file.read((4 << 20) - 100, 8192), cold_file)
    assert (caught.position, caught.size) == ((4 << 20) - 100, 100)
    refusal_of(lambda: disk.read_file(str(cold_file)), cold_file)
    refusal_of(lambda: disk.read_at(str(cold_file), 8192, 12), cold_file)
    disk.refuses_cold = False
    data = file.read((4 << 20) - 100, 8192)
    disk.refuses_cold = True
    assert file.read((4 << 20) - 100, 8192) == data and len(data) == 100
    disk.close()


@pytest.mark.parametrize("change", ["nothing", "truncate", "rename", "remove", "write"])
def test_what_was_brought_before_a_change_is_not_used_after_it(tmp_path: Path, change: str) -> None:
    """A log that is cut and written anew has other bytes in the same place: they are read again."""
    disk = PosixDisk()
    path = str(tmp_path / "x.log")
    file = disk.open(path, create=True)
    file.append([b"0123456789"])
    disk.brought = [BroughtPiece(path, 2, b"2345", disk.changes_seen)]
    if change == "truncate":
        file.truncate(3)
    elif change == "rename":
        disk.rename(path, path + ".deleted")
    elif change == "remove":
        disk.remove(path)
    elif change == "write":
        disk.write_file(path, b"abcdefghij")
    assert disk.find_brought(path, 2, 4) == (b"2345" if change == "nothing" else None)
    assert disk.find_brought(path, 3, 1) is None and disk.find_brought(path, 2, 5) is None
    disk.close()


def test_who_passes_over_everything_leaves_the_page_cache_as_it_was(cold_file: Path) -> None:
    """What was warm stays, what was cold is cold again."""
    page = os.sysconf("SC_PAGE_SIZE")
    descriptor = os.open(cold_file, os.O_RDWR)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    warm_at = 64 * page
    os.pread(descriptor, 16 * page, warm_at)
    before = count_cached_pages(descriptor, 0, 4 << 20)
    assert 0 < before < 200
    expected = cold_file.stat().st_size
    position = 0
    while position < expected:
        reading = os.open(cold_file, os.O_RDONLY)
        position += len(read_and_leave_no_trace(reading, position, 128 * 1024 - 33))
        os.close(reading)
    assert count_cached_pages(descriptor, 0, 4 << 20) == before
    assert is_here(descriptor, warm_at)
    os.close(descriptor)


def test_where_one_byte_cannot_be_asked_for_pages_are_counted(cold_file: Path) -> None:
    disk = PosixDisk()
    disk.has_nowait = False
    disk.refuses_cold = True
    file = disk.open(str(cold_file))
    assert not file.is_resident(1 << 20, 1000) and file.read_now(1 << 20, 1000) is None
    refusal_of(lambda: file.read(1 << 20, 1000), cold_file)
    data = cold_file.read_bytes()
    assert file.is_resident(1 << 20, 1000) and file.is_resident((4 << 20) - 10, 4096)
    assert file.read(1 << 20, 1000) == file.read_now(1 << 20, 1000) == data[1 << 20 : (1 << 20) + 1000]
    disk.close()


def test_a_file_system_in_memory_needs_no_thread() -> None:
    """It refuses the question about one byte."""
    if not os.path.isdir("/dev/shm"):
        pytest.skip("there is no file system in memory here")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        disk = PosixDisk()
        disk.refuses_cold = True
        file = disk.open(f"{folder}/00000000000000000000.log", create=True)
        file.append([bytes(20 << 20)])
        if count_cached_pages(file.fileno(), 0, 4096) < 0:
            pytest.skip("this kernel does not count pages")
        for position in range(0, 20 << 20, 1 << 20):
            assert file.is_resident(position, 1 << 20)
            assert len(file.read(position, 1000)) == 1000
        disk.close()


def test_systems_that_do_not_tell_have_what_was_just_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Near the end of a file data is taken to be in memory; far from it a thread reads it first."""
    monkeypatch.setattr(posix_disk, "count_missing_pages", lambda descriptor, position, end: -1)
    turns = Turns()
    disk = PosixDisk(turns.post)
    disk.has_nowait = False
    file = disk.open(str(tmp_path / "x.log"), create=True)
    file.append([bytes(20 << 20)])
    assert file.is_resident(19 << 20, 1000) and file.read_now(19 << 20, 1000) == bytes(1000)
    assert not file.is_resident(1 << 20, 1000) and file.read_now(1 << 20, 1000) is None
    file.warm_later(1 << 20, 1 << 20, lambda failure: None)
    turns.take(1)
    assert file.is_resident(1 << 20, 1 << 20)
    disk.close()
