"""What ShareFetch and ShareAcknowledge have in common: the first checks, partitions by topic id, acknowledgements."""

from __future__ import annotations

from typing import Final

from moldau.api.authorize import check_group
from moldau.api.call import Call
from moldau.api.leader_hints import Endpoint, find_leader
from moldau.node.auto_creation import create_own_topic
from moldau.node.node import Node
from moldau.node.share.acknowledgement import Acknowledgement
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages import share_acknowledge_request, share_fetch_request
from moldau.protocol.topic_names import SHARE_TOPIC
from moldau.security.rights import READ

MEMBER_ID_LENGTH_MAX: Final = 36
ERRORS_WITH_LEADER: Final = (errors.NOT_LEADER_OR_FOLLOWER, errors.FENCED_LEADER_EPOCH)

AcknowledgementBatch = share_fetch_request.AcknowledgementBatch | share_acknowledge_request.AcknowledgementBatch


def check_member(call: Call, group_id: str | None, member_id: str | None) -> tuple[str, str]:
    """Group and member of a request; raises what the whole request gets in its response."""
    if not call.node.shares.is_enabled:
        raise KafkaError(errors.UNSUPPORTED_VERSION)
    if group_id is None:
        raise KafkaError(errors.INVALID_REQUEST)
    check_group(call, READ, group_id)
    if not member_id or len(member_id) > MEMBER_ID_LENGTH_MAX:
        raise KafkaError(errors.INVALID_REQUEST)
    ensure_state_topic(call)
    return group_id, member_id


def ensure_state_topic(call: Call) -> None:
    """Whoever comes first makes the topic; until it is there states are asked for again and again."""
    if SHARE_TOPIC not in call.node.image.topics_by_name:
        create_own_topic(call.node, SHARE_TOPIC, call.now_ms)


def topic_name(node: Node, topic_id: bytes) -> str:
    topic = node.image.topics_by_id.get(topic_id)
    if topic is None:
        raise KafkaError(errors.UNKNOWN_TOPIC_ID)
    return topic.name


def check_partition(node: Node, topic_id: bytes, index: int) -> str:
    """The topic's name; raises when the metadata does not know the partition."""
    name = topic_name(node, topic_id)
    if index not in node.image.topics_by_id[topic_id].partitions:
        raise KafkaError(errors.UNKNOWN_TOPIC_OR_PARTITION)
    return name


def entries_of(batches: list[share_fetch_request.AcknowledgementBatch]) -> list[Acknowledgement]:
    return [Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types) for batch in batches]


def entries_of_acknowledge(batches: list[share_acknowledge_request.AcknowledgementBatch]) -> list[Acknowledgement]:
    return [Acknowledgement(batch.first_offset, batch.last_offset, batch.acknowledge_types) for batch in batches]


class LeaderHints:
    """Where clients find the leaders that they should have asked, each broker once."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self.endpoints: list[Endpoint] = []

    def leader_of(self, name: str, index: int) -> tuple[int, int]:
        hint = find_leader(self._call, name, index, [endpoint[0] for endpoint in self.endpoints])
        if hint.endpoint is not None:
            self.endpoints.append(hint.endpoint)
        return hint.leader_id, hint.leader_epoch
