"""A streams group (KIP-1071): its members, epochs, topology, target assignment, and who has which task.

    Empty ──a member joins──> NotReady ──topics are there──> Assigning ──target──> Reconciling ──all have it──> Stable
      ^                          ^                              │                                                │
      └──── nobody is left ──────┴──── a topic is missing ──────┴────── a member, a topic or a config changes ───┘

The group epoch counts what may change the assignment; the assignment epoch says which group epoch the target was
computed for; a member's epoch says which target it is on the way to. Everything here changes through replayed records,
except what is marked.

Invariant: a task is active in at most one member. It stays with that member while it is asked to give the task up, and
only a task that nobody has is given to the next member (`reconciliation`). Kafka keeps the same in StreamsGroup.
"""

from __future__ import annotations

from typing import Final

from moldau.coordinator.group.group import STREAMS, Group
from moldau.coordinator.group.streams.configuration import ConfiguredTopology
from moldau.coordinator.group.streams.member import LEFT_EPOCH, StreamsMember
from moldau.coordinator.group.streams.records import (
    assignment_epoch_tombstone,
    current_tombstone,
    group_tombstone,
    member_tombstone,
    target_tombstone,
    topology_tombstone,
)
from moldau.coordinator.group.streams.tasks import NO_TASKS, CurrentTasks, Task, TasksByRole, each_task
from moldau.coordinator.group.streams.topology import StreamsTopology
from moldau.coordinator.outcome import StoredRecord
from moldau.protocol import errors
from moldau.protocol.errors import KafkaError
from moldau.protocol.messages.describe_groups_response import DescribedGroup

EMPTY: Final = "Empty"
NOT_READY: Final = "NotReady"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"

INITIAL_EPOCH: Final = 1
"""Of the group and of its assignment, before there was any; a member's epoch 0 means that it joins."""
NOT_VALIDATED: Final = -1
FIRST_COMMIT_VERSION_WITH_EPOCHS: Final = 9


