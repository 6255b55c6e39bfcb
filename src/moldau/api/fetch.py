"""Fetch: reads record batches, as file regions that the connection sends without copying.

Versions 4-18. Version 7 adds incremental sessions (KIP-227), 12 diverging epochs, 13 topic ids, 16 leader hints. A
fetch waits until `min_bytes` are there, a partition fails or `max_wait_ms` is over. Every fetch returns at least one
whole batch when there is one, whatever the limits say. Where it must look at something cold to find the records, it
waits until that is in memory and reads again. Fetches of followers are in `fetch_follower.py`.
"""

from __future__ import annotations

from moldau.api.authorize import denied_topics, may_cluster
from moldau.api.call import Call
from moldau.api.fetch_context import FetchContext, open_context
from moldau.api.fetch_follower import handle_follower_fetch, refuse_follower
from moldau.api.fetch_responses import FetchLimits, add_partition, failed_read
from moldau.metrics.request_stats import FETCH_CONSUMER, FETCH_FOLLOWER
from moldau.node.cold_requests import ColdWait
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
from moldau.security.rights import CLUSTER_ACTION, READ
from moldau.storage.disk import ColdRead


class FetchRound:
    """What one pass over the partitions of a fetch found."""

    def __init__(self) -> None:
        self.reads: list[PartitionRead] = []
        self.size = 0
        self.respond_now = False
        self.cold: ColdRead | None = None  # the pass came to its end there


class ParkedFetch(ParkedRequest):
    """A long poll: reads again when a partition moved, or when what was cold is in memory."""

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
        self.is_late = False  # its time is over: whatever there is when the disk has answered is the response
        self.cold_wait: ColdWait | None = None

    def maybe_respond(self, now_ms: int) -> bool:
        return self.read_and_respond()

    def respond_at_deadline(self, now_ms: int) -> None:
        self.is_late = True
        self.call.node.waiting.expired_fetches += 1
        self.read_and_respond()

    def read_and_respond(self) -> bool:
        """Responds if there is enough, or if it must; says whether it did."""
        wait = self.cold_wait
        if wait is not None and wait.is_reading:
            return False
        found = read_partitions(self.call.node, self.context, self.limits, wait)
        if found.cold is not None:
            self.bring(found.cold)
            return False
        if found.size < self.limits.min_bytes and not found.respond_now and not self.is_late:
            return False
        self.finished = True
        respond(self.call, self.context, found)
        return True

    def bring(self, cold: ColdRead) -> None:
        wait = self.cold_wait
        if wait is None:
            wait = self.cold_wait = ColdWait(self.call.node.disk, self.on_brought)
        wait.bring(cold)

    def on_brought(self) -> None:
        if self.reply.done:
            return
        try:
            self.read_and_respond()
        except Exception:
            self.give_up()

    def cancel(self) -> None:
        super().cancel()
        if self.cold_wait is not None:
            self.cold_wait.abandon()


def handle_fetch(call: Call, request: FetchRequest) -> None:
    node = call.node
    replica_id = max(request.replica_id, request.replica_state.replica_id)
    call.count_as(FETCH_FOLLOWER if replica_id >= 0 else FETCH_CONSUMER)
    if replica_id >= 0:
        call.is_exempt = True
        # A replica id is nothing that a client may just say (CVE-2018-1288).
        if node.rights is not None and not may_cluster(call, CLUSTER_ACTION):
            refuse_follower(call, request, replica_id)
            return
        handle_follower_fetch(call, request, replica_id)
        return
    context = open_context(node, request, call.version, call.now_ms)
    if context.error != 0:
        call.respond(FetchResponse(error_code=context.error))
        return
    limits = FetchLimits(request, node.fetch_bytes_max, call)
    if node.rights is not None:
        names = [target.topic for target in context.targets if target.topic]
        denied = denied_topics(call, READ, names)
        limits.may_read = {name: name not in denied for name in names}
    if node.quotas.is_on:
        limits.max_bytes = call.limit_fetch(limits.max_bytes)
        limits.min_bytes = min(limits.min_bytes, limits.max_bytes)
    found = read_partitions(node, context, limits, None)
    if found.cold is not None:
        wait_for_cold(call, request, context, limits, found.cold)
        return
    if found.size >= limits.min_bytes or found.respond_now or request.max_wait_ms <= 0 or not context.targets:
        respond(call, context, found)
        return
    node.waiting.park(new_parked_fetch(call, request, context, limits))


