"""Replication throttles (KIP-73): which replicas are throttled, and whether the rate allowed for them is used up.

`leader.replication.throttled.replicas` and its twin for followers name the replicas of a topic, as partition:broker
pairs or * for all; `….throttled.rate` is what a broker moves for them per second. In-sync replicas are never held back.
Kafka: ReplicationQuotaManager.
"""

from __future__ import annotations

from typing import Final

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
    """Bytes in the samples of the last seconds, against a limit per second."""

    def __init__(self, samples: int = 11, sample_ms: int = 1000) -> None:
        self.limit = UNLIMITED
        self._sample_ms = sample_ms
        self._samples_max = samples
        self._starts: list[int] = []
        self._bytes: list[int] = []

    def record(self, size: int, now_ms: int) -> None:
        if not self._starts or now_ms - self._starts[-1] >= self._sample_ms:
            self._starts.append(now_ms)
            self._bytes.append(0)
        self._bytes[-1] += size
        self._drop_old(now_ms)

    def _drop_old(self, now_ms: int) -> None:
        oldest = now_ms - self._samples_max * self._sample_ms
        while self._starts and self._starts[0] <= oldest:
            del self._starts[0]
            del self._bytes[0]

    def rate(self, now_ms: int) -> float:
        """Bytes per second since the oldest sample began, one sample at least (Kafka: SimpleRate)."""
        self._drop_old(now_ms)
        if not self._starts:
            return 0.0
        return sum(self._bytes) * 1000 / max(now_ms - self._starts[0], self._sample_ms)

    def is_exceeded(self, now_ms: int) -> bool:
        return self.limit < UNLIMITED and self.rate(now_ms) > self.limit

    def wait_ms(self, now_ms: int) -> int:
        """When to look again whether it is exceeded: not later than one sample from now."""
        if not self.is_exceeded(now_ms):
            return 0
        if self.limit <= 0:
            return self._sample_ms
        enough_ms = sum(self._bytes) * 1000 // self.limit + 1
        return min(max(self._starts[0] + enough_ms - now_ms, 1), self._sample_ms)
