"""InitProducerId with a transactional id: a producer begins, fences its predecessor, or goes on after an error.

Kafka: TransactionCoordinator.handleInitProducerId, TransactionMetadata.prepareIncrementProducerEpoch.
"""

from __future__ import annotations

from moldau.coordinator.outcome import Outcome
from moldau.coordinator.txn.end import fence_and_abort
from moldau.coordinator.txn.state import ProducerIdNeeded, TransactionShardState
from moldau.coordinator.txn.transaction import (
    EMPTY,
    EPOCH_MAX,
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_TIME,
    NO_TIMEOUT_MS,
    ONGOING,
    Transaction,
    is_exhausted,
)
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse


def init_producer_id(
    state: TransactionShardState, request: InitProducerIdRequest, new_producer_id: int, now_ms: int
) -> Outcome:
    """`new_producer_id` is -1 unless the verb asked for one (ProducerIdNeeded)."""
    timeout_ms = check_timeout(state, request)
    transactional_id = request.transactional_id
    assert transactional_id
    known = state.transactions.get(transactional_id)
    if known is None:
        if new_producer_id == NO_PRODUCER_ID:
            raise ProducerIdNeeded()
        known = Transaction(transactional_id, new_producer_id, timeout_ms, state.wall.at(now_ms))
    if known.is_preparing:
        raise KafkaError(errors.CONCURRENT_TRANSACTIONS)
    check_expected(known, request)
    if known.state == ONGOING:
        if request.keep_prepared_txn:
            return keep_prepared(state, known, request, new_producer_id, timeout_ms, now_ms)
        # The client asks again until the abort is over. The epoch of this fence is never told to anybody.
        response = InitProducerIdResponse(
            error_code=errors.CONCURRENT_TRANSACTIONS, producer_id=NO_PRODUCER_ID, producer_epoch=NO_EPOCH
        )
        return fence_and_abort(state, known, response, now_ms)
    return begin(state, known, request, new_producer_id, timeout_ms, now_ms)


def check_timeout(state: TransactionShardState, request: InitProducerIdRequest) -> int:
    if request.enable2_pc:
        if not state.settings.two_phase_enabled:
            raise KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
        return NO_TIMEOUT_MS
    timeout_ms = request.transaction_timeout_ms
    if timeout_ms <= 0 or timeout_ms > state.settings.timeout_max_ms:
        raise KafkaError(errors.INVALID_TRANSACTION_TIMEOUT)
    return timeout_ms


def check_expected(known: Transaction, request: InitProducerIdRequest) -> None:
    """A producer that says who it is (KIP-360) must be the current one, or its rotation must have been told already.

    While a transaction is open nobody but its own producer is: whoever names an epoch before has been fenced, and what
    it asks must not abort the transaction of its successor."""
    if request.producer_id == NO_PRODUCER_ID or known.epoch == NO_EPOCH:
        return
    if known.state == ONGOING:
        if (request.producer_id, request.producer_epoch) != known.open_producer:
            raise KafkaError(errors.PRODUCER_FENCED)
        return
    if request.producer_id == known.producer_id:
        return
    if request.producer_id == known.previous_producer_id and is_exhausted(request.producer_epoch):
        return
    raise KafkaError(errors.PRODUCER_FENCED)


def begin(
    state: TransactionShardState,
    known: Transaction,
    request: InitProducerIdRequest,
    new_producer_id: int,
    timeout_ms: int,
    now_ms: int,
) -> Outcome:
    says_who = request.producer_id != NO_PRODUCER_ID
    following = known.successor(state.wall.at(now_ms))
    following.state = EMPTY
    following.timeout_ms = timeout_ms
    following.partitions = frozenset()
    following.start_ms = NO_TIME
    following.next_producer_id = NO_PRODUCER_ID
    following.next_epoch = NO_EPOCH
    # The last epoch of all is for fencing alone: a producer that was fenced with it hears of another id.
    was_fenced = known.epoch >= EPOCH_MAX and request.producer_epoch == known.last_epoch
    if known.is_epoch_exhausted and (not says_who or request.producer_epoch == known.epoch or was_fenced):
        if new_producer_id == NO_PRODUCER_ID:
            raise ProducerIdNeeded()
        following.producer_id = new_producer_id
        following.epoch = 0
        following.last_epoch = request.producer_epoch
    else:
        following.epoch, following.last_epoch = next_epochs(known, request)
    response = InitProducerIdResponse(producer_id=following.producer_id, producer_epoch=following.epoch)
    return state.write(following, response)


def next_epochs(known: Transaction, request: InitProducerIdRequest) -> tuple[int, int]:
    """The epoch, and the one before it by which a retry is known."""
    raised = 0 if known.epoch == NO_EPOCH else known.epoch + 1
    if request.producer_id == NO_PRODUCER_ID:
        return raised, NO_EPOCH
    if known.epoch == NO_EPOCH or request.producer_epoch == known.epoch:
        return raised, known.epoch
    if request.producer_epoch == known.last_epoch:
        # Its response got lost. Nobody else has come since: that would have cleared the last epoch.
        return known.epoch, known.last_epoch
    raise KafkaError(errors.PRODUCER_FENCED)


def keep_prepared(
    state: TransactionShardState,
    known: Transaction,
    request: InitProducerIdRequest,
    new_producer_id: int,
    timeout_ms: int,
    now_ms: int,
) -> Outcome:
    """KIP-939: the transaction stays, for somebody outside has prepared it; its predecessor is fenced by an epoch
    that only EndTxn knows."""
    if not state.settings.two_phase_enabled:
        raise KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    following = known.successor(state.wall.at(now_ms))
    following.previous_producer_id = known.previous_producer_id
    following.timeout_ms = timeout_ms
    current_id, current_epoch = known.producer_id, known.epoch
    if known.next_epoch != NO_EPOCH:
        current_epoch = known.next_epoch
        current_id = known.next_producer_id if known.next_producer_id != NO_PRODUCER_ID else known.producer_id
    if is_exhausted(current_epoch):
        if new_producer_id == NO_PRODUCER_ID:
            raise ProducerIdNeeded()
        following.next_producer_id = new_producer_id
        following.next_epoch = 0
    else:
        following.next_producer_id = current_id if current_id != known.producer_id else NO_PRODUCER_ID
        following.next_epoch = current_epoch + 1
    response = InitProducerIdResponse(
        producer_id=following.next_producer_id if following.next_producer_id != NO_PRODUCER_ID else known.producer_id,
        producer_epoch=following.next_epoch,
        ongoing_txn_producer_id=known.producer_id,
        ongoing_txn_producer_epoch=known.epoch,
    )
    return state.write(following, response)
