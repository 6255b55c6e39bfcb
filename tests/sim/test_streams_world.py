"""Members of streams groups through every fault of a node: no task is active twice, and none is forgotten."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import DEFAULT_MILLISECONDS, main
from moldau.sim.groups.streams_world import StreamsGroupWorld
from tests.sim.planted_streams_bugs import PLANTED
from tests.sim.seeds import SEEDS, in_a_long_run, kept_seeds
from tests.sim.worlds import Plant, check_that_it_is_found, count_what_happens, planted, trace_digest


@pytest.mark.parametrize("seed", SEEDS)
def test_no_task_is_active_twice_and_none_is_forgotten(seed: int) -> None:
    """Replay with: python -m moldau.sim --streams --seed SEED -v"""
    StreamsGroupWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("streams"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    StreamsGroupWorld(seed).run(milliseconds)


def test_tasks_are_shared_and_faults_happen() -> None:
    names = ("deaths", "assignments", "committed_offsets", "checked_offsets", "convergences")
    counts = count_what_happens(StreamsGroupWorld, range(1000, 1003), DEFAULT_MILLISECONDS, *names)
    assert counts["deaths"] > 3
    assert counts["convergences"] >= 6
    assert min(counts["assignments"], counts["committed_offsets"], counts["checked_offsets"]) > 50


@planted
@in_a_long_run
@pytest.mark.parametrize("plant", PLANTED, ids=[plant.__name__ for plant in PLANTED])
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(StreamsGroupWorld, DEFAULT_MILLISECONDS)


def test_the_same_seed_gives_the_same_trace_in_every_process() -> None:
    arguments = ("--streams", "--seed", "9", "--steps", "3000")
    assert trace_digest("1", *arguments) == trace_digest("2", *arguments)


def test_the_command_replays_streams_groups(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--streams", "--seed", "2", "--steps", "500"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
