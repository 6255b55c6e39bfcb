"""Since when brokers are gone, as far as the console has seen it."""

from __future__ import annotations

from collections.abc import Iterable


class BrokerAbsences:
    """Remembers brokers that were there once and when they were first missed."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._gone: dict[int, int | None] = {}

    def note(self, active: Iterable[int], now_ms: int) -> None:
        """Who is there now. Who was there before and is not any more is gone from this moment on."""
        there = set(active)
        for broker_id in there:
            self._gone.pop(broker_id, None)
        for broker_id in self._seen - there:
            self._gone.setdefault(broker_id, now_ms)
        self._seen |= there

    def since(self, broker_id: int) -> int | None:
        """The time in milliseconds; None where it was never seen to be there."""
        return self._gone.get(broker_id)

    @property
    def gone(self) -> list[int]:
        """Who was there once and is not now, fenced or forgotten."""
        return sorted(self._gone)
