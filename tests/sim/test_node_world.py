"""One whole node, its clients and its faults in the simulated world: nothing it promised is ever broken."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from moldau.sim import host
from moldau.sim.__main__ import DEFAULT_MILLISECONDS, main
from moldau.sim.disk import Inode, SimDisk
from moldau.sim.node_world import NodeWorld
from tests.sim.seeds import SEEDS, kept_seeds


@pytest.mark.parametrize("seed", SEEDS)
def test_a_node_keeps_its_promises_through_every_fault(seed: int) -> None:
    """Replay with: python -m moldau.sim --seed SEED -v"""
    NodeWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("node"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    NodeWorld(seed).run(milliseconds)


def test_the_faults_of_a_few_seeds_really_happen() -> None:
    deaths = losses = acknowledged = fetched = 0
    for seed in range(1000, 1004):
        setting = NodeWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        deaths += setting.deaths
        losses += setting.data_losses
        acknowledged += setting.acknowledged_records
        fetched += setting.fetched_records
    assert deaths > 4
    assert losses > 0
    assert acknowledged > 1000
    assert fetched > 100


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    """Not even the order of sets, which differs between processes, may show."""

    def digest(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "moldau.sim", "--seed", "5", "--steps", "6000", "-v"]
        done = subprocess.run(command, capture_output=True, env=environment, check=True)
        return hashlib.sha256(done.stdout).hexdigest()

    assert digest("1") == digest("2")


class ForgetsToSync(SimDisk):
    """Says that a file is synced and does nothing."""

    def sync_inode(self, inode: Inode, path: str, number: int) -> None:
        return


def test_a_node_on_a_disk_that_lies_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "SimDisk", ForgetsToSync)
    with pytest.raises(Exception):  # noqa: B017 - it may show as a broken promise or as a node that cannot start
        for seed in range(20):
            NodeWorld(seed).run(DEFAULT_MILLISECONDS)


def test_the_command_replays_a_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "2", "--steps", "2000"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
