"""Metrics of times and sizes, as exporters show Kafka's histograms: how many, quantiles, mean and maximum."""

from __future__ import annotations

import math
from collections.abc import Mapping

from moldau.metrics.recent_times import RecentTimes
from moldau.metrics.recent_values import RecentValues
from moldau.server.metrics.metric import COUNTER, GAUGE, QUANTILE_TEXTS, QUANTILES, Labels, Metric


def spread_metrics(
    stem: str, about: str, of_labels: Mapping[Labels, RecentValues], now_s: float, unit: float = 1.0
) -> list[Metric]:
    """`unit` is how many of what was recorded are one of what is shown."""
    count = Metric(f"{stem}_count", COUNTER, f"{about}: how many were measured")
    spread = Metric(stem, GAUGE, f"{about}: quantiles of the last minutes")
    mean = Metric(f"{stem}_mean", GAUGE, f"{about}: the mean since the start")
    longest = Metric(f"{stem}_max", GAUGE, f"{about}: the most since the start")
    for labels, values in of_labels.items():
        count.values[labels] = values.count
        if values.count:
            mean.values[labels] = round(values.sum / values.count / unit, 3)
            longest.values[labels] = round(values.max / unit, 3)
        # As in Kafka a histogram without values says 0, so that whoever looks at it sees something.
        found = values.quantiles(list(QUANTILES), now_s) or [0.0] * len(QUANTILES)
        for text, value in zip(QUANTILE_TEXTS, found, strict=True):
            spread.values[(*labels, ("quantile", text))] = round(value / unit, 3)
    return [count, spread, mean, longest]


def average_metrics(stem: str, about: str, times: RecentTimes, now_ms: int) -> list[Metric]:
    """What Kafka's sensors show as …-avg and …-max; NaN, as they have it, where nothing was measured lately."""
    lately = times.average_and_max(now_ms) or (math.nan, math.nan)
    return [
        Metric(f"{stem}_avg", GAUGE, f"{about}: the mean of the last minute", round(lately[0], 3)),
        Metric(f"{stem}_max", GAUGE, f"{about}: the most of the last minute", lately[1]),
    ]