def new_parked_fetch(call: Call, request: FetchRequest, context: FetchContext, limits: FetchLimits) -> ParkedFetch:
    replicas = call.node.replicas
    partitions = [p for t in context.targets if (p := replicas.find(t.topic, t.index)) is not None]
    return ParkedFetch(call.reply, call, context, limits, partitions, call.now_ms + request.max_wait_ms)


def wait_for_cold(
    call: Call, request: FetchRequest, context: FetchContext, limits: FetchLimits, cold: ColdRead
) -> None:
    parked = new_parked_fetch(call, request, context, limits)
    if request.max_wait_ms > 0:
        call.node.waiting.park(parked)
    else:
        parked.is_late = True
        call.reply.on_abandon = parked.cancel
    parked.bring(cold)


def read_partitions(node: Node, context: FetchContext, limits: FetchLimits, wait: ColdWait | None) -> FetchRound:
    """Reads every partition of the fetch once, in the session's order, until the limit is used up, without ever waiting
    for the medium: it stops where something is cold."""
    disk = node.disk
    if wait is None:
        disk.refuses_cold = True
    else:
        wait.begin_try()
    try:
        return read_resident_partitions(node, context, limits)
    finally:
        if wait is None:
            disk.refuses_cold = False
        else:
            wait.end_try()


def read_resident_partitions(node: Node, context: FetchContext, limits: FetchLimits) -> FetchRound:
    found = FetchRound()
    left = limits.max_bytes
    min_one_batch = True
    for target in context.targets:
        try:
            read = read_partition(node, target, limits, left, min_one_batch)
        except KafkaError as error:
            read = failed_read(error.code)
            found.respond_now = True
        except ColdRead as cold:
            found.cold = cold
            return found
        records = read.records
        if records is not None and records.size > 0:
            min_one_batch = False
            found.size += records.size
            left = max(0, left - records.size)
        elif read.diverging_end_offset >= 0 or read.preferred_read_replica >= 0:
            found.respond_now = True
        found.reads.append(read)
    return found


def read_partition(
    node: Node, target: FetchedPartition, limits: FetchLimits, left: int, min_one_batch: bool
) -> PartitionRead:
    if not target.topic:
        raise KafkaError(errors.UNKNOWN_TOPIC_ID)
    if limits.may_read is not None:
        check_may_read(limits.may_read, target.topic)
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


def check_may_read(may_read: dict[str, bool], topic: str) -> None:
    """A topic whose id was unknown when the request came is unknown to this request: nobody has looked at the right to
    it, and another fetch of the session may have found its name since."""
    is_allowed = may_read.get(topic)
    if is_allowed is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_ID)
    if not is_allowed:
        raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)


def find_preferred_replica(node: Node, partition: Partition, target: FetchedPartition, limits: FetchLimits) -> int:
    """A replica in the consumer's rack, if it can be reached over the same listener (KIP-392)."""
    preferred = partition.find_preferred_replica(limits.rack, target.fetch_offset)
    if preferred == NO_PREFERENCE or node.endpoint_of(preferred, limits.listener) is None:
        return NO_PREFERENCE
    return preferred


def respond(call: Call, context: FetchContext, found: FetchRound) -> None:
    response = FetchResponse()
    for index in range(len(context.targets)):
        target = context.targets[index]
        read = found.reads[index]
        if context.should_tell(target, read):
            add_partition(call, response, target, read)
    if call.node.quotas.is_on and is_throttled(call, response):
        # The client asks again for the same: nothing of this was told.
        call.respond(FetchResponse(session_id=context.session_id, error_code=context.error_when_throttled()))
        return
    for read in found.reads:
        if read.counts is not None and read.records is not None:
            read.counts.bytes_out += read.records.size
    context.finish(call.node, found.reads, call.version, call.now_ms)
    response.session_id = context.session_id
    call.respond(response)


def is_throttled(call: Call, response: FetchResponse) -> bool:
    endpoints, response.node_endpoints = response.node_endpoints, []  # not counted
    size = call.size_of(response)
    response.node_endpoints = endpoints
    return call.charge_fetch(size) > 0
