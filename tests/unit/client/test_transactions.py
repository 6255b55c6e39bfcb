"""A producer's transactions: every state, every request, every error code at each step, for both versions."""

from __future__ import annotations

from typing import Any

import pytest

from moldau.client.connection.backoff import Backoff
from moldau.client.connection.wire import Features
from moldau.client.errors import Category, ClientError, CommitFailedError, TransactionCallError, error_for
from moldau.client.produce.transaction_states import SUCCESSORS, State
from moldau.client.produce.transactions import CONCURRENT_BACKOFF_MS, Operation, TransactionManager, TransactionRequest
from moldau.client.results import ConsumerGroupMetadata, OffsetAndMetadata, PreparedTransaction, TopicPartition
from moldau.protocol import errors as codes
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from moldau.protocol.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from moldau.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.end_txn_response import EndTxnResponse
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from moldau.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.protocol.primitives import Message

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)
GROUP = ConsumerGroupMetadata("g", 3, "m")


class World:
    """A manager with a clock and a coordinator that answers as it is told."""

    def __init__(self, version: int = 2, two_phase: bool = False) -> None:
        self.manager = TransactionManager("x", 60_000, two_phase, Backoff(100, 1_000, lambda: 0.5))
        self.features = Features(1, {"transaction.version": version} if version else {})
        self.now_ms = 0
        self.epoch = 0
        self.batches_left = False

    def next(self, kind: type[Message]) -> TransactionRequest:
        """The request that must come now, after whatever pause."""
        deadline = self.manager.next_deadline_ms()
        assert deadline is not None
        self.now_ms = max(self.now_ms, deadline)
        request = self.manager.next_request(self.now_ms, self.batches_left)
        assert request is not None and isinstance(request.message, kind), request
        assert self.manager.next_request(self.now_ms, self.batches_left) is None, "one at a time"
        return request

    def idle(self) -> bool:
        return self.manager.next_request(self.now_ms, self.batches_left) is None

    def answer(self, request: TransactionRequest, answer: Message) -> bool:
        return self.manager.on_response(request, answer, self.features, self.now_ms)

    def ready(self) -> World:
        done = self.manager.init()
        self.answer(self.next(InitProducerIdRequest), InitProducerIdResponse(producer_id=7, producer_epoch=0))
        self.ended(done)
        return self

    def begun(self) -> World:
        self.manager.begin()
        return self

    def with_partition(self) -> World:
        self.manager.add_partitions([FIRST])
        if not self.manager.version_2:
            self.answer(self.next(AddPartitionsToTxnRequest), partitions_answer(0))
        assert self.manager.may_send(FIRST)
        return self

    def ended(self, operation: Operation) -> None:
        assert operation.done and operation.error is None, operation.error
        self.manager.forget_operation(operation)

    def failed(self, operation: Operation) -> ClientError:
        assert operation.done and operation.error is not None
        self.manager.forget_operation(operation)
        return operation.error

    def end(self, operation: Operation) -> None:
        """Answers EndTxn, and InitProducerId where the epoch must be raised by it."""
        request = self.next(EndTxnRequest)
        if self.manager.version_2:
            self.epoch += 1
            self.answer(request, EndTxnResponse(producer_id=7, producer_epoch=self.epoch))
        else:
            self.answer(request, EndTxnResponse())
            if not operation.done:
                self.epoch += 1
                bump = self.next(InitProducerIdRequest)
                self.answer(bump, InitProducerIdResponse(producer_id=7, producer_epoch=self.epoch))
        self.ended(operation)


def partitions_answer(*results: int) -> AddPartitionsToTxnResponse:
    rows = [AddPartitionsToTxnPartitionResult(index, code) for index, code in enumerate(results)]
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[AddPartitionsToTxnTopicResult("t", rows)])


def offsets_answer(*results: int) -> TxnOffsetCommitResponse:
    rows = [TxnOffsetCommitResponsePartition(index, code) for index, code in enumerate(results)]
    return TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic("t", rows)])


