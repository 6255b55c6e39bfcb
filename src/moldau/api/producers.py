"""InitProducerId and DescribeProducers: identities of idempotent producers, and which ones a partition remembers.

InitProducerId 0-5: without a transactional id a fresh producer id with epoch 0; transactions need a coordinator.
DescribeProducers 0 (KIP-664).
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.offsets import find_partition
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_producers_request import DescribeProducersRequest
from moldau.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from moldau.protocol.messages.init_producer_id_request import InitProducerIdRequest
from moldau.protocol.messages.init_producer_id_response import InitProducerIdResponse


def handle_init_producer_id(call: Call, request: InitProducerIdRequest) -> None:
    if (request.producer_id == -1) != (request.producer_epoch == -1):
        call.respond(InitProducerIdResponse(error_code=errors.INVALID_REQUEST, producer_id=-1, producer_epoch=-1))
        return
    if request.transactional_id is not None:
        code = errors.INVALID_REQUEST if request.transactional_id == "" else errors.COORDINATOR_NOT_AVAILABLE
        call.respond(InitProducerIdResponse(error_code=code, producer_id=-1, producer_epoch=-1))
        return

    def done(producer_id: int, error: int) -> None:
        epoch = 0 if error == 0 else -1
        call.respond(InitProducerIdResponse(error_code=error, producer_id=producer_id, producer_epoch=epoch))

    call.node.producer_ids.next(call.now_ms, done)


def handle_describe_producers(call: Call, request: DescribeProducersRequest) -> None:
    response = DescribeProducersResponse()
    for topic in request.topics:
        topic_response = TopicResponse(name=topic.name)
        response.topics.append(topic_response)
        for index in dict.fromkeys(topic.partition_indexes):  # asked twice is answered once: rows are many per question
            answer = PartitionResponse(partition_index=index)
            topic_response.partitions.append(answer)
            try:
                log = find_partition(call.node, topic.name, index).check_leader(-1)
                for state in log.producers.entries.values():
                    answer.active_producers.append(
                        ProducerState(
                            producer_id=state.producer_id,
                            producer_epoch=state.epoch,
                            last_sequence=state.last_sequence,
                            last_timestamp=state.last_timestamp,
                            coordinator_epoch=state.coordinator_epoch,
                            current_txn_start_offset=state.transaction_first_offset,
                        )
                    )
            except KafkaError as error:
                answer.error_code = error.code
                if error.code != errors.UNKNOWN_TOPIC_OR_PARTITION or topic.name not in call.node.image.topics_by_name:
                    answer.error_message = error.message
    call.respond(response)
