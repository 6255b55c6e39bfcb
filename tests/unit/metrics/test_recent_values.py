"""Quantiles of the last minutes, right to a few percent, and forgotten in time."""

from __future__ import annotations

import random

import pytest

from moldau.metrics.recent_values import WINDOW_S, RecentValues, bucket_of, middle_of


def test_a_value_is_found_again_to_a_thirty_second() -> None:
    chance = random.Random(1)
    for value in [*range(3000), *(chance.randrange(1 << 45) for _ in range(2000))]:
        assert abs(middle_of(bucket_of(value)) - value) <= value / 32
        assert bucket_of(value) <= bucket_of(value + 1)


@pytest.mark.parametrize("seed", range(5))
def test_quantiles_are_those_of_the_sorted_values(seed: int) -> None:
    chance = random.Random(seed)
    recent, values = RecentValues(), []
    for _ in range(5000):
        value = int(chance.expovariate(1 / 2000))
        recent.record(value, 1000.0)
        values.append(value)
    values.sort()
    for part, found in zip((0.5, 0.95, 0.999), recent.quantiles([0.5, 0.95, 0.999], 1000.0), strict=True):
        exact = values[min(len(values) - 1, int(part * len(values)))]
        assert found == pytest.approx(exact, rel=0.05)
    assert (recent.count, recent.sum, recent.max) == (5000, sum(values), values[-1])


def test_what_is_older_than_two_windows_is_forgotten() -> None:
    recent = RecentValues()
    recent.record(10, 1000.0)
    recent.record(20, 1000.0 + WINDOW_S)
    assert recent.quantiles([0.0, 1.0], 1000.0 + WINDOW_S) == [10.0, 20.0]
    assert recent.quantiles([0.0], 1001.0 + 2 * WINDOW_S) == [20.0]
    assert recent.quantiles([0.5], 1002.0 + 4 * WINDOW_S) == []
    assert recent.count == 2


def test_nothing_has_no_quantiles() -> None:
    assert RecentValues().quantiles([0.5], 5.0) == []
