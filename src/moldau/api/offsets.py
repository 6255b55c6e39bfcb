"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: where a log begins, ends, and what lies at a time.

ListOffsets 1-11: -1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest local, -5 latest tiered,
-6 earliest pending upload, else the first record at or after a timestamp. OffsetForLeaderEpoch 2-4 (KIP-101, KIP-320).
DeleteRecords 0-2: offset -1 means up to the high watermark; it waits for the other replicas.
"""

from __future__ import annotations

from collections import Counter

from moldau.api.authorize import denied_topics, may_cluster
from moldau.api.call import Call
from moldau.api.offset_lookups import SEARCH_WORK, OffsetLookups
from moldau.node.node import Node
from moldau.node.waiting import ParkedRequest
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.delete_records_request import DeleteRecordsRequest
from moldau.protocol.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from moldau.protocol.messages.list_offsets_request import ListOffsetsPartition, ListOffsetsRequest
from moldau.protocol.messages.list_offsets_response import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from moldau.protocol.messages.offset_for_leader_epoch_request import OffsetForLeaderEpochRequest
from moldau.protocol.messages.offset_for_leader_epoch_response import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from moldau.replication.partition import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    LATEST_TIERED_TIMESTAMP,
    MAX_TIMESTAMP,
    Partition,
)
from moldau.security.rights import CLUSTER_ACTION, DELETE, DESCRIBE

# The first version that knows each of the special timestamps.
FIRST_VERSION_OF_TIMESTAMP = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
FIRST_NOT_AVAILABLE_VERSION = 5
TO_HIGH_WATERMARK = -1
LOWEST_TIMESTAMP = EARLIEST_PENDING_UPLOAD_TIMESTAMP


def find_partition(node: Node, topic: str, index: int) -> Partition:
    partition = node.replicas.find(topic, index)
    if partition is None:
        raise node.replicas.why_missing(topic, index)
    return partition


def handle_list_offsets(call: Call, request: ListOffsetsRequest) -> None:
    response = ListOffsetsResponse()
    denied = denied_topics(call, DESCRIBE, [topic.name for topic in request.topics for _ in topic.partitions])
    seen = Counter((topic.name, asked.partition_index) for topic in request.topics for asked in topic.partitions)
    lookups: list[ListedOffset] = []
    for topic in request.topics:
        topic_response = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(topic_response)
        for asked in {partition.partition_index: partition for partition in topic.partitions}.values():
            row = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            topic_response.partitions.append(row)
            if topic.name in denied:
                row.error_code = errors.TOPIC_AUTHORIZATION_FAILED
            elif seen[(topic.name, asked.partition_index)] > 1:
                row.error_code = errors.INVALID_REQUEST
            else:
                lookups.append(ListedOffset(call, request, topic.name, asked, row))
    OffsetLookups(call, response, lookups).run()


class ListedOffset:
    """One partition that ListOffsets asks about."""

    def __init__(
        self,
        call: Call,
        request: ListOffsetsRequest,
        topic: str,
        asked: ListOffsetsPartition,
        row: ListOffsetsPartitionResponse,
    ) -> None:
        self._call = call
        self._request = request
        self._topic = topic
        self._asked = asked
        self._row = row
        self.work = SEARCH_WORK if asked.timestamp >= 0 or asked.timestamp == MAX_TIMESTAMP else 1

    def look_up(self) -> None:
        call, request, asked, row = self._call, self._request, self._asked, self._row
        timestamp = asked.timestamp
        if timestamp < LOWEST_TIMESTAMP or call.version < FIRST_VERSION_OF_TIMESTAMP.get(timestamp, 0):
            raise KafkaError(errors.UNSUPPORTED_VERSION)
        partition = find_partition(call.node, self._topic, asked.partition_index)
        found = partition.find_offset(
            timestamp, request.isolation_level, asked.current_leader_epoch, request.replica_id
        )
        row.offset = found.offset
        row.timestamp = found.timestamp
        if call.version >= 4:
            row.leader_epoch = found.leader_epoch

    def fail(self, error: KafkaError) -> None:
        self._row.error_code = error.code
        if error.code == errors.OFFSET_NOT_AVAILABLE and self._call.version < FIRST_NOT_AVAILABLE_VERSION:
            self._row.error_code = errors.LEADER_NOT_AVAILABLE


def handle_offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> None:
    response = OffsetForLeaderEpochResponse()
    # Followers ask too; consumers need to see the topic.
    is_broker = call.node.rights is None or may_cluster(call, CLUSTER_ACTION, is_filter=True)
    names = [] if is_broker else [topic.topic for topic in request.topics for _ in topic.partitions]
    denied = denied_topics(call, DESCRIBE, names)
    for topic in request.topics:
        topic_response = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(topic_response)
        for asked in topic.partitions:
            row = EpochEndOffset(partition=asked.partition)
            topic_response.partitions.append(row)
            try:
                if topic.topic in denied:
                    raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
                partition = find_partition(call.node, topic.topic, asked.partition)
                row.leader_epoch, row.end_offset = partition.end_offset_for_epoch(
                    asked.current_leader_epoch, asked.leader_epoch
                )
            except KafkaError as error:
                row.error_code = error.code
    call.respond(response)


class AwaitedDeletion:
    """A partition whose replicas have yet to give up the records below an offset."""

    def __init__(
        self, partition: Partition, leader_epoch: int, offset: int, result: DeleteRecordsPartitionResult
    ) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.offset = offset
        self.result = result

    def maybe_settle(self) -> bool:
        partition, result = self.partition, self.result
        log = partition.log
        if not partition.is_leader or partition.leader_epoch != self.leader_epoch:
            result.error_code, result.low_watermark = errors.NOT_LEADER_OR_FOLLOWER, -1
            return True
        if log is None or not partition.is_online():
            result.error_code, result.low_watermark = errors.KAFKA_STORAGE_ERROR, -1
            return True
        result.low_watermark = partition.low_watermark(log)
        return result.low_watermark >= self.offset


class ParkedDeletion(ParkedRequest):
    """Waits until the log start of every replica on a living broker has reached what was asked for."""

    def __init__(
        self, call: Call, response: DeleteRecordsResponse, awaited: list[AwaitedDeletion], deadline: int
    ) -> None:
        super().__init__(call.reply, [one.partition for one in awaited], deadline)
        self.call = call
        self.response = response
        self.awaited = awaited

    def maybe_respond(self, now_ms: int) -> bool:
        self.awaited = [one for one in self.awaited if not one.maybe_settle()]
        if self.awaited:
            return False
        self.call.respond(self.response)
        return True

    def respond_at_deadline(self, now_ms: int) -> None:
        for one in self.awaited:
            one.result.error_code = errors.REQUEST_TIMED_OUT
        self.call.respond(self.response)


def handle_delete_records(call: Call, request: DeleteRecordsRequest) -> None:
    response = DeleteRecordsResponse()
    denied = denied_topics(call, DELETE, [topic.name for topic in request.topics for _ in topic.partitions])
    awaited: list[AwaitedDeletion] = []
    for topic in request.topics:
        topic_result = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(topic_result)
        for asked in topic.partitions:
            result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
            topic_result.partitions.append(result)
            try:
                if topic.name in denied:
                    raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
                if call.node.replicas.is_internal(topic.name):
                    raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
                partition = find_partition(call.node, topic.name, asked.partition_index)
                offset = partition.high_watermark.offset if asked.offset == TO_HIGH_WATERMARK else asked.offset
                result.low_watermark = partition.delete_records(asked.offset, call.now_ms)
                if result.low_watermark < offset:
                    awaited.append(AwaitedDeletion(partition, partition.leader_epoch, offset, result))
            except KafkaError as error:
                result.error_code = error.code
    if awaited:
        deadline_ms = call.now_ms + max(0, request.timeout_ms)
        call.node.waiting.park(ParkedDeletion(call, response, awaited, deadline_ms))
    else:
        call.respond(response)
