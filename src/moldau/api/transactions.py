"""InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn, EndTxn, WriteTxnMarkers; which transactions there are.

InitProducerId 0-5: 3 says who asks (KIP-360), 4 knows PRODUCER_FENCED; 6 is KIP-939. AddPartitionsToTxn 0-3 is what
clients send; from 4 on brokers ask for many transactions at once, to add partitions or to verify them (KIP-890).
AddOffsetsToTxn 0-4. EndTxn 0-5: 5 raises the epoch and tells it. WriteTxnMarkers 1-2. DescribeTransactions 0,
ListTransactions 0-2: 1 filters by duration, 2 by a pattern. Below version 2 (4 of InitProducerId) clients do not know
PRODUCER_FENCED and get INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moldau.api.authorize import (
    check_group,
    check_transactional_id,
    denied_topics,
    may,
    may_any,
    may_cluster,
)
from moldau.api.call import Call
from moldau.api.coordinators import Gathering, as_client_sees, responder
from moldau.coordinator.group.topic_regex import TopicRegex
from moldau.coordinator.group.topic_regex_syntax import InvalidRegex
from moldau.coordinator.outcome import Outcome
from moldau.coordinator.txn.end import end_transaction
from moldau.coordinator.txn.init_producer import init_producer_id
from moldau.coordinator.txn.inspection import ListFilter, describe, find
from moldau.coordinator.txn.machine import TransactionMachine
from moldau.coordinator.txn.partitions import add_partitions, find_missing
from moldau.coordinator.txn.state import TransactionShardState
from moldau.coordinator.txn.transaction import STATE_NAMES
from moldau.node.marker_writer import Marker, Results
from moldau.node.topic_names import is_internal
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import describe_transactions_response as described
from moldau.protocol.messages import list_transactions_response as listed
from moldau.protocol.messages import write_txn_markers_response as written
from moldau.protocol.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from moldau.protocol.messages.add_offsets_to_txn_response import AddOffsetsToTxnResponse
from moldau.protocol.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from moldau.protocol.messages.add_partitions_to_txn_response import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from moldau.protocol.messages.describe_transactions_request import DescribeTransactionsRequest
from moldau.protocol.messages.end_txn_request import EndTxnRequest
from moldau.protocol.messages.end_txn_response import EndTxnResponse
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse
from moldau.protocol.messages.list_transactions_request import ListTransactionsRequest
from moldau.protocol.messages.write_txn_markers_request import WriteTxnMarkersRequest
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import GROUP_TOPIC
from moldau.security.rights import (
    ALTER,
    CLUSTER_ACTION,
    DESCRIBE,
    IDEMPOTENT_WRITE,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    TWO_PHASE_COMMIT,
    WRITE,
)

FIRST_FENCED_VERSION: Final = 2
FIRST_FENCED_INIT_VERSION: Final = 4
FIRST_BATCHED_VERSION: Final = 4
FIRST_EPOCH_BUMP_VERSION: Final = 5


def code_for_client(error: KafkaError, version: int, first_fenced_version: int = FIRST_FENCED_VERSION) -> int:
    """The code of an error for a client of this version."""
    code = as_client_sees(error).code
    if code == errors.PRODUCER_FENCED and version < first_fenced_version:
        return errors.INVALID_PRODUCER_EPOCH
    return code


# InitProducerId


def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> None:
    def refuse(error: KafkaError) -> Message:
        code = code_for_client(error, call.version, FIRST_FENCED_INIT_VERSION)
        return InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1)

    try:
        check_producer(call, request)
    except KafkaError as error:
        call.respond(refuse(error))
        return
    if (request.producer_id == -1) != (request.producer_epoch == -1) or request.transactional_id == "":
        call.respond(refuse(KafkaError(errors.INVALID_REQUEST)))
        return
    if request.transactional_id is None:
        give_producer_id(call)
        return

    def decide(state: TransactionShardState, new_producer_id: int) -> Outcome:
        return init_producer_id(state, request, new_producer_id, call.now_ms)

    coordinator = call.node.coordinators.transactions
    coordinator.run_with_producer_id(request.transactional_id, decide, responder(call, refuse), call.now_ms)


def check_producer(call: Call, request: InitProducerIdRequest) -> None:
    """Who writes somewhere may do so idempotently; a transactional id is needed by name."""
    transactional_id = request.transactional_id
    if call.node.rights is None:
        return
    if transactional_id is not None:
        check_transactional_id(call, WRITE, transactional_id)
        if request.enable2_pc:
            check_transactional_id(call, TWO_PHASE_COMMIT, transactional_id)
    elif not may_cluster(call, IDEMPOTENT_WRITE, is_filter=True) and not may_any(call, WRITE, TOPIC):
        raise KafkaError(errors.CLUSTER_AUTHORIZATION_FAILED)


def give_producer_id(call: Call) -> None:
    """A producer without transactions: a fresh id with epoch 0."""

    def done(producer_id: int, error: int) -> None:
        epoch = 0 if error == 0 else -1
        call.respond(InitProducerIdResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch))

    call.node.producer_ids.next(call.now_ms, done)


# AddPartitionsToTxn


class Joining:
    """The partitions that one transaction asks for: those that exist are taken to the coordinator."""

    def __init__(self, call: Call, transaction: AddPartitionsToTxnTransaction) -> None:
        self._call = call
        self.transaction = transaction
        self.codes: dict[tuple[str, int], int] = {}
        by_name = call.node.image.topics_by_name
        known: list[tuple[str, int]] = []
        hidden = self._hidden_topics(transaction)
        for topic in transaction.topics:
            found = by_name.get(topic.name)
            for index in topic.partitions:
                if topic.name in hidden:
                    self.codes[(topic.name, index)] = errors.TOPIC_AUTHORIZATION_FAILED
                elif found is None or index not in found.partitions:
                    self.codes[(topic.name, index)] = errors.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    known.append((topic.name, index))
        self.partitions = frozenset(known)

    def _hidden_topics(self, transaction: AddPartitionsToTxnTransaction) -> set[str]:
        """What a client may not write to, internal topics in any case; brokers have asked their clients' rights."""
        if self._call.version >= FIRST_BATCHED_VERSION:
            return set()
        internal = {topic.name for topic in transaction.topics if is_internal(topic.name)}
        others = [topic.name for topic in transaction.topics for _ in topic.partitions if topic.name not in internal]
        return internal | denied_topics(self._call, WRITE, others)

    @property
    def is_refused(self) -> bool:
        """All or nothing: what exists is not added either when something does not."""
        return len(self.codes) > 0

    def decide(self, machine: TransactionMachine) -> Outcome:
        asked = self.transaction
        if not asked.transactional_id:
            raise KafkaError(errors.INVALID_REQUEST)
        if asked.verify_only:
            missing = find_missing(
                machine.state, asked.transactional_id, asked.producer_id, asked.producer_epoch, self.partitions
            )
            return Outcome(response=self.result(dict.fromkeys(missing, errors.TRANSACTION_ABORTABLE)))
        return add_partitions(
            machine.state,
            asked.transactional_id,
            producer_id=asked.producer_id,
            producer_epoch=asked.producer_epoch,
            partitions=self.partitions,
            client_version=2 if self._call.version >= FIRST_BATCHED_VERSION else 0,
            response=self.result({}),
            now_ms=self._call.now_ms,
        )

    def result(self, codes: dict[tuple[str, int], int]) -> AddPartitionsToTxnResult:
        rows = AddPartitionsToTxnResult(self.transaction.transactional_id)
        for topic in self.transaction.topics:
            row = AddPartitionsToTxnTopicResult(topic.name)
            rows.topic_results.append(row)
            for index in topic.partitions:
                code = codes.get((topic.name, index), errors.NONE)
                row.results_by_partition.append(AddPartitionsToTxnPartitionResult(index, code))
        return rows

    def refused(self) -> AddPartitionsToTxnResult:
        codes = dict.fromkeys(self.partitions, errors.OPERATION_NOT_ATTEMPTED)
        codes.update(self.codes)
        return self.result(codes)

    def failed(self, error: KafkaError) -> AddPartitionsToTxnResult:
        code = code_for_client(error, self._call.version)
        return self.result(dict.fromkeys(self.partitions, code))


