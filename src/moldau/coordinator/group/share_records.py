"""The records of share groups: one function for each kind that is written, and for its tombstone."""

from __future__ import annotations

from moldau.coordinator.group.assignors.spec import Target
from moldau.coordinator.group.share_member import PartitionStates, ShareMember, TopicPartitions
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
    ShareCurrentPartitions,
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    ShareTargetPartitions,
    ShareTopicInfo,
    TopicPartitionsInfo,
    encode_group_key,
    encode_group_value,
)


def _record(key: Message, value: Message | None) -> StoredRecord:
    return encode_group_key(key), None if value is None else encode_group_value(value, 0)


def group_epoch_record(group_id: str, epoch: int, metadata_hash: int) -> StoredRecord:
    return _record(ShareGroupMetadataKey(group_id), ShareGroupMetadataValue(epoch, metadata_hash))


def group_epoch_tombstone(group_id: str) -> StoredRecord:
    return _record(ShareGroupMetadataKey(group_id), None)


def member_record(group_id: str, member: ShareMember) -> StoredRecord:
    return _record(
        ShareGroupMemberMetadataKey(group_id, member.member_id),
        ShareGroupMemberMetadataValue(
            member.rack_id, member.client_id, member.client_host, sorted(member.subscribed_topic_names)
        ),
    )


def member_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(ShareGroupMemberMetadataKey(group_id, member_id), None)


def assignment_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    return _record(
        ShareGroupTargetAssignmentMetadataKey(group_id), ShareGroupTargetAssignmentMetadataValue(epoch, timestamp_ms)
    )


def assignment_epoch_tombstone(group_id: str) -> StoredRecord:
    return _record(ShareGroupTargetAssignmentMetadataKey(group_id), None)


def target_record(group_id: str, member_id: str, target: Target) -> StoredRecord:
    return _record(
        ShareGroupTargetAssignmentMemberKey(group_id, member_id),
        ShareGroupTargetAssignmentMemberValue(
            [ShareTargetPartitions(topic_id, sorted(indexes)) for topic_id, indexes in target.items()]
        ),
    )


def target_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(ShareGroupTargetAssignmentMemberKey(group_id, member_id), None)


def current_record(group_id: str, member: ShareMember) -> StoredRecord:
    return _record(
        ShareGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=0,
            assigned_partitions=[
                ShareCurrentPartitions(topic_id, sorted(indexes)) for topic_id, indexes in member.assigned.items()
            ],
        ),
    )


def current_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(ShareGroupCurrentMemberAssignmentKey(group_id, member_id), None)


def partitions_record(group_id: str, partitions: PartitionStates) -> StoredRecord:
    deleting = [ShareTopicInfo(topic_id, name) for topic_id, name in partitions.deleting.items()]
    return _record(
        ShareGroupStatePartitionMetadataKey(group_id),
        ShareGroupStatePartitionMetadataValue(
            _topics(partitions.initializing), _topics(partitions.initialized), deleting
        ),
    )


def _topics(topics: TopicPartitions) -> list[TopicPartitionsInfo]:
    return [TopicPartitionsInfo(topic_id, name, sorted(indexes)) for topic_id, (name, indexes) in topics.items()]


def partitions_tombstone(group_id: str) -> StoredRecord:
    return _record(ShareGroupStatePartitionMetadataKey(group_id), None)


def remove_member(group_id: str, member_id: str) -> list[StoredRecord]:
    """Everything a member leaves behind, in the order in which it is taken away."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]
