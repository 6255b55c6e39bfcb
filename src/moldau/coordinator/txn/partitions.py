"""Partitions join a transaction (AddPartitionsToTxn, AddOffsetsToTxn), or are looked for in it (KIP-890)."""

from __future__ import annotations

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.txn.state import TransactionShardState
from moldau.coordinator.txn.transaction import EPOCH_MAX, NO_EPOCH, ONGOING, TopicPartition, Transaction
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.primitives import Message


def check_producer(known: Transaction, producer_id: int, producer_epoch: int) -> None:
    """Whoever asks must be the current producer, and no markers may be on their way."""
    if known.is_preparing:
        # First of all: with a new producer id the client may know already what is not in force yet.
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    if known.producer_id != producer_id:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    if known.epoch != producer_epoch or known.next_epoch != NO_EPOCH or known.epoch >= EPOCH_MAX:
        # Of a transaction that was kept (KIP-939) only the end is awaited; with the last epoch none may begin.
        raise KafkaError(errors.PRODUCER_FENCED)


def add_partitions(
    state: TransactionShardState,
    transactional_id: str,
    *,
    producer_id: int,
    producer_epoch: int,
    partitions: frozenset[TopicPartition],
    client_version: int,
    response: Message,
    now_ms: int,
) -> Outcome:
    """Raises the error for all partitions; `response` is the response when they are in the transaction."""
    known = state.find(transactional_id)
    check_producer(known, producer_id, producer_epoch)
    if known.state == ONGOING and partitions <= known.partitions:
        return Outcome(response=response)
    following = known.successor(state.wall.at(now_ms))
    if known.state != ONGOING:
        following.start_ms = state.wall.at(now_ms)
        following.open_since_ms = now_ms
        following.partitions = frozenset()
    following.state = ONGOING
    following.partitions = following.partitions | partitions
    following.client_version = client_version
    return state.write(following, response)


def find_missing(
    state: TransactionShardState,
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    partitions: frozenset[TopicPartition],
) -> frozenset[TopicPartition]:
    """The partitions that are not in the transaction; raises what concerns all of them."""
    known = state.find(transactional_id)
    if known.producer_id != producer_id:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    if known.epoch != producer_epoch or known.next_epoch != NO_EPOCH:
        raise KafkaError(errors.PRODUCER_FENCED)
    if known.is_preparing:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    return partitions if known.state != ONGOING else partitions - known.partitions