class StreamsGroup(Group):
    """See the module."""

    kind = STREAMS

    def __init__(self, group_id: str) -> None:
        super().__init__(group_id)
        self.group_epoch = INITIAL_EPOCH
        self.metadata_hash = 0
        self.validated_topology_epoch = NOT_VALIDATED
        self.assignment_configs: dict[str, str] = {}
        self.assignment_epoch = INITIAL_EPOCH
        self.assignment_timestamp_ms = 0
        self.topology: StreamsTopology | None = None
        self.members: dict[str, StreamsMember] = {}
        self.targets: dict[str, TasksByRole] = {}
        # The member that has a task active, and those that keep its state, all of them also while they give it up.
        self.active_owners: dict[Task, str] = {}
        self.standby_owners: dict[Task, set[str]] = {}
        self.warmup_owners: dict[Task, set[str]] = {}
        # Not replayed: the topology at the topics that there were, and the epoch the group had got when they were
        # looked at last; how often endpoints have got other tasks; who asked all members to end.
        self.configured: ConfiguredTopology | None = None
        self.looks_at_topics = True
        self.looked_at_epoch = 0
        self.endpoint_epoch = 0
        self.shutdown_member_id: str | None = None

    # What all groups have

    def state_name(self) -> str:
        if not self.members:
            return EMPTY
        if self.topology is None or self.topology.epoch != self.validated_topology_epoch:
            return NOT_READY
        if self.group_epoch > self.assignment_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def protocol_type(self) -> str:
        return STREAMS

    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        is_transactional: bool,
        version: int,
        now_ms: int,
    ) -> None:
        if generation_or_epoch < 0 and not self.members:
            return
        if is_transactional and generation_or_epoch == -1 and not member_id and instance_id is None:
            return
        member = self.member(member_id)
        if not is_transactional and version < FIRST_COMMIT_VERSION_WITH_EPOCHS:
            raise KafkaError(
                errors.UNSUPPORTED_VERSION,
                "OffsetCommit version 9 or above must be used by members using the streams group protocol",
            )
        if generation_or_epoch > member.member_epoch:
            raise _stale(
                f"Received member epoch {generation_or_epoch} is newer than current member epoch {member.member_epoch}."
            )

    def check_partition_commit(
        self, member_id: str, generation_or_epoch: int, topic: str, topic_id: bytes, partition: int
    ) -> None:
        """A member that has not heard of its newest epoch may commit for tasks it has had since the one it knows."""
        member = self.members.get(member_id)
        if member is None or generation_or_epoch == member.member_epoch:
            return
        if self.topology is None:
            raise _stale("Topology is not available for offset commit validation.")
        subtopology = self.topology.readers.get(topic)
        if subtopology is None:
            raise _stale(f"Topic {topic} is not in the topology.")
        since = member.assignment_epoch_of(subtopology, partition)
        if since is None:
            raise _stale(f"Task {subtopology}-{partition} is not assigned or pending revocation for member.")
        if generation_or_epoch < since:
            raise _stale(
                f"Received member epoch {generation_or_epoch} is older than assignment epoch {since} for task "
                f"{subtopology}-{partition}."
            )

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if member_id is None and member_epoch < 0:
            return
        member = self.member(member_id or "")
        if member_epoch != member.member_epoch:
            raise _stale(
                f"The received member epoch {member_epoch} does not match the expected member epoch "
                f"{member.member_epoch}."
            )

    def check_offset_delete(self) -> None:
        pass

    def check_delete(self) -> None:
        if self.members:
            raise KafkaError(errors.NON_EMPTY_GROUP)

    def is_subscribed_to(self, topic: str) -> bool:
        return bool(self.members) and self.topology is not None and topic in self.topology.readers

    def tombstones(self) -> list[StoredRecord]:
        group_id = self.group_id
        records = [current_tombstone(group_id, member_id) for member_id in self.members]
        records += [target_tombstone(group_id, member_id) for member_id in self.members]
        records.append(assignment_epoch_tombstone(group_id))
        records += [member_tombstone(group_id, member_id) for member_id in self.members]
        records.append(group_tombstone(group_id))
        records.append(topology_tombstone(group_id))
        return records

    def offsets_expire_from(self, topic: str, committed_ms: int) -> int:
        """From the commit on; whoever asks leaves out the topics that the group reads while it has members."""
        return committed_ms

    def describe(self) -> DescribedGroup:
        raise KafkaError(errors.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is not a classic group.")

    # Members

    def member(self, member_id: str) -> StreamsMember:
        member = self.members.get(member_id)
        if member is None:
            raise KafkaError(errors.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {self.group_id}.")
        return member

    def target_of(self, member_id: str) -> TasksByRole:
        return self.targets.get(member_id, NO_TASKS)

    def update_member(self, member: StreamsMember) -> None:
        """Puts the member in place of what it was; called by `replay`."""
        old = self.members.get(member.member_id)
        self.members[member.member_id] = member
        if (
            old is None
            or old.assigned is not member.assigned
            or old.pending_revocation is not member.pending_revocation
        ):
            self._disown(old)
            self._own(member.member_id, member.assigned)
            self._own(member.member_id, member.pending_revocation)

    def remove_member(self, member_id: str) -> None:
        self._disown(self.members.pop(member_id, None))
        if not self.members:
            self.shutdown_member_id = None

    def remove_assignment_epoch(self) -> None:
        self.assignment_epoch = LEFT_EPOCH
        self.assignment_timestamp_ms = 0

    def _own(self, member_id: str, tasks: CurrentTasks) -> None:
        for task in each_task(tasks.active):
            self.active_owners[task] = member_id
        for owners, kept in ((self.standby_owners, tasks.standby), (self.warmup_owners, tasks.warmup)):
            for task in each_task(kept):
                owners.setdefault(task, set()).add(member_id)

    def _disown(self, member: StreamsMember | None) -> None:
        if member is None:
            return
        for tasks in (member.assigned, member.pending_revocation):
            for task in each_task(tasks.active):
                # The next owner may have been replayed before.
                if self.active_owners.get(task) == member.member_id:
                    del self.active_owners[task]
            for owners, kept in ((self.standby_owners, tasks.standby), (self.warmup_owners, tasks.warmup)):
                for task in each_task(kept):
                    holders = owners.get(task)
                    if holders is not None:
                        holders.discard(member.member_id)
                        if not holders:
                            del owners[task]

    # Who has a task

    def is_active_somewhere(self, task: Task) -> bool:
        return task in self.active_owners

    def is_active_in(self, task: Task, process_id: str) -> bool:
        owner = self.active_owners.get(task)
        return owner is not None and self.members[owner].process_id == process_id

    def is_kept_in(self, task: Task, process_id: str) -> bool:
        """Is it a standby or warm-up task of a member of this process?"""
        for owners in (self.standby_owners, self.warmup_owners):
            for member_id in owners.get(task, ()):
                if self.members[member_id].process_id == process_id:
                    return True
        return False

    # The topics may have changed

    def must_look_at_topics(self) -> bool:
        """Also when they were looked at for an epoch that could not be written."""
        return self.looks_at_topics or self.configured is None or self.group_epoch < self.looked_at_epoch


def _stale(message: str) -> KafkaError:
    return KafkaError(errors.STALE_MEMBER_EPOCH, message)
