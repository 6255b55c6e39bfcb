"""Work of the disk that may wait: on threads, in order where order matters, and never behind work of another kind."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from moldau.server.disk_lanes import METADATA_LANE, DiskLanes
from moldau.server.posix_disk import PosixDisk
from moldau.storage.disk import BlockingDisk
from tests.pace import patience

PATIENCE_S = patience(60)


def wait_for(event: threading.Event) -> None:
    event.wait(PATIENCE_S)


class Turns:
    """The node's own turns, taken by the test."""

    def __init__(self) -> None:
        self._posted: queue.Queue[Callable[[], None]] = queue.Queue()

    def post(self, function: Callable[[], None]) -> None:
        self._posted.put(function)

    def take(self, count: int) -> None:
        for _ in range(count):
            self._posted.get(timeout=PATIENCE_S)()


def test_the_metadata_log_does_not_wait_for_segments(tmp_path: Path) -> None:
    """However many syncs of segments are stuck, the sync of the metadata log is done."""
    turns = Turns()
    lanes = DiskLanes(turns.post)
    lanes.add_directory(str(tmp_path))
    stuck = threading.Event()
    finished: list[str] = []
    for number in range(50):
        path = f"{tmp_path}/t-{number}/00000000000000000000.log"
        lanes.submit(lanes.lane_of(path), "", lambda: wait_for(stuck), lambda _: finished.append("segment"))
    path = f"{tmp_path}/__cluster_metadata-0/00000000000000000000.log"
    assert lanes.lane_of(path) == METADATA_LANE
    lanes.submit(lanes.lane_of(path), "", lambda: None, lambda _: finished.append("metadata"))
    turns.take(1)
    assert finished == ["metadata"]
    stuck.set()
    turns.take(50)
    lanes.close()
    assert finished[1:] == ["segment"] * 50 and lanes.pending == 0


def test_one_directory_does_not_wait_for_another(tmp_path: Path) -> None:
    """A log directory whose device hangs holds up its own partitions only."""
    turns = Turns()
    lanes = DiskLanes(turns.post)
    for name in ("a", "b"):
        lanes.add_directory(f"{tmp_path}/{name}")
    stuck = threading.Event()
    finished: list[str] = []
    for number in range(10):
        lane = lanes.lane_of(f"{tmp_path}/a/t-{number}")
        lanes.submit(lane, "", lambda: wait_for(stuck), lambda _: finished.append("a"))
    lanes.submit(lanes.lane_of(f"{tmp_path}/b/t-0"), "", lambda: None, lambda _: finished.append("b"))
    turns.take(1)
    assert finished == ["b"]
    stuck.set()
    turns.take(10)
    lanes.close()


def test_jobs_of_one_folder_keep_their_order(tmp_path: Path) -> None:
    """Each begins when the one before it has been reported, whatever the number of threads."""
    turns = Turns()
    disk = PosixDisk(turns.post)
    order: list[str] = []

    def job(number: int) -> Callable[[BlockingDisk], None]:
        return lambda _: order.append(f"job {number}")

    def done(number: int) -> Callable[[OSError | None], None]:
        return lambda _: order.append(f"done {number}")

    for number in range(20):
        disk.do_later(str(tmp_path), job(number), done(number))
    turns.take(20)
    disk.close()
    assert [line for line in order if line.startswith("job")] == [f"job {number}" for number in range(20)]
    assert [line for line in order if line.startswith("done")] == [f"done {number}" for number in range(20)]
    for number in range(20):
        assert order.index(f"job {number}") < order.index(f"done {number}")


def test_whatever_goes_wrong_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A job that fails in an unexpected way is reported as a failure of the disk, and the next one has its turn."""
    turns = Turns()
    disk = PosixDisk(turns.post)
    outcomes: list[OSError | None] = []

    def fail(_: BlockingDisk) -> None:
        raise ValueError("not an error of the system")

    disk.do_later(str(tmp_path), fail, outcomes.append)
    disk.do_later(str(tmp_path), lambda jobs: jobs.write_file(f"{tmp_path}/f", b"x"), outcomes.append)
    turns.take(2)
    disk.close()
    assert isinstance(outcomes[0], OSError) and "not an error of the system" in str(outcomes[0])
    assert outcomes[1] is None and (tmp_path / "f").read_bytes() == b"x"


def test_the_end_does_everything_that_was_asked_for(tmp_path: Path) -> None:
    """`finish_jobs` leaves nothing undone, so that what a node writes last is not overtaken."""
    turns = Turns()
    disk = PosixDisk(turns.post)
    told: list[OSError | None] = []

    def write(number: int) -> Callable[[BlockingDisk], None]:
        return lambda jobs: jobs.write_file(f"{tmp_path}/f", b"%d" % number)

    for number in range(5):
        disk.do_later(str(tmp_path), write(number), told.append)
    disk.finish_jobs()
    assert (tmp_path / "f").read_bytes() == b"4"
    disk.close()


def test_removals_leave_nothing(tmp_path: Path) -> None:
    """Files and folders go on a thread; what is missing does not matter."""
    turns = Turns()
    disk = PosixDisk(turns.post)
    (tmp_path / "t-0").mkdir()
    (tmp_path / "t-0" / "a.log").write_bytes(b"x")
    (tmp_path / "b").write_bytes(b"x")
    outcomes: list[OSError | None] = []
    disk.remove_tree_later(f"{tmp_path}/t-0", outcomes.append)
    disk.remove_later([f"{tmp_path}/b", f"{tmp_path}/missing"], outcomes.append)
    disk.remove_tree_later(f"{tmp_path}/nowhere", outcomes.append)
    turns.take(3)
    disk.close()
    assert outcomes == [None, None, None] and list(tmp_path.iterdir()) == []
