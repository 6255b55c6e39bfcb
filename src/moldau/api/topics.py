"""CreateTopics, DeleteTopics, CreatePartitions: decided by the active controller, answered when committed.

CreateTopics 2-7 (-1 for the default number of partitions and replicas from version 4, topic ids in 7), DeleteTopics 1-6
(by id in 6), CreatePartitions 0-3.
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
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from moldau.protocol.uuids import ZERO_UUID


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
        named = [(topic.name, topic.topic_id) for topic in request.topics]
        named += [(name, ZERO_UUID) for name in request.topic_names]
        results = [
            DeletableTopicResult(name=name, topic_id=topic_id, error_code=error.code, error_message=error.message)
            for name, topic_id in named
        ]
        return DeleteTopicsResponse(responses=results)

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
