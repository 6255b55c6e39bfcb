"""Members of consumer groups through every fault of a node: one owner for each partition, no offset goes back."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import DEFAULT_MILLISECONDS
from moldau.sim.consumer_group_world import ConsumerGroupWorld
from tests.sim.seeds import SEEDS, kept_seeds


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners(seed: int) -> None:
    """Replay with: python -m moldau.sim --consumer-groups --seed SEED -v"""
    ConsumerGroupWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("consumer-groups"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    ConsumerGroupWorld(seed).run(milliseconds)


def test_partitions_are_shared_and_faults_happen() -> None:
    deaths = assignments = committed = checked = 0
    for seed in range(1000, 1003):
        setting = ConsumerGroupWorld(seed)
        setting.run(DEFAULT_MILLISECONDS)
        deaths += setting.deaths
        assignments += setting.assignments
        committed += setting.committed_offsets
        checked += setting.checked_offsets
    assert deaths > 3
    assert assignments > 50
    assert committed > 50
    assert checked > 50
