"""Requests by API: how many, with which errors, and how long each part of their way took."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from moldau.metrics.recent_values import RecentValues, quantiles_of
from moldau.metrics.request_stats import RequestStats
from moldau.protocol import errors
from moldau.server.metrics.metric import COUNTER, GAUGE, QUANTILE_TEXTS, QUANTILES, Labels, Metric, meter

PREFIX = "kafka_network_requestmetrics"
EVENTS = "kafka_controller_controllereventmanager"
MS = 1000.0
"""Times are kept in microseconds and shown in milliseconds, with their fractions."""

TIMES: tuple[tuple[str, str, Callable[[RequestStats], RecentValues], float], ...] = (
    ("requestbytes", "Size of requests in bytes", lambda stats: stats.request_bytes, 1.0),
    ("requestqueuetimems", "Time until a request was begun with, in ms", lambda stats: stats.queue, MS),
    ("localtimems", "Time that this node worked on a request, in ms", lambda stats: stats.local, MS),
    ("remotetimems", "Time that a request waited for others, for records or for time, in ms", lambda s: s.remote, MS),
    ("responsequeuetimems", "Time until a response was the next to leave, in ms", lambda s: s.response_queue, MS),
    ("responsesendtimems", "Time that sending took, in ms", lambda stats: stats.response_send, MS),
    ("totaltimems", "Time from the last byte of a request to the last of its response, in ms", lambda s: s.total, MS),
    ("throttletimems", "Throttle time of a response, in ms", lambda stats: stats.throttle, MS),
)


def request_metrics(found: Iterable[RequestStats], now_s: float) -> list[Metric]:
    """An API that is served to clients and to nodes of the quorum is shown once, with what both asked."""
    by_name: dict[str, list[RequestStats]] = {}
    for stats in found:
        if stats.requests_total:
            by_name.setdefault(stats.name, []).append(stats)
    return [*counts(by_name), *times(by_name, now_s)]


def event_metrics(found: Iterable[RequestStats], now_s: float) -> list[Metric]:
    """What Kafka's controller has a queue of events for comes here as requests to the controller's listener."""
    asked = [stats for stats in found if stats.of_controller and stats.requests_total]
    metrics = []
    for stem, about, values in (
        (
            "eventqueuetimems",
            "Time until a request to the controller was begun with, in ms",
            [stats.queue for stats in asked],
        ),
        (
            "eventqueueprocessingtimems",
            "Time that the controller worked on a request, in ms",
            [stats.local for stats in asked],
        ),
    ):
        count = Metric(f"{EVENTS}_{stem}_count", COUNTER, f"{about}: of how many")
        count.values[()] = sum(stats.requests_total for stats in asked)
        spread = Metric(f"{EVENTS}_{stem}", GAUGE, f"{about}: quantiles of the last minutes")
        together: dict[int, int] = {}
        for recent in values:
            recent.add_to(together, now_s)
        for text, value in zip(QUANTILE_TEXTS, quantiles_of(together, list(QUANTILES)), strict=False):
            spread.values[(("quantile", text),)] = round(value / MS, 3)
        metrics += [count, spread]
    return metrics


def counts(by_name: dict[str, list[RequestStats]]) -> list[Metric]:
    requests = meter(f"{PREFIX}_requests", "Requests, by API and version")
    failed = meter(f"{PREFIX}_errors", "Error codes in responses, one for each item; NONE counts what succeeded")
    for name, several in by_name.items():
        for stats in several:
            for version, count in enumerate(stats.by_version):
                if count:
                    add(requests, (("request", name), ("version", str(version))), count)
            if stats.successes:
                add(failed, (("request", name), ("error", "NONE")), stats.successes)
            for code, count in stats.errors.items():
                add(failed, (("request", name), ("error", errors.error_name(code))), count)
    return [requests, failed]


def add(metric: Metric, labels: Labels, count: float) -> None:
    metric.values[labels] = metric.values.get(labels, 0) + count


def times(by_name: dict[str, list[RequestStats]], now_s: float) -> list[Metric]:
    metrics = []
    for stem, about, values_of, unit in TIMES:
        count = Metric(f"{PREFIX}_{stem}_count", COUNTER, f"{about}: of how many requests")
        spread = Metric(f"{PREFIX}_{stem}", GAUGE, f"{about}: quantiles of the last minutes")
        mean = Metric(f"{PREFIX}_{stem}_mean", GAUGE, f"{about}: the mean since the start")
        longest = Metric(f"{PREFIX}_{stem}_max", GAUGE, f"{about}: the most since the start")
        for name, several in by_name.items():
            # Where both kinds of listener serve it, the busier one is the one to look at.
            stats = max(several, key=lambda one: one.requests_total)
            values = values_of(stats)
            labels = (("request", name),)
            count.values[labels] = sum(one.requests_total for one in several)
            if values.count:
                mean.values[labels] = round(values.sum / values.count / unit, 3)
                longest.values[labels] = round(values.max / unit, 3)
            for text, value in zip(QUANTILE_TEXTS, values.quantiles(list(QUANTILES), now_s), strict=False):
                spread.values[(*labels, ("quantile", text))] = round(value / unit, 3)
        metrics += [count, spread, mean, longest]
    return metrics
