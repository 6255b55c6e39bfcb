"""The simulated disk keeps what was synced, loses by the seed what was not, and fails when told to."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable

import pytest

from moldau.sim.kernel.disk import SimDisk, SimulatedCrash
from moldau.sim.kernel.turn_watch import READS_MAX
from moldau.sim.kernel.world import Violation, World


def write(disk: SimDisk, path: str, data: bytes, *, sync: bool) -> None:
    file = disk.open(path, create=True)
    file.append([data])
    if sync:
        file.sync()
    file.close()


def after_power_loss(build: Callable[[SimDisk], None], seeds: int = 200) -> list[SimDisk]:
    disks = []
    for seed in range(seeds):
        disk = SimDisk(seed)
        build(disk)
        disk.power_loss(random.Random(seed))
        disks.append(disk)
    return disks


def test_synced_bytes_with_a_synced_entry_survive_every_power_loss() -> None:
    def build(disk: SimDisk) -> None:
        disk.make_directory("d")
        disk.sync_directory("")
        write(disk, "d/a", b"durable", sync=True)
        disk.sync_directory("d")
        write(disk, "d/a", b"-and more", sync=False)

    contents = {disk.read_file("d/a") for disk in after_power_loss(build)}
    assert all(content.startswith(b"durable") for content in contents)
    assert b"durable" in contents
    assert b"durable-and more" in contents
    assert any(b"durable" < content < b"durable-and more" for content in contents), "no write was ever torn"
    assert any(content[:16] not in (b"durable-and more"[: len(content)],) for content in contents), "no sector was lost"


def test_a_synced_file_without_a_synced_entry_may_vanish() -> None:
    def build(disk: SimDisk) -> None:
        write(disk, "a", b"data", sync=True)

    found = {disk.exists("a") for disk in after_power_loss(build)}
    assert found == {True, False}


def test_a_rename_is_old_or_new_and_never_both_or_none() -> None:
    def build(disk: SimDisk) -> None:
        write(disk, "old", b"1", sync=True)
        write(disk, "new", b"0", sync=True)
        disk.sync_directory("")
        disk.rename("old", "new")

    states = {(disk.exists("old"), disk.read_file("new")) for disk in after_power_loss(build)}
    assert states == {(True, b"0"), (False, b"1")}


def test_a_chain_of_unsynced_renames_leaves_the_file_under_one_name() -> None:
    def build(disk: SimDisk) -> None:
        write(disk, "a", b"1", sync=True)
        disk.sync_directory("")
        disk.rename("a", "b")
        disk.make_directory("d")
        disk.rename("b", "d/c")
        disk.sync_directory("d")

    for disk in after_power_loss(build):
        assert not disk.exists("a")
        assert not disk.exists("b")


def test_an_unsynced_removal_may_come_back() -> None:
    def build(disk: SimDisk) -> None:
        write(disk, "a", b"1", sync=True)
        disk.sync_directory("")
        disk.remove("a")

    assert {disk.exists("a") for disk in after_power_loss(build)} == {True, False}


def test_an_unsynced_truncation_may_come_back() -> None:
    def build(disk: SimDisk) -> None:
        write(disk, "a", b"0123456789", sync=True)
        disk.sync_directory("")
        file = disk.open("a")
        file.truncate(5)
        file.append([b"xx"])

    contents = {disk.read_file("a") for disk in after_power_loss(build)}
    assert {b"0123456789", b"01234", b"01234xx", b"01234xx789"} <= contents


def test_a_killed_process_loses_nothing_and_its_files_are_dead() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    file.append([b"abc", b"def"])
    disk.process_crash()
    assert disk.read_file("a") == b"abcdef"
    with pytest.raises(SimulatedCrash):
        file.append([b"more"])


def test_the_machine_stops_inside_the_chosen_change() -> None:
    for change in range(1, 5):  # create, append, sync, rename; the fifth is the sync of the directory
        disk = SimDisk(change)
        disk.crash_after(change)
        with pytest.raises(SimulatedCrash):
            disk.write_file("a", b"content")
        with pytest.raises(SimulatedCrash):
            disk.make_directory("too late")
        disk.process_crash()
        assert not disk.exists("a")
    disk.write_file("a", b"content")
    assert disk.read_file("a") == b"content"


def test_a_full_disk_takes_what_fits_and_says_enospc() -> None:
    disk = SimDisk()
    disk.capacity_bytes = 10
    file = disk.open("a", create=True)
    file.append([b"12345678"])
    with pytest.raises(OSError) as caught:
        file.append([b"abcd"])
    assert caught.value.errno == errno.ENOSPC
    assert disk.read_file("a") == b"12345678ab"
    file.truncate(8)
    assert disk.free_bytes("") == 2


def test_injected_errors_hit_the_chosen_operations_only() -> None:
    disk = SimDisk()
    disk.fail("append", ".log", times=1, skip=1)
    log, index = disk.open("0.log", create=True), disk.open("0.index", create=True)
    index.append([b"x"])
    index.append([b"x"])
    log.append([b"x"])
    with pytest.raises(OSError) as caught:
        log.append([b"y"])
    assert caught.value.errno == errno.EIO
    log.append([b"z"])
    assert disk.read_file("0.log") == b"xz"


def test_data_of_a_failed_sync_may_be_lost_although_a_later_sync_succeeds() -> None:
    def build(disk: SimDisk) -> None:
        file = disk.open("a", create=True)
        disk.sync_directory("")
        file.append([b"12"])
        disk.fail("sync")
        with pytest.raises(OSError):
            file.sync()
        file.append([b"34"])
        file.sync()

    contents = {disk.read_file("a") for disk in after_power_loss(build)}
    assert {b"1234", b"\x00\x0034"} <= contents


def test_a_sync_that_runs_later_covers_what_was_written_before_it_was_asked_for() -> None:
    waiting: list[Callable[[], None]] = []
    disk = SimDisk(0, lambda delay_ms, action: waiting.append(action))
    file = disk.open("a", create=True)
    disk.sync_directory("")
    file.append([b"before"])
    results: list[OSError | None] = []
    disk.sync_later(file, results.append)
    file.append([b"after"])
    assert results == []
    waiting.pop()()
    assert results == [None]
    for seed in range(50):
        disk.power_loss(random.Random(seed))
        assert disk.read_file("a").startswith(b"before")


def test_a_sync_of_a_dead_process_reports_to_nobody() -> None:
    waiting: list[Callable[[], None]] = []
    disk = SimDisk(0, lambda delay_ms, action: waiting.append(action))
    file = disk.open("a", create=True)
    disk.sync_later(file, lambda failure: pytest.fail("reported"))
    disk.process_crash()
    waiting.pop()()


def test_open_files_follow_a_rename_of_their_directory() -> None:
    disk = SimDisk()
    disk.make_directory("log/t-0")
    file = disk.open("log/t-0/0.log", create=True)
    disk.rename("log/t-0", "log/t-0-delete")
    file.append([b"x"])
    assert file.path == "log/t-0-delete/0.log"
    assert disk.list_with_sizes("log") == {"t-0-delete": -1}
    assert disk.list_with_sizes("log/t-0-delete") == {"0.log": 1}
    disk.remove_tree("log/t-0-delete")
    assert disk.list("log") == []


def test_a_locked_directory_is_free_again_after_the_process_died() -> None:
    disk = SimDisk()
    disk.make_directory("log")
    disk.lock_directory("log")
    with pytest.raises(BlockingIOError):
        disk.lock_directory("log")
    disk.process_crash()
    disk.lock_directory("log")
    disk.unlock_directory("log")
    assert disk.list("log") == []


def test_a_flipped_bit_is_there_for_good() -> None:
    disk = SimDisk()
    write(disk, "a", b"\x00\x00", sync=True)
    disk.sync_directory("")
    disk.flip_bit("a", 1, 3)
    assert disk.read_file("a") == b"\x00\x08"
    disk.power_loss()
    assert disk.read_file("a") == b"\x00\x08"


def test_the_same_seed_loses_the_same_bytes() -> None:
    def run(seed: int) -> list[tuple[str, bytes]]:
        disk = SimDisk(seed)
        rng = random.Random(seed)
        for step in range(60):
            path = f"f{rng.randint(0, 5)}"
            write(disk, path, rng.randbytes(100), sync=rng.random() < 0.2)
            if step % 20 == 19:
                disk.power_loss()
        return [(path, disk.read_file(path)) for path in disk.all_files()]

    assert run(7) == run(7)
    assert run(7) != run(8)


def test_a_closed_file_opens_by_itself_unless_it_was_removed() -> None:
    disk = SimDisk()
    file = disk.open("a", create=True)
    file.close()
    file.append([b"x"])
    assert disk.read_file("a") == b"x"
    disk.remove("a")
    assert file.read(0, 1) == b"x"
    file.close()
    with pytest.raises(FileNotFoundError):
        file.read(0, 1)


def test_a_write_that_failed_unseen_is_told_once_to_whoever_syncs_next() -> None:
    """Memory shows it until it is needed for something else; another process may be the one that is told."""
    disk = SimDisk()
    write(disk, "a", b"synced", sync=True)
    disk.sync_directory("")
    write(disk, "a", b"-lost", sync=False)
    disk.fail_write_back("a")
    disk.process_crash()
    assert disk.read_file("a") == b"synced-lost" and disk.has_unseen_errors
    with pytest.raises(OSError):
        disk.sync_file("a")
    disk.sync_file("a")
    assert disk.read_file("a") == b"synced-lost" and not disk.has_unseen_errors
    disk.evict()
    assert disk.read_file("a") == b"synced"


def test_a_sync_of_many_files_names_those_that_lost_something_and_shows_what_is_left() -> None:
    disk = SimDisk()
    for name in ("a", "b"):
        write(disk, name, b"synced", sync=True)
        write(disk, name, b"-more", sync=False)
    disk.fail_write_back("a")
    assert disk.sync_all(["a", "b"]) == ["a"]
    assert (disk.read_file("a"), disk.read_file("b")) == (b"synced", b"synced-more")


def test_a_restored_copy_leaves_what_the_machine_remembers() -> None:
    disk = SimDisk()
    disk.make_directory("data")
    write(disk, "data/a", b"old", sync=True)
    disk.remember("data", "7", b"details")
    copy = disk.copy_files()
    write(disk, "data/a", b" and new", sync=True)
    disk.process_crash()
    disk.restore_files(copy, lambda path: False)
    assert disk.read_file("data/a") == b"old"
    assert (disk.recall("data"), disk.recall_details("data")) == ("7", b"details")


class Turns:
    """A disk under a process that serves."""

    def __init__(self) -> None:
        self.world = World(1)
        self.disk = SimDisk(1, self._schedule)
        self.disk.write_file("old", bytes(9000))
        self.disk.process_crash()

    def _schedule(self, delay_ms: int, action: Callable[[], None]) -> None:
        self.world.schedule(delay_ms, action)

    def take(self, action: Callable[[], object], *, is_serving: bool = True) -> None:
        self.disk.watch.begin(is_serving=is_serving)
        try:
            action()
        finally:
            self.disk.watch.end()


@pytest.mark.parametrize(
    "call",
    [
        lambda disk: disk.sync_file("old"),
        lambda disk: disk.open("old").sync(),
        lambda disk: disk.sync_directory(""),
        lambda disk: disk.write_file("new", b"1"),
        lambda disk: disk.remove("old"),
        lambda disk: disk.remove_tree("old"),
        lambda disk: disk.open("old").read(0, 9000),
        lambda disk: disk.read_file("old"),
        lambda disk: [disk.open("old").read(0, 1) for _ in range(READS_MAX + 1)],
    ],
)
def test_no_turn_of_a_process_that_serves_waits_for_the_medium(call: Callable[[SimDisk], object]) -> None:
    turns = Turns()
    turns.take(lambda: call(turns.disk), is_serving=False)
    turns = Turns()
    with pytest.raises(Violation, match="serves"):
        turns.take(lambda: call(turns.disk))
    turns.take(lambda: None)


def test_what_threads_do_and_what_was_asked_for_keeps_nobody_waiting() -> None:
    turns = Turns()
    disk = turns.disk
    disk.refuses_cold = True
    turns.take(lambda: disk.open("old").read(0, 9000))
    disk.refuses_cold = False
    turns.take(lambda: disk.open("old").read_now(0, 9000))
    turns.take(lambda: disk.open("old").read(0, 61))
    turns.take(lambda: disk.replace_file("new", bytes(9000)))
    turns.take(lambda: disk.read_file("new"))
    done: list[OSError | None] = []
    turns.take(lambda: disk.do_later("", lambda blocking: blocking.sync_file("old"), done.append))
    turns.world.run_for(100)
    assert done == [None]


def test_a_slow_disk_may_spare_what_is_written_for_the_quorum() -> None:
    turns = Turns()
    disk, world = turns.disk, turns.world
    disk.make_directory("__cluster_metadata-0")
    done: list[str] = []
    disk.slow_down((5000, 5000), "__cluster_metadata")
    for path in ("old", "__cluster_metadata-0/log"):
        disk.sync_later(disk.open(path, create=True), lambda error, path=path: done.append(path))  # type: ignore[misc]
    world.run_for(100)
    assert done == ["__cluster_metadata-0/log"]
    world.run_for(5000)
    assert done == ["__cluster_metadata-0/log", "old"]
