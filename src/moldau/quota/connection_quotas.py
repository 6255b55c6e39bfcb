"""Decides about new connections: how many there may be, and how many may come in a second.

All listeners that share limits share one of these; it knows neither sockets nor clocks. For each connection, in order:

1. `arrive`: it is counted in the rates of the broker and of its listener, and waits as long as the larger of the two
   says. Its listener takes no other meanwhile.
2. `has_slot`: it waits until there are fewer connections than there may be, of its listener and of all.
3. `admit`: where its address has a rate of its own and is above it, it is taken out of all rates again, and is to be
   left unread and closed after a delay. Else it is counted, unless its address has too many connections already.
4. `release`, when it ends.

The protected listener (that of the brokers, if there are others) is bound by its own limits alone, not by those of the
broker. It may bring the number above the limit: `excess` says how many connections of others have to go. Kafka:
ConnectionQuotas.
"""

from __future__ import annotations

from collections import Counter
from ipaddress import IPv6Address, ip_address
from typing import Final

from moldau.quota.rates import Samples, WindowedRate

UNLIMITED: Final = 2147483647
ADDRESSES_MAX: Final = 65536
"""So many addresses have a rate at a time; the one that has it longest is forgotten first."""

ADMITTED: Final = "admitted"
THROTTLED: Final = "throttled"
TOO_MANY: Final = "too many"

_THROTTLE_SAMPLES: Final = 2
_THROTTLE_SAMPLE_MS: Final = 30_000


def address_key(text: str) -> str | None:
    """An address in the one way in which addresses are compared here; None for what is not one."""
    try:
        address = ip_address(text.strip().strip("[]").partition("%")[0])
    except ValueError:
        return None
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address)


class ThrottleTime:
    """The average of the delays of the last minute that were longer than nothing."""

    def __init__(self) -> None:
        self._sum = Samples(_THROTTLE_SAMPLES, _THROTTLE_SAMPLE_MS)
        self._count = Samples(_THROTTLE_SAMPLES, _THROTTLE_SAMPLE_MS)

    def record(self, delay_ms: int, now_ms: int) -> None:
        if delay_ms > 0:
            self._sum.record(delay_ms, now_ms)
            self._count.record(1, now_ms)

    def average_ms(self, now_ms: int) -> float:
        """NaN if there was none."""
        self._sum.forget_old(now_ms)
        self._count.forget_old(now_ms)
        return self._sum.total / self._count.total if self._count.total > 0 else float("nan")


class ListenerQuota:
    """What one listener may take, and has."""

    def __init__(self, name: str, rate: WindowedRate) -> None:
        self.name = name
        self.connections_max = UNLIMITED
        self.creation_rate_max = UNLIMITED
        self.count = 0
        self.rate = rate
        self.throttle_time = ThrottleTime()
        self.ip_throttle_time = ThrottleTime()


class Admission:
    """ADMITTED; THROTTLED for so long; or TOO_MANY, where `allowed` is how many the address may have."""

    def __init__(self, verdict: str, delay_ms: int = 0, allowed: int = UNLIMITED) -> None:
        self.verdict = verdict
        self.delay_ms = delay_ms
        self.allowed = allowed


_ADMITTED: Final = Admission(ADMITTED)


