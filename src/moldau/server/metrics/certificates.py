"""Until when the certificates of listeners are valid."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.net.listener_group import ListenerGroup
from moldau.server.metrics.metric import GAUGE, Metric


def certificate_metrics(groups: Iterable[ListenerGroup]) -> list[Metric]:
    expiry = Metric(
        "moldau_listener_certificate_expiry_timestamp_seconds",
        GAUGE,
        "When the first certificate of a listener's own chain expires, in seconds since 1970",
    )
    for group in groups:
        for listener in group.listeners:
            if listener.tls is not None and listener.tls.expires_s is not None:
                expiry.values[("listener", listener.name),] = listener.tls.expires_s
    return [expiry] if expiry.values else []
