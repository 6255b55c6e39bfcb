"""Telemetry of clients (KIP-714): what the broker counts about it, and the series that clients pushed."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from moldau.node.client_telemetry import ClientTelemetry
from moldau.server.metrics.hosted import BLOCK_SIZE
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric, label_text
from moldau.telemetry.series import Family

KAFKA_PREFIX = "kafka_server_client_metrics"
PREFIX = "moldau_client_telemetry"
PUSHED_PREFIX = "moldau_client"
"""Before what clients name: no name of the broker's own begins so, except those above, which win."""


class ExportCounts:
    """What is counted of passing pushes on to somebody else."""

    def __init__(self) -> None:
        self.sent_total = 0
        self.failed_total = 0
        self.dropped_total = 0


def telemetry_metrics(telemetry: ClientTelemetry, exported: ExportCounts | None) -> Iterator[Metric | None]:
    if not telemetry.is_on:
        return
    yield from counts(telemetry, exported)
    # A copy: pushes go on while a scrape has its turns.
    for name, family in list(telemetry.series.families.items()):
        if not f"{PUSHED_PREFIX}_{name}".startswith(f"{PREFIX}_"):
            yield from family_metric(name, family)


def counts(telemetry: ClientTelemetry, exported: ExportCounts | None) -> list[Metric]:
    instances, series = telemetry.instances, telemetry.series
    found = [
        Metric(f"{KAFKA_PREFIX}_instance_count", GAUGE, "Client instances that asked or pushed lately", len(instances)),
        Metric(
            f"{KAFKA_PREFIX}_unknown_subscription_request_count",
            COUNTER,
            "Pushes for a subscription that is not the client's",
            instances.unknown_subscriptions_total,
        ),
        Metric(f"{PREFIX}_throttled_total", COUNTER, "Requests that came too early", instances.throttled_total),
        Metric(f"{PREFIX}_pushes_total", COUNTER, "Pushes that were taken", telemetry.pushes_total),
        Metric(f"{PREFIX}_bytes_total", COUNTER, "Bytes of them, as they came", telemetry.bytes_total),
        Metric(f"{PREFIX}_failed_total", COUNTER, "Pushes that could not be unpacked or read", telemetry.failed_total),
        Metric(f"{PREFIX}_dropped_total", COUNTER, "Pushes not read for lack of room", telemetry.dropped_total),
        Metric(f"{PREFIX}_series", GAUGE, "Series of clients on this page", series.count),
        Metric(f"{PREFIX}_left_out_total", COUNTER, "Values that have no series here", series.left_out_total),
    ]
    if exported is not None:
        result = Metric(f"{PREFIX}_exported_total", COUNTER, "Pushes passed on as OTLP, by what became of them")
        result.values[(("result", "sent"),)] = exported.sent_total
        result.values[(("result", "failed"),)] = exported.failed_total
        result.values[(("result", "dropped"),)] = exported.dropped_total
        found.append(result)
    return found


def family_metric(name: str, family: Family) -> Iterator[Metric | None]:
    metric = Metric(
        f"{PUSHED_PREFIX}_{name}",
        COUNTER if family.is_counter else GAUGE,
        "Pushed by clients, in their words (KIP-714)",
    )
    rows = [(labels, value) for labels, value in family.values.items() if isfinite(value)]
    for start in range(0, len(rows), BLOCK_SIZE):
        block = rows[start : start + BLOCK_SIZE]
        metric.add_block([label_text(labels) for labels, _ in block], [value for _, value in block])
        yield None
    yield metric
