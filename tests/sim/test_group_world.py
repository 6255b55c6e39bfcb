"""Offsets committed through every fault of a node: none goes back, none is invented."""

from __future__ import annotations

import pytest

from moldau.sim.__main__ import DEFAULT_MILLISECONDS
from moldau.sim.groups.committer import OffsetModel
from moldau.sim.groups.world import GroupWorld
from moldau.sim.kernel.world import Violation
from tests.sim.seeds import SEEDS, kept_seeds
from tests.sim.worlds import count_what_happens


@pytest.mark.parametrize("seed", SEEDS)
def test_no_committed_offset_goes_back(seed: int) -> None:
    """Replay with: python -m moldau.sim --groups --seed SEED -v"""
    GroupWorld(seed).run(DEFAULT_MILLISECONDS)


@pytest.mark.parametrize(("seed", "milliseconds"), kept_seeds("groups"))
def test_seeds_that_failed_once_do_not_fail_again(seed: int, milliseconds: int) -> None:
    GroupWorld(seed).run(milliseconds)


def test_offsets_are_committed_and_faults_happen() -> None:
    names = ("deaths", "committed_offsets", "checked_offsets")
    counts = count_what_happens(GroupWorld, range(1000, 1003), DEFAULT_MILLISECONDS, *names)
    assert counts["deaths"] > 3
    assert counts["committed_offsets"] > 500
    assert counts["checked_offsets"] > 200


def test_an_offset_that_goes_back_is_found_out() -> None:
    model = OffsetModel("group t-0")
    for _ in range(4):
        model.next_offset()
    model.on_told(2)
    model.check(3, "offset 3")
    for offset, text in ((2, "offset 2"), (4, "offset 4"), (3, "offset 2"), (-1, "")):
        with pytest.raises(Violation):
            model.check(offset, text)
    model.on_power_loss()
    model.check(1, "offset 1")
