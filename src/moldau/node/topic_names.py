"""Topic names: which are valid, which are Kafka's own."""

from __future__ import annotations

from moldau.config.resources import check_topic_name
from moldau.protocol.errors import KafkaError

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def is_valid_topic_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True
