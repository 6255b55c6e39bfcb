"""What the verbs of the transaction coordinator share: the transactional ids of one shard, and how one is written."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.timers import Timers
from moldau.coordinator.txn.records import decode_transaction, decode_transactional_id, encode_transaction
from moldau.coordinator.txn.settings import TransactionSettings
from moldau.coordinator.txn.transaction import Transaction
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message
from moldau.records.clocks import WallClock

MARKERS_TIMER: Final = "markers:"
RETRY_MS: Final = 500


class ProducerIdNeeded(KafkaError):
    """The verb can only go on with a producer id that was never used; whoever runs it gets one and runs it again."""

    def __init__(self) -> None:
        super().__init__(errors.COORDINATOR_LOAD_IN_PROGRESS)


@mypyc_attr(allow_interpreted_subclasses=True)
class TransactionListener:
    """Told when a decision is committed: its markers are to be written."""

    def on_prepared(self, index: int, transaction: Transaction, now_ms: int) -> None:
        raise NotImplementedError

    def on_unloaded(self, index: int) -> None:
        """Somebody else finishes the transactions of this shard."""
        raise NotImplementedError


class TransactionShardState:
    """`transactions` changes in `replay` alone."""

    def __init__(
        self,
        index: int,
        timers: Timers,
        settings: TransactionSettings,
        listener: TransactionListener,
        wall: WallClock,
    ) -> None:
        self.index = index
        self.wall = wall
        self.timers = timers
        self.settings = settings
        self.listener = listener
        self.transactions: dict[str, Transaction] = {}
        # What was just encoded, so that replay need not decode it; it also brings what the record does not tell.
        self._encoded: bytes | None = None
        self._encoded_from: Transaction | None = None

    def find(self, transactional_id: str) -> Transaction:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
        return transaction

    def write(self, transaction: Transaction, response: Message | None) -> Outcome:
        """The outcome that makes this the state of its id."""
        known = self.transactions.get(transaction.transactional_id)
        assert known is None or transaction.may_follow(known), f"{transaction} follows {known}"
        record = encode_transaction(transaction, self.settings.transaction_version)
        self._encoded = record[1]
        self._encoded_from = transaction
        if transaction.is_preparing:
            return Outcome([record], response, on_written=Decision(self, transaction).on_written)
        return Outcome([record], response)

    def replay(self, key: bytes, value: bytes | None) -> None:
        if value is not None and value is self._encoded and self._encoded_from is not None:
            transaction = self._encoded_from
            self._encoded = self._encoded_from = None
            self.transactions[transaction.transactional_id] = transaction
            return
        transactional_id = decode_transactional_id(key)
        if transactional_id is None:
            return
        if value is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = decode_transaction(transactional_id, value)


class Decision:
    """A commit or an abort that was written; its markers wait until that is committed."""

    def __init__(self, state: TransactionShardState, transaction: Transaction) -> None:
        self._state = state
        self._transaction = transaction

    def on_written(self, error: KafkaError | None, now_ms: int) -> None:
        transaction = self._transaction
        if self._state.transactions.get(transaction.transactional_id) is not transaction:
            return  # it could not be written at all
        if error is None:
            self._state.listener.on_prepared(self._state.index, transaction, now_ms)
        else:
            # Nobody waits for the response any more, but what is in the log counts.
            key = MARKERS_TIMER + transaction.transactional_id
            self._state.timers.schedule(key, now_ms + RETRY_MS, self._wait_again)

    def _wait_again(self, now_ms: int) -> Outcome:
        return self.outcome()

    def outcome(self) -> Outcome:
        """Nothing to write: waits until everything that was written is committed."""
        return Outcome(on_written=self.on_written)
