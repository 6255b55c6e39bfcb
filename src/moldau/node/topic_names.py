"""Topic names: which are valid, which are Kafka's own."""

from __future__ import annotations

import re

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
CLUSTER_METADATA_TOPIC = "__cluster_metadata"
NAME_LENGTH_MAX = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def is_internal(name: str) -> bool:
    return name in INTERNAL_TOPICS


def is_valid_topic_name(name: str) -> bool:
    return 0 < len(name) <= NAME_LENGTH_MAX and name not in (".", "..") and _LEGAL.fullmatch(name) is not None
