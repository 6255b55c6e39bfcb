"""Which seeds the simulation tests run: the first MOLDAU_SIM_SEEDS ones, and those that failed once."""

from __future__ import annotations

import os
from pathlib import Path

COUNT = int(os.environ.get("MOLDAU_SIM_SEEDS", "20"))
FIRST = int(os.environ.get("MOLDAU_SIM_FIRST_SEED", "0"))
SEEDS = range(FIRST, FIRST + COUNT)
# Of a whole cluster, in a long run, four times as many as of the smaller worlds: there is more that can go wrong.
CLUSTER_SEEDS = range(FIRST, FIRST + (4 * COUNT if COUNT >= 25 else COUNT))
FAILING_SEEDS = Path(__file__).with_name("failing_seeds.txt")


def kept_seeds(kind: str) -> list[tuple[int, int]]:
    """(seed, length) of the kept seeds of "node" or "logs"."""
    found = []
    for line in FAILING_SEEDS.read_text().splitlines():
        words = line.split()
        if words and words[0] == kind:
            found.append((int(words[1]), int(words[2])))
    return found
