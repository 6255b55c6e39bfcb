"""A whole cluster, its clients and its faults in the simulated world: nothing it promised is ever broken."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys

import pytest

from moldau.node.metadata_node import CannotStart
from moldau.replication import leader
from moldau.sim.__main__ import main
from moldau.sim.cluster_world import DEFAULT_MILLISECONDS, ClusterWorld
from tests.sim.planted_bugs import PLANTED, Plant
from tests.sim.seeds import COUNT, SEEDS, kept_seeds

PLANTED_SEEDS_MAX = 100
IS_COMPILED = not str(leader.__file__).endswith(".py")


def seeds() -> list[int]:
    """In a long run four times as many as of the smaller worlds: there is more that can go wrong."""
    return [*range(SEEDS.start, SEEDS.start + (4 * COUNT if COUNT >= 25 else COUNT))]


@pytest.mark.parametrize("seed", seeds())
def test_a_cluster_keeps_its_promises_through_every_fault(seed: int) -> None:
    """Replay with: python -m moldau.sim --cluster --seed SEED -v"""
    ClusterWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("cluster"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    ClusterWorld(seed).run(milliseconds)


def test_the_faults_of_a_few_seeds_really_happen() -> None:
    faults: dict[str, int] = {}
    done: dict[str, int] = {}
    deaths = losses = acknowledged = fetched = committed = 0
    for seed in range(1000, 1012):
        setting = ClusterWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        deaths += setting.deaths
        losses += setting.data_losses
        acknowledged += setting.acknowledged_records
        fetched += setting.fetched_records
        committed += setting.committed_offsets
        for kind, count in setting.faults.counts.items():
            faults[kind] = faults.get(kind, 0) + count
        for kind, count in setting.admin.done.items():
            done[kind] = done.get(kind, 0) + count
    assert deaths > 10
    assert losses > 2
    assert acknowledged > 1000
    assert fetched > 500
    assert committed > 50
    assert {"kill", "pause", "isolation", "one-way loss", "slow links", "clean restart"} <= set(faults)
    assert {"create", "reassign", "elect", "alter"} <= set(done)


@pytest.mark.skipif(IS_COMPILED, reason="compiled classes cannot be changed, so no bug can be planted into them")
@pytest.mark.skipif(COUNT < 10, reason="takes too long for a short run: MOLDAU_SIM_SEEDS is less than 10")
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the seeds of a normal run; most show in the first few."""
    plant(monkeypatch)
    with pytest.raises((AssertionError, CannotStart)) as found:
        for seed in range(PLANTED_SEEDS_MAX):
            ClusterWorld(seed).run(DEFAULT_MILLISECONDS)
    for mistake in ("TypeError", "AttributeError", "NameError"):
        assert mistake not in str(found.value), "the bug was planted badly"


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    """Not even the order of sets, which differs between processes, may show."""

    def digest(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        command = [sys.executable, "-m", "moldau.sim", "--cluster", "--seed", "5", "-v"]
        done = subprocess.run(command, capture_output=True, env=environment, check=True)
        return hashlib.sha256(done.stdout).hexdigest()

    assert digest("1") == digest("2")


def test_the_command_replays_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster", "--seed", "2", "--steps", "1000"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
