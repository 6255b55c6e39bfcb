"""Counts durations and tells their percentiles, within two percent, however many there are."""

from __future__ import annotations

_SUB_BUCKETS = 64
_HALF = _SUB_BUCKETS // 2
_BUCKETS = _HALF * 48

PERCENTILES = (50.0, 95.0, 99.0, 99.9)


class Histogram:
    """Durations in microseconds: exact below 64, in buckets of less than four percent width above."""

    def __init__(self) -> None:
        self._counts = [0] * _BUCKETS
        self.count = 0
        self.total_us = 0
        self.lowest_us = 0
        self.highest_us = 0

    def add(self, duration_us: int, weight: int = 1) -> None:
        duration_us = max(0, duration_us)
        self._counts[_index(duration_us)] += weight
        if self.count == 0 or duration_us < self.lowest_us:
            self.lowest_us = duration_us
        self.highest_us = max(self.highest_us, duration_us)
        self.count += weight
        self.total_us += duration_us * weight

    @property
    def mean_us(self) -> float:
        return self.total_us / self.count if self.count else 0.0

    def percentile_us(self, percent: float) -> float:
        """At least so many percent of the durations are not longer."""
        if percent >= 100:
            return float(self.highest_us)
        wanted = self.count * percent / 100
        seen = 0
        for index, count in enumerate(self._counts):
            seen += count
            if count and seen >= wanted:
                return min(_middle(index), float(self.highest_us))
        return float(self.highest_us)

    def row(self) -> dict[str, object]:
        """The summary in milliseconds, for programs."""
        return {
            "mean_ms": round(self.mean_us / 1000, 3),
            **{f"p{percent:g}_ms": round(self.percentile_us(percent) / 1000, 3) for percent in PERCENTILES},
            "max_ms": round(self.highest_us / 1000, 3),
        }


def _index(value: int) -> int:
    if value < _SUB_BUCKETS:
        return value
    shift = value.bit_length() - 6
    return min(shift * _HALF + (value >> shift), _BUCKETS - 1)


def _middle(index: int) -> float:
    if index < _SUB_BUCKETS:
        return float(index)
    shift = index // _HALF - 1
    lowest = (index - shift * _HALF) << shift
    return lowest + (1 << shift) / 2


def milliseconds(duration_us: float) -> str:
    """A duration for people."""
    if duration_us < 9_950:
        return f"{duration_us / 1000:.2f} ms"
    if duration_us < 999_500:
        return f"{duration_us / 1000:.0f} ms"
    return f"{duration_us / 1_000_000:.1f} s"
