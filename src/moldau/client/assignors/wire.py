"""Subscriptions and assignments as bytes, as all consumers of the classic protocol exchange them."""

from __future__ import annotations

from collections.abc import Iterable

from moldau.client.assignors.base import MemberAssignment, MemberSubscription
from moldau.client.errors import ClientError, error_for
from moldau.client.results import TopicPartition
from moldau.protocol.errors import INCONSISTENT_GROUP_PROTOCOL
from moldau.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
)
from moldau.protocol.primitives import DecodeError, Reader, Writer


def write_subscription(subscription: MemberSubscription) -> bytes:
    message = ConsumerProtocolSubscription(
        topics=sorted(subscription.topics),
        user_data=subscription.user_data,
        owned_partitions=[
            SubscriptionTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(sorted(subscription.owned_partitions)).items()
        ],
        generation_id=subscription.generation_id,
        rack_id=subscription.rack or None,
    )
    writer = Writer()
    writer.int16(ConsumerProtocolSubscription.HIGHEST_VERSION)
    message.encode(writer, ConsumerProtocolSubscription.HIGHEST_VERSION)
    return writer.to_bytes()


def read_subscription(data: bytes, group_instance_id: str | None = None) -> MemberSubscription:
    reader, version = _open(data, ConsumerProtocolSubscription.HIGHEST_VERSION, "subscription")
    try:
        found = ConsumerProtocolSubscription.decode(reader, version)
    except DecodeError as error:
        raise _not_understood("subscription", str(error)) from None
    owned = [TopicPartition(row.topic, number) for row in found.owned_partitions for number in row.partitions]
    return MemberSubscription(
        list(found.topics), found.user_data, owned, found.generation_id, found.rack_id or None, group_instance_id
    )


def write_assignment(assignment: MemberAssignment) -> bytes:
    message = ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignmentTopicPartition(topic=topic, partitions=partitions)
            for topic, partitions in _by_topic(assignment.partitions).items()
        ],
        user_data=assignment.user_data,
    )
    writer = Writer()
    writer.int16(ConsumerProtocolAssignment.HIGHEST_VERSION)
    message.encode(writer, ConsumerProtocolAssignment.HIGHEST_VERSION)
    return writer.to_bytes()


def read_assignment(data: bytes) -> MemberAssignment:
    """No bytes at all are no partitions: a leader may leave out a member."""
    if not data:
        return MemberAssignment([])
    reader, version = _open(data, ConsumerProtocolAssignment.HIGHEST_VERSION, "assignment")
    try:
        found = ConsumerProtocolAssignment.decode(reader, version)
    except DecodeError as error:
        raise _not_understood("assignment", str(error)) from None
    partitions = [TopicPartition(row.topic, number) for row in found.assigned_partitions for number in row.partitions]
    return MemberAssignment(partitions, found.user_data)


def _open(data: bytes, highest: int, what: str) -> tuple[Reader, int]:
    """A newer version begins with the fields of the highest one that is known."""
    if len(data) < 2:
        raise _not_understood(what, "it has no version")
    version = int.from_bytes(data[:2], "big", signed=True)
    if version < 0:
        raise _not_understood(what, f"version {version} does not exist")
    return Reader(data, 2), min(version, highest)


def _not_understood(what: str, reason: str) -> ClientError:
    return error_for(INCONSISTENT_GROUP_PROTOCOL, f"The {what} of a member of the group cannot be read: {reason}.")


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    return found