class ConnectionQuotas:
    """See the module. Addresses are what `address_key` makes of them."""

    def __init__(self, inter_broker_listener: str = "", window_count: int = 11, window_ms: int = 1000) -> None:
        self._inter_broker_listener = inter_broker_listener
        self._window_count = window_count
        self._window_ms = window_ms
        self.connections_max = UNLIMITED
        self.creation_rate_max = UNLIMITED
        self.per_address_max = UNLIMITED
        self.per_address_overrides: dict[str, int] = {}
        self.ip_rate_default: float | None = None
        self.ip_rates: dict[str, float] = {}
        self.listeners: dict[str, ListenerQuota] = {}
        self.rate = self._new_rate()
        self.count = 0
        self._per_address: Counter[str] = Counter()
        self._address_rates: dict[str, WindowedRate] = {}

    def _new_rate(self) -> WindowedRate:
        return WindowedRate(self._window_count, self._window_ms)

    # Limits

    def add_listener(self, name: str) -> ListenerQuota:
        assert name not in self.listeners, name
        listener = self.listeners[name] = ListenerQuota(name, self._new_rate())
        return listener

    def is_protected(self, listener: str) -> bool:
        return listener == self._inter_broker_listener and len(self.listeners) > 1

    def limit_addresses(self, rates: dict[str, float], default: float | None) -> None:
        """Connections a second by address, and for those that are not named. What came lately stays counted, also
        while there is no limit in between."""
        self.ip_rates = rates
        self.ip_rate_default = default

    # One connection

    def arrive(self, listener: str, now_ms: int) -> int:
        """How long the connection waits for its rates' sake. It is counted in them whatever comes of it."""
        own = self.listeners[listener]
        delay_ms = 0
        if not self.is_protected(listener):
            delay_ms = self._record(self.rate, self.creation_rate_max, now_ms)
        delay_ms = max(delay_ms, self._record(own.rate, own.creation_rate_max, now_ms))
        own.throttle_time.record(delay_ms, now_ms)
        return delay_ms

    def has_slot(self, listener: str) -> bool:
        own = self.listeners[listener]
        if own.count >= own.connections_max:
            return False
        return self.count < self.connections_max or self.is_protected(listener)

    def admit(self, listener: str, address: str, now_ms: int) -> Admission:
        """Counts the connection if it may stay; whoever is told ADMITTED has to `release` it."""
        delay_ms = self._record_address(address, now_ms)
        own = self.listeners[listener]
        if delay_ms > 0:
            self._address_rates[address].record(-1, now_ms)
            own.rate.record(-1, now_ms)
            if not self.is_protected(listener):
                self.rate.record(-1, now_ms)
            own.ip_throttle_time.record(delay_ms, now_ms)
            return Admission(THROTTLED, delay_ms)
        allowed = self.per_address_overrides.get(address, self.per_address_max)
        if self._per_address[address] >= allowed:
            if not self._per_address[address]:
                del self._per_address[address]
            return Admission(TOO_MANY, 0, allowed)
        self._per_address[address] += 1
        self.count += 1
        own.count += 1
        return _ADMITTED

    def release(self, listener: str, address: str) -> None:
        own = self.listeners[listener]
        assert own.count > 0 and self.count > 0 and self._per_address[address] > 0, f"{address} was not admitted"
        own.count -= 1
        self.count -= 1
        self._per_address[address] -= 1
        if not self._per_address[address]:
            del self._per_address[address]

    def excess(self) -> int:
        """So many connections of listeners that are not protected have to go, those first that were silent longest."""
        return max(0, self.count - self.connections_max)

    # Rates

    def _record(self, rate: WindowedRate, bound: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        if bound <= 0:
            return self._window_ms
        return min(rate.excess_ms(bound, now_ms), self._window_ms)

    def _record_address(self, address: str, now_ms: int) -> int:
        bound = self.ip_rates.get(address, self.ip_rate_default)
        if bound is None:
            return 0
        rate = self._address_rates.get(address)
        if rate is None:
            self._forget_addresses(now_ms)
            rate = self._address_rates[address] = self._new_rate()
        return self._record(rate, bound, now_ms)

    def _forget_addresses(self, now_ms: int) -> None:
        """A few at a time, those that are there longest: an address of which nothing came lately is as good as new."""
        rates = self._address_rates
        for _ in range(min(2, len(rates))):
            address = next(iter(rates))
            rate = rates.pop(address)
            rate.forget_old(now_ms)
            if rate.last_ms() >= 0 and len(rates) < ADDRESSES_MAX - 1:
                rates[address] = rate  # to the end: the next ones are looked at the next time

    def address_rates(self, now_ms: int) -> dict[str, float]:
        """Connections a second of the addresses that have a limit and came lately."""
        found: dict[str, float] = {}
        for address, rate in self._address_rates.items():
            if address in self.ip_rates or self.ip_rate_default is not None:
                found[address] = rate.per_second(now_ms)
        return found
