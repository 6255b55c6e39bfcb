"""The records of streams groups: one function for each kind that is written, and for its tombstone."""

from __future__ import annotations

from moldau.coordinator.group.streams.member import StreamsMember
from moldau.coordinator.group.streams.tasks import ActiveTasks, Tasks, TasksByRole
from moldau.coordinator.group.streams.topology import StreamsTopology
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol.primitives import Message
from moldau.protocol.stored.group_records import (
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
    StreamsCurrentTasks,
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
    StreamsTargetTasks,
    encode_group_key,
    encode_group_value,
)


def _record(key: Message, value: Message | None) -> StoredRecord:
    return encode_group_key(key), None if value is None else encode_group_value(value, 0)


def group_record(
    group_id: str,
    epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: dict[str, str],
) -> StoredRecord:
    configs = [LastAssignmentConfig(key, value) for key, value in sorted(assignment_configs.items())]
    value = StreamsGroupMetadataValue(epoch, metadata_hash, validated_topology_epoch, configs)
    return _record(StreamsGroupMetadataKey(group_id), value)


def group_tombstone(group_id: str) -> StoredRecord:
    return _record(StreamsGroupMetadataKey(group_id), None)


def topology_record(group_id: str, topology: StreamsTopology) -> StoredRecord:
    return _record(StreamsGroupTopologyKey(group_id), topology.value)


def topology_tombstone(group_id: str) -> StoredRecord:
    return _record(StreamsGroupTopologyKey(group_id), None)


def member_record(group_id: str, member: StreamsMember) -> StoredRecord:
    endpoint = member.user_endpoint
    return _record(
        StreamsGroupMemberMetadataKey(group_id, member.member_id),
        StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if endpoint is None else Endpoint(endpoint[0], endpoint[1]),
            client_tags=[KeyValue(key, value) for key, value in sorted(member.client_tags.items())],
        ),
    )


def member_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(StreamsGroupMemberMetadataKey(group_id, member_id), None)


def assignment_epoch_record(group_id: str, epoch: int, timestamp_ms: int) -> StoredRecord:
    return _record(
        StreamsGroupTargetAssignmentMetadataKey(group_id),
        StreamsGroupTargetAssignmentMetadataValue(epoch, timestamp_ms),
    )


def assignment_epoch_tombstone(group_id: str) -> StoredRecord:
    return _record(StreamsGroupTargetAssignmentMetadataKey(group_id), None)


def target_record(group_id: str, member_id: str, target: TasksByRole) -> StoredRecord:
    return _record(
        StreamsGroupTargetAssignmentMemberKey(group_id, member_id),
        StreamsGroupTargetAssignmentMemberValue(
            _target_rows(target.active), _target_rows(target.standby), _target_rows(target.warmup)
        ),
    )


def _target_rows(tasks: Tasks) -> list[StreamsTargetTasks]:
    return [StreamsTargetTasks(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks)]


def target_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(StreamsGroupTargetAssignmentMemberKey(group_id, member_id), None)


def current_record(group_id: str, member: StreamsMember) -> StoredRecord:
    has, gives = member.assigned, member.pending_revocation
    return _record(
        StreamsGroupCurrentMemberAssignmentKey(group_id, member.member_id),
        StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.member_epoch,
            previous_member_epoch=member.previous_member_epoch,
            state=member.state,
            active_tasks=_active_rows(has.active),
            standby_tasks=_other_rows(has.standby),
            warmup_tasks=_other_rows(has.warmup),
            active_tasks_pending_revocation=_active_rows(gives.active),
            standby_tasks_pending_revocation=_other_rows(gives.standby),
            warmup_tasks_pending_revocation=_other_rows(gives.warmup),
        ),
    )


def _active_rows(tasks: ActiveTasks) -> list[StreamsCurrentTasks]:
    rows: list[StreamsCurrentTasks] = []
    for subtopology in sorted(tasks):
        epochs = tasks[subtopology]
        partitions = sorted(epochs)
        rows.append(StreamsCurrentTasks(subtopology, partitions, [epochs[index] for index in partitions]))
    return rows


def _other_rows(tasks: Tasks) -> list[StreamsCurrentTasks]:
    """Nothing is committed for these, so nobody asks since when they are there."""
    return [StreamsCurrentTasks(subtopology, sorted(tasks[subtopology])) for subtopology in sorted(tasks)]


def current_tombstone(group_id: str, member_id: str) -> StoredRecord:
    return _record(StreamsGroupCurrentMemberAssignmentKey(group_id, member_id), None)


def remove_member(group_id: str, member_id: str) -> list[StoredRecord]:
    """Everything a member leaves behind, in the order in which it is taken away."""
    return [
        current_tombstone(group_id, member_id),
        target_tombstone(group_id, member_id),
        member_tombstone(group_id, member_id),
    ]
