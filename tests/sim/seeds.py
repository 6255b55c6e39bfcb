"""Which seeds the simulation tests run: the first MOLDAU_SIM_SEEDS ones, and those that failed once."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

COUNT = int(os.environ.get("MOLDAU_SIM_SEEDS", "20"))
FIRST = int(os.environ.get("MOLDAU_SIM_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + COUNT)
# What a world does with a seed is the same in both builds: what needs many of them runs in the long, compiled run.
in_a_long_run = pytest.mark.skipif(
    COUNT < 10, reason="takes too long for a short run: MOLDAU_SIM_SEEDS is less than 10"
)
FAILING_SEEDS = Path(__file__).with_name("failing_seeds.txt")


def kept_seeds(kind: str) -> list[tuple[int, int]]:
    """(seed, length) of the kept seeds of "node" or "logs"."""
    found = []
    for line in FAILING_SEEDS.read_text().splitlines():
        words = line.split()
        if words and words[0] == kind:
            found.append((int(words[1]), int(words[2])))
    return found
