"""Fills what metrics() gives: rates, totals, averages and maxima of tallies, under Kafka's suffixes."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.metrics.names import CLIENT_ID, MetricName, Metrics, MetricValue
from moldau.client.metrics.window import Summary, Tally, Window, summarize

# Some of Kafka's rates are per hour.
HOUR_S = 3600.0


class Table:
    """The metrics of one client at one moment, being gathered."""

    def __init__(self, window: Window, client_id: str, now_ms: int) -> None:
        window.tick(now_ms)
        self.now_ms = now_ms
        self.client_id = client_id
        self._seconds = window.seconds(now_ms)
        self._values: dict[MetricName, MetricValue] = {}

    def rows(self, group: str, **tags: object) -> Rows:
        """Where the metrics of a group with these tags go, `_` for `-` in them."""
        pairs = [(CLIENT_ID, self.client_id), *((tag.replace("_", "-"), str(value)) for tag, value in tags.items())]
        return Rows(group, tuple(pairs), self._seconds, self._values)

    def finish(self) -> Metrics:
        count = self.rows("kafka-metrics-count")
        count.put("count", float(len(self._values) + 1))
        return Metrics(self._values)


class Rows:
    """Metrics of one group that have the same tags."""

    def __init__(
        self, group: str, tags: tuple[tuple[str, str], ...], seconds: float, values: dict[MetricName, MetricValue]
    ) -> None:
        self._group = group
        self._tags = tags
        self._seconds = seconds
        self._values = values

    def put(self, name: str, value: MetricValue) -> None:
        self._values[MetricName(name, self._group, self._tags)] = value

    def counts(self, name: str, *tallies: Tally) -> None:
        """How often: -rate and -total."""
        self.count_of(name, summarize(tallies))

    def count_of(self, name: str, summary: Summary) -> None:
        self.put(f"{name}-rate", float(summary.count) / self._seconds)
        self.put(f"{name}-total", float(summary.total_count))

    def amounts(self, name: str, *tallies: Tally) -> None:
        """How much: -rate and -total."""
        self.amount_of(name, summarize(tallies))

    def amount_of(self, name: str, summary: Summary) -> None:
        self.put(f"{name}-rate", float(summary.amount) / self._seconds)
        self.put(f"{name}-total", float(summary.total_amount))

    def per_hour(self, name: str, tally: Tally) -> None:
        """How often: -rate-per-hour and -total."""
        summary = summarize([tally])
        self.put(f"{name}-rate-per-hour", float(summary.count) / self._seconds * HOUR_S)
        self.put(f"{name}-total", float(summary.total_count))

    def averages(self, name: str, *tallies: Tally) -> Summary:
        """-avg and -max."""
        summary = summarize(tallies)
        self.put(f"{name}-avg", summary.average)
        self.put(f"{name}-max", summary.largest)
        return summary

    def share_of_time(self, name: str, tallies: Iterable[Tally]) -> None:
        """Nanoseconds as a part of the time that passed."""
        self.put(name, float(summarize(tallies).amount) / (self._seconds * 1e9))
