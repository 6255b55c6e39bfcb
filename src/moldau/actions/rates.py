"""Records per second, from how the ends of partitions grow between two looks at them.

Looks are taken while somebody watches, and the rarer the more partitions there are: a cluster of ten thousand is asked
about a thousand partitions a second, not more.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping

from moldau.client.errors import ClientError
from moldau.client.results import TopicPartition

Ends = Mapping[TopicPartition, int]

INTERVAL_S = 2.0
PARTITIONS_PER_SECOND = 1_000
# Without anybody who looks for so long, nobody asks.
WATCHED_S = 30.0
POINTS_MAX = 150


class Rates:
    """The last few minutes of the whole cluster, and of each topic the rate between the last two looks."""

    def __init__(self, load: Callable[[], Awaitable[Ends]]) -> None:
        self._load = load
        self._ends: Ends = {}
        self._at = 0.0
        self._watched_until = 0.0
        self._task: asyncio.Task[None] | None = None
        # Milliseconds since the epoch, records per second.
        self.points: deque[tuple[int, float]] = deque(maxlen=POINTS_MAX)
        self.by_topic: dict[str, float] = {}

    def watch(self) -> None:
        """Somebody looks: keeps looking for a while."""
        self._watched_until = time.monotonic() + WATCHED_S
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        self._watched_until = 0.0
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        try:
            while time.monotonic() < self._watched_until:
                try:
                    ends = await self._load()
                except ClientError:
                    # The page says that nobody responds; here the next look counts.
                    self._ends = {}
                else:
                    self.add(ends, time.monotonic(), time.time_ns() // 1_000_000)
                await asyncio.sleep(max(INTERVAL_S, len(self._ends) / PARTITIONS_PER_SECOND))
        finally:
            self._task = None
            self._ends = {}
            self.by_topic = {}

    def add(self, ends: Ends, now_s: float, now_ms: int) -> None:
        """Takes a look at all ends; partitions that were not there at the last one do not count yet."""
        before, passed = self._ends, now_s - self._at
        self._ends, self._at = ends, now_s
        if not before or passed <= 0:
            return
        grown: dict[str, int] = {}
        for partition, end in ends.items():
            last = before.get(partition)
            if last is not None:
                # A log that was truncated does not make up for what others have got.
                grown[partition.topic] = grown.get(partition.topic, 0) + max(0, end - last)
        self.by_topic = {topic: count / passed for topic, count in grown.items()}
        self.points.append((now_ms, sum(grown.values()) / passed))
