"""Creates topics that clients ask for and that do not exist, each once, however many ask.

A topic that a client named is created in the client's name, who pays for it with its quota of changes: while that is
used up it is not created. So are the internal topics of a streams application, in the name of the member whose
heartbeat is answered. What a coordinator needs is created in the broker's own name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from moldau.controller.mutations import Asker
from moldau.node.context import ClientContext
from moldau.node.internal_topics import internal_topic
from moldau.node.node import Node
from moldau.protocol import errors
from moldau.protocol.api_table import CREATE_TOPICS, ENVELOPE
from moldau.protocol.errors import KafkaError, default_text
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.messages.envelope_response import EnvelopeResponse
from moldau.protocol.primitives import Message

log = logging.getLogger("moldau.node")


PATIENCE_MS = 30_000
REQUEST_VERSION = 7
NO_PEER = "0.0.0.0:0"


def create_own_topic(node: Node, name: str, now_ms: int) -> None:
    """Starts the creation of a topic that this broker needs itself."""
    if node.rights is None:
        context = ClientContext(node.config.inter_broker_listener_name, NO_PEER)
        create_missing_topics(node, [name], context, str(node.node_id), now_ms)
    elif name not in node.topics_in_creation:
        create_as_broker(node, name, now_ms)


def create_as_broker(node: Node, name: str, now_ms: int) -> None:
    """Where there are rights, the broker asks in its own name, with those of its connection to the controller."""
    node.topics_in_creation.add(name)
    topic = internal_topic(name, node.config) or CreatableTopic(name=name, num_partitions=-1, replication_factor=-1)
    request = CreateTopicsRequest(topics=[topic], timeout_ms=PATIENCE_MS)

    def done(result: Message | KafkaError, now_ms: int) -> None:
        tell_created(node, [name], result)

    node.forwarding.ask_until(now_ms + PATIENCE_MS, CREATE_TOPICS, request, done, now_ms)


def create_missing_topics(
    node: Node, names: list[str], context: ClientContext, client_id: str | None, now_ms: int
) -> None:
    """Starts the creation in the name of a client; the clients ask again until it is done."""
    wanted = [name for name in names if name not in node.topics_in_creation]
    if not wanted:
        return
    topics: list[CreatableTopic] = []
    for name in wanted:
        own = internal_topic(name, node.config)
        topics.append(own or CreatableTopic(name=name, num_partitions=-1, replication_factor=-1))

    def done(result: Message | KafkaError, now_ms: int) -> None:
        tell_created(node, wanted, result)

    create_for_client(node, topics, context, client_id, done, now_ms)


def create_streams_topics(
    node: Node, topics: list[CreatableTopic], context: ClientContext, client_id: str | None, keep_ms: int, now_ms: int
) -> None:
    """Starts the creation of internal topics of a streams application; failures are remembered for a while."""
    failed = node.failed_topics.among([topic.name for topic in topics], now_ms)
    wanted = [topic for topic in topics if topic.name not in node.topics_in_creation and topic.name not in failed]
    if not wanted:
        return

    def done(result: Message | KafkaError, now_ms: int) -> None:
        tell_created(node, [topic.name for topic in wanted], result)
        for name, reason in failures(wanted, result).items():
            node.failed_topics.note(name, reason, now_ms + keep_ms)

    create_for_client(node, wanted, context, client_id, done, now_ms)


def failures(topics: list[CreatableTopic], result: Message | KafkaError) -> dict[str, str]:
    """Which of the topics were not created, and why."""
    if isinstance(result, KafkaError):
        return {topic.name: result.message or default_text(result.code) for topic in topics}
    assert isinstance(result, CreateTopicsResponse)
    return {
        topic.name: topic.error_message or default_text(topic.error_code)
        for topic in result.topics
        if topic.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS)
    }


def create_for_client(
    node: Node,
    topics: list[CreatableTopic],
    context: ClientContext,
    client_id: str | None,
    tell: Callable[[Message | KafkaError, int], None],
    now_ms: int,
) -> None:
    """Asks the controller, here or elsewhere, in the name of a client; `tell` gets its response."""
    node.topics_in_creation.update(topic.name for topic in topics)
    request = CreateTopicsRequest(topics=topics, timeout_ms=PATIENCE_MS)

    def done(result: Message | KafkaError, now_ms: int) -> None:
        if isinstance(result, EnvelopeResponse):
            from moldau.node.envelope import unpack_response

            result = unpack_response(result, CREATE_TOPICS, REQUEST_VERSION)
        tell(result, now_ms)

    def envelope() -> Message:
        from moldau.node.envelope import pack_request

        return pack_request(context, request, REQUEST_VERSION, 0, client_id)

    asker = Asker(context.principal.partition(":")[2], client_id or "", True)
    node.forwarding.ask_until(
        now_ms + PATIENCE_MS,
        ENVELOPE,
        envelope,
        done,
        now_ms,
        lambda controller: controller.create_topics(request, now_ms, asker),
    )


def tell_created(node: Node, wanted: list[str], result: Message | KafkaError) -> None:
    node.topics_in_creation.difference_update(wanted)
    if isinstance(result, KafkaError):
        log.warning("cannot create %s automatically: %s", ", ".join(wanted), result)
        return
    assert isinstance(result, CreateTopicsResponse)
    for topic in result.topics:
        if topic.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
            reason = topic.error_message or default_text(topic.error_code)
            log.warning("cannot create %s automatically: %s", topic.name, reason)
