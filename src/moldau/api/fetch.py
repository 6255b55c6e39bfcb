"""Fetch: reads record batches, as file regions that the connection sends without copying.

Versions 4-18. Version 7 adds incremental sessions (KIP-227), 12 diverging epochs, 13 topic ids, 16 leader hints. A
fetch waits until `min_bytes` are there, a partition fails or `max_wait_ms` is over. Every fetch returns at least one
whole batch when there is one, whatever the limits say.
"""

from __future__ import annotations

from typing import Final

from moldau.api.call import Call
from moldau.api.fetch_context import FetchContext, open_context
from moldau.api.leader_hints import leader_hint, node_endpoint
from moldau.node.fetch_session import FetchedPartition
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.node.waiting import ParkedRequest
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from moldau.protocol.records_data import MemoryRecords
from moldau.protocol.uuids import ZERO_UUID
from moldau.replication.partition import Partition, PartitionRead

FIRST_TOPIC_ID_VERSION: Final = 13
FIRST_LEADER_HINT_VERSION: Final = 16
UNKNOWN_OFFSET: Final = -1
# The partition was never looked at: its list of aborted transactions is empty, not null, as in Kafka.
ERRORS_WITHOUT_READ: Final = (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_ID, errors.INCONSISTENT_TOPIC_ID)


class FetchRound:
    """What one pass over the partitions of a fetch found."""

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.size = 0
        self.answer_now = False


class FetchLimits:
    """What the request asks for, within what the broker allows."""

    def __init__(self, request: FetchRequest, bytes_max: int) -> None:
        self.isolation = request.isolation_level
        self.replica_id = max(request.replica_id, request.replica_state.replica_id)
        self.max_bytes = min(request.max_bytes, bytes_max)
        self.min_bytes = min(request.min_bytes, self.max_bytes)


class ParkedFetch(ParkedRequest):
    """A long poll: reads again when a partition moved."""

    def __init__(
        self,
        reply: Reply,
        call: Call,
        context: FetchContext,
        limits: FetchLimits,
        partitions: list[Partition],
        deadline_ms: int,
    ) -> None:
        super().__init__(reply, partitions, deadline_ms)
        self.call = call
        self.context = context
        self.limits = limits

    def maybe_answer(self, now_ms: int) -> bool:
        found = read_partitions(self.call.node, self.context, self.limits)
        if found.size < self.limits.min_bytes and not found.answer_now:
            return False
        answer(self.call, self.context, found)
        return True

    def answer_at_deadline(self, now_ms: int) -> None:
        answer(self.call, self.context, read_partitions(self.call.node, self.context, self.limits))


def handle_fetch(call: Call, request: FetchRequest) -> None:
    node = call.node
    context = open_context(node, request, call.version, call.now_ms)
    if context.error != 0:
        call.respond(FetchResponse(error_code=context.error))
        return
    limits = FetchLimits(request, node.fetch_bytes_max)
    found = read_partitions(node, context, limits)
    if found.size >= limits.min_bytes or found.answer_now or request.max_wait_ms <= 0 or not context.targets:
        answer(call, context, found)
        return
    partitions = [p for t in context.targets if (p := node.replicas.find(t.topic, t.index)) is not None]
    node.waiting.park(ParkedFetch(call.reply, call, context, limits, partitions, call.now_ms + request.max_wait_ms))


def read_partitions(node: Node, context: FetchContext, limits: FetchLimits) -> FetchRound:
    """Reads every partition of the fetch once, in the session's order, until the limit is used up."""
    found = FetchRound()
    left = limits.max_bytes
    min_one_batch = True
    for target in context.targets:
        try:
            read = read_partition(node, target, limits, left, min_one_batch)
        except KafkaError as error:
            read = PartitionRead(UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET)
            read.error = error.code
            found.answer_now = True
            if error.code in ERRORS_WITHOUT_READ:
                read.aborted = []
        records = read.records
        if records is not None and records.size > 0:
            min_one_batch = False
            found.size += records.size
            left = max(0, left - records.size)
        elif read.diverging_end_offset >= 0:
            found.answer_now = True
        found.reads.append(read)
    return found


def read_partition(
    node: Node, target: FetchedPartition, limits: FetchLimits, left: int, min_one_batch: bool
) -> PartitionRead:
    if not target.topic:
        raise KafkaError(errors.UNKNOWN_TOPIC_ID)
    partition = node.replicas.find(target.topic, target.index)
    if partition is None:
        raise node.replicas.why_missing(target.topic, target.index)
    if target.topic_id != ZERO_UUID and target.topic_id != partition.topic_id:
        raise KafkaError(errors.INCONSISTENT_TOPIC_ID)
    if limits.replica_id >= 0:
        # Only this broker has replicas of its partitions: whoever fetches as another one is none.
        raise KafkaError(errors.NOT_LEADER_OR_FOLLOWER)
    return partition.read(
        target.fetch_offset,
        min(target.max_bytes, left),
        min_one_batch,
        limits.isolation,
        target.current_leader_epoch,
        target.last_fetched_epoch,
    )


def answer(call: Call, context: FetchContext, found: FetchRound) -> None:
    response = FetchResponse(session_id=context.session_id)
    topic_response: FetchableTopicResponse | None = None
    for index in range(len(context.targets)):
        target = context.targets[index]
        read = found.reads[index]
        if not context.should_tell(target, read):
            continue
        if topic_response is None or topic_response.topic != target.topic or topic_response.topic_id != target.topic_id:
            topic_response = FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id)
            response.responses.append(topic_response)
        data = partition_data(target, read)
        topic_response.partitions.append(data)
        if read.error != 0:
            add_leader_hint(call, target, data, response)
    context.finish(call.node.fetch_sessions, call.now_ms)
    call.respond(response)


def partition_data(target: FetchedPartition, read: PartitionRead) -> PartitionData:
    data = PartitionData(
        partition_index=target.index,
        error_code=read.error,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None,
        records=read.records if read.records is not None else MemoryRecords(b""),
    )
    if read.aborted is not None:
        aborted: list[AbortedTransaction] = []
        for producer_id, first_offset in read.aborted:
            aborted.append(AbortedTransaction(producer_id=producer_id, first_offset=first_offset))
        data.aborted_transactions = aborted
    if read.diverging_end_offset >= 0:
        data.diverging_epoch = EpochEndOffset(epoch=read.diverging_epoch, end_offset=read.diverging_end_offset)
    return data


def add_leader_hint(call: Call, target: FetchedPartition, data: PartitionData, response: FetchResponse) -> None:
    """KIP-951: a client that asked the wrong broker learns at once which one to ask."""
    if call.version < FIRST_LEADER_HINT_VERSION:
        return
    if data.error_code != errors.NOT_LEADER_OR_FOLLOWER and data.error_code != errors.FENCED_LEADER_EPOCH:
        return
    hint = leader_hint(call.node, target.topic, target.index)
    data.current_leader = LeaderIdAndEpoch(leader_id=hint[0], leader_epoch=hint[1])
    endpoint = node_endpoint(
        call.node, call.context.listener, hint[0], [known.node_id for known in response.node_endpoints]
    )
    if endpoint is not None:
        response.node_endpoints.append(
            NodeEndpoint(node_id=endpoint[0], host=endpoint[1], port=endpoint[2], rack=endpoint[3])
        )
