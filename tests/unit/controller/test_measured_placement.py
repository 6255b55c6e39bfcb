"""Every placement that was measured on a real controller can be made by this one, for some throw of the dice."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from moldau.controller.placement import RackRing, UsableBroker

FACTS = Path(__file__).parents[2] / "data" / "kafka-facts" / "placements.txt"

CLUSTERS: dict[str, list[UsableBroker]] = {
    "3 brokers (1 2 3), no racks": [UsableBroker(b, None, False) for b in (1, 2, 3)],
    "the same cluster: __consumer_offsets": [UsableBroker(b, None, False) for b in (1, 2, 3)],
    "the same cluster, broker 3 stopped": [UsableBroker(b, None, b == 3) for b in (1, 2, 3)],
    "3 brokers in 3 racks": [UsableBroker(b, f"rack{b}", False) for b in (1, 2, 3)],
    "6 brokers in 2 racks": [UsableBroker(b, "east" if b % 2 else "west", False) for b in range(1, 7)],
    "5 brokers in 2 unequal racks": [UsableBroker(b, "east" if b < 4 else "west", False) for b in range(1, 6)],
    "5 brokers, 3 of them in a rack": [UsableBroker(b, "east" if b < 4 else None, False) for b in range(1, 6)],
    "5 brokers, no racks": [UsableBroker(b, None, False) for b in range(1, 6)],
}


def measured() -> Iterator[tuple[str, str, list[list[int]]]]:
    """Cluster, topic, and the replicas of each of its partitions."""
    for section in FACTS.read_text().split("\n== ")[1:]:
        title, *lines = section.splitlines()
        cluster = next((name for name in CLUSTERS if title.startswith(name)), None)
        for line in lines if cluster is not None else ():
            if re.match(r"\S+ +0:", line):
                topic, *cells = line.split()
                assert cluster is not None
                yield cluster, topic, [[int(b) for b in cell.split(":")[1].split(",")] for cell in cells]


class NextThrow(Exception):
    """The dice are wanted once more than was thrown so far."""


class Dice:
    def __init__(self, throws: list[int]) -> None:
        self.throws = throws
        self.used = 0
        self.sides = 0

    def randrange(self, stop: int, /) -> int:
        if self.used == len(self.throws):
            self.sides = stop
            raise NextThrow
        self.used += 1
        return self.throws[self.used - 1]

    def randbytes(self, n: int, /) -> bytes:
        raise NotImplementedError


def can_be_made(brokers: list[UsableBroker], wanted: list[list[int]]) -> bool:
    """Tries all throws, as long as what they give is what was measured."""
    open_throws: list[list[int]] = [[]]
    while open_throws:
        throws = open_throws.pop()
        dice = Dice(throws)
        try:
            ring = RackRing(dice, brokers)
            if all(ring.place(len(replicas)) == replicas for replicas in wanted):
                return True
        except NextThrow:
            open_throws += [[*throws, side] for side in range(dice.sides)]
    return False


def test_every_measured_placement_can_be_made() -> None:
    placements = list(measured())
    assert len(placements) > 80
    wrong = [
        f"{cluster}: {topic}" for cluster, topic, wanted in placements if not can_be_made(CLUSTERS[cluster], wanted)
    ]
    assert wrong == []


def test_a_placement_that_breaks_the_rules_cannot_be_made() -> None:
    brokers = CLUSTERS["5 brokers, no racks"]
    assert not can_be_made(brokers, [[1, 2, 3], [3, 4, 5]])
    assert not can_be_made(CLUSTERS["6 brokers in 2 racks"], [[1, 3]])
    assert not can_be_made(CLUSTERS["the same cluster, broker 3 stopped"], [[3, 1, 2]])
