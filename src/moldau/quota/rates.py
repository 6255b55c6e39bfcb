"""How much of something came lately: samples of a few seconds, and the rates that Kafka makes of them.

A sample begins when something is recorded, not by the clock: an idle second makes none. Kafka: SampledStat, Rate,
SimpleRate. Values are whole numbers (bytes, nanoseconds, connections) and may be negative, to take back what was
recorded and then not done.
"""

from __future__ import annotations


class Samples:
    """The sum of what was recorded in the last `count` samples of `sample_ms` each."""

    def __init__(self, count: int, sample_ms: int) -> None:
        self.count = count
        self.sample_ms = sample_ms
        self.total = 0
        # The samples that are complete, oldest first: when each began, when it was last added to, its sum. The newest
        # one, if there is any, is kept apart, since every request adds to it.
        self._starts: list[int] = []
        self._lasts: list[int] = []
        self._sums: list[int] = []
        self._is_empty = True
        self._start = self._last = self._sum = 0

    def record(self, value: int, now_ms: int) -> None:
        self.total += value
        if now_ms - self._start < self.sample_ms and not self._is_empty:
            self._sum += value
        else:
            self._begin_sample(value, now_ms)
        self._last = now_ms

    def _begin_sample(self, value: int, now_ms: int) -> None:
        if not self._is_empty:
            self._starts.append(self._start)
            self._lasts.append(self._last)
            self._sums.append(self._sum)
        self._is_empty = False
        self._start, self._sum = now_ms, value

    def forget_old(self, now_ms: int) -> None:
        """Drops the samples in which nothing was recorded since so many sample times."""
        oldest_ms = now_ms - self.count * self.sample_ms
        lasts = self._lasts
        while lasts and lasts[0] <= oldest_ms:
            self.total -= self._sums[0]
            del lasts[0]
            del self._starts[0]
            del self._sums[0]
        if not lasts and not self._is_empty and self._last <= oldest_ms:
            self.total -= self._sum
            self._is_empty = True
        assert lasts or not self._is_empty or self.total == 0, f"{self.total} is left of no samples"

    def elapsed_ms(self, now_ms: int) -> int:
        """How long ago the oldest sample began; it may be more than all samples together should last."""
        if self._is_empty:
            return 0
        return now_ms - (self._starts[0] if self._starts else self._start)

    def last_ms(self) -> int:
        """When something was last recorded; -1 if nothing is left of it."""
        return -1 if self._is_empty else self._last


class WindowedRate(Samples):
    """The rate of clients' quotas: a beginner is measured over all whole windows but one, so a burst may come first."""

    def window_ms(self, now_ms: int) -> int:
        """What the sum is divided by, once old samples are dropped."""
        elapsed = self.elapsed_ms(now_ms)
        missing = self.count - 1 - elapsed // self.sample_ms
        if missing > 0:
            elapsed += missing * self.sample_ms
        return max(elapsed, 1)

    def per_second(self, now_ms: int) -> float:
        self.forget_old(now_ms)
        return self.total * 1000 / self.window_ms(now_ms)

    def excess_ms(self, bound: float, now_ms: int) -> int:
        """How long nothing may come until the rate is at the bound again; 0 if it is not above. Kafka: throttleTime."""
        self.forget_old(now_ms)
        window = self.window_ms(now_ms)
        rate = self.total * 1000 / window
        if rate <= bound:
            return 0
        return int((rate - bound) / bound * window + 0.5)


class SimpleRate(Samples):
    """The rate of replication throttles: since the oldest sample began, one sample at least."""

    def per_second(self, now_ms: int) -> float:
        self.forget_old(now_ms)
        return self.total * 1000 / max(self.elapsed_ms(now_ms), self.sample_ms)
