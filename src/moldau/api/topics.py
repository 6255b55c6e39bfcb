"""CreateTopics, DeleteTopics, CreatePartitions: decided by the active controller, answered when committed.

CreateTopics 2-7 (defaults for partitions and replication factor -1 from version 4, topic ids in 7), DeleteTopics 1-6 (by
id in 6), CreatePartitions 0-3.
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest
from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse

FIRST_TOPIC_STATE_VERSION = 6


def handle_create_topics(call: Call, request: CreateTopicsRequest) -> None:
    def failed(error: KafkaError) -> CreateTopicsResponse:
        results = [
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
        return CreateTopicsResponse(topics=results)

    submit(call, lambda controller: controller.create_topics(request, call.now_ms), failed)


def handle_delete_topics(call: Call, request: DeleteTopicsRequest) -> None:
    def failed(error: KafkaError) -> DeleteTopicsResponse:
        results = [
            DeletableTopicResult(
                name=topic.name, topic_id=topic.topic_id, error_code=error.code, error_message=error.message
            )
            for topic in request.topics
        ]
        return DeleteTopicsResponse(responses=results)

    if call.version < FIRST_TOPIC_STATE_VERSION:
        request.topics = [DeleteTopicState(name=name) for name in request.topic_names]
    if not call.node.config.get_bool("delete.topic.enable"):
        # Older clients do not know the error for it.
        code = errors.INVALID_REQUEST if call.version < 3 else errors.TOPIC_DELETION_DISABLED
        call.respond(failed(KafkaError(code)))
        return
    submit(call, lambda controller: controller.delete_topics(request, call.now_ms), failed)


def handle_create_partitions(call: Call, request: CreatePartitionsRequest) -> None:
    def failed(error: KafkaError) -> CreatePartitionsResponse:
        results = [
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=results)

    submit(call, lambda controller: controller.create_partitions(request, call.now_ms), failed)
