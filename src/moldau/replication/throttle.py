"""Replication throttles (KIP-73): which replicas are throttled, and whether the rate allowed for them is used up.

`leader.replication.throttled.replicas` and its twin for followers name the replicas of a topic, as partition:broker
pairs or * for all; `….throttled.rate` is what a broker moves for them per second. In-sync replicas are never held back.
Kafka: ReplicationQuotaManager.
"""

from __future__ import annotations

from typing import Final

from moldau.quota.rates import SimpleRate

UNLIMITED: Final = 0x7FFFFFFFFFFFFFFF
ALL: Final = "*"


def is_throttled(replicas: str, partition: int, broker_id: int) -> bool:
    """Whether the setting of a topic names this partition on this broker."""
    if not replicas:
        return False
    wanted = f"{partition}:{broker_id}"
    for item in replicas.split(","):
        item = item.strip()
        if item in (ALL, wanted):
            return True
    return False


class ReplicationQuota:
    """Bytes of the last seconds, against a limit per second."""

    def __init__(self, samples: int = 11, sample_ms: int = 1000) -> None:
        self.limit = UNLIMITED
        self._sent = SimpleRate(samples, sample_ms)

    def record(self, size: int, now_ms: int) -> None:
        self._sent.forget_old(now_ms)
        self._sent.record(size, now_ms)

    def rate(self, now_ms: int) -> float:
        return self._sent.per_second(now_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        return self.limit < UNLIMITED and self.rate(now_ms) > self.limit

    def wait_ms(self, now_ms: int) -> int:
        """When to look again whether it is exceeded: not later than one sample from now."""
        if not self.is_exceeded(now_ms):
            return 0
        sent = self._sent
        if self.limit <= 0:
            return sent.sample_ms
        enough_ms = sent.total * 1000 // self.limit + 1
        return min(max(enough_ms - sent.elapsed_ms(now_ms), 1), sent.sample_ms)
