"""What an assignor is: given the members of a group and the partitions of its topics, it says who reads what.

The leader of a group runs the assignor for all. What a member tells the leader beyond its topics, and what it learns
from an assignment, are an assignor's own: subscription_user_data() and on_assignment().
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from moldau.client.results import ConsumerGroupMetadata, TopicPartition


class RebalanceProtocol(Enum):
    """How members give up partitions: all before each rebalance, or (KIP-429) only those that move, after it."""

    EAGER = 0
    COOPERATIVE = 1


class PartitionReplicas(NamedTuple):
    """A partition and the racks of its replicas, as far as its brokers have racks."""

    partition: TopicPartition
    racks: frozenset[str]


# The topics that anyone in the group wants and that exist, with their partitions in order.
GroupMetadata = Mapping[str, Sequence[PartitionReplicas]]


class MemberSubscription(NamedTuple):
    """What one member told the leader."""

    topics: list[str]
    user_data: bytes | None = None
    owned_partitions: Sequence[TopicPartition] = ()
    # Of the last assignment that the member had; -1: none, or the member does not say.
    generation_id: int = -1
    rack: str | None = None
    group_instance_id: str | None = None


class MemberAssignment(NamedTuple):
    """What one member gets."""

    partitions: list[TopicPartition]
    user_data: bytes | None = None


class Assignor:
    """Subclass it for an assignor of your own; name is what members agree on."""

    name: str = ""
    protocols: tuple[RebalanceProtocol, ...] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: Collection[str]) -> bytes | None:
        """What the leader is to know of this member beside its topics."""
        return None

    def assign(
        self, metadata: GroupMetadata, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, MemberAssignment]:
        """Runs on the leader: member id -> what it gets. Every member is a key, also one that gets nothing."""
        raise NotImplementedError

    def on_assignment(self, assignment: MemberAssignment, metadata: ConsumerGroupMetadata) -> None:
        """Runs on each member when it got its part."""


def sorted_members(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Kafka's order: static members by their instance id, then the others by their member id."""
    return sorted(subscriptions, key=lambda member: _member_key(member, subscriptions[member]))


def _member_key(member_id: str, subscription: MemberSubscription) -> tuple[bool, str]:
    instance_id = subscription.group_instance_id
    return (False, instance_id) if instance_id is not None else (True, member_id)


def members_by_topic(subscriptions: Mapping[str, MemberSubscription]) -> dict[str, list[str]]:
    """The members that want a topic, in Kafka's order."""
    found: dict[str, list[str]] = {}
    for member in sorted_members(subscriptions):
        for topic in dict.fromkeys(subscriptions[member].topics):
            found.setdefault(topic, []).append(member)
    return found


def racks_matter(member_racks: Collection[str], partitions: Sequence[PartitionReplicas]) -> bool:
    """False where no member is in a replica's rack, or every partition is in all racks anyway (KIP-881)."""
    all_racks: frozenset[str] = frozenset().union(*(row.racks for row in partitions))
    if all_racks.isdisjoint(member_racks):
        return False
    return any(row.racks != all_racks for row in partitions)
