"""What listeners count, under the names of Kafka's socket server metrics."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

from moldau.net.listener_group import ListenerGroup
from moldau.server.metrics.metric import COUNTER, GAUGE, Metric

ADDRESSES_SHOWN_MAX = 100
"""Of the addresses that have a limit, those that come most often."""

PREFIX = "kafka_server_socket_server_metrics"


def connection_metrics(groups: Iterable[ListenerGroup], now_ms: int) -> list[Metric]:
    rate = Metric(f"{PREFIX}_connection_accept_rate", GAUGE, "Connections a second that a listener or an ip opened")
    throttle = Metric(
        f"{PREFIX}_connection_accept_throttle_time",
        GAUGE,
        "Average ms that new connections waited for a rate, if any did",
    )
    ip_throttle = Metric(
        f"{PREFIX}_ip_connection_accept_throttle_time",
        GAUGE,
        "Average ms after which connections were closed because of the rate of their ip, if any were",
    )
    all_together = Metric(f"{PREFIX}_broker_connection_accept_rate", GAUGE, "Connections a second, all listeners")
    open_now = Metric(f"{PREFIX}_connection_count", GAUGE, "Open connections")
    blocked = Metric(
        "moldau_listener_blocked_seconds_total",
        COUNTER,
        "Time in which a listener accepted no connection because of a limit",
    )
    refused = Metric("moldau_listener_refused_total", COUNTER, "Connections that were closed at once")
    throttled = Metric("moldau_listener_throttled_total", COUNTER, "Connections of an ip that came too often")
    excess = Metric(
        "moldau_connections_excess_closed_total", COUNTER, "Silent connections closed for those of other brokers"
    )
    succeeded = Metric(
        f"{PREFIX}_successful_authentication_total", COUNTER, "Connections whose TLS handshake or login succeeded"
    )
    failed = Metric(f"{PREFIX}_failed_authentication_total", COUNTER, "Connections whose TLS handshake or login failed")
    addresses: dict[str, float] = {}
    for group in groups:
        quotas = group.quotas
        if not group.listeners:
            continue
        role = (("role", "controller" if group.listeners[0].is_controller else "broker"),)
        all_together.values[role] = round(quotas.rate.per_second(now_ms), 3)
        excess.values[role] = group.excess_closed_total
        for address, per_second in quotas.address_rates(now_ms).items():
            addresses[address] = addresses.get(address, 0.0) + per_second
        for listener in group.listeners:
            labels = (("listener", listener.name),)
            own = quotas.listeners[listener.name]
            rate.values[labels] = round(own.rate.per_second(now_ms), 3)
            open_now.values[labels] = listener.connection_count
            blocked.values[labels] = listener.blocked_ms_total / 1000
            refused.values[labels] = listener.refused_total
            throttled.values[labels] = listener.throttled_total
            if listener.gate_keeper is not None:
                # Where there are logins it is those that count, and a handshake that failed before one.
                succeeded.values[labels] = listener.gate_keeper.successful_total
                failed.values[labels] = listener.gate_keeper.failed_total + listener.failed_authentication_total
            elif listener.tls is not None:
                succeeded.values[labels] = listener.authenticated_total
                failed.values[labels] = listener.failed_authentication_total
            for metric, times in ((throttle, own.throttle_time), (ip_throttle, own.ip_throttle_time)):
                average_ms = times.average_ms(now_ms)
                if average_ms == average_ms:
                    metric.values[labels] = round(average_ms, 3)
    for address in heapq.nlargest(ADDRESSES_SHOWN_MAX, addresses, key=lambda one: addresses[one]):
        rate.values[("ip", address),] = round(addresses[address], 3)
    return [
        rate,
        throttle,
        ip_throttle,
        all_together,
        open_now,
        blocked,
        refused,
        throttled,
        excess,
        succeeded,
        failed,
    ]