def handle_add_partitions_to_txn(call: Call, request: AddPartitionsToTxnRequest) -> None:
    if call.version < FIRST_BATCHED_VERSION:
        asked = [only_transaction(request)]
        if not may(call, WRITE, TRANSACTIONAL_ID, asked[0].transactional_id):
            code = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            call.respond(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=failed_partitions(asked[0], code)))
            return
    else:
        asked = request.transactions
        if not may_cluster(call, CLUSTER_ACTION):
            call.respond(AddPartitionsToTxnResponse(error_code=errors.CLUSTER_AUTHORIZATION_FAILED))
            return
    joining = [Joining(call, transaction) for transaction in asked]

    def finish(results: list[Message | KafkaError]) -> None:
        rows: list[AddPartitionsToTxnResult] = []
        for one, result in zip(joining, results, strict=True):
            if one.is_refused:
                rows.append(one.refused())
            elif isinstance(result, KafkaError):
                rows.append(one.failed(result))
            else:
                assert isinstance(result, AddPartitionsToTxnResult)
                rows.append(result)
        if call.reply.done:
            return
        if call.version < FIRST_BATCHED_VERSION:
            call.respond(AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows[0].topic_results))
        else:
            call.respond(AddPartitionsToTxnResponse(results_by_transaction=rows))

    gathering = Gathering(len(joining), finish)
    coordinator = call.node.coordinators.transactions
    for number, one in enumerate(joining):
        if one.is_refused:
            gathering.fill(number, KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION))
        else:
            coordinator.run(one.transaction.transactional_id, one.decide, gathering.slot(number), call.now_ms)
    gathering.begin()


