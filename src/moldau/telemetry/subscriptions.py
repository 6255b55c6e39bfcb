"""Subscriptions to the metrics of clients: which clients each is for, and what all of them together ask of one client.

They are configs of resources of the type CLIENT_METRICS in the metadata log. What a client is told has an id that
changes with the metrics and the interval, so that a push for what was asked before is noticed. Apache Kafka keeps the
same in ClientMetricsManager, and what clients see of it (the id, the order of the metrics) is the same here.
"""

from __future__ import annotations

import logging
import re
from typing import Final, NamedTuple

from moldau.config.client_metrics_keys import CLIENT_METRICS_KEYS, parse_match
from moldau.config.definitions import ConfigError
from moldau.records.crc import crc32c
from moldau.telemetry.hash_order import hash_map_order

log = logging.getLogger("moldau.telemetry")

INTERVAL_MS_DEFAULT: Final = 300_000
ALL_METRICS: Final = "*"


class Subscription:
    """One of them, as its configs have it."""

    def __init__(self, metrics: list[str], interval_ms: int, patterns: dict[str, re.Pattern[str]]) -> None:
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.patterns = patterns

    def matches(self, attributes: dict[str, str]) -> bool:
        """Whether all patterns match the whole of what is known; what is not known matches nothing."""
        for field, pattern in self.patterns.items():
            value = attributes.get(field)
            if value is None or pattern.fullmatch(value) is None:
                return False
        return True


def parse_subscription(configs: dict[str, str]) -> Subscription:
    """ConfigError where a value cannot be used."""
    values = CLIENT_METRICS_KEYS.check(configs)
    metrics, interval_ms, match = values.get("metrics"), values.get("interval.ms"), values.get("match")
    return Subscription(
        metrics if isinstance(metrics, list) else [],
        interval_ms if isinstance(interval_ms, int) else INTERVAL_MS_DEFAULT,
        parse_match(match) if isinstance(match, list) else {},
    )


class Request(NamedTuple):
    """What is asked of one client."""

    metrics: list[str]
    interval_ms: int
    subscription_id: int


class Subscriptions:
    """All of them. `version` grows with every change, so that who has an older one knows."""

    def __init__(self) -> None:
        self.version = 0
        self._by_name: dict[str, Subscription] = {}

    def __len__(self) -> int:
        return len(self._by_name)

    def update(self, name: str, configs: dict[str, str]) -> None:
        """A subscription has these configs now; without any it does not exist."""
        if not configs:
            if self._by_name.pop(name, None) is not None:
                self.version += 1
            return
        try:
            self._by_name[name] = parse_subscription(configs)
        except ConfigError as error:
            # The controller checks configs; one that was stored by another release may know more.
            log.warning("leaving out the client metrics subscription %s: %s", name, error.message)
            self._by_name.pop(name, None)
        self.version += 1

    def request_for(self, instance_id: bytes, attributes: dict[str, str]) -> Request:
        """The metrics of all that match together, at the shortest of their intervals."""
        metrics: dict[str, None] = {}
        interval_ms = INTERVAL_MS_DEFAULT
        for subscription in self._by_name.values():
            if subscription.matches(attributes):
                metrics.update(dict.fromkeys(subscription.metrics))
                interval_ms = min(interval_ms, subscription.interval_ms)
        wanted = [ALL_METRICS] if ALL_METRICS in metrics else hash_map_order(metrics)
        return Request(wanted, interval_ms, subscription_id(wanted, interval_ms, instance_id))


def subscription_id(metrics: list[str], interval_ms: int, instance_id: bytes) -> int:
    """As Kafka's brokers compute it, so that a client that moves between theirs and ours is told nothing new."""
    checksum = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    value = (checksum ^ uuid_hash(instance_id)) & 0xFFFFFFFF
    return value - 0x100000000 if value >= 0x80000000 else value


def uuid_hash(uuid: bytes) -> int:
    """Java's hash of a uuid, unsigned: its four words folded together."""
    words = [int.from_bytes(uuid[at : at + 4], "big") for at in range(0, 16, 4)]
    return words[0] ^ words[1] ^ words[2] ^ words[3]
