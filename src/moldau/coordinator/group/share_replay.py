"""Applies the records of share groups: the only code that changes them.

A log that was compacted may lack records in the middle: tombstones of what is not there are left alone.
"""

from __future__ import annotations

from moldau.coordinator.group.share_group import INITIAL_EPOCH, ShareGroup
from moldau.coordinator.group.share_member import PartitionStates, ShareMember, TopicPartitions
from moldau.coordinator.group.state import GroupShardState
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
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
    TopicPartitionsInfo,
    decode_group_key,
    decode_group_value,
)


class ShareReplay:
    """See the module."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        what = decode_group_key(key)
        content = None if value is None else decode_group_value(record_type, value)
        if isinstance(what, ShareGroupMemberMetadataKey):
            self._member(what, content)
        elif isinstance(what, ShareGroupCurrentMemberAssignmentKey):
            self._current_assignment(what, content)
        elif isinstance(what, ShareGroupTargetAssignmentMemberKey):
            self._target(what, content)
        elif isinstance(what, ShareGroupTargetAssignmentMetadataKey):
            self._assignment_epoch(what, content)
        elif isinstance(what, ShareGroupStatePartitionMetadataKey):
            self._partitions(what, content)
        elif isinstance(what, ShareGroupMetadataKey):
            self._group_epoch(what, content)

    def _group(self, group_id: str, create: bool) -> ShareGroup | None:
        group = self._state.groups.get(group_id)
        if isinstance(group, ShareGroup):
            return group
        if not create:
            return None
        made = self._state.groups[group_id] = ShareGroup(group_id)
        return made

    def _member(self, key: ShareGroupMemberMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if not isinstance(value, ShareGroupMemberMetadataValue):
            group.members.pop(key.member_id, None)
            return
        known = group.members.get(key.member_id)
        member = ShareMember(key.member_id) if known is None else known.copy()
        member.rack_id = value.rack_id
        member.client_id = value.client_id
        member.client_host = value.client_host
        member.subscribed_topic_names = frozenset(value.subscribed_topic_names)
        group.members[key.member_id] = member

    def _current_assignment(self, key: ShareGroupCurrentMemberAssignmentKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        known = group.members.get(key.member_id)
        if not isinstance(value, ShareGroupCurrentMemberAssignmentValue):
            if known is not None:
                member = known.copy()
                member.member_epoch = member.previous_member_epoch = 0
                member.assigned = {}
                group.members[key.member_id] = member
            return
        member = ShareMember(key.member_id) if known is None else known.copy()
        member.member_epoch = value.member_epoch
        member.previous_member_epoch = value.previous_member_epoch
        member.assigned = {topic.topic_id: frozenset(topic.partitions) for topic in value.assigned_partitions}
        group.members[key.member_id] = member

    def _target(self, key: ShareGroupTargetAssignmentMemberKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ShareGroupTargetAssignmentMemberValue):
            group.targets[key.member_id] = {t.topic_id: frozenset(t.partitions) for t in value.topic_partitions}
        else:
            group.targets.pop(key.member_id, None)

    def _assignment_epoch(self, key: ShareGroupTargetAssignmentMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ShareGroupTargetAssignmentMetadataValue):
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp
        else:
            group.assignment_epoch = INITIAL_EPOCH

    def _partitions(self, key: ShareGroupStatePartitionMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        states = PartitionStates()
        if isinstance(value, ShareGroupStatePartitionMetadataValue):
            states.initializing = _topics(value.initializing_topics)
            states.initialized = _topics(value.initialized_topics)
            states.deleting = {topic.topic_id: topic.topic_name for topic in value.deleting_topics}
        group.partitions = states

    def _group_epoch(self, key: ShareGroupMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ShareGroupMetadataValue):
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        else:
            del self._state.groups[key.group_id]


def _topics(topics: list[TopicPartitionsInfo]) -> TopicPartitions:
    return {topic.topic_id: (topic.topic_name, frozenset(topic.partitions)) for topic in topics}
