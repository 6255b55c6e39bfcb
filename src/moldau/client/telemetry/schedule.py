"""When a client asks for its subscription and when it pushes: a pure state machine, told the time with every input.

    ASKS     the subscription is to be asked for when it is due
    PUSHES   metrics are to be pushed when it is due
    OFF      a broker has said that nothing is to be pushed, or nothing that can be

Which error leads where is as in Java's client: 117 and 76 ask again at once, 118 and 89 after an interval, all others
end it. A broker that cannot be reached is tried again after five minutes.
"""

from __future__ import annotations

from typing import NamedTuple

from moldau.protocol import errors
from moldau.records.clocks import NEVER_MS

ASKS, PUSHES, OFF = "asks", "pushes", "off"
INTERVAL_MS_DEFAULT = 300_000
JITTER_MIN, JITTER_SPAN = 0.5, 1.0
ALL_METRICS = "*"

_AT_ONCE = (errors.UNKNOWN_SUBSCRIPTION_ID, errors.UNSUPPORTED_COMPRESSION_TYPE)
_LATER = (errors.TELEMETRY_TOO_LARGE, errors.THROTTLING_QUOTA_EXCEEDED)


class Subscription(NamedTuple):
    """What a broker asks for."""

    instance_id: bytes
    subscription_id: int
    interval_ms: int
    codecs: tuple[int, ...]
    bytes_max: int
    is_delta: bool
    metrics: tuple[str, ...]

    def wants(self, name: str) -> bool:
        return any(prefix == ALL_METRICS or name.startswith(prefix) for prefix in self.metrics)


class Schedule:
    """One client's."""

    def __init__(self) -> None:
        self.state = ASKS
        self.due_ms = 0
        self.subscription: Subscription | None = None
        self.refused_codecs: set[int] = set()

    def codec(self) -> int:
        """The first that the broker takes and has not refused since; none where there is no other."""
        assert self.subscription is not None
        return next((each for each in self.subscription.codecs if each not in self.refused_codecs), 0)

    def on_subscription(self, subscription: Subscription, chance: float, now_ms: int) -> None:
        """chance: a number from 0 to 1 that spreads the first pushes of many clients."""
        self.subscription = subscription
        if subscription.metrics:
            self.state = PUSHES
            self.due_ms = now_ms + round(subscription.interval_ms * (JITTER_MIN + JITTER_SPAN * chance))
        else:
            self.state = ASKS
            self.due_ms = now_ms + subscription.interval_ms

    def on_pushed(self, now_ms: int) -> None:
        assert self.subscription is not None and self.state == PUSHES
        self.due_ms = now_ms + self.subscription.interval_ms

    def on_error(self, code: int, now_ms: int) -> None:
        """A broker's response to either request."""
        if code == errors.UNSUPPORTED_COMPRESSION_TYPE and self.state == PUSHES:
            self.refused_codecs.add(self.codec())
        self.state = ASKS
        if code in _AT_ONCE:
            self.due_ms = now_ms
        elif code in _LATER:
            self.due_ms = now_ms + self._interval_ms()
        else:
            self.state, self.due_ms = OFF, NEVER_MS

    def on_no_response(self, now_ms: int) -> None:
        self.state = ASKS
        self.due_ms = now_ms + INTERVAL_MS_DEFAULT

    def _interval_ms(self) -> int:
        return INTERVAL_MS_DEFAULT if self.subscription is None else self.subscription.interval_ms
