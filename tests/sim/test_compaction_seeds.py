"""Compaction on the simulated disk: random records, transactions, tombstones, crashes at every step of the swap."""

from __future__ import annotations

import pytest

from moldau.sim.compaction_world import CompactionWorld
from tests.sim.seeds import SEEDS


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_last_stays_and_nothing_comes_back(seed: int) -> None:
    world = CompactionWorld(seed)
    world.run(25)
    assert world.runs + world.crashes == 25
