"""How long to wait before the next try: doubling, with some chance in it so that clients do not move in step."""

from __future__ import annotations

from collections.abc import Callable


class Backoff:
    """KIP-580: from first_ms, doubled with each failure up to highest_ms, each time 20 % more or less."""

    def __init__(self, first_ms: int, highest_ms: int, chance: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._highest_ms = max(first_ms, highest_ms)
        self._chance = chance

    def delay_ms(self, failures: int) -> int:
        """The wait after so many failures in a row, from 1 on."""
        delay = min(self._first_ms * (1 << min(max(failures - 1, 0), 30)), self._highest_ms)
        return int(delay * (0.8 + 0.4 * self._chance()))
