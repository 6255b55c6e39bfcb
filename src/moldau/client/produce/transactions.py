"""A producer's transactions as a state machine: requests and what responses mean; no socket, clock or thread.

The calls change the state, next_request() gives what is to be sent, on_response() and on_failure() take what came
of it. One request is on its way at most. Records are the accumulator's: this module says which partitions they may go
to, under which producer id and epoch, and hears of batches that failed. docs/client-transactions.md has the tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple, cast

from moldau.client.connection.backoff import Backoff
from moldau.client.connection.wire import Features
from moldau.client.errors import (
    ClientError,
    CommitFailedError,
    TransactionAbortedError,
    TransactionCallError,
    error_for,
)
from moldau.client.produce.transaction_states import SUCCESSORS, State
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, PreparedTransaction, TopicPartition
from moldau.protocol import errors as codes
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from moldau.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from moldau.protocol.messages.add_partitions_to_txn_response import AddPartitionsToTxnResponse
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.end_txn_response import EndTxnResponse
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from moldau.protocol.messages.txn_offset_commit_response import TxnOffsetCommitResponse
from moldau.protocol.primitives import Message

TRANSACTION_VERSION = "transaction.version"
NO_PRODUCER_ID = -1
NO_EPOCH = -1

# Before 6 InitProducerId knows no two-phase commit; brokers offer it only where that is switched on.
INIT_VERSION = 5
INIT_TWO_PHASE_VERSION = 6
# What transaction version 1 speaks at most: later versions of these requests mean version 2 to a broker.
ADD_PARTITIONS_VERSION = 3
OFFSET_COMMIT_VERSION_1 = 4
END_VERSION_1 = 4

# While markers of the last transaction are still being written: that takes milliseconds.
CONCURRENT_BACKOFF_MS = 20

# A batch that fails with one of these ends the producer; any other ends the transaction.
_FATAL_FOR_BATCHES = frozenset(
    {
        codes.CLUSTER_AUTHORIZATION_FAILED,
        codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        codes.PRODUCER_FENCED,
        codes.UNSUPPORTED_VERSION,
        codes.INVALID_PRODUCER_ID_MAPPING,
    }
)
_FENCED = frozenset({codes.INVALID_PRODUCER_EPOCH, codes.PRODUCER_FENCED})
_LOST_COORDINATOR = frozenset({codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE})


class Operation:
    """A call of the user that waits for responses; done with or without an error."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done = False
        self.error: ClientError | None = None

    def finish(self, error: ClientError | None = None) -> None:
        if not self.done:
            self.done = True
            self.error = error


class TransactionRequest(NamedTuple):
    """A request for a coordinator: the group's where there is a group id, otherwise the transaction's."""

    message: Message
    response_class: type[Message]
    group_id: str | None = None
    highest_version: int | None = None


