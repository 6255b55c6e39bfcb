"""DescribeTransactions and ListTransactions (KIP-664)."""

from __future__ import annotations

from moldau.coordinator.group.topic_regex import TopicRegex
from moldau.coordinator.txn.records import partitions_by_topic
from moldau.coordinator.txn.state import TransactionShardState
from moldau.coordinator.txn.transaction import NO_TIME, STATE_NAMES, Transaction
from moldau.protocol import errors
from moldau.protocol.messages import describe_transactions_response as described
from moldau.protocol.messages import list_transactions_response as listed


def describe(state: TransactionShardState, transactional_id: str) -> described.TransactionState:
    transaction = state.transactions.get(transactional_id)
    if transaction is None:
        return described.TransactionState(
            error_code=errors.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id
        )
    topics = [described.TopicData(one.topic, one.partition_ids) for one in partitions_by_topic(transaction)]
    return described.TransactionState(
        transactional_id=transactional_id,
        transaction_state=STATE_NAMES[transaction.state],
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.start_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=topics,
    )


class ListFilter:
    """Which transactions are wanted; what is empty, -1 or None wants all."""

    def __init__(
        self, states: set[str], producer_ids: set[int], duration_ms: int, id_pattern: TopicRegex | None
    ) -> None:
        self.states = states
        self.producer_ids = producer_ids
        self.duration_ms = duration_ms
        self.id_pattern = id_pattern

    def wants(self, transaction: Transaction, wall_ms: int) -> bool:
        if self.producer_ids and transaction.producer_id not in self.producer_ids:
            return False
        if self.states and STATE_NAMES[transaction.state] not in self.states:
            return False
        if self.duration_ms >= 0:
            if transaction.start_ms == NO_TIME or wall_ms - transaction.start_ms <= self.duration_ms:
                return False
        return self.id_pattern is None or self.id_pattern.matches(transaction.transactional_id)


def find(state: TransactionShardState, wanted: ListFilter, now_ms: int) -> list[listed.TransactionState]:
    wall_ms = state.wall.at(now_ms)
    return [
        listed.TransactionState(one.transactional_id, one.producer_id, STATE_NAMES[one.state])
        for one in state.transactions.values()
        if wanted.wants(one, wall_ms)
    ]
