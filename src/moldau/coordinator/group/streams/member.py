"""One member of a streams group: a thread of an application, the tasks it has, and how far it is from its target.

Members are never changed: whoever wants another one makes a copy and changes that before it is shown to anybody.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.streams.tasks import (
    NO_CURRENT_TASKS,
    CurrentTasks,
    make_tasks,
)
from moldau.protocol.stored.group_records import (
    StreamsCurrentTasks,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataValue,
)

STABLE: Final = 1
UNREVOKED_TASKS: Final = 2
UNRELEASED_TASKS: Final = 3
UNKNOWN: Final = 127
STATE_NAMES: Final = {
    STABLE: "STABLE",
    UNREVOKED_TASKS: "UNREVOKED_TASKS",
    UNRELEASED_TASKS: "UNRELEASED_TASKS",
    UNKNOWN: "UNKNOWN",
}

JOINING_EPOCH: Final = 0
LEFT_EPOCH: Final = -1
NO_TIMEOUT: Final = -1
NO_TOPOLOGY_EPOCH: Final = -1


class StreamsMember:
    """See the module."""

    __slots__ = (
        "assigned",
        "client_host",
        "client_id",
        "client_tags",
        "instance_id",
        "member_epoch",
        "member_id",
        "pending_revocation",
        "previous_member_epoch",
        "process_id",
        "rack_id",
        "rebalance_timeout_ms",
        "state",
        "topology_epoch",
        "user_endpoint",
    )

    def __init__(self, member_id: str) -> None:
        self.member_id = member_id
        self.member_epoch = JOINING_EPOCH
        self.previous_member_epoch = -1
        self.state = STABLE
        self.instance_id: str | None = None
        self.rack_id: str | None = None
        self.client_id = ""
        self.client_host = ""
        self.rebalance_timeout_ms = NO_TIMEOUT
        self.topology_epoch = NO_TOPOLOGY_EPOCH
        self.process_id = ""
        self.user_endpoint: tuple[str, int] | None = None
        self.client_tags: dict[str, str] = {}
        self.assigned: CurrentTasks = NO_CURRENT_TASKS
        self.pending_revocation: CurrentTasks = NO_CURRENT_TASKS

    def copy(self) -> StreamsMember:
        other = StreamsMember(self.member_id)
        for name in StreamsMember.__slots__:
            setattr(other, name, getattr(self, name))
        return other

    def is_reconciled_to(self, assignment_epoch: int) -> bool:
        return self.state == STABLE and self.member_epoch == assignment_epoch

    def says_the_same(self, other: StreamsMember) -> bool:
        """Would both be written as the same member record?"""
        return (
            self.instance_id == other.instance_id
            and self.rack_id == other.rack_id
            and self.client_id == other.client_id
            and self.client_host == other.client_host
            and self.rebalance_timeout_ms == other.rebalance_timeout_ms
            and self.topology_epoch == other.topology_epoch
            and self.process_id == other.process_id
            and self.user_endpoint == other.user_endpoint
            and self.client_tags == other.client_tags
        )

    def same_assignment(self, other: StreamsMember) -> bool:
        """Would both be written as the same current assignment record?"""
        return (
            self.member_epoch == other.member_epoch
            and self.previous_member_epoch == other.previous_member_epoch
            and self.state == other.state
            and self.assigned == other.assigned
            and self.pending_revocation == other.pending_revocation
        )

    def assignment_epoch_of(self, subtopology_id: str, partition: int) -> int | None:
        """Since when this task is active here, also if the member is about to give it away; None if it is not."""
        epoch = self.assigned.active.get(subtopology_id, {}).get(partition)
        if epoch is None:
            epoch = self.pending_revocation.active.get(subtopology_id, {}).get(partition)
        return epoch

    # From records

    def with_metadata(self, value: StreamsGroupMemberMetadataValue) -> StreamsMember:
        member = self.copy()
        member.instance_id = value.instance_id
        member.rack_id = value.rack_id
        member.client_id = value.client_id
        member.client_host = value.client_host
        member.rebalance_timeout_ms = value.rebalance_timeout_ms
        member.topology_epoch = value.topology_epoch
        member.process_id = value.process_id
        endpoint = value.user_endpoint
        member.user_endpoint = None if endpoint is None else (endpoint.host, endpoint.port)
        member.client_tags = {tag.key: tag.value for tag in value.client_tags}
        return member

    def with_assignment(self, value: StreamsGroupCurrentMemberAssignmentValue) -> StreamsMember:
        member = self.copy()
        member.member_epoch = value.member_epoch
        member.previous_member_epoch = value.previous_member_epoch
        member.state = value.state if value.state in STATE_NAMES else UNKNOWN
        member.assigned = _tasks(value.active_tasks, value.standby_tasks, value.warmup_tasks, value.member_epoch)
        member.pending_revocation = _tasks(
            value.active_tasks_pending_revocation,
            value.standby_tasks_pending_revocation,
            value.warmup_tasks_pending_revocation,
            value.member_epoch,
        )
        return member

    def without_assignment(self) -> StreamsMember:
        """What is left of it when its current assignment was deleted."""
        member = self.copy()
        member.member_epoch = LEFT_EPOCH
        member.previous_member_epoch = LEFT_EPOCH
        member.assigned = NO_CURRENT_TASKS
        member.pending_revocation = NO_CURRENT_TASKS
        return member


def _tasks(
    active: list[StreamsCurrentTasks],
    standby: list[StreamsCurrentTasks],
    warmup: list[StreamsCurrentTasks],
    member_epoch: int,
) -> CurrentTasks:
    return CurrentTasks(
        {row.subtopology_id: _epochs(row, member_epoch) for row in active if row.partitions},
        make_tasks((row.subtopology_id, row.partitions) for row in standby),
        make_tasks((row.subtopology_id, row.partitions) for row in warmup),
    )


def _epochs(row: StreamsCurrentTasks, member_epoch: int) -> dict[int, int]:
    """Older releases do not write the epochs; then the member's epoch stands for all of them."""
    epochs = row.assignment_epochs
    if epochs is None or len(epochs) != len(row.partitions):
        return dict.fromkeys(row.partitions, max(0, member_epoch))
    return dict(zip(row.partitions, epochs, strict=True))
