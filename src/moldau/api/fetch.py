"""Fetch: reads record batches, as file regions that the connection sends without copying.

Versions 4-18. Version 7 adds incremental sessions (KIP-227), 12 diverging epochs, 13 topic ids, 16 leader hints. A
fetch waits until `min_bytes` are there, a partition fails or `max_wait_ms` is over. Every fetch returns at least one
whole batch when there is one, whatever the limits say. Fetches of followers are in `fetch_follower.py`.
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.fetch_answer import FetchLimits, add_partition, failed_read
from moldau.api.fetch_context import FetchContext, open_context
from moldau.api.fetch_follower import handle_follower_fetch
from moldau.node.fetch_session import FetchedPartition
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.node.waiting import ParkedRequest
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.fetch_request import FetchRequest
from moldau.protocol.messages.fetch_response import FetchResponse
from moldau.protocol.uuids import ZERO_UUID
from moldau.replication.partition import Partition, PartitionRead
from moldau.replication.replica_selector import NO_PREFERENCE


class FetchRound:
    """What one pass over the partitions of a fetch found."""

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.size = 0
        self.answer_now = False


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
    replica_id = max(request.replica_id, request.replica_state.replica_id)
    if replica_id >= 0:
        handle_follower_fetch(call, request, replica_id)
        return
    context = open_context(node, request, call.version, call.now_ms)
    if context.error != 0:
        call.respond(FetchResponse(error_code=context.error))
        return
    limits = FetchLimits(request, node.fetch_bytes_max, call)
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
            read = failed_read(error.code)
            found.answer_now = True
        records = read.records
        if records is not None and records.size > 0:
            min_one_batch = False
            found.size += records.size
            left = max(0, left - records.size)
        elif read.diverging_end_offset >= 0 or read.preferred_read_replica >= 0:
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
    if limits.rack and node.replicas.context.selects_by_rack and partition.is_leader:
        preferred = find_preferred_replica(node, partition, target, limits)
        if preferred != NO_PREFERENCE:
            return partition.redirect(partition.check_leader(target.current_leader_epoch), preferred)
    return partition.read(
        target.fetch_offset,
        min(target.max_bytes, left),
        min_one_batch,
        limits.isolation,
        target.current_leader_epoch,
        target.last_fetched_epoch,
        limits.only_leader,
    )


def find_preferred_replica(node: Node, partition: Partition, target: FetchedPartition, limits: FetchLimits) -> int:
    """A replica in the consumer's rack, if it can be reached over the same listener (KIP-392)."""
    preferred = partition.find_preferred_replica(limits.rack, target.fetch_offset)
    if preferred == NO_PREFERENCE or node.endpoint_of(preferred, limits.listener) is None:
        return NO_PREFERENCE
    return preferred


def answer(call: Call, context: FetchContext, found: FetchRound) -> None:
    response = FetchResponse(session_id=context.session_id)
    for index in range(len(context.targets)):
        target = context.targets[index]
        read = found.reads[index]
        if context.should_tell(target, read):
            add_partition(call, response, target, read)
    context.finish(call.node.fetch_sessions, call.now_ms)
    call.respond(response)
