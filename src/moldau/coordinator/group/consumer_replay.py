"""Applies the records of consumer groups: the only code that changes them.

A log that was compacted may lack records in the middle: tombstones of what is not there are left alone.
"""

from __future__ import annotations

from moldau.coordinator.group.consumer_group import ConsumerGroup, ResolvedRegex
from moldau.coordinator.group.consumer_member import ConsumerMember, Partitions
from moldau.coordinator.group.consumer_timers import MemberTimers
from moldau.coordinator.group.state import GroupShardState
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
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
    decode_group_key,
    decode_group_value,
)


class ConsumerReplay:
    """See the module."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state
        self._timers = MemberTimers(state.timers)

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        what = decode_group_key(key)
        content = None if value is None else decode_group_value(record_type, value)
        if isinstance(what, ConsumerGroupMemberMetadataKey):
            self._member(what, content)
        elif isinstance(what, ConsumerGroupCurrentMemberAssignmentKey):
            self._current_assignment(what, content)
        elif isinstance(what, ConsumerGroupTargetAssignmentMemberKey):
            self._target(what, content)
        elif isinstance(what, ConsumerGroupTargetAssignmentMetadataKey):
            self._assignment_epoch(what, content)
        elif isinstance(what, ConsumerGroupMetadataKey):
            self._group_epoch(what, content)
        elif isinstance(what, ConsumerGroupRegularExpressionKey):
            self._regex(what, content)
        elif isinstance(what, ConsumerGroupPartitionMetadataKey):
            group = self._group(what.group_id, content is not None)
            if group is not None:
                group.has_partition_metadata_record = content is not None

    def _group(self, group_id: str, create: bool) -> ConsumerGroup | None:
        group = self._state.groups.get(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if not create:
            return None
        made = self._state.groups[group_id] = ConsumerGroup(group_id)
        return made

    def _member(self, key: ConsumerGroupMemberMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ConsumerGroupMemberMetadataValue):
            member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.update_member(member.with_subscription(value))
        else:
            group.remove_member(key.member_id)
            self._timers.cancel_all(key.group_id, key.member_id)

    def _current_assignment(self, key: ConsumerGroupCurrentMemberAssignmentKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ConsumerGroupCurrentMemberAssignmentValue):
            member = group.members.get(key.member_id) or ConsumerMember(key.member_id)
            group.update_member(member.with_assignment(value))
        else:
            known = group.members.get(key.member_id)
            if known is not None:
                group.update_member(known.without_assignment())

    def _target(self, key: ConsumerGroupTargetAssignmentMemberKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ConsumerGroupTargetAssignmentMemberValue):
            target: Partitions = {topic.topic_id: frozenset(topic.partitions) for topic in value.topic_partitions}
            group.update_target(key.member_id, target)
        else:
            group.remove_target(key.member_id)

    def _assignment_epoch(self, key: ConsumerGroupTargetAssignmentMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ConsumerGroupTargetAssignmentMetadataValue):
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp
        else:
            group.remove_assignment_epoch()

    def _group_epoch(self, key: ConsumerGroupMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ConsumerGroupMetadataValue):
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash
        else:
            for member_id in group.members:
                self._timers.cancel_all(key.group_id, member_id)
            del self._state.groups[key.group_id]

    def _regex(self, key: ConsumerGroupRegularExpressionKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, ConsumerGroupRegularExpressionValue):
            group.resolved_regexes[key.regular_expression] = ResolvedRegex(
                frozenset(value.topics), value.version, value.timestamp
            )
        else:
            group.resolved_regexes.pop(key.regular_expression, None)