class _PendingOffsets:
    """What one send_offsets_to_transaction() still has to commit."""

    def __init__(self, offsets: dict[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata) -> None:
        self.offsets = offsets
        self.group = group
        self.operation = Operation("send_offsets_to_transaction")


class TransactionManager:
    """The transactions of one transactional id."""

    def __init__(self, transactional_id: str, timeout_ms: int, two_phase: bool, backoff: Backoff) -> None:
        self.transactional_id = transactional_id
        self._timeout_ms = timeout_ms
        self._two_phase = two_phase
        self._backoff = backoff
        self.state = State.UNINITIALIZED
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_EPOCH
        # Grows whenever id or epoch are new: sequence numbers begin at 0 again.
        self.incarnation = 0
        # Transaction version 2 (KIP-890): brokers add partitions themselves, and every transaction has its epoch.
        self.version_2 = False
        self.error: ClientError | None = None
        self.prepared: PreparedTransaction | None = None
        self._features = Features(-1, {})
        # Something of the transaction may have reached a broker: its coordinator must be told how it ends.
        self._started = False
        # The epoch is to be raised by InitProducerId once the transaction is aborted: what was sent may still arrive.
        self._bump_required = False
        self._keep_prepared = False
        self._partitions: set[TopicPartition] = set()
        self._new_partitions: set[TopicPartition] = set()
        self._groups: set[str] = set()
        # An addition of version 1 that got no response: whether the coordinator opened the transaction is not known.
        self._without_response: TransactionRequest | None = None
        self._offsets: _PendingOffsets | None = None
        # The call that waits for init, commit or abort; None once the user has heard how it ended.
        self._operation: Operation | None = None
        self._in_flight = False
        self._ended = False
        self._not_before_ms = 0
        self._failures = 0

    # The user's calls

    def init(self, keep_prepared: bool = False) -> Operation:
        """Gets a producer id, ends what an earlier producer of the same transactional id left open."""
        if (again := self._again("init_transactions")) is not None:
            return again
        self._check_not_failed()
        if keep_prepared and not self._two_phase:
            raise TransactionCallError(
                "init_transactions(keep_prepared=True) needs transaction.two.phase.commit.enable=true."
            )
        self._require("init_transactions", State.UNINITIALIZED)
        self._move_to(State.INITIALIZING)
        self._keep_prepared = keep_prepared
        return self._begin("init_transactions")

    def begin(self) -> None:
        self._check_free("begin_transaction")
        self._require("begin_transaction", State.READY)
        self.version_2 = self._features_level() >= 2
        self._move_to(State.IN_TRANSACTION)

    def check_sending(self) -> None:
        """Raises unless records may be sent."""
        self._check_free("send")
        self._require("send", State.IN_TRANSACTION)

    def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata | int], group: ConsumerGroupMetadata
    ) -> Operation:
        """Commits offsets of a group with the transaction."""
        name = "send_offsets_to_transaction"
        pending = self._offsets
        if pending is not None and not pending.operation.done and self.state is State.IN_TRANSACTION:
            raise TransactionCallError(f"Another {name}() has not ended yet.")
        self._check_free(name)
        self._require(name, State.IN_TRANSACTION)
        if group.generation_id > 0 and not group.member_id:
            raise ValueError(f"The group metadata has generation {group.generation_id} and no member id.")
        if not group.group_id:
            raise ValueError("The group metadata has no group id.")
        rows = {
            partition: offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
            for partition, offset in offsets.items()
        }
        self._offsets = _PendingOffsets(rows, group)
        if not rows:
            self._offsets.operation.finish()
        elif self.version_2:
            self._started = True
        return self._offsets.operation

    def prepare(self, until_timeout: bool = False) -> PreparedTransaction:
        """Nothing more is sent; the transaction stays as it is until it is completed. Batches are flushed by then.

        until_timeout: also without two-phase commit, where brokers abort it after transaction.timeout.ms.
        """
        self._check_free("prepare_transaction")
        if not self._two_phase and not until_timeout:
            raise TransactionCallError("prepare_transaction() needs transaction.two.phase.commit.enable=true.")
        self._require("prepare_transaction", State.IN_TRANSACTION)
        if self._has_additions():
            raise TransactionCallError(
                "prepare_transaction() is not possible: send_offsets_to_transaction() has not ended yet."
                " Try again later, or call abort_transaction()."
            )
        self._move_to(State.PREPARED)
        self.prepared = PreparedTransaction(self.producer_id, self.producer_epoch)
        return self.prepared

    def complete(self, given: PreparedTransaction) -> Operation:
        """Commits if what is prepared here is what the caller has noted as decided, aborts otherwise."""
        if self.state in (State.COMMITTING, State.ABORTING) and self._operation is not None:
            return self._operation
        self._require("complete_transaction", State.PREPARED)
        return self.commit() if given == self.prepared else self.abort()

    def ended_elsewhere(self, following: PreparedTransaction) -> None:
        """Somebody else has ended what was prepared here, and was told the id and epoch of the next transaction."""
        self._check_free("go_on_as")
        self._require("go_on_as", State.PREPARED)
        self._set_producer(following.producer_id, following.producer_epoch)
        self._complete()

    def commit(self) -> Operation:
        if (again := self._again("commit_transaction")) is not None:
            return again
        self._check_not_failed()
        self._require("commit_transaction", State.IN_TRANSACTION, State.PREPARED)
        self._move_to(State.COMMITTING)
        return self._begin("commit_transaction")

    def abort(self) -> Operation:
        if (again := self._again("abort_transaction")) is not None:
            return again
        if self.state is State.FATAL_ERROR:
            self._check_not_failed()
        self._require("abort_transaction", State.IN_TRANSACTION, State.PREPARED, State.ABORTABLE_ERROR)
        self._move_to(State.ABORTING)
        self.error = None
        self._new_partitions.clear()
        if self._offsets is not None:
            self._offsets.operation.finish(error_for(codes.TRANSACTION_ABORTABLE, "The transaction is being aborted."))
            self._offsets = None
        return self._begin("abort_transaction")

    def forget_operation(self, operation: Operation) -> None:
        """The user knows how the call ended."""
        if self._operation is operation:
            self._operation = None

    def _again(self, name: str) -> Operation | None:
        """A call that was given up after max.block.ms goes on when it is made again, and excludes every other one."""
        pending = self._operation
        if pending is None:
            return None
        if pending.name != name:
            raise TransactionCallError(
                f"{name}() is not possible: {pending.name}() has not ended yet. Call that again, to wait for its end."
            )
        return pending

    def _begin(self, name: str) -> Operation:
        self._operation = Operation(name)
        self._failures = 0
        self._not_before_ms = 0
        self._ended = False
        return self._operation

    def _check_free(self, name: str) -> None:
        self._check_not_failed()
        self._again(name)

    def _check_not_failed(self) -> None:
        """Raises what stands against the transaction (abort it) or the producer (close it)."""
        if self.error is None:
            return
        if self.state is State.FATAL_ERROR:
            raise self.error
        raise abortable(self.error) from self.error

    def _require(self, name: str, *states: State) -> None:
        if self.state not in states:
            hint = {
                State.UNINITIALIZED: " Call init_transactions() first.",
                State.READY: " Call begin_transaction() first.",
            }.get(self.state, "")
            raise TransactionCallError(f"{name}() is not possible: the producer is {self.state.value}.{hint}")

    # For the sender

    @property
    def sending(self) -> bool:
        """Whether batches may leave at all."""
        return self.state in (State.IN_TRANSACTION, State.COMMITTING, State.ABORTING, State.ABORTABLE_ERROR)

    @property
    def dropping(self) -> ClientError | None:
        """Why batches that were never sent are to fail."""
        if self.state is State.ABORTING:
            return TransactionAbortedError()
        return self.error

    def add_partitions(self, partitions: Iterable[TopicPartition]) -> None:
        """Records wait for these partitions."""
        if self.state not in (State.IN_TRANSACTION, State.COMMITTING):
            return
        for partition in partitions:
            if partition in self._partitions:
                continue
            if self.version_2:
                self._partitions.add(partition)
                self._started = True
            else:
                self._new_partitions.add(partition)

    def is_new_partition(self, partition: TopicPartition) -> bool:
        """Whether add_partitions() has not heard of it yet."""
        if self.state not in (State.IN_TRANSACTION, State.COMMITTING):
            return False
        return partition not in self._partitions and partition not in self._new_partitions

    def may_send(self, partition: TopicPartition) -> bool:
        """Under version 1 only what the coordinator knows to be part of the transaction."""
        return partition in self._partitions

    def on_batch_failed(self, error: ClientError) -> None:
        """A batch was given up: the transaction cannot be complete any more."""
        if error.code in _FATAL_FOR_BATCHES:
            self._fail(error)
            return
        if self.state is State.ABORTING and not self.version_2:
            self._bump_required = True  # what is not known to be written may come later, into another transaction
        if error.retriable or error.code == codes.INVALID_TXN_STATE:
            error = error_for(codes.TRANSACTION_ABORTABLE, f"A batch could not be delivered: {error.message}")
        self._abortable(error)

    def next_deadline_ms(self, batches_left: bool = False) -> int | None:
        """When next_request() may have something to say, if only time must pass."""
        return self._not_before_ms if self._wants_something(batches_left) and not self._in_flight else None

    def next_request(self, now_ms: int, batches_left: bool) -> TransactionRequest | None:
        """What is to be sent now; batches_left: some of the transaction's records are neither written nor failed."""
        if self._in_flight or now_ms < self._not_before_ms:
            return None
        request = self._choose(batches_left)
        self._in_flight = request is not None
        return request

    def _wants_something(self, batches_left: bool) -> bool:
        state = self.state
        if state is State.INITIALIZING or (self.completing and not batches_left):
            return True
        return state in (State.IN_TRANSACTION, State.COMMITTING) and self._has_additions()

    def _has_additions(self) -> bool:
        return bool(self._new_partitions) or (self._offsets is not None and not self._offsets.operation.done)

    def _choose(self, batches_left: bool) -> TransactionRequest | None:
        state = self.state
        if state is State.INITIALIZING:
            return self._init_request()
        if state in (State.IN_TRANSACTION, State.COMMITTING):
            if self._new_partitions:
                return self._add_partitions_request()
            if self._offsets is not None and not self._offsets.operation.done:
                return self._offsets_request(self._offsets)
        if state in (State.COMMITTING, State.ABORTING) and not batches_left:
            if self._without_response is not None and not self._started:
                return self._without_response
            return self._end_request()
        return None

    def _init_request(self) -> TransactionRequest:
        message = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            # With two-phase commit the outside coordinator decides when a transaction ends.
            transaction_timeout_ms=0x7FFFFFFF if self._two_phase else self._timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            enable2_pc=self._two_phase,
            keep_prepared_txn=self._keep_prepared,
        )
        highest = INIT_TWO_PHASE_VERSION if self._two_phase else INIT_VERSION
        return _request(message, InitProducerIdResponse, highest=highest)

    def _add_partitions_request(self) -> TransactionRequest:
        by_topic: dict[str, list[int]] = {}
        for partition in sorted(self._new_partitions):
            by_topic.setdefault(partition.topic, []).append(partition.partition)
        message = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name, indexes) for name, indexes in by_topic.items()],
        )
        return _request(message, AddPartitionsToTxnResponse, highest=ADD_PARTITIONS_VERSION)

    def _offsets_request(self, pending: _PendingOffsets) -> TransactionRequest:
        group = pending.group
        if not self.version_2 and group.group_id not in self._groups:
            adding = AddOffsetsToTxnRequest(
                self.transactional_id, self.producer_id, self.producer_epoch, group.group_id
            )
            return _request(adding, AddOffsetsToTxnResponse)
        by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for partition, row in pending.offsets.items():
            by_topic.setdefault(partition.topic, []).append(
                TxnOffsetCommitRequestPartition(partition.partition, row.offset, row.leader_epoch, row.metadata)
            )
        message = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group.group_id,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=[TxnOffsetCommitRequestTopic(name, rows) for name, rows in by_topic.items()],
        )
        highest = None if self.version_2 else OFFSET_COMMIT_VERSION_1
        return _request(message, TxnOffsetCommitResponse, group.group_id, highest)

    def _end_request(self) -> TransactionRequest | None:
        if self._ended or not self._started:
            if self._bump_required:
                return self._init_request()
            self._complete()
            return None
        message = EndTxnRequest(
            self.transactional_id, self.producer_id, self.producer_epoch, self.state is State.COMMITTING
        )
        return _request(message, EndTxnResponse, highest=None if self.version_2 else END_VERSION_1)

    def withdraw(self) -> None:
        """What next_request() gave was not sent, and will not be."""
        self._in_flight = False

    @property
    def taking(self) -> bool:
        """Whether the user may send more."""
        return self.state is State.IN_TRANSACTION

    @property
    def completing(self) -> bool:
        return self.state in (State.COMMITTING, State.ABORTING)

    def on_stopped(self, error: ClientError) -> None:
        """There will never be a response any more."""
        self._end_calls(error)

    # Responses

    def on_failure(self, request: TransactionRequest, error: ClientError, now_ms: int) -> None:
        """No response: what became of the request is not known, and it is made again, unless that is of no use."""
        self._in_flight = False
        if error.retriable or error.code == codes.UNKNOWN_SERVER_ERROR:
            if not self.version_2:
                self._note_without_response(request)
            self._retry(error.code, now_ms)
        else:
            self._fail(error)

    def _note_without_response(self, request: TransactionRequest) -> None:
        """Version 1 has one epoch for all transactions: a request may arrive late and count for the next one."""
        if isinstance(request.message, AddPartitionsToTxnRequest | AddOffsetsToTxnRequest):
            self._without_response = request  # an abort must make sure that there is something to end, and end it
        elif isinstance(request.message, TxnOffsetCommitRequest):
            self._bump_required = True

    def on_response(self, request: TransactionRequest, response: Message, features: Features, now_ms: int) -> bool:
        """Takes a response; True if the coordinator that gave it is to be looked for anew."""
        self._in_flight = False
        if features.epoch >= self._features.epoch:
            self._features = features
        failures = self._failures
        lost = self._take_response(response, now_ms)
        without_response = self._without_response
        if without_response is not None and isinstance(request.message, type(without_response.message)):
            to_be_tried_again = self._failures > failures
            self._without_response = without_response if to_be_tried_again else None
        return lost

    def _take_response(self, response: Message, now_ms: int) -> bool:
        if isinstance(response, InitProducerIdResponse):
            return self._on_init(response, now_ms)
        if isinstance(response, AddPartitionsToTxnResponse):
            return self._on_partitions(response, now_ms)
        if isinstance(response, AddOffsetsToTxnResponse):
            return self._on_offsets_added(response, now_ms)
        if isinstance(response, TxnOffsetCommitResponse):
            return self._on_offsets_committed(response, now_ms)
        assert isinstance(response, EndTxnResponse)
        return self._on_end(response, now_ms)

    def on_coordinator_problem(self, group_id: str | None, error: ClientError) -> None:
        """A coordinator cannot be found, and asking again does not help."""
        self._in_flight = False
        if error.code in (codes.GROUP_AUTHORIZATION_FAILED, codes.TRANSACTION_ABORTABLE):
            self._abortable(error)
        else:
            self._fail(error)

    def _on_init(self, response: InitProducerIdResponse, now_ms: int) -> bool:
        code = response.error_code
        if code == codes.NONE:
            self._set_producer(response.producer_id, response.producer_epoch)
            self._bump_required = False
            if self.state is not State.INITIALIZING:
                self._complete()
            elif self._keep_prepared and response.ongoing_txn_producer_id != NO_PRODUCER_ID:
                self.prepared = PreparedTransaction(
                    response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch
                )
                self._started = True
                self.version_2 = self._features_level() >= 2
                self._finish(State.PREPARED)
            else:
                self._finish(State.READY)
            self._keep_prepared = False
            return False
        if self._common(code, now_ms):
            return code in _LOST_COORDINATOR
        if code in (
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.CLUSTER_AUTHORIZATION_FAILED,
            codes.TRANSACTION_ABORTABLE,
        ):
            self._init_refused(error_for(code))
        else:
            self._fail(error_for(code))
        return False

    def _init_refused(self, error: ClientError) -> None:
        """Whoever is allowed later may ask again."""
        if self.state is State.INITIALIZING:
            self._finish(State.UNINITIALIZED, error)
        elif self.state is State.COMMITTING:
            self._complete()  # what was committed is committed; only the next transaction has no epoch
            self._fail(error)
        else:
            self._move_to(State.IN_TRANSACTION)  # an abort that goes on: what was to be aborted is still to be
            self._abortable(error)

    def _on_partitions(self, response: AddPartitionsToTxnResponse, now_ms: int) -> bool:
        results = {
            TopicPartition(topic.name, row.partition_index): row.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        }
        unauthorized: list[str] = []
        refused: list[TopicPartition] = []
        for partition, code in results.items():
            if code == codes.NONE:
                continue
            if self._common(code, now_ms):
                return code in _LOST_COORDINATOR
            if code in (
                codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                codes.INVALID_TXN_STATE,
                codes.INVALID_PRODUCER_ID_MAPPING,
            ):
                self._fail(error_for(code))
                return False
            if code == codes.UNKNOWN_PRODUCER_ID:
                self._abortable_if_possible(error_for(code))
                return False
            if code == codes.TRANSACTION_ABORTABLE:
                self._abortable(error_for(code))
                return False
            if code == codes.TOPIC_AUTHORIZATION_FAILED:
                unauthorized.append(partition.topic)
            else:
                refused.append(partition)
        if unauthorized:
            names = ", ".join(sorted(set(unauthorized)))
            self._abortable(error_for(codes.TOPIC_AUTHORIZATION_FAILED, f"Not authorized to access topics: [{names}]"))
        elif refused:
            causes = ", ".join(f"{partition}: {codes.error_name(results[partition])}" for partition in refused)
            self._abortable(error_for(codes.UNKNOWN_SERVER_ERROR, f"Not added to the transaction: {causes}."))
        else:
            self._partitions |= results.keys()
            self._new_partitions -= results.keys()
            self._started = True
            self._failures = 0
        return False

    def _on_offsets_added(self, response: AddOffsetsToTxnResponse, now_ms: int) -> bool:
        code = response.error_code
        if code == codes.NONE:
            self._started = True
            self._failures = 0
            if self._offsets is not None:
                self._groups.add(self._offsets.group.group_id)
            return False
        if self._common(code, now_ms):
            return code in _LOST_COORDINATOR
        if code == codes.UNKNOWN_PRODUCER_ID:
            self._abortable_if_possible(error_for(code))
        elif code in (codes.GROUP_AUTHORIZATION_FAILED, codes.TRANSACTION_ABORTABLE):
            self._abortable(error_for(code))
        else:
            self._fail(error_for(code))
        return False

    def _on_offsets_committed(self, response: TxnOffsetCommitResponse, now_ms: int) -> bool:
        pending = self._offsets
        if pending is None or pending.operation.done:
            return False
        again: int | None = None
        lost = False
        for topic in response.topics:
            for row in topic.partitions:
                code = row.error_code
                if code == codes.NONE:
                    pending.offsets.pop(TopicPartition(topic.name, row.partition_index), None)
                elif code in _LOST_COORDINATOR or code == codes.REQUEST_TIMED_OUT:
                    lost, again = True, code
                elif codes.error_row(code).retriable:
                    again = code
                else:
                    self._on_offset_refused(code)
                    return False
        if again is not None:
            self._retry(again, now_ms)
        elif not pending.offsets:
            self._failures = 0
            pending.operation.finish()
        else:
            self._fail(
                error_for(codes.UNKNOWN_SERVER_ERROR, "The group's coordinator left offsets out of its response.")
            )
        return lost

    def _on_offset_refused(self, code: int) -> None:
        if code in (codes.GROUP_AUTHORIZATION_FAILED, codes.FENCED_INSTANCE_ID, codes.TRANSACTION_ABORTABLE):
            self._abortable(error_for(code))
        elif code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION):
            sentence = f"The consumer is not a member of the group any more: {codes.default_text(code)}"
            self._abortable(CommitFailedError(sentence, code))
        elif code in _FENCED:
            self._fail(_fenced(self.transactional_id))
        else:
            self._fail(error_for(code))

    def _on_end(self, response: EndTxnResponse, now_ms: int) -> bool:
        code = response.error_code
        if code == codes.NONE:
            self._ended = True
            self._failures = 0
            if response.producer_id != NO_PRODUCER_ID:
                self._set_producer(response.producer_id, response.producer_epoch)
                self._bump_required = False
            elif not self.version_2 and self._features_level() >= 2:
                # The next transaction is of version 2: nothing late of this one may look as if it belonged to it.
                self._bump_required = True
            if self._bump_required:
                return False  # InitProducerId follows
            self._complete()
            return False
        if self._common(code, now_ms):
            return code in _LOST_COORDINATOR
        if code == codes.UNKNOWN_PRODUCER_ID:
            self._abortable_if_possible(error_for(code), even_aborting=True)
        elif code == codes.TRANSACTION_ABORTABLE and self.state is State.COMMITTING:
            self._abortable(error_for(code))
        else:
            self._fail(error_for(code))
        return False

    def _common(self, code: int, now_ms: int) -> bool:
        """What every request to the transaction coordinator may get as a response; True if that was it."""
        if code in _LOST_COORDINATOR or codes.error_row(code).retriable:
            self._retry(code, now_ms)
            return True
        if code in _FENCED:
            self._fail(_fenced(self.transactional_id))
            return True
        return False

    # Transitions

    def _move_to(self, state: State) -> None:
        """The only place that changes the state."""
        assert state in SUCCESSORS[self.state], f"{self.transactional_id} cannot go from {self.state} to {state}"
        self.state = state

    def _features_level(self) -> int:
        return self._features.levels.get(TRANSACTION_VERSION, 0)

    def _set_producer(self, producer_id: int, producer_epoch: int) -> None:
        if (producer_id, producer_epoch) != (self.producer_id, self.producer_epoch):
            self.producer_id = producer_id
            self.producer_epoch = producer_epoch
            self.incarnation += 1

    def _retry(self, code: int, now_ms: int) -> None:
        self._failures += 1
        concurrent = code == codes.CONCURRENT_TRANSACTIONS
        delay_ms = CONCURRENT_BACKOFF_MS if concurrent else self._backoff.delay_ms(self._failures)
        self._not_before_ms = now_ms + delay_ms

    def _complete(self) -> None:
        self._partitions.clear()
        self._new_partitions.clear()
        self._groups.clear()
        self._offsets = None
        self._without_response = None
        self._started = False
        self._ended = False
        self.prepared = None
        self._finish(State.READY)

    def _finish(self, state: State, error: ClientError | None = None) -> None:
        self._move_to(state)
        self._failures = 0
        self._not_before_ms = 0
        if self._operation is not None:
            self._operation.finish(error)

    def _abortable_if_possible(self, error: ClientError, even_aborting: bool = False) -> None:
        if even_aborting and self.state is State.ABORTING:
            # The coordinator does not know the producer: nothing is open there, and only a new epoch is missing.
            self._ended = True
            self._bump_required = True
            return
        self._abortable(error)

    def _abortable(self, error: ClientError) -> None:
        """The transaction can only be aborted now."""
        if self.state in (State.ABORTING, State.FATAL_ERROR):
            return
        if not self.version_2:
            self._bump_required = True
        self._move_to(State.ABORTABLE_ERROR)
        self.error = error
        self._not_before_ms = 0
        self._end_calls(abortable(error))

    def _fail(self, error: ClientError) -> None:
        """The producer is of no further use."""
        if self.state is State.FATAL_ERROR:
            return
        self._move_to(State.FATAL_ERROR)
        self.error = error
        self._end_calls(error)

    def _end_calls(self, error: ClientError) -> None:
        self._new_partitions.clear()
        if self._offsets is not None:
            self._offsets.operation.finish(error)
        if self._operation is not None:
            self._operation.finish(error)


def abortable(error: ClientError) -> ClientError:
    """What the user is told while a transaction can only be aborted; the error that led there is its cause."""
    if error.code == codes.TRANSACTION_ABORTABLE:
        return error
    told = error_for(codes.TRANSACTION_ABORTABLE, f"The transaction can only be aborted: {error.message}")
    told.__cause__ = error
    return told


def _fenced(transactional_id: str) -> ClientError:
    sentence = f"Another producer with transactional.id {transactional_id} has taken this one's place."
    return error_for(codes.PRODUCER_FENCED, sentence)


def _request(
    message: Message, response_class: object, group_id: str | None = None, highest: int | None = None
) -> TransactionRequest:
    return TransactionRequest(message, cast("type[Message]", response_class), group_id, highest)
