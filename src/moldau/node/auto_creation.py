"""Creates topics that clients ask for and that do not exist, each once, however many ask."""

from __future__ import annotations

import logging

from moldau.node.internal_topics import GROUP_TOPIC, group_topic
from moldau.node.node import Node
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.primitives import Message

log = logging.getLogger("moldau.node")


def create_missing_topics(node: Node, names: list[str], now_ms: int) -> None:
    """Starts the creation; the clients ask again until it is done."""
    wanted = [name for name in names if name not in node.topics_in_creation]
    if not wanted:
        return
    node.topics_in_creation.update(wanted)
    request = CreateTopicsRequest(timeout_ms=30_000)
    for name in wanted:
        if name == GROUP_TOPIC:
            request.topics.append(group_topic(node.config))
        else:
            request.topics.append(CreatableTopic(name=name, num_partitions=-1, replication_factor=-1))

    def done(result: Message | KafkaError) -> None:
        node.topics_in_creation.difference_update(wanted)
        if isinstance(result, KafkaError):
            log.warning("cannot create %s automatically: %s", ", ".join(wanted), result)
            return
        assert isinstance(result, CreateTopicsResponse)
        for topic in result.topics:
            if topic.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
                log.warning("cannot create %s automatically: %s", topic.name, topic.error_message)

    node.metadata.submit(lambda controller: controller.create_topics(request, now_ms), done, now_ms)
