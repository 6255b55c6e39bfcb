"""Tokens that come back at a rate and are taken in advance: the quota of changes on the controller (KIP-599).

One operation may take more than is there; the next has to wait until that is paid off.
"""

from __future__ import annotations


class TokenBucket:
    """Full at first, with what comes back in the time of all samples together."""

    def __init__(self, rate: float, count: int, sample_ms: int, now_ms: int) -> None:
        self.rate = rate
        self._full_ms = count * sample_ms
        self._tokens = self.burst
        self._filled_ms = now_ms

    @property
    def burst(self) -> float:
        return self.rate * self._full_ms / 1000

    def change_rate(self, rate: float, now_ms: int) -> None:
        """What is there stays, as far as the new size holds it."""
        self.tokens(now_ms)
        self.rate = rate
        self._tokens = min(self._tokens, self.burst)

    def tokens(self, now_ms: int) -> float:
        """What is there now; less than 0 when more was taken than there was."""
        if now_ms > self._filled_ms:
            self._tokens = min(self.burst, self._tokens + self.rate * (now_ms - self._filled_ms) / 1000)
            self._filled_ms = now_ms
        return self._tokens

    def take(self, count: float, now_ms: int) -> None:
        self._tokens = min(self.burst, self.tokens(now_ms) - count)

    def is_exhausted(self, now_ms: int) -> bool:
        """What is paid back in less than half a millisecond is not owed: it would be an error without a time to wait,
        and fractions that do not add up to nothing would make one."""
        return self.wait_ms(now_ms) > 0

    def wait_ms(self, now_ms: int) -> int:
        """When nothing is owed any more."""
        tokens = self.tokens(now_ms)
        return int(-tokens / self.rate * 1000 + 0.5) if tokens < 0 else 0
