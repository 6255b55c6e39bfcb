"""Creates topics that clients ask for and that do not exist, each once, however many ask.

A topic that a client named is created in the client's name, who pays for it with its quota of changes: while that is
used up it is not created. What a coordinator needs is created in the broker's own name.
"""

from __future__ import annotations

import logging

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
    node.topics_in_creation.update(wanted)
    request = CreateTopicsRequest(timeout_ms=PATIENCE_MS)
    for name in wanted:
        own = internal_topic(name, node.config)
        request.topics.append(own or CreatableTopic(name=name, num_partitions=-1, replication_factor=-1))

    def done(result: Message | KafkaError, now_ms: int) -> None:
        if isinstance(result, EnvelopeResponse):
            from moldau.node.envelope import unpack_response

            result = unpack_response(result, CREATE_TOPICS, REQUEST_VERSION)
        tell_created(node, wanted, result)

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
