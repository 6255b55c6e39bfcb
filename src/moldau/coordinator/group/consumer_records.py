"""The records of consumer groups: one function for each kind that is written, and for its tombstone."""

from __future__ import annotations

from moldau.coordinator.group.consumer_member import ConsumerMember, OwnedPartitions, Partitions
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
    ConsumerCurrentPartitions,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
    ConsumerTargetPartitions,
    encode_group_key,
    encode_group_value,
)


def _record(key: Message, value: Message | None) -> StoredRecord:
    return encode_group_key(key), None if value is None else encode_group_value(value, 0)


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    return _record(ConsumerGroupMetadataKey(group_id), ConsumerGroupMetadataValue(epoch, metadata_hash))


def group_epoch_tombstone(group_id: str) -> StoredRecord:
    return _record(ConsumerGroupMetadataKey(group_id), None)


def partition_metadata_tombstone(group_id: str) -> StoredRecord:
    """Releases before 4.1 wrote the partitions of the subscribed topics down; now there is the hash."""
    return _record(ConsumerGroupPartitionMetadataKey(group_id), None)


def member_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    return _record(
        ConsumerGroupMemberMetadataKey(group_id, member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.subscribed_topic_names),
            subscribed_topic_regex=member.subscribed_topic_regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.server_assignor,
            classic_member_metadata=member.classic,
        ),
    )


def member_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(ConsumerGroupMemberMetadataKey(group_id, member_id), None)


def assignment_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    return _record(
        ConsumerGroupTargetAssignmentMetadataKey(group_id),
        ConsumerGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def assignment_epoch_tombstone(group_id: str) -> StoredRecord:
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id), None)


def target_record(group_id: str, member_id: str, target: Partitions) -> StoredRecord:
    return _record(
        ConsumerGroupTargetAssignmentMemberKey(group_id, member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            [ConsumerTargetPartitions(topic_id, sorted(partitions)) for topic_id, partitions in target.items()]
        ),
    )


def target_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id, member_id), None)


def current_record(group_id: str, member: ConsumerMember) -> StoredRecord:
    return _record(
        ConsumerGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            assigned_partitions=_current_partitions(member.assigned),
            partitions_pending_revocation=_current_partitions(member.pending_revocation),
        ),
    )


def _current_partitions(owned: OwnedPartitions) -> list[ConsumerCurrentPartitions]:
    topics: list[ConsumerCurrentPartitions] = []
    for topic_id, epochs in owned.items():
        partitions = sorted(epochs)
        topics.append(ConsumerCurrentPartitions(topic_id, partitions, [epochs[index] for index in partitions]))
    return topics


def current_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id, member_id), None)


def regex_record(group_id: str, regex: str, topics: frozenset[str], version: int, timestamp_ms: int) -> StoredRecord:
    return _record(
        ConsumerGroupRegularExpressionKey(group_id, regex),
        ConsumerGroupRegularExpressionValue(sorted(topics), version, timestamp_ms),
    )


def regex_tombstone(group_id: str, regex: str) -> StoredRecord:
    return _record(ConsumerGroupRegularExpressionKey(group_id, regex), None)


def remove_member(group_id: str, member_id: str) -> list[StoredRecord]:
    """Everything a member leaves behind, in the order in which it is taken away."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]
