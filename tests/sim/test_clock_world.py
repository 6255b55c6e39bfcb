"""Clocks go wrong, controllers are stopped, disks are slow or stuck: nobody is fenced, and nothing young is deleted."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.records.clocks import SteadyClock, WallClock
from moldau.sim.__main__ import main
from moldau.sim.cluster.clock_world import DEFAULT_MILLISECONDS, ClockWorld
from moldau.sim.cluster.world import ClusterWorld
from moldau.sim.groups.world import GroupWorld
from moldau.sim.kernel.host import Host
from moldau.storage import retention
from tests.sim.seeds import SEEDS, kept_seeds
from tests.sim.worlds import Plant, check_that_it_is_found, planted, run_both_ways


@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_notices_wrong_clocks_stopped_controllers_and_slow_disks(seed: int) -> None:
    """Replay with: python -m moldau.sim --clocks --seed SEED -v"""
    ClockWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("clocks"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    run_both_ways(ClockWorld, seed, milliseconds)


def test_the_faults_of_a_few_seeds_really_happen() -> None:
    kinds: set[str] = set()
    slow: set[str] = set()
    pauses = doubts = 0
    for seed in range(1000, 1003):
        setting = ClockWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        kinds |= set(setting.clock_faults.counts)
        slow |= set(setting.slow_disks.counts)
        pauses += setting.faults.counts.get("pause", 0)
        doubts += sum(host.wall.disagreements_total for host in setting.hosts.values())
    assert kinds == {"one wrong reading", "clock set", "clock too fast or too slow", "clock set right"}
    assert slow == {"slow disk", "unsteady disk", "stuck disk"}
    assert pauses > 3
    assert doubts > 5


def count_the_time_of_a_pause(patch: pytest.MonkeyPatch) -> None:
    """Who was stopped takes all others for silent."""

    def read(self: SteadyClock, monotonic_ms: int) -> int:
        return monotonic_ms + self._start_ms

    patch.setattr(SteadyClock, "read", read)


def count_deadlines_on_the_wall_clock(patch: pytest.MonkeyPatch) -> None:
    """One clock for everything."""
    patch.setattr(Host, "now_ms", property(lambda host: host.clock.wall_ms()))


def never_doubt_the_wall_clock(patch: pytest.MonkeyPatch) -> None:
    """Whatever the clock says counts at once, for ages too."""

    def note(self: WallClock, now_ms: int, monotonic_ms: int, wall_ms: int) -> None:
        self.offset_ms = wall_ms - now_ms

    patch.setattr(WallClock, "note", note)


def delete_by_age_in_doubt(patch: pytest.MonkeyPatch) -> None:
    """Retention does not ask whether the clock is trusted."""

    def is_expired(segment: Any, config: Any, now_ms: int, wall: WallClock) -> bool:
        return config.delete and 0 <= config.retention_ms < retention.age_ms(segment, now_ms, wall)

    patch.setattr(retention, "is_expired", is_expired)


PLANTED: list[Plant] = [
    count_the_time_of_a_pause,
    count_deadlines_on_the_wall_clock,
    never_doubt_the_wall_clock,
    delete_by_age_in_doubt,
]


@planted
@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__)
def test_a_planted_bug_is_found(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch)
    check_that_it_is_found(ClockWorld, DEFAULT_MILLISECONDS)


@planted
@pytest.mark.parametrize("world", [GroupWorld, ClusterWorld])
def test_the_other_worlds_find_it_too(
    world: type[GroupWorld] | type[ClusterWorld], monkeypatch: pytest.MonkeyPatch
) -> None:
    never_doubt_the_wall_clock(monkeypatch)
    with pytest.raises(AssertionError):
        for seed in range(40):
            world(seed).run(8_000)


def test_the_command_replays_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--clocks", "--seed", "2", "--steps", "1000"]) == 0
    assert capsys.readouterr().out.startswith("seed 2:")
