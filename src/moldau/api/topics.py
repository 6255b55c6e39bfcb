"""CreateTopics, DeleteTopics, CreatePartitions: decided by the active controller, responses when committed.

CreateTopics 2-7 (-1 for the default number of partitions and replicas from version 4, topic ids in 7), DeleteTopics 1-6
(by id in 6), CreatePartitions 0-3.
"""

from __future__ import annotations

from collections import Counter

from moldau.api.authorize import denied_topics, may, may_cluster
from moldau.api.call import Call
from moldau.api.forward import submit
from moldau.controller.controller import Controller
from moldau.controller.mutations import Asker
from moldau.controller.result import Result
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_partitions_request import CreatePartitionsRequest
from moldau.protocol.messages.create_partitions_response import CreatePartitionsResponse, CreatePartitionsTopicResult
from moldau.protocol.messages.create_topics_request import CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreatableTopicResult, CreateTopicsResponse
from moldau.protocol.messages.delete_topics_request import DeleteTopicsRequest
from moldau.protocol.messages.delete_topics_response import DeletableTopicResult, DeleteTopicsResponse
from moldau.protocol.topic_names import METADATA_TOPIC
from moldau.protocol.uuids import ZERO_UUID
from moldau.security.rights import ALTER, CREATE, DELETE, DESCRIBE, DESCRIBE_CONFIGS, TOPIC

# From these versions on a client knows the error that refuses it for its quota of changes (KIP-599).
STRICT_CREATE_TOPICS = 6
STRICT_DELETE_TOPICS = 5
STRICT_CREATE_PARTITIONS = 3
DENIED = "Authorization failed."


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
    submit(call, lambda controller: create_topics(call, controller, request, client), failed)


def create_topics(call: Call, controller: Controller, request: CreateTopicsRequest, client: Asker) -> Result:
    """On the controller: what who asks may not create is refused, and what it may not see of a topic not told."""
    if call.node.rights is None:
        return controller.create_topics(request, call.now_ms, client)
    counts = Counter(topic.name for topic in request.topics)
    allowed = [name for name, count in counts.items() if count == 1 and name != METADATA_TOPIC]
    denied = set() if may_cluster(call, CREATE, is_filter=True) else denied_topics(call, CREATE, allowed)
    hidden = denied_topics(call, DESCRIBE_CONFIGS, allowed, is_filter=True)
    rest = [topic for topic in request.topics if topic.name not in denied]
    asked = CreateTopicsRequest(rest, request.timeout_ms, request.validate_only)
    result = controller.create_topics(asked, call.now_ms, client)
    for row in result.response.topics:
        if row.name in hidden and row.error_code == errors.NONE:
            row.topic_config_error_code = errors.TOPIC_AUTHORIZATION_FAILED
            row.num_partitions = row.replication_factor = -1
            row.configs = []
    code = errors.TOPIC_AUTHORIZATION_FAILED
    result.response.topics += [
        CreatableTopicResult(name=name, error_code=code, error_message=DENIED) for name in sorted(denied)
    ]
    return result


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
    submit(call, lambda controller: delete_topics(call, controller, request, client), failed)


def delete_topics(call: Call, controller: Controller, request: DeleteTopicsRequest, client: Asker) -> Result:
    """On the controller: whoever may not see a topic cannot tell whether it is there."""
    if call.node.rights is None or may_cluster(call, DELETE, is_filter=True):
        return controller.delete_topics(request, call.now_ms, client)
    deletion = Deletion(call, controller)
    wanted: list[tuple[str | None, bytes]] = [(name, ZERO_UUID) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    counts = Counter(wanted)
    refused: dict[tuple[str | None, bytes], DeletableTopicResult] = {}
    for name, topic_id in counts:
        is_clear = counts[name, topic_id] == 1 and (name is None) != (topic_id == ZERO_UUID)
        row = deletion.refusal(name, topic_id) if is_clear else None  # the others are refused for what they say
        if row is not None:
            refused[name, topic_id] = row
    names = [name for name in request.topic_names if (name, ZERO_UUID) not in refused]
    topics = [topic for topic in request.topics if (topic.name, topic.topic_id) not in refused]
    result = controller.delete_topics(DeleteTopicsRequest(topics, names, request.timeout_ms), call.now_ms, client)
    result.response.responses += list(refused.values())
    return result


class Deletion:
    """What is told to somebody who may not delete a topic."""

    def __init__(self, call: Call, controller: Controller) -> None:
        self._call = call
        self._image = controller.image

    def refusal(self, name: str | None, topic_id: bytes) -> DeletableTopicResult | None:
        call, code = self._call, errors.TOPIC_AUTHORIZATION_FAILED
        text = errors.default_text(code)
        if name is not None:
            if not may(call, DESCRIBE, TOPIC, name):
                return DeletableTopicResult(name, ZERO_UUID, code, text)
            topic = self._image.topics_by_name.get(name)
            if topic is None or may(call, DELETE, TOPIC, name):
                return None
            return DeletableTopicResult(name, topic.topic_id, code, text)
        topic = self._image.topics_by_id.get(topic_id)
        if topic is None or may(call, DELETE, TOPIC, topic.name):
            return None
        shown = topic.name if may(call, DESCRIBE, TOPIC, topic.name, is_filter=True) else None
        return DeletableTopicResult(shown, topic_id, code, text)


def handle_create_partitions(call: Call, request: CreatePartitionsRequest) -> None:
    def failed(error: KafkaError) -> CreatePartitionsResponse:
        results = [
            CreatePartitionsTopicResult(name=topic.name, error_code=error.code, error_message=error.message)
            for topic in request.topics
        ]
        return CreatePartitionsResponse(results=results)

    client = asker(call, STRICT_CREATE_PARTITIONS)
    submit(call, lambda controller: create_partitions(call, controller, request, client), failed)


def create_partitions(call: Call, controller: Controller, request: CreatePartitionsRequest, client: Asker) -> Result:
    if call.node.rights is None:
        return controller.create_partitions(request, call.now_ms, client)
    counts = Counter(topic.name for topic in request.topics)
    denied = denied_topics(call, ALTER, [name for name, count in counts.items() if count == 1])
    rest = [topic for topic in request.topics if topic.name not in denied]
    asked = CreatePartitionsRequest(rest, request.timeout_ms, request.validate_only)
    result = controller.create_partitions(asked, call.now_ms, client)
    code = errors.TOPIC_AUTHORIZATION_FAILED
    result.response.results += [
        CreatePartitionsTopicResult(name=name, error_code=code, error_message=None) for name in sorted(denied)
    ]
    return result
