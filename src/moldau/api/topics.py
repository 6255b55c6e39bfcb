"""CreateTopics, DeleteTopics, CreatePartitions: decided by the active controller, answered when committed.

CreateTopics 2-7 (-1 for the default number of partitions and replicas from version 4, topic ids in 7), DeleteTopics 1-6
(by id in 6), CreatePartitions 0-3.
"""

from __future__ import annotations

from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.controller.mutations import Asker
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest
from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from moldau.protocol.uuids import ZERO_UUID

# From these versions on a client knows the error that refuses it for its quota of changes (KIP-599).
STRICT_CREATE_TOPICS = 6
STRICT_DELETE_TOPICS = 5
STRICT_CREATE_PARTITIONS = 3


def asker(call: Call, first_strict_version: int) -> Asker:
    """The client who asked; of a request in an envelope, the one that the broker names."""
    user = call.context.principal.partition(":")[2]
    return Asker(user, call.client_id or "", call.version >= first_strict_version)


def handle_create_topics(call: Call, request: CreateTopicsRequest) -> None:
    def failed(error: KafkaError) -> CreateTopicsResponse:
        results = [
            CreatableTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
        return CreateTopicsResponse(topics=results)

    client = asker(call, STRICT_CREATE_TOPICS)
    submit(call, lambda controller: controller.create_topics(request, call.now_ms, client), failed)


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
    client = asker(call, STRICT_DELETE_TOPICS)
    submit(call, lambda controller: controller.delete_topics(request, call.now_ms, client), failed)


def handle_create_partitions(call: Call, request: CreatePartitionsRequest) -> None:
    def failed(error: KafkaError) -> CreatePartitionsResponse:
        results = [
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=results)

    client = asker(call, STRICT_CREATE_PARTITIONS)
    submit(call, lambda controller: controller.create_partitions(request, call.now_ms, client), failed)
