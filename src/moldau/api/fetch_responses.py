"""A fetch's limits and the parts of its response, for consumers and followers alike."""

from __future__ import annotations

from typing import Final

from moldau.api.call import Call
from moldau.api.leader_hints import find_leader
from moldau.node.fetch_session import FetchedPartition
from moldau.protocol import errors
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
from moldau.replication.partition import PartitionRead

FIRST_RACK_VERSION: Final = 11
FIRST_LEADER_HINT_VERSION: Final = 16
UNKNOWN_OFFSET: Final = -1
# The partition was never looked at: its list of aborted transactions is empty, not null, as in Kafka.
ERRORS_WITHOUT_READ: Final = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.UNKNOWN_TOPIC_ID,
    errors.INCONSISTENT_TOPIC_ID,
    errors.TOPIC_AUTHORIZATION_FAILED,
)


class FetchLimits:
    """What the request asks for, within what the broker allows."""

    def __init__(self, request: FetchRequest, bytes_max: int, call: Call) -> None:
        self.isolation = request.isolation_level
        self.rack = request.rack_id
        # Who knows that there are replicas to read from may ask any of them (KIP-392).
        self.only_leader = call.version < FIRST_RACK_VERSION
        self.listener = call.context.listener
        self.max_bytes = min(request.max_bytes, bytes_max)
        self.min_bytes = min(request.min_bytes, self.max_bytes)
        # Of each topic that was known when the request came, whether the client may read it: decided once, also for a
        # fetch that waits. None without an authorizer.
        self.may_read: dict[str, bool] | None = None


def failed_read(code: int) -> PartitionRead:
    read = PartitionRead(UNKNOWN_OFFSET, UNKNOWN_OFFSET, UNKNOWN_OFFSET)
    read.error = code
    if code in ERRORS_WITHOUT_READ:
        read.aborted = []
    return read


def add_partition(call: Call, response: FetchResponse, target: FetchedPartition, read: PartitionRead) -> None:
    """Partitions of one topic that follow each other share its entry."""
    topics = response.responses
    if not topics or topics[-1].topic != target.topic or topics[-1].topic_id != target.topic_id:
        topics.append(FetchableTopicResponse(topic=target.topic, topic_id=target.topic_id))
    data = partition_data(target, read)
    topics[-1].partitions.append(data)
    if read.error != 0:
        add_leader_hint(call, target, data, response)


def partition_data(target: FetchedPartition, read: PartitionRead) -> PartitionData:
    data = PartitionData(
        partition_index=target.index,
        error_code=read.error,
        high_watermark=read.high_watermark,
        last_stable_offset=read.last_stable_offset,
        log_start_offset=read.log_start_offset,
        aborted_transactions=None,
        preferred_read_replica=read.preferred_read_replica,
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
    if call.version < FIRST_LEADER_HINT_VERSION:
        return
    if data.error_code != errors.NOT_LEADER_OR_FOLLOWER and data.error_code != errors.FENCED_LEADER_EPOCH:
        return
    hint = find_leader(call, target.topic, target.index, [known.node_id for known in response.node_endpoints])
    data.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    if hint.endpoint is not None:
        response.node_endpoints.append(NodeEndpoint(*hint.endpoint))
