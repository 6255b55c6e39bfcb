"""What happens by time alone: transactions that took too long are aborted, ids that nobody uses any more removed."""

from __future__ import annotations

import logging
from typing import Final

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.txn.end import fence_and_abort
from moldau.coordinator.txn.records import tombstone
from moldau.coordinator.txn.state import TransactionShardState
from moldau.coordinator.txn.transaction import NO_TIME, NO_TIMEOUT_MS, ONGOING, Transaction

TIMEOUT_TIMER: Final = "transactions:timed out"
EXPIRY_TIMER: Final = "transactions:expired ids"
ABORT_TIMER: Final = "abort:"

logger = logging.getLogger("moldau.coordinator")


class Aging:
    """Two checks, each at its interval."""

    def __init__(self, state: TransactionShardState) -> None:
        self._state = state

    def start(self, now_ms: int) -> None:
        for transaction in self._state.transactions.values():
            self._begin_timeout(transaction, now_ms)
        self._schedule_timeouts(now_ms)
        self._schedule_expiry(now_ms)

    def _begin_timeout(self, transaction: Transaction, now_ms: int) -> None:
        """Of one that began elsewhere: as much of its time is over as the wall clock says, if that is to be trusted."""
        wall = self._state.wall
        passed_ms = wall.at(now_ms) - transaction.start_ms if wall.may_delete_by_age else 0
        transaction.open_since_ms = now_ms - max(0, passed_ms)

    def _schedule_timeouts(self, now_ms: int) -> None:
        self._state.timers.schedule(TIMEOUT_TIMER, now_ms + self._state.settings.timeout_check_ms, self._find_late)

    def _schedule_expiry(self, now_ms: int) -> None:
        self._state.timers.schedule(EXPIRY_TIMER, now_ms + self._state.settings.id_expiration_check_ms, self._expire)

    def _find_late(self, now_ms: int) -> Outcome | None:
        """Each late transaction gets a timer that is due now: one that cannot be written is tried again by itself."""
        self._schedule_timeouts(now_ms)
        for transaction in self._state.transactions.values():
            if is_late(transaction, now_ms):
                late = LateTransaction(self._state, transaction)
                self._state.timers.schedule(ABORT_TIMER + transaction.transactional_id, now_ms, late.abort)
        return None

    def _expire(self, now_ms: int) -> Outcome | None:
        self._schedule_expiry(now_ms)
        kept_ms = self._state.settings.id_expiration_ms
        records = []
        if not self._state.wall.may_delete_by_age:
            return None
        wall_ms = self._state.wall.at(now_ms)
        for transaction in self._state.transactions.values():
            is_open = transaction.state == ONGOING or transaction.is_preparing
            if not is_open and transaction.updated_ms <= wall_ms - kept_ms:
                records.append(tombstone(transaction.transactional_id))
        return Outcome(records, atomic=False) if records else None


class LateTransaction:
    def __init__(self, state: TransactionShardState, transaction: Transaction) -> None:
        self._state = state
        self._transaction = transaction

    def abort(self, now_ms: int) -> Outcome | None:
        transaction = self._transaction
        current = self._state.transactions.get(transaction.transactional_id)
        if current is None or current.epoch != transaction.epoch or not is_late(current, now_ms):
            return None
        logger.info("aborting the transaction of %s: transaction timed out", transaction.transactional_id)
        return fence_and_abort(self._state, current, None, now_ms)


def is_late(transaction: Transaction, now_ms: int) -> bool:
    return (
        transaction.state == ONGOING
        and transaction.timeout_ms != NO_TIMEOUT_MS
        and transaction.open_since_ms != NO_TIME
        and transaction.open_since_ms + transaction.timeout_ms < now_ms
    )
