"""Brokers that cannot be reached: since when, whose address that is, and what to say of it.

Whoever waits for records waits for ever, so that an absence of some seconds is worth a line in the log, and one more
now and then. An address that nobody gave to the client came from a broker; the reader of the error would otherwise look
for it in vain. Both are done where a call fails, so that calls that succeed cost nothing.
"""

from __future__ import annotations

import logging

from moldau.client.errors import AdvertisedAddressError, ClientError, NetworkError

logger = logging.getLogger("moldau.client")

Address = tuple[str, int]

# How the transport begins to say that a connection could not be made, rather than that one was lost.
NOT_RESOLVED = "The host name "
CANNOT_CONNECT = ("No connection to ", NOT_RESOLVED)

# A broker that restarts is away for a moment.
TOLD_AFTER_MS = 2_000
TOLD_EVERY_MS = 30_000


class Absence:
    """Since when somebody cannot be reached, and when that was told."""

    def __init__(self) -> None:
        self.since_ms = -1
        self.failed_ms = -1
        self.told_ms = -1

    def should_log(self, now_ms: int) -> bool:
        """Another failure: whether it is time to tell of it."""
        if self.since_ms < 0:
            self.since_ms = now_ms
        self.failed_ms = now_ms
        if self.away_ms < TOLD_AFTER_MS or (self.told_ms >= 0 and now_ms - self.told_ms < TOLD_EVERY_MS):
            return False
        self.told_ms = now_ms
        return True

    @property
    def away_ms(self) -> int:
        return self.failed_ms - self.since_ms

    def end(self) -> bool:
        """Reached again: whether it was told before that it was not."""
        told = self.told_ms >= 0
        self.since_ms = self.failed_ms = self.told_ms = -1
        return told


class Unreachable:
    """What one client notices of brokers that it cannot reach."""

    def __init__(self, bootstrap: list[Address], patient: bool) -> None:
        """patient: whether names that the cluster told us and that stand for nothing are tried until the timeout."""
        self._bootstrap = set(bootstrap)
        self._patient = patient
        self._everybody = Absence()
        self._brokers: dict[Address, Absence] = {}
        # Addresses that were right at least once.
        self._reached: set[Address] = set()

    def is_known_good(self, address: Address) -> bool:
        """The address was reached and has given no trouble since, as is the rule."""
        return address in self._reached and address not in self._brokers

    def on_connected(self, address: Address) -> None:
        self._reached.add(address)
        self._brokers.pop(address, None)

    def on_nobody(self, error: ClientError, now_ms: int) -> None:
        """None of the brokers responded."""
        absence = self._everybody
        if absence.should_log(now_ms):
            logger.warning("No broker can be reached for %d s, trying again: %s", absence.away_ms // 1000, error)

    def on_response(self) -> None:
        if self._everybody.since_ms >= 0 and self._everybody.end():
            logger.warning("Brokers can be reached again.")

    def on_failure(self, address: Address, broker_id: int | None, error: ClientError, now_ms: int) -> ClientError:
        """The error of a call to the address, with what there is to know of that address."""
        if not isinstance(error, NetworkError) or not error.message.startswith(CANNOT_CONNECT):
            return error
        who = "the coordinator" if broker_id is None else f"broker {broker_id}"
        absence = self._brokers.setdefault(address, Absence())
        should_log = absence.should_log(now_ms)
        if address not in self._bootstrap:
            origin = f"That address is what the cluster told us for {who}: is its advertised.listeners right?"
            stays = error.message.startswith(NOT_RESOLVED) and address not in self._reached
            given_up = stays and not self._patient and absence.away_ms >= TOLD_AFTER_MS
            error = AdvertisedAddressError(f"{error.message} {origin}", error, not given_up)
        if should_log and error.retriable and self._everybody.since_ms < 0:
            away_s = absence.away_ms // 1000
            logger.warning("No connection to %s for %d s, trying again: %s", who, away_s, error)
        return error
