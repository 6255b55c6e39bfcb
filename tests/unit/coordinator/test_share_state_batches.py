"""State batches: what becomes of an older state and a write, by a model that knows every offset."""

from __future__ import annotations

import itertools
import random

import pytest

from moldau.coordinator.share.state_batches import StateBatch, combine


def spread(batches: list[StateBatch], start: int) -> dict[int, tuple[int, int]]:
    found: dict[int, tuple[int, int]] = {}
    for batch in batches:
        for offset in range(max(batch.first, start), batch.last + 1):
            found[offset] = max(found.get(offset, (-1, -1)), (batch.count, batch.state))
    return found


@pytest.mark.parametrize("seed", range(200))
def test_the_larger_count_wins_then_the_larger_state(seed: int) -> None:
    rng = random.Random(seed)

    def some() -> list[StateBatch]:
        rows = []
        for _ in range(rng.randint(0, 8)):
            first = rng.randint(0, 40)
            rows.append(StateBatch(first, first + rng.randint(0, 12), rng.choice((0, 2, 4)), rng.randint(1, 3)))
        return rows

    known, written, start = some(), some(), rng.randint(0, 20)
    combined = combine(known, written, start)
    assert spread(combined, 0) == spread(known + written, start)
    for before, after in itertools.pairwise(combined):
        assert before.last < after.first, "in order, nothing twice"
        assert before.last + 1 < after.first or before.values()[2:] != after.values()[2:], "neighbours alike are one"
    assert combine(combined, [], start) == combined


def test_ten_thousand_ranges_that_overlap() -> None:
    """Work grows with their number, not with its square."""
    known = [StateBatch(n, n + 50, 0, n % 5 + 1) for n in range(10_000)]
    assert spread(combine(known, [], 0), 0) == spread(known, 0)
