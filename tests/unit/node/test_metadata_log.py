"""The metadata log on a disk that loses what was not synced: quorum-state, snapshots, and the log behind them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from moldau.node.metadata_log import DamagedMetadataLog, MetadataLog, open_metadata_log, snapshot_name
from moldau.raft.batches import metadata_batch
from moldau.raft.log import OffsetAndEpoch
from moldau.raft.snapshots import snapshot_bytes
from moldau.raft.state import QuorumState
from moldau.sim.kernel.disk import SimDisk, SimulatedCrash
from moldau.sim.quorum.replica import DATA, DIRECTORY
from moldau.sim.quorum.world import broker_config

CONFIG = broker_config(1 << 20, 1 << 30)


def new_disk(seed: int = 1) -> SimDisk:
    disk = SimDisk(seed, lambda delay_ms, action: action())
    disk.make_directory(DATA)
    disk.sync_directory("")
    return disk


def opened(disk: SimDisk) -> MetadataLog:
    return open_metadata_log(disk, CONFIG, random.Random(1), 0)


def append(log: MetadataLog, epoch: int, count: int) -> None:
    for _ in range(count):
        log.append(metadata_batch(log.end_offset(), epoch, 0, [b"value"]))


def raise_failure(failure: OSError | None) -> None:
    if failure is not None:
        raise failure


def fetch_snapshot(log: MetadataLog, snapshot: OffsetAndEpoch) -> None:
    data = snapshot_bytes([b"state"], snapshot.epoch, 0, 0, None, 0)
    log.append_fetched_snapshot(snapshot, 0, data[:50])
    log.append_fetched_snapshot(snapshot, 50, data[50:])
    assert checked(log, snapshot) == [None]
    log.install_fetched_snapshot(snapshot)


def checked(log: MetadataLog, snapshot: OffsetAndEpoch) -> list[OSError | ValueError | None]:
    outcome: list[OSError | ValueError | None] = []
    log.check_fetched_snapshot(snapshot, outcome.append)
    return outcome


@pytest.mark.parametrize("seed", range(10))
def test_a_vote_that_a_killed_process_wrote_counts_only_when_it_is_durable(seed: int) -> None:
    """The kill comes between the rename of quorum-state and the sync of its folder, the power fails later."""
    disk = new_disk(seed)
    log = opened(disk)
    log.write_quorum_state(QuorumState(4), 1, [1], raise_failure)
    # create, append, sync, rename, and then the machine stops in the sync of the folder
    disk.crash_after(5)
    with pytest.raises(SimulatedCrash):
        log.write_quorum_state(QuorumState(5), 1, [1], raise_failure)
    disk.process_crash()
    found = opened(disk).read_quorum_state()
    disk.power_loss()
    assert opened(disk).read_quorum_state() == found


def test_a_damaged_quorum_state_is_not_taken_for_none() -> None:
    disk = new_disk()
    opened(disk)
    disk.write_file(f"{DIRECTORY}/quorum-state", b'{"leaderId":1,')
    with pytest.raises(DamagedMetadataLog, match="could vote twice"):
        opened(disk)


def test_a_fetched_snapshot_replaces_the_log_and_the_snapshots_before_it() -> None:
    """Left there, an old snapshot would be named to followers as the place where their log parts from this one."""
    log = opened(new_disk())
    append(log, 1, 5)
    log.write_snapshot(OffsetAndEpoch(3, 1), snapshot_bytes([b"state"], 1, 0, 0, None, 0), lambda error: None)
    fetch_snapshot(log, OffsetAndEpoch(20, 4))
    append(log, 5, 1)
    assert (log.start_offset(), log.end_offset()) == (20, 21)
    assert log.earliest_snapshot() == log.latest_snapshot() == OffsetAndEpoch(20, 4)
    assert log.end_offset_for_epoch(4) == OffsetAndEpoch(20, 4)


def test_a_damaged_snapshot_is_refused_and_the_log_stays() -> None:
    log = opened(new_disk())
    append(log, 1, 5)
    snapshot = OffsetAndEpoch(20, 4)
    data = bytearray(snapshot_bytes([b"state"], 4, 0, 0, None, 0))
    data[-20] ^= 1
    log.append_fetched_snapshot(snapshot, 0, bytes(data))
    (problem,) = checked(log, snapshot)
    assert isinstance(problem, ValueError) and "damaged" in str(problem)
    assert log.latest_snapshot() is None and log.end_offset() == 5
    fetch_snapshot(log, snapshot)
    assert log.end_offset() == 20


def test_what_was_fetched_of_a_snapshot_goes_when_another_one_is_fetched() -> None:
    disk = new_disk()
    log = opened(disk)
    log.append_fetched_snapshot(OffsetAndEpoch(20, 4), 0, b"half of it")
    log.append_fetched_snapshot(OffsetAndEpoch(30, 5), 0, b"half of it")
    assert sum(name.endswith(".part") for name in disk.list(DIRECTORY)) == 1


@pytest.mark.parametrize(
    ("epochs", "kept"),
    [([(1, 5), (3, 20)], True), ([(1, 5), (2, 20)], False), ([(1, 5), (4, 20)], False), ([(3, 5)], False)],
    ids=["agrees", "older epoch", "newer epoch", "too short"],
)
def test_a_log_that_contradicts_its_snapshot_starts_anew_behind_it(epochs: list[tuple[int, int]], kept: bool) -> None:
    """As after a crash between the last byte of a fetched snapshot and the emptying of the log."""
    disk = new_disk()
    log = opened(disk)
    for epoch, count in epochs:
        append(log, epoch, count)
    end = log.end_offset()
    snapshot = OffsetAndEpoch(10, 3)
    disk.write_file(f"{DIRECTORY}/{snapshot_name(snapshot)}", snapshot_bytes([b"state"], 3, 0, 0, None, 0))
    disk.process_crash()
    log = opened(disk)
    assert (log.start_offset(), log.end_offset()) == ((0, end) if kept else (10, 10))
    assert log.last_epoch() == (epochs[-1][0] if kept else 3)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("epoch", [1, 5], ids=["older epoch", "newer epoch"])
def test_the_epochs_of_a_log_that_a_snapshot_replaced_do_not_come_back(epoch: int, seed: int) -> None:
    """A voter would say of its log that it ends in an epoch of which it has nothing."""
    disk = new_disk(seed)
    log = opened(disk)
    append(log, epoch, 5)
    log.sync_later(lambda error: None)
    fetch_snapshot(log, OffsetAndEpoch(20, 3))
    disk.power_loss()
    log = opened(disk)
    assert (log.end_offset(), log.last_epoch()) == (20, 3)
    append(log, 3, 2)
    log.sync_later(lambda error: None)
    disk.power_loss()
    log = opened(disk)
    assert (log.end_offset(), log.last_epoch()) == (22, 3)
    assert log.end_offset_for_epoch(3) == OffsetAndEpoch(22, 3)


@pytest.mark.parametrize("epoch", [1, 5], ids=["older epoch", "newer epoch"])
def test_epochs_that_contradict_the_snapshot_before_an_empty_log_are_forgotten(epoch: int) -> None:
    disk = new_disk()
    fetch_snapshot(opened(disk), OffsetAndEpoch(20, 3))
    disk.write_file(f"{DIRECTORY}/leader-epoch-checkpoint", b"0\n1\n%d 0\n" % epoch)
    log = opened(disk)
    assert (log.start_offset(), log.end_offset(), log.last_epoch()) == (20, 20, 3)


def test_a_snapshot_that_is_ready_after_a_newer_one_was_fetched_is_dropped() -> None:
    """It would be named to followers as the place where their log parts from this one, below what is committed."""
    later: list[Callable[[], None]] = []
    disk = SimDisk(1, lambda delay_ms, action: later.append(action))
    disk.make_directory(DATA)
    log = opened(disk)
    append(log, 1, 15)
    newer = OffsetAndEpoch(29, 4)
    log.append_fetched_snapshot(newer, 0, snapshot_bytes([b"state"], 4, 0, 0, None, 0))
    log.check_fetched_snapshot(newer, lambda problem: log.install_fetched_snapshot(newer))
    log.write_snapshot(OffsetAndEpoch(12, 1), snapshot_bytes([b"state"], 1, 0, 0, None, 0), lambda error: None)
    while later:
        later.pop(0)()
    assert log.earliest_snapshot() == newer
    assert [name for name in disk.list(DIRECTORY) if ".checkpoint" in name] == [snapshot_name(newer)]
