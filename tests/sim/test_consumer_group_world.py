"""Members of consumer groups through every fault of a node: one owner for each partition, no offset goes back."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import DEFAULT_MILLISECONDS
from moldau.sim.groups.consumer_world import ConsumerGroupWorld
from tests.sim.group_checks import check_that_things_happen
from tests.sim.seeds import SEEDS, kept_seeds


@pytest.mark.parametrize("seed", SEEDS)
def test_no_partition_has_two_owners(seed: int) -> None:
    """Replay with: python -m moldau.sim --consumer-groups --seed SEED -v"""
    ConsumerGroupWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("consumer-groups"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    ConsumerGroupWorld(seed).run(milliseconds)


def test_partitions_are_shared_and_faults_happen() -> None:
    check_that_things_happen(ConsumerGroupWorld)
