"""EndTxn of both transaction versions, aborts that nobody asked for, and the completion once all markers are written.

Kafka: TransactionCoordinator.endTransaction and endTransactionWithTV1, TransactionMetadata.prepareAbortOrCommit.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.txn.state import ProducerIdNeeded, TransactionShardState
from moldau.coordinator.txn.transaction import (
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    Transaction,
    is_exhausted,
)
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.end_txn_response import EndTxnResponse
from moldau.protocol.primitives import Message

FIRST_VERSION: Final = 0
EPOCH_BUMP_VERSION: Final = 2
"""The transaction version from which on every end of a transaction raises the epoch."""


def end_transaction(
    state: TransactionShardState, request: EndTxnRequest, client_version: int, new_producer_id: int, now_ms: int
) -> Outcome:
    known = state.find(request.transactional_id)
    wall_ms = state.wall.at(now_ms)
    if known.next_epoch != NO_EPOCH and not known.is_preparing:
        return end_kept(state, known, request, new_producer_id, wall_ms)
    if client_version < EPOCH_BUMP_VERSION:
        return end_first_version(state, known, request, wall_ms)
    return end_second_version(state, known, request, new_producer_id, wall_ms)


# Version 1


def end_first_version(
    state: TransactionShardState, known: Transaction, request: EndTxnRequest, wall_ms: int
) -> Outcome:
    if known.producer_id != request.producer_id:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    if known.epoch != request.producer_epoch:
        raise KafkaError(errors.PRODUCER_FENCED)
    if known.is_preparing:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    if known.state == ONGOING:
        return state.write(decided(known, request.committed, FIRST_VERSION, wall_ms), EndTxnResponse())
    if known.state == (COMPLETE_COMMIT if request.committed else COMPLETE_ABORT):
        return Outcome(response=EndTxnResponse())
    raise KafkaError(errors.INVALID_TXN_STATE)


# Version 2


def end_second_version(
    state: TransactionShardState, known: Transaction, request: EndTxnRequest, new_producer_id: int, wall_ms: int
) -> Outcome:
    if known.is_preparing:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    is_retry = is_retry_after_bump(known, request) or is_retry_after_rotation(known, request)
    if known.producer_id != request.producer_id and not is_retry_after_rotation(known, request):
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    is_complete = known.state == COMPLETE_COMMIT or known.state == COMPLETE_ABORT
    if request.producer_epoch != known.epoch and not (is_complete and is_retry):
        raise KafkaError(errors.PRODUCER_FENCED)
    if known.state == ONGOING:
        return decide(state, known, request.committed, new_producer_id, wall_ms)
    if is_complete and is_retry:
        if request.committed != (known.state == COMPLETE_COMMIT):
            raise KafkaError(errors.INVALID_TXN_STATE)
        if known.epoch >= EPOCH_MAX:
            return rotate(state, known, request, new_producer_id, wall_ms)
        return Outcome(response=EndTxnResponse(producer_id=known.producer_id, producer_epoch=known.epoch))
    if request.committed:
        raise KafkaError(errors.INVALID_TXN_STATE)
    # Nothing was written, or the client does not know whether something was: the epoch is raised in any case.
    return decide(state, known, False, new_producer_id, wall_ms)


def is_retry_after_bump(known: Transaction, request: EndTxnRequest) -> bool:
    """Only a transaction that ended by raising its epoch; else the higher epoch is that of a successor."""
    return (
        known.client_version >= EPOCH_BUMP_VERSION
        and known.producer_id == request.producer_id
        and known.epoch == request.producer_epoch + 1
    )


def is_retry_after_rotation(known: Transaction, request: EndTxnRequest) -> bool:
    return (
        known.previous_producer_id == request.producer_id
        and known.producer_id != request.producer_id
        and request.producer_epoch == EPOCH_MAX - 1
        and known.epoch == 0
    )


def rotate(
    state: TransactionShardState, known: Transaction, request: EndTxnRequest, new_producer_id: int, wall_ms: int
) -> Outcome:
    """The producer goes on under another id: its transaction was ended by a fence with the last epoch of all, and that
    one is told to nobody, for nothing could fence or end what is written with it (KAFKA-20090)."""
    if new_producer_id == NO_PRODUCER_ID:
        raise ProducerIdNeeded()
    following = known.successor(wall_ms)
    following.producer_id = new_producer_id
    following.epoch = 0
    following.last_epoch = request.producer_epoch
    return state.write(following, EndTxnResponse(producer_id=new_producer_id, producer_epoch=0))


def decide(
    state: TransactionShardState, known: Transaction, commit: bool, new_producer_id: int, wall_ms: int
) -> Outcome:
    following = decided(known, commit, EPOCH_BUMP_VERSION, wall_ms)
    if known.is_epoch_exhausted:
        if new_producer_id == NO_PRODUCER_ID:
            raise ProducerIdNeeded()
        following.next_producer_id = new_producer_id
    producer_id, epoch = following.client_producer
    return state.write(following, EndTxnResponse(producer_id=producer_id, producer_epoch=epoch))


def decided(known: Transaction, commit: bool, version: int, wall_ms: int) -> Transaction:
    following = known.successor(wall_ms)
    following.state = PREPARE_COMMIT if commit else PREPARE_ABORT
    following.client_version = version
    if known.state != ONGOING:
        following.start_ms = wall_ms
        following.partitions = frozenset()
    if version >= EPOCH_BUMP_VERSION:
        raise_epoch(following, known.epoch)
    return following


def raise_epoch(following: Transaction, last_epoch: int) -> None:
    """Above the last epoch there is none. Markers of version 1 end a transaction with its own; one that began there is
    in logs of earlier releases only."""
    following.epoch = min(last_epoch + 1, EPOCH_MAX)
    following.last_epoch = last_epoch
    if last_epoch >= EPOCH_MAX:
        following.client_version = FIRST_VERSION


# Two phases (KIP-939)


def end_kept(
    state: TransactionShardState, known: Transaction, request: EndTxnRequest, new_producer_id: int, wall_ms: int
) -> Outcome:
    """Ends a transaction that was kept by InitProducerId: whoever asks has the producer id and epoch of that
    response."""
    kept_id = known.next_producer_id if known.next_producer_id != NO_PRODUCER_ID else known.producer_id
    if request.producer_id != kept_id:
        raise KafkaError(errors.INVALID_PRODUCER_ID_MAPPING)
    if request.producer_epoch != known.next_epoch:
        raise KafkaError(errors.PRODUCER_FENCED)
    following = decided(known, request.committed, EPOCH_BUMP_VERSION, wall_ms)
    if known.next_producer_id == NO_PRODUCER_ID:
        # The marker fences the predecessor by an epoch of its own, above all that were told.
        following.epoch = known.next_epoch + 1
        following.next_epoch = NO_EPOCH
    else:
        following.next_epoch = known.next_epoch + 1
    following.last_epoch = known.next_epoch
    told_id, told_epoch = kept_id, known.next_epoch + 1
    if is_exhausted(known.next_epoch):
        if new_producer_id == NO_PRODUCER_ID:
            raise ProducerIdNeeded()
        following.next_producer_id = told_id = new_producer_id
        following.next_epoch = NO_EPOCH
        told_epoch = 0
    return state.write(following, EndTxnResponse(producer_id=told_id, producer_epoch=told_epoch))


# Nobody asked


def fence_and_abort(state: TransactionShardState, known: Transaction, response: Message | None, now_ms: int) -> Outcome:
    """Aborts an ongoing transaction with the next epoch, so that its producer can write nothing any more."""
    bumps = state.settings.transaction_version >= EPOCH_BUMP_VERSION
    following = decided(known, False, EPOCH_BUMP_VERSION if bumps else FIRST_VERSION, state.wall.at(now_ms))
    if not bumps:
        following.epoch = min(known.epoch + 1, EPOCH_MAX)
        following.last_epoch = NO_EPOCH
    if known.next_epoch != NO_EPOCH:
        following.next_producer_id = NO_PRODUCER_ID
        if known.next_producer_id == NO_PRODUCER_ID:
            following.epoch = min(known.next_epoch + 1, EPOCH_MAX)
        following.next_epoch = NO_EPOCH
    return state.write(following, response)


# Completion


def complete(state: TransactionShardState, prepared: Transaction, now_ms: int) -> Outcome:
    """All partitions have their markers. Does nothing if that was written before."""
    if state.transactions.get(prepared.transactional_id) is not prepared:
        return Outcome()
    following = prepared.successor(state.wall.at(now_ms))
    following.state = COMPLETE_COMMIT if prepared.state == PREPARE_COMMIT else COMPLETE_ABORT
    following.partitions = frozenset()
    if prepared.next_producer_id != NO_PRODUCER_ID:
        following.producer_id = prepared.next_producer_id
        following.epoch = prepared.next_epoch if prepared.next_epoch != NO_EPOCH else 0
        following.next_producer_id = NO_PRODUCER_ID
        following.next_epoch = NO_EPOCH
    return state.write(following, None)
