"""A whole cluster, its clients and its faults in the simulated world: nothing it promised is ever broken."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import main
from moldau.sim.cluster.world import DEFAULT_MILLISECONDS, ClusterWorld, OuterListenersWorld
from tests.sim.planted_bugs import PLANTED, PLANTED_IN_SLOW_LINKS, PLANTED_IN_TRUST, believe_any_refusal
from tests.sim.seeds import SEEDS, in_a_long_run, kept_seeds
from tests.sim.worlds import Plant, check_that_it_is_found, planted, trace_digest


@pytest.mark.parametrize("seed", SEEDS)
def test_a_cluster_keeps_its_promises_through_every_fault(seed: int) -> None:
    """Replay with: python -m moldau.sim --cluster --seed SEED -v"""
    ClusterWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("cluster"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    ClusterWorld(seed).run(milliseconds)


@in_a_long_run
def test_the_faults_of_a_few_seeds_really_happen() -> None:
    faults: dict[str, int] = {}
    done: dict[str, int] = {}
    deaths = losses = acknowledged = fetched = committed = early_fencings = 0
    for seed in range(1000, 1012):
        setting = ClusterWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        deaths += setting.deaths
        losses += setting.data_losses
        acknowledged += setting.acknowledged_records
        fetched += setting.fetched_records
        committed += setting.committed_offsets
        early_fencings += setting.early_fencings
        for kind, count in setting.faults.counts.items():
            faults[kind] = faults.get(kind, 0) + count
        for kind, count in setting.admin.done.items():
            done[kind] = done.get(kind, 0) + count
    assert deaths > 10
    assert losses > 2
    assert acknowledged > 1000
    assert fetched > 500
    assert committed > 50
    assert early_fencings > 0
    assert {"kill", "pause", "isolation", "one-way loss", "slow links", "slow disk", "clean restart"} <= set(faults)
    assert {"create", "reassign", "elect", "alter"} <= set(done)


@planted
@in_a_long_run
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(ClusterWorld, DEFAULT_MILLISECONDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_who_lives_is_fenced_because_a_listener_refuses_the_controllers(seed: int) -> None:
    OuterListenersWorld(seed).run(DEFAULT_MILLISECONDS)


@planted
def test_a_controller_that_believes_any_refusal_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    believe_any_refusal(monkeypatch)
    check_that_it_is_found(OuterListenersWorld, DEFAULT_MILLISECONDS)


class TrustWorld(ClusterWorld):
    """Brokers are killed, and sometimes what they had written is taken away from them."""

    only_faults = frozenset({"kill", "lost writes", "restored copy"})


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_not_lost_with_what_a_killed_broker_lost(seed: int) -> None:
    TrustWorld(seed).run(DEFAULT_MILLISECONDS)


@planted
@in_a_long_run
@pytest.mark.parametrize("plant", PLANTED_IN_TRUST, ids=lambda plant: plant.__name__)
def test_a_killed_broker_that_is_trusted_too_much_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(TrustWorld, DEFAULT_MILLISECONDS)


class SlowLinksWorld(ClusterWorld):
    """Leaders die while the controller's decisions are on their way to them."""

    only_faults = frozenset({"kill", "slow links"})


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_acknowledged_is_not_lost_with_a_decision_that_was_on_its_way(seed: int) -> None:
    SlowLinksWorld(seed).run(DEFAULT_MILLISECONDS)


@planted
@in_a_long_run
@pytest.mark.parametrize("plant", PLANTED_IN_SLOW_LINKS, ids=lambda plant: plant.__name__)
def test_a_leader_that_counts_too_few_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(SlowLinksWorld, DEFAULT_MILLISECONDS, likely_seed=29)


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    assert trace_digest("1", "--cluster", "--seed", "5") == trace_digest("2", "--cluster", "--seed", "5")


def test_the_command_replays_a_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--cluster", "--seed", "2", "--steps", "1000"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