def failed_partitions(transaction: AddPartitionsToTxnTransaction, code: int) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name, [AddPartitionsToTxnPartitionResult(index, code) for index in topic.partitions]
        )
        for topic in transaction.topics
    ]


def only_transaction(request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnTransaction:
    """What clients ask, in the form of what brokers ask."""
    return AddPartitionsToTxnTransaction(
        request.v3_and_below_transactional_id,
        request.v3_and_below_producer_id,
        request.v3_and_below_producer_epoch,
        False,
        [AddPartitionsToTxnTopic(topic.name, topic.partitions) for topic in request.v3_and_below_topics],
    )


# AddOffsetsToTxn


def handle_add_offsets_to_txn(call: Call, request: AddOffsetsToTxnRequest) -> None:
    """The partition of __consumer_offsets that the group lives on joins the transaction."""
    place = (GROUP_TOPIC, call.node.coordinators.groups.partition_for(request.group_id))

    def refuse(error: KafkaError) -> Message:
        return AddOffsetsToTxnResponse(error_code=code_for_client(error, call.version))

    def decide(machine: TransactionMachine) -> Outcome:
        return add_partitions(
            machine.state,
            request.transactional_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            partitions=frozenset([place]),
            client_version=0,
            response=AddOffsetsToTxnResponse(),
            now_ms=call.now_ms,
        )

    try:
        check_transactional_id(call, WRITE, request.transactional_id)
        check_group(call, READ, request.group_id)
        if not request.transactional_id:
            raise KafkaError(errors.INVALID_REQUEST)
    except KafkaError as error:
        call.respond(refuse(error))
        return
    coordinator = call.node.coordinators.transactions
    coordinator.run(request.transactional_id, decide, responder(call, refuse), call.now_ms)


# EndTxn


def handle_end_txn(call: Call, request: EndTxnRequest) -> None:
    def refuse(error: KafkaError) -> Message:
        return EndTxnResponse(error_code=code_for_client(error, call.version), producer_id=-1, producer_epoch=-1)

    def decide(state: TransactionShardState, new_producer_id: int) -> Outcome:
        version = 2 if call.version >= FIRST_EPOCH_BUMP_VERSION else 1
        return end_transaction(state, request, version, new_producer_id, call.now_ms)

    try:
        check_transactional_id(call, WRITE, request.transactional_id)
        if not request.transactional_id:
            raise KafkaError(errors.INVALID_REQUEST)
    except KafkaError as error:
        call.respond(refuse(error))
        return
    coordinator = call.node.coordinators.transactions
    coordinator.run_with_producer_id(request.transactional_id, decide, responder(call, refuse), call.now_ms)


# WriteTxnMarkers


def refused_markers(request: WriteTxnMarkersRequest, code: int) -> written.WriteTxnMarkersResponse:
    response = written.WriteTxnMarkersResponse()
    for marker in request.markers:
        row = written.WritableTxnMarkerResult(marker.producer_id)
        response.markers.append(row)
        for topic in marker.topics:
            rows = [written.WritableTxnMarkerPartitionResult(index, code) for index in topic.partition_indexes]
            row.topics.append(written.WritableTxnMarkerTopicResult(topic.name, rows))
    return response


def handle_write_txn_markers(call: Call, request: WriteTxnMarkersRequest) -> None:
    # Coordinators write them, and administrators who end a transaction that hangs (KIP-664).
    if not may_cluster(call, ALTER, is_filter=True) and not may_cluster(call, CLUSTER_ACTION):
        call.respond(refused_markers(request, errors.CLUSTER_AUTHORIZATION_FAILED))
        return
    markers = [
        Marker(
            one.producer_id,
            one.producer_epoch,
            one.transaction_result,
            one.coordinator_epoch,
            one.transaction_version,
            [(topic.name, index) for topic in one.topics for index in dict.fromkeys(topic.partition_indexes)],
        )
        for one in request.markers
    ]

    def done(results: Results, now_ms: int) -> None:
        response = written.WriteTxnMarkersResponse()
        for marker, codes in zip(request.markers, results, strict=True):
            row = written.WritableTxnMarkerResult(marker.producer_id)
            response.markers.append(row)
            for topic in marker.topics:
                responses = [
                    written.WritableTxnMarkerPartitionResult(index, codes[(topic.name, index)])
                    for index in topic.partition_indexes
                ]
                row.topics.append(written.WritableTxnMarkerTopicResult(topic.name, responses))
        if not call.reply.done:
            call.respond(response)

    call.node.marker_writer.write(markers, done, call.now_ms)


# Inspection (KIP-664)


def handle_describe_transactions(call: Call, request: DescribeTransactionsRequest) -> None:
    ids = request.transactional_ids

    def finish(results: list[Message | KafkaError]) -> None:
        response = described.DescribeTransactionsResponse()
        for transactional_id, result in zip(ids, results, strict=True):
            if isinstance(result, KafkaError):
                code = as_client_sees(result).code
                response.transaction_states.append(described.TransactionState(code, transactional_id))
            else:
                assert isinstance(result, described.TransactionState)
                hidden = denied_topics(call, DESCRIBE, [topic.topic for topic in result.topics])
                if hidden:
                    result.topics = [topic for topic in result.topics if topic.topic not in hidden]
                response.transaction_states.append(result)
        if not call.reply.done:
            call.respond(response)

    def verb(transactional_id: str) -> Callable[[TransactionMachine], Outcome]:
        return lambda machine: Outcome(response=describe(machine.state, transactional_id))

    gathering = Gathering(len(ids), finish)
    coordinator = call.node.coordinators.transactions
    for number, transactional_id in enumerate(ids):
        if not may(call, DESCRIBE, TRANSACTIONAL_ID, transactional_id):
            gathering.fill(number, KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
        elif not transactional_id:
            gathering.fill(number, KafkaError(errors.INVALID_REQUEST))
        else:
            coordinator.run(transactional_id, verb(transactional_id), gathering.slot(number), call.now_ms)
    gathering.begin()


def handle_list_transactions(call: Call, request: ListTransactionsRequest) -> None:
    response = listed.ListTransactionsResponse()
    response.unknown_state_filters = [name for name in request.state_filters if name not in STATE_NAMES]
    states = {name for name in request.state_filters if name in STATE_NAMES}
    try:
        pattern = TopicRegex(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except InvalidRegex:
        call.respond(listed.ListTransactionsResponse(error_code=errors.INVALID_REGULAR_EXPRESSION))
        return
    if request.state_filters and not states:
        call.respond(response)
        return
    wanted = ListFilter(states, set(request.producer_id_filters), request.duration_filter, pattern)

    def finish(results: list[Message | KafkaError]) -> None:
        for result in results:
            if isinstance(result, KafkaError):
                if result.code == errors.COORDINATOR_LOAD_IN_PROGRESS:
                    response.error_code = result.code
                    response.transaction_states = []
                    break
            else:
                assert isinstance(result, listed.ListTransactionsResponse)
                response.transaction_states += result.transaction_states
        if call.node.rights is not None:
            response.transaction_states = [
                one
                for one in response.transaction_states
                if may(call, DESCRIBE, TRANSACTIONAL_ID, one.transactional_id)
            ]
        if not call.reply.done:
            call.respond(response)

    def verb(machine: TransactionMachine) -> Outcome:
        rows = find(machine.state, wanted, call.now_ms)
        return Outcome(response=listed.ListTransactionsResponse(transaction_states=rows))

    coordinator = call.node.coordinators.transactions
    shards = list(coordinator.runtime.shards)
    gathering = Gathering(len(shards), finish)
    for number, index in enumerate(shards):
        coordinator.run_at(index, verb, gathering.slot(number), call.now_ms)
    gathering.begin()
