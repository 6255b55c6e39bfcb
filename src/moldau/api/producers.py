"""DescribeProducers: which producers a partition remembers, and their open transactions. Version 0 (KIP-664)."""

from __future__ import annotations

from moldau.api.authorize import denied_topics
from moldau.api.call import Call
from moldau.api.offsets import find_partition
from moldau.node.topic_names import is_valid_topic_name
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_producers_request import DescribeProducersRequest
from moldau.protocol.messages.describe_producers_response import (
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from moldau.security.rights import READ


def handle_describe_producers(call: Call, request: DescribeProducersRequest) -> None:
    response = DescribeProducersResponse()
    names = [topic.name for topic in request.topics if is_valid_topic_name(topic.name)]
    denied = denied_topics(call, READ, names)
    for topic in request.topics:
        topic_response = TopicResponse(name=topic.name)
        response.topics.append(topic_response)
        for index in dict.fromkeys(topic.partition_indexes):  # asked twice is answered once: rows are many per question
            row = PartitionResponse(partition_index=index)
            topic_response.partitions.append(row)
            if topic.name in denied:
                row.error_code = errors.TOPIC_AUTHORIZATION_FAILED
                row.error_message = errors.default_text(row.error_code)
                continue
            try:
                log = find_partition(call.node, topic.name, index).check_leader(-1)
                for state in log.producers.entries.values():
                    row.active_producers.append(
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
                row.error_code = error.code
                if error.code != errors.UNKNOWN_TOPIC_OR_PARTITION or topic.name not in call.node.image.topics_by_name:
                    row.error_message = error.message
    call.respond(response)
