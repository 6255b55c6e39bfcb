"""A whole cluster with share groups in the simulated world: no record is forgotten, none is accepted twice."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import main
from moldau.sim.share.world import DEFAULT_MILLISECONDS, ShareWorld
from tests.sim.planted_share_bugs import PLANTED, RARE
from tests.sim.seeds import COUNT, SEEDS, in_a_long_run, kept_seeds
from tests.sim.worlds import Plant, check_that_it_is_found, planted, trace_digest

TO_FIND = PLANTED + (RARE if COUNT >= 100 else [])


@pytest.mark.parametrize("seed", SEEDS)
def test_share_groups_keep_their_promises_through_every_fault(seed: int) -> None:
    """Replay with: python -m moldau.sim --share --seed SEED -v"""
    ShareWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("share"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    ShareWorld(seed).run(milliseconds)


@in_a_long_run
def test_the_workload_and_the_faults_of_a_few_seeds_really_happen() -> None:
    faults: dict[str, int] = {}
    locked = again = accepted = rejected = refused = strange = aborted = 0
    for seed in range(1000, 1008):
        setting = ShareWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        locked += setting.share_checks.acquired
        again += setting.share_checks.delivered_again
        accepted += setting.ledger.told_accepted
        rejected += setting.ledger.told_rejected
        refused += setting.refused
        strange += setting.strange_requests
        aborted += sum(len(log.aborted) for log in setting.ledger.logs.values())
        for kind, count in setting.faults.counts.items():
            faults[kind] = faults.get(kind, 0) + count
    assert locked > 1000
    assert again > 100
    assert accepted > 500
    assert rejected > 20
    assert refused > 5
    assert strange > 20
    assert aborted > 20
    assert {"kill", "power loss", "isolation"} <= set(faults)


@planted
@in_a_long_run
@pytest.mark.parametrize(("plant", "likely_seed"), TO_FIND, ids=[plant.__name__ for plant, _ in TO_FIND])
def test_a_planted_bug_is_found(plant: Plant, likely_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(ShareWorld, DEFAULT_MILLISECONDS, likely_seed)


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    arguments = ("--share", "--seed", "9")
    assert trace_digest("1", *arguments) == trace_digest("2", *arguments)


def test_the_command_replays_share_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--share", "--seed", "2", "--steps", "500"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
