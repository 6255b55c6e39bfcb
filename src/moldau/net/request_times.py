"""Takes the times of requests on their way for `metrics.request_stats`, with a clock finer than milliseconds."""

from __future__ import annotations

import time
from collections.abc import Callable

from moldau.metrics.request_stats import RequestStats, RequestTimes


class RequestTimer:
    """Begins to time requests, all with one clock."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock

    def begin(self, stats: RequestStats, size: int) -> RequestTimes:
        return MeasuredTimes(stats, size, self._clock)


class MeasuredTimes(RequestTimes):
    """One request on its way, from its last byte received to the last byte of its response sent."""

    def __init__(self, stats: RequestStats, size: int, clock: Callable[[], float]) -> None:
        super().__init__()
        self.stats = stats
        self.size = size
        self._clock = clock
        self.received_s = 0.0
        self._began_s = self._handled_s = self._completed_s = self._queued_s = clock()
        stats.begin(self._began_s)

    def handled(self, received_s: float) -> None:
        self.received_s = received_s
        self._handled_s = self._clock()

    def completed(self) -> None:
        self._completed_s = self._clock()

    def queued(self) -> None:
        self._queued_s = self._clock()

    def sent(self, throttle_ms: int) -> None:
        now_s = self._clock()
        # Completed inside its handler: nothing was waited for.
        handled_s = min(self._handled_s, self._completed_s) if self._handled_s > self._began_s else self._completed_s
        self._record(self.stats, handled_s, now_s, throttle_ms)
        if self.also is not None:
            self._record(self.also, handled_s, now_s, throttle_ms)

    def _record(self, stats: RequestStats, handled_s: float, now_s: float, throttle_ms: int) -> None:
        received_s = self.received_s if 0.0 < self.received_s < self._began_s else self._began_s
        stats.request_bytes.record(self.size, now_s)
        stats.queue.record(microseconds(self._began_s - received_s), now_s)
        stats.local.record(microseconds(handled_s - self._began_s), now_s)
        stats.remote.record(microseconds(self._completed_s - handled_s), now_s)
        stats.response_queue.record(microseconds(self._queued_s - self._completed_s), now_s)
        stats.response_send.record(microseconds(now_s - self._queued_s), now_s)
        stats.total.record(microseconds(now_s - received_s), now_s)
        stats.throttle.record(throttle_ms * 1000, now_s)


def microseconds(seconds: float) -> int:
    return int(seconds * 1e6) if seconds > 0.0 else 0
