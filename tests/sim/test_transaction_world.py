"""A whole cluster with transactional applications in the simulated world: every transaction stays whole."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import main
from moldau.sim.transactions.ledger import ABORT, COMMIT
from moldau.sim.transactions.world import DEFAULT_MILLISECONDS, HastyWorld, TransactionWorld
from tests.sim.planted_transaction_bugs import HASTY, PLANTED, RARE
from tests.sim.seeds import COUNT, SEEDS, in_a_long_run, kept_seeds
from tests.sim.worlds import Plant, check_that_it_is_found, planted, trace_digest

TO_FIND = PLANTED + (RARE if COUNT >= 100 else [])


@pytest.mark.parametrize("seed", SEEDS)
def test_transactions_stay_whole_through_every_fault(seed: int) -> None:
    """Replay with: python -m moldau.sim --transactions --seed SEED -v"""
    TransactionWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize("seed", SEEDS)
def test_requests_that_do_not_wait_for_each_other_are_judged_in_order(seed: int) -> None:
    HastyWorld(seed).run(DEFAULT_MILLISECONDS)


@planted
@pytest.mark.parametrize(("plant", "likely_seed"), HASTY, ids=[plant.__name__ for plant, _ in HASTY])
def test_a_bug_planted_into_the_order_is_found(plant: Plant, likely_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(HastyWorld, DEFAULT_MILLISECONDS, likely_seed)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("transactions"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    TransactionWorld(seed).run(milliseconds)


@in_a_long_run
def test_the_workload_and_the_faults_of_a_few_seeds_really_happen() -> None:
    faults: dict[str, int] = {}
    counts = {COMMIT: 0, ABORT: 0}
    versions: set[int] = set()
    first_version = second_version = zombies = late = read = offsets = 0
    for seed in range(1000, 1010):
        setting = TransactionWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        versions.add(setting.transaction_version)
        zombies += setting.zombies
        late += setting.late_requests.count
        read += setting.fetched_records
        offsets += sum(bool(one.offsets) for one in setting.ledger.attempts if one.decided == COMMIT)
        first = {one.name for one in setting.applications if one.is_first_version}
        for attempt in setting.ledger.attempts:
            if attempt.decided:
                counts[attempt.decided] += 1
                is_first = attempt.owner.rsplit(".", 1)[0] in first
                first_version, second_version = first_version + is_first, second_version + (not is_first)
        for kind, count in setting.faults.counts.items():
            faults[kind] = faults.get(kind, 0) + count
    assert counts[COMMIT] > 200
    assert counts[ABORT] > 50
    assert min(first_version, second_version) > 50
    assert offsets > 50
    assert zombies > 10
    assert late > 50
    assert read > 1000
    assert {2, 1} <= versions
    assert {"kill", "power loss", "pause", "isolation"} <= set(faults)


@planted
@in_a_long_run
@pytest.mark.parametrize(("plant", "likely_seed"), TO_FIND, ids=[plant.__name__ for plant, _ in TO_FIND])
def test_a_planted_bug_is_found(plant: Plant, likely_seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(TransactionWorld, DEFAULT_MILLISECONDS, likely_seed)


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    arguments = ("--transactions", "--seed", "9")
    assert trace_digest("1", *arguments) == trace_digest("2", *arguments)


def test_the_command_replays_transactions(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--transactions", "--seed", "2", "--steps", "500"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
