"""One member of a consumer group: what it wants, what it has, and how far it is on the way to its target.

Members are never changed: whoever wants another one makes a copy and changes that before it is shown to anybody.
"""

from __future__ import annotations

from typing import Final

from moldau.protocol.stored.group_records import (
    ClassicMemberMetadata,
    ConsumerCurrentPartitions,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataValue,
)

STABLE: Final = 0
UNREVOKED_PARTITIONS: Final = 1
UNRELEASED_PARTITIONS: Final = 2
UNKNOWN: Final = 127
STATE_NAMES: Final = {
    STABLE: "STABLE",
    UNREVOKED_PARTITIONS: "UNREVOKED_PARTITIONS",
    UNRELEASED_PARTITIONS: "UNRELEASED_PARTITIONS",
    UNKNOWN: "UNKNOWN",
}

JOINING_EPOCH: Final = 0
LEFT_EPOCH: Final = -1
LEFT_FOR_A_WHILE_EPOCH: Final = -2
"""Epochs with which a member joins, leaves, and leaves as a static member that will be back."""

Partitions = dict[bytes, frozenset[int]]
"""Partitions by topic id; topics without partitions are left out."""

OwnedPartitions = dict[bytes, dict[int, int]]
"""By topic id, each partition with the epoch in which it was assigned; topics without partitions are left out."""


class ConsumerMember:
    """See the module. A regular expression of "" is none."""

    __slots__ = (
        "assigned",
        "classic",
        "client_host",
        "client_id",
        "instance_id",
        "member_epoch",
        "member_id",
        "pending_revocation",
        "previous_member_epoch",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "state",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.member_epoch = JOINING_EPOCH
        self.previous_member_epoch = -1
        self.state = STABLE
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.rebalance_timeout_ms = -1
        self.client_id = ""
        self.client_host = ""
        self.subscribed_topic_names: frozenset[str] = frozenset()
        self.subscribed_topic_regex = ""
        self.server_assignor: str | None = None
        self.classic: ClassicMemberMetadata | None = None
        self.assigned: OwnedPartitions = {}
        self.pending_revocation: OwnedPartitions = {}

    def copy(self, member_id: str | None = None) -> ConsumerMember:
        other = ConsumerMember(self.member_id if member_id is None else member_id)
        other.member_epoch = self.member_epoch
        other.previous_member_epoch = self.previous_member_epoch
        other.state = self.state
        other.instance_id = self.instance_id
        other.rack_id = self.rack_id
        other.rebalance_timeout_ms = self.rebalance_timeout_ms
        other.client_id = self.client_id
        other.client_host = self.client_host
        other.subscribed_topic_names = self.subscribed_topic_names
        other.subscribed_topic_regex = self.subscribed_topic_regex
        other.server_assignor = self.server_assignor
        other.classic = self.classic
        other.assigned = self.assigned
        other.pending_revocation = self.pending_revocation
        return other

    @property
    def uses_classic_protocol(self) -> bool:
        return self.classic is not None

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state == STABLE and self.member_epoch == assignment_epoch

    def same_subscription(self, other: ConsumerMember) -> bool:
        """Would both be written as the same member record?"""
        return (
            self.subscribed_topic_names == other.subscribed_topic_names
            and self.subscribed_topic_regex == other.subscribed_topic_regex
            and self.rebalance_timeout_ms == other.rebalance_timeout_ms
            and self.client_id == other.client_id
            and self.client_host == other.client_host
            and self.instance_id == other.instance_id
            and self.rack_id == other.rack_id
            and self.server_assignor == other.server_assignor
            and self.classic == other.classic
        )

    def same_assignment(self, other: ConsumerMember) -> bool:
        """Would both be written as the same current assignment record?"""
        return (
            self.member_epoch == other.member_epoch
            and self.previous_member_epoch == other.previous_member_epoch
            and self.state == other.state
            and self.assigned == other.assigned
            and self.pending_revocation == other.pending_revocation
        )

    def assignment_epoch_of(self, topic_id: bytes, partition: int) -> int | None:
        """Since when the member has this partition, also if it is about to give it away; None if it has not."""
        epoch = self.assigned.get(topic_id, {}).get(partition)
        if epoch is None:
            epoch = self.pending_revocation.get(topic_id, {}).get(partition)
        return epoch

    def all_partitions(self) -> dict[bytes, set[int]]:
        """What it has, including what it is about to give up."""
        found: dict[bytes, set[int]] = {}
        for partitions in (self.assigned, self.pending_revocation):
            for topic_id, epochs in partitions.items():
                found.setdefault(topic_id, set()).update(epochs)
        return found

    # From records

    def with_subscription(self, value: ConsumerGroupMemberMetadataValue) -> ConsumerMember:
        member = self.copy()
        member.instance_id = value.instance_id
        member.rack_id = value.rack_id
        member.client_id = value.client_id
        member.client_host = value.client_host
        member.subscribed_topic_names = frozenset(value.subscribed_topic_names)
        member.subscribed_topic_regex = value.subscribed_topic_regex or ""
        member.rebalance_timeout_ms = value.rebalance_timeout_ms
        member.server_assignor = value.server_assignor
        member.classic = value.classic_member_metadata
        return member

    def with_assignment(self, value: ConsumerGroupCurrentMemberAssignmentValue) -> ConsumerMember:
        member = self.copy()
        member.member_epoch = value.member_epoch
        member.previous_member_epoch = value.previous_member_epoch
        member.state = value.state if value.state in STATE_NAMES else UNKNOWN
        member.assigned = owned_from_record(value.assigned_partitions, value.member_epoch)
        member.pending_revocation = owned_from_record(value.partitions_pending_revocation, value.member_epoch)
        return member

    def without_assignment(self) -> ConsumerMember:
        """What is left of it when its current assignment was deleted."""
        member = self.copy()
        member.member_epoch = LEFT_EPOCH
        member.previous_member_epoch = LEFT_EPOCH
        member.assigned = {}
        member.pending_revocation = {}
        return member


def owned_from_record(topics: list[ConsumerCurrentPartitions], default_epoch: int) -> OwnedPartitions:
    """Older releases do not write the epochs; then the member's epoch stands for all of them."""
    default_epoch = max(0, default_epoch)
    owned: OwnedPartitions = {}
    for topic in topics:
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            owned[topic.topic_id] = dict.fromkeys(topic.partitions, default_epoch)
        else:
            owned[topic.topic_id] = dict(zip(topic.partitions, epochs, strict=True))
    return owned
