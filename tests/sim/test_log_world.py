"""Logs on a disk that loses, tears, fills up and fails keep their promises; a disk that lies is found out."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from moldau.sim.kernel.disk import Inode, SimDisk
from moldau.sim.kernel.world import Violation
from moldau.sim.logs import world as log_world
from moldau.sim.logs.world import LogWorld
from moldau.storage.truncation import Truncation
from tests.sim.seeds import SEEDS, kept_seeds
from tests.sim.worlds import run_both_ways

STEPS = 200
SEEDS_TO_FIND_A_BUG = 40


@pytest.mark.parametrize("seed", SEEDS)
def test_logs_keep_their_promises_through_every_crash(seed: int) -> None:
    """Replay with: python -m moldau.sim --logs --steps 200 --seed SEED"""
    LogWorld(seed).run(STEPS)


@pytest.mark.parametrize(("seed", "steps"), kept_seeds("logs"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, steps: int) -> None:
    run_both_ways(LogWorld, seed, steps)


def test_the_same_seed_gives_the_same_trace() -> None:
    def trace(seed: int) -> list[str]:
        world = LogWorld(seed)
        world.run(100)
        return world.world.trace

    assert trace(11) == trace(11)
    assert trace(11) != trace(12)


class ForgetsToSync(SimDisk):
    """Says that a file is synced and does nothing."""

    def sync_inode(self, inode: Inode, path: str, number: int) -> None:
        return


class ForgetsToSyncDirectories(SimDisk):
    """Says that a directory is synced and does nothing."""

    def sync_directory(self, path: str) -> None:
        return


class LosesTheLastByte(SimDisk):
    """Now and then writes one byte less than it was given, and says nothing."""

    def append_to(self, inode: Inode, path: str, data: bytes) -> None:
        super().append_to(inode, path, data[:-1] if path.endswith(".log") and self.rng.random() < 0.02 else data)


@pytest.mark.parametrize("disk", [ForgetsToSync, ForgetsToSyncDirectories, LosesTheLastByte])
def test_a_disk_that_lies_is_found_out(disk: type[SimDisk], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_world, "SimDisk", disk)
    with pytest.raises((Violation, AssertionError)):
        for seed in range(SEEDS_TO_FIND_A_BUG):
            LogWorld(seed).run(STEPS)


def append_before_the_cut_is_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(truncation: Truncation, write_checkpoints: object) -> None:
        truncation._truncate_files()
        truncation._end()

    monkeypatch.setattr(Truncation, "start", start)


def cut_before_the_names_are_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Truncation, "start", lambda truncation, write_checkpoints: truncation._on_names(None))


def cut_before_the_checkpoints_are_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    start = Truncation.start
    monkeypatch.setattr(Truncation, "start", lambda truncation, write_checkpoints: start(truncation, None))


@pytest.mark.planted
@pytest.mark.parametrize(
    ("plant", "first_seed"),
    [
        (append_before_the_cut_is_durable, 0),
        (cut_before_the_names_are_durable, 0),
        (cut_before_the_checkpoints_are_durable, 150),
    ],
)
def test_an_order_that_is_not_kept_is_found_out(
    plant: Callable[[pytest.MonkeyPatch], None], first_seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises((Violation, AssertionError)):
        for seed in range(first_seed, first_seed + SEEDS_TO_FIND_A_BUG):
            world = LogWorld(seed)
            world.leave_out_slowness()  # the seeds are known without it
            world.run(STEPS)
