"""Produce: appends record batches to the partitions this broker leads.

Versions 3-13. Version 7 is the first that may carry zstd; 10 adds leader hints (KIP-951); 13 names topics by id.
Acks 0 gets no response (the connection closes on an error), 1 one after the append, -1 when the high watermark has
passed the records or the timeout is over. Where `flush.messages` asks for a flush, both wait for it, however many
requests share it. Every partition fails or succeeds by itself.
"""

from __future__ import annotations

from typing import Final

from librt.strings import read_i32_be
from mypy_extensions import i64

from moldau.api.authorize import may
from moldau.api.call import Call
from moldau.api.leader_hints import find_leader
from moldau.api.transactional_produce import HeldAppend, hold_unverified, verify
from moldau.node.node import Node
from moldau.node.reply import Reply
from moldau.node.waiting import ParkedRequest
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.produce_request import PartitionProduceData, ProduceRequest
from moldau.protocol.messages.produce_response import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from moldau.protocol.records_data import MemoryRecords
from moldau.records.batch import (
    ATTRIBUTES_LOW_BYTE,
    BATCH_LENGTH,
    CODEC_MASK,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    TRANSACTIONAL_FLAG,
)
from moldau.records.clocks import NEVER_MS
from moldau.records.codecs import ZSTD
from moldau.replication.partition import Partition
from moldau.security.rights import TOPIC, TRANSACTIONAL_ID, WRITE
from moldau.storage.validation import CLIENT, InvalidRecords, NotOneBatch

ADMIN_CLIENT_ID: Final = "__admin_client"
FIRST_ZSTD_VERSION: Final = 7
FIRST_LEADER_HINT_VERSION: Final = 10
FIRST_TOPIC_ID_VERSION: Final = 13

# Failures before a log had its say: the response does not tell where the log starts.
ERRORS_WITHOUT_LOG_START: Final = frozenset(
    {
        errors.CORRUPT_MESSAGE,
        errors.INVALID_REQUIRED_ACKS,
        errors.INVALID_TOPIC_EXCEPTION,
        errors.KAFKA_STORAGE_ERROR,
        errors.MESSAGE_TOO_LARGE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.RECORD_LIST_TOO_LARGE,
        errors.TOPIC_AUTHORIZATION_FAILED,
        errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        errors.UNKNOWN_TOPIC_ID,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNSUPPORTED_COMPRESSION_TYPE,
    }
)


class Awaited:
    """A partition's response that holds once the high watermark, or for acks=1 a flush, has reached an offset."""

    def __init__(
        self, partition: Partition, acks: int, led_since_epoch: int, offset: int, row: PartitionProduceResponse
    ) -> None:
        self.partition = partition
        self.acks = acks
        self.led_since_epoch = led_since_epoch
        self.offset = offset
        self.row = row


