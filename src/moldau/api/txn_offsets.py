"""TxnOffsetCommit: offsets that are committed with a transaction, or not at all.

Versions 0-5: 2 adds leader epochs, 3 says which member of which generation commits (KIP-447), 4 knows
TRANSACTION_ABORTABLE, 5 joins the transaction by itself (KIP-890). Before the group decides, the coordinator of the
transaction is asked, as for any first write of a transaction to a partition.
"""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import check_group, check_transactional_id, denied_topics
from moldau.api.call import Call
from moldau.api.coordinators import as_client_sees
from moldau.coordinator.group.machine import GroupMachine
from moldau.coordinator.outcome import Outcome
from moldau.node.txn_verification import Question
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.txn_offset_commit_request import TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic
from moldau.protocol.messages.txn_offset_commit_response import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from moldau.protocol.primitives import Message
from moldau.protocol.topic_names import GROUP_TOPIC
from moldau.replication.partition import Partition
from moldau.security.rights import READ, WRITE
from moldau.storage.log import Log
from moldau.storage.producer_state import VerificationGuard

FIRST_ABORTABLE_VERSION: Final = 4
FIRST_ADDING_VERSION: Final = 5
VERIFICATION_KEY: Final = "transaction.partition.verification.enable"
NO_SEQUENCE: Final = 0


def handle_txn_offset_commit(call: Call, request: TxnOffsetCommitRequest) -> None:
    refused: list[TxnOffsetCommitResponseTopic] = []
    accepted: list[TxnOffsetCommitRequestTopic] = []
    try:
        check_transactional_id(call, WRITE, request.transactional_id)
        check_group(call, READ, request.group_id)
    except KafkaError as error:
        call.respond(TxnOffsetCommitResponse(topics=[failed_topic(topic, error.code) for topic in request.topics]))
        return
    denied = denied_topics(call, READ, [topic.name for topic in request.topics for _ in topic.partitions])
    for topic in request.topics:
        if topic.name in denied:
            refused.append(failed_topic(topic, errors.TOPIC_AUTHORIZATION_FAILED))
            continue
        found = call.node.image.topics_by_name.get(topic.name)
        indexes = {} if found is None else found.partitions
        known = [one for one in topic.partitions if one.partition_index in indexes]
        unknown = [one.partition_index for one in topic.partitions if one.partition_index not in indexes]
        if unknown:
            code = errors.UNKNOWN_TOPIC_OR_PARTITION
            rows = [TxnOffsetCommitResponsePartition(index, code) for index in unknown]
            refused.append(TxnOffsetCommitResponseTopic(topic.name, rows))
        if known:
            accepted.append(TxnOffsetCommitRequestTopic(topic.name, known))
    request.topics = accepted
    if not accepted:
        call.respond(TxnOffsetCommitResponse(topics=refused))
        return
    TransactionalCommit(call, request, refused).start()


def failed_topic(topic: TxnOffsetCommitRequestTopic, code: int) -> TxnOffsetCommitResponseTopic:
    rows = [TxnOffsetCommitResponsePartition(one.partition_index, code) for one in topic.partitions]
    return TxnOffsetCommitResponseTopic(topic.name, rows)


class TransactionalCommit:
    """One commit on its way through both coordinators; `refused` holds the responses that are known before."""

    def __init__(
        self, call: Call, request: TxnOffsetCommitRequest, refused: list[TxnOffsetCommitResponseTopic]
    ) -> None:
        self._call = call
        self._request = request
        self._refused = refused
        self._index = call.node.coordinators.groups.partition_for(request.group_id)
        self._partition: Partition | None = None
        self._log: Log | None = None
        self._led_since_epoch = -1
        self._guard: VerificationGuard | None = None

    def start(self) -> None:
        call, request = self._call, self._request
        try:
            if not request.transactional_id or not request.group_id:
                raise KafkaError(errors.INVALID_GROUP_ID if request.transactional_id else errors.INVALID_REQUEST)
            call.node.coordinators.groups.runtime.find(self._index)
            partition = call.node.replicas.find(GROUP_TOPIC, self._index)
            if partition is None:
                raise KafkaError(errors.NOT_COORDINATOR)
            log = partition.check_leader(-1)
        except KafkaError as error:
            self.done(error)
            return
        adds = call.version >= FIRST_ADDING_VERSION
        verification = call.node.txn_verification
        is_asking = verification.is_asking(GROUP_TOPIC, self._index, request.producer_id)
        is_open = log.producers.has_open_transaction(request.producer_id, request.producer_epoch)
        if (is_open and not is_asking) or (not adds and not call.node.config.get_bool(VERIFICATION_KEY)):
            self._commit(call.now_ms)
            return
        self._partition = partition
        self._log = log
        self._led_since_epoch = partition.led_since_epoch
        question = Question(
            request.transactional_id,
            request.producer_id,
            request.producer_epoch,
            partitions=frozenset([(GROUP_TOPIC, self._index)]),
            adds=adds,
            take_guards=self._take_guard,
            done=self._on_verified,
            now_ms=call.now_ms,
        )
        verification.ask(question, call.now_ms)

    def _take_guard(self, now_ms: int) -> None:
        assert self._log is not None
        producer_id, producer_epoch = self._request.producer_id, self._request.producer_epoch
        self._guard = self._log.producers.guard_for(producer_id, producer_epoch, NO_SEQUENCE, now_ms)

    def _on_verified(self, codes: dict[tuple[str, int], int], now_ms: int) -> None:
        code = as_committer_sees(codes[(GROUP_TOPIC, self._index)], self._call.version)
        if code != errors.NONE:
            self.done(KafkaError(code))
        else:
            self._commit(now_ms)

    def _commit(self, now_ms: int) -> None:
        groups = self._call.node.coordinators.groups
        groups.run_at(self._index, lambda machine: self._decide(machine, now_ms), self.done, now_ms)

    def _decide(self, machine: GroupMachine, now_ms: int) -> Outcome:
        request = self._request
        partition, log, guard = self._partition, self._log, self._guard
        if partition is not None and log is not None and guard is not None:
            if partition.log is not log or partition.led_since_epoch != self._led_since_epoch:
                raise KafkaError(errors.NOT_COORDINATOR)  # markers in the log of now say nothing to this guard
            log.producers.check_guard(guard, request.producer_id, NO_SEQUENCE, starts_at_zero=False)
        return machine.offsets.commit_in_transaction(request, self._call.version, now_ms)

    def done(self, result: Message | KafkaError) -> None:
        if self._call.reply.done:
            return
        if isinstance(result, KafkaError):
            code = as_client_sees(result).code
            topics = [failed_topic(topic, code) for topic in self._request.topics]
        else:
            assert isinstance(result, TxnOffsetCommitResponse)
            topics = result.topics
        by_name = {topic.name: topic for topic in self._refused}
        told = list(self._refused)
        for row in topics:
            known = by_name.get(row.name)
            if known is None:
                told.append(row)
            else:
                known.partitions = known.partitions + row.partitions
        self._call.respond(TxnOffsetCommitResponse(topics=told))


def as_committer_sees(code: int, version: int) -> int:
    """What the transaction's coordinator said, in the terms of a TxnOffsetCommit of this version."""
    if code == errors.PRODUCER_FENCED:
        return errors.INVALID_PRODUCER_EPOCH
    if code == errors.TRANSACTION_ABORTABLE and version < FIRST_ABORTABLE_VERSION:
        return errors.INVALID_TXN_STATE
    if code == errors.NETWORK_EXCEPTION:
        # Lets clients ask again without looking for another coordinator.
        return errors.COORDINATOR_LOAD_IN_PROGRESS
    return code
