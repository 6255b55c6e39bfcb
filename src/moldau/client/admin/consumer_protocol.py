"""Reads what consumers of the older protocol put into the opaque bytes of a group."""

from __future__ import annotations

from moldau.client.results import TopicPartition
from moldau.protocol.primitives import DecodeError, Reader


def read_assignment(data: bytes) -> list[TopicPartition]:
    """The partitions of a member; none where the bytes are empty or not understood."""
    from moldau.protocol.messages.consumer_protocol import ConsumerProtocolAssignment

    if len(data) < 2:
        return []
    try:
        found = ConsumerProtocolAssignment.decode(Reader(data, 2), _version(data, ConsumerProtocolAssignment))
    except DecodeError:
        return []
    return sorted(TopicPartition(row.topic, index) for row in found.assigned_partitions for index in row.partitions)


def read_topics(data: bytes) -> list[str] | None:
    """The topics that a member wants; None where the bytes are not understood."""
    from moldau.protocol.messages.consumer_protocol import ConsumerProtocolSubscription

    if len(data) < 2:
        return None
    try:
        found = ConsumerProtocolSubscription.decode(Reader(data, 2), _version(data, ConsumerProtocolSubscription))
    except DecodeError:
        return None
    return list(found.topics)


def _version(data: bytes, kind: type) -> int:
    """A newer version begins with the fields of the highest one that is known."""
    highest: int = kind.HIGHEST_VERSION  # type: ignore[attr-defined]
    return min(int.from_bytes(data[:2], "big"), highest)