@pytest.fixture(params=[0, 1, 2])
def version(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def test_a_transaction_from_begin_to_commit(version: int) -> None:
    world = World(version).ready().begun()
    manager = world.manager
    manager.add_partitions([SECOND, FIRST])
    if version < 2:
        assert not manager.may_send(FIRST)
        request = world.next(AddPartitionsToTxnRequest)
        message: Any = request.message
        assert request.highest_version == 3 and message.v3_and_below_topics[0].partitions == [0, 1]
        world.answer(request, partitions_answer(0, 0))
    assert manager.may_send(FIRST) and manager.may_send(SECOND) and world.idle()
    done = manager.commit()
    world.batches_left = True
    assert world.idle()
    world.batches_left = False
    ending = world.next(EndTxnRequest)
    message = ending.message
    assert message.committed and (message.producer_id, message.producer_epoch) == (7, 0)
    assert ending.highest_version == (None if version == 2 else 4)
    before = manager.incarnation
    new = EndTxnResponse(producer_id=7, producer_epoch=1) if version == 2 else EndTxnResponse()
    world.answer(ending, new)
    world.ended(done)
    assert manager.state is State.READY
    # Version 2: every transaction has its own epoch, in which sequence numbers begin again; version 1 goes on.
    assert (manager.producer_epoch, manager.incarnation - before) == ((1, 1) if version == 2 else (0, 0))
    manager.begin()
    assert not manager.may_send(FIRST)


def test_offsets_are_committed_with_the_transaction(version: int) -> None:
    world = World(version).ready().begun()
    sent = world.manager.send_offsets({FIRST: 5, SECOND: OffsetAndMetadata(9, 2, "note")}, GROUP)
    if version < 2:
        adding = world.next(AddOffsetsToTxnRequest)
        assert adding.group_id is None and adding.message.group_id == "g"  # type: ignore[attr-defined]
        world.answer(adding, AddOffsetsToTxnResponse())
    commit = world.next(TxnOffsetCommitRequest)
    message: Any = commit.message
    assert commit.group_id == "g" and commit.highest_version == (None if version == 2 else 4)
    assert (message.generation_id, message.member_id, message.group_instance_id) == (3, "m", None)
    rows = [
        (row.partition_index, row.committed_offset, row.committed_leader_epoch) for row in message.topics[0].partitions
    ]
    assert rows == [(0, 5, -1), (1, 9, 2)]
    # One of them is to be tried again: only that one is, and the call goes on waiting.
    world.answer(commit, offsets_answer(0, codes.COORDINATOR_LOAD_IN_PROGRESS))
    assert not sent.done
    again: Any = world.next(TxnOffsetCommitRequest)
    assert [row.partition_index for row in again.message.topics[0].partitions] == [1]
    world.answer(
        again,
        TxnOffsetCommitResponse(topics=[TxnOffsetCommitResponseTopic("t", [TxnOffsetCommitResponsePartition(1, 0)])]),
    )
    world.ended(sent)
    world.end(world.manager.commit())


def test_a_transaction_that_touched_nothing_needs_no_request(version: int) -> None:
    world = World(version).ready()
    for ending in ("commit", "abort"):
        world.manager.begin()
        done = getattr(world.manager, ending)()
        assert world.idle()
        world.ended(done)
    assert world.manager.state is State.READY


def test_calls_out_of_turn_are_refused_and_change_nothing(version: int) -> None:
    world = World(version)
    manager = world.manager
    for call in (manager.begin, manager.commit, manager.abort, manager.check_sending):
        with pytest.raises(TransactionCallError, match="init_transactions"):
            call()
    world.ready()
    for call in (manager.commit, manager.abort, manager.check_sending):
        with pytest.raises(TransactionCallError, match="begin_transaction"):
            call()
    with pytest.raises(TransactionCallError):
        manager.init()
    manager.begin()
    with pytest.raises(TransactionCallError):
        manager.begin()
    with pytest.raises(ValueError, match="member id"):
        manager.send_offsets({FIRST: 1}, ConsumerGroupMetadata("g", 3, ""))
    with pytest.raises(ValueError, match="group id"):
        manager.send_offsets({FIRST: 1}, ConsumerGroupMetadata(""))
    assert manager.state is State.IN_TRANSACTION


def test_a_call_that_was_given_up_is_waited_for_by_calling_it_again(version: int) -> None:
    world = World(version).ready().begun().with_partition()
    first = world.manager.commit()
    assert world.manager.commit() is first
    for other in (world.manager.abort, world.manager.begin, world.manager.check_sending):
        with pytest.raises(TransactionCallError, match="commit_transaction"):
            other()
    world.end(first)
    world.manager.begin()


# What a coordinator may answer at each step. "again": the same request after a pause; "lost": the coordinator is looked
# for before; "abort": the transaction can only be aborted; "fatal": the producer is of no further use.
AGAIN = (codes.COORDINATOR_LOAD_IN_PROGRESS, codes.CONCURRENT_TRANSACTIONS)
LOST = (codes.NOT_COORDINATOR, codes.COORDINATOR_NOT_AVAILABLE)
FENCED = (codes.INVALID_PRODUCER_EPOCH, codes.PRODUCER_FENCED)
OUTCOMES: dict[str, dict[str, tuple[int, ...]]] = {
    "init": {
        "again": AGAIN,
        "lost": LOST,
        "refused": (
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.CLUSTER_AUTHORIZATION_FAILED,
            codes.TRANSACTION_ABORTABLE,
        ),
        "fatal": (*FENCED, codes.INVALID_TRANSACTION_TIMEOUT, codes.INVALID_REQUEST, codes.UNKNOWN_SERVER_ERROR),
    },
    "partitions": {
        "again": (*AGAIN, codes.UNKNOWN_TOPIC_OR_PARTITION),
        "lost": LOST,
        "abort": (
            codes.TOPIC_AUTHORIZATION_FAILED,
            codes.OPERATION_NOT_ATTEMPTED,
            codes.UNKNOWN_PRODUCER_ID,
            codes.TRANSACTION_ABORTABLE,
            codes.UNKNOWN_SERVER_ERROR,
        ),
        "fatal": (
            *FENCED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.INVALID_TXN_STATE,
            codes.INVALID_PRODUCER_ID_MAPPING,
        ),
    },
    "group": {
        "again": AGAIN,
        "lost": LOST,
        "abort": (codes.UNKNOWN_PRODUCER_ID, codes.GROUP_AUTHORIZATION_FAILED, codes.TRANSACTION_ABORTABLE),
        "fatal": (
            *FENCED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.INVALID_TXN_STATE,
            codes.INVALID_PRODUCER_ID_MAPPING,
            codes.UNKNOWN_SERVER_ERROR,
        ),
    },
    "offsets": {
        "again": (*AGAIN, codes.UNKNOWN_TOPIC_OR_PARTITION),
        "lost": (*LOST, codes.REQUEST_TIMED_OUT),
        "abort": (
            codes.GROUP_AUTHORIZATION_FAILED,
            codes.FENCED_INSTANCE_ID,
            codes.TRANSACTION_ABORTABLE,
            codes.UNKNOWN_MEMBER_ID,
            codes.ILLEGAL_GENERATION,
        ),
        "fatal": (
            *FENCED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            codes.OFFSET_METADATA_TOO_LARGE,
            codes.UNKNOWN_SERVER_ERROR,
        ),
    },
    "commit": {
        "again": AGAIN,
        "lost": LOST,
        "abort": (codes.UNKNOWN_PRODUCER_ID, codes.TRANSACTION_ABORTABLE),
        "fatal": (
            *FENCED,
            codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            codes.INVALID_TXN_STATE,
            codes.INVALID_PRODUCER_ID_MAPPING,
            codes.UNKNOWN_SERVER_ERROR,
        ),
    },
}
CASES = [
    (step, outcome, code, version)
    for step, outcomes in OUTCOMES.items()
    for outcome, answers in outcomes.items()
    for code in answers
    for version in ((1, 2) if step not in ("partitions", "group") else (1,))
]


def bring_to(step: str, version: int) -> tuple[World, TransactionRequest, Operation | None, Message]:
    """A world whose next answer is that of the step, and the answer with its error code to be filled in."""
    world = World(version)
    operation: Operation | None = None
    if step == "init":
        operation = world.manager.init()
        return world, world.next(InitProducerIdRequest), operation, InitProducerIdResponse()
    world.ready().begun()
    if step == "partitions":
        world.manager.add_partitions([FIRST])
        return world, world.next(AddPartitionsToTxnRequest), None, partitions_answer(0)
    if step in ("group", "offsets"):
        operation = world.manager.send_offsets({FIRST: 5}, GROUP)
        if step == "group":
            return world, world.next(AddOffsetsToTxnRequest), operation, AddOffsetsToTxnResponse()
        if version < 2:
            world.answer(world.next(AddOffsetsToTxnRequest), AddOffsetsToTxnResponse())
        return world, world.next(TxnOffsetCommitRequest), operation, offsets_answer(0)
    world.with_partition()
    operation = world.manager.commit()
    return world, world.next(EndTxnRequest), operation, EndTxnResponse()


def refuse(answer: Any, code: int) -> Message:
    if isinstance(answer, AddPartitionsToTxnResponse):
        return partitions_answer(code)
    if isinstance(answer, TxnOffsetCommitResponse):
        return offsets_answer(code)
    answer.error_code = code
    message: Message = answer
    return message


@pytest.mark.parametrize(
    ("step", "outcome", "code", "version"), CASES, ids=[f"{s}-{codes.error_name(c)}-tv{v}" for s, _, c, v in CASES]
)
def test_each_error_at_each_step(step: str, outcome: str, code: int, version: int) -> None:
    world, request, operation, answer = bring_to(step, version)
    manager = world.manager
    lost = world.answer(request, refuse(answer, code))
    assert lost is (outcome == "lost")
    if outcome in ("again", "lost"):
        assert manager.error is None and (operation is None or not operation.done)
        pause = manager.next_deadline_ms()
        assert pause is not None and pause > world.now_ms and world.idle()
        if code == codes.CONCURRENT_TRANSACTIONS:
            assert pause - world.now_ms == CONCURRENT_BACKOFF_MS
        assert world.next(type(request.message)).message.__class__ is request.message.__class__
    elif outcome == "refused":
        assert operation is not None and world.failed(operation).code == code
        assert manager.state is State.UNINITIALIZED
        world.ready()  # once the permission is there
    elif outcome == "abort":
        check_abortable(world, operation, code, version)
    else:
        assert manager.state is State.FATAL_ERROR
        wanted = codes.PRODUCER_FENCED if code in FENCED else code
        assert manager.error is not None and manager.error.code == wanted
        if operation is not None:
            assert world.failed(operation).code == wanted
        for call in (manager.begin, manager.commit, manager.abort, manager.check_sending):
            with pytest.raises(ClientError) as raised:
                call()
            assert raised.value.code == wanted
        assert manager.next_deadline_ms() is None and world.idle()


def check_abortable(world: World, operation: Operation | None, code: int, version: int) -> None:
    manager = world.manager
    state: object = manager.state
    assert state is State.ABORTABLE_ERROR
    if operation is not None:
        told = world.failed(operation)
        assert told.category is Category.ABORTABLE
        cause = told.__cause__ or told
        assert isinstance(cause, ClientError) and cause.code == code
        if code in (codes.UNKNOWN_MEMBER_ID, codes.ILLEGAL_GENERATION):
            assert isinstance(cause, CommitFailedError)
    for call in (manager.begin, manager.commit, manager.check_sending):
        with pytest.raises(ClientError) as raised:
            call()
        assert raised.value.category is Category.ABORTABLE
    assert world.idle()
    before = manager.incarnation
    done = manager.abort()
    if manager.next_request(world.now_ms, False) is None:
        raise AssertionError("an abort after an error raises the epoch, whatever the coordinator knows")
    manager.withdraw()
    if step_started(manager):
        world.end(done)
    else:
        world.answer(world.next(InitProducerIdRequest), InitProducerIdResponse(producer_id=7, producer_epoch=1))
        world.ended(done)
    assert manager.state is State.READY and manager.error is None and manager.incarnation == before + 1
    manager.begin()


def step_started(manager: TransactionManager) -> bool:
    return manager._started


@pytest.mark.parametrize("code", [codes.TRANSACTION_ABORTABLE, codes.INVALID_TXN_STATE, *FENCED])
def test_an_abort_that_is_refused_is_the_end(code: int, version: int) -> None:
    world = World(version).ready().begun().with_partition()
    done = world.manager.abort()
    world.answer(world.next(EndTxnRequest), EndTxnResponse(error_code=code))
    assert world.manager.state is State.FATAL_ERROR and world.failed(done)


@pytest.mark.parametrize(
    ("code", "fatal"),
    [
        (codes.PRODUCER_FENCED, True),
        (codes.CLUSTER_AUTHORIZATION_FAILED, True),
        (codes.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, True),
        (codes.UNSUPPORTED_VERSION, True),
        (codes.INVALID_PRODUCER_ID_MAPPING, True),
        (codes.INVALID_PRODUCER_EPOCH, False),
        (codes.OUT_OF_ORDER_SEQUENCE_NUMBER, False),
        (codes.UNKNOWN_PRODUCER_ID, False),
        (codes.MESSAGE_TOO_LARGE, False),
        (codes.TOPIC_AUTHORIZATION_FAILED, False),
        (codes.INVALID_TXN_STATE, False),
        (codes.REQUEST_TIMED_OUT, False),
        (codes.TRANSACTION_ABORTABLE, False),
    ],
)
@pytest.mark.parametrize("committing", [False, True])
def test_a_batch_that_fails_ends_the_transaction_or_the_producer(
    code: int, fatal: bool, committing: bool, version: int
) -> None:
    world = World(version).ready().begun().with_partition()
    world.batches_left = True
    done = world.manager.commit() if committing else None
    world.manager.on_batch_failed(error_for(code))
    world.batches_left = False
    if done is not None:
        error = world.failed(done)
        assert error.code == code if fatal else error.category is Category.ABORTABLE
    assert world.manager.state is (State.FATAL_ERROR if fatal else State.ABORTABLE_ERROR)
    if not fatal:
        before = world.manager.incarnation
        world.end(world.manager.abort())
        assert world.manager.incarnation == before + 1  # what was sent and may arrive late must not count


def test_a_lost_answer_is_asked_for_again(version: int) -> None:
    world = World(version).ready().begun().with_partition()
    done = world.manager.commit()
    for _ in range(3):
        request = world.next(EndTxnRequest)
        world.manager.on_failure(request, error_for(codes.NETWORK_EXCEPTION), world.now_ms)
        assert not done.done and world.idle()
    world.end(done)


def test_a_request_that_the_broker_does_not_have_is_the_end() -> None:
    world = World(2, two_phase=True)
    done = world.manager.init()
    world.manager.on_failure(world.next(InitProducerIdRequest), error_for(codes.UNSUPPORTED_VERSION), 0)
    assert world.failed(done).code == codes.UNSUPPORTED_VERSION


def test_abort_gives_up_what_was_to_be_added(version: int) -> None:
    world = World(version).ready().begun().with_partition()
    sent = world.manager.send_offsets({FIRST: 1}, GROUP)
    world.manager.add_partitions([SECOND])
    done = world.manager.abort()
    assert world.failed(sent).category is Category.ABORTABLE
    assert world.manager.dropping is not None
    world.end(done)


@pytest.mark.parametrize("adding", ["partitions", "offsets"])
@pytest.mark.parametrize("answered", [True, False])
def test_an_abort_ends_what_an_unanswered_addition_may_have_begun(adding: str, answered: bool) -> None:
    """Version 1: the coordinator may have opened the transaction, so it is asked again before EndTxn."""
    world = World(1).ready().begun()
    manager = world.manager
    kind: type[Message] = AddPartitionsToTxnRequest
    if adding == "partitions":
        manager.add_partitions([FIRST])
    else:
        manager.send_offsets({FIRST: 1}, GROUP)
        kind = AddOffsetsToTxnRequest
    request = world.next(kind)
    done = manager.abort()
    manager.on_failure(request, error_for(codes.NETWORK_EXCEPTION), world.now_ms)
    again = world.next(kind)
    assert again.message == request.message
    if not answered:
        manager.on_failure(again, error_for(codes.REQUEST_TIMED_OUT), world.now_ms)
        again = world.next(kind)
    assert not done.done
    world.answer(again, partitions_answer(0) if adding == "partitions" else AddOffsetsToTxnResponse())
    ending: Any = world.next(EndTxnRequest)
    assert not ending.message.committed
    world.answer(ending, EndTxnResponse())
    world.ended(done)
    # The next transaction begins with nothing.
    world.begun()
    assert not manager.may_send(FIRST)
    done = manager.abort()
    assert world.idle()
    world.ended(done)


def test_an_unanswered_addition_that_turns_out_to_be_refused_leaves_nothing_to_end() -> None:
    world = World(1).ready().begun()
    world.manager.add_partitions([FIRST])
    request = world.next(AddPartitionsToTxnRequest)
    world.manager.on_failure(request, error_for(codes.NETWORK_EXCEPTION), world.now_ms)
    done = world.manager.abort()
    world.answer(world.next(AddPartitionsToTxnRequest), partitions_answer(codes.TOPIC_AUTHORIZATION_FAILED))
    assert world.idle()
    world.ended(done)


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_offsets_whose_answer_was_lost_cannot_count_for_the_next_transaction(version: int, ending: str) -> None:
    world = World(version).ready().begun().with_partition()
    sent = world.manager.send_offsets({FIRST: 1}, GROUP)
    if version < 2:
        world.answer(world.next(AddOffsetsToTxnRequest), AddOffsetsToTxnResponse())
    world.manager.on_failure(world.next(TxnOffsetCommitRequest), error_for(codes.REQUEST_TIMED_OUT), world.now_ms)
    if ending == "commit":
        world.answer(world.next(TxnOffsetCommitRequest), offsets_answer(0))
        world.ended(sent)
    before = world.manager.incarnation
    world.end(getattr(world.manager, ending)())
    assert world.manager.incarnation == before + 1


def test_the_version_of_transactions_changes_between_two_of_them() -> None:
    world = World(1).ready().begun().with_partition()
    world.features = Features(2, {"transaction.version": 2})
    done = world.manager.commit()
    world.answer(world.next(EndTxnRequest), EndTxnResponse())
    assert not done.done
    bump: Any = world.next(InitProducerIdRequest).message
    assert (bump.producer_id, bump.producer_epoch) == (7, 0)
    world.answer(
        TransactionRequest(bump, InitProducerIdResponse), InitProducerIdResponse(producer_id=7, producer_epoch=1)
    )
    world.ended(done)
    world.manager.begin()
    assert world.manager.version_2
    # Older knowledge, from a broker that lags behind, does not count.
    world.features = Features(1, {"transaction.version": 1})
    world.with_partition()
    world.end(world.manager.commit())
    world.manager.begin()
    assert world.manager.version_2


def test_two_phases() -> None:
    world = World(2, two_phase=True)
    manager = world.manager
    done = manager.init()
    request = world.next(InitProducerIdRequest)
    message: Any = request.message
    assert message.enable2_pc and not message.keep_prepared_txn and message.transaction_timeout_ms == 0x7FFFFFFF
    world.answer(request, InitProducerIdResponse(producer_id=7, producer_epoch=0))
    world.ended(done)
    for given, committed in ((PreparedTransaction(7, 0), True), (PreparedTransaction(7, 0), False)):
        manager.begin()
        world.with_partition()
        prepared = manager.prepare()
        assert prepared == PreparedTransaction(7, 0 if committed else 1)
        assert PreparedTransaction.parse(str(prepared)) == prepared
        for call in (manager.begin, manager.check_sending, manager.prepare):
            with pytest.raises(TransactionCallError, match="prepared"):
                call()
        done = manager.complete(given)
        ending: Any = world.next(EndTxnRequest)
        assert ending.message.committed is committed
        world.epoch += 1
        world.answer(ending, EndTxnResponse(producer_id=7, producer_epoch=world.epoch))
        world.ended(done)


@pytest.mark.parametrize("decided", [True, False])
def test_a_prepared_transaction_is_completed_by_the_next_producer(decided: bool) -> None:
    world = World(2, two_phase=True)
    done = world.manager.init(keep_prepared=True)
    request = world.next(InitProducerIdRequest)
    assert request.highest_version == 6 and request.message.keep_prepared_txn  # type: ignore[attr-defined]
    answer = InitProducerIdResponse(
        producer_id=7, producer_epoch=5, ongoing_txn_producer_id=7, ongoing_txn_producer_epoch=3
    )
    world.answer(request, answer)
    world.ended(done)
    assert world.manager.state is State.PREPARED and world.manager.prepared == PreparedTransaction(7, 3)
    done = world.manager.complete(PreparedTransaction(7, 3 if decided else 2))
    ending: Any = world.next(EndTxnRequest)
    assert ending.message.committed is decided and ending.message.producer_epoch == 5


def test_a_transaction_is_not_prepared_while_its_offsets_are_on_their_way() -> None:
    """A send_offsets_to_transaction() that timed out goes on: what is prepared now would be committed without it."""
    world = World(2, two_phase=True).ready().begun().with_partition()
    world.manager.send_offsets({FIRST: 1}, GROUP)
    with pytest.raises(TransactionCallError, match="send_offsets_to_transaction"):
        world.manager.prepare()
    assert world.manager.state is State.IN_TRANSACTION
    world.answer(world.next(TxnOffsetCommitRequest), offsets_answer(0))
    assert world.manager.prepare() == PreparedTransaction(7, 0)


def test_two_phases_must_be_switched_on() -> None:
    world = World(2)
    with pytest.raises(TransactionCallError, match=r"two\.phase"):
        world.manager.init(keep_prepared=True)
    world.ready().begun()
    with pytest.raises(TransactionCallError, match=r"two\.phase"):
        world.manager.prepare()


# The classes of Java's exceptions (4.3.1), as `javap` shows their ancestors.
CATEGORIES = {
    Category.RETRIABLE: "CONCURRENT_TRANSACTIONS COORDINATOR_LOAD_IN_PROGRESS NOT_ENOUGH_REPLICAS"
    " NOT_ENOUGH_REPLICAS_AFTER_APPEND REQUEST_TIMED_OUT CORRUPT_MESSAGE UNSTABLE_OFFSET_COMMIT NOT_CONTROLLER"
    " THROTTLING_QUOTA_EXCEEDED UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE",
    Category.REFRESH_RETRIABLE: "NOT_LEADER_OR_FOLLOWER LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION"
    " UNKNOWN_TOPIC_ID NOT_COORDINATOR COORDINATOR_NOT_AVAILABLE FENCED_LEADER_EPOCH KAFKA_STORAGE_ERROR"
    " NETWORK_EXCEPTION INCONSISTENT_TOPIC_ID LISTENER_NOT_FOUND REPLICA_NOT_AVAILABLE",
    Category.ABORTABLE: "TRANSACTION_ABORTABLE",
    Category.APPLICATION_RECOVERABLE: "PRODUCER_FENCED INVALID_PRODUCER_EPOCH INVALID_PRODUCER_ID_MAPPING"
    " FENCED_INSTANCE_ID ILLEGAL_GENERATION UNKNOWN_MEMBER_ID",
    Category.INVALID_CONFIGURATION: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED CLUSTER_AUTHORIZATION_FAILED"
    " TOPIC_AUTHORIZATION_FAILED GROUP_AUTHORIZATION_FAILED UNSUPPORTED_VERSION INVALID_REQUIRED_ACKS"
    " RECORD_LIST_TOO_LARGE UNSUPPORTED_FOR_MESSAGE_FORMAT INVALID_REPLICATION_FACTOR INVALID_TOPIC_EXCEPTION"
    " INVALID_CONFIG INVALID_RECORD"
    " SASL_AUTHENTICATION_FAILED UNSUPPORTED_SASL_MECHANISM ILLEGAL_SASL_STATE"
    " DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    None: "INVALID_TXN_STATE INVALID_TRANSACTION_TIMEOUT OUT_OF_ORDER_SEQUENCE_NUMBER UNKNOWN_PRODUCER_ID"
    " MESSAGE_TOO_LARGE UNKNOWN_SERVER_ERROR TRANSACTIONAL_ID_NOT_FOUND DUPLICATE_SEQUENCE_NUMBER",
}


@pytest.mark.parametrize("category", CATEGORIES, ids=str)
def test_errors_have_the_categories_of_the_java_client(category: Category | None) -> None:
    names = CATEGORIES[category].split()
    assert {name: error_for(getattr(codes, name)).category for name in names} == dict.fromkeys(names, category)


def test_states_follow_each_other_by_the_table() -> None:
    assert set(SUCCESSORS) == set(State)
    world = World()
    with pytest.raises(AssertionError, match="cannot go from"):
        world.manager._move_to(State.COMMITTING)