class ParkedProduce(ParkedRequest):
    """Waits until every partition has its records on all in-sync replicas (acks=all), or flushed (acks=1)."""

    def __init__(
        self, reply: Reply, call: Call, response: ProduceResponse, awaited: list[Awaited], deadline: int
    ) -> None:
        super().__init__(reply, [one.partition for one in awaited], deadline)
        self.call = call
        self.response = response
        self.awaited = awaited

    def maybe_respond(self, now_ms: int) -> bool:
        still: list[Awaited] = []
        for one in self.awaited:
            partition = one.partition
            if not partition.is_leader or partition.led_since_epoch != one.led_since_epoch:
                fail(one.row, KafkaError(errors.NOT_LEADER_OR_FOLLOWER))
                add_leader_hint(self.call, partition.topic, partition.index, one.row, self.response)
            elif not partition.is_online():
                fail(one.row, KafkaError(errors.KAFKA_STORAGE_ERROR))
            elif one.acks == -1:
                if partition.high_watermark.offset < one.offset:
                    still.append(one)
                elif not partition.has_enough_in_sync_replicas():
                    fail(one.row, KafkaError(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
            elif not partition.is_durable(one.offset):
                still.append(one)
        self.awaited = still
        if still:
            return False
        self.call.respond(self.response)
        return True

    def respond_at_deadline(self, now_ms: int) -> None:
        self.call.node.waiting.expired_produces += len(self.awaited)
        for one in self.awaited:
            fail(one.row, KafkaError(errors.REQUEST_TIMED_OUT))
        self.call.respond(self.response)


def handle_produce(call: Call, request: ProduceRequest) -> None:
    node = call.node
    response = ProduceResponse()
    awaited: list[Awaited] = []
    held: list[HeldAppend] = []
    failed = False
    has_rights = node.rights is not None
    if has_rights and not may_write_in_transactions(call, request):
        refuse_all(call, request, response)
        return
    for topic in request.topic_data:
        name: str | None = topic.name
        if call.version >= FIRST_TOPIC_ID_VERSION:
            name = node.replicas.topic_name(topic.topic_id)
        is_denied = (
            has_rights and name is not None and not may(call, WRITE, TOPIC, name, count=len(topic.partition_data))
        )
        topic_response = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(topic_response)
        for data in without_repeats(topic.partition_data):
            row = PartitionProduceResponse(index=data.index)
            topic_response.partition_responses.append(row)
            try:
                if is_denied:
                    raise KafkaError(errors.TOPIC_AUTHORIZATION_FAILED)
                append(call, request, name, data, row, awaited, held)
            except KafkaError as error:
                failed = True
                fail(row, error)
                if not isinstance(error, NotOneBatch):
                    tell_log_start(node, name, row)
                add_leader_hint(call, name, data.index, row, response)
    if node.replicas.context.woken:
        # Followers read what this request brought before its own response is made: they are the longer way.
        node.replicas.context.serve_woken(call.now_ms)
    if held:
        verify(call, request, held, HeldProduce(call, request, response, awaited, held, failed).on_verified)
    else:
        finish(call, request, response, awaited, failed, call.now_ms)


def may_write_in_transactions(call: Call, request: ProduceRequest) -> bool:
    """What the batches say counts, all of them, and not what the request says of them (CVE-2018-17196)."""
    for topic in request.topic_data:
        for data in topic.partition_data:
            records = data.records
            if isinstance(records, MemoryRecords) and has_transactional_batch(records):
                transactional_id = request.transactional_id
                return transactional_id is not None and may(call, WRITE, TRANSACTIONAL_ID, transactional_id)
    return True


def has_transactional_batch(records: MemoryRecords) -> bool:
    data = records.data
    at: i64 = records.start
    end: i64 = records.end
    while at + HEADER_SIZE <= end:
        if data[at + ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_FLAG:
            return True
        length: i64 = i64(read_i32_be(data, at + BATCH_LENGTH))
        if length <= 0:
            break
        at += LENGTH_OVERHEAD + length
    return False


def refuse_all(call: Call, request: ProduceRequest, response: ProduceResponse) -> None:
    """The transactional id is not the client's: nothing of the request is looked at."""
    for topic in request.topic_data:
        topic_response = TopicProduceResponse(name=topic.name, topic_id=topic.topic_id)
        response.responses.append(topic_response)
        for data in without_repeats(topic.partition_data):
            row = PartitionProduceResponse(index=data.index)
            topic_response.partition_responses.append(row)
            fail(row, KafkaError(errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED))
    finish(call, request, response, [], True, call.now_ms)


def finish(
    call: Call,
    request: ProduceRequest,
    response: ProduceResponse,
    awaited: list[Awaited],
    failed: bool,
    now_ms: int,
) -> None:
    """Everything that could be appended is: responds now, or when the other replicas have it."""
    if request.acks == 0:
        if failed:
            # The only way to tell a client that does not listen (Kafka closes here too).
            call.close_connection()
        else:
            call.respond_nothing()
    elif not awaited:
        call.respond(response)
    else:
        # The timeout is about other replicas; a flush of the own disk ends by itself, one way or the other.
        deadline_ms = now_ms + max(0, request.timeout_ms) if request.acks == -1 else NEVER_MS
        parked = ParkedProduce(call.reply, call, response, awaited, deadline_ms)
        # What was appended in an earlier turn may be committed by now, and nobody would tell.
        if now_ms == call.now_ms or not parked.maybe_respond(now_ms):
            call.node.waiting.park(parked)


def append(
    call: Call,
    request: ProduceRequest,
    name: str | None,
    data: PartitionProduceData,
    row: PartitionProduceResponse,
    awaited: list[Awaited],
    held: list[HeldAppend],
) -> None:
    acks = request.acks
    if acks < -1 or acks > 1:
        raise KafkaError(errors.INVALID_REQUIRED_ACKS)
    if name is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_ID)
    node = call.node
    partition = node.replicas.find(name, data.index)
    if partition is None:
        raise node.replicas.why_missing(name, data.index)
    if node.replicas.is_internal(name) and call.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(errors.INVALID_TOPIC_EXCEPTION)
    records = data.records
    if not isinstance(records, MemoryRecords) or records.size == 0:
        raise NotOneBatch(errors.INVALID_RECORD, "a partition of a produce request needs a record batch")
    if records.size >= HEADER_SIZE:
        attributes = records.data[records.start + ATTRIBUTES_LOW_BYTE]
        if attributes & CODEC_MASK == ZSTD and call.version < FIRST_ZSTD_VERSION:
            raise KafkaError(errors.UNSUPPORTED_COMPRESSION_TYPE)
        if attributes & TRANSACTIONAL_FLAG and hold_unverified(call, request, partition, records, row, held):
            return
    append_records(partition, records, acks, row, awaited, call.now_ms)


def append_records(
    partition: Partition,
    records: MemoryRecords,
    acks: int,
    row: PartitionProduceResponse,
    awaited: list[Awaited],
    now_ms: int,
) -> None:
    result = partition.append_as_leader(records, acks, now_ms, CLIENT)
    row.base_offset = result.first_offset
    row.log_append_time_ms = result.append_time_ms
    row.log_start_offset = result.log_start_offset
    if acks == -1:
        waits = partition.high_watermark.offset <= result.last_offset
    else:
        waits = acks == 1 and not partition.is_durable(result.last_offset + 1)
    if waits:
        awaited.append(Awaited(partition, acks, partition.led_since_epoch, result.last_offset + 1, row))


class HeldProduce:
    """A request some of whose writes wait until their transaction is verified."""

    def __init__(
        self,
        call: Call,
        request: ProduceRequest,
        response: ProduceResponse,
        awaited: list[Awaited],
        held: list[HeldAppend],
        failed: bool,
    ) -> None:
        self.call = call
        self.request = request
        self.response = response
        self.awaited = awaited
        self.held = held
        self.failed = failed

    def on_verified(self, now_ms: int) -> None:
        call = self.call
        for one in self.held:
            partition = one.partition
            try:
                one.check_verified()
                append_records(partition, one.records, self.request.acks, one.row, self.awaited, now_ms)
            except KafkaError as error:
                self.failed = True
                fail(one.row, error)
                tell_log_start(call.node, partition.topic, one.row)
                add_leader_hint(call, partition.topic, partition.index, one.row, self.response)
        context = call.node.replicas.context
        if context.woken:
            context.serve_woken(now_ms)
        finish(call, self.request, self.response, self.awaited, self.failed, now_ms)


def without_repeats(partitions: list[PartitionProduceData]) -> list[PartitionProduceData]:
    """A partition named twice counts once, with what was said last, as in Kafka."""
    if len(partitions) < 2:
        return partitions
    by_index: dict[int, PartitionProduceData] = {}
    for data in partitions:
        by_index[data.index] = data
    return list(by_index.values())


def tell_log_start(node: Node, name: str | None, row: PartitionProduceResponse) -> None:
    if name is None or row.error_code in ERRORS_WITHOUT_LOG_START:
        return
    partition = node.replicas.find(name, row.index)
    if partition is not None and partition.log is not None:
        row.log_start_offset = partition.log.log_start_offset


def fail(row: PartitionProduceResponse, error: KafkaError) -> None:
    row.error_code = error.code
    row.base_offset = -1
    row.log_append_time_ms = -1
    row.log_start_offset = -1
    if error.code == errors.KAFKA_STORAGE_ERROR:
        row.error_message = error.message  # whether to wait for space or to call somebody
    if isinstance(error, InvalidRecords):
        row.error_message = error.client_message
        for batch_index, message in error.record_errors:
            row.record_errors.append(
                BatchIndexAndErrorMessage(batch_index=batch_index, batch_index_error_message=message)
            )


def add_leader_hint(
    call: Call, name: str | None, index: int, row: PartitionProduceResponse, response: ProduceResponse
) -> None:
    if call.version < FIRST_LEADER_HINT_VERSION or name is None or row.error_code != errors.NOT_LEADER_OR_FOLLOWER:
        return
    hint = find_leader(call, name, index, [known.node_id for known in response.node_endpoints])
    row.current_leader = LeaderIdAndEpoch(leader_id=hint.leader_id, leader_epoch=hint.leader_epoch)
    if hint.endpoint is not None:
        response.node_endpoints.append(NodeEndpoint(*hint.endpoint))
