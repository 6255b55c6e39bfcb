"""How values of the last minutes are spread, such as the times that requests took.

Values are counted in buckets that are a thirty-second as wide as they are far from zero, so a quantile is right to
about 3 %, whatever the unit. Two windows are kept: what is asked for is what came in the current one and the one before
it, so it is between one and two windows old.
"""

from __future__ import annotations

from typing import Final

WINDOW_S: Final = 60.0
SUB_BITS: Final = 5
SUB_COUNT: Final = 1 << SUB_BITS


class RecentValues:
    """Of one kind. Values are whole numbers, not negative; times are those of a monotonic clock."""

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0
        self.max = 0
        """These are since the start."""
        self._began_s = 0.0
        self._now: dict[int, int] = {}
        self._before: dict[int, int] = {}

    def record(self, value: int, at_s: float) -> None:
        if at_s - self._began_s >= WINDOW_S:
            self._turn_over(at_s)
        self.count += 1
        self.sum += value
        if value > self.max:
            self.max = value
        place = bucket_of(value)
        buckets = self._now
        buckets[place] = buckets.get(place, 0) + 1

    def _turn_over(self, at_s: float) -> None:
        self._before = self._now if at_s - self._began_s < 2 * WINDOW_S else {}
        self._now = {}
        self._began_s = at_s

    def quantiles(self, wanted: list[float], at_s: float) -> list[float]:
        """The values below which these parts of the recent ones are, such as 0.99; empty when there are none."""
        counts: dict[int, int] = {}
        self.add_to(counts, at_s)
        return quantiles_of(counts, wanted)

    def add_to(self, counts: dict[int, int], at_s: float) -> None:
        """Adds its recent values to those of others, by bucket."""
        if at_s - self._began_s >= WINDOW_S:
            self._turn_over(at_s)
        for buckets in (self._before, self._now):
            for place, count in buckets.items():
                counts[place] = counts.get(place, 0) + count


def quantiles_of(counts: dict[int, int], wanted: list[float]) -> list[float]:
    total = sum(counts.values())
    if total == 0:
        return []
    places = sorted(counts)
    found: list[float] = []
    for part in wanted:
        left = part * total
        chosen = places[-1]
        for place in places:
            left -= counts[place]
            if left <= 0:
                chosen = place
                break
        found.append(middle_of(chosen))
    return found


def bucket_of(value: int) -> int:
    if value < SUB_COUNT:
        return value if value > 0 else 0
    shift = value.bit_length() - SUB_BITS - 1
    return (shift << SUB_BITS) + (value >> shift)


def middle_of(place: int) -> float:
    """The middle of the values that a bucket counts."""
    if place < 2 * SUB_COUNT:
        return float(place)
    shift = (place >> SUB_BITS) - 1
    lowest = (place - (shift << SUB_BITS)) << shift
    return lowest + ((1 << shift) - 1) / 2
