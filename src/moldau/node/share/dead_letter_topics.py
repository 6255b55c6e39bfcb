"""Where the dead letters of a group go, and whether they may.

Looked at anew before each write, as everything about it may change: the group's topic, the cluster's prefix, the topic
itself. Kafka: ShareGroupDLQManager.
"""

from __future__ import annotations

import logging
from typing import Final

from moldau.config.resources import check_topic_name
from moldau.metadata.image import MetadataImage
from moldau.metadata.model import TOPIC_RESOURCE
from moldau.node.controller_channel import ControllerChannel
from moldau.node.share.settings import ShareSettings
from moldau.protocol import errors
from moldau.protocol.api_table import CREATE_TOPICS
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.create_topics_request import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from moldau.protocol.messages.create_topics_response import CreateTopicsResponse
from moldau.protocol.primitives import Message

ENABLE_KEY: Final = "errors.deadletterqueue.group.enable"


PATIENCE_MS: Final = 30_000

log = logging.getLogger("moldau.node")


class NotAllowed(Exception):
    """There will be no dead letter unless somebody changes a setting; the text says which."""


class TopicMissing(Exception):
    """The topic does not exist, and is to be created."""

    def __init__(self, name: str) -> None:
        super().__init__(f"topic {name} is being created")
        self.name = name


class NoLeader(Exception):
    """The partition has no leader now."""


class LetterBox:
    """The partition that dead letters of one share partition go to, and its leader."""

    __slots__ = ("index", "leader", "topic")

    def __init__(self, topic: str, index: int, leader: int) -> None:
        self.topic = topic
        self.index = index
        self.leader = leader


def find_letter_box(image: MetadataImage, settings: ShareSettings, group_id: str, source_index: int) -> LetterBox:
    """Raises NotAllowed, TopicMissing or NoLeader."""
    name = settings.dead_letter_topic_of(image, group_id)
    if not name:
        raise NotAllowed("the group has no errors.deadletterqueue.topic.name any more")
    try:
        check_topic_name(name)
    except KafkaError as error:
        raise NotAllowed(str(error)) from None
    if name.startswith("__"):
        raise NotAllowed(f"the name of topic {name} begins with __")
    if not name.startswith(settings.dead_letter_prefix):
        prefix = f"{settings.dead_letter_prefix} (errors.deadletterqueue.topic.name.prefix)"
        raise NotAllowed(f"the name of topic {name} does not begin with {prefix}")
    topic = image.topics_by_name.get(name)
    if topic is None:
        if not settings.creates_dead_letter_topics:
            reason = "errors.deadletterqueue.auto.create.topics.enable is false"
            raise NotAllowed(f"topic {name} does not exist and {reason}")
        raise TopicMissing(name)
    if image.config(TOPIC_RESOURCE, name).get(ENABLE_KEY, "false").strip().lower() != "true":
        raise NotAllowed(f"{ENABLE_KEY} of topic {name} is not true")
    index = source_index % len(topic.partitions)
    registration = topic.partitions.get(index)
    if registration is None or registration.leader < 0:
        raise NoLeader(f"{name}-{index} has no leader")
    return LetterBox(name, index, registration.leader)


def new_letter_topic(name: str) -> CreatableTopic:
    """With the cluster's defaults for partitions and replicas."""
    return CreatableTopic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        configs=[
            CreatableTopicConfig(name=ENABLE_KEY, value="true"),
            CreatableTopicConfig(name="message.timestamp.type", value="CreateTime"),
        ],
    )


class LetterTopics:
    """Has the controller create topics, each once at a time, however many ask; they ask again until it is there."""

    def __init__(self, controller: ControllerChannel) -> None:
        self._controller = controller
        self._in_creation: set[str] = set()

    def create(self, name: str, now_ms: int) -> None:
        if name in self._in_creation:
            return
        self._in_creation.add(name)
        request = CreateTopicsRequest([new_letter_topic(name)], PATIENCE_MS)

        def done(result: Message | KafkaError, now_ms: int) -> None:
            self._in_creation.discard(name)
            if isinstance(result, KafkaError):
                log.warning("cannot create topic %s for dead letters: %s", name, result)
                return
            assert isinstance(result, CreateTopicsResponse)
            for topic in result.topics:
                if topic.error_code not in (errors.NONE, errors.TOPIC_ALREADY_EXISTS):
                    why = topic.error_message or errors.error_name(topic.error_code)
                    log.warning("cannot create topic %s for dead letters: %s", name, why)

        self._controller.ask_until(now_ms + PATIENCE_MS, CREATE_TOPICS, request, done, now_ms)
