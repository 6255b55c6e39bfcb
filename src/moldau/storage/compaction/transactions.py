"""Which transactions of a log were aborted, and which markers are still needed, while it is walked from its start.

Kafka: CleanedTransactionMetadata.
"""

from __future__ import annotations

from moldau.records.batch import BatchHeader
from moldau.storage.txn_index import AbortedTransaction


class OpenAborted:
    """An aborted transaction whose marker was not reached yet; `seen` says whether it still has batches."""

    __slots__ = ("seen", "transaction")

    def __init__(self, transaction: AbortedTransaction) -> None:
        self.transaction = transaction
        self.seen = False


class TransactionWalk:
    """Told about every batch in order. `kept` collects what the transaction index of the cleaned segment must have."""

    def __init__(self, aborted: list[AbortedTransaction]) -> None:
        self._coming = sorted(aborted, key=lambda entry: entry.first_offset, reverse=True)
        self._aborted: dict[int, OpenAborted] = {}
        self._committed: set[int] = set()
        self.kept: list[AbortedTransaction] = []

    def _reach(self, offset: int) -> None:
        while self._coming and self._coming[-1].first_offset <= offset:
            entry = self._coming.pop()
            self._aborted.setdefault(entry.producer_id, OpenAborted(entry))

    def is_aborted(self, header: BatchHeader) -> bool:
        """For a transactional data batch: whether its records were never committed."""
        self._reach(int(header.last_offset))
        producer_id = int(header.producer_id)
        found = self._aborted.get(producer_id)
        if found is None:
            self._committed.add(producer_id)
            return False
        found.seen = True
        return True

    def is_marker_spare(self, header: BatchHeader, committed: bool) -> bool:
        """For a marker: whether all batches of the transaction that it ends are gone."""
        self._reach(int(header.last_offset))
        producer_id = int(header.producer_id)
        if committed:
            spare = producer_id not in self._committed
            self._committed.discard(producer_id)
            return spare
        found = self._aborted.pop(producer_id, None)
        if found is None or not found.seen:
            return True
        self.kept.append(found.transaction)
        return False
