"""ListOffsets, OffsetForLeaderEpoch, DeleteRecords: where a log begins, ends, and what lies at a time.

ListOffsets 1-11: -1 latest, -2 earliest, -3 the record with the largest timestamp, -4 earliest local, -5 latest tiered,
-6 earliest pending upload, else the first record at or after a timestamp. OffsetForLeaderEpoch 2-4 (KIP-101, KIP-320).
DeleteRecords 0-2: offset -1 means up to the high watermark.
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.node.node import Node
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

# The first version that knows each of the special timestamps.
FIRST_VERSION_OF_TIMESTAMP = {
    MAX_TIMESTAMP: 7,
    EARLIEST_LOCAL_TIMESTAMP: 8,
    LATEST_TIERED_TIMESTAMP: 9,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP: 11,
}
LOWEST_TIMESTAMP = EARLIEST_PENDING_UPLOAD_TIMESTAMP


def find_partition(node: Node, topic: str, index: int) -> Partition:
    partition = node.replicas.find(topic, index)
    if partition is None:
        raise node.replicas.why_missing(topic, index)
    return partition


def handle_list_offsets(call: Call, request: ListOffsetsRequest) -> None:
    response = ListOffsetsResponse()
    seen: dict[tuple[str, int], int] = {}
    for topic in request.topics:
        for asked in topic.partitions:
            key = (topic.name, asked.partition_index)
            seen[key] = seen.get(key, 0) + 1
    for topic in request.topics:
        topic_response = ListOffsetsTopicResponse(name=topic.name)
        response.topics.append(topic_response)
        for asked in {partition.partition_index: partition for partition in topic.partitions}.values():
            answer = ListOffsetsPartitionResponse(partition_index=asked.partition_index)
            topic_response.partitions.append(answer)
            try:
                if seen[(topic.name, asked.partition_index)] > 1:
                    raise KafkaError(errors.INVALID_REQUEST)
                list_offset(call, request, topic.name, asked, answer)
            except KafkaError as error:
                answer.error_code = error.code
    call.respond(response)


def list_offset(
    call: Call,
    request: ListOffsetsRequest,
    topic: str,
    asked: ListOffsetsPartition,
    answer: ListOffsetsPartitionResponse,
) -> None:
    timestamp = asked.timestamp
    if timestamp < LOWEST_TIMESTAMP or call.version < FIRST_VERSION_OF_TIMESTAMP.get(timestamp, 0):
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    partition = find_partition(call.node, topic, asked.partition_index)
    found = partition.find_offset(timestamp, request.isolation_level, asked.current_leader_epoch, request.replica_id)
    answer.offset = found.offset
    answer.timestamp = found.timestamp
    if call.version >= 4:
        answer.leader_epoch = found.leader_epoch


def handle_offset_for_leader_epoch(call: Call, request: OffsetForLeaderEpochRequest) -> None:
    response = OffsetForLeaderEpochResponse()
    for topic in request.topics:
        topic_response = OffsetForLeaderTopicResult(topic=topic.topic)
        response.topics.append(topic_response)
        for asked in topic.partitions:
            answer = EpochEndOffset(partition=asked.partition)
            topic_response.partitions.append(answer)
            try:
                partition = find_partition(call.node, topic.topic, asked.partition)
                answer.leader_epoch, answer.end_offset = partition.end_offset_for_epoch(
                    asked.current_leader_epoch, asked.leader_epoch
                )
            except KafkaError as error:
                answer.error_code = error.code
    call.respond(response)


def handle_delete_records(call: Call, request: DeleteRecordsRequest) -> None:
    response = DeleteRecordsResponse()
    for topic in request.topics:
        topic_result = DeleteRecordsTopicResult(name=topic.name)
        response.topics.append(topic_result)
        for asked in topic.partitions:
            result = DeleteRecordsPartitionResult(partition_index=asked.partition_index, low_watermark=-1)
            topic_result.partitions.append(result)
            try:
                if call.node.replicas.is_internal(topic.name):
                    raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
                partition = find_partition(call.node, topic.name, asked.partition_index)
                result.low_watermark = partition.delete_records(asked.offset, call.now_ms)
            except KafkaError as error:
                result.error_code = error.code
    call.respond(response)
