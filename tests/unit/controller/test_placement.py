"""Replica placement against the rules read from a real controller's placements."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from moldau.controller.placement import UsableBroker, place_replicas

FACTS = Path(__file__).parents[2] / "data" / "kafka-facts" / "placements.txt"


def place(
    brokers: int,
    partitions: int,
    factor: int,
    racks: dict[int, str] | None = None,
    fenced: tuple[int, ...] = (),
    seed: int = 0,
) -> list[list[int]]:
    usable = [UsableBroker(b, (racks or {}).get(b), b in fenced) for b in range(1, brokers + 1)]
    return place_replicas(usable, partitions, factor, random.Random(seed))


@pytest.mark.parametrize("seed", range(20))
def test_the_first_round_is_a_rotation_of_the_sorted_brokers(seed: int) -> None:
    placed = place(5, 5, 3, seed=seed)
    start = placed[0][0]
    assert placed == [[(start - 1 + p + r) % 5 + 1 for r in range(3)] for p in range(5)]


@pytest.mark.parametrize("seed", range(20))
def test_the_leaders_of_every_full_round_differ(seed: int) -> None:
    placed = place(5, 20, 3, seed=seed)
    for start in range(0, 20, 5):
        assert len({replicas[0] for replicas in placed[start : start + 5]}) == 5
    assert all(len(set(replicas)) == 3 for replicas in placed)


@pytest.mark.parametrize("seed", range(20))
def test_fenced_brokers_come_last_and_never_first(seed: int) -> None:
    placed = place(3, 6, 3, fenced=(3,), seed=seed)
    assert all(replicas[2] == 3 for replicas in placed)
    assert all(3 not in replicas for replicas in place(3, 6, 2, fenced=(3,), seed=seed))


@pytest.mark.parametrize("seed", range(20))
def test_replicas_go_to_different_racks_and_leaders_alternate(seed: int) -> None:
    racks = {1: "east", 3: "east", 5: "east", 2: "west", 4: "west", 6: "west"}
    placed = place(6, 6, 2, racks, seed=seed)
    assert all(racks[a] != racks[b] for a, b in placed)
    leaders = [racks[replicas[0]] for replicas in placed]
    assert all(a != b for a, b in pairwise(leaders))


@pytest.mark.parametrize("seed", range(10))
def test_more_replicas_than_racks_still_differ(seed: int) -> None:
    racks = {1: "east", 2: "east", 3: "east", 4: "west", 5: "west"}
    for replicas in place(5, 10, 4, racks, seed=seed):
        assert len(set(replicas)) == 4


def test_every_measured_first_round_can_be_made_by_some_seed() -> None:
    """The first rounds of the real controller without racks are among those of the first hundred seeds."""
    section = FACTS.read_text().split("== 5 brokers, no racks")[1]
    ours = {tuple(map(tuple, place(5, 5, 3, seed=seed))) for seed in range(100)}
    for line in section.splitlines():
        if "-r3-" in line:
            cells = [cell.split(":")[1] for cell in line.split()[1:6]]
            assert tuple(tuple(int(b) for b in cell.split(",")) for cell in cells) in ours
