"""Members of classic groups through every fault of a node: one owner for each partition, no offset goes back."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import DEFAULT_MILLISECONDS
from moldau.sim.groups.classic_members import SimClassicGroup, SimClassicMember
from moldau.sim.groups.classic_world import ClassicGroupWorld
from moldau.sim.kernel.world import Violation
from tests.sim.group_checks import check_that_things_happen
from tests.sim.seeds import SEEDS, kept_seeds
from tests.sim.worlds import run_both_ways


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners(seed: int) -> None:
    """Replay with: python -m moldau.sim --classic-groups --seed SEED -v"""
    ClassicGroupWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("classic-groups"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    run_both_ways(ClassicGroupWorld, seed, milliseconds)


def test_partitions_are_shared_and_faults_happen() -> None:
    check_that_things_happen(ClassicGroupWorld)


def owner(group: SimClassicGroup, number: int, generation: int) -> SimClassicMember:
    member = group.members[number]
    member.generation = generation
    member.losses = group.setting.data_losses
    member.session_end_ms = group.setting.world.now_ms + 1000
    return member


def test_a_second_owner_is_found_out() -> None:
    """Unless the first has joined again, or was not heard of for a session."""
    setting = ClassicGroupWorld(1)
    group = SimClassicGroup(setting, "checked")
    place = ("t", 0)
    first, second = owner(group, 0, 3), owner(group, 1, 4)
    group.take(first, [place])
    first.owned = {place}
    with pytest.raises(Violation, match="one owner"):
        group.take(second, [place])
    first.session_end_ms = setting.world.now_ms
    group.take(second, [place])
    with pytest.raises(Violation, match="gives a partition once"):
        group.take(owner(group, 0, 4), [place])
