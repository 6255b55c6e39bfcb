"""What listeners with logins count, under the names of Kafka's socket server metrics."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.net.listener_group import ListenerGroup
from moldau.server.metrics.connections import PREFIX
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric


def login_metrics(groups: Iterable[ListenerGroup]) -> list[Metric]:
    renewed = Metric(f"{PREFIX}_successful_reauthentication_total", COUNTER, "Logins again on the same connection")
    not_renewed = Metric(f"{PREFIX}_failed_reauthentication_total", COUNTER, "Those that were refused")
    expired = Metric(
        f"{PREFIX}_expired_connections_killed_count", COUNTER, "Connections closed because their session was over"
    )
    unauthenticated = Metric(
        "moldau_listener_unauthenticated_connections", GAUGE, "Open connections that have not authenticated yet"
    )
    for group in groups:
        for listener in group.listeners:
            keeper = listener.gate_keeper
            if keeper is None:
                continue
            labels = (("listener", listener.name),)
            renewed.values[labels] = keeper.renewed_total
            not_renewed.values[labels] = keeper.failed_renewal_total
            expired.values[labels] = keeper.expired_total
            unauthenticated.values[labels] = listener.unauthenticated_count
    return [metric for metric in (renewed, not_renewed, expired, unauthenticated) if metric.values]
