"""Applies the records of streams groups: the only code that changes them.

A log that was compacted may lack records in the middle: tombstones of what is not there are left alone.
"""

from __future__ import annotations

from moldau.coordinator.group.consumer_timers import MemberTimers
from moldau.coordinator.group.state import GroupShardState
from moldau.coordinator.group.streams.group import StreamsGroup
from moldau.coordinator.group.streams.member import StreamsMember
from moldau.coordinator.group.streams.tasks import TasksByRole, make_tasks
from moldau.coordinator.group.streams.topology import StreamsTopology
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    StreamsTargetTasks,
    decode_group_key,
    decode_group_value,
)


def initial_delay_key(group_id: str) -> str:
    """The timer by which an empty group waits for more members."""
    return f"streams initial delay {group_id}"


class StreamsReplay:
    """See the module."""

    def __init__(self, state: GroupShardState) -> None:
        self._state = state
        self._timers = MemberTimers(state.timers)

    def replay(self, record_type: int, key: bytes, value: bytes | None) -> None:
        what = decode_group_key(key)
        content = None if value is None else decode_group_value(record_type, value)
        if isinstance(what, StreamsGroupMemberMetadataKey):
            self._member(what, content)
        elif isinstance(what, StreamsGroupCurrentMemberAssignmentKey):
            self._current_assignment(what, content)
        elif isinstance(what, StreamsGroupTargetAssignmentMemberKey):
            self._target(what, content)
        elif isinstance(what, StreamsGroupTargetAssignmentMetadataKey):
            self._assignment_epoch(what, content)
        elif isinstance(what, StreamsGroupTopologyKey):
            self._topology(what, content)
        elif isinstance(what, StreamsGroupMetadataKey):
            self._group_epoch(what, content)

    def _group(self, group_id: str, create: bool) -> StreamsGroup | None:
        group = self._state.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            return group
        if not create:
            return None
        made = self._state.groups[group_id] = StreamsGroup(group_id)
        return made

    def _member(self, key: StreamsGroupMemberMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, StreamsGroupMemberMetadataValue):
            member = group.members.get(key.member_id) or StreamsMember(key.member_id)
            group.update_member(member.with_metadata(value))
        else:
            group.remove_member(key.member_id)
            self._timers.cancel_all(key.group_id, key.member_id)

    def _current_assignment(self, key: StreamsGroupCurrentMemberAssignmentKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, StreamsGroupCurrentMemberAssignmentValue):
            member = group.members.get(key.member_id) or StreamsMember(key.member_id)
            group.update_member(member.with_assignment(value))
        else:
            known = group.members.get(key.member_id)
            if known is not None:
                group.update_member(known.without_assignment())

    def _target(self, key: StreamsGroupTargetAssignmentMemberKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, StreamsGroupTargetAssignmentMemberValue):
            group.targets[key.member_id] = TasksByRole(
                make_tasks(_rows(value.active_tasks)),
                make_tasks(_rows(value.standby_tasks)),
                make_tasks(_rows(value.warmup_tasks)),
            )
        else:
            group.targets.pop(key.member_id, None)

    def _assignment_epoch(self, key: StreamsGroupTargetAssignmentMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
            group.assignment_epoch = value.assignment_epoch
            group.assignment_timestamp_ms = value.assignment_timestamp
        else:
            group.remove_assignment_epoch()

    def _topology(self, key: StreamsGroupTopologyKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        group.topology = StreamsTopology(value) if isinstance(value, StreamsGroupTopologyValue) else None
        group.configured = None

    def _group_epoch(self, key: StreamsGroupMetadataKey, value: Message | None) -> None:
        group = self._group(key.group_id, value is not None)
        if group is None:
            return
        if isinstance(value, StreamsGroupMetadataValue):
            group.group_epoch = value.epoch
            group.metadata_hash = value.metadata_hash
            group.validated_topology_epoch = value.validated_topology_epoch
            group.assignment_configs = {row.key: row.value for row in value.last_assignment_configs or []}
        else:
            for member_id in group.members:
                self._timers.cancel_all(key.group_id, member_id)
            self._state.timers.cancel(initial_delay_key(key.group_id))
            del self._state.groups[key.group_id]


def _rows(rows: list[StreamsTargetTasks]) -> list[tuple[str, list[int]]]:
    return [(row.subtopology_id, row.partitions) for row in rows]
