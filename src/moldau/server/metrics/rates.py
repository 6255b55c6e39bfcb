"""How fast counters grew lately, for the metrics that Kafka shows as a rate.

Nobody counts for it between scrapes: a rate is that since an earlier scrape, ten seconds ago or more.
"""

from __future__ import annotations

from moldau.server.metrics.metric import Labels

SINCE_S_MIN = 10.0


class Rates:
    """Of all counters of a process, by metric and labels."""

    def __init__(self) -> None:
        # When a counter was looked at, its value then, and the rate that came of the two looks before.
        self._looks: dict[tuple[str, Labels], tuple[float, float, float]] = {}

    def rate(self, name: str, labels: Labels, value: float, now_s: float) -> float:
        """0 at the first look."""
        key = (name, labels)
        look = self._looks.get(key)
        if look is None or value < look[1]:
            self._looks[key] = (now_s, value, 0.0)
            return 0.0
        since_s, before, rate = look
        if now_s - since_s < SINCE_S_MIN:
            return rate
        rate = round((value - before) / (now_s - since_s), 3)
        self._looks[key] = (now_s, value, rate)
        return rate
