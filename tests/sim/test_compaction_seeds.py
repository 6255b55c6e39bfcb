"""Compaction on the simulated disk: random records, transactions, tombstones, crashes at every step of the swap."""

from __future__ import annotations

import os

import pytest

from moldau.sim.compaction_world import CompactionWorld

# One of these takes as long as four of the others.
SEEDS = (int(os.environ.get("MOLDAU_SIM_SEEDS", "40")) + 3) // 4


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_last_stays_and_nothing_comes_back(seed: int) -> None:
    world = CompactionWorld(seed)
    world.run(25)
    assert world.runs + world.crashes == 25
