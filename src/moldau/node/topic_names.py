"""Topic names: which are valid, which are Kafka's own."""

from __future__ import annotations

from moldau.config.resources import check_topic_name
from moldau.protocol.errors import KafkaError
from moldau.protocol.topic_names import GROUP_TOPIC, SHARE_TOPIC, TRANSACTION_TOPIC

INTERNAL_TOPICS = frozenset({GROUP_TOPIC, TRANSACTION_TOPIC, SHARE_TOPIC})


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def is_valid_topic_name(name: str) -> bool:
    try:
        check_topic_name(name)
    except KafkaError:
        return False
    return True
